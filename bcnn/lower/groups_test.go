package lower_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/placetest"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// slicedConv draws a convolution of four channels in two groups as slices, convolutions
// and a concatenation, with a scale for each channel and a ReLU behind it: layers 0 to 7.
func slicedConv() drawing {
	rng := rand.New(rand.NewPCG(1, 2))
	real := func(n int) []float32 {
		all := make([]float32, n)
		for i := range all {
			all[i] = rng.Float32() - 0.5
		}
		return all
	}
	w := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
	conv := func() bcnn.Conv2D {
		return bcnn.Conv2D{Window: w, Out: 3, Weights: bcnn.Weights{F32: real(3 * 9 * 2)}, Bias: real(3)}
	}
	return draw(bcnn.Uint8, 5, 4, 4).add("a", bcnn.Affine{Scale: real(4), Bias: real(4)}).
		add("s0", bcnn.Channels{Index: []int32{0, 1}}, 0).add("s1", bcnn.Channels{Index: []int32{2, 3}}, 0).
		add("c0", conv(), 1).add("c1", conv(), 2).add("+", bcnn.Concat{}, 3, 4).
		add("b", bcnn.Affine{Scale: real(6)}).add("r", bcnn.ReLU{})
}

// sliced appends slices of the channels, a convolution of each and their concatenation: a
// convolution in groups, or what is nearly one.
func (b *builder) sliced() {
	parts := 1
	for n := 2; n <= min(b.last.C, 16); n++ {
		if b.last.C%n == 0 && (parts == 1 || b.intn(2) == 0) {
			parts = n
		}
	}
	if parts == 1 {
		b.add(b.conv(true))
		return
	}
	source, of := len(b.net.Layers)-1, b.last
	b.last.C /= parts
	n, first := b.last.C, b.conv(true)
	b.last = of
	index := make([]int32, of.C)
	for c := range index {
		index[c] = int32(c)
	}
	unlike, other := b.intn(12), source
	if unlike == 0 {
		index[b.intn(of.C)] = int32(b.intn(of.C))
	}
	if shapes, err := b.net.Shapes(); err == nil { // that of another layer, if there is one
		if like := slices.Index(shapes, of); like >= 0 {
			other = like
		}
	}
	convs, read := make([]int, parts), []int{}
	for _, p := range b.rng.Perm(parts) {
		op := first
		if p > 0 && unlike == 1 {
			op.Out += op.Groups
		}
		if p > 0 && unlike == 2 {
			op.Groups = 1
		}
		op.Weights = b.weights(op.Out*op.KH*op.KW, n/op.Groups, p == 0 || unlike != 3)
		op.Bias = nil
		if first.Bias != nil && (p == 0 || unlike != 4) {
			op.Bias = b.vector(op.Out, 1, -1, 0, 2)
		}
		from := source
		if p > 0 && unlike == 7 {
			from = other
		}
		slice := b.unread(bcnn.Channels{Index: index[p*n:][:n]}, from)
		convs[p] = b.unread(op, slice)
		read = append(read, source, slice, convs[p])
	}
	if unlike == 5 {
		b.rng.Shuffle(parts, func(i, j int) { convs[i], convs[j] = convs[j], convs[i] })
	}
	joined := b.add(bcnn.Concat{}, convs...)
	if again := read[b.intn(len(read))]; unlike == 6 && again >= 0 { // by others, too
		if shapes, err := b.net.Shapes(); err == nil && shapes[again].H == b.last.H && shapes[again].W == b.last.W {
			b.add(bcnn.Concat{}, joined, again)
		}
	}
}

// unread is add for a layer that only later ones make valid: they read it.
func (b *builder) unread(op bcnn.Op, from int) int {
	i := b.net.Append(fmt.Sprintf("%s%d", op.Kind(), len(b.net.Layers)), op, from)
	b.signs = append(b.signs, b.isSign(op, []int{from}))
	return i
}

// change gives layer i of a drawing another operation.
func change[T bcnn.Op](d drawing, i int, by func(*T)) {
	op := d.Layers[i].Op.(T)
	by(&op)
	d.Layers[i].Op = op
}

func TestSlicedConvolutionsAreGroups(t *testing.T) {
	for name, c := range map[string]struct {
		groups int // of the step; 0 for none
		change func(d drawing) drawing
	}{
		"as it is":       {2, func(d drawing) drawing { return d }},
		"without biases": {2, func(d drawing) drawing { change(d, 3, unbiased); change(d, 4, unbiased); return d }},
		"groups of groups": {4, func(d drawing) drawing {
			for _, l := range []int{3, 4} {
				change(d, l, func(c *bcnn.Conv2D) { c.Out, c.Groups, c.Bias = 4, 2, nil; c.Weights.F32 = c.Weights.F32[:4*9] })
			}
			change(d, 6, func(a *bcnn.Affine) { a.Scale = constant(8, 0.5) })
			return d
		}},
		"strides": {2, func(d drawing) drawing {
			for _, l := range []int{3, 4} {
				change(d, l, func(c *bcnn.Conv2D) { c.StrideH, c.StrideW = 2, 2 })
			}
			return d
		}},
		"of an image of bytes": {2, func(d drawing) drawing { d.Layers[0].Op = bcnn.Channels{Index: []int32{0, 1, 2, 3}}; return d }},
		"of signs": {2, func(d drawing) drawing {
			d.Layers[0].Op = bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{3, 4, 5, 6}}
			return d
		}},
		"read twice": {2, func(d drawing) drawing {
			return d.add("u", bcnn.Channels{Index: []int32{0, 0, 1, 1, 2, 2}}, 0).add("m", bcnn.Mul{}, 7, 8)
		}},
		"a slice that two read": {0, func(d drawing) drawing {
			return d.add("u", bcnn.Channels{Index: []int32{0, 0, 1, 1, 0, 1}}, 1).add("m", bcnn.Mul{}, 7, 8)
		}},
		"sums that two read": {0, func(d drawing) drawing {
			return d.add("u", bcnn.Channels{Index: []int32{0, 0, 1, 1, 2, 2}}, 3).add("m", bcnn.Mul{}, 7, 8)
		}},
		"sums that are an output": {0, func(d drawing) drawing { d.Outputs = []int{7, 3}; return d }},
		"in another order":        {0, func(d drawing) drawing { d.Layers[5].Inputs = []int{4, 3}; return d }},
		"overlapping slices":      {0, func(d drawing) drawing { d.Layers[2].Op = bcnn.Channels{Index: []int32{1, 2}}; return d }},
		"slices of two layers":    {0, func(d drawing) drawing { d.Layers[2].Inputs = []int{bcnn.NetworkInput}; return d }},
		"a function in front of the other": {0, func(d drawing) drawing {
			d.Layers[2].Op = bcnn.ReLU{}
			d.Layers[2].Inputs[0] = 1
			d.Layers[3].Inputs[0] = 2
			return d
		}},
		"a bias for one": {0, func(d drawing) drawing { change(d, 4, unbiased); return d }},
		"other windows": {0, func(d drawing) drawing {
			change(d, 4, func(c *bcnn.Conv2D) {
				c.KH, c.KW, c.Pad, c.Weights.F32 = 1, 1, bcnn.Padding{}, c.Weights.F32[:3*2]
			})
			return d
		}},
		"weights of 8 bits": {0, func(d drawing) drawing {
			for _, l := range []int{3, 4} {
				change(d, l, func(c *bcnn.Conv2D) { c.Weights = bcnn.Weights{Int8: make([]int8, 3*9*2)} })
			}
			return d
		}},
	} {
		t.Run(name, func(t *testing.T) {
			net := c.change(slicedConv()).Network
			p := requireSameUnfused(t, net)
			groups := 0
			for i, s := range p.Steps {
				op, ok := s.Op.(*plan.Conv)
				if !ok || op.Groups == 1 {
					continue
				}
				groups = op.Groups
				require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, s.Layers)
				require.Equal(t, 7, plan.Results(net, p)[i])
			}
			require.Equal(t, c.groups, groups, strings.Join(lines(p), "; "))
			placetest.RequirePlaced(t, p)

			unfused, err := lower.Network(t.Context(), net, lower.Options{Unfused: true})
			require.NoError(t, err)
			want := plan.Summarize(net, unfused)
			got := plan.Summarize(net, p)
			byName := func(a, b plan.LayerReport) int { return strings.Compare(a.Layer, b.Layer) }
			slices.SortFunc(want, byName)
			slices.SortFunc(got, byName)
			for i := range want { // scaled bytes may be the reason that one says
				want[i].WhyFloat, got[i].WhyFloat = "", ""
				want[i].Step, got[i].Step = 0, 0
			}
			require.Equal(t, want, got)
		})
	}
}

// TestSlicedConvolutionsOfRandomNetworks draws what is a convolution in groups and what is
// nearly one, of all kinds of values.
func TestSlicedConvolutionsOfRandomNetworks(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 300
	}
	found := uint64(0)
	for seed := range seeds {
		b := &builder{rng: rand.New(rand.NewPCG(seed, 9))}
		in := bcnn.Input{Shape: bcnn.Shape{H: 1 + b.intn(4), W: 1 + b.intn(4), C: []int{2, 3, 4, 8, 12}[b.intn(5)]}, DType: bcnn.Uint8}
		b.net, b.last = &bcnn.Network{Name: "slices", Inputs: []bcnn.Input{in}}, in.Shape
		for range 1 + b.intn(2) {
			switch b.intn(4) {
			case 0:
				b.add(b.zero())
			case 1:
				b.add(b.quantize())
			case 2:
				b.add(b.affine())
			}
			b.sliced()
			b.add([]bcnn.Op{b.zero(), b.affine(), bcnn.ReLU{}}[b.intn(3)])
		}
		last := len(b.net.Layers) - 1
		if b.intn(4) == 0 {
			b.net.Outputs = []int{b.intn(last), last}
		}
		requireLowersRight(t, b.net, seed)
		p, err := lower.Network(t.Context(), b.net, lower.Options{})
		require.NoError(t, err)
		if slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
			conv, ok := s.Op.(*plan.Conv)
			return ok && conv.F32 != nil && slices.ContainsFunc(s.Layers, func(l int) bool { return b.net.Layers[l].Op.Kind() == "concat" })
		}) {
			found++
		}
	}
	require.Greater(t, found, seeds/4)
}

func unbiased(c *bcnn.Conv2D) { c.Bias = nil }
