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

// A turn is what a way of running images reaches, in turns with others: on a machine
// that others use as well, times that are measured one after the other do not compare.
type turn struct {
	name    string
	session *Session

	images    int
	processor time.Duration
	latency   time.Duration
	fastest   float64 // images per second of the best turn
}

// take runs images, brought by so many goroutines one by one.
func (w *turn) take(b *testing.B, goroutines, images int) {
	var next, latency atomic.Int64
	var wg sync.WaitGroup
	start, processor := time.Now(), processorTime()
	for range goroutines {
		wg.Go(func() {
			in, out := tensors(w.session.inputs, 1), tensors(w.session.outputs, 1)
			for next.Add(1) <= int64(images) {
				start := time.Now()
				if err := w.session.Run(b.Context(), out, in); err != nil {
					b.Error(err)
				}
				latency.Add(int64(time.Since(start)))
			}
		})
	}
	wg.Wait()
	w.images += images
	w.processor += processorTime() - processor
	w.latency += time.Duration(latency.Load())
	w.fastest = max(w.fastest, float64(images)/time.Since(start).Seconds())
}

// compare takes turns until the benchmark ends. Of images per second it reports the
// best turn, and those per second of processor time, which others do not take away.
func compare(b *testing.B, goroutines, images int, ways ...*turn) {
	for b.Loop() {
		for _, w := range ways {
			w.take(b, goroutines, images)
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, w := range ways {
		b.ReportMetric(w.fastest, w.name+"-images/s")
		b.ReportMetric(float64(w.latency.Microseconds())/float64(w.images), w.name+"-µs")
		if w.processor > 0 {
			b.ReportMetric(float64(w.images)/w.processor.Seconds(), w.name+"-images/cpu-s")
		}
	}
}

// BenchmarkSession has goroutines bring one image each, to one engine with all threads
// and to engines that share them.
func BenchmarkSession(b *testing.B) {
	for _, c := range []struct {
		name   string
		images int // of a turn
	}{{"digits", 20000}, {"vehiclenet", 800}, {"birealnet18", 25}} {
		model, err := Bundled(c.name)
		if err != nil {
			model, err = zoo.New(c.name, 1)
		}
		require.NoError(b, err)
		one, shares := open(b, model, Options{Device: "cpu", Parallel: 1}), open(b, model, Options{Device: "cpu"})
		for _, goroutines := range []int{1, 2, 4, 16} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				compare(b, goroutines, c.images, &turn{name: "one", session: one}, &turn{name: "shares", session: shares})
			})
		}
	}
}

// BenchmarkBatches has 64 goroutines bring one image each, with and without batches of
// them.
func BenchmarkBatches(b *testing.B) {
	for _, c := range []struct {
		name   string
		images int
	}{{"digits", 20000}, {"vehiclenet", 800}} {
		model := bundled(b, c.name)
		single := open(b, model, Options{Device: "cpu"})
		batches := open(b, model, Options{Device: "cpu", MaxBatch: 32, BatchDelay: 200 * time.Microsecond})
		b.Run(c.name, func(b *testing.B) {
			compare(b, 64, c.images, &turn{name: "single", session: single}, &turn{name: "batches", session: batches})
		})
	}
}
