package simplify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
)

// drawn is a random network, whose numbers are so few bits long that float32 rounds nothing:
// whatever the order of its sums is, the outputs are the same numbers.
type drawn struct {
	*rand.Rand
	*bcnn.Network
	shapes []bcnn.Shape
	most   []float64 // bounds the magnitude of the values of each layer
	last   bool      // the next layer reads the last one
}

// at is the input of the network or a layer, most often one of the last.
func (d *drawn) at() int {
	if d.last {
		return len(d.shapes) - 2
	}
	if d.IntN(3) > 0 {
		return len(d.shapes) - 2 - d.IntN(min(3, len(d.shapes)))
	}
	return d.IntN(len(d.shapes)) - 1
}

// then appends a layer, unless its values might be rounded or its shape is none.
func (d *drawn) then(op bcnn.Op, most float64, inputs ...int) {
	if most > 1<<12 {
		return
	}
	before := len(d.Layers)
	d.Append(fmt.Sprint(op.Kind(), before), op, inputs...)
	d.Outputs = append(d.Outputs, before) // while it is drawn, so that nothing need read it
	shapes, err := d.Shapes()
	if err != nil {
		d.Layers, d.Outputs = d.Layers[:before], d.Outputs[:before]
		return
	}
	d.shapes, d.most = append(d.shapes, shapes[before]), append(d.most, most)
}

func (d *drawn) some(n int, of ...float32) []float32 { return draw(d.Rand, n, of...) }

// weights returns real weights of one of the kinds that there are.
func (d *drawn) weights(n int) []float32 {
	kinds := [][]float32{{-1, 1}, {-0.5, 0.5}, {-0.25, 0, 0.25}, {-0.75, 0.25, 0.5}, {-0.75, 0.5}, {-1, -0.25, 0.25, 1}, {-0.5, 0.25, 0.125, 1, 0}, {0, 1}, {0.5}, {0}}
	return d.some(n, kinds[d.IntN(len(kinds))]...)
}

func (d *drawn) window(k int) bcnn.Window {
	w := bcnn.Window{KH: 1 + d.IntN(k), KW: 1 + d.IntN(k), StrideH: 1 + d.IntN(2), StrideW: 1}
	if d.IntN(2) == 0 {
		w.Pad = bcnn.Padding{Top: d.IntN(w.KH), Left: d.IntN(w.KW), Bottom: d.IntN(w.KH), Right: d.IntN(w.KW)}
	}
	return w
}

// chain appends codes, some layers behind, each on the last one, and a layer with weights.
func (d *drawn) chain() {
	d.layer(d.IntN(3))
	d.last = true
	for range d.IntN(4) {
		d.layer(3 + d.IntN(9))
	}
	d.layer(16)
	d.last = false
}

// two appends two values made of another layer, most often 0 and another.
func (d *drawn) two(at int) int {
	d.then(bcnn.Affine{Bias: d.some(1, 0, 0.5, -1)}, d.most[at+1]+1, at)
	d.then(bcnn.Sign{Zero: bcnn.ZeroIsPlus}, 1, len(d.shapes)-2)
	scale := d.some(1, 0.5, -0.5, 1, 2)
	d.then(bcnn.Affine{Scale: scale, Bias: d.some(1, scale[0], -scale[0], 0, 0.25)}, 4, len(d.shapes)-2)
	return len(d.shapes) - 2
}

// layer appends a random layer of a kind.
func (d *drawn) layer(kind int) {
	at := d.at()
	s, most := d.shapes[at+1], d.most[at+1]
	numbers := []float32{-2, -1, -0.5, 0, 0.25, 0.5, 1, 2}
	perChannel := 1
	if d.IntN(4) == 0 {
		perChannel = s.C
	}
	switch kind {
	case 0, 1:
		d.then(bcnn.Sign{Zero: bcnn.ZeroRule(1 + d.IntN(2))}, 1, at)
	case 2:
		q := bcnn.Quantize{Low: d.IntN(4) - 2, Levels: 2 + d.IntN(4)}
		for range perChannel {
			list := d.some(q.Levels-1, -2, -1, -0.5, 0, 0.5, 1, 3)
			slices.Sort(list)
			q.Thresholds = append(q.Thresholds, list...)
		}
		d.then(q, 4, at)
	case 3, 4:
		d.then(bcnn.Affine{Scale: d.some(perChannel, -2, -1, -0.5, 0.25, 0.5, 1, 2)}, 2*most, at)
	case 5:
		d.then(bcnn.Affine{Scale: d.some(perChannel, -1, 0.5, 1, 1), Bias: d.some(1, numbers...)}, most+2, at)
	case 6:
		ops := []bcnn.Op{bcnn.ReLU{}, bcnn.PReLU{Slope: d.some(1, -1, 0.5)}, bcnn.Clip{Min: -1, Max: 1}, bcnn.Clip{Min: 0, Max: 2}}
		d.then(ops[d.IntN(len(ops))], max(most, 2), at)
	case 7:
		d.then(bcnn.MaxPool{Window: d.window(2)}, most, at)
	case 8:
		w := bcnn.Window{KH: 2, KW: 1 + d.IntN(2), StrideH: 1, StrideW: 2}
		d.then(bcnn.AvgPool{Window: w}, most, at)
	case 9:
		index := make([]int32, 1+d.IntN(s.C+2))
		for i := range index {
			index[i] = int32(d.IntN(s.C+1) - 1)
		}
		if d.IntN(2) == 0 {
			for i := range index {
				index[i] = max(index[i], 0)
			}
		}
		d.then(bcnn.Channels{Index: index}, most, at)
	case 10:
		list := func(size int) []int32 {
			out := slices.Repeat([]int32{-1}, d.IntN(2))
			for i := range size {
				out = append(out, int32(i))
			}
			return append(out, slices.Repeat([]int32{-1}, d.IntN(3))...)
		}
		d.then(bcnn.Pixels{Rows: list(s.H), Cols: list(s.W), Fill: d.some(1, 0, 0, -1, 1, 0.5, -2)[0]}, max(most, 2), at)
	case 11:
		for range 4 {
			if other := d.IntN(len(d.shapes)) - 1; other != at && d.shapes[other+1].H == s.H && d.shapes[other+1].W == s.W {
				d.then(bcnn.Concat{}, max(most, d.most[other+1]), at, other)
				break
			}
		}
	case 12:
		for range 4 {
			if other := d.IntN(len(d.shapes)) - 1; other != at && d.shapes[other+1] == s {
				d.then(bcnn.Add{}, most+d.most[other+1], at, other)
				break
			}
		}
	case 13:
		d.then(bcnn.Flatten{}, most, at)
	case 17: // rows of codes with factors by those of another layer, or by themselves
		other := d.at()
		if d.IntN(2) == 0 {
			at, other = d.two(at), d.two(at)
			most = d.most[at+1]
		} else if d.IntN(2) == 0 {
			d.then(bcnn.Transpose{}, most, at)
			d.then(bcnn.Transpose{}, most, len(d.shapes)-2)
			other = len(d.shapes) - 2
		}
		d.then(bcnn.MatMul{}, most*d.most[other+1]*float64(s.C), at, other)
	case 18: // codes times a number of each pixel, which a layer of one pixel reads
		d.then(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1, Weights: bcnn.Weights{F32: d.weights(s.C)}}, most*float64(s.C), at)
		by := len(d.shapes) - 2
		if codes := d.steps(at); d.shapes[by+1].C == 1 && d.shapes[by+1].Pixels() == d.shapes[codes+1].Pixels() {
			d.then(bcnn.Mul{}, d.most[codes+1]*d.most[by+1], codes, by)
		}
		last := len(d.shapes) - 2
		op := bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1 + d.IntN(4)/3, StrideH: 1 + d.IntN(4)/3}, Out: 1 + d.IntN(3)}
		op.Weights.F32 = d.weights(op.Out * op.KW * d.shapes[last+1].C)
		if d.IntN(2) == 0 {
			op.Bias = d.some(op.Out, numbers...)
		}
		d.then(op, d.most[last+1]*float64(op.KW*d.shapes[last+1].C)+2, last)
	case 19: // a concatenation, to which channels between zeros are added
		other := d.at()
		if o := d.shapes[other+1]; o.H != s.H || o.W != s.W {
			other = at
		}
		source := d.at()
		if o := d.shapes[source+1]; o.H != s.H || o.W != s.W {
			source = at
		}
		before := len(d.shapes)
		d.then(bcnn.Concat{}, max(most, d.most[other+1]), at, other)
		if len(d.shapes) == before {
			return
		}
		joined := len(d.shapes) - 2
		index := slices.Repeat([]int32{-1}, d.shapes[joined+1].C)
		part := index[:s.C]
		if d.IntN(2) == 0 {
			part = index[s.C:]
		}
		first := d.IntN(2) * d.IntN(d.shapes[source+1].C)
		for k := range part {
			part[k] = int32((first + k) % d.shapes[source+1].C)
		}
		if d.IntN(4) == 0 {
			index[d.IntN(len(index))] = -1
		}
		d.then(bcnn.Channels{Index: index}, d.most[source+1], source)
		operands := []int{joined, len(d.shapes) - 2}
		if d.IntN(2) == 0 {
			slices.Reverse(operands)
		}
		d.then(bcnn.Add{}, d.most[joined+1]+d.most[source+1], operands...)
	case 14: // of two functions of one value
		pairs := []bcnn.Op{bcnn.Add{}, bcnn.Add{}, bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}}
		d.then(pairs[d.IntN(len(pairs))], 64, d.steps(at), d.steps(at))
	default:
		op := bcnn.Conv2D{Window: d.window(3), Out: 1 + d.IntN(4), Groups: 1}
		if s.C%2 == 0 && d.IntN(4) == 0 {
			op.Groups, op.Out = 2, 2*(1+d.IntN(2))
		}
		n := op.Out * op.KH * op.KW * s.C / op.Groups
		op.Weights.F32 = d.weights(n)
		if d.IntN(2) == 0 {
			op.Bias = d.some(op.Out, numbers...)
		}
		bound := most*float64(op.KH*op.KW*s.C) + 2
		if s.Pixels()*s.C <= 64 && d.IntN(4) == 0 {
			n = op.Out * s.Values()
			d.then(bcnn.Dense{Out: op.Out, Weights: bcnn.Weights{F32: d.weights(n)}, Bias: op.Bias}, most*float64(s.Values())+2, at)
			return
		}
		d.then(op, bound, at)
	}
}

// steps appends signs or levels of a layer, perhaps behind a function and with a factor behind
// them, and returns which layer they are.
func (d *drawn) steps(at int) int {
	front := []bcnn.Op{bcnn.Affine{Bias: d.some(1, -1, -0.5, 0.5, 1)}, bcnn.ReLU{}, bcnn.Clip{Min: -1, Max: 1}, bcnn.Affine{Scale: []float32{-1}}}
	if k := d.IntN(2 * len(front)); k < len(front) {
		d.then(front[k], d.most[at+1]+1, at)
		at = len(d.shapes) - 2
	}
	if d.IntN(2) == 0 {
		d.then(bcnn.Sign{Zero: bcnn.ZeroRule(1 + d.IntN(2))}, 1, at)
	} else {
		list := d.some(2, -2, -1, -0.5, 0, 0.5, 1)
		slices.Sort(list)
		d.then(bcnn.Quantize{Low: d.IntN(3) - 2, Levels: 3, Thresholds: list}, 2, at)
	}
	if d.IntN(2) == 0 {
		d.then(bcnn.Affine{Scale: d.some(1, -1, 0.5, 0.25), Bias: d.some(1, 0, 0.5, -1)}, 3, len(d.shapes)-2)
	}
	return len(d.shapes) - 2
}

// network draws one whose outputs are all that nothing reads.
func drawNetwork(seed uint64) *bcnn.Network {
	r := rand.New(rand.NewPCG(seed, 7))
	shape := bcnn.Shape{H: 3 + r.IntN(3), W: 2 + r.IntN(4), C: 1 + r.IntN(4)}
	d := &drawn{Rand: r, Network: network(shape), shapes: []bcnn.Shape{shape}, most: []float64{2}}
	d.then(bcnn.Affine{Scale: []float32{1}}, 2, bcnn.NetworkInput)
	for range 4 + r.IntN(14) {
		if d.layer(d.IntN(18)); d.IntN(5) == 0 {
			d.chain()
		}
	}
	for range r.IntN(3) {
		d.layer(18)
	}
	if d.IntN(3) == 0 {
		d.layer(19)
	}
	d.Outputs = nil
	read := make([]bool, len(d.Layers))
	for _, l := range d.Layers {
		for _, in := range l.Inputs {
			if in >= 0 {
				read[in] = true
			}
		}
	}
	for i, yes := range read {
		if !yes || r.IntN(8) == 0 {
			d.Outputs = append(d.Outputs, i)
		}
	}
	return d.Network
}

// requireExact checks that a random network computes the same numbers when it is simplified,
// with all rules or without one of them, and that nothing is found twice.
func requireExact(t *testing.T, seed uint64, found map[simplify.Rule]int) {
	n := drawNetwork(seed)
	require.NoError(t, n.Check())
	options := simplify.Options{}
	if rules := simplify.Rules(); seed%3 == 0 {
		options.Without = []simplify.Rule{rules[seed/3%uint64(len(rules))]}
	}
	m, findings, err := simplify.Network(t.Context(), n, options)
	require.NoError(t, err, "seed %d", seed)
	for _, f := range findings {
		found[f.Rule]++
		require.NotContains(t, options.Without, f.Rule)
	}
	r := rand.New(rand.NewPCG(seed, 8))
	x := bcnn.NewTensor(bcnn.Float32, 3, n.Inputs[0].Shape)
	copy(x.F32, draw(r, len(x.F32), -2, -1, -0.5, 0, 0, 0.25, 0.5, 1, 1.5, 2))
	want, got := outputs(t, n, []bcnn.Tensor{x}), outputs(t, m, []bcnn.Tensor{x})
	require.Len(t, got, len(want))
	for k, l := range n.OutputLayers() {
		require.Equal(t, n.Layers[l].Name, m.Layers[m.OutputLayers()[k]].Name, "seed %d", seed)
		for i := range want[k].F32 {
			require.True(t, want[k].F32[i] == got[k].F32[i], "seed %d: output %d is %v, want %v", seed, k, got[k].F32[i], want[k].F32[i])
		}
	}
	again, more, err := simplify.Network(t.Context(), m, options)
	require.NoError(t, err)
	require.Same(t, m, again, "seed %d: found again: %v", seed, more)
}

func TestRandomNetworks(t *testing.T) {
	networks := 6000
	if testing.Short() {
		networks = 600
	}
	found := map[simplify.Rule]int{}
	for seed := range uint64(networks) {
		requireExact(t, seed, found)
	}
	for _, r := range []simplify.Rule{simplify.Weights, simplify.Functions, simplify.Parts, simplify.Border, simplify.Sums} {
		require.Positive(t, found[r], r)
	}
	t.Log(found)
}

func FuzzNetwork(f *testing.F) {
	f.Add(uint64(1716))
	f.Fuzz(func(t *testing.T, seed uint64) { requireExact(t, seed, map[simplify.Rule]int{}) })
}
