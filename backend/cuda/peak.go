//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
)

// peakKernel is a loop of peaks.cu that computes products of ±1 values.
type peakKernel struct {
	name            string
	from, to        int // of the PTX for which architectures it is taken
	productsOfRound int // per warp
	tensorCores     bool
}

var peakKernels = []peakKernel{
	{"peak_popc", 0, 1000, 32 * 32 * 32, false},
	{"peak_popc_csa", 0, 1000, 32 * 32 * 32, false},
	{"peak_mma_xor", 75, 79, 8 * 16 * 8 * 256, true},
	{"peak_mma_and", 80, 1000, 8 * 16 * 8 * 256, true},
}

// Peak measures the products of ±1 values per second that the device reaches on
// registers alone: with tensor cores unless opts forces kernels without. The times
// of an emulated device say nothing; its peak is 0.
func (d *device) Peak(opts backend.Options) (float64, error) {
	if d.info.Kind == backend.Emulated {
		return 0, nil
	}
	peak, err := d.peak(opts, time.Millisecond)
	if err != nil {
		return 0, &backend.Error{Device: d.info.ID, Op: "peak", Err: err}
	}
	return peak, nil
}

// peak measures loops that take the given time at least.
func (d *device) peak(opts backend.Options, least time.Duration) (best float64, err error) {
	if err := d.open(); err != nil {
		return 0, err
	}
	err = d.thread.do(newRequest(func() error {
		for _, k := range peakKernels {
			if d.arch < k.from || d.arch > k.to || k.tensorCores && (opts.Variant == "a" || opts.Variant == "b") {
				continue
			}
			rate, err := d.measurePeak(k, least)
			if err != nil {
				return fmt.Errorf("kernel %s: %w", k.name, err)
			}
			best = max(best, rate)
		}
		return nil
	}))
	return best, err
}

// measurePeak returns products per second; it runs on the device's thread.
func (d *device) measurePeak(k peakKernel, least time.Duration) (_ float64, err error) {
	const threads, blocksOfProcessor, rounds, longest = 256, 8, 5, 1 << 24
	own := bag{thread: d.thread}
	defer func() {
		if released := own.release(); err == nil {
			err = released
		}
	}()
	f, err := d.thread.function("peaks", k.name, d.arch)
	if err != nil {
		return 0, err
	}
	blocks := d.limits.processors * blocksOfProcessor
	out, err := upload(&own, make([]uint32, blocks*threads))
	if err != nil {
		return 0, err
	}
	stream, err := own.stream()
	if err != nil {
		return 0, err
	}
	start, err := own.event()
	if err != nil {
		return 0, err
	}
	stop, err := own.event()
	if err != nil {
		return 0, err
	}
	loops := int32(16)
	l, err := shim.NewLaunch(f, unsafe.Pointer(&loops), unsafe.Sizeof(loops), []cu.DevicePtr{out})
	if err != nil {
		return 0, err
	}
	own.launch(l)
	l.SetSizes([3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, 0, false)
	best := 0.0
	for measured := 0; measured < rounds; {
		*(*int32)(l.Geometry()) = loops
		took, err := timeOn(stream, start, stop, func() error { return l.Enqueue(stream) })
		if err != nil {
			return 0, err
		}
		if took < least && loops < longest {
			loops *= 2
			continue
		}
		measured++
		products := float64(loops) * float64(k.productsOfRound) * float64(blocks*threads/lanes)
		best = max(best, products/max(took.Seconds(), 1e-9))
	}
	return best, nil
}

// timeOn is the time on the device of what f enqueues.
func timeOn(stream cu.Stream, start, stop cu.Event, f func() error) (time.Duration, error) {
	if err := shim.Check("cuEventRecord", start.Record(stream)); err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	if err := shim.Check("cuEventRecord", stop.Record(stream)); err != nil {
		return 0, err
	}
	if err := shim.Check("cuStreamSynchronize", stream.Synchronize()); err != nil {
		return 0, err
	}
	ms, err := start.Elapsed(stop)
	return time.Duration(ms * float64(time.Millisecond)), shim.Check("cuEventElapsedTime", err)
}
