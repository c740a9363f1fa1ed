//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

// launch is a kernel with its arguments and sizes.
type launch struct {
	kernel  shim.Kernel
	object  *cl.Kernel // of kernel
	items   int
	blocks  int // of a third dimension
	local   int // 0 where any size will do
	largest int // work-group
	sizes   shim.Sizes
	events  []shim.Event
	atOnce  int // images of a launch, at most; see device.longest
	name    string
}

// defaultGroup is the size of a work-group where it has not been tuned.
const defaultGroup = 64

// setLocal sets the size of the work-groups.
func (l *launch) setLocal(local int) { l.sizes = shim.MakeSizes(l.items, local, 1, l.blocks) }

// built is a step in one variant.
type built struct {
	variant  string
	why      string // it was chosen
	bag      *bag
	programs []*program
	launches []*launch
	scratch  []scratchUse
}

func (b *built) release(d *device) {
	b.bag.release()
	for _, p := range b.programs {
		d.giveBack(p)
	}
	b.programs = nil
}

// buildStep uploads the constants of a candidate and prepares its kernels. It returns
// nothing if it fails.
func (d *device) buildStep(ctx context.Context, c candidates.Candidate, specialised bool, m *memory) (_ *built, err error) {
	b := &built{variant: c.Variant, bag: &bag{context: d.context}}
	defer func() {
		if err != nil {
			b.release(d)
		}
	}()
	for _, s := range c.Specs {
		p, err := d.program(ctx, s.File, d.form()+s.Options(specialised))
		if err != nil {
			return nil, err
		}
		b.programs = append(b.programs, p)
		k, err := b.bag.kernel(p, s.Name)
		if err != nil {
			return nil, err
		}
		args := make([]any, 0, len(s.Args)+1)
		for i, a := range append(slices.Clip(s.Args), s.G.Values()) {
			if of, ok := a.(gpu.Scratch); ok {
				b.scratch = append(b.scratch, scratchUse{k, i, of})
			}
			if a, err = m.argument(d, b.bag, a); err != nil {
				return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
			}
			args = append(args, a)
		}
		if err := setArgs(k, args); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
		}
		largest, err := k.WorkGroupSize(d.id)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", s.Name, err)
		}
		largest = min(largest, d.limits.Group)
		l := &launch{kernel: shim.KernelOf(k), object: k, items: s.Items, blocks: max(s.Blocks, 1), local: s.Local, largest: largest, atOnce: d.atOnce(d.longest, 1), name: s.Name}
		if s.Local > largest {
			return nil, fmt.Errorf("%w: kernel %s needs work-groups of %d, and %d is the largest", errGroup, s.Name, s.Local, largest)
		}
		if l.setLocal(min(defaultGroup, largest)); s.Local > 0 {
			l.setLocal(s.Local)
		}
		b.launches = append(b.launches, l)
	}
	return b, nil
}

// form is the compiler's option for what programs do in other ways on a GPU.
func (d *device) form() string {
	if d.limits.GPU {
		return d.defines + " -DON_GPU=1 "
	}
	return d.defines + " -DON_GPU=0 "
}

// argument is what setArgs takes for an argument of a candidate.
func (m *memory) argument(d *device, b *bag, a any) (any, error) {
	switch a := a.(type) {
	case gpu.Tensor:
		return m.tensors[a], nil
	case gpu.Scratch:
		return m.scratchOf(d, a)
	case candidates.Local:
		return cl.LocalBuffer(a), nil
	case []int32:
		return upload(b, a)
	case []uint32:
		return upload(b, a)
	case []float32:
		return upload(b, a)
	}
	return nil, fmt.Errorf("argument of type %T", a)
}

// enqueue launches all kernels of the step for n images.
func (b *built) enqueue(q shim.Queue, n int, timed bool) error {
	for _, l := range b.launches {
		if err := l.enqueue(q, n, timed); err != nil {
			return err
		}
	}
	return nil
}

// enqueue launches the kernel for n images, as often as they must be divided.
func (l *launch) enqueue(q shim.Queue, n int, timed bool) error {
	for first := 0; first < n; first += l.atOnce {
		l.sizes.SetImages(first, min(l.atOnce, n-first))
		var event *shim.Event
		if timed {
			l.events = append(l.events, shim.Event{})
			event = &l.events[len(l.events)-1]
		}
		if err := q.Launch(l.kernel, &l.sizes, event); err != nil {
			err = fmt.Errorf("kernel %s, work-groups of %d: %w", l.name, l.sizes.Local(), err)
			if first > 0 { // other kernels would compute images again that lie where their inputs were
				err = errors.New(err.Error())
			}
			return err
		}
	}
	return nil
}

// nanoseconds is the time that the finished launches took, and frees the events.
func (l *launch) nanoseconds() (int64, error) {
	var total int64
	var first error
	for i := range l.events {
		t, err := l.events[i].Nanoseconds()
		if err != nil && first == nil {
			first = fmt.Errorf("kernel %s: %w", l.name, err)
		}
		total += t
	}
	l.dropEvents()
	return total, first
}

func (l *launch) dropEvents() {
	for i := range l.events {
		l.events[i].Release()
	}
	l.events = l.events[:0]
}

// nanoseconds is the time that the finished kernels took, and frees the events.
func (b *built) nanoseconds() (int64, error) {
	var total int64
	var first error
	for _, l := range b.launches {
		t, err := l.nanoseconds()
		if first == nil {
			first = err
		}
		total += t
	}
	return total, first
}

// dropEvents frees events after a failure.
func (b *built) dropEvents() {
	for _, l := range b.launches {
		l.dropEvents()
	}
}

// divided reports whether the launches for n images are divided, or have not been timed.
func (b *built) divided(n int) bool {
	return slices.ContainsFunc(b.launches, func(l *launch) bool { return l.atOnce < n })
}

// price divides the launches by the time that all of them have taken for n images.
func (b *built) price(d *device, took time.Duration, n int) {
	for _, l := range b.launches {
		l.atOnce = d.atOnce(took, n)
	}
}

// longestLaunch is how long a launch of a GPU takes at most, if the images of a batch can be divided: displays
// wait for it, and drivers end it after half a second (panfrost) or two (Windows).
const longestLaunch = 100 * time.Millisecond

// atOnce returns how many images a launch is for at most, after n have taken some time.
func (d *device) atOnce(took time.Duration, n int) int {
	if d.longest == 0 {
		return math.MaxInt32
	}
	return int(min(max(d.longest*time.Duration(n)/max(took, 1), 1), math.MaxInt32))
}
