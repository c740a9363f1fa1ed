package bitcnn

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// BenchmarkSession has goroutines bring one image each, to one engine with all threads
// and to engines that share them. Where other programs use the machine, images per
// second of processor time tell more than images per second.
func BenchmarkSession(b *testing.B) {
	for _, name := range []string{"digits", "vehiclenet", "birealnet18"} {
		model, err := Bundled(name)
		if err != nil {
			model, err = zoo.New(name, 1)
		}
		require.NoError(b, err)
		for _, way := range []struct {
			name string
			opts Options
		}{{"one", Options{Parallel: 1}}, {"shares", Options{}}} {
			way.opts.Device = "cpu"
			s := open(b, model, way.opts)
			for _, goroutines := range []int{1, 2, 4, 16} {
				b.Run(fmt.Sprintf("%s/%s/goroutines=%d", name, way.name, goroutines), func(b *testing.B) {
					bench(b, s, goroutines)
				})
			}
		}
	}
}

// BenchmarkBatches has 64 goroutines bring one image each, with and without batches of
// them.
func BenchmarkBatches(b *testing.B) {
	for _, name := range []string{"digits", "vehiclenet"} {
		for _, way := range []struct {
			name string
			opts Options
		}{
			{"single", Options{}},
			{"batches", Options{MaxBatch: 32, BatchDelay: 200 * time.Microsecond}},
		} {
			way.opts.Device = "cpu"
			s := open(b, bundled(b, name), way.opts)
			b.Run(name+"/"+way.name, func(b *testing.B) { bench(b, s, 64) })
		}
	}
}

// bench runs b.N images from so many goroutines, and reports images per second and
// what a call takes on average.
func bench(b *testing.B, s *Session, goroutines int) {
	var next atomic.Int64
	var latency atomic.Int64
	var wg sync.WaitGroup
	processor := processorTime()
	for range goroutines {
		wg.Go(func() {
			in, out := tensors(s.inputs, 1), tensors(s.outputs, 1)
			for next.Add(1) <= int64(b.N) {
				start := time.Now()
				if err := s.Run(b.Context(), out, in); err != nil {
					b.Error(err)
				}
				latency.Add(int64(time.Since(start)))
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
	if used := processorTime() - processor; used > 0 {
		b.ReportMetric(float64(b.N)/used.Seconds(), "images/cpu-s")
	}
	b.ReportMetric(float64(latency.Load())/float64(b.N)/1e3, "µs/call")
}
