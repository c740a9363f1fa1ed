//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// bytes is the size of tensor i for n images.
func (e *executable) bytes(i, n int) int {
	return int(e.plan.Tensors[i].Bytes(n))
}

// reserve asks for memory of the device or the host, before it is allocated.
func (e *executable) reserve(bytes int64) error {
	e.reserved += bytes
	return e.config.CheckMemory(e.reserved)
}

// allocate makes the memory of all tensors, in which those whose lifetimes do not
// overlap share, scratch memory and staging memory. all are the kernels that may
// come to execute each step, of which those are dropped whose scratch memory the driver refuses
// where there are others; complete says that none was.
func (e *executable) allocate(all [][]candidates.Candidate, uses []plan.Use) (complete bool, err error) {
	plan, n := e.plan, e.config.MaxBatch
	for _, t := range plan.Tensors {
		// Kernels count the bytes of an image in 32 bits.
		if size := t.Shape.Bytes(t.DType); size > math.MaxInt32 || size*int64(n) > e.device.info.Memory {
			return false, fmt.Errorf("%w: tensor %s of %v, %d images", driver.ErrTooLarge, t.Name, t.Shape, n)
		}
	}
	sizes := scratchOf(all)
	rest := 0 // besides the tensors
	for _, t := range append(e.inputs, e.outputs...) {
		rest += e.bytes(t.tensor, n)
	}
	for _, size := range sizes {
		rest += size
	}
	if err = e.reserve(int64(rest)); err != nil {
		return false, err
	}
	e.memory.tensors = make([]cu.DevicePtr, len(plan.Tensors))
	for _, list := range [][]end{e.inputs, e.outputs} {
		for i := range list {
			bytes := e.bytes(list[i].tensor, n)
			list[i].staging, err = e.bag.pinned(bytes)
			if shim.Refused(err) { // copies take longer then
				e.device.refuse("page-locked memory", err)
				list[i].pageable = true
				list[i].staging, err = e.bag.pageable(bytes)
			}
			if err != nil {
				return false, err
			}
		}
	}
	e.mapEnds()
	if err := e.placeTensors(uses); err != nil {
		return false, err
	}
	if err := e.clearBytes(); err != nil {
		return false, err
	}
	return e.allocateScratch(all)
}

// scratchOf are the bytes of scratch memory of all candidates.
func scratchOf(all [][]candidates.Candidate) (sizes [gpu.Scratches]int) {
	for _, of := range all {
		for _, c := range of {
			for _, s := range c.Specs {
				s.GrowScratch(&sizes)
			}
		}
	}
	return sizes
}

// allocateScratch makes scratch memory. Where the driver refuses it, those candidates are dropped
// that need most of it, unless a step has no others.
func (e *executable) allocateScratch(all [][]candidates.Candidate) (complete bool, err error) {
	complete = true
	for i := range e.memory.scratch {
		for {
			size := scratchOf(all)[i]
			if size == 0 {
				break
			}
			if e.memory.scratch[i], err = e.bag.memory(size); err == nil && i == gpu.ZeroMemory {
				err = clearMemory(e.memory.scratch[i], size)
			}
			if err == nil {
				e.scratchBytes[i] = size
				break
			}
			if !shim.Refused(err) || !dropLargest(all, i, size) {
				return false, err
			}
			e.device.refuse("scratch memory of some kernels", err)
			complete = false
		}
	}
	return complete, nil
}

// dropLargest drops the candidates that need so many bytes of a kind of scratch memory. It reports
// whether each step keeps one.
func dropLargest(all [][]candidates.Candidate, kind, size int) bool {
	kept := true
	for i, of := range all {
		all[i] = slices.DeleteFunc(slices.Clone(of), func(c candidates.Candidate) bool {
			return scratchOf([][]candidates.Candidate{{c}})[kind] == size
		})
		kept = kept && len(all[i]) > 0
	}
	return kept
}

// clearBytes fills tensors of bytes with zeros once. Kernels read them as whole words: of
// the last one some may be beyond the image, or of an image that a small batch does not
// have. Those have no weight, but initcheck of compute-sanitizer tells of reads of what
// was never written.
func (e *executable) clearBytes() error {
	mapped := make(map[int]bool)
	for _, in := range e.inputs {
		mapped[in.tensor] = in.mapped
	}
	for i, t := range e.plan.Tensors {
		if t.DType != bcnn.Uint8 || mapped[i] || e.memory.tensors[i] == 0 {
			continue
		}
		if err := clearMemory(e.memory.tensors[i], e.bytes(i, e.config.MaxBatch)); err != nil {
			return err
		}
	}
	return nil
}

// smallOutput is the size, in bytes, up to which kernels store an output in memory of the
// host in less time than a copy takes.
const smallOutput = 4 << 10

// mapEnds decides which inputs and outputs need no copies: kernels take the page-locked
// memory where the device is part of the processor and reads it through its caches, and
// store small outputs there on any device.
func (e *executable) mapEnds() {
	if !e.device.unified {
		return
	}
	shared := e.device.integrated && e.device.limits.Capability >= 72
	graph, ends := plan.NewGraph(e.plan), make(map[int]int) // tensors of the plan
	for _, of := range slices.Concat(e.inputs, e.outputs) {
		ends[of.tensor]++
	}
	take := func(of *end) {
		if ends[of.tensor] == 1 && !of.pageable {
			of.mapped, e.memory.tensors[of.tensor] = true, cu.DevicePtr(uintptr(of.staging))
		}
	}
	for i := range e.inputs {
		if shared {
			take(&e.inputs[i])
		}
	}
	for i := range e.outputs {
		of := &e.outputs[i]
		if shared || len(graph.Readers[of.tensor]) == 0 && e.bytes(of.tensor, e.config.MaxBatch) <= smallOutput {
			take(of)
		}
	}
}

// uses lists the arguments of everything that may come to be launched, and the inputs
// and outputs.
func (e *executable) uses(all [][]candidates.Candidate, network networkLaunch) []plan.Use {
	uses := e.plan.EndUses()
	for i, of := range all {
		for _, c := range of {
			for _, s := range c.Specs {
				for _, a := range s.Args {
					if t, ok := a.(gpu.Tensor); ok {
						uses = append(uses, plan.Use{Tensor: int(t), First: i, Last: i})
					}
				}
			}
		}
	}
	return append(uses, network.uses()...)
}

// placeTensors gives every tensor that is not mapped memory of its own from its first use to its last,
// whichever kernels will be chosen.
func (e *executable) placeTensors(uses []plan.Use) error {
	if e.device.unshared {
		for i := range e.plan.Tensors {
			if e.memory.tensors[i] != 0 {
				continue
			}
			bytes := e.bytes(i, e.config.MaxBatch)
			err := e.reserve(int64(bytes))
			if err != nil {
				return err
			}
			if e.memory.tensors[i], err = e.bag.memory(bytes); err != nil {
				return err
			}
		}
		return nil
	}
	uses = slices.DeleteFunc(uses, func(u plan.Use) bool { return e.memory.tensors[u.Tensor] != 0 })
	placed := e.plan.Place(e.config.MaxBatch, uses)
	if err := e.reserve(placed.Bytes); err != nil {
		return err
	}
	if placed.Bytes == 0 {
		return nil
	}
	block, err := e.bag.memory(int(placed.Bytes))
	if err != nil {
		return err
	}
	for i, offset := range placed.Offsets {
		if offset >= 0 {
			e.memory.tensors[i] = block + cu.DevicePtr(offset)
		}
	}
	return nil
}
