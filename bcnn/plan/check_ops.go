package plan

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// check returns the number of output channels.
func (op *Binarize) check(channels int) (int, error) {
	thresholds, out := 0, channels
	switch op.Scheme {
	case bcnn.SchemeThreshold:
		thresholds = channels
	case bcnn.SchemeGrey:
		thresholds, out = 1, 1
	case bcnn.SchemeLBP:
		out = 3
	case bcnn.SchemeMinMax:
	default:
		return 0, Unsupported(fmt.Sprintf("unknown scheme %q", op.Scheme))
	}
	if (op.Scheme == bcnn.SchemeGrey || op.Scheme == bcnn.SchemeLBP) && channels != 1 && channels != 3 {
		return 0, fmt.Errorf("scheme %s of %d channels, want 1 or 3", op.Scheme, channels)
	}
	if thresholds == 0 {
		if op.Threshold != nil {
			return 0, fmt.Errorf("scheme %s takes no thresholds", op.Scheme)
		}
		return out, nil
	}
	return out, op.Threshold.check(true, thresholds)
}

// check tests thresholds of integers or of floats.
func (t *Threshold) check(integer bool, channels int) error {
	return t.checkPlanes(integer, channels, 1)
}

// checkPlanes tests the thresholds of so many planes.
func (t *Threshold) checkPlanes(integer bool, channels, planes int) error {
	if t == nil {
		return errors.New("it has no threshold")
	}
	have := len(t.F32)
	if integer {
		have = len(t.I32)
	}
	n := 1<<max(planes, 1) - 1
	if have != num.Product(n, channels) {
		return fmt.Errorf("%d thresholds for %d channels, want %d each", have, channels, n)
	}
	for i := range have - channels {
		above := integer && t.I32[i] > t.I32[channels+i]
		if !integer { // the last ones may be NaN
			next := t.F32[channels+i]
			above = next == next && !(t.F32[i] <= next)
		}
		if above {
			return fmt.Errorf("threshold %d of channel %d is above the next one", i/channels, i%channels)
		}
	}
	return checkFlip(t.Flip, channels)
}

// checkPlanes tests a number of planes, in so many rows.
func checkPlanes(planes, rows int) error {
	if planes < 0 || planes > MaxPlanes || rows%max(planes, 1) != 0 {
		return fmt.Errorf("%d planes do not divide %d rows, or are more than %d", planes, rows, MaxPlanes)
	}
	return nil
}

func checkFlip(flip []uint64, channels int) error {
	if flip == nil {
		return nil
	}
	if len(flip) != bits.Words(channels) {
		return fmt.Errorf("a flip mask of %d words does not fit %d channels", len(flip), channels)
	}
	if err := bits.CheckPadding(flip, channels); err != nil {
		return fmt.Errorf("flip mask: %w", err)
	}
	return nil
}

func checkScale(scale, shift []float32, channels int) error {
	if len(scale) != len(shift) || scale != nil && len(scale) != channels {
		return fmt.Errorf("%d scales and %d shifts for %d channels, want one of each for each channel, or none", len(scale), len(shift), channels)
	}
	return nil
}

// check returns the shape of the output.
func (op *MaxPool) check(in Tensor) (bcnn.Shape, error) {
	if err := checkPlanes(op.Planes, in.Shape.H); err != nil {
		return bcnn.Shape{}, err
	}
	k := max(op.Planes, 1)
	in.Shape.H /= k
	w, err := plannedPool(op.Window, in.Shape)
	if err != nil {
		return bcnn.Shape{}, err
	}
	if (op.Flip != nil || k > 1) && in.DType != bcnn.Bits {
		return bcnn.Shape{}, errors.New("a flip mask and planes need an input of bits")
	}
	shape := w.Output(in.Shape, in.Shape.C)
	shape.H *= k
	return shape, checkFlip(op.Flip, in.Shape.C)
}

// check returns the shape of the output.
func (op *AvgPool) check(in bcnn.Shape) (bcnn.Shape, error) {
	w, err := plannedPool(op.Window, in)
	if err == nil {
		err = w.CheckTaps()
	}
	if err != nil {
		return bcnn.Shape{}, err
	}
	return w.Output(in, in.C), nil
}

// plannedPool checks the window of a pool of a plan, and returns it with its
// dilation, which pools need not name.
func plannedPool(w bcnn.Window, in bcnn.Shape) (bcnn.Window, error) {
	if w.DilationH == 0 && w.DilationW == 0 {
		w.DilationH, w.DilationW = 1, 1
	}
	return w, w.CheckPool(in, maxDim)
}
