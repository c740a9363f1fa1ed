package backendtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
)

// Life tests what does not depend on the arithmetic of a device: Close, also while
// others run, executables that run at the same time, and contexts that end.
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
