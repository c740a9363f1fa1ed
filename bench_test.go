package bitcnn

import (
	"fmt"
	"runtime"
	"slices"
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
		model := benchmarked(b, c.name)
		one, shares := open(b, model, Options{Device: "cpu", Parallel: 1}), open(b, model, Options{Device: "cpu"})
		for _, goroutines := range []int{1, 2, 4, 16} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, goroutines), func(b *testing.B) {
				compare(b, goroutines, c.images, &turn{name: "one", session: one}, &turn{name: "shares", session: shares})
			})
		}
	}
}

// BenchmarkMemory reports the bytes of a session with 16 threads, after one caller and
// after as many engines as 16 callers at the same time may ever need: all 16 of them
// have had an engine of their own, and before that each half of them.
func BenchmarkMemory(b *testing.B) {
	const callers = 16
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, name := range []string{"digits", "vehiclenet", "birealnet18", "vgg16"} {
		b.Run(name, func(b *testing.B) {
			model := benchmarked(b, name)
			for b.Loop() {
				before := heap()
				s := open(b, model, Options{Device: "cpu", Threads: callers})
				one := heap()
				p := s.engines
				var held []*engine
				for n := 1; n <= callers; n *= 2 {
					for len(held) < n {
						held = append(held, acquired(b, p))
					}
					for i, e := range held {
						p.release(e)
						held[i] = acquired(b, p)
					}
				}
				require.Len(b, p.engines, 2*callers-1)
				all := heap()
				for _, e := range held {
					p.release(e)
				}
				b.ReportMetric((one-before)/1e6, "one-MB")
				b.ReportMetric((all-before)/1e6, "most-MB")
				require.NoError(b, s.Close())
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func acquired(b *testing.B, p *engines) *engine {
	e, err := p.acquire(b.Context())
	require.NoError(b, err)
	return e
}

// benchmarked is the bundled model of a name, or the network with drawn weights.
func benchmarked(b *testing.B, name string) *Model {
	model, err := Bundled(name)
	if err != nil {
		model, err = zoo.New(name, 1)
	}
	require.NoError(b, err)
	return model
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

// BenchmarkBatchDelay is how long callers of one image each wait for their answers, who ask again
// as soon as they have one, or after a pause: alone, nobody waits for others.
func BenchmarkBatchDelay(b *testing.B) {
	for _, name := range []string{"digits", "vehiclenet"} {
		model := bundled(b, name)
		for _, callers := range []int{1, 2, 8} {
			for _, delay := range []time.Duration{0, 50 * time.Microsecond, 200 * time.Microsecond} {
				for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
					b.Run(fmt.Sprintf("%s/callers=%d/delay=%v/pause=%v", name, callers, delay, pause), func(b *testing.B) {
						s := open(b, model, Options{Device: "cpu", MaxBatch: 32, BatchDelay: delay})
						took := make([][]time.Duration, callers)
						var wg sync.WaitGroup
						for c := range took {
							in, out := tensors(s.Inputs(), 1), tensors(s.Outputs(), 1)
							wg.Go(func() {
								for range 300 {
									time.Sleep(pause)
									began := time.Now()
									if err := s.Run(b.Context(), out, in); err != nil {
										b.Error(err)
									}
									took[c] = append(took[c], time.Since(began))
								}
							})
						}
						wg.Wait()
						all := slices.Sorted(slices.Values(slices.Concat(took...)))
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(float64(all[len(all)/2])/1e3, "median-µs")
						b.ReportMetric(float64(all[len(all)*99/100])/1e3, "p99-µs")
					})
				}
			}
		}
	}
}
