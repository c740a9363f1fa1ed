// Command machine assembles the PTX of kernels/cu/ptx for every architecture that may
// take it, and compares what became of the kernels with the limits of
// kernels/cu/machine.tsv:
//
//	machine [-write] -old PTXAS -new PTXAS -disassembler NVDISASM
//
// -old is an assembler that knows the architectures before 7.5, -new one that knows those
// from there on. With -write the limits are what was measured. It runs in the root of
// the repository.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

const (
	ptxFolder  = "kernels/cu/ptx"
	limitsFile = "kernels/cu/machine.tsv"
)

// architectures are those that are assembled for; the disassembler knows them from
// firstNew on, as the newer assembler does.
var architectures = []int{53, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121}

const firstNew = 75

// tools are paths of NVIDIA's programs.
type tools struct{ older, newer, disassembler string }

func main() {
	var t tools
	write := flag.Bool("write", false, "make the limits what is measured")
	flag.StringVar(&t.older, "old", "", "ptxas for architectures before 7.5")
	flag.StringVar(&t.newer, "new", "", "ptxas for architectures from 7.5 on")
	flag.StringVar(&t.disassembler, "disassembler", "", "nvdisasm")
	flag.Parse()
	if err := run(t, *write); err != nil {
		fmt.Fprintln(os.Stderr, "machine:", err)
		os.Exit(1)
	}
}

func run(t tools, write bool) error {
	work, err := assembled(ptxFolder)
	if err != nil {
		return err
	}
	rows, err := t.measureAll(work)
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(limitsFile, formatTable(rows), 0o644)
	}
	text, err := os.ReadFile(limitsFile)
	if err != nil {
		return err
	}
	limits, err := parseTable(text)
	if err != nil {
		return fmt.Errorf("%s: %w", limitsFile, err)
	}
	failures := exceeded(rows, limits)
	for _, f := range failures {
		fmt.Println(f)
	}
	fmt.Printf("%d assemblies, %d kernels for %d architectures\n", len(work), len(rows), len(architectures))
	if len(failures) > 0 {
		return fmt.Errorf("%d kernels are not within %s: mend them, or run scripts/ptx-assemble write and say why", len(failures), limitsFile)
	}
	return nil
}

// job is a file of PTX to assemble for an architecture.
type job struct {
	source string // of kernels/cu, without its extension
	file   string
	arch   int
	alone  bool // the file is for sm_90a, for instance
}

// target is what the assembler calls the architecture.
func (j job) target() string {
	if j.alone {
		return fmt.Sprintf("sm_%da", j.arch)
	}
	return fmt.Sprintf("sm_%d", j.arch)
}

// assembled lists what is to be assembled: of every source the newest file that an
// architecture takes.
func assembled(dir string) ([]job, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.ptx"))
	if err != nil {
		return nil, err
	}
	var alone []job
	files := make(map[string]map[int]string) // by source and architecture
	for _, path := range paths {
		source, rest, _ := strings.Cut(filepath.Base(path), ".")
		var arch int
		if _, err := fmt.Sscanf(rest, "sm%da.ptx", &arch); err == nil { // for that one alone
			alone = append(alone, job{source, path, arch, true})
			continue
		}
		if _, err := fmt.Sscanf(rest, "sm%d.ptx", &arch); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if files[source] == nil {
			files[source] = make(map[int]string)
		}
		files[source][arch] = path
	}
	work := alone
	for source, of := range files {
		for _, arch := range architectures {
			newest := 0
			for a := range of {
				if a <= arch && a > newest {
					newest = a
				}
			}
			if newest > 0 {
				work = append(work, job{source, of[newest], arch, false})
			}
		}
	}
	if len(work) == 0 {
		return nil, fmt.Errorf("no PTX in %s", dir)
	}
	return work, nil
}

// measureAll assembles everything, as many at a time as there are processors.
func (t tools) measureAll(work []job) ([]row, error) {
	dir, err := os.MkdirTemp("", "machine")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var mu sync.Mutex
	var rows []row
	var failed error
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for _, j := range work {
		slots <- struct{}{}
		group.Go(func() {
			some, err := t.measure(dir, j)
			if err != nil {
				err = fmt.Errorf("%s for %s: %w", j.file, j.target(), err)
			}
			mu.Lock()
			rows, failed = append(rows, some...), errors.Join(failed, err)
			mu.Unlock()
			<-slots
		})
	}
	group.Wait()
	slices.SortFunc(rows, row.compare)
	return rows, failed
}

// measure assembles a file and returns a row for each of its kernels.
func (t tools) measure(dir string, j job) ([]row, error) {
	assembler := t.older
	if j.arch >= firstNew {
		assembler = t.newer
	}
	cubin := filepath.Join(dir, fmt.Sprintf("%s.%d.cubin", j.source, j.arch))
	log, err := output(assembler, "-v", "-arch="+j.target(), j.file, "-o", cubin)
	if err != nil {
		return nil, err
	}
	defer os.Remove(cubin)
	kernels, err := parseLog(log)
	if err != nil {
		return nil, err
	}
	if err := addSections(kernels, cubin, j.arch); err != nil {
		return nil, err
	}
	if j.arch >= firstNew {
		text, err := output(t.disassembler, "-c", cubin)
		if err != nil {
			return nil, err
		}
		addCode(kernels, text)
	}
	var rows []row
	for name, c := range kernels {
		rows = append(rows, row{j.source, name, j.arch, *c})
	}
	return rows, nil
}

func output(program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(program), err, bytes.TrimSpace(text))
	}
	return text, nil
}
