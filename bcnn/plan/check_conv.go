package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// check returns the shape of the output.
func (op *Conv) check(in, out Tensor) (bcnn.Shape, error) {
	if err := checkPlanes(op.InPlanes, in.Shape.H); err != nil {
		return bcnn.Shape{}, err
	}
	if err := checkPlanes(op.OutPlanes, 0); err != nil {
		return bcnn.Shape{}, err
	}
	if op.InPlanes > 1 && in.DType != bcnn.Bits || op.OutPlanes > 1 && (in.DType != bcnn.Bits || out.DType != bcnn.Bits) {
		return bcnn.Shape{}, fmt.Errorf("several planes need tensors of bits, but it reads %v and writes %v", in.DType, out.DType)
	}
	in.Shape = op.Image(in.Shape)
	if err := op.checkGeometry(in); err != nil {
		return bcnn.Shape{}, err
	}
	shape := op.Window.Output(in.Shape, op.Out)
	if op.Dense && (shape.Pixels() != 1 || op.KH != in.Shape.H || op.KW != in.Shape.W || op.Pad != (bcnn.Padding{}) || op.Groups != 1) {
		return bcnn.Shape{}, errors.New("a dense layer needs a window of its whole input, no padding and one group")
	}
	if err := op.checkWeights(in, out); err != nil {
		return bcnn.Shape{}, err
	}
	if in.DType == bcnn.Bits {
		if err := op.checkBorder(in.Shape, shape); err != nil {
			return bcnn.Shape{}, err
		}
	}
	return op.checkResult(in, out, shape)
}

// checkGeometry checks the window, the groups and the padding.
func (op *Conv) checkGeometry(in Tensor) error {
	if err := op.Window.Check(in.Shape, maxDim); err != nil {
		return err
	}
	if op.Out < 1 || op.Out > maxDim || op.Groups < 1 || in.Shape.C%op.Groups != 0 || op.Out%op.Groups != 0 {
		return fmt.Errorf("%d groups do not fit %d input and %d output channels", op.Groups, in.Shape.C, op.Out)
	}
	if most := op.maxPadValue(); op.PadValue < -most || op.PadValue > most {
		return fmt.Errorf("padding value %d, want −%d to %d", op.PadValue, most, most)
	}
	if op.PadValue != 0 && in.DType != bcnn.Bits {
		return fmt.Errorf("padding value %d needs an input of bits, not %v", op.PadValue, in.DType)
	}
	return nil
}

// checkResult checks what the step makes of its sums, and returns the shape of that.
func (op *Conv) checkResult(in, out Tensor, shape bcnn.Shape) (bcnn.Shape, error) {
	if out.DType == bcnn.Float32 {
		if op.Threshold != nil || op.Pool != nil {
			return bcnn.Shape{}, errors.New("an output of float32 takes no threshold and no pool")
		}
		if err := checkScale(op.Scale, op.Shift, op.Out); err != nil {
			return bcnn.Shape{}, err
		}
		return shape, op.Activation.checkFused(op.Out)
	}
	if op.Scale != nil || op.Shift != nil || op.Activation.Kind != ActivationNone {
		return bcnn.Shape{}, errors.New("an output of bits takes no scale, shift or activation")
	}
	if op.Pool != nil {
		if op.Pool.KH < 1 || op.Pool.KW < 1 || op.Pool.Pad != (bcnn.Padding{}) {
			return bcnn.Shape{}, fmt.Errorf("pool %+v needs a kernel of at least 1×1 and no padding", *op.Pool)
		}
		shape.H /= op.Pool.KH
		shape.W /= op.Pool.KW
	}
	err := op.Threshold.checkPlanes(in.DType != bcnn.Float32, op.Out, op.OutPlanes)
	shape.H *= max(op.OutPlanes, 1)
	return shape, err
}

// maxPadValue is the largest magnitude of the padding value.
func (op *Conv) maxPadValue() int {
	if op.InPlanes > 1 {
		return MaxPadValue
	}
	return 1
}

// LargestInput is the largest magnitude of an input of bits, padding included, and the least
// that backends begin a border with.
func (op *Conv) LargestInput() int {
	return max(1<<max(op.InPlanes, 1)-1, op.PadValue, -op.PadValue)
}

// MaxTapsInt8 is the largest number of taps of weights of 8 bits: the sums of bytes, with
// and without the zero point, fit into int32.
const MaxTapsInt8 = math.MaxInt32 / (255 * 128)

func (op *Conv) checkWeights(in, out Tensor) error {
	group := in.Shape.C / op.Groups
	if op.Integer() && (in.DType != bcnn.Uint8 || out.DType != bcnn.Float32) {
		return fmt.Errorf("integer weights need an input of uint8 and an output of float32, not %v and %v", in.DType, out.DType)
	}
	if in.DType == bcnn.Float32 {
		if want := num.Product(op.Out, op.KH, op.KW, group); len(op.F32) != want || len(op.Bias) != op.Out {
			return fmt.Errorf("%d weights and %d biases, want %d and %d", len(op.F32), len(op.Bias), want, op.Out)
		}
		return nil
	}
	taps := num.Product(op.KH, op.KW, group)
	if op.Int16 != nil {
		if want := num.Product(op.Out, taps); len(op.Int16) != want || op.Int8 != nil || op.Bits != nil {
			return fmt.Errorf("%d weights of 16 bits, want %d; besides %d of 8 bits and %d words of bits, want none", len(op.Int16), want, len(op.Int8), len(op.Bits))
		}
		if sum := LargestSum(op.Int16, taps); sum > math.MaxInt32/255 {
			return fmt.Errorf("weights of one output add up to %d in magnitude: 255 times that does not fit into 32 bits", sum)
		}
		return nil
	}
	if op.Int8 != nil {
		if want := num.Product(op.Out, taps); len(op.Int8) != want || op.Bits != nil {
			return fmt.Errorf("%d weights of 8 bits, want %d; besides %d words of bits, want none", len(op.Int8), want, len(op.Bits))
		}
		if taps > MaxTapsInt8 {
			return fmt.Errorf("sums of %d taps do not fit into 32 bits", taps)
		}
		return nil
	}
	if want := num.Product(op.Out, op.KH, op.KW, bits.Words(group)); len(op.Bits) != want {
		return fmt.Errorf("%d words of weights, want %d", len(op.Bits), want)
	}
	if err := bits.CheckPadding(op.Bits, group); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	if op.Offset != nil && in.DType != bcnn.Bits {
		return fmt.Errorf("offsets of sums need an input of bits, not %v", in.DType)
	}
	// The sums, and what they are computed from, must fit into int32.
	largest := 2 * op.LargestInput()
	if in.DType == bcnn.Uint8 {
		largest = 2 * 255
	}
	if taps > (math.MaxInt32-MaxOffset)/largest {
		return fmt.Errorf("sums of %d taps do not fit into 32 bits", taps)
	}
	return nil
}

// LargestSum is the largest sum of the magnitudes of rows of n weights.
func LargestSum(weights []int16, n int) int64 {
	var largest int64
	for row := range slices.Chunk(weights, n) {
		var sum int64
		for _, w := range row {
			sum += max(int64(w), -int64(w))
		}
		largest = max(largest, sum)
	}
	return largest
}

// MaxOffset is the largest magnitude of an offset of sums: float32 holds the integers up
// to there.
const MaxOffset = 1 << 24

func (op *Conv) checkBorder(in, out bcnn.Shape) error {
	if op.Offset != nil && len(op.Offset) != op.Out {
		return fmt.Errorf("%d offsets for %d outputs, want one for each", len(op.Offset), op.Out)
	}
	for _, v := range op.Offset {
		if v < -MaxOffset || v > MaxOffset {
			return fmt.Errorf("an offset of %d, want −%d to %d", v, MaxOffset, MaxOffset)
		}
	}
	b := op.Border
	if b == nil {
		if op.Offset != nil {
			return errors.New("offsets need a border")
		}
		if op.PadValue == op.ZeroBits() || !op.Window.ReadsPadding(in, out) {
			return nil
		}
		return fmt.Errorf("padding with %d needs a border", op.PadValue)
	}
	if len(b.Row) != out.H || len(b.Col) != out.W || b.Rows < 1 || b.Cols < 1 ||
		len(b.Correction) != num.Product(b.Rows, b.Cols, op.Out) {
		return fmt.Errorf("a border of %d×%d positions, %d×%d classes and %d corrections does not fit an output of %v",
			len(b.Row), len(b.Col), b.Rows, b.Cols, len(b.Correction), out)
	}
	for _, r := range b.Row {
		if r < 0 || r >= b.Rows {
			return fmt.Errorf("border row class %d does not exist among %d", r, b.Rows)
		}
	}
	for _, c := range b.Col {
		if c < 0 || c >= b.Cols {
			return fmt.Errorf("border column class %d does not exist among %d", c, b.Cols)
		}
	}
	taps := num.Product(op.KH, op.KW, in.C/op.Groups)
	most := 2 * op.LargestInput() * taps
	if op.Offset != nil {
		most += MaxOffset
	}
	for _, v := range b.Correction {
		if int(v) < -most || int(v) > most {
			return fmt.Errorf("border correction %d is too large for a sum of %d taps", v, taps)
		}
	}
	return nil
}

// ZeroBits is what 0 bits in all planes stand for: −1 without planes.
func (c *Conv) ZeroBits() int { return 1 - 1<<max(c.InPlanes, 1) }
