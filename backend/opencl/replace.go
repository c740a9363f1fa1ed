//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"fmt"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/hostfloat"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// replace enqueues step i in another way, since the driver has refused to launch a kernel of it:
// with other sizes of work-groups, with other kernels, or on the processor. The step keeps it.
// What the step reads is as it was: its kernels write it last, if at all. Where there is no other
// way the error is the one that it was called for.
func (e *executable) replace(ctx context.Context, i, n int, timed bool, cause error) error {
	d := e.device
	d.refuse("a launch", cause)
	if e.bits != nil && i < 2 {
		if e.part(ctx) != nil || i == 1 && e.steps[0].enqueueAnyhow(d, e.queue, n, false) != nil {
			return cause
		}
	}
	if err := e.steps[i].enqueueAnyhow(d, e.queue, n, timed); !refused(err) {
		return err
	}
	if err := e.queue.Finish(); err != nil {
		return cause
	}
	all, err := e.candidates(i)
	if e.config.Kernels != "" && e.config.Kernels != gpu.Direct && err == nil {
		var direct []candidates.Candidate
		e.config.Kernels = gpu.Direct // which needs least
		direct, err = e.candidates(i)
		all = append(all, direct...)
	}
	if err != nil {
		return cause
	}
	for _, c := range all {
		b, err := d.buildStep(ctx, c, false, &e.memory)
		if err == nil {
			if err = b.enqueueAnyhow(d, e.queue, n, timed); err != nil {
				b.dropEvents()
				b.release(d)
			}
		}
		if err == nil {
			e.exchange(i, b)
			return nil
		}
		if !dropped(err) {
			return err
		}
	}
	if err := e.moveToHost(i, cause); err != nil {
		return cause
	}
	e.exchange(i, &built{bag: &bag{context: d.context}})
	e.setBatch(n)
	return nil
}

// runBits makes the output of the first step, which is joined with the second, in one way or another.
func (e *executable) runBits(n int) error {
	err := e.bits.enqueue(e.queue, n, false)
	if refused(err) {
		err = e.replace(context.Background(), 0, n, false, err)
	}
	if err == nil && e.host[0] != nil {
		_, err = e.runHost(context.Background(), 0, n)
	}
	return err
}

// part gives the first two steps, which were joined, kernels of their own.
func (e *executable) part(ctx context.Context) error {
	e.config.Kernels = gpu.Direct
	all, err := e.candidates(1)
	if err != nil {
		return err
	}
	b, err := e.device.buildStep(ctx, all[0], false, &e.memory)
	if err != nil {
		return err
	}
	e.exchange(0, e.bits)
	e.bits = nil
	e.exchange(1, b)
	return nil
}

// exchange puts something else in the place of step i.
func (e *executable) exchange(i int, b *built) {
	e.steps[i].dropEvents()
	e.steps[i].release(e.device)
	e.steps[i] = b
	e.connect()
}

// enqueueAnyhow is enqueue with other sizes of work-groups where the driver refuses those that were
// chosen.
func (b *built) enqueueAnyhow(d *device, q shim.Queue, n int, timed bool) error {
	b.dropEvents()
	for _, l := range b.launches {
		err := l.enqueue(q, n, timed)
		for _, size := range l.groups() {
			if !refused(err) {
				break
			}
			l.dropEvents()
			l.setLocal(size)
			err = l.enqueue(q, n, timed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveToHost makes the processor execute step i, all kernels of which were refused: plainly, as
// package ref does.
func (e *executable) moveToHost(i int, why error) error {
	s := e.plan.Steps[i]
	out, reads := e.copyOf(s.Out), make([]*bcnn.Tensor, len(s.In))
	for k, t := range s.In {
		reads[k] = e.copyOf(t)
	}
	h := &hostStep{out: s.Out, why: fmt.Sprintf("the driver refuses every kernel: %v", why)}
	if e.plan.Tensors[s.In[0]].DType == bcnn.Float32 {
		if compute, err := hostfloat.Step(s, e.copyOf); err == nil {
			h.compute = always(compute)
		}
	}
	if h.compute == nil {
		values := e.plan.Tensors[s.Out].Shape.Values()
		for _, t := range s.In {
			values += e.plan.Tensors[t].Shape.Values()
		}
		const unpacked = 8 // bytes of a value, and of the number that it becomes
		if err := e.reserve(unpacked * int64(values)); err != nil {
			return err
		}
		in := make([]bcnn.Tensor, len(reads))
		h.compute = func(ctx context.Context) error {
			for image := range out.N {
				for k, t := range reads {
					in[k] = t.Images(image, 1)
				}
				made, err := ref.Step(ctx, e.plan, i, in)
				if err != nil {
					return err
				}
				to := out.Images(image, 1)
				copy(to.U8, made.U8)
				copy(to.Words, made.Words)
				copy(to.F32, made.F32)
			}
			return nil
		}
	}
	if e.refused != nil {
		return e.refused
	}
	e.device.refuse(fmt.Sprintf("step %s, which the processor executes", s.Name), why)
	e.host[i], e.onDevice[i] = h, false
	return nil
}

// always is a part of a step that ends well, and soon.
func always(compute func()) func(context.Context) error {
	return func(context.Context) error {
		compute()
		return nil
	}
}

// groups are the sizes of work-groups that a kernel may have, those that measuring tries first.
func (l *launch) groups() []int {
	if l.local > 0 {
		return []int{l.local}
	}
	var sizes, small []int
	for size := 1; size <= min(largestGroup, l.largest); size *= 2 {
		if size >= smallestGroup {
			sizes = append(sizes, size)
		} else {
			small = append([]int{size}, small...)
		}
	}
	return append(sizes, small...)
}
