//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"math"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/bcnn"
)

var errLarge = errors.New("too large for the device")

// bytes is the size of tensor i for n images.
func (e *executable) bytes(i, n int) int {
	t := e.plan.Tensors[i]
	return n * int(t.Shape.Bytes(t.DType))
}

// allocate makes the memory of all tensors, in which those whose lifetimes do not
// overlap share, scratch memory and staging memory.
func (e *executable) allocate(all [][]candidate) error {
	plan, n := e.plan, e.opts.MaxBatch
	var total int64
	for _, t := range plan.Tensors {
		size := t.Shape.Bytes(t.DType)
		// Kernels count the bytes of an image in 32 bits.
		if size > math.MaxInt32 || size*int64(n) > e.device.info.Memory {
			return fmt.Errorf("%w: tensor %s of %v, %d images", errLarge, t.Name, t.Shape, n)
		}
		total += size * int64(n)
	}
	e.memory.tensors = make([]cu.DevicePtr, len(plan.Tensors))
	if err := e.placeTensors(); err != nil {
		return err
	}
	var sizes [scratches]int
	for _, candidates := range all {
		for _, c := range candidates {
			for _, s := range c.specs {
				for _, a := range s.args {
					if m, ok := a.(scratch); ok {
						sizes[m.which] = max(sizes[m.which], m.bytes)
					}
				}
			}
		}
	}
	for i, size := range sizes {
		if size == 0 {
			continue
		}
		var err error
		if e.memory.scratch[i], err = e.bag.memory(size); err != nil {
			return err
		}
	}
	var err error
	if e.input, err = e.bag.pinned(e.bytes(0, n)); err != nil {
		return err
	}
	e.output, err = e.bag.pinned(e.bytes(plan.Output, n))
	return err
}

func (e *executable) placeTensors() error {
	plan, n := e.plan, e.opts.MaxBatch
	lifetimes := make([]bcnn.Lifetime, len(plan.Tensors))
	for i := range plan.Tensors {
		lifetimes[i] = bcnn.Lifetime{First: -1, Last: -1, Bytes: int64(e.bytes(i, n))}
	}
	for i, s := range plan.Steps {
		lifetimes[s.Out].First, lifetimes[s.Out].Last = i, max(lifetimes[s.Out].Last, i)
		for _, in := range s.In {
			lifetimes[in].Last = i
		}
	}
	lifetimes[plan.Output].Last = len(plan.Steps)
	if e.device.apart {
		for i, l := range lifetimes {
			var err error
			if e.memory.tensors[i], err = e.bag.memory(int(l.Bytes)); err != nil {
				return err
			}
		}
		return nil
	}
	offsets, total := bcnn.Arena(lifetimes)
	arena, err := e.bag.memory(int(total))
	if err != nil {
		return err
	}
	for i, offset := range offsets {
		e.memory.tensors[i] = arena + cu.DevicePtr(offset)
	}
	return nil
}

// checkSize makes sure that the kernels' 32-bit indices reach.
func checkSize(s bcnn.Step, in, out bcnn.PlanTensor) error {
	pixels, channels := float64(out.Shape.Pixels()), float64(out.Shape.C)
	if pixels*(channels+2*lanes) > math.MaxInt32 { // threads of an image
		return fmt.Errorf("%w: output of %v", errLarge, out.Shape)
	}
	conv, ok := s.Op.(*bcnn.ConvStep)
	if !ok {
		return nil
	}
	outputs := float64(conv.Out + 2*lanes)
	classes := 1.0
	if conv.Border != nil {
		classes = float64(conv.Border.Rows) * float64(conv.Border.Cols)
	}
	if conv.Pool != nil {
		pixels *= float64(conv.Pool.KH) * float64(conv.Pool.KW)
	}
	weights := outputs * float64(conv.KH) * float64(conv.KW) * (float64(in.Shape.C/conv.Groups) + lanes)
	if max(outputs*pixels, outputs*classes, weights) > math.MaxInt32 {
		return fmt.Errorf("%w: %d outputs, window of %d×%d", errLarge, conv.Out, conv.KH, conv.KW)
	}
	return nil
}
