package cpu

import (
	"bytes"
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// floatSteps are steps on float32 values as networks have them. The last step of
// each plan is the one in question.
var floatSteps = []struct {
	name string
	plan func() *planner
}{
	{"conv7x7s2/224x224x3-64", floatConv(224, 3, bcnn.Window{KH: 7, KW: 7, StrideH: 2, StrideW: 2, Pad: pad(3)}, convOptions{out: 64})},
	{"conv3x3s2/224x224x3-32", floatConv(224, 3, bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: pad(1)}, convOptions{out: 32})},
	{"conv3x3/56x56x64-64", floatConv(56, 64, three(1), convOptions{out: 64})},
	{"conv3x3/14x14x256-256", floatConv(14, 256, three(1), convOptions{out: 256})},
	{"conv3x3/7x7x512-512", floatConv(7, 512, three(1), convOptions{out: 512})},
	{"conv1x1/56x56x64-64", floatConv(56, 64, one, convOptions{out: 64})},
	{"conv1x1/28x28x128-256", floatConv(28, 128, one, convOptions{out: 256})},
	{"conv1x1/14x14x256-512", floatConv(14, 256, one, convOptions{out: 512})},
	{"conv1x1/7x7x512-1024", floatConv(7, 512, one, convOptions{out: 1024})},
	{"conv1x1/28x28x100-100", floatConv(28, 100, one, convOptions{out: 100})},
	{"dilated3x3/28x28x128-128", floatConv(28, 128, bcnn.Window{KH: 3, KW: 3, DilationH: 2, DilationW: 2, Pad: pad(2)}, convOptions{out: 128})},
	{"grouped3x3/28x28x128-128/4", floatConv(28, 128, three(1), convOptions{out: 128, groups: 4})},
	{"grouped1x1/28x28x128-128/4", floatConv(28, 128, one, convOptions{out: 128, groups: 4})},
	{"grouped3x3/112x112x32-32/4", floatConv(112, 32, three(1), convOptions{out: 32, groups: 4})},
	{"grouped3x3/112x112x32-64/8", floatConv(112, 32, three(1), convOptions{out: 64, groups: 8})},
	{"depthwise3x3/112x112x32", floatConv(112, 32, three(1), convOptions{out: 32, groups: 32})},
	{"depthwise3x3/56x56x128", floatConv(56, 128, three(1), convOptions{out: 128, groups: 128})},
	{"depthwise3x3s2/56x56x128", floatConv(56, 128, three(2), convOptions{out: 128, groups: 128})},
	{"depthwise3x3/14x14x512", floatConv(14, 512, three(1), convOptions{out: 512, groups: 512})},
	{"depthwise5x5/28x28x120", floatConv(28, 120, bcnn.Window{KH: 5, KW: 5, Pad: pad(2)}, convOptions{out: 120, groups: 120})},
	{"depthwise5x5s2/28x28x120", floatConv(28, 120, bcnn.Window{KH: 5, KW: 5, StrideH: 2, StrideW: 2, Pad: pad(2)}, convOptions{out: 120, groups: 120})},
	{"dense/512-1000", func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 1, 1, 512))
		p.conv(convOptions{dense: true, window: one, out: 1000, float: true})
		return p
	}},
	{"binary3x3/56x56x64", binaryConv(plan.ActivationNone)},
	{"binary3x3/56x56x64/relu", binaryConv(plan.ActivationReLU)},
	{"binary3x3/56x56x64/prelu", binaryConv(plan.ActivationPReLU)},
	{"binary3x3/56x56x64/clip", binaryConv(plan.ActivationClip)},
	{"maxpool3x3s2/112x112x64", floatStep(112, 64, func(p *planner) {
		w := bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: pad(1)}
		p.step("pool", &plan.MaxPool{Window: w}, bcnn.Float32, w.Output(p.last().Shape, 64))
	})},
	{"avgpool2x2s2/56x56x64", floatStep(56, 64, func(p *planner) { p.mean(bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}) })},
	{"avgpool3x3/28x28x128", floatStep(28, 128, func(p *planner) { p.mean(bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, Pad: pad(1)}) })},
	{"avgpool7x7/7x7x512", floatStep(7, 512, func(p *planner) { p.mean(bcnn.Window{KH: 7, KW: 7, StrideH: 1, StrideW: 1}) })},
	{"avgpool56x56/56x56x64", floatStep(56, 64, func(p *planner) { p.mean(bcnn.Window{KH: 56, KW: 56, StrideH: 1, StrideW: 1}) })},
	{"avgpool2x2s2/56x56x64/bits", floatStep(56, 64, func(p *planner) {
		p.numbers(1)
		p.mean(bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2})
	})},
	{"avgpool7x7/7x7x512/bits", floatStep(7, 512, func(p *planner) {
		p.numbers(1)
		p.mean(bcnn.Window{KH: 7, KW: 7, StrideH: 1, StrideW: 1})
	})},
	{"affine/224x224x3/bytes", func() *planner {
		p := newPlanner(1, input(bcnn.Uint8, 224, 224, 3))
		p.affine(plan.ActivationNone)
		return p
	}},
	{"affine/56x56x64", floatStep(56, 64, func(p *planner) { p.affine(plan.ActivationNone) })},
	{"affine/56x56x64/bits", floatStep(56, 64, func(p *planner) { p.numbers(1); p.affine(plan.ActivationNone) })},
	{"affine/14x14x256/prelu", floatStep(14, 256, func(p *planner) { p.affine(plan.ActivationPReLU) })},
	{"affine/14x14x256/clip", floatStep(14, 256, func(p *planner) { p.affine(plan.ActivationClip) })},
	{"sigmoid/56x56x64", floatStep(56, 64, func(p *planner) { p.function(bcnn.Sigmoid) })},
	{"gelu/56x56x64", floatStep(56, 64, func(p *planner) { p.function(bcnn.GELU) })},
	{"hardswish/14x14x256", floatStep(14, 256, func(p *planner) { p.function(bcnn.HardSwish) })},
	{"add/56x56x64", floatStep(56, 64, func(p *planner) { p.add(plan.ActivationNone) })},
	{"add/14x14x256", floatStep(14, 256, func(p *planner) { p.add(plan.ActivationNone) })},
	{"add/14x14x256/relu", floatStep(14, 256, func(p *planner) { p.add(plan.ActivationReLU) })},
	{"add/14x14x256/prelu", floatStep(14, 256, func(p *planner) { p.add(plan.ActivationPReLU) })},
	{"add/14x14x256/clip", floatStep(14, 256, func(p *planner) { p.add(plan.ActivationClip) })},
	{"table/224x224x3", func() *planner {
		p := newPlanner(1, input(bcnn.Uint8, 224, 224, 3))
		p.step("table", &plan.Table{Values: p.floats(3 * plan.TableSize)}, bcnn.Float32, p.last().Shape)
		return p
	}},
	{"max/14x14x256", floatStep(14, 256, func(p *planner) {
		p.step("max", &plan.Pair{Kind: plan.PairMax}, bcnn.Float32, p.last().Shape, 1)
	})},
	{"mul/14x14x256", floatStep(14, 256, func(p *planner) { p.step("mul", &plan.Pair{}, bcnn.Float32, p.last().Shape, 1) })},
	{"min/14x14x256", floatStep(14, 256, func(p *planner) {
		p.step("min", &plan.Pair{Kind: plan.PairMin}, bcnn.Float32, p.last().Shape, 1)
	})},
	{"mask/14x14x256", floatStep(14, 256, func(p *planner) {
		p.step("mask", &plan.Pair{Kind: plan.PairMask}, bcnn.Float32, p.last().Shape, 1)
	})},
	{"mul/28x28x128/a value for each channel", floatStep(28, 128, func(p *planner) { p.gate(bcnn.Shape{H: 1, W: 1, C: 128}) })},
	{"mul/28x28x128/a value for each pixel", floatStep(28, 128, func(p *planner) { p.gate(bcnn.Shape{H: 28, W: 28, C: 1}) })},
	{"sign/56x56x64", floatStep(56, 64, func(p *planner) { p.numbers(1) })},
	{"sign/14x14x256", floatStep(14, 256, func(p *planner) { p.numbers(1) })},
	{"concat/28x28x64+64", floatStep(28, 64, func(p *planner) {
		p.step("concat", &plan.Concat{}, bcnn.Float32, bcnn.Shape{H: 28, W: 28, C: 128}, 1)
	})},
	{"channels/28x28x128/shuffle", floatStep(28, 128, func(p *planner) {
		index := make([]int32, 128)
		for i := range index {
			index[i] = int32(i%2*64 + i/2)
		}
		p.step("channels", &plan.Channels{Index: index}, bcnn.Float32, p.last().Shape)
	})},
	{"channels/28x28x64/padded to 96", floatStep(28, 64, func(p *planner) {
		index := make([]int32, 96)
		for i := range index {
			if index[i] = int32(i - 16); i < 16 || i >= 80 {
				index[i] = -1
			}
		}
		p.step("channels", &plan.Channels{Index: index}, bcnn.Float32, bcnn.Shape{H: 28, W: 28, C: 96})
	})},
	{"matmul/6x197x64", heads(func(p *planner) { // queries by keys, of the six heads of a small vision transformer
		p.step("matmul", &plan.MatMul{}, bcnn.Float32, bcnn.Shape{H: 6, W: 197, C: 197}, 1)
	})},
	{"transpose/6x197x64", heads(func(p *planner) {
		p.step("transpose", &plan.Transpose{}, bcnn.Float32, bcnn.Shape{H: 6, W: 64, C: 197})
	})},
	{"topk1/56x56x21", floatStep(56, 21, func(p *planner) {
		p.step("topk", &plan.TopK{K: 1}, bcnn.Float32, bcnn.Shape{H: 56, W: 56, C: 1})
	})},
	{"pixels/56x56x64/reflected", floatStep(56, 64, func(p *planner) {
		op := &plan.Pixels{BlockH: 1, BlockW: 1}
		for i := range int32(58) {
			op.Rows = append(op.Rows, min(max(i-1, 1-i), 111-i))
		}
		op.Cols = op.Rows
		p.step("pixels", op, bcnn.Float32, bcnn.Shape{H: 58, W: 58, C: 64})
	})},
	{"pixels/28x28x256/depth to space", floatStep(28, 256, func(p *planner) {
		op := &plan.Pixels{BlockH: 2, BlockW: 2}
		for i := range int32(56) {
			op.Rows, op.Cols = append(op.Rows, i), append(op.Cols, i)
		}
		p.step("pixels", op, bcnn.Float32, bcnn.Shape{H: 56, W: 56, C: 64})
	})},
	{"pixels/28x28x64/twice", floatStep(28, 64, func(p *planner) { p.twice() })},
	{"pixels/28x28x64/twice, bits", floatStep(28, 64, func(p *planner) { p.numbers(1); p.twice() })},
	{"pixels/112x112x3/twice", floatStep(112, 3, func(p *planner) { p.twice() })},
	{"resample/28x28x64/twice, bilinear", floatStep(28, 64, func(p *planner) { p.bilinear() })},
	{"resample/28x28x64/twice, bicubic", floatStep(28, 64, func(p *planner) { p.resample(56, -0.1, 0.9, 0.3, -0.1) })},
	{"resample/112x112x3/twice, bilinear", floatStep(112, 3, func(p *planner) { p.bilinear() })},
	{"resample/112x112x3/twice, bicubic", floatStep(112, 3, func(p *planner) { p.resample(224, -0.1, 0.9, 0.3, -0.1) })},
}

// resample makes a square image of weighted rows and columns, the same for all pixels.
func (p *planner) resample(size int, weights ...float32) {
	in := p.last().Shape
	t := bcnn.Taps{N: len(weights)}
	for i := range size {
		for k, w := range weights {
			t.Index, t.Weight = append(t.Index, int32(min(i*in.H/size+k, in.H-1))), append(t.Weight, w)
		}
	}
	p.step("resample", &plan.Resample{Rows: t, Cols: t}, bcnn.Float32, bcnn.Shape{H: size, W: size, C: in.C})
}

// gate multiplies the values of the first step by some of a shape that is repeated.
func (p *planner) gate(shape bcnn.Shape) {
	first := len(p.plan.Tensors) - 1
	if size := p.last().Shape; shape.C == size.C {
		p.mean(bcnn.Window{KH: size.H, KW: size.W, StrideH: 1, StrideW: 1})
	} else {
		p.step("channels", &plan.Channels{Index: []int32{0}}, bcnn.Float32, shape)
	}
	p.step("mul", &plan.Pair{}, bcnn.Float32, p.plan.Tensors[first].Shape)
	p.plan.Steps[len(p.plan.Steps)-1].In = []int{first, first + 1}
}

// bilinear makes a square image twice as large, of the two pixels between whose centres one
// lies.
func (p *planner) bilinear() {
	in := p.last().Shape
	t := bcnn.Taps{N: 2}
	for i := range int32(2 * in.H) {
		first := (i+1)/2 - 1
		t.Index = append(t.Index, max(first, 0), min(first+1, int32(in.H-1)))
		if i%2 == 0 {
			t.Weight = append(t.Weight, 0.25, 0.75)
		} else {
			t.Weight = append(t.Weight, 0.75, 0.25)
		}
	}
	p.step("resample", &plan.Resample{Rows: t, Cols: t}, bcnn.Float32, bcnn.Shape{H: 2 * in.H, W: 2 * in.W, C: in.C})
}

func (p *planner) function(f bcnn.FunctionName) {
	p.step("function", &plan.Affine{Activation: plan.Activation{Kind: plan.ActivationFunction, Function: f}}, bcnn.Float32, p.last().Shape)
}

// twice repeats every row and column.
func (p *planner) twice() {
	in := p.last()
	op := &plan.Pixels{BlockH: 1, BlockW: 1}
	for i := range int32(2 * in.Shape.H) {
		op.Rows, op.Cols = append(op.Rows, i/2), append(op.Cols, i/2)
	}
	p.step("pixels", op, in.DType, bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: in.Shape.C})
}

var one = bcnn.Window{KH: 1, KW: 1}

func pad(n int) bcnn.Padding { return bcnn.Padding{Top: n, Left: n, Bottom: n, Right: n} }

func three(stride int) bcnn.Window {
	return bcnn.Window{KH: 3, KW: 3, StrideH: stride, StrideW: stride, Pad: pad(1)}
}

// floatStep has values of finite size before the step in question.
func floatStep(size, channels int, last func(p *planner)) func() *planner {
	return func() *planner {
		p := newPlanner(1, input(bcnn.Float32, size, size, channels))
		p.affine(plan.ActivationNone)
		last(p)
		return p
	}
}

// heads are six of 197 vectors of 64 values.
func heads(last func(p *planner)) func() *planner {
	return func() *planner {
		p := newPlanner(1, input(bcnn.Float32, 6, 197, 64))
		p.affine(plan.ActivationNone)
		last(p)
		return p
	}
}

func floatConv(size, channels int, w bcnn.Window, o convOptions) func() *planner {
	return floatStep(size, channels, func(p *planner) {
		o.window, o.float = w, true
		p.conv(o)
	})
}

func binaryConv(end plan.ActivationKind) func() *planner {
	return floatStep(56, 64, func(p *planner) {
		p.numbers(1)
		p.conv(convOptions{window: three(1), out: 64, padValue: -1, float: true, end: end})
	})
}

func (p *planner) affine(end plan.ActivationKind) {
	c := p.last().Shape.C
	p.step("affine", &plan.Affine{Scale: p.floats(c), Shift: p.floats(c), Activation: p.activation(end, c)}, bcnn.Float32, p.last().Shape)
}

func (p *planner) add(end plan.ActivationKind) {
	p.step("add", &plan.Add{Activation: p.activation(end, p.last().Shape.C)}, bcnn.Float32, p.last().Shape, 0)
}

func (p *planner) mean(w bcnn.Window) {
	p.step("avgpool", &plan.AvgPool{Window: w}, bcnn.Float32, w.Output(p.last().Shape, p.last().Shape.C))
}

// BenchmarkFloat reports the least time of steps on float32 values in
// microseconds, and the fraction of it that the longer of two floors is: the
// products, or the operations of a mean or the instructions of a function, at the rate of a loop of nothing else but
// fused products and sums, and the least time in which as many bytes are read and written
// behind a step that has written what is read.
func BenchmarkFloat(b *testing.B) {
	for _, isa := range sets.Names() {
		for _, c := range floatSteps {
			b.Run(isa+"/"+c.name, func(b *testing.B) { benchmarkStep(b, c.plan().done(), isa) })
		}
	}
}

func benchmarkStep(b *testing.B, tested *plan.Plan, isa string) {
	last := inQuestion(tested)
	least := time.Duration(math.MaxInt64)
	opts := backend.Options{ISA: isa, Threads: 1}
	opts.Timed = func(step int, _ string, d time.Duration) {
		if step == last {
			least = min(least, d)
		}
	}
	exe, err := Device().Compile(b.Context(), tested, opts)
	require.NoError(b, err)
	defer exe.Close()
	p := planner{rng: newPlanner(1, tested.Inputs[0]).rng, plan: *tested}
	in, out := p.input(1), bcnn.NewTensor(bcnn.Float32, 1, tested.OutputShape())
	out.F32 = make([]float32, len(out.F32)+pageOffset/4)[pageOffset/4:] // as the tensors between steps lie
	for b.Loop() {
		if err := exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	step := tested.Steps[last]
	read := int64(0)
	for _, t := range step.In {
		read += tested.Tensors[t].Bytes(1)
	}
	if op, ok := step.Op.(*plan.Conv); ok {
		read += int64(4*len(op.F32) + 8*len(op.Bits))
	}
	floor := moved(read, tested.Tensors[step.Out].Bytes(1)).Seconds()
	set, err := sets.Lookup(isa)
	require.NoError(b, err)
	n := tested.Products(last)
	values := int64(tested.Tensors[step.Out].Shape.Values())
	switch op := step.Op.(type) {
	case *plan.AvgPool:
		if tested.Tensors[step.In[0]].DType == bcnn.Float32 {
			n = int64(op.KH*op.KW+3) * values // additions, and three operations to divide
		}
	case *plan.Affine:
		if op.Activation.Kind == plan.ActivationFunction {
			n = 75 * values / 2 // instructions on vectors, two of which take no less than a fused product
		}
	case *plan.Resample:
		n = int64(op.Rows.N*op.Cols.N) * values
	}
	if n > 0 {
		peaks := []kern.Peak{{Run: set.PeakFMA, Products: set.PeakFMAs}}
		if tested.Tensors[step.In[0]].DType == bcnn.Bits {
			peaks = set.Peaks
		}
		if peaks[0].Run != nil {
			floor = max(floor, float64(n)/bestOf(peaks, 1))
		}
	}
	b.ReportMetric(float64(least)/1e3, "least-µs")
	b.ReportMetric(floor/least.Seconds(), "of-roof")
}

// moved returns the least time in which so many bytes are read and so many written by the
// fastest loops of Go's library, assembly on all processors that matter. What is read has
// been copied there from elsewhere just before.
func moved(read, written int64) time.Duration {
	before, in, out := make([]byte, read), make([]byte, read), make([]byte, written)
	for i := range before {
		before[i] = 1 // so that each page is there
	}
	clear(out)
	// Long blocks would be written around the cache.
	blocks := func(n int64, do func(from, to int64)) {
		for from := int64(0); from < n; from += 4096 {
			do(from, min(from+4096, n))
		}
	}
	both := min(read, written)
	half := (read - both) / 2
	least := time.Duration(math.MaxInt64)
	for range 1000 {
		blocks(read, func(from, to int64) { copy(in[from:to], before[from:]) })
		equal := true
		start := time.Now()
		blocks(both, func(from, to int64) { copy(out[from:to], in[from:]) })
		blocks(written-both, func(from, to int64) { clear(out[both+from : both+to]) })
		blocks(half, func(from, to int64) {
			equal = equal && bytes.Equal(in[both+from:both+to], in[both+half+from:][:to-from])
		})
		if took := time.Since(start); equal {
			least = min(least, took)
		}
	}
	return least
}
