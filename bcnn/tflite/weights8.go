package tflite

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
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
func (im *importer) conv8(o *schema.Operator, v *value, c *constant, g geometry, act int) (*value, error) {
	d := c.dims
	scales, err := c.scales(d[0], 0)
	if err != nil {
		return nil, err
	}
	groups := v.shape.C / d[3]
	rows, err := im.bytes(c)
	if err != nil {
		return nil, err
	}
	return im.convolution8(o, v, g, groups, weights8{
		rows: rows, out: d[0], scales: scales, act: act, bias: 2, rounds: func(int) rounding { return halvesUp },
	})
}

// depthwise8 is DEPTHWISE_CONV_2D of 8-bit values.
func (im *importer) depthwise8(o *schema.Operator, v *value, c *constant, g geometry, act int) (*value, error) {
	d := c.dims
	scales, err := c.scales(d[3], 3)
	if err != nil {
		return nil, err
	}
	taps, err := im.bytes(c)
	if err != nil {
		return nil, err
	}
	rows, err := channelsFirst(im.budget, taps, d[3])
	if err != nil {
		return nil, err
	}
	const block = 8 // of channels that vectors make; those behind round otherwise
	return im.convolution8(o, v, g, v.shape.C, weights8{
		rows: rows, out: d[3], scales: scales, act: act, bias: 2,
		rounds: func(c int) rounding { return rounding(c >= d[3]/block*block) },
	})
}

func (im *importer) convolution8(o *schema.Operator, v *value, g geometry, groups int, w weights8) (*value, error) {
	window, shape, err := g.window(v)
	if err != nil {
		return nil, err
	}
	shape.C = w.out
	w.build = func(weights bcnn.Weights) bcnn.Op {
		return bcnn.Conv2D{Window: window, Out: w.out, Groups: groups, Weights: weights}
	}
	return im.weighted8(o, v, shape, w)
}

// dense8 is FULLY_CONNECTED of 8-bit values; build makes the layer.
func (im *importer) dense8(o *schema.Operator, v *value, c *constant, shape bcnn.Shape, act int,
	build func(w bcnn.Weights, bias []float32) bcnn.Op) (*value, error) {
	scales, err := c.scales(c.dims[0], 0)
	if err != nil {
		return nil, err
	}
	rows, err := im.bytes(c)
	if err != nil {
		return nil, err
	}
	return im.weighted8(o, v, shape, weights8{
		rows: rows, out: c.dims[0], scales: scales, single: len(scales) == 1, act: act, bias: 2,
		rounds: func(int) rounding { return halvesUp },
		build:  func(w bcnn.Weights) bcnn.Op { return build(w, nil) },
	})
}

// bytes returns a copy of the 8-bit integers of a constant.
func (im *importer) bytes(c *constant) ([]int8, error) {
	n := len(c.tensor.Data)
	if err := im.budget.Charge(int64(n)); err != nil {
		return nil, err
	}
	out := make([]int8, n)
	err := im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = int8(c.tensor.Data[i])
		}
	})
	return out, err
}

// bias8 returns the biases of a layer on 8-bit values, which count in its sums: input i,
// which repeats where the layer has more outputs.
func (im *importer) bias8(o *schema.Operator, i, out int) (func(c int) int64, error) {
	if !has(o, i) {
		return func(int) int64 { return 0 }, nil
	}
	c, err := im.required(o, i)
	if err != nil {
		return nil, err
	}
	list, err := c.words()
	if err != nil {
		return nil, fmt.Errorf("its biases: %w", err)
	}
	if n := list.Len(); n != out {
		return nil, fmt.Errorf("%d biases for %d channels", n, out)
	}
	return func(c int) int64 { return int64(flat.Int32s(list).At(c % out)) }, nil
}

// weighted8 emits a layer with weights of INT8 and what makes 8-bit integers of its sums.
func (im *importer) weighted8(o *schema.Operator, v *value, shape bcnn.Shape, w weights8) (*value, error) {
	q, err := im.output8(o.Outputs[0])
	if err != nil {
		return nil, err
	}
	bias, err := im.bias8(o, w.bias, w.out/max(w.blocks, 1))
	if err != nil {
		return nil, err
	}
	limits, err := q.activationRange(w.act)
	if err != nil {
		return nil, err
	}
	thresholds, err := im.numbers(w.out * steps8)
	if err != nil {
		return nil, err
	}
	size := len(w.rows) / w.out
	op := w.build(bcnn.Weights{Int8: w.rows})
	conv, _ := op.(bcnn.Conv2D)
	large := false
	for c := range w.out {
		lo, hi, err := im.range8(v, w.rows[c*size:][:size])
		if err != nil {
			return nil, err
		}
		most := max(-lo, hi)
		if most >= maxSum {
			if size > maxTaps8 || conv.Groups > 1 {
				return nil, fmt.Errorf("sums of 8-bit products may reach %d in channel %d, of which float32 holds all integers only below %d: "+
					"convert this layer without quantising it", most, c, maxSum)
			}
			large = true
		}
		scale := float64(v.scale) * float64(w.scales[c%len(w.scales)])
		if w.single {
			scale = float64(v.scale * w.scales[0])
		}
		f, err := newFactor(scale / float64(q.scale))
		if err != nil {
			return nil, err
		}
		shift, rounds := bias(c), w.rounds(c)
		if err := errors.Join(f.fits(lo+shift), f.fits(hi+shift)); err != nil {
			return nil, err
		}
		level := func(x int64) int64 { return limits.of(f.of(x+shift, rounds) + int64(q.zero)) }
		if level(min(hi, maxSum)) < level(hi) || level(max(lo, -maxSum)) > level(lo) {
			return nil, fmt.Errorf("the output of channel %d changes between sums of %d and %d, of which float32 holds all integers only up to %d: "+
				"convert this layer without quantising it", c, lo, hi, maxSum)
		}
		list := thresholds[c*steps8:][:steps8]
		if err := im.steps8Of(list, max(lo, -maxSum), min(hi, maxSum), level); err != nil {
			return nil, err
		}
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
	if v, err = im.centred(o, v); err != nil {
		return nil, err
	}
	if large {
		if v, err = im.asLevels(o, v); err != nil {
			return nil, err
		}
	}
	y, err := im.emit(o, "/sum", op, shape, v)
	if err != nil {
		return nil, err
	}
	return im.integers8(o, y, thresholds, q)
}

// maxTaps8 is the largest number of taps of which the sums of bytes fit into int32.
const maxTaps8 = math.MaxInt32 / (math.MaxUint8 * -math.MinInt8)

// asLevels returns a value that is levels or the bytes of an input, of which sums are
// exact beyond what float32 holds.
func (im *importer) asLevels(o *schema.Operator, v *value) (*value, error) {
	if v.layer < 0 {
		return v, nil
	}
	layer := im.net.Layers[v.layer]
	switch layer.Op.(type) {
	case bcnn.Quantize:
		return v, nil
	case bcnn.Affine: // centred
		if layer.Inputs[0] < 0 {
			return v, nil
		}
	}
	thresholds, err := im.numbers(steps8)
	if err != nil {
		return nil, err
	}
	for k := range thresholds {
		thresholds[k] = float32(math.MinInt8 + 1 + k - v.zero)
	}
	y, err := im.emit(o, "/levels", bcnn.Quantize{Low: math.MinInt8 - v.zero, Levels: steps8 + 1, Thresholds: thresholds}, v.shape, v)
	return as(v, y, err)
}

// range8 returns the bounds of all sums of a filter over 8-bit values, partial sums included.
func (im *importer) range8(v *value, row []int8) (lo, hi int64, err error) {
	least, most := int64(math.MinInt8-v.zero), int64(math.MaxInt8-v.zero)
	err = im.budget.Loop(len(row), func(from, to int) {
		for _, w := range row[from:to] {
			a, b := int64(w)*least, int64(w)*most
			lo += min(a, b)
			hi += max(a, b)
		}
	})
	return lo, hi, err
}
