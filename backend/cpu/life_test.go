package cpu

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// smallNet has the shape of VehicleNet, smaller, and work for several threads.
func smallNet(seed uint64) *planner {
	p := newPlanner(seed, input(bcnn.Uint8, 32, 32, 3))
	pool := &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	five := bcnn.Window{KH: 5, KW: 5, Pad: bcnn.Padding{Top: 2, Left: 2, Bottom: 2, Right: 2}}
	p.conv(convOptions{window: five, out: 32, pool: pool})
	p.conv(convOptions{window: five, out: 32, pool: pool})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 8, KW: 8}, out: 100})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 1, KW: 1}, out: 6, float: true})
	return p
}

// floatNet has every kind of step that smallNet lacks.
func floatNet(seed uint64) *planner {
	p := newPlanner(seed, input(bcnn.Float32, 12, 12, 5))
	s := bcnn.Shape{H: 12, W: 12, C: 5}
	p.step("affine", &plan.Affine{Scale: p.floats(5), Shift: p.floats(5)}, bcnn.Float32, s)
	p.step("add", &plan.Add{Activation: plan.Activation{Kind: plan.ActivationReLU}}, bcnn.Float32, s, 0)
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 20, float: true})
	p.sign()
	p.step("pool", &plan.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}, bcnn.Bits, bcnn.Shape{H: 5, W: 5, C: 20})
	p.step("flatten", &plan.Flatten{}, bcnn.Bits, bcnn.Shape{H: 1, W: 1, C: 500})
	p.conv(convOptions{dense: true, window: bcnn.Window{KH: 1, KW: 1}, out: 9, float: true})
	return p
}

func binarizedNet(seed uint64) *planner {
	p := newPlanner(seed, input(bcnn.Uint8, 20, 20, 3))
	p.step("lbp", &plan.Binarize{Scheme: bcnn.SchemeLBP}, bcnn.Bits, bcnn.Shape{H: 20, W: 20, C: 3})
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1}}, out: 70, padValue: 1})
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3}, out: 70, groups: 7, float: true})
	return p
}

var nets = map[string]func(uint64) *planner{"small": smallNet, "float": floatNet, "binarized": binarizedNet}

// compiled is an executable with a batch for it.
type compiled struct {
	*backend.Executable
	in, out, want bcnn.Tensor
}

func compileFor(t testing.TB, p *planner, opts backend.Options, n int) compiled {
	plan := p.done()
	opts.MaxBatch = max(opts.MaxBatch, n)
	exe, err := Device().Compile(t.Context(), plan, opts)
	require.NoError(t, err)
	t.Cleanup(func() { exe.Close() })
	c := compiled{Executable: exe, in: p.input(n), out: bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape())}
	c.want, err = ref.Run(t.Context(), plan, c.in, nil)
	require.NoError(t, err)
	return c
}

func (c compiled) run(ctx context.Context) error {
	return c.Run(ctx, []bcnn.Tensor{c.out}, []bcnn.Tensor{c.in})
}

func TestCloseLeavesNoGoroutines(t *testing.T) {
	// Other tests' executables must be gone first: Cleanup closes them.
	before := runtime.NumGoroutine()
	for range 50 {
		p := smallNet(1)
		exe, err := Device().Compile(t.Context(), p.done(), backend.Options{Threads: 5})
		require.NoError(t, err)
		out := bcnn.NewTensor(bcnn.Float32, 1, p.plan.OutputShape())
		require.NoError(t, exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{p.input(1)}))
		require.NoError(t, exe.Close())
	}
	// A goroutine is counted until a moment after it has said that it is done.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

func TestFailedCompileLeavesNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	_, err := Device().Compile(t.Context(), &plan.Plan{}, backend.Options{Threads: 8})
	require.Error(t, err)
	require.LessOrEqual(t, runtime.NumGoroutine(), before) // those of other tests may end
}
