// Package parallel spreads independent work over the processors.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls do(0) to do(n−1), as many at the same time as there are processors,
// and returns when all have returned. If one of them panics, For does, so that
// the caller may recover.
func For(n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var others sync.WaitGroup
	panics := make(chan any, runtime.GOMAXPROCS(0))
	for range min(cap(panics), n) - 1 {
		others.Add(1)
		go func() {
			defer others.Done()
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			work()
		}()
	}
	defer func() {
		others.Wait()
		if len(panics) > 0 {
			panic(<-panics)
		}
	}()
	work()
}

// InOrder calls produce(0) to produce(n−1), no more than most of them at the same
// time and at least one, and consume with each result, in order and one at a time. Few
// results wait. It returns the first error of consume, or that of ctx once it
// has ended: nothing more begins then, and nothing is left running.
func InOrder[T any](ctx context.Context, n, most int, produce func(i int) T, consume func(i int, result T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan chan T, max(most, 1)-1) // in order
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		defer close(results)
		for i := range n {
			result := make(chan T, 1)
			select {
			case results <- result:
			case <-ctx.Done():
				return
			}
			if ctx.Err() != nil {
				close(result) // there is none
				return
			}
			running.Add(1)
			go func() {
				defer running.Done()
				result <- produce(i)
			}()
		}
	}()
	defer running.Wait()
	defer cancel()
	i := 0
	for result := range results {
		value, ok := <-result
		if !ok || ctx.Err() != nil {
			break
		}
		if err := consume(i, value); err != nil {
			return err
		}
		i++
	}
	return ctx.Err()
}
