//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/kernels"
)

// launch is a kernel with its arguments and sizes.
type launch struct {
	shim.Launch
	spec  candidates.Spec
	waits bool // for the kernel ahead
}

// built is a candidate on the device.
type built struct {
	variant  string
	name     string // among those of its variant
	why      string // it was chosen
	bag      *bag
	launches []launch
}

// build uploads the constants of a candidate and prepares its kernels.
func (e *executable) build(c candidates.Candidate) (_ *built, err error) {
	b := &built{variant: c.Variant, name: c.Name, bag: &bag{thread: e.thread}}
	defer func() {
		if err != nil {
			_ = b.bag.release()
		}
	}()
	for _, s := range c.Specs {
		f, err := e.function(s.File, s.Name)
		if err != nil {
			return nil, err
		}
		if s.Shared > e.device.limits.SharedDefault {
			if err := e.thread.allowShared(f, s.Name, s.Shared); err != nil {
				return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
			}
		}
		var pointers []cu.DevicePtr
		for _, a := range s.Args {
			p, err := e.argument(b.bag, a)
			if err != nil {
				return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
			}
			pointers = append(pointers, p)
		}
		g := s.G.Geometry // alone: C must not see a struct with pointers of Go
		l, err := shim.NewLaunch(f, unsafe.Pointer(&g), unsafe.Sizeof(g), pointers)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
		}
		b.bag.launch(l)
		s.Args = nil // the constants are on the device
		b.launches = append(b.launches, launch{l, s, e.thread.waits[s.Name]})
	}
	return b, nil
}

// function returns a kernel. The first time, the driver may compile it, which takes long,
// and nothing stops it then.
func (e *executable) function(file, kernel string) (cu.Function, error) {
	if err := e.ctx.Err(); err != nil {
		return cu.Function{}, err
	}
	return e.thread.function(file, kernel, e.device.arch)
}

func (e *executable) argument(b *bag, a any) (cu.DevicePtr, error) {
	switch a := a.(type) {
	case nil:
		return 0, nil
	case gpu.Tensor:
		return e.memory.tensors[a], nil
	case gpu.Scratch:
		return e.memory.scratch[a.Which], nil
	case []int32:
		return upload(b, a)
	case []uint32:
		return upload(b, a)
	case []float32:
		return upload(b, a)
	}
	return 0, fmt.Errorf("argument of type %T", a)
}

// enqueue launches all kernels for n images.
func (b *built) enqueue(s cu.Stream, n int) error { return b.enqueueAfter(s, n, false, false) }

// enqueueAfter is enqueue where the device may begin kernels before the one ahead has
// ended, if early is set; behind says that what is ahead of the first is a kernel.
func (b *built) enqueueAfter(s cu.Stream, n int, early, behind bool) error {
	for i, l := range b.launches {
		(*kernels.Geometry)(l.Geometry()).Images = int32(n)
		grid := [3]int{l.spec.Grid[0], l.spec.Grid[1], num.CeilDiv(n, max(l.spec.Images, 1))}
		if l.spec.ItemsOfBlock > 0 {
			grid[0], grid[2] = num.CeilDiv(n*l.spec.Items, l.spec.ItemsOfBlock), max(l.spec.Parts, 1)
		}
		if l.spec.Blocks > 0 {
			grid = [3]int{l.spec.Blocks, 1, 1}
		}
		l.SetSizes(grid, [3]int{l.spec.Block, 1, 1}, l.spec.Shared, l.spec.Cooperative)
		l.SetDependent(early && l.waits && (behind || i > 0))
		if err := l.Enqueue(s); err != nil {
			return fmt.Errorf("kernel %s, grid of %d×%d×%d blocks of %d threads: %w",
				l.spec.Name, grid[0], grid[1], grid[2], l.spec.Block, err)
		}
	}
	return nil
}
