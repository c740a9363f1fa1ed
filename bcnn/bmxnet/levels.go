package bmxnet

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Values and weights of several bits, as BMXNet rounds them: of x from 0 to 1,
// round((2^k − 1)·x)/(2^k − 1) in float32, halves away from 0.

// mostActBits and mostWeightBits are how many bits of a value are levels of a
// bcnn.Network, and of a weight small integers.
const (
	mostActBits    = 8
	mostWeightBits = 7
)

// top is the highest level of k bits.
func top(k int) int { return 1<<k - 1 }

// rounded is the level of x among those of k bits.
func rounded(x float32, k int) int {
	return int(math.Round(float64(float32(float32(top(k)) * x))))
}

// levels returns a value limited to 0 to 1 as whole numbers of k bits, 2^k − 1 for 1.
// Layers that read the same value share them.
func (im *importer) levels(n *node, v value, k int) value {
	key := quantised{v.layer, k}
	if q, ok := im.quantised[key]; ok {
		q.vector = v.vector
		return q
	}
	try.Check(im.budget.Charge(64 * int64(top(k))))
	q := v
	op := bcnn.Quantize{Levels: top(k) + 1, Thresholds: make([]float32, top(k))}
	for i := range op.Thresholds {
		op.Thresholds[i] = f32.Least(func(x float32) bool { return rounded(x, k) > i })
	}
	q = im.emit(n, "/levels", op, q, v)
	im.quantised[key] = q
	return q
}

// quantised is the key of levels: a layer, and how many bits.
type quantised struct{ layer, bits int }

// quantize returns a value as QActivation rounds it to k bits.
func (im *importer) quantize(n *node, v value, k int) value {
	q := im.levels(n, v, k)
	return im.pointwise(n, "", bcnn.Affine{Scale: []float32{float32(1 / float64(top(k)))}}, q)
}

// integers returns weights of k bits as odd integers from 1 − 2^k to 2^k − 1, which
// stand for the values from −1 to 1: 2·round((2^k − 1)·(tanh(w)/(2·max|tanh|) + ½)) −
// (2^k − 1).
func (f *filters) integers(b *budget.Budget, k int) []int8 {
	values := try.Value(f.floats(b))
	const work = 16 // for a tanh
	try.Check(b.Charge(work * int64(len(values))))
	most := float32(0)
	for i, w := range values {
		values[i] = float32(math.Tanh(float64(w)))
		most = max(most, values[i], -values[i])
	}
	if !(most > 0) {
		try.Failf("its weights are all 0 or NaN")
	}
	list := make([]int8, 0, len(values))
	f.reorder(b, func(_, _, _, from int) {
		list = append(list, int8(2*rounded(float32(values[from]/(2*most))+0.5, k)-top(k)))
	})
	return list
}

// lowBit returns the weights of a layer of several bits, the factor that makes sums of
// them those of BMXNet, and its input.
func (im *importer) lowBit(n *node, f *filters, p precision, dense bool, v value) (bcnn.Weights, float32, value) {
	var w bcnn.Weights
	steps := 1.0
	switch {
	case p.weight == 1:
		w, _ = f.binary(im.budget, dense)
	default:
		w.Int8 = f.integers(im.budget, p.weight)
		steps = float64(top(p.weight))
	}
	from := &im.nodes[n.inputs[0][0]]
	switch {
	case p.act == full:
	case p.act == 1:
		v = im.sign(from, v)
	default:
		v = im.levels(from, v, p.act)
		steps *= float64(top(p.act))
	}
	return w, float32(1 / steps), v
}

// checkBits refuses what has no layer.
func (p precision) checkBits() {
	switch {
	case p.act < full && p.act > mostActBits:
		try.Failf("activations of %d bits are not supported, want act_bit 1 to %d, or %d", p.act, mostActBits, full)
	case p.weight < full && p.weight > mostWeightBits:
		try.Failf("weights of %d bits are not supported, want weight_bit 1 to %d, or %d", p.weight, mostWeightBits, full)
	case p.weight == full && p.act < full:
		try.Failf("activations of few bits are not supported with real weights")
	case p.packed && !p.binary && !(p.weight == 1 && p.act == full):
		try.Failf("packed weights are supported only with 1 bit, and with activations of 1 bit or of full precision")
	}
}
