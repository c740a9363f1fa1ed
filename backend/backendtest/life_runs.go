package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

func (l *life) cancelledBefore() error {
	ctx, cancel := context.WithCancel(l.ctx)
	cancel()
	plan, err := l.lower(lifeNet(3))
	if err != nil {
		return err
	}
	if _, err := l.dev.Compile(ctx, plan, l.opts); !errors.Is(err, context.Canceled) || !named(err) {
		return fmt.Errorf("Compile with a cancelled context returned %v", err)
	}
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	if err := r.run(ctx); !errors.Is(err, context.Canceled) || !named(err) {
		return fmt.Errorf("Run with a cancelled context returned %v", err)
	}
	return r.again(l.ctx, want, "after a cancelled one")
}

func (l *life) cancelledBetween() error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	steps := 0
	r, err := l.compile(lifeNet(3), func(o *backend.Options) {
		o.Tap = func(int, string, bcnn.Tensor) {
			if steps++; steps == 2 {
				cancel()
			}
		}
	})
	if err != nil {
		return err
	}
	if err := r.run(ctx); !errors.Is(err, context.Canceled) || steps != 2 {
		return fmt.Errorf("cancelled in the second step, Run went on to step %d and returned %v", steps, err)
	}
	return r.run(l.ctx)
}

// countdown is a context that ends when it has been looked at so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func endAfter(ctx context.Context, looks int64) *countdown {
	c := &countdown{Context: context.WithoutCancel(ctx)}
	c.left.Store(looks)
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	return context.Canceled
}

// InterruptCompile compiles a network with contexts that end at every point at which
// Compile looks at them, until one does not end. Callers make sure that nothing is
// left behind.
func InterruptCompile(t *testing.T, dev *backend.Device, net *bcnn.Network, opts backend.Options) {
	t.Helper()
	if err := interruptCompile(t.Context(), dev, net, opts); err != nil {
		t.Error(err)
	}
}

func interruptCompile(ctx context.Context, dev *backend.Device, net *bcnn.Network, opts backend.Options) error {
	plan, err := lower.Network(ctx, net, lower.Options{})
	if err != nil {
		return err
	}
	for looks := int64(0); ; looks++ {
		exe, err := dev.Compile(endAfter(ctx, looks), plan, opts)
		if err == nil {
			if looks <= int64(len(plan.Steps)) {
				err = fmt.Errorf("Compile has looked at the context %d times for %d steps", looks, len(plan.Steps))
			}
			return errors.Join(err, exe.Close())
		}
		if !errors.Is(err, context.Canceled) || !named(err) {
			return fmt.Errorf("interrupted after %d looks: %w", looks, err)
		}
	}
}

// interrupted ends Run where it looks at its context. It stays usable.
func (l *life) interrupted() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	want, err := r.fresh(l.ctx)
	if err != nil {
		return err
	}
	for looks := range int64(50) {
		err := r.run(endAfter(l.ctx, looks))
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d looks: %w", looks, err)
		}
		// Package backend looks once, before the engine does.
		if err == nil && looks < 2 {
			return fmt.Errorf("Run has looked at its context %d times only", looks)
		}
		if err := r.again(l.ctx, want, "after an interruption"); err != nil {
			return err
		}
	}
	return nil
}

// goAll calls f in several goroutines and joins their errors.
func goAll(n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			errs[i] = f(i)
		}()
	}
	group.Wait()
	return errors.Join(errs...)
}

// runConcurrently runs one executable from several goroutines, each with images and
// a batch of its own.
func (l *life) runConcurrently() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	const callers, rounds = 4, 10
	ins, wants := make([]bcnn.Tensor, callers), make([]bcnn.Tensor, callers)
	for i := range callers {
		n := 1 + i%lifeBatch
		ins[i], wants[i] = RandomImages(uint64(i), n, r.plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, n, r.plan.OutputShape())
		if err := r.Run(l.ctx, wants[i:][:1], ins[i:][:1]); err != nil {
			return err
		}
	}
	return goAll(callers, func(i int) error {
		out := bcnn.NewTensor(bcnn.Float32, ins[i].N, r.plan.OutputShape())
		for range rounds {
			clear(out.F32)
			if err := r.Run(l.ctx, []bcnn.Tensor{out}, ins[i:][:1]); err != nil {
				return err
			}
			if err := compare.Tensors(wants[i], out); err != nil {
				return fmt.Errorf("caller %d: %w", i, err)
			}
		}
		return nil
	})
}

// runTogether runs several executables of the device at the same time.
func (l *life) runTogether() error {
	const executables, rounds = 4, 10
	all, wants := make([]*ready, executables), make([]bcnn.Tensor, executables)
	for i := range all {
		var err error
		if all[i], err = l.compile(lifeNet(uint64(i)), nil); err != nil {
			return err
		}
		if wants[i], err = all[i].fresh(l.ctx); err != nil {
			return err
		}
	}
	return goAll(executables, func(i int) error {
		for range rounds {
			if err := all[i].again(l.ctx, wants[i], "beside others"); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *life) closes() error {
	r, err := l.compile(lifeNet(3), nil)
	if err != nil {
		return err
	}
	if err := r.run(l.ctx); err != nil {
		return err
	}
	for range 2 {
		if err := r.Close(); err != nil {
			return err
		}
		if err := r.run(l.ctx); !errors.Is(err, backend.ErrClosed) || !named(err) {
			return fmt.Errorf("Run after Close returned %v", err)
		}
	}
	if len(r.Inputs()) != 1 || len(r.Outputs()) != 1 || len(r.Explain()) != len(r.plan.Steps) {
		return errors.New("a closed executable does not know what it was")
	}
	return nil
}

func (l *life) closeWaits() error {
	started, release := make(chan struct{}), make(chan struct{})
	first := true
	r, err := l.compile(lifeNet(3), func(o *backend.Options) {
		o.Tap = func(int, string, bcnn.Tensor) {
			if first {
				first = false
				close(started)
				<-release
			}
		}
	})
	if err != nil {
		return err
	}
	ran, closed := make(chan error, 1), make(chan error, 1)
	go func() { ran <- r.run(l.ctx) }()
	<-started
	go func() { closed <- r.Close() }()
	select {
	case <-closed:
		err = errors.New("Close returned while a step was running")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if err != nil {
		return err
	}
	return errors.Join(<-ran, <-closed)
}

func (l *life) closeDuringRuns() error {
	for range 10 {
		r, err := l.compile(lifeNet(3), nil)
		if err != nil {
			return err
		}
		err = goAll(3, func(i int) error {
			if i > 0 {
				time.Sleep(5 * time.Millisecond)
				return r.Close()
			}
			for {
				if err := r.run(l.ctx); errors.Is(err, backend.ErrClosed) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
