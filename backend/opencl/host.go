//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/opencl/internal/hostfloat"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/clock"
)

// Where float32 arithmetic of the device falls short of the numeric contract,
// the steps that need it run on the processor. Convolutions of bits and bytes
// stay on the device where their integer sums are exact as float32, and only the
// scaling of them moves.

// maxExact is the largest integer up to which float32 holds all.
const maxExact = 1 << 24

// hostStep is what the processor does after the device has done its part of a
// step, which may be nothing.
type hostStep struct {
	fetch   []int // tensors to read from the device first
	compute func(context.Context) error
	out     int
	store   bool   // a kernel reads the result
	why     string // the processor does it
}

// divide splits a step between device and host: either op is not nil, or compute,
// or both in this order.
func (e *executable) divide(s plan.Step) (op plan.Op, compute func(), err error) {
	if e.device.floatsLack == "" {
		return s.Op, nil, nil
	}
	in, out := e.plan.Tensors[s.In[0]], e.plan.Tensors[s.Out]
	conv, isConv := s.Op.(*plan.Conv)
	switch {
	case in.DType != bcnn.Float32 && out.DType != bcnn.Float32:
		return s.Op, nil, nil
	case isConv && in.DType != bcnn.Float32:
		largest := largestSum(conv, in)
		if largest > maxExact && (conv.Int8 != nil || conv.Int16 != nil) {
			break // they are rounded
		}
		if largest > maxExact {
			return nil, nil, plan.Unsupported(fmt.Sprintf("sums up to %d, and %s", largest, e.device.floatsLack))
		}
		if a := conv.Activation.Kind; conv.Scale == nil && (a == plan.ActivationNone || a == plan.ActivationReLU) {
			return s.Op, nil, nil
		}
		sums := *conv
		sums.Scale, sums.Shift, sums.Activation = nil, nil, plan.Activation{}
		to := e.copyOf(s.Out)
		scale := &plan.Affine{Scale: conv.Scale, Shift: conv.Shift, Activation: conv.Activation}
		return &sums, func() { hostfloat.Affine(scale, to, to) }, nil
	}
	compute, err = hostfloat.Step(s, e.copyOf)
	return nil, compute, err
}

// largestSum bounds the sums of a convolution of bits or bytes.
func largestSum(conv *plan.Conv, in plan.Tensor) int {
	taps := conv.KH * conv.KW * (in.Shape.C / conv.Groups)
	switch {
	case conv.Int16 != nil:
		return largestOf(conv.Int16, taps)
	case conv.Int8 != nil:
		return largestOf(conv.Int8, taps)
	case in.DType == bcnn.Uint8:
		return taps * 255
	}
	return taps * max(1<<max(conv.InPlanes, 1)-1, conv.PadValue, -conv.PadValue)
}

// largestOf bounds sums of bytes times rows of so many weights.
func largestOf[W int8 | int16](weights []W, taps int) int {
	largest, sum := 0, 0
	for i, w := range weights {
		if i%taps == 0 {
			sum = 0
		}
		sum += max(int(w), -int(w)) * 255
		largest = max(largest, sum)
	}
	return largest
}

// copyOf returns the tensor of the plan in the memory of the host. The batch of
// all copies is set by Run. Where there is no memory for it, e.refused says so.
func (e *executable) copyOf(tensor int) *bcnn.Tensor {
	if e.copies[tensor] == nil {
		t := e.plan.Tensors[tensor]
		if err := e.reserve(int64(e.bytes(tensor, e.config.MaxBatch))); err != nil {
			e.refused = err
			return &bcnn.Tensor{}
		}
		made := bcnn.NewTensor(t.DType, e.config.MaxBatch, t.Shape)
		e.copies[tensor] = &made
	}
	return e.copies[tensor]
}

// connect finds out which results have to move between device and host, once it
// is known where every step runs.
func (e *executable) connect() {
	for _, h := range e.host {
		if h != nil {
			h.fetch, h.store = nil, false
		}
	}
	onHost := make([]*hostStep, len(e.plan.Tensors)) // that has the newest values
	for i, s := range e.plan.Steps {
		h := e.host[i]
		if h == nil {
			continue
		}
		onHost[s.Out] = h
		if e.onDevice[i] {
			h.fetch = []int{s.Out}
			continue
		}
		for _, in := range s.In {
			if onHost[in] == nil {
				h.fetch = append(h.fetch, in)
			}
		}
	}
	for i, s := range e.plan.Steps {
		for _, in := range s.In {
			if onHost[in] != nil && e.onDevice[i] {
				onHost[in].store = true
			}
		}
	}
	for i, t := range e.plan.Outputs {
		if onHost[t] != nil {
			e.outputs[i].result = e.copies[t]
		}
	}
}

// runHost does the host's part of step i for n images.
func (e *executable) runHost(ctx context.Context, i, n int) (time.Duration, error) {
	h := e.host[i]
	start := clock.Now()
	for _, t := range h.fetch {
		if err := e.queue.Read(shim.BufferOf(e.memory.tensors[t]), e.bytes(t, n), data(e.copies[t]), true); err != nil {
			return 0, err
		}
	}
	if err := h.compute(ctx); err != nil {
		return 0, err
	}
	if h.store {
		if err := e.queue.Write(shim.BufferOf(e.memory.tensors[h.out]), e.bytes(h.out, n), data(e.copies[h.out]), true); err != nil {
			return 0, err
		}
	}
	return clock.Since(start), nil
}

// setBatch makes the copies hold n images.
func (e *executable) setBatch(n int) {
	for _, t := range e.copies {
		if t != nil {
			*t = t.Images(0, n)
		}
	}
}

// data is where the values of a tensor start. Packed words have the same bytes
// on the device, since both are little-endian.
func data(t *bcnn.Tensor) unsafe.Pointer {
	switch t.DType {
	case bcnn.Uint8:
		return unsafe.Pointer(unsafe.SliceData(t.U8))
	case bcnn.Bits:
		return unsafe.Pointer(unsafe.SliceData(t.Words))
	}
	return unsafe.Pointer(unsafe.SliceData(t.F32))
}
