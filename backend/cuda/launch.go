//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/kernels"
)

// spec says how a kernel is to be launched.
type spec struct {
	file, kernel string
	g            kernels.Geometry
	args         []any // tensor, scratch, or constants as []int32, []uint32, []float32; nil for none
	grid         [2]int
	images       int // of a block; the third dimension of the grid counts those. 0 means 1
	// If itemsOfBlock is not 0, the first dimension counts blocks of that many items
	// of the whole batch, of which an image has so many, and the third is 1.
	items, itemsOfBlock int
	block               int // threads
	shared              int // dynamic shared memory of a block, in bytes
	blocks              int // if not 0, the whole grid
	cooperative         bool
}

// tensor is an argument: a tensor of the plan.
type tensor int

// scratch is an argument: memory that steps share, one after the other.
type scratch struct {
	which int
	bytes int // of the whole batch
}

const (
	patches = iota
	sums    // also the ranges of minmax
	scratches
)

// candidate is one way to execute a step.
type candidate struct {
	variant string
	name    string // tells it from the others of the step
	specs   []spec
}

// launch is a kernel with its arguments and sizes.
type launch struct {
	shim.Launch
	spec spec
}

// built is a candidate on the device.
type built struct {
	variant  string
	why      string // it was chosen
	bag      *bag
	launches []launch
}

// build uploads the constants of a candidate and prepares its kernels.
func (e *executable) build(c candidate) (_ *built, err error) {
	b := &built{variant: c.variant, bag: &bag{thread: e.thread}}
	defer func() {
		if err != nil {
			_ = b.bag.release()
		}
	}()
	for _, s := range c.specs {
		f, err := e.function(s.file, s.kernel)
		if err != nil {
			return nil, err
		}
		if s.shared > e.device.limits.sharedDefault {
			if err := shim.AllowShared(f, s.shared); err != nil {
				return nil, fmt.Errorf("kernel %s: %w", s.kernel, err)
			}
		}
		var pointers []cu.DevicePtr
		for _, a := range s.args {
			p, err := e.argument(b.bag, a)
			if err != nil {
				return nil, fmt.Errorf("kernel %s: %w", s.kernel, err)
			}
			pointers = append(pointers, p)
		}
		g := s.g // alone: C must not see a struct with pointers of Go
		l, err := shim.NewLaunch(f, unsafe.Pointer(&g), unsafe.Sizeof(g), pointers)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", s.kernel, err)
		}
		b.bag.launch(l)
		s.args = nil // the constants are on the device
		b.launches = append(b.launches, launch{l, s})
	}
	return b, nil
}

// function returns a kernel. Loading its module takes long where it is the first of
// its file, and nothing stops it then.
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
	case tensor:
		return e.memory.tensors[a], nil
	case scratch:
		return e.memory.scratch[a.which], nil
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
func (b *built) enqueue(s cu.Stream, n int) error {
	for _, l := range b.launches {
		(*kernels.Geometry)(l.Geometry()).Images = int32(n)
		grid := [3]int{l.spec.grid[0], l.spec.grid[1], num.CeilDiv(n, max(l.spec.images, 1))}
		if l.spec.itemsOfBlock > 0 {
			grid[0], grid[2] = num.CeilDiv(n*l.spec.items, l.spec.itemsOfBlock), 1
		}
		if l.spec.blocks > 0 {
			grid = [3]int{l.spec.blocks, 1, 1}
		}
		l.SetSizes(grid, [3]int{l.spec.block, 1, 1}, l.spec.shared, l.spec.cooperative)
		if err := l.Enqueue(s); err != nil {
			return fmt.Errorf("kernel %s, grid of %d×%d×%d blocks of %d threads: %w",
				l.spec.kernel, grid[0], grid[1], grid[2], l.spec.block, err)
		}
	}
	return nil
}
