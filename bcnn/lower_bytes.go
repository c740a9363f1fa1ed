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

// wanted returns what levels are for the layers that read them: whatever costs least,
// counted in instructions, with what it takes to make levels of float32 values.
func (lo *lowering) wanted(i int, op Quantize, planes int) (form, error) {
	costs, err := lo.readersCosts(i, op, planes)
	if err != nil {
		return 0, err
	}
	if !op.byteZero() {
		costs.bytes = math.Inf(1)
	}
	values, ofBytes := lo.types[i].shape.Values(), float64(costOfLevels)
	if op.onlyZero() {
		ofBytes = costOfCounting
	}
	costs = costs.plus(formCosts{
		floats: count(values, 1, costOfLevels), bytes: count(values, 1, ofBytes), planes: count(values, 1<<planes-1, 1),
	})
	return costs.least(), nil
}

// least returns the form that costs least.
func (c formCosts) least() form {
	switch {
	case c.planes < c.floats && c.planes <= c.bytes:
		return asPlanes
	case c.bytes < c.floats:
		return asBytes
	}
	return asFloats
}

// readersCosts returns what the readers of levels cost.
func (lo *lowering) readersCosts(i int, op Quantize, planes int) (formCosts, error) {
	var sum formCosts
	if lo.uses[i] > len(lo.next[i]) { // an output
		sum = valueCosts(lo.types[i].shape, planes)
	}
	for _, reader := range lo.next[i] {
		var costs formCosts
		var err error
		switch layer := lo.net.Layers[reader].Op.(type) {
		case MaxPool, Flatten:
			costs, err = lo.readersCosts(reader, op, planes)
		case Concat, Channels, Pixels:
			var moved form
			if moved, err = lo.movedAs(reader); err == nil && moved == asPlanes {
				costs = formCosts{bytes: math.Inf(1), floats: math.Inf(1)}
			} else {
				costs = valueCosts(lo.input(reader), planes)
			}
		case Conv2D:
			w := layer.Window.normal()
			costs, err = lo.layerCosts(reader, op, planes, w.KH, w.KW, max(layer.Groups, 1), layer.Weights)
		case Dense:
			in := lo.input(reader)
			costs, err = lo.layerCosts(reader, op, planes, 1, in.Pixels(), 1, layer.Weights)
		default:
			costs = valueCosts(lo.input(reader), planes)
		}
		if err != nil {
			return sum, err
		}
		sum = sum.plus(costs)
	}
	return sum, nil
}

// layerCosts returns what a layer with weights costs that reads levels.
func (lo *lowering) layerCosts(i int, op Quantize, planes, kh, kw, groups int, w Weights) (formCosts, error) {
	values := valueCosts(lo.input(i), planes)
	if w.real() {
		return values, nil
	}
	parts := 1
	if w.Int8 != nil {
		if err := lo.Charge(int64(len(w.Int8))); err != nil {
			return formCosts{}, err
		}
		parts, _ = unary(w.Int8)
	}
	each := lo.types[i].shape.Values()
	c := lo.input(i).C / groups
	// In a form that it does not take, the layer is computed in float32.
	real := count(each, kh*kw*c, costOfFloats)
	costs := formCosts{floats: real, bytes: values.bytes + real, planes: values.planes + real}
	rare := op.onlyZero()
	products := float64(planes * parts)
	if rare {
		products = oftenOne * float64(parts)
	}
	if planes <= MaxPlanes && planes*parts <= fewProducts {
		costs.planes = count(each, pieces(kh, kw, c), costOfBits*products)
		if c%sizeOfPiece > 0 && !rare {
			costs.planes += float64(lo.input(i).Pixels()) * float64(num.CeilDiv(kw*c, sizeOfPiece)) * products * costOfJoining
		}
	}
	if op.byteZero() && lo.noBytes(i, groups) == "" {
		costs.bytes = count(each, kh*num.CeilDiv(kw*c, 4), 1)
	}
	return costs, nil
}

// valueCosts returns what it costs to make float32 values of levels.
func valueCosts(s Shape, planes int) formCosts {
	values := s.Values()
	return formCosts{planes: count(values, planes, costOfBits), bytes: count(values, 1, 2)}
}

// formCosts are the instructions that layers take for each form of their input, on
// registers of 16 lanes of 32 bits.
type formCosts struct{ floats, bytes, planes float64 }

func (c formCosts) plus(d formCosts) formCosts {
	return formCosts{floats: c.floats + d.floats, bytes: c.bytes + d.bytes, planes: c.planes + d.planes}
}

const (
	// costOfBits is how many instructions a product of 32 bits takes, where one of 4 bytes
	// takes one: exclusive or, population count and addition.
	costOfBits = 3
	// costOfFloats is what a product of float32 counts for: much more than it takes, since
	// integers are exact.
	costOfFloats = 1 << 10
	// costOfJoining is what it takes to put the bits of neighbours into a piece of sizeOfPiece
	// bits, where pixels fill none. Those of one plane are joined by vectors.
	costOfJoining = 6
	sizeOfPiece   = 32
	// costOfLevels is what levels of float32 values take: a product, a sum, bounds, and numbers
	// that are narrower.
	costOfLevels = 6
	// costOfCounting is what levels take that are no line, so that values are compared with
	// thresholds one by one.
	costOfCounting = 32
	// costOfMoving is what it takes to write a float32 value, read it and write it elsewhere.
	costOfMoving = 4
	// oftenOne is how many products those of −1, 0 and +1 count for where 0 is as good as
	// never met, so that the lower plane is empty.
	oftenOne = 1.25
)

// count returns the instructions for so many values of so many pieces, of which 16 are
// computed at a time.
func count(values, pieces int, cost float64) float64 {
	return float64(values) * float64(pieces) * cost / 16
}

// pieces returns how many pieces of 32 bits the bits of a window on c channels take, where
// several taps may share one.
func pieces(kh, kw, c int) int {
	const size = sizeOfPiece
	switch row := kw * c; {
	case row <= size/2:
		return num.CeilDiv(kh, size/row)
	case c <= size:
		return kh * num.CeilDiv(kw, size/c)
	default:
		return kh * num.CeilDiv(row, size)
	}
}

// onlyZero reports whether the levels are −1, 0 and +1 with 0 for 0 alone, as those of a
// sign are.
func (op Quantize) onlyZero() bool {
	t := op.Thresholds
	return op.Low == -1 && op.Levels == 3 && len(t) == 2 && t[0] == 0 && t[1] == math.SmallestNonzeroFloat32
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
