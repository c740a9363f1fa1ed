//go:build !packaging

// Command bcnn runs binary convolutional neural networks: it classifies
// images, evaluates, converts and inspects models, lists devices, checks that
// every device computes the same bits, and measures how fast they are. It also says
// how other modules build the GPU backends.
//
// See docs/command.md.
package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"

	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/internal/host"
)

func main() {
	// More than there are processors make the garbage collector slow, and
	// nothing faster.
	if n := runtime.NumCPU(); runtime.GOMAXPROCS(0) > n {
		runtime.GOMAXPROCS(n)
	}
	// Garbage is collected before it fills the memory that is free.
	if free := host.Available(); free > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(free - free/10)
	}
	ctx := untilSignal()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	var cause interrupted
	if code == exitInterrupted && errors.As(context.Cause(ctx), &cause) {
		dieOf(cause.Signal)
	}
	os.Exit(code)
}
