//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/kernels"
)

// maxNetworkBatch is the largest batch for which one launch is considered without
// being forced: the last block does the dense layers of all images.
const maxNetworkBatch = 4

// considersNetwork reports whether one launch for the whole network may be chosen.
func (e *executable) considersNetwork() bool {
	if !e.device.limits.Cooperative || e.config.Stepwise {
		return false
	}
	return e.config.Kernels == gpu.Fused ||
		e.config.Kernels == "" && e.device.pick < 0 && e.config.MaxBatch <= maxNetworkBatch && e.device.info.Kind != driver.Emulated
}

// buildNetwork prepares the launch; nothing if a grid of such blocks does not fit.
func (e *executable) buildNetwork(s *candidates.Fused) (_ *built, err error) {
	const file, kernel = "network", "network"
	f, err := e.function(file, kernel)
	if err != nil {
		return nil, err
	}
	if s.Shared > e.device.limits.SharedDefault {
		if err := shim.AllowShared(f, s.Shared); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", kernel, err)
		}
	}
	resident, err := f.MaxActiveBlocksPerMultiProcessor(s.Threads, int64(s.Shared))
	if err != nil {
		return nil, shim.Check("cuOccupancyMaxActiveBlocksPerMultiprocessor", err)
	}
	if resident < 1 {
		return nil, nil
	}
	sums := kernels.NetworkReplicas * e.config.MaxBatch * int(s.Net.SumStride)
	if err := e.reserve(4 * int64(sums)); err != nil {
		return nil, err
	}
	b := &built{variant: gpu.Fused, bag: &bag{thread: e.thread}}
	defer func() {
		if err != nil {
			_ = b.bag.release()
		}
	}()
	put := func(to *uint64, data any) {
		if err != nil {
			return
		}
		var p cu.DevicePtr
		p, err = e.argument(b.bag, data)
		*to = uint64(p)
	}
	n := s.Net
	for i, a := range s.Convs {
		c := &n.Conv[i]
		put(&c.In, a.In)
		put(&c.Out, a.Out)
		put(&c.Weights, a.Weights)
		put(&c.Thresholds, a.Thresholds)
		put(&c.Flip, a.Flip)
		put(&c.Rows, a.Rows)
		put(&c.Cols, a.Cols)
		put(&c.Correction, a.Correction)
		put(&c.Levels, a.Levels)
	}
	put(&n.Constants, s.Constants)
	put(&n.Weights, s.Weights)
	put(&n.Sums, make([]int32, sums))
	put(&n.Barrier, make([]uint32, 2))
	put(&n.Out, gpu.Tensor(e.plan.Outputs[0]))
	if err != nil {
		return nil, err
	}
	l, err := shim.NewLaunch(f, unsafe.Pointer(&n), unsafe.Sizeof(n), nil)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", kernel, err)
	}
	b.bag.launch(l)
	// One block to a multiprocessor: more make the barriers slower.
	b.launches = []launch{{l, candidates.Spec{Kernel: gpu.Kernel{File: file, Name: kernel}, Block: s.Threads,
		Blocks: e.device.limits.Processors, Shared: s.Shared, Cooperative: true}}}
	return b, nil
}

// chooseNetwork makes the launch of the whole network, if there is one, the driver does
// not refuse it, and it is forced or the faster.
func (e *executable) chooseNetwork(s *candidates.Fused) error {
	if s == nil {
		return nil
	}
	b, err := e.buildNetwork(s)
	if b == nil || err != nil {
		if shim.Refused(err) {
			err = nil
		}
		return err
	}
	chosen, err := e.compare(b)
	if chosen {
		return err
	}
	e.network, e.direct = nil, false
	return errors.Join(err, e.dropGraphs(), b.bag.release())
}

// compare reports whether one launch for the whole network can take the place of the
// steps, and is to. It leaves e as it is to be then.
func (e *executable) compare(b *built) (bool, error) {
	e.images, e.network = e.config.MaxBatch, b
	// Where others share the device, the driver may refuse at last a grid that fits.
	err := e.enqueueAll(false)
	if err == nil {
		err = e.synchronize()
	}
	if shim.Refused(err) {
		return false, nil
	}
	if err != nil || e.config.Kernels == gpu.Fused {
		return err == nil, err
	}
	together, err := e.timeAll(gpu.Fused)
	if err != nil {
		return false, err
	}
	direct := e.direct
	if err := e.dropGraphs(); err != nil {
		return false, err
	}
	e.network, e.direct = nil, false
	steps, err := e.timeAll("")
	if err == nil && together.Shortest >= steps.Shortest || err != nil && !shim.Refused(err) {
		return false, err
	}
	e.network, e.direct = b, direct
	return true, e.dropGraphs()
}

// timeAll measures a whole run in the way that Run takes: as a graph, if the driver
// records it, with the copies.
func (e *executable) timeAll(variant string) (gpu.Times, error) {
	g, err := e.graph(e.images)
	if err != nil {
		return gpu.Times{}, err
	}
	if times, ok := e.device.pretended(variant); ok {
		return times, nil
	}
	launch := func() error {
		if e.direct {
			return e.enqueueAll(false)
		}
		return g.Launch(e.stream)
	}
	if err := launch(); err != nil { // warms up
		return gpu.Times{}, err
	}
	return e.rounds(func() error {
		for range tuningLaunches {
			if err := launch(); err != nil {
				return err
			}
		}
		return nil
	})
}
