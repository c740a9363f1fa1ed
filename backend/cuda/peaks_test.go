//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// peak runs a kernel of a file, several times, and returns the shortest time of
// a launch with so many rounds.
func peak(b *testing.B, d *device, file, kernel string, rounds int32, blocks int, cooperative bool) time.Duration {
	b.Helper()
	const threads = 256
	best := time.Duration(math.MaxInt64)
	require.NoError(b, d.thread.do(newRequest(func() (err error) {
		bag := &bag{thread: d.thread}
		defer func() {
			if e := bag.release(); err == nil {
				err = e
			}
		}()
		f, err := d.thread.function(file, kernel, d.arch)
		if err != nil {
			return err
		}
		out, err := upload(bag, make([]uint32, blocks*threads))
		if err != nil {
			return err
		}
		l, err := shim.NewLaunch(f, unsafe.Pointer(&rounds), unsafe.Sizeof(rounds), []cu.DevicePtr{out})
		if err != nil {
			return err
		}
		bag.launch(l)
		l.SetSizes([3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, peakShared(file), cooperative)
		stream, err := bag.stream()
		if err != nil {
			return err
		}
		start, err := bag.event(cu.DefaultEvent)
		if err != nil {
			return err
		}
		stop, err := bag.event(cu.DefaultEvent)
		if err != nil {
			return err
		}
		for range 6 { // the first warms up
			if err := start.Record(stream); err != nil {
				return err
			}
			if err := l.Enqueue(stream); err != nil {
				return err
			}
			if err := stop.Record(stream); err != nil {
				return err
			}
			if err := stream.Synchronize(); err != nil {
				return err
			}
			ms, err := start.Elapsed(stop)
			if err != nil {
				return err
			}
			best = min(best, time.Duration(ms*1e6))
		}
		return nil
	})))
	return best
}

// peakRounds is how many rounds the loops of peaks.cu make.
func peakRounds(d *device) int32 {
	if d.info.Kind == backend.Emulated {
		return 2
	}
	return 20000
}

// BenchmarkPeaks measures what the device can do at best: xor with population
// count, binary and 8-bit tensor cores, those by warpgroups with the matrix of pixels at
// a multiple of 128 bytes and 16 bytes behind one, in 10^12 operations a second, a product of
// ±1 values counting as two.
func BenchmarkPeaks(b *testing.B) {
	d := testDevice(b)
	rounds := peakRounds(d)
	const word = 32 * 32 * 32 * 2 // operations of 32 words in each lane of a warp
	for _, p := range []struct {
		file, name string
		arch       int
		operations float64 // of a round and a warp
		there      bool
	}{
		{"peaks", "popc", 50, word, true},
		{"peaks", "popc_csa", 50, word, true},
		{"peaks", "mma_xor", 75, 8 * 16 * 8 * 256 * 2, true},
		{"peaks", "mma_and", 80, 8 * 16 * 8 * 256 * 2, true},
		{"peaks", "mma_s8", 80, 8 * 16 * 8 * 32 * 2, true},
		{"peaks_wgmma", "wgmma_and", 90, 16 * 128 * 256 * 2, d.limits.Warpgroups},
		{"peaks_wgmma", "wgmma_and_16", 90, 16 * 128 * 256 * 2, d.limits.Warpgroups},
		{"peaks_wgmma_bytes", "wgmma_u8s8", 90, 16 * 128 * 32 * 2, d.limits.WarpgroupBytes},
		{"peaks_wgmma_bytes", "wgmma_u8s8_16", 90, 16 * 128 * 32 * 2, d.limits.WarpgroupBytes},
	} {
		b.Run(p.name, func(b *testing.B) {
			if d.arch < p.arch || !p.there {
				b.Skip("the device has none of these products")
			}
			const blocksOfProcessor, warps = 8, 8
			blocks := d.limits.Processors * blocksOfProcessor
			var took time.Duration
			for b.Loop() {
				took = peak(b, d, p.file, "peak_"+p.name, rounds, blocks, false)
			}
			b.ReportMetric(p.operations*float64(rounds)*float64(blocks*warps)/took.Seconds()/1e12, "Tops/s")
		})
	}
}

// BenchmarkGridBarrier measures a barrier of the grid in a cooperative launch.
func BenchmarkGridBarrier(b *testing.B) {
	d := testDevice(b)
	if !d.limits.Cooperative {
		b.Skip("needs cooperative launches")
	}
	rounds := peakRounds(d)
	var few, many time.Duration
	for b.Loop() {
		few = peak(b, d, "peaks", "peak_barrier", rounds/20+1, d.limits.Processors, true)
		many = peak(b, d, "peaks", "peak_barrier", rounds/10+2, d.limits.Processors, true)
	}
	b.ReportMetric(float64((many-few).Nanoseconds())/1e3/float64(rounds/10-rounds/20+1), "µs")
}

// BenchmarkGraphNode measures a launch of nothing as a node of a graph.
func BenchmarkGraphNode(b *testing.B) {
	d := testDevice(b)
	e := requireReference(b, d, backendtest.OneConv(4, 1, 32, 32), backend.Options{}, 1).executable
	var l shim.Launch
	// Before anything is recorded, for the driver refuses to load meanwhile.
	require.NoError(b, d.thread.do(newRequest(func() error {
		f, err := d.thread.function("peaks", "peak_empty", d.arch)
		if err != nil {
			return err
		}
		var none int32
		if l, err = shim.NewLaunch(f, unsafe.Pointer(&none), unsafe.Sizeof(none), nil); err == nil {
			l.SetSizes([3]int{1, 1, 1}, [3]int{32, 1, 1}, 0, false)
		}
		return err
	})))
	b.Cleanup(func() { l.Free() })
	var µs float64
	for b.Loop() {
		µs = repeated(b, d, func(e *executable) error { return l.Enqueue(e.stream) }, e)
	}
	b.ReportMetric(µs, "µs")
}

// repeated returns the time in µs that one enqueuing takes on the device within a
// graph: what a graph of many takes longer than one of half as many.
func repeated(b *testing.B, d *device, enqueue func(e *executable) error, e *executable) float64 {
	b.Helper()
	many := 40
	if d.info.Kind == backend.Emulated {
		many = 2
	}
	timeOf := func(n int) time.Duration {
		var times []time.Duration
		require.NoError(b, d.thread.do(newRequest(func() error {
			if err := shim.BeginCapture(e.stream); err != nil {
				return err
			}
			var enqueued error
			for i := 0; i < n && enqueued == nil; i++ {
				enqueued = enqueue(e)
			}
			g, err := shim.EndCapture(e.stream)
			if err != nil {
				return err
			}
			defer g.Destroy()
			if enqueued != nil {
				return enqueued
			}
			for range 15 {
				start := time.Now()
				if err := g.Run(e.stream); err != nil {
					return err
				}
				times = append(times, time.Since(start))
			}
			return nil
		})))
		slices.Sort(times)
		return times[len(times)/2]
	}
	return float64((timeOf(many) - timeOf(many/2)).Nanoseconds()) / 1e3 / float64(many/2)
}

// BenchmarkDevice times whole networks on the device, without transfers, and whole
// runs as their caller sees them: the work of bench/torch_peer.py.
func BenchmarkDevice(b *testing.B) {
	type work struct {
		name  string
		batch int
		net   func() *bcnn.Network
		macs  int // of the convolution whose rate is reported, for an image
	}
	var all []work
	for _, n := range []int{1, 1024} {
		all = append(all, work{"vehiclenet", n, func() *bcnn.Network { return backendtest.VehicleNet(1, 96) }, 0})
	}
	for _, c := range []struct{ channels, size, batch int }{{64, 56, 1}, {64, 56, 64}, {128, 28, 64}, {256, 14, 64}, {256, 56, 64}, {512, 7, 64}, {512, 28, 64}} {
		all = append(all, work{fmt.Sprintf("conv3x3_%dx%dx%d", c.size, c.size, c.channels), c.batch,
			func() *bcnn.Network { return backendtest.OneConv(c.size, 3, c.channels, c.channels) },
			c.size * c.size * c.channels * c.channels * 9})
	}
	for _, c := range []struct{ k, size, in, out int }{{3, 56, 64, 64}, {3, 28, 128, 128}, {3, 14, 256, 256}, {3, 7, 512, 512}, {1, 28, 256, 256}} {
		for _, n := range []int{1, 64} {
			all = append(all, work{fmt.Sprintf("bytes%dx%d_%dx%dx%d", c.k, c.k, c.size, c.size, c.in), n,
				func() *bcnn.Network { return backendtest.OneByteConv(c.size, c.k, c.in, c.out) },
				c.size * c.size * c.in * c.out * c.k * c.k})
		}
	}
	for _, w := range all {
		for _, variant := range append([]string{""}, kernelNames...) {
			b.Run(fmt.Sprintf("%s/batch=%d/variant=%s", w.name, w.batch, variant), func(b *testing.B) {
				d := testDevice(b)
				if d.info.Kind == backend.Emulated && (w.batch > 1 || w.macs > 0) {
					b.Skip("too much for the emulated device")
				}
				p, err := lower.Network(b.Context(), w.net(), lower.Options{})
				require.NoError(b, err)
				var best time.Duration
				step := -1
				if w.macs > 0 {
					step = slices.IndexFunc(p.Steps, func(s plan.Step) bool {
						op, ok := s.Op.(*plan.Conv)
						return ok && !op.Dense
					})
				}
				compile := func(opts backend.Options) *running {
					opts.Kernels, opts.MaxBatch = variant, w.batch
					exe, err := compile(b.Context(), d, p, opts)
					require.NoError(b, err)
					b.Cleanup(func() { require.NoError(b, exe.Close()) })
					return exe
				}
				in, out := backendtest.RandomImages(1, w.batch, p.Inputs[0]), bcnn.NewTensor(bcnn.Float32, w.batch, p.OutputShape())
				if step >= 0 {
					timed := compile(backend.Options{Timed: func(i int, _ string, took time.Duration) {
						if i == step && (best == 0 || took < best) {
							best = took
						}
					}})
					for range 5 {
						require.NoError(b, timed.run(context.Background(), out, in))
					}
					b.ReportMetric(float64(best.Nanoseconds())/1e3, "step-µs")
					b.ReportMetric(2*float64(w.macs*w.batch)/best.Seconds()/1e12, "Tops/s")
				}
				e := compile(backend.Options{})
				for b.Loop() {
					require.NoError(b, e.run(context.Background(), out, in))
				}
				if step < 0 {
					e.images = w.batch
					b.ReportMetric(repeated(b, d, func(e *executable) error {
						if e.network != nil {
							return e.network.enqueue(e.stream, e.images)
						}
						for _, s := range e.steps {
							if err := s.enqueue(e.stream, e.images); err != nil {
								return err
							}
						}
						return nil
					}, e.executable), "device-µs")
				}
			})
		}
	}
}
