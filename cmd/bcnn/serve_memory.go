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
// GOMEMLIMIT is left to whoever sets it.
func boundHeap(ctx context.Context, memory func() (taken, most int64)) {
	const spare = 56 << 20 // of stacks, connections, and what is used again
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var b baseline
	for {
		metrics.Read(live)
		taken, most := memory()
		base := b.next(int64(live[0].Value.Uint64()), taken)
		debug.SetMemoryLimit(base + base/4 + most + spare)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// baseline is the memory of the models and the process: what is in use while requests take little,
// and at other times the mean of what they do not account for, as the collector has counted at
// another moment than they have.
type baseline struct{ quiet, mean int64 }

// next returns it after another second, in which so much was in use and taken by requests.
func (b *baseline) next(used, taken int64) int64 {
	const little = 1 << 20
	if b.mean += (used - taken - b.mean) / 8; taken < little {
		b.quiet, b.mean = used, used
	}
	return max(b.quiet, b.mean)
}
