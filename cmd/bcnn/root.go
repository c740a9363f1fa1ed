package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Exit codes.
const (
	exitOK          = 0
	exitJob         = 1       // the job failed
	exitUsage       = 2       // wrong usage
	exitInterrupted = 128 + 2 // as a shell calls the end by SIGINT; see dieOf
)

// usageError is an error of the caller's: wrong flags or arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// errReported says that the job failed and that everything has been said.
var errReported = errors.New("failed")

// run executes the command line and returns the exit code. All errors are
// written to stderr, one line each; only the obstacles of an import are one line each.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	root := newRoot(out, stderr)
	root.SetArgs(args)
	// Whatever fails before the command itself has started is wrong usage.
	started := false
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		started = true
		return checkOutputs(cmd.Flags())
	}
	cmd, err := root.ExecuteContextC(ctx)

	// A reader that has gone away, as in "bcnn devices | head -1", needs no
	// words, but the job was not finished.
	if out.err != nil {
		if !readerIsGone(out.err) {
			report(stderr, fmt.Errorf("standard output: %w", out.err))
		}
		return exitJob
	}
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil: // whatever came of it
		fmt.Fprintln(stderr, "bcnn: interrupted")
		return exitInterrupted
	case errors.Is(err, errReported):
		return exitJob
	case errors.As(err, &usage) || !started:
		help := cmd.CommandPath() + " --help"
		if cmd == root {
			help = "bcnn help"
		}
		fmt.Fprintf(stderr, "bcnn: %s (see '%s')\n", oneLine(err), help)
		return exitUsage
	}
	report(stderr, err)
	return exitJob
}

func newRoot(out *output, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "bcnn",
		Short: "Run binary convolutional neural networks",
		Long: `bcnn runs binary convolutional neural networks: weights and activations are
±1, one bit each, and every device computes the same bits.

A MODEL is a built-in name ('bcnn zoo' lists them) or a file: .bcnn, ONNX,
TensorFlow Lite, Darknet (.cfg) or OpenVINO (.xml), recognised by its content. A file
named like a built-in model needs a path: ./digits. A device is "auto" (the fastest),
a backend ("cpu") or a device ("cuda:0") as 'bcnn devices' lists them; $BCNN_DEVICE
sets the default.

Inputs are regular files. Outputs appear completely or not at all. Unprintable
characters in names are printed as \n, \x1b or \u202e.

Exit status: 0 on success, 1 if the job failed (also: an output differs, an image is
unreadable), 2 for wrong usage, 130 and 143 after SIGINT (Ctrl-C) and SIGTERM. After
the first signal the command finishes what it has begun and leaves nothing
half-written; a second signal, or five more seconds, ends it at once. Each error is
one line on standard error.`,
		Example: `  bcnn classify photo.jpg
  bcnn classify --model digits --json digit.png
  bcnn convert model.onnx -o model.bcnn`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf("; did you mean %q?", near[0])
			}
			return usagef("unknown command %q%s", args[0], hint)
		},
	}
	root.Version = versionLine() // that there is one makes --version
	root.SetVersionTemplate(versionLine() + "\n")
	root.InitDefaultVersionFlag()
	root.SetOut(out)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(suggestFlag)
	root.SuggestionsMinimumDistance = 2
	env := &environment{out: out, stderr: stderr}
	root.AddCommand(
		newClassify(env), newDetect(env), newEval(env), newRun(env), newCheck(env), newConvert(env), newInspect(env), newDevices(env),
		newParity(env), newBench(env), newServe(env), newZoo(env), newDemo(env), newEnv(env), newVersion(env),
	)
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, _, err := root.Find(args)
			if err != nil || cmd == root && len(args) > 0 {
				return usagef("there is no command %q", strings.Join(args, " "))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(*cobra.Command, []string) error {
				return usagef("completion needs the name of a shell: bash, zsh, fish or powershell")
			}
		}
	}
	return root
}

// environment is what every sub-command writes to.
type environment struct {
	out    *output
	stderr io.Writer
}

// note says something on stderr that is no error.
func (e *environment) note(format string, args ...any) {
	fmt.Fprintln(e.stderr, "bcnn:", text.Escape(fmt.Sprintf(format, args...)))
}

// progress returns a function that shows how far a job is, on stderr and only
// where that is a terminal.
func (e *environment) progress(what string) func(done, total int) {
	if !isTerminal(e.stderr) {
		return func(int, int) {}
	}
	return progressOn(e.stderr, what, time.Now)
}

// progressOn is progress of a job that begins now.
func progressOn(w io.Writer, what string, clock func() time.Time) func(done, total int) {
	begun := clock() // and not when the first part is done
	var drawn time.Time
	width := 0 // of what stands there
	return func(done, total int) {
		now := clock()
		if done < total && now.Sub(drawn) < 100*time.Millisecond {
			return
		}
		drawn = now
		line := ""
		if done < total {
			line = fmt.Sprintf("%s %d / %d", what, done, total)
			if done > 0 {
				left := time.Duration(float64(now.Sub(begun)) / float64(done) * float64(total-done))
				line += fmt.Sprintf(", %v left", left.Round(time.Second))
			}
		}
		// A line that cannot be drawn is no reason to stop.
		fmt.Fprintf(w, "\r%-*s\r%s", width, "", line)
		width = len(line)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readerIsGone reports whether a pipe could not be written to because nobody reads from it.
func readerIsGone(err error) bool {
	const noData, brokenPipe = syscall.Errno(232), syscall.Errno(109) // of Windows
	return errors.Is(err, syscall.EPIPE) || runtime.GOOS == "windows" && (errors.Is(err, noData) || errors.Is(err, brokenPipe))
}
