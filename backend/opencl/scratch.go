//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"fmt"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
)

// memory is where the tensors of a plan and scratch memory are. Scratch memory is made when the
// first candidate needs it, so that a driver that refuses it refuses that candidate alone.
type memory struct {
	tensors []*cl.MemObject
	// scratch is what there is of each kind, each larger than the one before.
	scratch [gpu.Scratches][]*scratch
	// reserve asks for bytes before they are allocated, and gives them back if negative.
	reserve func(bytes int64) error
}

// scratch is memory that steps share, one after the other.
type scratch struct {
	*cl.MemObject
	bytes int
	bag   bag
}

// scratchUse is an argument of a kernel that is scratch memory.
type scratchUse struct {
	kernel *cl.Kernel
	index  int
	gpu.Scratch
}

// scratchOf returns scratch memory for an argument: what there is, if it is large enough, or more.
func (m *memory) scratchOf(d *device, a gpu.Scratch) (*cl.MemObject, error) {
	kind := &m.scratch[a.Which]
	if n := len(*kind); n > 0 && (*kind)[n-1].bytes >= a.Bytes {
		return (*kind)[n-1].MemObject, nil
	}
	if int64(a.Bytes) > d.limits.Buffer {
		return nil, fmt.Errorf("%w: %d bytes of scratch memory", driver.ErrTooLarge, a.Bytes)
	}
	if err := m.reserve(int64(a.Bytes)); err != nil {
		_ = m.reserve(-int64(a.Bytes))
		return nil, err
	}
	s := &scratch{bytes: a.Bytes, bag: bag{context: d.context}}
	var err error
	if s.MemObject, err = s.bag.buffer(cl.MemReadWrite, a.Bytes); err != nil {
		_ = m.reserve(-int64(a.Bytes))
		return nil, fmt.Errorf("scratch memory: %w", err)
	}
	*kind = append(*kind, s)
	return s.MemObject, nil
}

// settle gives all steps that were chosen the smallest scratch memory that does for them, and
// frees what other candidates needed.
func (m *memory) settle(chosen []*built) error {
	for which := range m.scratch {
		need := 0
		for _, b := range chosen {
			for _, u := range b.scratch {
				if u.Which == which {
					need = max(need, u.Bytes)
				}
			}
		}
		var keep *scratch
		for _, s := range m.scratch[which] {
			if keep == nil && need > 0 && s.bytes >= need {
				keep = s
				continue
			}
			s.bag.release()
			_ = m.reserve(-int64(s.bytes))
		}
		m.scratch[which] = nil
		if keep == nil {
			continue
		}
		m.scratch[which] = []*scratch{keep}
		for _, b := range chosen {
			for _, u := range b.scratch {
				if u.Which != which {
					continue
				}
				if err := shim.KernelOf(u.kernel).SetArg(u.index, shim.BufferOf(keep.MemObject)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// release frees all scratch memory.
func (m *memory) release() {
	for which, kind := range m.scratch {
		for _, s := range kind {
			s.bag.release()
		}
		m.scratch[which] = nil
	}
}
