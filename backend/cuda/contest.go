//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
)

// comparedBytes is how much of a step's tensors candidates are compared on, at the most, if
// that is more than one image.
const comparedBytes = 16 << 20

// trial is what the candidates of a step are compared on: values of its inputs that they may
// meet, and its output.
type trial struct {
	step, images int
	inputs       []bcnn.Tensor
	output       bcnn.Tensor
}

// newTrial makes the inputs of a step: random bits, and for whatever else not every value may
// occur what the steps before make of random images.
func (e *executable) newTrial(step int) (*trial, error) {
	s := e.plan.Steps[step]
	each := e.bytes(s.Out, 1)
	for _, t := range s.In {
		each += e.bytes(t, 1)
	}
	t := &trial{step: step, images: max(1, min(e.config.MaxBatch, comparedBytes/max(each, 1)))}
	r := rand.New(rand.NewPCG(uint64(step), 1))
	if err := e.computeTo(step); err != nil {
		return nil, err
	}
	for _, i := range s.In {
		x := bcnn.NewTensor(e.plan.Tensors[i].DType, t.images, e.plan.Tensors[i].Shape)
		if x.DType == bcnn.Bits {
			gpu.Fill(x, r)
		} else if err := shim.CopyOut(data(&x), e.memory.tensors[i], e.bytes(i, t.images), e.stream); err != nil {
			return nil, err
		}
		t.inputs = append(t.inputs, x)
	}
	t.output = bcnn.NewTensor(e.plan.Tensors[s.Out].DType, t.images, e.plan.Tensors[s.Out].Shape)
	return t, e.synchronize()
}

// computeTo computes the steps before one on random images, those that have not been.
func (e *executable) computeTo(step int) error {
	if e.computed == 0 {
		e.randomImages()
		e.images = e.config.MaxBatch
		if err := e.enqueueCopyIn(); err != nil {
			return err
		}
	}
	for ; e.computed < step; e.computed++ {
		if err := e.steps[e.computed].enqueue(e.stream, e.config.MaxBatch); err != nil {
			return fmt.Errorf("step %d (%s): %w", e.computed, e.plan.Steps[e.computed].Name, err)
		}
	}
	return e.synchronize()
}

// randomImages fills the page-locked memory of the inputs.
func (e *executable) randomImages() {
	r := rand.New(rand.NewPCG(1, 2))
	for _, to := range e.inputs {
		t := e.plan.Tensors[to.tensor]
		x := bcnn.NewTensor(t.DType, e.config.MaxBatch, t.Shape)
		gpu.Fill(x, r)
		bytes := e.bytes(to.tensor, e.config.MaxBatch)
		copy(unsafe.Slice((*byte)(to.staging), bytes), unsafe.Slice((*byte)(data(&x)), bytes))
	}
}

// restore puts the inputs of a trial onto the device, which may lie where the output does.
func (e *executable) restore(t *trial) error {
	for k, i := range e.plan.Steps[t.step].In {
		if err := shim.CopyIn(e.memory.tensors[i], data(&t.inputs[k]), e.bytes(i, t.images), e.stream); err != nil {
			return err
		}
	}
	return e.synchronize()
}

// output returns the hash of what a candidate writes.
func (e *executable) output(t *trial, b *built) (uint64, error) {
	to, bytes := e.plan.Steps[t.step].Out, e.bytes(e.plan.Steps[t.step].Out, t.images)
	memory := unsafe.Slice((*byte)(data(&t.output)), bytes)
	for i := range memory { // so that what a candidate leaves out is seen
		memory[i] = 0xa5
	}
	if err := shim.CopyIn(e.memory.tensors[to], data(&t.output), bytes, e.stream); err != nil {
		return 0, err
	}
	if err := e.restore(t); err != nil {
		return 0, err
	}
	if err := b.enqueue(e.stream, t.images); err != nil {
		return 0, err
	}
	if err := shim.CopyOut(data(&t.output), e.memory.tensors[to], bytes, e.stream); err != nil {
		return 0, err
	}
	err := e.synchronize()
	return gpu.Hash(memory), err
}

// wholeOutput returns the hash of the outputs of a whole run on random images.
func (e *executable) wholeOutput(launch func() error) (uint64, error) {
	e.randomImages()
	var all [][]byte
	for _, from := range e.outputs {
		memory := unsafe.Slice((*byte)(from.staging), e.bytes(from.tensor, e.images))
		for i := range memory {
			memory[i] = 0xa5
		}
		all = append(all, memory)
	}
	if err := launch(); err != nil {
		return 0, err
	}
	err := e.synchronize()
	return gpu.Hash(slices.Concat(all...)), err
}
