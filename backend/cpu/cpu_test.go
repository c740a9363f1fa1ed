package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// requireSame compares tensors bit by bit.
func requireSame(t testing.TB, want, got bcnn.Tensor, what string) {
	t.Helper()
	require.NoError(t, got.Check(want.DType, want.Shape), what)
	require.Equal(t, want.N, got.N, what)
	require.Equal(t, want.Words, got.Words, what)
	for i, v := range want.F32 {
		if math.Float32bits(v) != math.Float32bits(got.F32[i]) {
			require.Equal(t, v, got.F32[i], "%s: value %d (%v)", what, i, want.Shape)
			require.Equal(t, math.Float32bits(v), math.Float32bits(got.F32[i]), "%s: value %d (%v)", what, i, want.Shape)
		}
	}
}

// requireOutputs runs a compiled plan and compares its outputs with those that are wanted.
func requireOutputs(t *testing.T, e *executable, want []bcnn.Tensor, in bcnn.Tensor, what string) {
	t.Helper()
	var out []bcnn.Tensor
	for _, o := range want {
		out = append(out, bcnn.NewTensor(bcnn.Float32, o.N, o.Shape))
	}
	require.NoError(t, e.Run(context.Background(), out, []bcnn.Tensor{in}))
	for k := range want {
		requireSame(t, want[k], out[k], fmt.Sprintf("%s, output %d", what, k))
	}
}

// requireReference runs a plan for batches of 1 and maxBatch images and
// compares every intermediate with the reference.
func requireReference(t testing.TB, p *planner, opts backend.Options) {
	t.Helper()
	plan := p.done()
	if opts.MaxBatch == 0 {
		opts.MaxBatch = 3
	}
	whole := p.input(opts.MaxBatch)
	var wants []bcnn.Tensor
	last, err := ref.Run(t.Context(), plan, whole, func(_ int, _ string, x bcnn.Tensor) { wants = append(wants, x) })
	require.NoError(t, err)
	for _, n := range []int{opts.MaxBatch, 1} {
		// The last images, of which the reference is what it is among others.
		images := func(x bcnn.Tensor) bcnn.Tensor { return x.Images(x.N-n, n) }
		in, final := images(whole), images(last)
		var want []bcnn.Tensor
		for _, x := range wants {
			want = append(want, images(x))
		}

		taps := 0
		opts.Tap = func(step int, name string, got bcnn.Tensor) {
			require.Equal(t, taps, step)
			require.Equal(t, plan.Steps[step].Name, name)
			requireSame(t, want[step], got, fmt.Sprintf("step %d, %s", step, describe(plan.Steps[step].Op)))
			taps++
		}
		tapped, err := Device().Compile(t.Context(), plan, opts)
		require.NoError(t, err)
		opts.Tap = nil
		plain, err := Device().Compile(t.Context(), plan, opts)
		require.NoError(t, err)

		out := bcnn.NewTensor(bcnn.Float32, n, plan.OutputShape())
		require.NoError(t, tapped.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}))
		require.Equal(t, len(plan.Steps), taps)
		requireSame(t, final, out, "output")
		for range 2 {
			clear(out.F32)
			require.NoError(t, plain.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}))
			requireSame(t, final, out, "output without tap")
		}
		require.NoError(t, tapped.Close())
		require.NoError(t, plain.Close())
	}
}

// describe prints an operation without its weights, which may be millions.
func describe(op plan.Op) string {
	if c, ok := op.(*plan.Conv); ok {
		return fmt.Sprintf("%+v → %d, %d groups, padded with %d, pool %+v", c.Window, c.Out, c.Groups, c.PadValue, c.Pool)
	}
	return fmt.Sprintf("%+.300v", op)
}

// forEach runs a test for every instruction set, with one thread and with more
// than the machine may have. The race detector, under which the reference
// takes minutes, sees nothing new with one thread, nor with a third set of
// kernels: the best and the last take all ways through the executor. So does
// go test -short.
func forEach(t *testing.T, f func(t *testing.T, opts backend.Options)) {
	isas, numbers := sets.Names(), []int{1, 3}
	if raceEnabled || testing.Short() {
		isas, numbers = ends(isas), numbers[1:]
	}
	for _, isa := range isas {
		for _, threads := range numbers {
			t.Run(fmt.Sprintf("%s/threads=%d", isa, threads), func(t *testing.T) {
				f(t, backend.Options{ISA: isa, Threads: threads})
			})
		}
	}
}

// ends returns the first and the last of the sets, which short tests take.
func ends(isas []string) []string { return slices.Compact([]string{isas[0], isas[len(isas)-1]}) }

func TestRandomPlans(t *testing.T) {
	forEach(t, func(t *testing.T, opts backend.Options) {
		for seed := range uint64(60) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				requireReference(t, randomPlan(seed), opts)
			})
		}
	})
}

// A plan may pad levels with a byte above them all, of which the products do not fit where
// those of the levels do.
func TestZeroPointAboveLevels(t *testing.T) {
	for _, isa := range sets.Names() {
		for i, weight := range []int8{7, 100, -128} {
			p := newPlanner(1, input(bcnn.Float32, 4, 5, 16))
			p.levels(16, bcnn.Uint8)
			p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}, out: 33, float: true, raw: true, int8: 7})
			conv := p.plan.Steps[1].Op.(*plan.Conv)
			conv.ZeroPoint = 255
			for k := range conv.Int8 {
				conv.Int8[k] = weight
			}
			t.Run(fmt.Sprint(isa, i), func(t *testing.T) { requireReference(t, p, backend.Options{ISA: isa, Threads: 1}) })
		}
	}
}

func FuzzRandomPlan(f *testing.F) {
	for i := range sets.Names() {
		f.Add(uint64(1), uint8(4*i+1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, seed uint64, threads, batch uint8) {
		isas := sets.Names()
		requireReference(t, randomPlan(seed), backend.Options{
			ISA: isas[int(threads)/4%len(isas)], Threads: 1 + int(threads%4), MaxBatch: 1 + int(batch%4),
		})
	})
}

// TestLargeSteps has enough work for tiles of rows and of channels.
func TestLargeSteps(t *testing.T) {
	square := func(k int) bcnn.Window { return bcnn.Window{KH: k, KW: k} }
	same := func(k int) bcnn.Window {
		w := square(k)
		w.Pad = bcnn.Padding{Top: k / 2, Left: k / 2, Bottom: k / 2, Right: k / 2}
		return w
	}
	pool := &bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}
	plans := map[string]func() *planner{
		"bytes 5x5": func() *planner {
			p := newPlanner(1, input(bcnn.Uint8, 50, 41, 3))
			p.conv(convOptions{window: same(5), out: 33, pool: pool})
			return p
		},
		"bytes, more taps than 16 bits hold": func() *planner {
			p := newPlanner(2, input(bcnn.Uint8, 12, 12, 31))
			p.conv(convOptions{window: same(7), out: 5, float: true})
			return p
		},
		"bits, densely packed": func() *planner {
			p := newPlanner(3, input(bcnn.Uint8, 40, 37, 32))
			p.sign()
			p.conv(convOptions{window: same(5), out: 70, pool: pool})
			return p
		},
		"bits in place": func() *planner {
			p := newPlanner(4, input(bcnn.Uint8, 30, 21, 64))
			p.sign()
			p.conv(convOptions{window: square(3), out: 130})
			return p
		},
		"bits in place with a border": func() *planner {
			p := newPlanner(5, input(bcnn.Uint8, 30, 21, 128))
			p.sign()
			p.conv(convOptions{window: same(3), out: 64, pool: pool})
			return p
		},
		"more blocks of channels than rows": func() *planner {
			p := newPlanner(6, input(bcnn.Uint8, 2, 9, 256))
			p.sign()
			p.conv(convOptions{window: same(3), out: 500, pool: pool})
			return p
		},
		"dense": func() *planner {
			p := newPlanner(7, input(bcnn.Uint8, 9, 9, 100))
			p.sign()
			p.conv(convOptions{dense: true, window: square(9), out: 300})
			p.conv(convOptions{dense: true, window: square(1), out: 10, float: true})
			return p
		},
		"depthwise": func() *planner {
			p := newPlanner(8, input(bcnn.Uint8, 10, 10, 70))
			p.sign()
			p.conv(convOptions{window: same(3), out: 70, groups: 70, float: true})
			p.conv(convOptions{window: same(3), out: 70, groups: 70})
			return p
		},
		"depthwise with strides, dilation and pooling": func() *planner {
			p := newPlanner(11, input(bcnn.Uint8, 23, 19, 130))
			p.sign()
			w := same(5)
			w.StrideW, w.DilationH = 2, 2
			p.conv(convOptions{window: w, out: 130, groups: 130, pool: pool})
			p.conv(convOptions{window: same(3), out: 130, groups: 130, padValue: -1, pool: pool})
			return p
		},
		"depthwise float": func() *planner {
			p := newPlanner(15, input(bcnn.Float32, 13, 14, 37))
			w := same(3)
			w.DilationW, w.StrideH = 2, 2
			p.conv(convOptions{window: w, out: 37, groups: 37, float: true, end: plan.ActivationReLU})
			p.conv(convOptions{window: same(3), out: 74, groups: 37})
			return p
		},
		"groups of whole blocks": func() *planner {
			p := newPlanner(12, input(bcnn.Uint8, 12, 11, 96))
			p.sign()
			p.conv(convOptions{window: same(3), out: 192, groups: 3, pool: pool})
			p.conv(convOptions{window: same(3), out: 64})
			p.conv(convOptions{window: same(3), out: 128, groups: 2}) // two in a word
			p.conv(convOptions{window: same(3), out: 128, groups: 2, float: true})
			return p
		},
		"dilation": func() *planner {
			p := newPlanner(13, input(bcnn.Uint8, 20, 21, 70))
			p.sign()
			w := same(3)
			w.DilationH, w.DilationW = 3, 2
			p.conv(convOptions{window: w, out: 64})
			w.DilationW, w.StrideW, w.StrideH = 3, 2, 2
			p.conv(convOptions{window: w, out: 40})
			return p
		},
		"joined rows": func() *planner {
			p := newPlanner(14, input(bcnn.Uint8, 40, 41, 3))
			p.sign()
			p.conv(convOptions{window: same(5), out: 12})
			w := same(5)
			w.DilationW, w.StrideH, w.StrideW = 2, 2, 1
			p.conv(convOptions{window: w, out: 16})
			p.conv(convOptions{window: same(3), out: 1})
			w = same(5)
			w.DilationH, w.StrideH = 2, 2
			p.conv(convOptions{window: w, out: 33})
			return p
		},
		"float": func() *planner {
			p := newPlanner(9, input(bcnn.Float32, 20, 20, 5))
			p.conv(convOptions{window: same(3), out: 70, float: true, end: plan.ActivationReLU})
			p.step("pool", &plan.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}, bcnn.Float32, bcnn.Shape{H: 10, W: 10, C: 70})
			p.conv(convOptions{dense: true, window: square(10), out: 200})
			return p
		},
		"element by element": func() *planner {
			p := newPlanner(10, input(bcnn.Float32, 64, 64, 20))
			s := bcnn.Shape{H: 64, W: 64, C: 20}
			p.step("affine", &plan.Affine{Scale: p.floats(20), Shift: p.floats(20)}, bcnn.Float32, s)
			p.step("add", &plan.Add{Activation: plan.Activation{Kind: plan.ActivationReLU}}, bcnn.Float32, s, 0)
			p.sign()
			p.step("pool", &plan.MaxPool{Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1,
				Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}}, bcnn.Bits, s)
			return p
		},
	}
	plans["means, products and channels"] = func() *planner {
		p := newPlanner(11, input(bcnn.Float32, 64, 60, 20))
		s := bcnn.Shape{H: 64, W: 60, C: 20}
		p.step("affine", &plan.Affine{Scale: p.floats(20), Shift: p.floats(20), Activation: p.activation(plan.ActivationPReLU, 20)}, bcnn.Float32, s)
		p.step("add", &plan.Add{Activation: p.activation(plan.ActivationPReLU, 20)}, bcnn.Float32, s, 0)
		p.step("mean", &plan.AvgPool{Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1,
			Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}}, bcnn.Float32, s)
		p.step("mul", &plan.Pair{}, bcnn.Float32, s, 1)
		p.step("min", &plan.Pair{Kind: plan.PairMin}, bcnn.Float32, s, 1)
		p.step("mask", &plan.Pair{Kind: plan.PairMask}, bcnn.Float32, s, 1)
		both := s
		both.C = 40
		p.step("concat", &plan.Concat{}, bcnn.Float32, both, 2)
		index := make([]int32, 70)
		for i := range index {
			index[i] = int32(i*7%41) - 1
		}
		both.C = 70
		p.step("channels", &plan.Channels{Index: index}, bcnn.Float32, both)
		p.sign()
		for i, c := range index {
			index[i] = max(c, 0)
		}
		p.step("bits", &plan.Channels{Index: index}, bcnn.Bits, both)
		both.C = 210
		p.step("join", &plan.Concat{}, bcnn.Bits, both, 9, 10)
		p.step("half", &plan.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}, bcnn.Float32, bcnn.Shape{H: 32, W: 30, C: 210})
		return p
	}
	// Steps behind a convolution that need the memory which it has its rows in, several of them in
	// what a step needs.
	for i, of := range []string{"bytes", "bits", "bytes 1 wide", "bits 1 wide"} {
		for name, next := range map[string]func(p *planner){
			"bits of few channels": func(p *planner) {
				p.sign()
				p.step("values", &plan.Affine{}, bcnn.Float32, p.last().Shape)
			},
			"levels looked up": func(p *planner) {
				p.step("levels", &plan.Quantize{Levels: 5, Thresholds: []float32{-8, 0, 12, 12}}, bcnn.Uint8, p.last().Shape)
			},
			"levels of powers of two": func(p *planner) {
				p.step("levels", &plan.Quantize{Levels: 9, Thresholds: []float32{-8, -2, 10, 10, 22, 22, 46, 46}}, bcnn.Uint8, p.last().Shape)
			},
			"shuffled bits": func(p *planner) {
				p.sign()
				index := make([]int32, p.last().Shape.C)
				for i := range index {
					index[i] = int32(i*5) % int32(len(index))
				}
				p.step("bits", &plan.Channels{Index: index}, bcnn.Bits, p.last().Shape)
			},
			"planes": func(p *planner) { p.numbers(3) },
		} {
			plans[name+" behind a convolution of "+of] = func() *planner {
				p := newPlanner(15, input(bcnn.Uint8, 40, []int{3, 1}[i/2], 2))
				if i%2 == 1 {
					p.sign()
				}
				p.conv(convOptions{window: same(3), out: 36, float: true})
				next(p)
				return p
			}
		}
	}
	forEach(t, func(t *testing.T, opts backend.Options) {
		for name, plan := range plans {
			t.Run(name, func(t *testing.T) { requireReference(t, plan(), opts) })
		}
	})
}

func TestBinarizeSchemes(t *testing.T) {
	schemes := []struct {
		scheme     bcnn.Scheme
		thresholds int // 0 for none, −1 for one per channel
		out        int // −1 for all channels
	}{
		{bcnn.SchemeThreshold, -1, -1},
		{bcnn.SchemeGrey, 1, 1},
		{bcnn.SchemeLBP, 0, 3},
		{bcnn.SchemeMinMax, 0, -1},
	}
	forEach(t, func(t *testing.T, opts backend.Options) {
		for _, s := range schemes {
			for _, size := range []bcnn.Shape{{H: 1, W: 1, C: 1}, {H: 1, W: 5, C: 3}, {H: 7, W: 1, C: 3}, {H: 90, W: 70, C: 3}, {H: 13, W: 40, C: 1}} {
				t.Run(fmt.Sprintf("%s/%v", s.scheme, size), func(t *testing.T) {
					p := newPlanner(5, bcnn.Input{DType: bcnn.Uint8, Shape: size})
					op := &plan.Binarize{Scheme: s.scheme}
					out := size
					if s.out > 0 {
						out.C = s.out
					}
					if s.thresholds != 0 {
						op.Threshold = &plan.Threshold{Flip: p.bits(1, out.C)}
						for range out.C {
							op.Threshold.I32 = append(op.Threshold.I32, int32(p.rng.IntN(300)-20))
						}
					}
					p.step("binarize", op, bcnn.Bits, out)
					requireReference(t, p, opts)
				})
			}
		}
	})
}
