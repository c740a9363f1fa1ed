package lower

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Levels are bytes if bit planes would take more binary products for one of theirs than they are
// worth.

// form is how a tensor holds levels.
type form int

const (
	asFloats form = iota
	asBytes
	asPlanes
)

// wanted returns the form of levels with the lowest cost for the layers that read them, in
// instructions, including the cost of making levels of float32 values, each of which costs so many as float32.
func (lo *lowering) wanted(i int, op bcnn.Quantize, planes int, ofFloats float64) (form, error) {
	costs, err := lo.readersCosts(i, op, planes)
	if err != nil {
		return 0, err
	}
	if !byteZero(op) {
		costs.bytes = math.Inf(1)
	}
	values, ofBytes := lo.types[i].Shape.Values(), float64(costOfLevels)
	if onlyZero(op) {
		ofBytes = costOfCounting
	}
	costs = costs.plus(formCosts{
		floats: count(values, 1, ofFloats), bytes: count(values, 1, ofBytes), planes: count(values, 1<<planes-1, 1),
	})
	return costs.least(), nil
}

// least returns the form with the lowest cost.
func (c formCosts) least() form {
	switch {
	case c.planes < c.floats && c.planes <= c.bytes:
		return asPlanes
	case c.bytes < c.floats:
		return asBytes
	}
	return asFloats
}

// readersCosts returns what the readers of levels of layer i cost, for each form.
func (lo *lowering) readersCosts(i int, op bcnn.Quantize, planes int) (formCosts, error) {
	var sum formCosts
	if lo.uses[i] > len(lo.next[i]) { // an output
		sum = valueCosts(lo.types[i].Shape, planes)
	}
	if planes > plan.MaxPlanes {
		sum.planes = math.Inf(1)
	}
	for _, reader := range lo.next[i] {
		var costs formCosts
		var err error
		switch layer := lo.net.Layers[reader].Op.(type) {
		case bcnn.MaxPool:
			costs, err = lo.readersCosts(reader, op, planes)
			costs.floats += count(lo.input(reader).Values(), 1, costOfWidth)
		case bcnn.Flatten:
			costs, err = lo.readersCosts(reader, op, planes)
		case bcnn.Concat, bcnn.Channels, bcnn.Pixels, bcnn.Transpose:
			var moved form
			if moved, err = lo.movedAs(reader); err == nil && moved == asPlanes {
				costs = formCosts{bytes: math.Inf(1), floats: math.Inf(1)}
			} else {
				costs = valueCosts(lo.input(reader), planes)
			}
		case bcnn.Conv2D:
			w := layer.Window.Normal()
			costs, err = lo.layerCosts(reader, op, planes, w.KH, w.KW, max(layer.Groups, 1), layer.Weights)
		case bcnn.Dense:
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

// layerCosts returns the cost of layer i, which has weights and reads levels, for each form.
func (lo *lowering) layerCosts(i int, op bcnn.Quantize, planes, kh, kw, groups int, w bcnn.Weights) (formCosts, error) {
	values := valueCosts(lo.input(i), planes)
	if w.Real() {
		return values, nil
	}
	parts, err := lo.parts(w)
	if err != nil {
		return formCosts{}, err
	}
	each := lo.types[i].Shape.Values()
	c := lo.input(i).C / groups
	of := grouping{groups: groups, inputs: c, outputs: lo.types[i].Shape.C / groups, taps: num.Product(kh, kw, c)}
	// A layer that cannot read a form is computed in float32.
	real := count(each, kh*kw*c, costOfFloats)
	costs := formCosts{floats: real, bytes: values.bytes + real, planes: values.planes + real}
	rare := onlyZero(op)
	products := float64(planes * parts)
	if rare {
		products = oftenOne * float64(parts)
	}
	if groups > 1 && planes*parts > 1 {
		products *= costOfGroups
	}
	if planes*parts <= fewProducts && !of.noBits(planesOf(op.Low, op.Levels), parts, lo.endsInSign(i)) {
		costs.planes = count(each, pieces(kh, kw, c), costOfBits*products)
		if c%sizeOfPiece > 0 && !rare {
			costs.planes += float64(lo.input(i).Pixels()) * float64(num.CeilDiv(kw*c, sizeOfPiece)) * products * costOfJoining
		}
	}
	if byteZero(op) && of.noBytes(w) == "" {
		costs.bytes = count(each, kh*num.CeilDiv(kw*c, 4), 1)
	}
	return costs, nil
}

// valueCosts returns the cost of making float32 values of levels, for each form.
func valueCosts(s bcnn.Shape, planes int) formCosts {
	values := s.Values()
	return formCosts{planes: count(values, planes, costOfBits), bytes: count(values, 1, 2)}
}

// formCosts are the costs of a layer for each form of its input, in instructions on registers of 16
// lanes of 32 bits.
type formCosts struct{ floats, bytes, planes float64 }

func (c formCosts) plus(d formCosts) formCosts {
	return formCosts{floats: c.floats + d.floats, bytes: c.bytes + d.bytes, planes: c.planes + d.planes}
}

const (
	// costOfBits is the number of instructions for a product of 32 bits: xor, population count and
	// addition. A product of 4 bytes takes one.
	costOfBits = 3
	// costOfFloats is the weight of a float32 product. It is far above its real cost, since
	// integers are exact.
	costOfFloats = 1 << 10
	// costOfJoining is the cost of joining the bits of neighbours into a piece of sizeOfPiece bits,
	// if the channels of a pixel do not fill pieces. Bits of a single plane are joined by vector
	// instructions.
	costOfJoining = 6
	sizeOfPiece   = 32
	// costOfLevels is the cost of making levels of float32 values that are evenly spaced: a
	// product, a sum, limits, and narrowing.
	costOfLevels = 6
	// costOfWidth is the cost of a pool of float32 levels beyond that of bytes, a quarter of what it reads.
	costOfWidth = 3
	// costOfCounting is the cost of levels that are not evenly spaced: values are compared with
	// each threshold.
	costOfCounting = 32
	// costOfMoving is the cost of writing a float32 value, reading it and writing it elsewhere.
	costOfMoving = 4
	// costOfGroups is how much longer a product of planes takes if it is in groups, whose sums go
	// through memory.
	costOfGroups = 3
	// oftenOne is how many products a product of −1, 0 and +1 counts for if 0 hardly ever occurs,
	// so that the lower plane is empty.
	oftenOne = 1.25
)

// count returns the instructions for a number of values of pieces each, 16 of which are computed at
// a time.
func count(values, pieces int, cost float64) float64 {
	return float64(values) * float64(pieces) * cost / 16
}

// pieces returns how many pieces of 32 bits the bits of a window on c channels fill. Several taps
// may share one.
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

// parts returns how many weights of ±1 add up to those of a layer.
func (lo *lowering) parts(w bcnn.Weights) (int, error) {
	if w.Int8 == nil {
		return 1, nil
	}
	if err := lo.Charge(int64(len(w.Int8))); err != nil {
		return 0, err
	}
	parts, _ := unary(w.Int8)
	return parts, nil
}

// endsInSign reports whether nothing but a sign reads the output of layer i, behind functions of one
// value and pools.
func (lo *lowering) endsInSign(i int) bool {
	for lo.uses[i] == 1 && len(lo.next[i]) == 1 {
		i = lo.next[i][0]
		switch lo.net.Layers[i].Op.(type) {
		case bcnn.Sign:
			return true
		case bcnn.BatchNorm, bcnn.Affine, bcnn.ReLU, bcnn.PReLU, bcnn.Clip, bcnn.Function, bcnn.MaxPool:
		default:
			return false
		}
	}
	return false
}

// onlyZero reports whether the levels are −1, 0 and +1 and only the value 0 gives 0, as in a sign.
func onlyZero(op bcnn.Quantize) bool {
	t := op.Thresholds
	return op.Low == -1 && op.Levels == 3 && len(t) == 2 && t[0] == 0 && t[1] == math.SmallestNonzeroFloat32
}

// byteZero reports whether one of the levels is 0, and a byte holds its code.
func byteZero(op bcnn.Quantize) bool {
	return op.Low <= 0 && op.Low+op.Levels > 0 && op.Low >= -math.MaxUint8
}

// grouping is the inputs and outputs of each group of a layer with weights; one group is the whole
// layer. A sum has so many taps.
type grouping struct{ groups, inputs, outputs, taps int }

const (
	// fewBytes is the number of inputs of a group below which products of four bytes are worth no
	// more than one of float32.
	fewBytes = 16
	// fewWeights is the number of weights of a tap of a group up to which a product of bits takes
	// longer than one of float32: registers are filled neither by its inputs nor by its outputs.
	fewWeights = 1 << 8
)

// noBytes returns why a layer with weights w cannot sum bytes, or "" if it can.
func (g grouping) noBytes(w bcnn.Weights) string {
	switch {
	case g.groups > 1 && (g.inputs < fewBytes || plan.GroupsOfBlocks(g.groups, g.outputs, w.Binary()) == 0):
		return bytesInGroups
	case g.taps > plan.MaxTapsInt8:
		return tooManyBytes
	}
	return ""
}

// noBits reports whether groups are so small that float32, if it is exact, is faster than a product
// of bits for each plane of the input and each part of the weights. A word has the bits of 64 groups
// of one channel each, which are counted at once, but that is faster only where the counts become
// bits.
func (g grouping) noBits(in levels, parts int, toBits bool) bool {
	planes := in.planes
	largest := num.Sum(1<<planes, max(in.offset, -in.offset)) / 2 // of the input
	switch {
	case g.groups == 1 || num.Product(g.taps, largest, parts) > exactFloats:
		return false
	case planes*parts == 1 && g.inputs == 1 && g.outputs == 1:
		return !toBits
	}
	few := fewWeights
	if planes > 1 { // whose sums are added up in memory
		few *= planes * parts * planes * parts
	}
	return g.inputs*g.outputs <= few
}

// betweenZeros reports whether products of bits with the inputs of all groups take fewer instructions than
// those of float32 with the inputs of one: weights of 0 for the others make them two for each.
func (g grouping) betweenZeros(kh, kw int) bool {
	// What a tap of a few inputs takes, which fill no registers. A product of bits has costOfBits with
	// AVX-512 and more with AVX2, which takes longer than for float32 from 128 channels on.
	const costOfTap = 24
	bits := 2 * costOfBits * pieces(kh, kw, num.Product(g.groups, g.inputs))
	return g.inputs > 1 && bits < kh*kw*costOfTap && num.Product(2, g.groups, g.taps) <= exactFloats
}

// integerWeights returns real weights as integers of 8 or of 16 bits. Both are nil if they are no integers,
// or if sums of bytes times them might exceed int32.
func (lo *lowering) integerWeights(weights []float32, out int) ([]int8, []int16, error) {
	if err := lo.Charge(int64(len(weights))); err != nil {
		return nil, nil, err
	}
	for _, w := range weights { // mostly the first one is no integer
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
	case plan.LargestSum(int16s, len(weights)/out) > math.MaxInt32/255:
		return nil, nil, nil
	}
	return nil, int16s, nil
}

// input returns the shape of the first input of layer i.
func (lo *lowering) input(i int) bcnn.Shape {
	in := lo.net.Layers[i].Inputs[0]
	if in <= bcnn.NetworkInput {
		return lo.net.Inputs[bcnn.NetworkInput-in].Shape
	}
	return lo.types[in].Shape
}

// bytes completes conv on levels that are bytes.
func (lo *lowering) bytes(v value, i int, conv *plan.Conv, w bcnn.Weights, rowLen int, bias []float32) (value, error) {
	conv.PadValue, conv.ZeroPoint = 0, v.levels.zero
	conv.Bits, conv.Int8 = w.Bits, w.Int8
	out := value{conv: conv, convIn: v.tensor, out: lo.types[i].Shape, layers: []int{i}}
	var err error
	if conv.Dense && w.Binary() {
		if conv.Bits, err = lo.splitRows(w.Bits, rowLen, lo.shape(v).C); err != nil {
			return out, err
		}
	}
	if len(bias) > 0 {
		if out, err = lo.push(out, affineLink(i, bcnn.Affine{Bias: bias})); err != nil {
			return out, err
		}
	}
	return lo.begin(out)
}
