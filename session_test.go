package bitcnn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// floatNet reads float32 of 4×4×2 and gives three outputs.
func floatNet() *Model {
	n := &Model{Name: "float", Inputs: []bcnn.Input{{Shape: Shape{H: 4, W: 4, C: 2}, DType: Float32}}}
	rng := rand.New(rand.NewPCG(1, 2))
	var w []float32
	for range 3 * 32 {
		w = append(w, float32(rng.NormFloat64()))
	}
	n.Append("flatten", bcnn.Flatten{})
	n.Append("dense", bcnn.Dense{Out: 3, Weights: bcnn.Weights{F32: w}})
	return n
}

// binaryNet reads the bytes of images of 6×5 and gives four outputs.
func binaryNet() *Model {
	n := &Model{Name: "binary", Inputs: []bcnn.Input{{Shape: Shape{H: 6, W: 5, C: 1}, DType: Uint8}}}
	rng := rand.New(rand.NewPCG(5, 6))
	words := func(count int, mask uint64) bcnn.Weights {
		w := make([]uint64, count)
		for i := range w {
			w[i] = rng.Uint64() & mask
		}
		return bcnn.Weights{Bits: w}
	}
	n.Append("grey", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})
	n.Append("conv", bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3}, Out: 8, Weights: words(8*9, 1)})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("flatten", bcnn.Flatten{})
	n.Append("dense", bcnn.Dense{Out: 4, Weights: words(4*2, 1<<32-1)}) // of 4·3·8 inputs
	return n
}

// question is a batch with what must come out.
type question struct{ in, want Tensor }

func questions(t testing.TB, model *Model, batches ...int) []question {
	plan, err := lower.Network(t.Context(), model, lower.Options{})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	var list []question
	for _, n := range batches {
		in := NewTensor(plan.Inputs[0].DType, n, plan.Inputs[0].Shape)
		for i := range in.U8 {
			in.U8[i] = uint8(rng.Uint32())
		}
		for i := range in.F32 {
			in.F32[i] = float32(rng.NormFloat64())
		}
		want, err := ref.Run(t.Context(), plan, in, nil)
		require.NoError(t, err)
		list = append(list, question{in, want})
	}
	return list
}

// differs says where two outputs are not the same bits.
func differs(got, want Tensor) error {
	for i, v := range want.F32 {
		if math.Float32bits(got.F32[i]) != math.Float32bits(v) {
			return fmt.Errorf("value %d is %v, want %v", i, got.F32[i], v)
		}
	}
	return nil
}

func bundled(t testing.TB, name string) *Model {
	m, err := Bundled(name)
	require.NoError(t, err)
	return m
}

func open(t testing.TB, model *Model, opts Options) *Session {
	s, err := Open(t.Context(), model, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// On every device there is, sixteen goroutines get the bits of the reference.
func TestSameBitsFromAnyGoroutine(t *testing.T) {
	models := map[string]*Model{"binary": binaryNet(), "float": floatNet(), "digits": bundled(t, "digits")}
	for _, device := range Devices() {
		for name, model := range models {
			if name == "digits" && device.Kind == backend.Emulated {
				continue // takes minutes
			}
			asked := questions(t, model, 1, 2, 3, 1, 4)
			for i, opts := range []Options{
				{MaxBatch: 4},
				{MaxBatch: 4, Parallel: 3},
				{MaxBatch: 6, BatchDelay: 50 * time.Microsecond},
				{MaxBatch: 4, BatchDelay: time.Microsecond, Parallel: 2},
			} {
				opts.Device = device.ID
				if device.MaxThreads > 0 {
					opts.Threads = 5 // shares of 5, 2 and 1
				}
				t.Run(fmt.Sprintf("%s/%s/%d", device.ID, name, i), func(t *testing.T) {
					s := open(t, model, opts)
					errs := make([]error, 16)
					var wg sync.WaitGroup
					for g := range errs {
						wg.Go(func() {
							for k := range 2 * len(asked) {
								q := asked[(g+k)%len(asked)]
								out := tensors(s.outputs, q.in.N)
								err := s.Run(t.Context(), out, []Tensor{q.in})
								if err == nil {
									err = differs(out[0], q.want)
								}
								if err != nil {
									errs[g] = fmt.Errorf("goroutine %d, call %d: %w", g, k, err)
									return
								}
							}
						})
					}
					wg.Wait()
					require.NoError(t, errors.Join(errs...))
				})
			}
		}
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	model := binaryNet()
	q := questions(t, model, 2)[0]
	for _, device := range Devices() {
		for _, delay := range []time.Duration{0, time.Microsecond} {
			t.Run(fmt.Sprintf("%s/delay=%v", device.ID, delay), func(t *testing.T) {
				observed := 0
				s := open(t, model, Options{
					Device: device.ID, MaxBatch: 4, BatchDelay: delay, Observe: func(Observation) { observed++ },
				})
				in, out := []Tensor{q.in}, tensors(s.outputs, 2)
				run := func() { require.NoError(t, s.Run(context.Background(), out, in)) }
				run()
				if raceDetector {
					return // it allocates itself
				}
				require.Zero(t, testing.AllocsPerRun(100, run))
				require.Equal(t, 102, observed)
				s.observe = nil
				require.Zero(t, testing.AllocsPerRun(100, run))
				require.NoError(t, differs(out[0], q.want))
			})
		}
	}
}

func TestDescription(t *testing.T) {
	s := open(t, bundled(t, "vehiclenet"), Options{Device: "cpu"})
	require.Equal(t, []IO{{"input", Uint8, Shape{H: 96, W: 96, C: 3}, NHWC, NHWC, []int{96, 96, 3}, 100, nil}}, s.Inputs())
	require.Len(t, s.Outputs(), 1)
	require.Equal(t, Shape{H: 1, W: 1, C: 6}, s.Outputs()[0].Shape)
	require.Equal(t, Float32, s.Outputs()[0].DType)
	require.NotEmpty(t, s.Outputs()[0].Name)
	require.Equal(t, "car", s.Labels()[1])
	require.Equal(t, "cpu", s.Device().ID)
	require.Equal(t, 1, s.MaxBatch())
	require.NotEmpty(t, s.Explain())
	require.NotEmpty(t, s.Explain()[0].Kernel)
	require.Empty(t, open(t, floatNet(), Options{Device: "cpu"}).Labels())
	var ids []string
	for _, d := range Devices() {
		ids = append(ids, d.ID)
	}
	require.Contains(t, ids, "cpu")
}

func TestPredict(t *testing.T) {
	model := bundled(t, "digits")
	q := questions(t, model, 3)[0]
	s := open(t, model, Options{Device: "cpu", MaxBatch: 3})
	out, err := s.Predict(t.Context(), q.in)
	require.NoError(t, err)
	require.Len(t, out, 1)
	require.Equal(t, q.want.F32, out[0].F32)

	for name, in := range map[string][]Tensor{
		"none":      nil,
		"two":       {q.in, q.in},
		"too large": {NewTensor(Uint8, 4, q.in.Shape)},
		"empty":     {{DType: Uint8, Shape: q.in.Shape}},
		"negative":  {{DType: Uint8, N: -1, Shape: q.in.Shape}},
		"short":     {{DType: Uint8, N: 3, Shape: q.in.Shape, U8: q.in.U8[1:]}},
		"type":      {NewTensor(Float32, 1, q.in.Shape)},
		"shape":     {NewTensor(Uint8, 1, Shape{H: 28, W: 28, C: 3})},
	} {
		_, err := s.Predict(t.Context(), in...)
		require.ErrorIs(t, err, ErrShape, name)
	}
	require.ErrorIs(t, s.Run(t.Context(), nil, []Tensor{q.in}), ErrShape)
}

// A batch whose inputs and outputs fit into no memory is an error, and opening takes the memory of
// one image.
func TestOpenCountsInputsAndOutputs(t *testing.T) {
	input := bcnn.Input{Shape: Shape{H: 256, W: 256, C: 4}, DType: Float32}
	model := &Model{Name: "sum", Inputs: []bcnn.Input{input, input}, Layers: []bcnn.Layer{{
		Name: "sum", Op: bcnn.Add{}, Inputs: []int{-1, -2},
	}}}
	for _, delay := range []time.Duration{0, time.Microsecond} {
		opts := Options{Device: "cpu", Threads: 1, MaxBatch: 1 << 16, BatchDelay: delay, Limits: Limits{ArenaBytes: 1 << 36}}
		_, err := Open(t.Context(), model, opts)
		require.ErrorIs(t, err, ErrTooLarge)
		require.ErrorContains(t, err, "the inputs and outputs of 65536 images of 3145728 bytes each")
	}
	before := allocated()
	open(t, model, Options{Device: "cpu", Threads: 1, MaxBatch: 1 << 12, Limits: Limits{ArenaBytes: 1 << 36}})
	require.Less(t, allocated()-before, uint64(1<<30))
}

// allocated is all that was ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestOpenRefuses(t *testing.T) {
	model := bundled(t, "digits")
	for want, opts := range map[string]Options{
		"-1 Runs in parallel":      {Parallel: -1},
		"1025 Runs in parallel":    {Parallel: 1025, BatchDelay: 1, MaxBatch: 2},
		"a delay of -1ns":          {BatchDelay: -1},
		"MaxBatch allows one":      {BatchDelay: 1},
		"a batch of -1 images":     {MaxBatch: -1},
		"-1 threads":               {Threads: -1},
		"abacus":                   {Device: "abacus"},
		"mmx":                      {ISA: "mmx"},
		"a limit is negative":      {Limits: Limits{Layers: -1}},
		"too large for the device": {Limits: Limits{ArenaBytes: 1}},
	} {
		if opts.Device == "" {
			opts.Device = "cpu"
		}
		_, err := Open(t.Context(), model, opts)
		require.ErrorContains(t, err, want)
	}
	_, err := Open(t.Context(), nil, Options{})
	require.EqualError(t, err, "no model")
	//lint:ignore SA1012 that is the point
	_, err = Open(nil, model, Options{})
	require.EqualError(t, err, "no context")
	_, err = Open(t.Context(), &Model{}, Options{})
	require.Error(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ended, model, Options{Device: "cpu"})
	require.ErrorIs(t, err, context.Canceled)
}

func TestContext(t *testing.T) {
	model := bundled(t, "digits")
	q := questions(t, model, 1)[0]
	s := open(t, model, Options{Device: "cpu", Parallel: 1})
	in, out := []Tensor{q.in}, tensors(s.outputs, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Run(ended, out, in), context.Canceled)
	//lint:ignore SA1012 that is the point
	require.EqualError(t, s.Run(nil, out, in), "no context")

	// Somebody else runs, and does not end.
	s.engines.slots <- struct{}{}
	late, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- s.Run(late, out, in) }()
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	<-s.engines.slots
	require.NoError(t, s.Run(t.Context(), out, in))
}

func TestClose(t *testing.T) {
	model := bundled(t, "digits")
	q := questions(t, model, 1)[0]
	for _, delay := range []time.Duration{0, time.Hour} {
		s, err := Open(t.Context(), model, Options{Device: "cpu", Parallel: 1, MaxBatch: 2, BatchDelay: delay})
		require.NoError(t, err)
		in, out := []Tensor{q.in}, tensors(s.outputs, 1)

		// One call runs, another waits: for its turn, or in the queue.
		if s.batcher != nil {
			s.batcher.expect(2)
		}
		running, err := s.engines.acquire(t.Context())
		require.NoError(t, err)
		s.engines.slots <- struct{}{}
		waiting := make(chan error)
		go func() { waiting <- s.Run(t.Context(), out, in) }()
		closed := make(chan error)
		go func() { closed <- s.Close() }()
		if delay == 0 {
			require.ErrorIs(t, <-waiting, ErrClosed)
		}
		<-s.engines.done
		_, err = s.engines.checkAndRun(t.Context(), out, in)
		require.ErrorIs(t, err, ErrClosed)
		select {
		case <-closed:
			require.Fail(t, "closed while a call runs")
		default:
		}
		require.NoError(t, running.Run(t.Context(), out, in))
		require.NoError(t, differs(out[0], q.want))
		s.engines.release(running)
		<-s.engines.slots
		require.NoError(t, <-closed)
		if delay > 0 {
			require.ErrorIs(t, <-waiting, ErrClosed)
		}

		require.ErrorIs(t, s.Run(t.Context(), out, in), ErrClosed)
		_, err = s.Predict(t.Context(), q.in)
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, s.Close())
		require.Empty(t, s.Explain())
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		threads, parallel int
		want              []int
	}{
		{1, 1, []int{1}},
		{1, 8, []int{1}},
		{2, 2, []int{2, 1}},
		{16, 16, []int{16, 8, 4, 2, 1}},
		{16, 1, []int{16}},
		{16, 2, []int{16, 8}},
		{16, 3, []int{16, 8, 4}},
		{6, 6, []int{6, 3, 1}},
		{5, 100, []int{5, 2, 1}},
	} {
		require.Equal(t, c.want, levels(c.threads, c.parallel), "%d threads for %d", c.threads, c.parallel)
	}
}

// A caller gets its share of the threads, and engines are made as they are needed and
// then kept.
func TestSharesOfThreads(t *testing.T) {
	s := open(t, bundled(t, "digits"), Options{Device: "cpu", Threads: 6})
	p := s.engines
	acquire := func(threads, engines int) *engine {
		e, err := p.acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, threads, p.levels[e.level])
		require.Len(t, p.engines, engines)
		return e
	}
	require.Equal(t, 6, cap(p.slots))
	for range 2 { // the second time, all are there
		made := len(p.engines)
		of := func(n int) int { return max(n, made) }
		var held []*engine
		for i, threads := range []int{6, 3, 1, 1, 1, 1} {
			held = append(held, acquire(threads, of(i+1)))
		}
		p.release(held[0])
		p.release(held[5])
		again := acquire(1, of(6)) // five run
		require.Same(t, held[5], again)
		p.release(again)
		for _, e := range held[1:5] {
			p.release(e)
		}
		first := acquire(6, of(6))
		require.Same(t, held[0], first)
		p.release(first)
	}
	require.Zero(t, p.active)

	// One that cannot be made is an error, and nobody runs.
	p.opts.Limits.ArenaBytes = 1
	p.free[1] = nil
	first := acquire(6, 6)
	_, err := p.acquire(t.Context())
	require.ErrorIs(t, err, ErrTooLarge)
	require.Equal(t, 1, p.active)
	p.release(first)
}
