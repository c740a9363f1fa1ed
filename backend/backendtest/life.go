package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// Life tests what does not depend on the arithmetic of a device: Close, also while
// others run, executables that run at the same time, contexts that end, arguments
// that make no sense, and limits of memory.
func Life(t *testing.T, dev backend.Device) {
	t.Run("close", func(t *testing.T) {
		exe, out, in := compileNet(t, dev, 3, backend.Options{})
		for range 2 {
			if err := exe.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := exe.Run(context.Background(), out, in); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("Run after Close: %v", err)
		}
	})
	t.Run("close during runs", func(t *testing.T) { closeDuringRuns(t, dev) })
	t.Run("at the same time", func(t *testing.T) { runTogether(t, dev) })
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		steps := 0
		exe, out, in := compileNet(t, dev, 3, backend.Options{Tap: func(int, string, bcnn.Tensor) {
			if steps++; steps == 2 {
				cancel()
			}
		}})
		if err := exe.Run(ctx, out, in); !errors.Is(err, context.Canceled) || steps != 2 {
			t.Errorf("%v after %d steps", err, steps)
		}
		if err := exe.Run(context.Background(), out, in); err != nil {
			t.Error(err)
		}
	})
	t.Run("compile interrupted", func(t *testing.T) { InterruptCompile(t, dev, VehicleNet(3, 16), backend.Options{}) })
	t.Run("run interrupted", func(t *testing.T) { interruptRun(t, dev) })
	t.Run("arguments", func(t *testing.T) { arguments(t, dev) })
	t.Run("memory", func(t *testing.T) { memoryLimit(t, dev) })
}

// countdown is a context that ends when it has been looked at so many times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func endAfter(looks int64) *countdown {
	c := &countdown{Context: context.Background()}
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
func InterruptCompile(t *testing.T, dev backend.Device, net *bcnn.Network, opts backend.Options) {
	t.Helper()
	plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for looks := int64(0); ; looks++ {
		exe, err := dev.Compile(endAfter(looks), plan, opts)
		if err == nil {
			if looks <= int64(len(plan.Steps)) {
				t.Errorf("Compile has looked at the context %d times for %d steps", looks, len(plan.Steps))
			}
			if err := exe.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		var named *backend.Error
		if !errors.Is(err, context.Canceled) || !errors.As(err, &named) {
			t.Fatalf("interrupted after %d looks: %v", looks, err)
		}
	}
}

// interruptRun does the same with Run. It must stay usable, with the right result.
func interruptRun(t *testing.T, dev backend.Device) {
	exe, out, in := compileNet(t, dev, 3, backend.Options{MaxBatch: 2})
	if err := exe.Run(context.Background(), out, in); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(out.F32)
	cut := 0
	for looks := range int64(50) {
		switch err := exe.Run(endAfter(looks), out, in); {
		case err == nil:
		case errors.Is(err, context.Canceled):
			cut++
		default:
			t.Fatalf("interrupted after %d looks: %v", looks, err)
		}
		if err := exe.Run(context.Background(), out, in); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out.F32, want) {
			t.Fatalf("after an interruption: got %v, want %v", out.F32, want)
		}
	}
	if cut == 0 {
		t.Error("Run does not look at its context")
	}
}

// arguments tests those that a program gets wrong.
func arguments(t *testing.T, dev backend.Device) {
	exe, out, in := compileNet(t, dev, 3, backend.Options{})
	plan, err := bcnn.Lower(t.Context(), VehicleNet(3, 16), bcnn.LowerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var none context.Context
	refused := func(what string, err error) {
		t.Helper()
		if named := (*backend.Error)(nil); !errors.As(err, &named) {
			t.Errorf("%s: %v", what, err)
		}
	}
	compile := func(what string, ctx context.Context, p *bcnn.Plan, opts backend.Options) {
		t.Helper()
		made, err := dev.Compile(ctx, p, opts)
		if err == nil {
			made.Close()
		}
		refused(what, err)
	}
	compile("no context", none, plan, backend.Options{})
	compile("no plan", t.Context(), nil, backend.Options{})
	compile("an empty plan", t.Context(), &bcnn.Plan{}, backend.Options{})
	compile("a huge batch", t.Context(), plan, backend.Options{MaxBatch: math.MaxInt})
	compile("a negative batch", t.Context(), plan, backend.Options{MaxBatch: -1})
	compile("a negative limit", t.Context(), plan, backend.Options{Limits: bcnn.Limits{ArenaBytes: -1}})
	refused("Run without a context", exe.Run(none, out, in))
	refused("Run without tensors", exe.Run(t.Context(), bcnn.Tensor{}, bcnn.Tensor{}))
	in.U8 = nil
	refused("Run without values", exe.Run(t.Context(), out, in))
}

// memoryLimit finds the memory that an executable needs, by what the refusals of less
// say, and makes sure that it grows with the batch.
func memoryLimit(t *testing.T, dev backend.Device) {
	plan, err := bcnn.Lower(t.Context(), VehicleNet(3, 16), bcnn.LowerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	need := func(batch int) int64 {
		limit := int64(1)
		for {
			opts := backend.Options{MaxBatch: batch, Limits: bcnn.Limits{ArenaBytes: limit}}
			exe, err := dev.Compile(t.Context(), plan, opts)
			if err == nil {
				exe.Close()
				return limit
			}
			if !errors.Is(err, backend.ErrTooLarge) {
				t.Fatal(err)
			}
			message := err.Error()
			var bytes, had int64
			if _, err := fmt.Sscanf(message[strings.Index(message, "need at least "):], "need at least %d bytes of memory, and the limit is %d", &bytes, &had); err != nil {
				t.Fatalf("%q: %v", message, err)
			}
			if had != limit || bytes <= limit {
				t.Fatalf("with a limit of %d: %q", limit, message)
			}
			limit = bytes
		}
	}
	one, four := need(1), need(4)
	image := plan.Tensors[1].Shape.Bytes(plan.Tensors[1].DType)
	if one < image || four < one+3*image {
		t.Errorf("%d bytes for an image and %d for four, of which the first tensor takes %d each", one, four, image)
	}
}

// compileNet compiles a small network and returns tensors for it.
func compileNet(t *testing.T, dev backend.Device, seed uint64, opts backend.Options) (exe backend.Executable, out, in bcnn.Tensor) {
	t.Helper()
	plan, err := bcnn.Lower(t.Context(), VehicleNet(seed, 16), bcnn.LowerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if exe, err = dev.Compile(t.Context(), plan, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exe.Close() })
	n := max(opts.MaxBatch, 1)
	return exe, bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape()), RandomImages(seed, n, plan.Input)
}

func closeDuringRuns(t *testing.T, dev backend.Device) {
	for range 10 {
		exe, out, in := compileNet(t, dev, 3, backend.Options{})
		var group sync.WaitGroup
		group.Add(2)
		go func() {
			defer group.Done()
			time.Sleep(5 * time.Millisecond)
			if err := exe.Close(); err != nil {
				t.Error(err)
			}
		}()
		go func() {
			defer group.Done()
			for {
				if err := exe.Run(context.Background(), out, in); err != nil {
					if !errors.Is(err, backend.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		}()
		group.Wait()
	}
}

func runTogether(t *testing.T, dev backend.Device) {
	var group sync.WaitGroup
	for seed := range uint64(4) {
		exe, out, in := compileNet(t, dev, seed, backend.Options{MaxBatch: 2})
		if err := exe.Run(context.Background(), out, in); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(out.F32)
		group.Add(1)
		go func() {
			defer group.Done()
			for range 20 {
				clear(out.F32)
				if err := exe.Run(context.Background(), out, in); err != nil {
					t.Error(err)
				}
				if !slices.Equal(out.F32, want) {
					t.Errorf("got %v, want %v", out.F32, want)
				}
			}
		}()
	}
	group.Wait()
}
