package backend

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// recorder is a device that notes what it is asked for. Its engines do what driver says
// that they may rely on, and fail the test where they are called otherwise.
type recorder struct {
	t    testing.TB
	info driver.Info
	// What it does.
	compileErr, runErr, readErr, closeErr error
	during                                func() // Run, and each step of RunSteps
	// What it was asked for.
	configs      []driver.Config
	plans        []*plan.Plan
	runs, closes int
	reads        []int
	batches      []int
	busy         atomic.Int32
}

func (r *recorder) Info() driver.Info { return r.info }

func (r *recorder) Compile(_ context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	r.configs, r.plans = append(r.configs, c), append(r.plans, plan)
	if r.compileErr != nil {
		return nil, r.compileErr
	}
	return &recordedEngine{recorder: r, plan: plan, config: c}, nil
}

type recordedEngine struct {
	*recorder
	plan   *plan.Plan
	config driver.Config
	closed bool
	n      int // images of the run in progress
}

// enter makes sure that one goroutine at a time uses an engine that has not been closed.
func (e *recordedEngine) enter() (leave func()) {
	require.False(e.t, e.closed, "a closed engine is used")
	require.Equal(e.t, int32(1), e.busy.Add(1), "two goroutines use the engine")
	return func() { e.busy.Add(-1) }
}

// check makes sure that the tensors are those of the plan.
func (e *recordedEngine) check(out, in []bcnn.Tensor) {
	require.Len(e.t, in, 1)
	require.Len(e.t, out, 1)
	require.NoError(e.t, in[0].Check(e.plan.Inputs[0].DType, e.plan.Inputs[0].Shape))
	require.NoError(e.t, out[0].Check(bcnn.Float32, e.plan.OutputShape()))
	require.Equal(e.t, in[0].N, out[0].N)
	require.LessOrEqual(e.t, in[0].N, e.config.MaxBatch)
	e.runs, e.n = e.runs+1, in[0].N
	e.batches = append(e.batches, in[0].N)
}

func (e *recordedEngine) Run(_ context.Context, out, in []bcnn.Tensor) error {
	defer e.enter()()
	require.False(e.t, e.config.Stepwise)
	e.check(out, in)
	if e.during != nil {
		e.during()
	}
	return e.runErr
}

func (e *recordedEngine) RunSteps(_ context.Context, out, in []bcnn.Tensor, after func(int, time.Duration) error) error {
	defer e.enter()()
	require.True(e.t, e.config.Stepwise)
	e.check(out, in)
	for i := range e.plan.Steps {
		if e.during != nil {
			e.during()
		}
		if err := after(i, time.Duration(i+1)); err != nil {
			return err
		}
	}
	return e.runErr
}

// Read gives every element of a step's tensor the number of the step.
func (e *recordedEngine) Read(step int, t bcnn.Tensor) error {
	of := e.plan.Tensors[e.plan.Steps[step].Out]
	require.NoError(e.t, t.Check(of.DType, of.Shape))
	require.Equal(e.t, e.n, t.N)
	e.reads = append(e.reads, step)
	for i := range t.Words {
		t.Words[i] = uint64(step)
	}
	for i := range t.F32 {
		t.F32[i] = float32(step)
	}
	return e.readErr
}

func (e *recordedEngine) Explain() []driver.Choice {
	return []driver.Choice{{Kernel: "first"}, {Kernel: "second"}}
}

func (e *recordedEngine) Close() error {
	defer e.enter()()
	e.closed = true
	e.closes++
	return e.closeErr
}

// meter is a recorder that measures.
type meter struct{ *recorder }

func (m meter) Peak(c driver.Config) (float64, error) {
	m.configs = append(m.configs, c)
	return 5, m.runErr
}

func (m meter) Bandwidth(c driver.Config, size int64) (float64, error) {
	m.configs = append(m.configs, c)
	return float64(size), m.runErr
}

// newRecorder has a choice of everything.
func newRecorder(t testing.TB) *recorder {
	return &recorder{t: t, info: driver.Info{
		ID: "fake:3", Kind: driver.DiscreteGPU, Memory: 1 << 20, MaxBatch: 8, MaxThreads: 6,
		ISAs: []string{"good", "plain"}, Kernels: []string{"patches", "direct"},
	}}
}

// twoSteps makes bits of bytes, and float32 values of these.
func twoSteps() *plan.Plan {
	s := bcnn.Shape{H: 2, W: 3, C: 70}
	return &plan.Plan{
		Name:   "two",
		Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: s}},
		Tensors: []plan.Tensor{
			{Name: "image", DType: bcnn.Uint8, Shape: s}, {Name: "bits", DType: bcnn.Bits, Shape: s}, {Name: "values", DType: bcnn.Float32, Shape: s},
		},
		Steps: []plan.Step{
			{Name: "binarize", In: []int{0}, Out: 1, Op: &plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &plan.Threshold{I32: make([]int32, s.C)}}},
			{Name: "affine", In: []int{1}, Out: 2, Op: &plan.Affine{}},
		},
		Outputs: []int{2},
	}
}

// compiled compiles twoSteps on a device.
func compiled(t testing.TB, d driver.Device, opts Options) *Executable {
	t.Helper()
	exe, err := NewDevice(d).Compile(t.Context(), twoSteps(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { exe.Close() })
	return exe
}

func tensors(n int) (out, in []bcnn.Tensor) {
	p := twoSteps()
	return []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, n, p.OutputShape())}, []bcnn.Tensor{bcnn.NewTensor(bcnn.Uint8, n, p.Inputs[0].Shape)}
}

// quiet is a recorder whose engines do nothing, so that what they allocate is not
// counted.
type quiet struct{ *recorder }

func (q quiet) Compile(ctx context.Context, plan *plan.Plan, c driver.Config) (driver.Engine, error) {
	e, err := q.recorder.Compile(ctx, plan, c)
	return quietEngine{e, len(plan.Steps)}, err
}

type quietEngine struct {
	driver.Engine
	steps int
}

func (quietEngine) Run(context.Context, []bcnn.Tensor, []bcnn.Tensor) error { return nil }

func (q quietEngine) RunSteps(_ context.Context, _, _ []bcnn.Tensor, after func(int, time.Duration) error) error {
	for i := range q.steps {
		if err := after(i, 0); err != nil {
			return err
		}
	}
	return nil
}

func (quietEngine) Read(int, bcnn.Tensor) error { return nil }
