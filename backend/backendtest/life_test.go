package backendtest

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// lively is the CPU, which keeps its promises, with hooks that break some.
type lively struct {
	driver.Device
	info    func(i *driver.Info)
	config  func(c *driver.Config)
	compile func(ctx context.Context) context.Context
	run     func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor) error
	steps   func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor, after func(int, time.Duration) error) error
	read    func(step int, t bcnn.Tensor)
	explain func(c []driver.Choice) []driver.Choice
	close   error
}

func (l *lively) Info() driver.Info {
	i := l.Device.Info()
	if l.info != nil {
		l.info(&i)
	}
	return i
}

func (l *lively) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	if l.config != nil {
		l.config(&c)
	}
	if l.compile != nil {
		ctx = l.compile(ctx)
	}
	e, err := l.Device.Compile(ctx, plan, c)
	if err != nil {
		return nil, err
	}
	return &livelyEngine{e, l}, nil
}

type livelyEngine struct {
	driver.Engine
	hooks *lively
}

func (e *livelyEngine) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	if e.hooks.run != nil {
		return e.hooks.run(e.Engine, ctx, out, in)
	}
	return e.Engine.Run(ctx, out, in)
}

func (e *livelyEngine) RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(int, time.Duration) error) error {
	if e.hooks.steps != nil {
		return e.hooks.steps(e.Engine, ctx, out, in, after)
	}
	return e.Engine.RunSteps(ctx, out, in, after)
}

func (e *livelyEngine) Read(step int, t bcnn.Tensor) error {
	err := e.Engine.Read(step, t)
	if e.hooks.read != nil {
		e.hooks.read(step, t)
	}
	return err
}

func (e *livelyEngine) Explain() []driver.Choice {
	c := e.Engine.Explain()
	if e.hooks.explain != nil {
		c = e.hooks.explain(c)
	}
	return c
}

func (e *livelyEngine) Close() error { return errors.Join(e.Engine.Close(), e.hooks.close) }

// check runs the check of a name on the device, or all of them.
func (l *lively) check(t *testing.T, name string) (err error) {
	l.Device = cpu.Device().Driver()
	found := false
	for _, c := range lifeChecks {
		if name != "" && c.name != name {
			continue
		}
		found = true
		one := &life{ctx: t.Context(), dev: backend.NewDevice(l), opts: backend.Options{Threads: 1}}
		err = errors.Join(err, c.check(one), one.close())
	}
	require.True(t, found, name)
	return err
}

var errClose = errors.New("the device is stuck")

var kept []byte

// TestLifeFindsBrokenDevices: every promise that is broken is found by the check for
// it; what package backend promises in the name of all devices, its tests hold it to.
func TestLifeFindsBrokenDevices(t *testing.T) {
	interrupted := false
	for name, c := range map[string]struct {
		device lively
		want   string // the check that fails; none if it is empty
	}{
		"the honest device": {lively{}, ""},
		"Run allocates": {lively{run: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor) error {
			kept = make([]byte, 100)
			return e.Run(ctx, out, in)
		}}, "no allocation"},
		"Run takes no notice of its context": {lively{run: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor) error {
			return e.Run(context.WithoutCancel(ctx), out, in)
		}}, "run interrupted"},
		"Run is wrong after an interruption": {lively{run: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor) error {
			err := e.Run(ctx, out, in)
			if err == nil && interrupted {
				out[0].F32[0]++
			}
			interrupted = err != nil
			return err
		}}, "run interrupted"},
		"Compile takes no notice of its context": {lively{compile: context.WithoutCancel}, "compile interrupted"},
		"Compile takes no notice of its limit":   {lively{config: func(c *driver.Config) { c.ArenaBytes = 1 << 40 }}, "memory"},
		"a batch of two is wrong": {lively{run: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor) error {
			err := e.Run(ctx, out, in)
			if in[0].N == 2 {
				out[0].F32[7]++
			}
			return err
		}}, "batches"},
		"Run writes behind its output": {lively{run: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor) error {
			*(*float32)(unsafe.Add(unsafe.Pointer(&out[0].F32[0]), 4*len(out[0].F32))) = 1
			return e.Run(ctx, out, in)
		}}, "batches"},
		"the last step is not told of": {lively{steps: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor, after func(int, time.Duration) error) error {
			return e.RunSteps(ctx, out, in, func(step int, took time.Duration) error {
				if step == len(e.Explain())-1 {
					return nil
				}
				return after(step, took)
			})
		}}, "timed and tapped"},
		"steps go on after an error": {lively{steps: func(e driver.Engine, ctx context.Context, out, in []bcnn.Tensor, after func(int, time.Duration) error) error {
			return e.RunSteps(context.WithoutCancel(ctx), out, in, func(step int, took time.Duration) error {
				_ = after(step, took)
				return nil
			})
		}}, "cancelled between steps"},
		"Read is one off":            {lively{read: func(_ int, t bcnn.Tensor) { clear(t.F32) }}, "timed and tapped"},
		"a step without a choice":    {lively{explain: func(c []driver.Choice) []driver.Choice { return c[1:] }}, "what it is"},
		"less than the batch":        {lively{info: func(i *driver.Info) { i.MaxBatch = 2 }}, "what it is"},
		"kernels that are not there": {lively{info: func(i *driver.Info) { i.ISAs = append(i.ISAs, "8080") }}, "options"},
		"Close fails":                {lively{close: errClose}, "close"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want == "", c.device.check(t, c.want) == nil)
		})
	}
}
