package tflite

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Layers with weights on 8-bit values. A layer's numbers are q − zero, so that sums of
// products are integers, which float32 holds exactly up to maxSum in any order; of them
// thresholds make the integers of the output. Beyond it sums of bytes are exact integers
// that are rounded to float32 at the end, which leaves them on their side of every
// threshold up to maxSum.

// weights8 describes a layer with weights of INT8.
type weights8 struct {
	rows   []int8 // [out][…]
	out    int
	scales []float32 // of the weights: one, or one per output
	// single says that the product of the scales of the input and of the weights is
	// rounded to float32.
	single bool
	// rounds says how outputs round.
	rounds func(c int) rounding
	act    int
	bias   int // the input with the biases
	blocks int // outputs of one channel, channel by channel; 0 means 1
	build  func(w bcnn.Weights) bcnn.Op
}

// conv8 is CONV_2D of 8-bit values.
func (im *importer) conv8(o *schema.Operator, v *value, c *constant, g geometry, act int) *value {
	d := c.dims
	scales := c.scales(d[0], 0)
	groups := v.shape.C / d[3]
	rows := im.bytes(c)
	return im.convolution8(o, v, g, groups, weights8{
		rows: rows, out: d[0], scales: scales, act: act, bias: 2, rounds: func(int) rounding { return halvesUp },
	})
}

// depthwise8 is DEPTHWISE_CONV_2D of 8-bit values.
func (im *importer) depthwise8(o *schema.Operator, v *value, c *constant, g geometry, act int) *value {
	d := c.dims
	scales := c.scales(d[3], 3)
	taps := im.bytes(c)
	rows := channelsFirst(im.budget, taps, d[3])
	const block = 8 // of channels that vectors make; those behind round otherwise
	return im.convolution8(o, v, g, v.shape.C, weights8{
		rows: rows, out: d[3], scales: scales, act: act, bias: 2,
		rounds: func(c int) rounding { return rounding(c >= d[3]/block*block) },
	})
}

func (im *importer) convolution8(o *schema.Operator, v *value, g geometry, groups int, w weights8) *value {
	window, shape := g.window(v)
	shape.C = w.out
	w.build = func(weights bcnn.Weights) bcnn.Op {
		return bcnn.Conv2D{Window: window, Out: w.out, Groups: groups, Weights: weights}
	}
	return im.weighted8(o, v, shape, w)
}

// dense8 is FULLY_CONNECTED of 8-bit values; build makes the layer.
func (im *importer) dense8(o *schema.Operator, v *value, c *constant, shape bcnn.Shape, act int,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) *value {
	scales := c.scales(c.dims[0], 0)
	rows := im.bytes(c)
	return im.weighted8(o, v, shape, weights8{
		rows: rows, out: c.dims[0], scales: scales, single: len(scales) == 1, act: act, bias: 2,
		rounds: func(int) rounding { return halvesUp },
		build:  func(w bcnn.Weights) bcnn.Op { return build(w, nil) },
	})
}

// bytes returns a copy of the 8-bit integers of a constant.
func (im *importer) bytes(c *constant) []int8 {
	n := len(c.tensor.Data)
	try.Check(im.budget.Charge(int64(n)))
	out := make([]int8, n)
	try.Check(im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = int8(c.tensor.Data[i])
		}
	}))
	return out
}

// bias8 returns the biases of a layer on 8-bit values, which count in its sums: input i,
// which repeats where the layer has more outputs.
func (im *importer) bias8(o *schema.Operator, i, out int) func(c int) int64 {
	if !has(o, i) {
		return func(int) int64 { return 0 }
	}
	c := im.required(o, i)
	list, err := try.Do(c.words)
	if err != nil {
		try.Failf("its biases: %w", err)
	}
	if n := list.Len(); n != out {
		try.Failf("it has %d biases, want one for each of %d channels", n, out)
	}
	return func(c int) int64 { return int64(flat.Int32s(list).At(c % out)) }
}

// weighted8 emits a layer with weights of INT8 and what makes 8-bit integers of its sums.
func (im *importer) weighted8(o *schema.Operator, v *value, shape bcnn.Shape, w weights8) *value {
	q := im.output8(o.Outputs[0])
	bias := im.bias8(o, w.bias, w.out/max(w.blocks, 1))
	limits := q.activationRange(w.act)
	thresholds := im.newFloats(w.out * steps8)
	size := len(w.rows) / w.out
	op := w.build(bcnn.Weights{Int8: w.rows})
	conv, _ := op.(bcnn.Conv2D)
	large := false
	for c := range w.out {
		lo, hi := im.range8(v, w.rows[c*size:][:size])
		most := max(-lo, hi)
		if most >= maxSum {
			if size > maxTaps8 || conv.Groups > 1 {
				try.Failf("sums of 8-bit products may reach %d in channel %d, but float32 holds all integers only below %d: "+
					"convert this layer without quantising it", most, c, maxSum)
			}
			large = true
		}
		scale := float64(v.scale) * float64(w.scales[c%len(w.scales)])
		if w.single {
			scale = float64(v.scale * w.scales[0])
		}
		f := newFactor(scale / float64(q.scale))
		shift, rounds := bias(c), w.rounds(c)
		f.fits(lo + shift)
		f.fits(hi + shift)
		level := func(x int64) int64 { return limits.of(f.of(x+shift, rounds) + int64(q.zero)) }
		if level(min(hi, maxSum)) < level(hi) || level(max(lo, -maxSum)) > level(lo) {
			try.Failf("the output of channel %d changes between sums of %d and %d, but float32 holds all integers only up to %d: "+
				"convert this layer without quantising it", c, lo, hi, maxSum)
		}
		list := thresholds[c*steps8:][:steps8]
		im.steps8Of(list, max(lo, -maxSum), min(hi, maxSum), level)
		for k := range list { // what sums beyond always and never reach
			if most < maxSum {
				break
			}
			switch at := int64(math.MinInt8 + 1 + k); {
			case at <= level(lo):
				list[k] = min(list[k], float32(lo))
			case at > level(hi):
				list[k] = max(list[k], -2*math.MinInt32)
			}
		}
	}
	v = im.centred(o, v)
	if large {
		v = im.asLevels(o, v)
	}
	y := im.emit(o, "/sum", op, shape, v)
	return im.integers8(o, y, thresholds, q)
}

// maxTaps8 is the largest number of taps of which the sums of bytes fit into int32.
const maxTaps8 = math.MaxInt32 / (math.MaxUint8 * -math.MinInt8)

// asLevels returns a value that is levels or the bytes of an input, of which sums are
// exact beyond what float32 holds.
func (im *importer) asLevels(o *schema.Operator, v *value) *value {
	if v.layer < 0 {
		return v
	}
	layer := im.net.Layers[v.layer]
	switch layer.Op.(type) {
	case bcnn.Quantize:
		return v
	case bcnn.Affine: // centred
		if layer.Inputs[0] < 0 {
			return v
		}
	}
	thresholds := im.newFloats(steps8)
	for k := range thresholds {
		thresholds[k] = float32(math.MinInt8 + 1 + k - v.zero)
	}
	y := im.emit(o, "/levels", bcnn.Quantize{Low: math.MinInt8 - v.zero, Levels: steps8 + 1, Thresholds: thresholds}, v.shape, v)
	return as(v, y)
}

// range8 returns the bounds of all sums of a filter over 8-bit values, partial sums included.
func (im *importer) range8(v *value, row []int8) (lo, hi int64) {
	least, most := int64(math.MinInt8-v.zero), int64(math.MaxInt8-v.zero)
	try.Check(im.budget.Loop(len(row), func(from, to int) {
		for _, w := range row[from:to] {
			a, b := int64(w)*least, int64(w)*most
			lo += min(a, b)
			hi += max(a, b)
		}
	}))
	return lo, hi
}
