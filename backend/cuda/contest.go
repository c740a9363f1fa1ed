//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// randomImages fills the page-locked memory of the inputs.
func (e *executable) randomImages() {
	r := rand.New(rand.NewPCG(1, 2))
	for _, to := range e.inputs {
		x := gpu.Random(e.plan.Tensors[to.tensor], e.config.MaxBatch, r)
		bytes := e.bytes(to.tensor, e.config.MaxBatch)
		copy(unsafe.Slice((*byte)(to.staging), bytes), unsafe.Slice((*byte)(data(&x)), bytes))
	}
}

// output returns the hash of what a candidate writes.
func (e *executable) output(t *gpu.Trial, b *built) (uint64, error) {
	to, bytes := e.memory.tensors[t.Step.Out], e.bytes(t.Step.Out, t.Images)
	memory := unsafe.Slice((*byte)(data(&t.Output)), bytes)
	gpu.Clear(memory)
	if err := shim.CopyIn(to, data(&t.Output), bytes, e.stream); err != nil {
		return 0, err
	}
	for k, i := range t.Step.In { // each time, for the output may lie there
		if err := shim.CopyIn(e.memory.tensors[i], data(&t.Inputs[k]), e.bytes(i, t.Images), e.stream); err != nil {
			return 0, err
		}
	}
	if err := b.enqueue(e.stream, t.Images); err != nil {
		return 0, err
	}
	if err := shim.CopyOut(data(&t.Output), to, bytes, e.stream); err != nil {
		return 0, err
	}
	err := e.synchronize()
	return gpu.Hash(memory), err
}

// networkOutput returns the hash of the outputs of a whole run on random images.
func (e *executable) networkOutput(launch func() error) (uint64, error) {
	e.randomImages()
	var all [][]byte
	for _, from := range e.outputs {
		memory := unsafe.Slice((*byte)(from.staging), e.bytes(from.tensor, e.images))
		gpu.Clear(memory)
		all = append(all, memory)
	}
	if err := launch(); err != nil {
		return 0, err
	}
	err := e.synchronize()
	return gpu.Hash(slices.Concat(all...)), err
}
