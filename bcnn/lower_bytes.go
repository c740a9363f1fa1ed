package bcnn

import (
	"math"

	"github.com/bitcnn/bitcnn/internal/num"
)

// Levels flow as bytes where more products of bits than are worth it would stand for one
// of theirs.

// form is how levels lie in a tensor.
type form int

const (
	asFloats form = iota
	asBytes
	asPlanes
)

// wanted returns what the layers that read levels take them as: as planes if one of them
// does, otherwise as bytes if one does.
func (lo *lowering) wanted(i int, op Quantize, planes int) (form, error) {
	best := asFloats
	for _, reader := range lo.next[i] {
		var w Weights
		wanted := asFloats
		groups := 1
		layer := lo.net.Layers[reader].Op
		switch layer := layer.(type) {
		case MaxPool, Flatten:
			var err error
			if wanted, err = lo.wanted(reader, op, planes); err != nil {
				return 0, err
			}
			best = max(best, wanted)
			continue
		case Concat, Channels, Pixels:
			var err error
			if wanted, err = lo.movedAs(reader); err != nil {
				return 0, err
			}
			best = max(best, wanted)
			continue
		case Conv2D:
			w, groups = layer.Weights, max(layer.Groups, 1)
		case Dense:
			w = layer.Weights
		default:
			continue
		}
		if w.real() {
			continue
		}
		parts := 1
		if w.Int8 != nil {
			if err := lo.Charge(int64(len(w.Int8))); err != nil {
				return 0, err
			}
			parts, _ = unary(w.Int8)
		}
		switch {
		case planes <= MaxPlanes && parts*planes <= fewProducts:
			wanted = asPlanes
		case op.byteZero() && lo.noBytes(reader, groups) == "":
			wanted = asBytes
		}
		best = max(best, wanted)
	}
	return best, nil
}

// byteZero reports whether 0 is among the levels that bytes are the numbers of.
func (op Quantize) byteZero() bool {
	return op.Low <= 0 && op.Low+op.Levels > 0 && op.Low >= -math.MaxUint8
}

// noBytes says why a layer cannot sum bytes; empty if it can.
func (lo *lowering) noBytes(i, groups int) string {
	if groups > 1 {
		return bytesInGroups
	}
	taps := lo.input(i).Values()
	if op, conv := lo.net.Layers[i].Op.(Conv2D); conv {
		w := op.Window.normal()
		taps = num.Product(w.KH, w.KW, lo.input(i).C)
	}
	if taps > maxTapsInt8 {
		return tooManyBytes
	}
	return ""
}

// whole returns real weights as integers of 8 or of 16 bits; nil for both where they are
// not, or where sums of bytes times them could leave int32.
func (lo *lowering) whole(weights []float32, out int) ([]int8, []int16, error) {
	if err := lo.Charge(int64(len(weights))); err != nil {
		return nil, nil, err
	}
	for _, w := range weights { // most often the first one is not
		if w != float32(int16(max(min(w, math.MaxInt16), math.MinInt16))) {
			return nil, nil, nil
		}
	}
	if err := lo.hold(3 * int64(len(weights))); err != nil {
		return nil, nil, err
	}
	int8s, int16s := make([]int8, len(weights)), make([]int16, len(weights))
	narrow := true
	for i, w := range weights {
		int8s[i], int16s[i] = int8(w), int16(w)
		narrow = narrow && float32(int8s[i]) == w
	}
	switch {
	case narrow:
		return int8s, nil, nil
	case largestSum(int16s, len(weights)/out) > math.MaxInt32/255:
		return nil, nil, nil
	}
	return nil, int16s, nil
}

// input returns the shape of the first input of a layer.
func (lo *lowering) input(i int) Shape {
	in := lo.net.Layers[i].Inputs[0]
	if in <= NetworkInput {
		return lo.net.Inputs[NetworkInput-in].Shape
	}
	return lo.types[in].shape
}

// bytes completes conv on the numbers of levels, which are bytes.
func (lo *lowering) bytes(v value, i int, conv *ConvStep, w Weights, rowLen int, bias []float32) (value, error) {
	conv.PadValue, conv.ZeroPoint = 0, v.levels.zero
	conv.Bits, conv.Int8 = w.Bits, w.Int8
	out := value{conv: conv, convIn: v.tensor, out: lo.types[i].shape, layers: []int{i}}
	var err error
	if conv.Dense && w.Binary() {
		if conv.Bits, err = lo.splitRows(w.Bits, rowLen, lo.shape(v).C); err != nil {
			return out, err
		}
	}
	if len(bias) > 0 {
		if out, err = lo.push(out, affineLink(i, Affine{Bias: bias})); err != nil {
			return out, err
		}
	}
	return lo.begin(out)
}
