//go:build !wasm

package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// boundHeap keeps garbage within the memory of requests until ctx ends: left alone, the collector
// lets the heap become twice of what is in use, and requests would take twice of what they may.
// What is in use while requests take little is that of the models and the process; at other times
// it is the mean of what requests do not account for, as the collector has counted at another moment
// than they have. GOMEMLIMIT is left to whoever sets it.
func boundHeap(ctx context.Context, memory func() (taken, most int64)) {
	const (
		little = 1 << 20
		spare  = 56 << 20 // of stacks, connections, and what is used again
	)
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	quiet, mean := int64(0), int64(0)
	for {
		metrics.Read(live)
		taken, most := memory()
		now := int64(live[0].Value.Uint64())
		if mean += (now - taken - mean) / 8; taken < little {
			quiet, mean = now, now
		}
		base := max(quiet, mean)
		debug.SetMemoryLimit(base + base/4 + most + spare)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
