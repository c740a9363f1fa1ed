package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// grace is how long a command may go on after it has been asked to stop: longer
// than any step that does not look at the context should take, and shorter than
// what waits before it kills: Windows waits five seconds when a console is closed.
var grace = 4 * time.Second

// moreGrace is what a command asks for beyond that, in nanoseconds, to end what it has begun
// for others.
var moreGrace atomic.Int64

func extendGrace(by time.Duration) { moreGrace.Store(int64(by)) }

// interrupted is the cause that ends the context of an interrupted command.
type interrupted struct{ os.Signal }

func (i interrupted) Error() string { return "interrupted" }

// untilSignal returns a context that the first SIGINT or SIGTERM ends, which asks
// the command to stop: on Windows Ctrl-C or Ctrl-Break, or the end of the console. The second one ends the process at once, and so does the
// end of the time of grace, as not every call of a driver can be called off. A
// signal that the parent wants ignored stays ignored.
func untilSignal() context.Context {
	if runtime.GOARCH == "wasm" { // which has no signals, so that package signal panics
		return context.Background()
	}
	var heeded []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			heeded = append(heeded, s)
		}
	}
	if len(heeded) == 0 { // Notify would take that for all signals
		return context.Background()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, heeded...)
	go func() {
		first := <-signals
		signal.Stop(signals) // the next one has its usual effect
		cancel(interrupted{first})
		select {
		case second := <-signals: // before Stop
			dieOf(second)
		case <-time.After(grace + time.Duration(moreGrace.Load())):
			fmt.Fprintln(os.Stderr, "bcnn: interrupted")
			dieOf(first)
		}
	}()
	return ctx
}

// controlCExit is STATUS_CONTROL_C_EXIT, as int32: what processes end with that Windows ends by
// Ctrl-C, and after which cmd.exe asks whether to go on with a batch file.
const controlCExit = 0xC000013A - 1<<32

// dieOf ends the process as the signal does, so that a shell sees why it ended
// and does not go on with the next command of a list.
func dieOf(s os.Signal) {
	signal.Reset(s)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(s) == nil {
		time.Sleep(time.Second) // until it arrives
	}
	code := exitInterrupted
	if runtime.GOOS == "windows" && s == os.Interrupt {
		code = controlCExit
	} else if n, ok := s.(syscall.Signal); ok {
		code = 128 + int(n)
	}
	os.Exit(code)
}
