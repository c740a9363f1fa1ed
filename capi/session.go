//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
#include "order.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/bitcnn/bitcnn"
)

// A session is a Session with what a run needs over and over.
type session struct {
	*bitcnn.Session
	inputs, outputs []bitcnn.IO // with the names of ports
	calls           sync.Pool   // *call
}

// call are the tensors of a run.
type call struct {
	in, out []bitcnn.Tensor
	// Memory for those that the caller has as NCHW; nil until there is one.
	inOrder, outOrder []bitcnn.Tensor
}

var sessions = table[session]{kind: 2, what: "session"}

//export bitcnnGoOpen
func bitcnnGoOpen(model C.bitcnn_model, o *C.bitcnn_options, number *C.bitcnn_session, message **C.char) C.int {
	return do(message, func() error {
		m, err := models.get(uint64(model))
		if err != nil {
			return err
		}
		if o.max_batch > math.MaxInt32 {
			return invalid("batches of up to %d images are too large", int64(o.max_batch))
		}
		opened, err := bitcnn.Open(ctx, m, bitcnn.Options{
			Device: text(o.device), ISA: text(o.isa), Kernels: text(o.kernels),
			MaxBatch: int(o.max_batch), Parallel: int(o.parallel), Threads: int(o.threads),
			BatchDelay: time.Duration(o.batch_delay_ns), Limits: bitcnn.Limits{ArenaBytes: int64(o.arena_bytes)},
		})
		if err != nil {
			return err
		}
		s := &session{Session: opened, inputs: opened.Inputs(), outputs: opened.Outputs()}
		s.calls.New = func() any {
			return &call{
				make([]bitcnn.Tensor, len(s.inputs)), make([]bitcnn.Tensor, len(s.outputs)),
				make([]bitcnn.Tensor, len(s.inputs)), make([]bitcnn.Tensor, len(s.outputs)),
			}
		}
		added, err := sessions.add(s)
		if err != nil {
			return errors.Join(err, opened.Close())
		}
		*number = C.bitcnn_session(added)
		return nil
	})
}

//export bitcnnGoClose
func bitcnnGoClose(number C.bitcnn_session, message **C.char) C.int {
	return do(message, func() error {
		s, err := sessions.take(uint64(number))
		if err != nil {
			return err
		}
		return s.Close()
	})
}

// with calls f with a session.
func with(number C.bitcnn_session, message **C.char, f func(s *session) error) C.int {
	return do(message, func() error {
		s, err := sessions.get(uint64(number))
		if err != nil {
			return err
		}
		return f(s)
	})
}

//export bitcnnGoInfo
func bitcnnGoInfo(number C.bitcnn_session, info *C.bitcnn_session_info, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		info.inputs, info.outputs = C.size_t(len(s.inputs)), C.size_t(len(s.outputs))
		info.labels, info.steps = C.size_t(len(s.Labels())), C.size_t(len(s.Steps()))
		info.max_batch = C.int64_t(s.MaxBatch())
		info.box_classes = 0
		if d := s.Detection(); d != nil {
			info.box_classes = C.size_t(d.Classes)
		}
		return nil
	})
}

//export bitcnnGoDevice
func bitcnnGoDevice(index C.size_t, device *C.bitcnn_device, message **C.char) C.int {
	return do(message, func() error {
		d, err := at(bitcnn.Devices(), index, "device")
		if err == nil {
			putDevice(device, d)
		}
		return err
	})
}

//export bitcnnGoSessionDevice
func bitcnnGoSessionDevice(number C.bitcnn_session, device *C.bitcnn_device, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		putDevice(device, s.Device())
		return nil
	})
}

func putDevice(to *C.bitcnn_device, d bitcnn.Device) {
	putArray(to.id[:], d.ID)
	putArray(to.name[:], d.Name)
	putArray(to.detail[:], d.Detail)
	to.kind, to.max_threads = C.int32_t(d.Kind), C.int32_t(d.MaxThreads)
	to.max_batch, to.memory = C.int64_t(d.MaxBatch), C.int64_t(d.Memory)
}

func (s *session) io(output C.int, index C.size_t) (bitcnn.IO, error) {
	if output != 0 {
		return at(s.outputs, index, "output")
	}
	return at(s.inputs, index, "input")
}

//export bitcnnGoIO
func bitcnnGoIO(number C.bitcnn_session, output C.int, index C.size_t, to *C.bitcnn_io, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		io, err := s.io(output, index)
		if err != nil {
			return err
		}
		to.dtype, to.layout = C.int32_t(io.DType), C.BITCNN_NHWC
		to.height, to.width, to.channels = C.int32_t(io.Shape.H), C.int32_t(io.Shape.W), C.int32_t(io.Shape.C)
		to.resize, to.bytes = C.int32_t(io.Resize), C.size_t(io.Shape.Bytes(io.DType))
		to.source_layout = C.BITCNN_NHWC
		dims := io.FileDims
		switch {
		case len(dims) > len(to.source_dims): // there is no room to say it
			dims = []int{io.Shape.H, io.Shape.W, io.Shape.C}
		case io.FileLayout == bitcnn.NCHW:
			to.source_layout = C.BITCNN_NCHW
		}
		to.source_rank = C.int32_t(len(dims))
		for i, d := range dims {
			to.source_dims[i] = C.int64_t(d)
		}
		return nil
	})
}

//export bitcnnGoIOName
func bitcnnGoIOName(number C.bitcnn_session, output C.int, index C.size_t, to *C.char, size C.size_t, length *C.size_t, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		io, err := s.io(output, index)
		if err != nil {
			return err
		}
		return put(to, size, length, io.Name)
	})
}

//export bitcnnGoLabel
func bitcnnGoLabel(number C.bitcnn_session, index C.size_t, to *C.char, size C.size_t, length *C.size_t, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		label, err := at(s.Labels(), index, "label")
		if err != nil {
			return err
		}
		return put(to, size, length, label)
	})
}

//export bitcnnGoStep
func bitcnnGoStep(number C.bitcnn_session, index C.size_t, what C.int, to *C.char, size C.size_t, length *C.size_t, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		step, err := at(s.Steps(), index, "step")
		if err != nil {
			return err
		}
		if what < 0 || what > C.BITCNN_STEP_WHY {
			return invalid("invalid step text: %d", int(what))
		}
		// In the order of bitcnn_step_text.
		texts := [...]string{step.Name, step.Kind, step.Kernel, step.Tile, step.Why}
		return put(to, size, length, texts[what])
	})
}

//export bitcnnGoRun
func bitcnnGoRun(number C.bitcnn_session, images C.int64_t, in *C.bitcnn_tensor, ins C.size_t, out *C.bitcnn_tensor, outs C.size_t, message **C.char) C.int {
	return finish(message, run(uint64(number), int64(images), in, ins, out, outs))
}

func run(number uint64, images int64, in *C.bitcnn_tensor, ins C.size_t, out *C.bitcnn_tensor, outs C.size_t) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r}
		}
	}()
	s, err := sessions.get(number)
	if err != nil {
		return err
	}
	if int(ins) != len(s.inputs) || int(outs) != len(s.outputs) {
		return fmt.Errorf("%w: inputs: got %d, want %d; outputs: got %d, want %d",
			bitcnn.ErrShape, uint64(ins), len(s.inputs), uint64(outs), len(s.outputs))
	}
	c := s.calls.Get().(*call)
	err = s.tensors(c.in, c.inOrder, s.inputs, in, images)
	if err == nil {
		err = s.tensors(c.out, c.outOrder, s.outputs, out, images)
	}
	if err == nil {
		err = s.checkDisjoint(in, out)
	}
	if err == nil {
		reorder(s.inputs, in, c.in, images, false)
		err = s.Run(ctx, c.out, c.in)
	}
	if err == nil {
		reorder(s.outputs, out, c.out, images, true)
	}
	clear(c.in)
	clear(c.out)
	s.calls.Put(c)
	return err
}

// checkDisjoint sees that no output shares memory with an input or another output.
func (s *session) checkDisjoint(in, out *C.bitcnn_tensor) error {
	ins, outs := unsafe.Slice(in, len(s.inputs)), unsafe.Slice(out, len(s.outputs))
	overlap := func(a, b *C.bitcnn_tensor) bool {
		x, y := uintptr(a.data), uintptr(b.data)
		return x < y+uintptr(b.bytes) && y < x+uintptr(a.bytes)
	}
	for i := range outs {
		for j := range ins {
			if overlap(&outs[i], &ins[j]) {
				return invalid("the memory of output %s overlaps that of input %s", s.outputs[i].Name, s.inputs[j].Name)
			}
		}
		for j := range i {
			if overlap(&outs[i], &outs[j]) {
				return invalid("the memory of output %s overlaps that of output %s", s.outputs[i].Name, s.outputs[j].Name)
			}
		}
	}
	return nil
}

// isNCHW says whether the caller has a tensor in another order than a run.
func isNCHW(m *C.bitcnn_tensor, shape bitcnn.Shape) bool {
	return m.layout == C.BITCNN_NCHW && shape.C > 1 && shape.Pixels() > 1
}

// reorder copies what the caller has as NCHW to the tensors of a run, or back.
func reorder(list []bitcnn.IO, memory *C.bitcnn_tensor, tensors []bitcnn.Tensor, images int64, back bool) {
	for i := range list {
		m, shape := &unsafe.Slice(memory, len(list))[i], list[i].Shape
		if !isNCHW(m, shape) {
			continue
		}
		pixels, channels := C.size_t(shape.Pixels()), C.size_t(shape.C)
		var data unsafe.Pointer
		var floats C.int
		if t := &tensors[i]; t.DType == bitcnn.Float32 {
			data, floats = unsafe.Pointer(&t.F32[0]), 1
		} else {
			data = unsafe.Pointer(&t.U8[0])
		}
		if back {
			C.bitcnn_reorder(m.data, data, C.int64_t(images), pixels, channels, floats, 1)
		} else {
			C.bitcnn_reorder(data, m.data, C.int64_t(images), pixels, channels, floats, 0)
		}
	}
}

// tensors makes tensors of caller-owned memory, or of a size for it in order, which
// grows to that of the largest batch.
func (s *session) tensors(to, order []bitcnn.Tensor, list []bitcnn.IO, memory *C.bitcnn_tensor, images int64) error {
	if err := s.checkBatch(images); err != nil {
		return err
	}
	for i := range list {
		io, m := &list[i], &unsafe.Slice(memory, len(list))[i]
		if err := checkMemory(io, m, images); err != nil {
			return err
		}
		values := int(images) * io.Shape.Values()
		t := &to[i]
		if isNCHW(m, io.Shape) {
			if order[i].N < int(images) {
				order[i] = bitcnn.NewTensor(io.DType, int(images), io.Shape)
			}
			*t = first(order[i], int(images))
			continue
		}
		*t = bitcnn.Tensor{DType: io.DType, N: int(images), Shape: io.Shape}
		if io.DType == bitcnn.Float32 {
			t.F32 = unsafe.Slice((*float32)(m.data), values)
		} else {
			t.U8 = unsafe.Slice((*uint8)(m.data), values)
		}
	}
	return nil
}

func (s *session) checkBatch(images int64) error {
	if images < 1 {
		return fmt.Errorf("%w: batch size %d, want at least 1", bitcnn.ErrShape, images)
	}
	if images > int64(s.MaxBatch()) {
		return fmt.Errorf("%w: batch of %d images exceeds MaxBatch (%d)", bitcnn.ErrShape, images, s.MaxBatch())
	}
	return nil
}

// checkMemory looks at what the caller says of a tensor, before anything is read.
func checkMemory(io *bitcnn.IO, m *C.bitcnn_tensor, images int64) error {
	if bitcnn.DType(m.dtype) != io.DType || m.dtype != C.int32_t(io.DType) {
		return fmt.Errorf("%w: %s: tensor is %s, want %v", bitcnn.ErrShape, io.Name, dtypeName(m.dtype), io.DType)
	}
	values := uint64(images) * uint64(io.Shape.Values())
	size := uint64(1)
	if io.DType == bitcnn.Float32 {
		size = 4
	}
	switch {
	case m.data == nil:
		return fmt.Errorf("%w: %s: the pointer is NULL", bitcnn.ErrShape, io.Name)
	case m.layout != 0 && m.layout != C.BITCNN_NHWC && m.layout != C.BITCNN_NCHW:
		return invalid("%s: invalid layout: %d", io.Name, int(m.layout))
	case uint64(m.bytes) != values*size:
		return fmt.Errorf("%w: %s: tensor of %d×%v %v has %d bytes, want %d",
			bitcnn.ErrShape, io.Name, images, io.Shape, io.DType, uint64(m.bytes), values*size)
	case uint64(uintptr(m.data))%size != 0:
		return fmt.Errorf("%w: %s: memory at %#x is not aligned to %d bytes", bitcnn.ErrShape, io.Name, uintptr(m.data), size)
	}
	return fits(m.data, uint64(m.bytes))
}

// first are the first images of a tensor.
func first(t bitcnn.Tensor, images int) bitcnn.Tensor {
	t.N = images
	if values := images * t.Shape.Values(); t.DType == bitcnn.Float32 {
		t.F32 = t.F32[:values]
	} else {
		t.U8 = t.U8[:values]
	}
	return t
}

func dtypeName(d C.int32_t) string {
	switch d {
	case C.BITCNN_UINT8, C.BITCNN_FLOAT32:
		return bitcnn.DType(d).String()
	}
	return fmt.Sprintf("of invalid type (%d)", int(d))
}

//export bitcnnGoProfile
func bitcnnGoProfile(number C.bitcnn_session, images C.int64_t, in *C.bitcnn_tensor, ins C.size_t, runs C.int32_t,
	median, shortest *C.int64_t, steps C.size_t, message **C.char) C.int {
	return with(number, message, func(s *session) error {
		if int(ins) != len(s.inputs) {
			return fmt.Errorf("%w: %d inputs, the model has %d", bitcnn.ErrShape, uint64(ins), len(s.inputs))
		}
		if want := len(s.Steps()); uint64(steps) != uint64(want) {
			return invalid("times of %d steps, the network has %d", uint64(steps), want)
		}
		tensors := make([]bitcnn.Tensor, len(s.inputs))
		if err := s.tensors(tensors, make([]bitcnn.Tensor, len(s.inputs)), s.inputs, in, int64(images)); err != nil {
			return err
		}
		reorder(s.inputs, in, tensors, int64(images), false)
		times, err := s.Profile(ctx, int(runs), tensors...)
		if err != nil {
			return err
		}
		for i, t := range times {
			if median != nil {
				unsafe.Slice(median, len(times))[i] = C.int64_t(t.Median)
			}
			if shortest != nil {
				unsafe.Slice(shortest, len(times))[i] = C.int64_t(t.Min)
			}
		}
		return nil
	})
}
