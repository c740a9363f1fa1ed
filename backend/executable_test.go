package backend

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

var errBroken = errors.New("broken")

func TestExecutableDescribesItself(t *testing.T) {
	exe := compiled(t, newRecorder(t), Options{MaxBatch: 3})
	p := twoSteps()
	require.Equal(t, p.Tensors[:1], exe.Inputs())
	require.Equal(t, p.Tensors[2:], exe.Outputs())
	require.Equal(t, 3, exe.MaxBatch())
	require.Equal(t, []Choice{{Kernel: "first"}, {Kernel: "second"}}, exe.Explain())
	exe.Inputs()[0].Name, exe.Explain()[0].Kernel = "mine", "mine"
	require.Equal(t, "image", exe.Inputs()[0].Name)
	require.Equal(t, "first", exe.Explain()[0].Kernel)
}

func TestRunHandsTheTensorsOver(t *testing.T) {
	r := newRecorder(t)
	exe := compiled(t, r, Options{MaxBatch: 3})
	for _, n := range []int{1, 3, 2} {
		out, in := tensors(n)
		require.NoError(t, exe.Run(t.Context(), out, in))
	}
	require.Equal(t, []int{1, 3, 2}, r.batches)
	// None of them is kept.
	require.Equal(t, make([]bcnn.Tensor, 1), exe.in)
	require.Equal(t, make([]bcnn.Tensor, 1), exe.out)

	r.runErr = errBroken
	out, in := tensors(1)
	err := exe.Run(t.Context(), out, in)
	require.EqualError(t, err, "fake:3: run: broken")
	require.ErrorIs(t, err, errBroken)
}

// TestRunDoesNotAllocate: neither Run nor the slices that it is called with.
func TestRunDoesNotAllocate(t *testing.T) {
	for name, opts := range map[string]Options{
		"plain":            {MaxBatch: 2},
		"timed and tapped": {MaxBatch: 2, Timed: func(int, string, time.Duration) {}, Tap: func(int, string, bcnn.Tensor) {}},
	} {
		exe := compiled(t, quiet{newRecorder(t)}, opts)
		outs, ins := tensors(2)
		out, in, ctx := outs[0], ins[0], t.Context()
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if exe.Run(ctx, []bcnn.Tensor{out}, []bcnn.Tensor{in}) != nil {
				t.Fail()
			}
		}), name)
	}
}

func TestRunRefusesTensors(t *testing.T) {
	r := newRecorder(t)
	exe := compiled(t, r, Options{MaxBatch: 2})
	out, in := tensors(2)
	for _, c := range []struct {
		want    string
		out, in []bcnn.Tensor
	}{
		{"inputs: got 0, want 1; outputs: got 0, want 1", nil, nil},
		{"inputs: got 1, want 1; outputs: got 0, want 1", nil, in},
		{"inputs: got 2, want 1; outputs: got 1, want 1", out, append(in[:1:1], in[0])},
		{"batch of 3 images exceeds MaxBatch (2)", out, []bcnn.Tensor{{N: 3}}},
		{"image: tensor is DType(0)", out, []bcnn.Tensor{{}}},
		{"image: batch size 0", out, []bcnn.Tensor{{DType: bcnn.Uint8, Shape: in[0].Shape}}},
		{"image: batch size -1", out, []bcnn.Tensor{{DType: bcnn.Uint8, Shape: in[0].Shape, N: -1}}},
		{"image: tensor of 2×2×3×70 uint8 has 0 elements", out, []bcnn.Tensor{{DType: bcnn.Uint8, Shape: in[0].Shape, N: 2}}},
		{"image: tensor is float32", out, out},
		{"values: tensor is uint8", in, in},
		{"values: 1 images, and the first input has 2", []bcnn.Tensor{out[0].Images(0, 1)}, in},
		{"values: tensor is float32 2×3×71", []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 2, bcnn.Shape{H: 2, W: 3, C: 71})}, in},
	} {
		err := exe.Run(t.Context(), c.out, c.in)
		require.ErrorIs(t, err, ErrShape)
		require.ErrorContains(t, err, "fake:3: run: wrong tensor: ")
		require.ErrorContains(t, err, c.want)
	}
	require.Zero(t, r.runs)
	require.NoError(t, exe.Run(t.Context(), out, in))
}

// TestRunRefusesPadding: bits that a caller packs must be 0 behind the channels.
func TestRunRefusesPadding(t *testing.T) {
	plan := twoSteps()
	plan.Inputs[0].DType, plan.Tensors, plan.Steps = bcnn.Bits, plan.Tensors[1:], plan.Steps[1:]
	plan.Steps[0].In, plan.Steps[0].Out, plan.Outputs[0] = []int{0}, 1, 1
	r := newRecorder(t)
	exe, err := NewDevice(r).Compile(t.Context(), plan, Options{MaxBatch: 2})
	require.NoError(t, err)
	out, _ := tensors(2)
	in := []bcnn.Tensor{bcnn.NewTensor(bcnn.Bits, 2, plan.Inputs[0].Shape)}
	require.NoError(t, exe.Run(t.Context(), out, in))
	in[0].Words[3] = 1 << 6
	require.ErrorIs(t, exe.Run(t.Context(), out, in), ErrShape)
	require.Equal(t, 1, r.runs)
}

// A batch that has been checked runs on every executable of the plan that takes so many images, and on
// no other.
func TestRunBatch(t *testing.T) {
	r, p := newRecorder(t), twoSteps()
	compile := func(p *plan.Plan, most int) *Executable {
		exe, err := NewDevice(r).Compile(t.Context(), p, Options{MaxBatch: most})
		require.NoError(t, err)
		return exe
	}
	exe, other, small, foreign := compile(p, 2), compile(p, 3), compile(p, 1), compile(twoSteps(), 2)
	out, in := tensors(2)
	batch, err := exe.Check(out, in)
	require.NoError(t, err)
	require.Equal(t, 2, batch.Images())
	require.NoError(t, exe.RunBatch(t.Context(), batch))
	require.NoError(t, other.RunBatch(t.Context(), batch))
	require.Equal(t, 2, r.runs)
	for _, c := range []struct {
		exe   *Executable
		batch Batch
		want  string
	}{
		{small, batch, "fake:3: run: wrong tensor: batch of 2 images exceeds MaxBatch (1)"},
		{foreign, batch, "fake:3: run: wrong tensor: the batch has not been checked for this plan"},
		{exe, Batch{}, "fake:3: run: wrong tensor: the batch has not been checked for this plan"},
	} {
		err := c.exe.RunBatch(t.Context(), c.batch)
		require.ErrorIs(t, err, ErrShape)
		require.EqualError(t, err, c.want)
	}
	require.Equal(t, 2, r.runs)

	require.NoError(t, exe.Close())
	_, err = exe.Check(out, in)
	require.NoError(t, err)
	require.ErrorIs(t, exe.RunBatch(t.Context(), batch), ErrClosed)
	for _, none := range []*Executable{nil, {}} {
		_, err := none.Check(out, in)
		require.ErrorIs(t, err, ErrClosed)
		require.ErrorIs(t, none.RunBatch(t.Context(), batch), ErrClosed)
	}
	require.NoError(t, other.Close())
	require.NoError(t, small.Close())
	require.NoError(t, foreign.Close())
}

func TestTimedAndTapped(t *testing.T) {
	r := newRecorder(t)
	type call struct {
		step int
		name string
	}
	var timed, tapped []call
	exe := compiled(t, r, Options{MaxBatch: 3,
		Timed: func(step int, name string, d time.Duration) {
			timed = append(timed, call{step, name})
			require.Equal(t, time.Duration(step+1), d)
		},
		Tap: func(step int, name string, x bcnn.Tensor) {
			require.Len(t, timed, step+1, "Timed comes first")
			tapped = append(tapped, call{step, name})
			of := twoSteps().Tensors[step+1]
			require.NoError(t, x.Check(of.DType, of.Shape))
			require.Equal(t, 2, x.N)
			for _, v := range x.F32 {
				require.Equal(t, float32(step), v)
			}
			for _, v := range x.Words {
				require.Equal(t, uint64(step), v)
			}
		},
	})
	out, in := tensors(2)
	require.NoError(t, exe.Run(t.Context(), out, in))
	want := []call{{0, "binarize"}, {1, "affine"}}
	require.Equal(t, want, timed)
	require.Equal(t, want, tapped)
	require.Equal(t, []int{0, 1}, r.reads)

	r.readErr = errBroken
	require.EqualError(t, exe.Run(t.Context(), out, in), "fake:3: run: step 0 (binarize): broken")

	// Whoever only times reads nothing.
	r = newRecorder(t)
	steps := 0
	exe = compiled(t, r, Options{Timed: func(int, string, time.Duration) { steps++ }})
	out, in = tensors(1)
	require.NoError(t, exe.Run(t.Context(), out, in))
	require.Equal(t, 2, steps)
	require.Empty(t, r.reads)
}

func TestRunLooksAtItsContext(t *testing.T) {
	r := newRecorder(t)
	exe := compiled(t, r, Options{})
	out, in := tensors(1)
	var none context.Context
	require.EqualError(t, exe.Run(none, out, in), "fake:3: run: no context")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, exe.Run(ctx, out, in), context.Canceled)
	require.Zero(t, r.runs)

	// Between steps, in place of the engine.
	ctx, cancel = context.WithCancel(t.Context())
	steps := 0
	exe = compiled(t, r, Options{Timed: func(int, string, time.Duration) {
		steps++
		cancel()
	}})
	require.ErrorIs(t, exe.Run(ctx, out, in), context.Canceled)
	require.Equal(t, 1, steps)
	require.NoError(t, exe.Run(t.Context(), out, in))
}

// TestWaitingForTheEngine: who waits for another run goes away when the context ends,
// and Close waits, too.
func TestWaitingForTheEngine(t *testing.T) {
	r := newRecorder(t)
	exe := compiled(t, r, Options{})
	started, release := make(chan struct{}), make(chan struct{})
	r.during = func() {
		close(started)
		<-release
	}
	ran, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		out, in := tensors(1)
		ran <- exe.Run(t.Context(), out, in)
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	out, in := tensors(1)
	require.ErrorIs(t, exe.Run(ctx, out, in), context.Canceled)
	require.Equal(t, 1, r.runs)
	go func() { closed <- exe.Close() }()
	select {
	case <-closed:
		t.Fatal("Close returned during a run")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-ran)
	require.NoError(t, <-closed)
	require.Equal(t, 1, r.closes)
}

func TestConcurrentRuns(t *testing.T) {
	r := newRecorder(t) // which fails where two of them meet
	exe := compiled(t, r, Options{MaxBatch: 2})
	var group sync.WaitGroup
	const callers, rounds = 8, 200
	for i := range callers {
		group.Add(1)
		go func() {
			defer group.Done()
			out, in := tensors(1 + i%2)
			for range rounds {
				if err := exe.Run(t.Context(), out, in); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	require.Equal(t, callers*rounds, r.runs)
}

func TestClose(t *testing.T) {
	r := newRecorder(t)
	exe := compiled(t, r, Options{})
	r.closeErr = errBroken
	require.EqualError(t, exe.Close(), "fake:3: close: broken")
	require.NoError(t, exe.Close())
	require.Equal(t, 1, r.closes)
	out, in := tensors(1)
	err := exe.Run(t.Context(), out, in)
	require.ErrorIs(t, err, ErrClosed)
	require.EqualError(t, err, "fake:3: run: executable is closed")
	require.Zero(t, r.runs)
	require.Len(t, exe.Inputs(), 1)

	// What Compile has not made is closed.
	for _, none := range []*Executable{nil, {}} {
		require.ErrorIs(t, none.Run(t.Context(), out, in), ErrClosed)
		require.NoError(t, none.Close())
	}
}

// TestPanickingCallback: an executable stays usable when Timed or Tap panic.
func TestPanickingCallback(t *testing.T) {
	first := true
	exe := compiled(t, newRecorder(t), Options{Timed: func(int, string, time.Duration) {
		if first {
			first = false
			panic("mine")
		}
	}})
	out, in := tensors(1)
	require.Panics(t, func() { _ = exe.Run(t.Context(), out, in) })
	require.NoError(t, exe.Run(t.Context(), out, in))
}
