// Command bcnn runs binary convolutional neural networks: it classifies
// images, evaluates, converts and inspects models, lists devices, checks that
// every device computes the same bits, and measures how fast they are.
//
// See docs/command.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/bitcnn/bitcnn/backend/all"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
