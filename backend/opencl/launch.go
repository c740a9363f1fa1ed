//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"context"
	"fmt"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

// launch is a kernel with its arguments and sizes.
type launch struct {
	kernel  shim.Kernel
	object  *cl.Kernel // of kernel
	items   int
	local   int // 0 where any size will do
	largest int // work-group
	sizes   shim.Sizes
	event   shim.Event
	name    string
}

// defaultGroup is the size of a work-group where it has not been tuned.
const defaultGroup = 64

// setLocal sets the size of the work-groups.
func (l *launch) setLocal(local int) { l.sizes = shim.MakeSizes(l.items, local, 1) }

// built is a step in one variant.
type built struct {
	variant  string
	why      string // it was chosen
	bag      *bag
	programs []*program
	launches []*launch
}

func (b *built) release(d *device) {
	b.bag.release()
	for _, p := range b.programs {
		d.giveBack(p)
	}
	b.programs = nil
}

// buildStep makes the kernels of a step. What it has made when it fails is released
// with b.
func (d *device) buildStep(ctx context.Context, b *built, specs []spec, specialised bool, memory [scratches]*cl.MemObject) error {
	for _, s := range specs {
		p, err := d.program(ctx, s.file, s.form.options()+s.g.options(specialised))
		if err != nil {
			return err
		}
		b.programs = append(b.programs, p)
		k, err := b.bag.kernel(p, s.kernel)
		if err != nil {
			return err
		}
		table, err := upload(b.bag, s.g.table())
		if err != nil {
			return err
		}
		args := make([]any, 0, len(s.args)+1)
		for _, a := range s.args {
			if shared, ok := a.(scratch); ok {
				a = memory[shared.which]
			}
			args = append(args, a)
		}
		if err := setArgs(k, append(args, table)); err != nil {
			return fmt.Errorf("kernel %s: %w", s.kernel, err)
		}
		largest, err := k.WorkGroupSize(d.id)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", s.kernel, err)
		}
		largest = min(largest, d.limits.group)
		l := &launch{kernel: shim.KernelOf(k), object: k, items: s.items, local: s.local, largest: largest, name: s.kernel}
		if s.local > largest {
			return fmt.Errorf("%w: kernel %s needs work-groups of %d, and %d is the largest", errGroup, s.kernel, s.local, largest)
		}
		if l.setLocal(min(defaultGroup, largest)); s.local > 0 {
			l.setLocal(s.local)
		}
		b.launches = append(b.launches, l)
	}
	return nil
}

// enqueue launches all kernels of the step for n images.
func (b *built) enqueue(q shim.Queue, n int, timed bool) error {
	for _, l := range b.launches {
		l.sizes.SetImages(n)
		var event *shim.Event
		if timed {
			event = &l.event
		}
		if err := q.Launch(l.kernel, &l.sizes, event); err != nil {
			return fmt.Errorf("kernel %s, work-groups of %d: %w", l.name, l.sizes.Local(), err)
		}
	}
	return nil
}

// nanoseconds is the time that the finished kernels took, and frees the events.
func (b *built) nanoseconds() (int64, error) {
	var total int64
	var first error
	for _, l := range b.launches {
		t, err := l.event.Nanoseconds()
		l.event.Release()
		if err != nil && first == nil {
			first = fmt.Errorf("kernel %s: %w", l.name, err)
		}
		total += t
	}
	return total, first
}

// dropEvents frees events after a failure.
func (b *built) dropEvents() {
	for _, l := range b.launches {
		l.event.Release()
	}
}
