//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend/cuda/internal/candidates"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

var _ driver.PeakMeter = (*device)(nil)

// peakKernel is a loop of a file that computes products of ±1 values.
type peakKernel struct {
	file, name      string
	from, to        int // of the PTX for which architectures it is taken
	since, until    int // on which compute capabilities
	productsOfRound int // per warp
	tensorCores     bool
}

var peakKernels = []peakKernel{
	{"peaks", "peak_popc", 0, newest, 0, newest, 32 * 32 * 32, false},
	{"peaks", "peak_popc_csa", 0, newest, 0, newest, 32 * 32 * 32, false},
	{"peaks", "peak_mma_xor", 75, 79, 0, newest, 8 * 16 * 8 * 256, true},
	{"peaks", "peak_mma_and", 80, newest, 0, 99, 8 * 16 * 8 * 256, true},
	// Where tensor cores multiply no bits, those of conv_imma are bytes; what makes bytes
	// of bits is not counted.
	{"peaks", "peak_mma_s8", 80, newest, 100, newest, 8 * 16 * 8 * 32, true},
	{peaksOfWarpgroups, "peak_wgmma_and", 90, newest, 90, 90, 16 * 128 * 256, true},
}

const (
	newest            = 1000
	peaksOfWarpgroups = "peaks_wgmma"
	// Bytes of shared memory that the loops of that file and of peaks_wgmma_bytes.cu have.
	sharedOfWarpgroups = 3 * 4096
)

// peakShared are the bytes of shared memory of a loop of a file.
func peakShared(file string) int {
	if strings.HasPrefix(file, peaksOfWarpgroups) {
		return sharedOfWarpgroups
	}
	return 0
}

// peaksOf are the loops for a device with PTX for an architecture, with tensor cores or
// without.
func peaksOf(arch int, l candidates.Limits, tensorCores bool) []peakKernel {
	return slices.DeleteFunc(slices.Clone(peakKernels), func(k peakKernel) bool {
		return arch < k.from || arch > k.to || l.Capability < k.since || l.Capability > k.until ||
			k.tensorCores && !tensorCores || k.file == peaksOfWarpgroups && !l.Warpgroups
	})
}

// Peak measures the products of ±1 values per second that the device reaches on
// registers alone: with tensor cores unless c forces kernels without. The times
// of an emulated device say nothing; its peak is 0.
func (d *device) Peak(c driver.Config) (float64, error) {
	if d.info.Kind == driver.Emulated {
		return 0, nil
	}
	return d.peak(c, time.Millisecond)
}

// peak measures loops that take the given time at least.
func (d *device) peak(c driver.Config, least time.Duration) (best float64, err error) {
	if err := d.open(); err != nil {
		return 0, err
	}
	err = d.thread.do(newRequest(func() error {
		tensorCores := c.Kernels != gpu.Patches && c.Kernels != gpu.Direct
		for _, k := range peaksOf(d.arch, d.limits, tensorCores) {
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

// Bandwidth measures the bytes per second that the device reads, of a buffer that
// it reads over and over. The times of an emulated device say nothing; its bandwidth
// is 0.
func (d *device) Bandwidth(_ driver.Config, size int64) (float64, error) {
	if d.info.Kind == driver.Emulated {
		return 0, nil
	}
	return d.bandwidth(size, time.Millisecond)
}

const quad = 16 // bytes that a thread reads at a time

// bandwidth measures loops that take the given time at least.
func (d *device) bandwidth(size int64, least time.Duration) (rate float64, err error) {
	if size > math.MaxInt32 {
		return 0, fmt.Errorf("a buffer of %d bytes", size)
	}
	if err := d.open(); err != nil {
		return 0, err
	}
	err = d.thread.do(newRequest(func() error {
		own := bag{thread: d.thread}
		quads := (size + quad - 1) / quad
		in, err := upload(&own, make([]uint32, quads*quad/4))
		if err == nil {
			var perSecond float64
			perSecond, err = d.measureLoop("peaks", "peak_read", least, readLoop{Quads: int32(quads)}, in)
			rate = perSecond * float64(quads*quad)
		}
		return errors.Join(err, own.release())
	}))
	return rate, err
}

// measurePeak returns products per second; it runs on the device's thread.
func (d *device) measurePeak(k peakKernel, least time.Duration) (float64, error) {
	perSecond, err := d.measureLoop(k.file, k.name, least, readLoop{}, 0)
	return perSecond * float64(k.productsOfRound) * float64(d.peakBlocks()*peakThreads/candidates.Lanes), err
}

// readLoop is the first parameter of the loops of peaks.cu; those that do not read
// have Rounds alone.
type readLoop struct{ Rounds, Quads int32 }

const peakThreads = 256 // of a block

func (d *device) peakBlocks() int { return 8 * d.limits.Processors }

// measureLoop returns the rounds per second of a loop of a file; it runs on the device's
// thread.
func (d *device) measureLoop(file, name string, least time.Duration, loop readLoop, in cu.DevicePtr) (_ float64, err error) {
	const rounds, longest = 5, 1 << 24
	own := bag{thread: d.thread}
	defer func() {
		if released := own.release(); err == nil {
			err = released
		}
	}()
	f, err := d.thread.function(file, name, d.arch)
	if err != nil {
		return 0, err
	}
	blocks := d.peakBlocks()
	out, err := upload(&own, make([]uint32, blocks*peakThreads))
	if err != nil {
		return 0, err
	}
	stream, err := own.stream()
	if err != nil {
		return 0, err
	}
	start, err := own.event(cu.DefaultEvent)
	if err != nil {
		return 0, err
	}
	stop, err := own.event(cu.DefaultEvent)
	if err != nil {
		return 0, err
	}
	loop.Rounds = 16
	bytes, args := unsafe.Sizeof(loop.Rounds), []cu.DevicePtr{out}
	if in != 0 {
		bytes, args = unsafe.Sizeof(loop), append(args, in)
	}
	l, err := shim.NewLaunch(f, unsafe.Pointer(&loop), bytes, args)
	if err != nil {
		return 0, err
	}
	own.launch(l)
	l.SetSizes([3]int{blocks, 1, 1}, [3]int{peakThreads, 1, 1}, peakShared(file), false)
	best := 0.0
	for measured := 0; measured < rounds; {
		*(*int32)(l.Geometry()) = loop.Rounds
		took, err := timeOn(stream, start, stop, func() error { return l.Enqueue(stream) })
		if err != nil {
			return 0, err
		}
		if took < least && loop.Rounds < longest {
			loop.Rounds *= 2
			continue
		}
		measured++
		best = max(best, float64(loop.Rounds)/max(took.Seconds(), 1e-9))
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
