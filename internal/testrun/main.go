// Command testrun runs go test with the given arguments, prints what go test
// prints without -v, and notes the tests that were skipped, which go test does not
// say: a line for each package and reason is added to a file.
//
//	go run ./internal/testrun FILE [ARGUMENTS OF GO TEST]
//
// The exit status is that of go test.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// An event is a line of go test -json, as go doc test2json describes it.
type event struct {
	Action, Package, Test, Output string
}

// A skip is a reason, given by tests of a package.
type skip struct{ pkg, reason string }

// A report makes text out of events.
type report struct {
	out io.Writer
	// unprinted holds the output of tests that have not ended, or that passed
	// and have parents that may fail.
	unprinted map[event]*strings.Builder // by Package and Test
	skipped   map[skip][]string          // names of tests
}

func newReport(out io.Writer) *report {
	return &report{out: out, unprinted: map[event]*strings.Builder{}, skipped: map[skip][]string{}}
}

// Marks of the progress of a test, which only -v shows.
var progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME|ATTR|ARTIFACTS) `)

func (r *report) add(e event) {
	test := event{Package: e.Package, Test: e.Test}
	switch {
	case e.Action == "build-output" || e.Action == "output" && e.Test == "" && e.Output != "PASS\n":
		fmt.Fprint(r.out, e.Output)
	case e.Test == "":
		if e.Action == "fail" { // a crash or a time-out: the tests that it interrupted
			for t, text := range r.unprinted {
				if t.Package == e.Package {
					fmt.Fprint(r.out, text)
					delete(r.unprinted, t)
				}
			}
		}
	case e.Action == "output":
		if progress.MatchString(e.Output) {
			return
		}
		if r.unprinted[test] == nil {
			r.unprinted[test] = &strings.Builder{}
		}
		r.unprinted[test].WriteString(e.Output)
	case e.Action == "fail":
		fmt.Fprint(r.out, r.text(test))
	case e.Action == "skip":
		if why := reason(r.text(test)); why != testenv.LeftOutByShort {
			r.skipped[skip{e.Package, why}] = append(r.skipped[skip{e.Package, why}], e.Test)
		}
	case e.Action == "pass":
		r.text(test)
	}
}

// text takes the output of a test.
func (r *report) text(test event) string {
	defer delete(r.unprinted, test)
	if text := r.unprinted[test]; text != nil {
		return text.String()
	}
	return ""
}

// place is what the testing package writes before a message: file and line.
var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason finds the last message of a skipped test, on one line.
func reason(text string) string {
	var said []string
	for line := range strings.Lines(text) {
		switch at := place.FindString(line); {
		case at != "":
			said = []string{strings.TrimSpace(line[len(at):])}
		case !strings.Contains(line, "--- SKIP: "):
			said = append(said, strings.TrimSpace(line))
		}
	}
	return strings.Join(said, " ")
}

// lines lists what was skipped.
func (r *report) lines() []string {
	var lines []string
	for s, tests := range r.skipped {
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", s.pkg, s.reason, strings.Join(tests, ", ")))
	}
	slices.Sort(lines)
	return lines
}

// read adds all events. What is not an event, such as a message of the go command,
// is printed as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.add(e)
		} else {
			fmt.Fprintf(r.out, "%s", line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func run(file string, args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newReport(os.Stdout)
	if err := errors.Join(r.read(events), cmd.Wait()); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, line := range r.lines() {
		fmt.Fprintln(f, line)
	}
	return f.Close()
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testrun FILE [ARGUMENTS OF GO TEST]")
		os.Exit(2)
	}
	err := run(os.Args[1], os.Args[2:])
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}
