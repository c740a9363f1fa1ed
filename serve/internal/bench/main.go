// Command bench measures a server that is running, beside Session.Run in this process, with
// images of noise: what a request takes on top of it, how many images per second many clients
// get, how long they wait at 70 % of that, and whether memory stays flat. See docs/serving.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bitcnn/bitcnn"
)

type options struct {
	http, grpc, model string
	what              string
	n, clients        int
	seconds           float64
}

func main() {
	var o options
	flag.StringVar(&o.http, "http", "127.0.0.1:8000", "address of HTTP")
	flag.StringVar(&o.grpc, "grpc", "", "address of gRPC; empty: not measured")
	flag.StringVar(&o.model, "model", "vehiclenet", "a bundled model, which the server has by this name")
	flag.StringVar(&o.what, "what", "overhead", "overhead, throughput, latency or soak; or echo: a bare server of net/http to measure in place of another, "+
		"which reads requests and answers as much")
	flag.IntVar(&o.n, "n", 3000, "requests of overhead and soak")
	flag.IntVar(&o.clients, "clients", 64, "clients of throughput, latency and soak")
	flag.Float64Var(&o.seconds, "seconds", 3, "time of each of the five runs of throughput, and of latency")
	flag.Parse()
	if o.what == "echo" {
		fmt.Fprintln(os.Stderr, "bench:", echo(o.http))
		os.Exit(1)
	}
	measure, ok := map[string]func(*bench) error{
		"overhead": (*bench).overhead, "throughput": (*bench).throughput, "latency": (*bench).latency, "soak": (*bench).soak,
	}[o.what]
	if !ok {
		fmt.Fprintf(os.Stderr, "bench: there is no %q to measure\n", o.what)
		os.Exit(2)
	}
	b, err := newBench(o)
	if err == nil {
		err = measure(b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// echo serves what a request takes without a network, of a server or of neurons: net/http, the
// body and a response of that size.
func echo(address string) error {
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, max(0, r.ContentLength))); err == nil {
			w.Write(make([]byte, 200))
		}
	}))
}

// bench has what is asked, and a session to compare with.
type bench struct {
	options
	session *bitcnn.Session
	in, out []bitcnn.Tensor
	request []byte // over HTTP
}

func newBench(o options) (*bench, error) {
	model, err := bitcnn.Bundled(o.model)
	if err != nil {
		return nil, err
	}
	s, err := bitcnn.Open(context.Background(), model, bitcnn.Options{Device: "cpu"})
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, session: s}
	b.in, b.out = b.tensors()
	b.request = httpRequest(o.model, b.in[0])
	return b, nil
}

// tensors are an image of noise, and room for the outputs.
func (b *bench) tensors() (in, out []bitcnn.Tensor) {
	x := bitcnn.NewTensor(bitcnn.Uint8, 1, b.session.Inputs()[0].Shape)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.U8 {
		x.U8[i] = uint8(rng.Uint32())
	}
	y := b.session.Outputs()[0]
	return []bitcnn.Tensor{x}, []bitcnn.Tensor{bitcnn.NewTensor(y.DType, 1, y.Shape)}
}

// overhead measures one caller: Session.Run and requests take turns.
func (b *bench) overhead() error {
	ctx := context.Background()
	web, err := dial(b.http)
	if err != nil {
		return err
	}
	calls := []struct {
		name string
		call func() error
	}{
		{"Session.Run", func() error { return b.session.Run(ctx, b.out, b.in) }},
		{"HTTP", func() error { return web.ask(b.request) }},
	}
	if b.grpc != "" {
		call, err := grpcCall(b.grpc, b.model, b.in[0])
		if err != nil {
			return err
		}
		calls = append(calls, struct {
			name string
			call func() error
		}{"gRPC", call})
	}
	times := make([][]time.Duration, len(calls))
	for range b.n {
		for i, c := range calls {
			began := time.Now()
			if err := c.call(); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	for i, c := range calls {
		slices.Sort(times[i])
		fmt.Printf("%-12s median %8.1f µs  tenth %8.1f µs  shortest %8.1f µs", c.name,
			micros(at(times[i], .5)), micros(at(times[i], .1)), micros(times[i][0]))
		if i > 0 {
			fmt.Printf("   over Session.Run: %6.1f, %6.1f, %6.1f", micros(at(times[i], .5)-at(times[0], .5)),
				micros(at(times[i], .1)-at(times[0], .1)), micros(times[i][0]-times[0][0]))
		}
		fmt.Println()
	}
	return nil
}

func at(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// parallel makes calls in so many goroutines until the time is over, and returns how many that
// were, for a second and all.
func parallel(clients int, seconds float64, prepare func(client int) (call func() error, err error)) (rate float64,
	all int64, err error) {
	var wg sync.WaitGroup
	var count atomic.Int64
	errs := make([]error, clients)
	calls := make([]func() error, clients)
	for i := range clients {
		if calls[i], err = prepare(i); err != nil {
			return 0, 0, err
		}
	}
	began := time.Now()
	end := began.Add(time.Duration(seconds * 1e9))
	for i := range clients {
		wg.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				errs[i] = calls[i]()
				count.Add(1)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, 0, err
		}
	}
	return float64(count.Load()) / time.Since(began).Seconds(), count.Load(), nil
}

func (b *bench) overSession(int) (func() error, error) {
	in, out := b.tensors()
	return func() error { return b.session.Run(context.Background(), out, in) }, nil
}

func (b *bench) overHTTP(int) (func() error, error) {
	c, err := dial(b.http)
	if err != nil {
		return nil, err
	}
	return func() error { return c.ask(b.request) }, nil
}

// throughput compares goroutines that call Session.Run with as many clients, by images per
// second, and by processor time for an image, which other programs on the machine change less.
func (b *bench) throughput() error {
	var direct, served, own, server []float64
	for range 5 {
		before := ownCPU()
		d, images, err := parallel(b.clients, b.seconds, b.overSession)
		if err != nil {
			return err
		}
		direct, own = append(direct, d), append(own, (ownCPU()-before)/float64(images))
		before = b.serverCPU()
		s, images, err := parallel(b.clients, b.seconds, b.overHTTP)
		if err != nil {
			return err
		}
		served, server = append(served, s), append(server, (b.serverCPU()-before)/float64(images))
	}
	fmt.Printf("%d goroutines, Session.Run: %8.0f images per second, %6.0f µs of a processor for each\n",
		b.clients, slices.Max(direct), 1e6*slices.Min(own))
	fmt.Printf("%d clients, HTTP:           %8.0f images per second, %6.0f µs of the server: %.0f %% is Session.Run\n",
		b.clients, slices.Max(served), 1e6*slices.Min(server), 100*slices.Min(own)/slices.Min(server))
	return nil
}

// latency asks at 70 % of what the clients get at the most, at fixed times, and counts from
// those on.
func (b *bench) latency() error {
	most, _, err := parallel(b.clients, b.seconds, b.overHTTP)
	if err != nil {
		return err
	}
	rate := .7 * most
	gap := time.Duration(1e9 / rate)
	due := make(chan time.Time, 1<<20)
	var mu sync.Mutex
	var times []time.Duration
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for range b.clients {
		c, err := dial(b.http)
		if err != nil {
			return err
		}
		wg.Go(func() {
			for t := range due {
				if err := c.ask(b.request); err != nil {
					failed.Store(&err)
					return
				}
				took := time.Since(t)
				mu.Lock()
				times = append(times, took)
				mu.Unlock()
			}
		})
	}
	next := time.Now()
	for end := next.Add(time.Duration(5 * b.seconds * 1e9)); next.Before(end); next = next.Add(gap) {
		time.Sleep(time.Until(next))
		due <- next
	}
	close(due)
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	slices.Sort(times)
	p50, p99 := at(times, .5), at(times, .99)
	fmt.Printf("%.0f requests per second (70 %% of %.0f): p50 %.0f µs, p99 %.0f µs, %.1f times\n",
		rate, most, micros(p50), micros(p99), float64(p99)/float64(p50))
	return nil
}

// soak asks many times and prints what the server's process takes.
func (b *bench) soak() error {
	calls := make([]func() error, b.clients)
	for i := range calls {
		var err error
		if calls[i], err = b.overHTTP(i); err != nil {
			return err
		}
	}
	began := time.Now()
	for part := range 10 {
		var left atomic.Int64
		left.Store(int64(b.n / 10))
		var wg sync.WaitGroup
		errs := make([]error, b.clients)
		for i, call := range calls {
			wg.Go(func() {
				for left.Add(-1) >= 0 && errs[i] == nil {
					errs[i] = call()
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		m, err := b.metrics()
		if err != nil {
			return err
		}
		fmt.Printf("%9d requests, %5.0f s: resident %5.1f MiB, heap in use %5.1f MiB, %3.0f goroutines\n", (part+1)*(b.n/10),
			time.Since(began).Seconds(), m["process_resident_memory_bytes"]/(1<<20), m["go_memstats_heap_inuse_bytes"]/(1<<20), m["go_goroutines"])
	}
	return nil
}
