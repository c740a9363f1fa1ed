// Importfuzz is the half of the fuzzer of the importers that is written in Go: it reads
// models and inputs on standard input, converts and runs them, and writes what came of
// it on standard output. One process answers thousands of requests a minute. Runner.py
// speaks the same protocol, fuzz.py draws the models and judges the answers.
//
// A panic of a goroutine that the code under test has started ends the process; whoever
// asked sees that as a fault.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

func main() {
	err := serve(os.Stdin, os.Stdout, 20*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, "importfuzz:", err)
		os.Exit(1)
	}
}

// defaultTime is the time that a request without a time of its own may take.
const defaultTime = 20 * time.Second

// errTimeOut ends serve: what did not end in time is still running.
var errTimeOut = errors.New("a request did not end in time")

// serve answers requests until there are no more. A request may outlast its time by
// grace, in which what it calls may heed that its context has ended.
func serve(r io.Reader, w io.Writer, grace time.Duration) error {
	in, out := bufio.NewReaderSize(r, 1<<20), bufio.NewWriterSize(w, 1<<20)
	for {
		q, err := readRequest(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		a := answerInTime(q, grace)
		a.ID = q.ID
		if err := writeAnswer(out, a); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if a.Last {
			return errTimeOut
		}
	}
}

// answerInTime answers a request, or says that the time was up.
func answerInTime(q *request, grace time.Duration) *answer {
	limit := defaultTime
	if q.Seconds > 0 {
		limit = time.Duration(q.Seconds * float64(time.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan *answer, 1)
	go func() { done <- answerOrPanic(ctx, q) }()
	timer := time.NewTimer(limit + grace)
	defer timer.Stop()
	select {
	case a := <-done:
		if ctx.Err() != nil {
			return &answer{Status: failed, Stage: a.Stage, Message: fmt.Sprintf("time-out: more than %v: %s", limit, a.Message)}
		}
		return a
	case <-timer.C:
		stacks := make([]byte, 1<<16)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return &answer{Status: failed, Last: true, Message: fmt.Sprintf("hang: its context ended after %v, it did not\n%s", limit, stacks)}
	}
}

// answerOrPanic makes an answer of a panic, too.
func answerOrPanic(ctx context.Context, q *request) (a *answer) {
	defer func() {
		if p := recover(); p != nil {
			a = &answer{Status: failed, Message: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	return respond(ctx, q)
}
