//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

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
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/kernels"
)

// maxNetworkBatch is the largest batch for which one launch is considered without
// being forced: the last block does the dense layers of all images.
const maxNetworkBatch = 4

// maxNetworkWork is the largest number of multiply-accumulates of a batch for which one
// launch of a table of steps is considered without being forced: larger networks gain more
// by kernels with tiles than by fewer launches.
const maxNetworkWork = 1 << 32

// networkLaunch is a launch that may execute the whole plan, in one of two ways.
type networkLaunch struct {
	small *candidates.Fused
	steps *candidates.Steps
}

// considerNetwork returns the launch for the whole network that may be chosen. all are the
// candidates of its steps.
func (e *executable) considerNetwork(all [][]candidates.Candidate) (o networkLaunch) {
	if !e.device.limits.Cooperative || e.config.Stepwise {
		return o
	}
	forced := e.config.Kernels == gpu.Fused
	if !forced && (e.config.Kernels != "" || e.device.pick >= 0 || e.config.MaxBatch > maxNetworkBatch || e.device.info.Kind == driver.Emulated) {
		return o
	}
	if o.small = candidates.NewFused(e.plan, e.device.limits, e.device.arch); o.small != nil {
		return o
	}
	work := int64(0)
	for i := range e.plan.Steps {
		work += e.plan.Products(i) * int64(e.config.MaxBatch)
	}
	if forced || work <= maxNetworkWork {
		o.steps = candidates.NewSteps(e.plan, all, e.device.limits, e.config.MaxBatch)
	}
	return o
}

// uses lists the tensors that the launch needs, and from when to when.
func (o networkLaunch) uses() []plan.Use {
	switch {
	case o.small != nil:
		return o.small.Uses
	case o.steps != nil:
		return o.steps.Uses
	}
	return nil
}

// buildOne prepares the launch; nothing if there is none, or a grid of such blocks does
// not fit.
func (e *executable) buildOne(o networkLaunch) (*built, error) {
	switch {
	case o.small != nil:
		return e.buildNetwork(o.small)
	case o.steps != nil:
		return e.buildSteps(o.steps)
	}
	return nil, nil
}

// buildSteps is buildOne for a table of steps.
func (e *executable) buildSteps(s *candidates.Steps) (_ *built, err error) {
	const file, kernel = "steps", "steps"
	f, err := e.function(file, kernel)
	if err != nil {
		return nil, err
	}
	resident, err := f.MaxActiveBlocksPerMultiProcessor(kernels.StepsThreads, 0)
	if err != nil {
		return nil, shim.Check("cuOccupancyMaxActiveBlocksPerMultiprocessor", err)
	}
	if resident < 1 {
		return nil, nil
	}
	constants := &bag{thread: e.thread} // of the steps
	defer func() {
		if err != nil {
			_ = constants.release()
		}
	}()
	table := make([]kernels.Step, len(s.Table)+kernels.StepsGroup)
	for i, t := range s.Table {
		for k, a := range s.Args[i] {
			p, err := e.argument(constants, a)
			if err != nil {
				return nil, fmt.Errorf("kernel %s, step %d of the table: %w", kernel, i, err)
			}
			t.Args[k] = uint64(p)
		}
		table[i] = t
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&table[0])), len(table)*int(unsafe.Sizeof(table[0]))/4)
	g := gpu.Geometry{Geometry: kernels.Geometry{Parts: int32(len(s.Table))}}
	b, err := e.build(candidates.Candidate{Variant: gpu.Fused, Name: kernel, Specs: []candidates.Spec{{
		Kernel: gpu.Kernel{File: file, Name: kernel, G: g, Args: []any{words, make([]uint32, 1)}},
		Block:  kernels.StepsThreads, Blocks: s.Blocks, Cooperative: true,
	}}})
	if err == nil {
		b.bag.Add(constants.release)
	}
	return b, err
}

// buildNetwork is buildOne for a small network.
func (e *executable) buildNetwork(s *candidates.Fused) (_ *built, err error) {
	const file, kernel = "network", "network"
	f, err := e.function(file, kernel)
	if err != nil {
		return nil, err
	}
	if s.Shared > e.device.limits.SharedDefault {
		if err := e.thread.allowShared(f, kernel, s.Shared); err != nil {
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
	b.launches = []launch{{Launch: l, spec: candidates.Spec{Kernel: gpu.Kernel{File: file, Name: kernel}, Block: s.Threads,
		Blocks: e.device.limits.Processors, Shared: s.Shared, Cooperative: true}}}
	return b, nil
}

// chooseNetwork makes the launch of the whole network, if there is one, the driver does
// not refuse it, and it is forced or the faster.
func (e *executable) chooseNetwork(o networkLaunch) error {
	b, err := e.buildOne(o)
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
	together, output, err := e.timeAll(gpu.Fused)
	if err != nil {
		return false, err
	}
	direct := e.direct
	if err := e.dropGraphs(); err != nil {
		return false, err
	}
	e.network, e.direct = nil, false
	steps, right, err := e.timeAll("")
	if err == nil && output != right {
		e.wrong = append(e.wrong, gpu.Fused)
		return false, nil
	}
	if err == nil && together.Shortest >= steps.Shortest || err != nil && !shim.Refused(err) {
		return false, err
	}
	e.network, e.direct = b, direct
	return true, e.dropGraphs()
}

// timeAll measures a whole run in the way that Run takes: as a graph, if the driver
// records it, with the copies. output is the hash of what it computes of random images.
func (e *executable) timeAll(variant string) (took gpu.Times, output uint64, err error) {
	g, err := e.graph(e.images)
	if err != nil {
		return took, 0, err
	}
	launch := func() error {
		if e.direct {
			return e.enqueueAll(false)
		}
		return g.Launch(e.stream)
	}
	if output, err = e.networkOutput(launch); err != nil { // warms up
		return took, 0, err
	}
	if times, ok := e.device.pretended(variant); ok {
		return times, output, nil
	}
	took, err = e.rounds(func() error {
		for range tuningLaunches {
			if err := launch(); err != nil {
				return err
			}
		}
		return nil
	})
	return took, output, err
}
