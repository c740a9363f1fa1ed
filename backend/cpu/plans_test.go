package cpu

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// planner draws a plan step by step, beyond what lowering would ever make.
type planner struct {
	rng  *rand.Rand
	plan plan.Plan
}

func newPlanner(seed uint64, in bcnn.Input) *planner {
	p := &planner{rng: rand.New(rand.NewPCG(seed, 99))}
	p.plan = plan.Plan{Name: "drawn", Inputs: []bcnn.Input{in}}
	p.plan.Tensors = []plan.Tensor{{Name: "input", DType: in.DType, Shape: in.Shape}}
	return p
}

func (p *planner) last() plan.Tensor { return p.plan.Tensors[len(p.plan.Tensors)-1] }

// step appends an operation on the last tensor.
func (p *planner) step(name string, op plan.Op, d bcnn.DType, s bcnn.Shape, more ...int) {
	in := append([]int{len(p.plan.Tensors) - 1}, more...)
	p.plan.Tensors = append(p.plan.Tensors, plan.Tensor{Name: name, DType: d, Shape: s})
	p.plan.Outputs = []int{len(p.plan.Tensors) - 1}
	p.plan.Steps = append(p.plan.Steps, plan.Step{Name: name, In: in, Out: p.plan.Outputs[0], Op: op})
}

// done ends the plan with float32 values, which a step has made.
func (p *planner) done() *plan.Plan {
	if p.last().DType != bcnn.Float32 || len(p.plan.Steps) == 0 {
		p.step("values", &plan.Affine{}, bcnn.Float32, p.last().Shape)
	}
	return &p.plan
}

func (p *planner) floats(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(p.rng.NormFloat64())
		if p.rng.IntN(20) == 0 {
			out[i] = 0
		}
	}
	return out
}

func (p *planner) bits(rows, n int) []uint64 {
	values := make([]int8, rows*n)
	for i := range values {
		values[i] = int8(p.rng.IntN(2))
	}
	out := make([]uint64, rows*bits.Words(n))
	bits.Pack(out, values, n)
	return out
}

// threshold draws thresholds near 0, where ties are common, and some extreme
// ones.
func (p *planner) threshold(channels, planes, spread int, integer bool) plan.Threshold {
	t := plan.Threshold{}
	n := 1<<max(planes, 1) - 1
	for range n * channels {
		v := p.rng.IntN(2*spread+1) - spread
		switch extreme := p.rng.IntN(20); {
		case integer && extreme == 0:
			v = math.MinInt32
		case integer && extreme == 1:
			v = math.MaxInt32
		}
		if integer {
			t.I32 = append(t.I32, int32(v))
		} else {
			t.F32 = append(t.F32, float32(v)*0.25)
		}
	}
	for c := range channels { // in ascending order
		for k := range n {
			for i := range k {
				if integer {
					a, b := &t.I32[i*channels+c], &t.I32[k*channels+c]
					*a, *b = min(*a, *b), max(*a, *b)
				} else {
					a, b := &t.F32[i*channels+c], &t.F32[k*channels+c]
					*a, *b = min(*a, *b), max(*a, *b)
				}
			}
		}
	}
	if p.rng.IntN(2) == 0 {
		t.Flip = p.bits(1, channels)
	}
	return t
}

// quantize appends levels, as floats or bytes: of thresholds that rise evenly or not.
func (p *planner) quantize(to bcnn.DType) {
	shape := p.last().Shape
	q := &plan.Quantize{Low: p.rng.IntN(9) - 4, Levels: 2 + p.rng.IntN(20)}
	if p.rng.IntN(3) == 0 {
		q.Levels = 2 + p.rng.IntN(255)
	}
	for range []int{1, shape.C}[p.rng.IntN(2)] {
		step, equal := float32(4)/float32(q.Levels)*(0.5+p.rng.Float32()), 1+p.rng.IntN(2)
		for k := range q.Levels - 1 {
			q.Thresholds = append(q.Thresholds, float32(k/equal*equal)*step-1)
		}
	}
	p.step("quantize", q, to, shape)
}

// levels appends so many levels from 0 on, those of rounding 8·x to an integer.
func (p *planner) levels(n int, to bcnn.DType) {
	q := &plan.Quantize{Levels: n}
	for k := range n - 1 {
		t := (float32(k) + 0.5) / 8
		if k%2 == 0 { // halves are rounded to even numbers
			t = math.Nextafter32(t, float32(n))
		}
		q.Thresholds = append(q.Thresholds, t)
	}
	p.step("levels", q, to, p.last().Shape)
}

// activation draws what an activation of so many channels needs.
func (p *planner) activation(kind plan.ActivationKind, channels int) plan.Activation {
	a := plan.Activation{Kind: kind}
	switch kind {
	case plan.ActivationPReLU:
		a.Slope = p.floats(channels)
	case plan.ActivationClip:
		a.Min, a.Max = -p.rng.Float32(), p.rng.Float32()
	}
	return a
}

func (p *planner) anyActivation() plan.ActivationKind { return plan.ActivationKind(p.rng.IntN(4)) }

type convOptions struct {
	window   bcnn.Window
	out      int
	groups   int
	dense    bool
	padValue int
	pool     *bcnn.Window
	float    bool // Float32 output
	end      plan.ActivationKind
	raw      bool // no scale
	int8     int  // the largest of 8-bit weights of bytes; 0 for any, of 8 or 16 bits, or ±1; below for ±1
	int16    int  // the largest of 16-bit weights of bytes
	// Bit planes of the input and of the output; 0 means 1.
	inPlanes, outPlanes int
}

func (p *planner) conv(o convOptions) {
	in := p.last()
	op := &plan.Conv{Window: o.window, Out: o.out, Groups: max(o.groups, 1), Dense: o.dense, PadValue: o.padValue}
	op.StrideH, op.StrideW = max(op.StrideH, 1), max(op.StrideW, 1)
	op.DilationH, op.DilationW = max(op.DilationH, 1), max(op.DilationW, 1)
	op.InPlanes, op.OutPlanes = o.inPlanes, o.outPlanes
	largest := 1<<max(o.inPlanes, 1) - 1 // of the input
	in.Shape = op.Image(in.Shape)
	group := in.Shape.C / op.Groups
	taps := op.KH * op.KW * group
	spread := largest * int(math.Sqrt(float64(taps)))
	switch in.DType {
	case bcnn.Float32:
		op.F32, op.Bias = p.floats(op.Out*taps), p.floats(op.Out)
	case bcnn.Uint8:
		op.ZeroPoint = uint8(p.rng.IntN(256)) // above all levels, too
		spread *= 100
		if o.float && (o.int16 > 0 || o.int8 == 0 && p.rng.IntN(4) == 0) {
			most := min(cmp.Or(o.int16, []int{129, 32639, 32768}[p.rng.IntN(3)]), math.MaxInt32/255/taps)
			op.Int16 = make([]int16, op.Out*taps)
			for i := range op.Int16 {
				op.Int16[i] = int16(p.rng.IntN(most+min(most, 32767)+1) - most)
			}
			break
		}
		if o.float && (o.int8 > 0 || o.int8 == 0 && p.rng.IntN(2) == 0) {
			most := cmp.Or(o.int8, []int{7, 8, 127, 128}[p.rng.IntN(4)])
			op.Int8 = make([]int8, op.Out*taps)
			for i := range op.Int8 {
				op.Int8[i] = int8(p.rng.IntN(most+min(most, 127)+1) - most)
			}
			break
		}
		fallthrough
	default:
		op.Bits = p.bits(op.Out*op.KH*op.KW, group)
	}
	shape := op.Window.Output(in.Shape, op.Out)
	if in.DType == bcnn.Bits && op.PadValue != -largest {
		op.Border = perPositionBorder(op, in.Shape, shape)
	}
	if o.float {
		if !o.raw {
			op.Scale, op.Shift = p.floats(op.Out), p.floats(op.Out)
		}
		op.Activation = p.activation(o.end, op.Out)
		p.step("conv", op, bcnn.Float32, shape)
		return
	}
	t := p.threshold(op.Out, op.OutPlanes, spread, in.DType != bcnn.Float32)
	op.Threshold, op.Pool = &t, o.pool
	if o.pool != nil {
		shape.H, shape.W = shape.H/o.pool.KH, shape.W/o.pool.KW
	}
	shape.H *= max(op.OutPlanes, 1)
	p.step("conv", op, bcnn.Bits, shape)
}

// planes draws a number of planes that so many rows can be.
func (p *planner) planes(rows int) int {
	planes := 1 + p.rng.IntN(4)*p.rng.IntN(2)
	for rows%planes != 0 {
		planes--
	}
	return planes
}

// perPositionBorder computes corrections by definition, with a class for every
// output row and column.
func perPositionBorder(op *plan.Conv, in, out bcnn.Shape) *plan.Border {
	b := &plan.Border{Rows: out.H, Cols: out.W, Correction: make([]int32, out.H*out.W*op.Out)}
	for y := range out.H {
		b.Row = append(b.Row, y)
	}
	for x := range out.W {
		b.Col = append(b.Col, x)
	}
	group := in.C / op.Groups
	words := bits.Words(group)
	for o := range op.Out {
		for k := range op.KH * op.KW {
			sum := int32(0)
			row := op.Bits[(o*op.KH*op.KW+k)*words:][:words]
			for c := range group {
				sum += int32(bits.At(row, c))
			}
			for y := range out.H {
				for x := range out.W {
					iy := y*op.StrideH - op.Pad.Top + k/op.KW*op.DilationH
					ix := x*op.StrideW - op.Pad.Left + k%op.KW*op.DilationW
					if iy < 0 || iy >= in.H || ix < 0 || ix >= in.W {
						b.Correction[(y*out.W+x)*op.Out+o] += int32(op.PadValue-1+1<<max(op.InPlanes, 1)) * sum
					}
				}
			}
		}
	}
	return b
}

// input draws a batch.
func (p *planner) input(n int) bcnn.Tensor {
	t := bcnn.NewTensor(p.plan.Inputs[0].DType, n, p.plan.Inputs[0].Shape)
	for i := range t.U8 {
		t.U8[i] = uint8(p.rng.IntN(256))
	}
	copy(t.F32, p.floats(len(t.F32)))
	return t
}

func input(d bcnn.DType, h, w, c int) bcnn.Input {
	return bcnn.Input{DType: d, Shape: bcnn.Shape{H: h, W: w, C: c}}
}

// sign makes ±1 of what is not.
func (p *planner) sign() {
	in := p.last()
	switch in.DType {
	case bcnn.Uint8:
		t := plan.Threshold{I32: make([]int32, in.Shape.C)}
		for i := range t.I32 {
			t.I32[i] = int32(p.rng.IntN(257))
		}
		p.step("binarize", &plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: &t}, bcnn.Bits, in.Shape)
	case bcnn.Float32:
		p.numbers(1)
	}
}

// numbers appends bit planes of float32 values.
func (p *planner) numbers(planes int) {
	shape := p.last().Shape
	shape.H *= planes
	p.step("sign", &plan.Sign{Threshold: p.threshold(shape.C, planes, 2, false), Planes: planes}, bcnn.Bits, shape)
}

// randomPlan draws a network of a few steps of any kind.
func randomPlan(seed uint64) *planner {
	rng := rand.New(rand.NewPCG(seed, 7))
	dtype := []bcnn.DType{bcnn.Uint8, bcnn.Float32}[rng.IntN(2)]
	channels := []int{1, 2, 3, 4, 12, 31, 32, 33, 63, 64, 65, 96, 128, 130}
	p := newPlanner(seed, input(dtype, 1+rng.IntN(24), 1+rng.IntN(24), channels[rng.IntN(len(channels))]))
	for range 1 + rng.IntN(4) {
		in := p.last()
		if in.DType == bcnn.Float32 && rng.IntN(3) == 0 || in.DType == bcnn.Uint8 && rng.IntN(4) == 0 {
			if in.DType == bcnn.Float32 {
				p.numbers(p.planes(12))
			} else {
				p.sign()
			}
			continue
		}
		switch kind := rng.IntN(18); {
		case kind == 13 && in.DType != bcnn.Uint8:
			op := &plan.Pixels{Rows: make([]int32, 1+rng.IntN(20)), Cols: make([]int32, 1+rng.IntN(20)), Fill: 1, BlockH: 1, BlockW: 1}
			if in.Shape.C%2 == 0 && rng.IntN(2) == 0 {
				op.BlockW = 2
			}
			for i := range op.Rows {
				op.Rows[i] = rng.Int32N(int32(in.Shape.H)+1) - 1
			}
			for i := range op.Cols {
				op.Cols[i] = max(rng.Int32N(int32(in.Shape.W*op.BlockW)+1)-1, int32(-rng.IntN(2)))
			}
			p.step("pixels", op, in.DType, bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: in.Shape.C / op.BlockW})
		case kind == 14 && in.DType == bcnn.Float32:
			taps := func(size int) bcnn.Taps {
				t := bcnn.Taps{N: 1 + rng.IntN(4)}
				for range t.N * (1 + rng.IntN(12)) {
					t.Index = append(t.Index, rng.Int32N(int32(size)))
				}
				t.Weight = p.floats(len(t.Index))
				return t
			}
			op := &plan.Resample{Rows: taps(in.Shape.H), Cols: taps(in.Shape.W)}
			p.step("resample", op, bcnn.Float32, bcnn.Shape{H: len(op.Rows.Index) / op.Rows.N, W: len(op.Cols.Index) / op.Cols.N, C: in.Shape.C})
		case kind == 16 && in.DType != bcnn.Uint8:
			p.step("transpose", &plan.Transpose{}, in.DType, bcnn.Shape{H: in.Shape.H, W: in.Shape.C, C: in.Shape.W})
		case kind == 17 && in.DType != bcnn.Uint8:
			p.step("matmul", &plan.MatMul{}, bcnn.Float32, bcnn.Shape{H: in.Shape.H, W: in.Shape.W, C: in.Shape.W}, len(p.plan.Tensors)-1)
		case kind == 15 && in.DType == bcnn.Float32:
			shape := in.Shape
			shape.C = 1 + rng.IntN(min(in.Shape.C, 5))
			p.step("topk", &plan.TopK{K: shape.C, Values: rng.IntN(2) == 0}, bcnn.Float32, shape)
		case kind == 12 && in.DType == bcnn.Uint8:
			op := &plan.Table{Values: p.floats(plan.TableSize * []int{1, in.Shape.C}[rng.IntN(2)])}
			to, shape := bcnn.Float32, in.Shape
			numbers := 0
			switch rng.IntN(3) {
			case 0:
				to, op.Planes = bcnn.Bits, 1+rng.IntN(plan.MaxPlanes)
				shape.H *= op.Planes
				numbers = 1 << op.Planes
			case 1:
				to, numbers = bcnn.Uint8, plan.TableSize
			}
			for i := range op.Values {
				if numbers > 0 {
					op.Values[i] = float32(rng.IntN(numbers))
				}
			}
			p.step("table", op, to, shape)
		case kind == 12 && in.DType == bcnn.Float32:
			p.quantize([]bcnn.DType{bcnn.Float32, bcnn.Uint8}[rng.IntN(2)])
		case kind == 8 && in.DType != bcnn.Uint8:
			w := bcnn.Window{KH: 1 + rng.IntN(4), KW: 1 + rng.IntN(9), StrideH: 1 + rng.IntN(3), StrideW: 1 + rng.IntN(3)}
			w.Pad = bcnn.Padding{Top: rng.IntN(w.KH), Left: rng.IntN(w.KW), Bottom: rng.IntN(w.KH), Right: rng.IntN(w.KW)}
			if rng.IntN(3) == 0 { // the whole image
				w = bcnn.Window{KH: in.Shape.H, KW: in.Shape.W, StrideH: 1, StrideW: 1}
			}
			if shape := w.Output(in.Shape, in.Shape.C); shape.H > 0 && shape.W > 0 {
				p.step("avgpool", &plan.AvgPool{Window: w, CountPadding: rng.IntN(2) == 0}, bcnn.Float32, shape)
			}
		case kind == 9 && in.DType == bcnn.Float32:
			p.step("pair", &plan.Pair{Kind: plan.PairKind(p.rng.IntN(3))}, bcnn.Float32, in.Shape, len(p.plan.Tensors)-1)
		case kind == 10 && in.DType != bcnn.Uint8 && in.Shape.C < 200:
			last, shape := len(p.plan.Tensors)-1, in.Shape
			more := slices.Repeat([]int{last}, 1+rng.IntN(3))
			shape.C *= 1 + len(more)
			p.step("concat", &plan.Concat{}, in.DType, shape, more...)
		case kind == 11 && in.DType != bcnn.Uint8:
			index := make([]int32, 1+rng.IntN(2*in.Shape.C))
			for i := range index {
				if index[i] = int32(i % in.Shape.C); rng.IntN(5) == 0 {
					index[i] = rng.Int32N(int32(in.Shape.C))
				}
				if in.DType == bcnn.Float32 && rng.IntN(9) == 0 {
					index[i] = -1
				}
			}
			shape := in.Shape
			shape.C = len(index)
			p.step("channels", &plan.Channels{Index: index}, in.DType, shape)
		case kind == 0:
			w := bcnn.Window{KH: 1 + rng.IntN(3), KW: 1 + rng.IntN(3), StrideH: 1 + rng.IntN(3), StrideW: 1 + rng.IntN(3)}
			w.Pad = bcnn.Padding{Top: rng.IntN(w.KH), Left: rng.IntN(w.KW), Bottom: rng.IntN(w.KH), Right: rng.IntN(w.KW)}
			op := &plan.MaxPool{Window: w, Planes: 1}
			if in.DType == bcnn.Bits {
				op.Planes = p.planes(in.Shape.H)
			}
			image := in.Shape
			image.H /= op.Planes
			shape := w.Output(image, in.Shape.C)
			if shape.H < 1 || shape.W < 1 {
				continue
			}
			shape.H *= op.Planes
			if in.DType == bcnn.Bits && rng.IntN(2) == 0 {
				op.Flip = p.bits(1, in.Shape.C)
			}
			p.step("pool", op, in.DType, shape)
		case kind == 1 && in.DType != bcnn.Uint8:
			p.step("flatten", &plan.Flatten{}, in.DType, bcnn.Shape{H: 1, W: 1, C: in.Shape.Values()})
		case kind == 2:
			op := &plan.Affine{Activation: p.activation(p.anyActivation(), in.Shape.C)}
			if rng.IntN(3) > 0 {
				op.Scale, op.Shift = p.floats(in.Shape.C), p.floats(in.Shape.C)
			}
			p.step("affine", op, bcnn.Float32, in.Shape)
		case kind == 3 && in.DType == bcnn.Float32:
			p.step("add", &plan.Add{Activation: p.activation(p.anyActivation(), in.Shape.C)}, bcnn.Float32, in.Shape, len(p.plan.Tensors)-1)
		case kind == 4 && in.Shape.Values() < 4000:
			o := convOptions{dense: true, out: 1 + rng.IntN(200), float: rng.IntN(2) == 0, raw: rng.IntN(2) == 0}
			if in.DType == bcnn.Bits {
				if o.inPlanes = p.planes(in.Shape.H); !o.float {
					o.outPlanes = p.planes(12)
				}
			}
			o.window = bcnn.Window{KH: in.Shape.H / max(o.inPlanes, 1), KW: in.Shape.W}
			p.conv(o)
		default:
			p.randomConv(rng)
		}
	}
	return p
}

func (p *planner) randomConv(rng *rand.Rand) {
	in := p.last()
	o := convOptions{float: rng.IntN(3) == 0, raw: rng.IntN(2) == 0, end: p.anyActivation(), groups: 1}
	o.out = 1 + rng.IntN(70)
	if in.DType == bcnn.Bits {
		if o.inPlanes = p.planes(in.Shape.H); !o.float {
			o.outPlanes = p.planes(12)
		}
		in.Shape.H /= o.inPlanes
	}
	if rng.IntN(4) == 0 {
		for o.groups = 1 + rng.IntN(min(8, in.Shape.C)); in.Shape.C%o.groups != 0; o.groups-- {
		}
		o.out = o.groups * (1 + rng.IntN(9))
	}
	o.window = bcnn.Window{
		KH: 1 + rng.IntN(min(5, in.Shape.H)), KW: 1 + rng.IntN(min(5, in.Shape.W)),
		StrideH: 1 + rng.IntN(3), StrideW: 1 + rng.IntN(2),
		DilationH: 1 + rng.IntN(2), DilationW: 1 + rng.IntN(2),
	}
	if in.DType == bcnn.Bits {
		if o.padValue = rng.IntN(3) - 1; o.inPlanes > 1 {
			o.padValue = rng.IntN(33) - 16
		}
	}
	if rng.IntN(3) > 0 {
		o.window.Pad = bcnn.Padding{Top: rng.IntN(5), Left: rng.IntN(5), Bottom: rng.IntN(5), Right: rng.IntN(5)}
	}
	shape := o.window.Output(in.Shape, o.out)
	if shape.H < 1 || shape.W < 1 {
		return
	}
	if !o.float && rng.IntN(2) == 0 {
		o.pool = &bcnn.Window{KH: 1 + rng.IntN(min(3, shape.H)), KW: 1 + rng.IntN(min(3, shape.W))}
		o.pool.StrideH, o.pool.StrideW = o.pool.KH, o.pool.KW
	}
	p.conv(o)
}
