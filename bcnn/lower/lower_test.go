package lower_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/placetest"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// builder makes random networks whose every value is a small multiple of 1/8,
// so that float32 and float64 are both exact and ties with 0 are frequent:
// a wrong threshold shows.
type builder struct {
	rng  *rand.Rand
	net  *bcnn.Network
	last bcnn.Shape
	sign bool // the last layer is ±1
	// signs says it of all layers.
	signs []bool
}

func (b *builder) intn(n int) int { return b.rng.IntN(n) }

func (b *builder) add(op bcnn.Op, inputs ...int) int {
	i := b.net.Append(fmt.Sprintf("%s%d", op.Kind(), len(b.net.Layers)), op, inputs...)
	shapes, err := b.net.Shapes()
	if err != nil {
		panic(err)
	}
	b.last = shapes[i]
	b.signs = append(b.signs, b.isSign(op, b.net.Layers[i].Inputs))
	b.sign = b.signs[i]
	return i
}

// isSign reports whether the values of a layer are ±1.
func (b *builder) isSign(op bcnn.Op, inputs []int) bool {
	switch op := op.(type) {
	case bcnn.Sign, bcnn.Binarize:
		return true
	case bcnn.Channels:
		if slices.Contains(op.Index, -1) {
			return false
		}
	case bcnn.Pixels:
		if (slices.Contains(op.Rows, -1) || slices.Contains(op.Cols, -1)) && op.Fill != 1 && op.Fill != -1 {
			return false
		}
	case bcnn.MaxPool, bcnn.Flatten, bcnn.Concat:
	default:
		return false
	}
	return !slices.ContainsFunc(inputs, func(i int) bool { return i < 0 || !b.signs[i] })
}

// like returns an earlier layer, or the input, of the height and width of the last
// layer: that one if there is no other.
func (b *builder) like() int {
	shapes, err := b.net.Shapes()
	if err != nil {
		panic(err)
	}
	i := b.intn(len(shapes)+1) - 1
	s := b.net.Inputs[0].Shape
	if i >= 0 {
		s = shapes[i]
	}
	if s.H != b.last.H || s.W != b.last.W {
		return len(shapes) - 1
	}
	return i
}

// avgPool has a power of two taps, so that the mean is exact.
func (b *builder) avgPool() bcnn.AvgPool {
	w := bcnn.Window{KH: 1 + b.intn(min(2, b.last.H)), KW: 1 + b.intn(min(2, b.last.W)), StrideH: b.intn(3), StrideW: 1 + b.intn(2)}
	if b.intn(2) == 0 {
		w.Pad = bcnn.Padding{Top: b.intn(w.KH), Left: b.intn(w.KW), Bottom: b.intn(w.KH), Right: b.intn(w.KW)}
		return bcnn.AvgPool{Window: w, CountPadding: true}
	}
	if w.KH*w.KW == 2 { // at the border one tap
		w.Pad = bcnn.Padding{Top: b.intn(w.KH), Right: b.intn(w.KW)}
	}
	return bcnn.AvgPool{Window: w}
}

func (b *builder) prelu() bcnn.PReLU {
	return bcnn.PReLU{Slope: b.vector([]int{1, b.last.C}[b.intn(2)], 0.5, 0, 2, 1, -1)}
}

func (b *builder) clip() bcnn.Clip {
	inf := float32(math.Inf(1))
	low := b.vector(1, -inf, -1, 0, 0, -3.5)[0]
	return bcnn.Clip{Min: low, Max: b.vector(1, 1, 6, 0.5, 0)[0]}
}

// channels is a slice, a shuffle, or adds channels of zeros.
func (b *builder) channels() bcnn.Channels {
	index := make([]int32, 1+b.intn(b.last.C+2))
	first := b.intn(b.last.C)
	for i := range index {
		index[i] = int32((first + i) % b.last.C)
		if b.intn(4) == 0 {
			index[i] = int32(b.intn(b.last.C))
		}
	}
	if b.intn(3) == 0 {
		index[b.intn(len(index))] = -1
	}
	return bcnn.Channels{Index: index}
}

// pixels picks any rows and columns, of blocks where the channels allow it.
func (b *builder) pixels() bcnn.Pixels {
	op := bcnn.Pixels{Fill: b.vector(1, 0, 1, -1, 2)[0]}
	h, w := b.last.H, b.last.W
	if b.last.C%2 == 0 && b.intn(2) == 0 {
		op.BlockH, op.BlockW = 1, 2
		w *= 2
	}
	least := -b.intn(2)
	op.Rows, op.Cols = make([]int32, 1+b.intn(8)), make([]int32, 1+b.intn(8))
	for i := range op.Rows {
		op.Rows[i] = int32(max(least, b.intn(h+1)-1))
	}
	for i := range op.Cols {
		op.Cols[i] = int32(max(least, b.intn(w+1)-1))
	}
	return op
}

// matMul multiplies two layers, or a layer and itself, of signs so that sums stay small.
func (b *builder) matMul() {
	x := b.add(b.zero())
	y := x
	if b.intn(3) == 0 {
		y = b.add(bcnn.Affine{Scale: []float32{0.5}})
	}
	if b.intn(2) == 0 {
		y = b.add(bcnn.Pixels{Rows: upTo(b.last.H), Cols: []int32{int32(b.intn(b.last.W)), 0}}, y)
	}
	b.add(bcnn.MatMul{}, x, y)
}

// upTo lists the numbers below n.
func upTo(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// resample has weights whose products are exact.
func (b *builder) resample() bcnn.Resample {
	taps := func(size int) bcnn.Taps {
		t := bcnn.Taps{N: 1 + b.intn(min(size, 3))}
		for range t.N * (1 + b.intn(6)) {
			t.Index = append(t.Index, int32(b.intn(size)))
		}
		t.Weight = b.vector(len(t.Index), 0, 1, -1, 0.5)
		return t
	}
	return bcnn.Resample{Rows: taps(b.last.H), Cols: taps(b.last.W)}
}

// gate combines with signs, or by the signs of a pixel, of a channel, or of one value.
func (b *builder) gate() {
	from := len(b.net.Layers) - 1
	s := b.last
	b.add(b.zero())
	if b.intn(2) == 0 {
		b.add(bcnn.MaxPool{Window: bcnn.Window{KH: s.H, KW: s.W}})
	}
	if b.intn(2) == 0 {
		b.add(bcnn.Channels{Index: []int32{int32(b.intn(s.C))}})
	}
	b.add([]bcnn.Op{bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}}[b.intn(4)], from, len(b.net.Layers)-1)
}

func (b *builder) vector(n int, values ...float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = values[b.intn(len(values))]
	}
	return v
}

func (b *builder) batchNorm() bcnn.BatchNorm {
	n := b.last.C
	return bcnn.BatchNorm{
		Gamma: b.vector(n, 1, 1, 2, -1, -2, 0.5, 0), Beta: b.vector(n, 0, 0, 1, -1, 2),
		Mean: b.vector(n, 0, 0, 1, -1, 2, 3, -4), Var: b.vector(n, 1, 4), Epsilon: 0,
	}
}

func (b *builder) weights(rows, n int, real bool) bcnn.Weights {
	if real && len(b.net.Layers) < 2 && b.intn(3) == 0 { // of 16 bits, if bytes are read
		return bcnn.Weights{F32: b.vector(rows*n, 200, -300, 0, 1)}
	}
	if real {
		return bcnn.Weights{F32: b.vector(rows*n, 1, -1, 0, 2)}
	}
	if b.intn(3) == 0 {
		return bcnn.Weights{Int8: b.integers(rows * n)}
	}
	packed := make([]uint64, rows*bits.Words(n))
	bits.Pack(packed, b.vector(rows*n, 1, -1), n)
	return bcnn.Weights{Bits: packed}
}

// integers are weights of a few bits: odd ones, even ones, and both.
func (b *builder) integers(n int) []int8 {
	kinds := [][]int8{{-1, 0, 1}, {-1, 0, 1}, {-2, -1, 0, 1}, {-3, -1, 1, 3}, {-2, 0, 2}, {0}, {-7, 4, 7}}
	kind := kinds[b.intn(len(kinds))]
	weights := make([]int8, n)
	for i := range weights {
		weights[i] = kind[b.intn(len(kind))]
	}
	return weights
}

// quantize has levels on one side of 0, on both, or around it.
func (b *builder) quantize() bcnn.Quantize {
	if b.intn(3) == 0 {
		return bcnn.Ternary()
	}
	q := bcnn.Quantize{Low: b.intn(5) - 3, Levels: 2 + b.intn(4)}
	n := (q.Levels - 1) * []int{1, b.last.C}[b.intn(2)]
	for i := range n {
		t := float32(b.intn(5)-6) / 4
		if i%(q.Levels-1) > 0 {
			t = q.Thresholds[i-1] + float32(b.intn(5))/2
		}
		q.Thresholds = append(q.Thresholds, t)
	}
	return q
}

// levels are quantised values, and often what takes them as they are.
func (b *builder) levels() {
	b.add(b.quantize())
	if b.intn(4) == 0 {
		b.add(b.pool())
	}
	if b.intn(6) == 0 {
		b.add(bcnn.Flatten{})
	}
	if b.intn(3) > 0 {
		b.add(b.conv(false))
	}
}

// bytes is a layer on more levels than planes hold, or with more of weights than products
// of bits are worth, and what makes small values of its sums.
func (b *builder) bytes() {
	if !b.sign || b.intn(3) > 0 {
		q := bcnn.Quantize{Low: -b.intn(40), Levels: 17 + b.intn(240)}
		if b.intn(8) == 0 {
			q.Low = 1 // of which 0 is none
		}
		n := (q.Levels - 1) * []int{1, b.last.C}[b.intn(2)]
		for i := range n {
			t := float32(b.intn(5)) / 2
			if i%(q.Levels-1) > 0 {
				t = q.Thresholds[i-1] + float32(b.intn(3))/4
			} else if b.intn(2) == 0 {
				t = -float32(q.Levels) / 4
			}
			q.Thresholds = append(q.Thresholds, t)
		}
		b.add(q)
	}
	from := len(b.net.Layers) - 1
	for range b.intn(3) {
		b.add(b.pool())
	}
	op := b.conv(false)
	if kinds := [][]int8{{-128, 0, 127}, {-20, 9, 3}, {31, -31}}; op.Weights.Int8 != nil || b.intn(2) == 0 {
		kind := kinds[b.intn(len(kinds))]
		op.Weights = bcnn.Weights{Int8: make([]int8, op.Out*op.KH*op.KW*(b.last.C/op.Groups))}
		for i := range op.Weights.Int8 {
			op.Weights.Int8[i] = kind[b.intn(len(kind))]
		}
	}
	i := b.add(op)
	if b.intn(3) == 0 {
		b.add(b.batchNorm())
	}
	if b.intn(2) == 0 {
		b.add(b.zero())
	} else {
		b.add(b.quantize())
	}
	if shapes, err := b.net.Shapes(); err == nil && b.intn(4) == 0 && shapes[from] == shapes[i] { // which others read, too
		b.add(bcnn.Add{}, from, len(b.net.Layers)-1)
	}
}

func (b *builder) window() bcnn.Window {
	w := bcnn.Window{KH: 1 + b.intn(3), KW: 1 + b.intn(3), StrideH: 1 + b.intn(2), StrideW: b.intn(3), DilationH: b.intn(3), DilationW: 1 + b.intn(2)}
	w.Pad = bcnn.Padding{Top: b.intn(3), Left: b.intn(3), Bottom: b.intn(3), Right: b.intn(3)}
	if max(w.DilationH, 1)*(w.KH-1)+1 > b.last.H+w.Pad.Top+w.Pad.Bottom || w.DilationW*(w.KW-1)+1 > b.last.W+w.Pad.Left+w.Pad.Right {
		return bcnn.Window{KH: 1, KW: 1}
	}
	return w
}

func (b *builder) conv(real bool) bcnn.Conv2D {
	groups := 1
	if b.last.C%2 == 0 {
		groups = 1 + b.intn(2)
	}
	c := bcnn.Conv2D{Window: b.window(), Out: groups * (1 + b.intn(5)), Groups: groups}
	if b.intn(4) == 0 {
		c.Out = groups * 33
	}
	if b.sign && !real {
		c.PadValue = b.intn(3) - 1
	}
	c.Weights = b.weights(c.Out*c.KH*c.KW, b.last.C/groups, real)
	if b.intn(3) == 0 {
		c.Bias = b.vector(c.Out, 1, -1, 0, 2)
	}
	return c
}

func (b *builder) pool() bcnn.MaxPool {
	if b.last.H < 2 || b.last.W < 2 {
		return bcnn.MaxPool{Window: bcnn.Window{KH: 1, KW: 1}}
	}
	if b.intn(3) > 0 {
		return bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}
	}
	return bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 1, StrideW: 2, Pad: bcnn.Padding{Top: b.intn(2), Right: b.intn(2)}}}
}

func (b *builder) zero() bcnn.Sign { return bcnn.Sign{Zero: bcnn.ZeroRule(1 + b.intn(2))} }

func (b *builder) affine() bcnn.Affine {
	a := bcnn.Affine{Scale: b.vector(1, 1, 2, -1, 0.5)}
	switch b.intn(3) {
	case 0:
		a.Bias = b.vector(b.last.C, 0, 1, -1)
	case 1:
		a.Scale, a.Bias = nil, b.vector(1, 1, -2)
	}
	return a
}

func randomNetwork(seed uint64) *bcnn.Network {
	b := &builder{rng: rand.New(rand.NewPCG(seed, 7))}
	in := bcnn.Input{Shape: bcnn.Shape{H: 4 + b.intn(6), W: 4 + b.intn(6), C: []int{1, 3, 2, 5}[b.intn(4)]}, DType: bcnn.Uint8}
	b.net = &bcnn.Network{Name: fmt.Sprintf("random%d", seed), Inputs: []bcnn.Input{in}}
	b.last = in.Shape
	switch b.intn(5) {
	case 0:
		b.add(bcnn.Affine{Bias: []float32{-float32(b.intn(4))}})
	case 1:
		b.add(bcnn.Affine{Scale: []float32{0.5}, Bias: []float32{-float32(b.intn(4))}})
	case 2:
		schemes := []bcnn.Scheme{bcnn.SchemeThreshold, bcnn.SchemeMinMax}
		if in.Shape.C == 1 || in.Shape.C == 3 {
			schemes = append(schemes, bcnn.SchemeGrey, bcnn.SchemeLBP)
		}
		op := bcnn.Binarize{Scheme: schemes[b.intn(len(schemes))]}
		switch op.Scheme {
		case bcnn.SchemeThreshold:
			for range in.Shape.C {
				op.Thresholds = append(op.Thresholds, int32(b.intn(9)))
			}
		case bcnn.SchemeGrey:
			op.Thresholds = []int32{int32(b.intn(9))}
		}
		b.add(op)
	case 3:
		b.add(b.affine())
		b.add(b.zero())
	}
	for range 2 + b.intn(5) {
		switch b.intn(28) {
		case 26:
			b.add(bcnn.Transpose{})
		case 27:
			b.matMul()
		case 24, 25:
			b.bytes()
		case 21, 22:
			b.add(b.pixels())
		case 23:
			b.add(b.resample())
		case 18, 19, 20:
			b.levels()
		case 12:
			b.add(b.avgPool())
		case 13:
			b.add(b.prelu())
		case 14:
			b.add(b.clip())
		case 15:
			b.add(b.channels())
		case 16:
			if b.last.C < 70 && len(b.net.Layers) > 0 {
				inputs := []int{len(b.net.Layers) - 1, b.like()}
				if b.intn(2) == 0 {
					inputs = append(inputs, b.like())
				}
				b.add(bcnn.Concat{}, inputs...)
			}
		case 17:
			if len(b.net.Layers) > 0 {
				b.gate()
			}
		case 0, 1, 2, 3:
			b.add(b.conv(false))
		case 4:
			b.add(b.batchNorm())
		case 5:
			b.add(b.affine())
		case 6:
			b.add(b.pool())
		case 7:
			b.add(bcnn.ReLU{})
		case 8: // a residual block
			from := len(b.net.Layers) - 1
			if from < 0 {
				continue
			}
			b.add(b.zero())
			body := b.add(bcnn.Conv2D{Window: bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}},
				Out: b.last.C, Weights: b.weights(b.last.C*9, b.last.C, false)})
			b.add(bcnn.Add{}, from, body)
		case 9:
			if b.intn(2) == 0 {
				b.sliced()
			} else {
				b.add(b.conv(true))
			}
			b.add(b.zero()) // keeps the values small
		default:
			b.add(b.zero())
		}
		if b.intn(3) == 0 {
			b.add(b.batchNorm())
			b.add(b.zero())
		}
	}
	if b.intn(6) > 0 { // otherwise the dense layer has a real input
		b.add(b.zero())
	}
	if b.intn(2) == 0 {
		b.add(bcnn.Flatten{})
		if b.intn(3) == 0 {
			b.add(b.batchNorm())
			b.add(b.zero())
		}
	}
	b.add(bcnn.Dense{Out: 5, Weights: b.weights(5, b.last.Values(), false), Bias: b.vector(5, 0, 1)})
	if b.intn(2) == 0 {
		b.add(b.batchNorm())
	}
	if b.intn(6) == 0 {
		b.add(bcnn.TopK{K: 1 + b.intn(b.last.C), Values: b.intn(2) == 0})
	}
	if b.intn(4) == 0 { // a second input
		b.net.Inputs = append(b.net.Inputs, bcnn.Input{Shape: b.last, DType: bcnn.Float32})
		b.add(bcnn.Add{}, len(b.net.Layers)-1, bcnn.NetworkInput-1)
	}
	last := len(b.net.Layers) - 1
	if b.intn(4) == 0 {
		b.add(bcnn.Softmax{})
	}
	if b.intn(3) == 0 { // several outputs, in any order, perhaps both sides of a softmax
		b.net.Outputs = append(b.rng.Perm(last + 1)[:b.intn(min(4, last+1))], len(b.net.Layers)-1)
		slices.Sort(b.net.Outputs)
		b.net.Outputs = slices.Compact(b.net.Outputs)
		if b.intn(2) == 0 {
			slices.Reverse(b.net.Outputs)
		}
	}
	return b.net
}

// requireLowersRight compares both lowerings with the network itself.
func requireLowersRight(t *testing.T, net *bcnn.Network, seed uint64) {
	t.Helper()
	shapes, err := net.Shapes()
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 8))
	var in []bcnn.Tensor
	for _, input := range net.Inputs {
		x := bcnn.NewTensor(input.DType, 2, input.Shape)
		for i := range x.U8 {
			x.U8[i] = uint8(rng.IntN(8))
		}
		for i := range x.F32 {
			x.F32[i] = float32(rng.IntN(8))
		}
		in = append(in, x)
	}
	want := make([][]float32, len(net.OutputLayers()))
	for image := range 2 {
		x := make([][]float64, len(in))
		for k, t := range in {
			for _, v := range t.Images(image, 1).U8 {
				x[k] = append(x[k], float64(v))
			}
			for _, v := range t.Images(image, 1).F32 {
				x[k] = append(x[k], float64(v))
			}
		}
		values := interpret(net, shapes, x)
		for k, l := range net.OutputLayers() {
			for _, v := range values[l] {
				want[k] = append(want[k], float32(v))
			}
		}
	}
	for name, opts := range map[string]lower.Options{"fused": {}, "unfused": {Unfused: true}} {
		plan, err := lower.Network(t.Context(), net, opts)
		require.NoError(t, err, name)
		require.NoError(t, plan.Check(), name)
		placetest.RequirePlaced(t, plan)
		out, err := ref.RunAll(t.Context(), plan, in, nil)
		require.NoError(t, err, name)
		require.Len(t, out, len(want))
		for k, w := range want {
			require.Equal(t, w, out[k].F32, "%s, seed %d, output %d: %v %v", name, seed, k, describe(net), net.Outputs)
		}
	}
}

func describe(n *bcnn.Network) string {
	var s []string
	for _, l := range n.Layers {
		s = append(s, fmt.Sprintf("%s%v", l.Op.Kind(), l.Inputs))
	}
	return strings.Join(s, " ")
}

func TestLowerKeepsTheMeaningOfRandomNetworks(t *testing.T) {
	seeds := uint64(1500)
	if testing.Short() {
		seeds = 200
	}
	for seed := range seeds {
		requireLowersRight(t, randomNetwork(seed), seed)
	}
}

func FuzzLower(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		requireLowersRight(t, randomNetwork(seed), seed)
	})
}

// Lowering never makes a plan that Check refuses.
func TestLoweredPlansPassTheCheck(t *testing.T) {
	for seed := range uint64(300) {
		for _, unfused := range []bool{false, true} {
			p, err := lower.Network(t.Context(), randomNetwork(seed), lower.Options{Unfused: unfused})
			require.NoError(t, err)
			require.NoError(t, p.Check())
		}
	}
}
