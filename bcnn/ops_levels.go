package bcnn

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn/internal/sets"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Scheme is a way to turn an image of bytes into ±1 values. The first three are
// the input binarisations of Khan, Huttunen and Boutellier, "Binarized
// Convolutional Neural Networks for Efficient Inference on GPUs" (EUSIPCO 2018);
// the fourth is what the program published with it calls norm.
type Scheme string

const (
	// SchemeThreshold compares every channel with its own threshold.
	SchemeThreshold Scheme = "threshold"
	// SchemeGrey compares the luma with one threshold; one output channel.
	SchemeGrey Scheme = "grey"
	// SchemeLBP is the modified local binary pattern: three channels that tell
	// whether the luma of the top-left, right and bottom-left neighbour (radius
	// 1, clockwise stride 3 from the top-left) exceeds the luma of the centre.
	// Outside the image the nearest pixel of the image counts.
	SchemeLBP Scheme = "lbp"
	// SchemeMinMax compares every value with the middle of the range of the
	// whole image: +1 where 2·(x − min) > max − min.
	SchemeMinMax Scheme = "minmax"
)

// Luma returns the grey level of a pixel as every scheme and every backend
// computes it: (77·R + 150·G + 29·B) >> 8 in integers. The luma of a
// one-channel image is its value.
func Luma(r, g, b uint8) uint8 {
	return uint8((77*uint32(r) + 150*uint32(g) + 29*uint32(b)) >> 8)
}

// Binarize turns the bytes of the network's input into ±1 values.
type Binarize struct {
	Scheme Scheme
	// Thresholds: the value is +1 where x ≥ threshold. One per channel for
	// SchemeThreshold, one for SchemeGrey, none otherwise.
	Thresholds []int32
}

func (Binarize) Kind() string              { return "binarize" }
func (Binarize) inputs() (least, most int) { return 1, 1 }

func (b Binarize) output(in []ValueType) (ValueType, error) {
	t := in[0]
	if t.Kind != ByteValue {
		return t, errors.New("binarize must follow the network's uint8 input")
	}
	thresholds := 0
	switch b.Scheme {
	case SchemeThreshold:
		thresholds = t.Shape.C
	case SchemeGrey, SchemeLBP:
		if t.Shape.C != 1 && t.Shape.C != 3 {
			return t, fmt.Errorf("scheme %s needs 1 or 3 channels, the input has %d", b.Scheme, t.Shape.C)
		}
		if b.Scheme == SchemeGrey {
			thresholds = 1
			t.Shape.C = 1
		} else {
			t.Shape.C = 3
		}
	case SchemeMinMax:
	default:
		return t, fmt.Errorf("unknown scheme %s", text.Quote(string(b.Scheme)))
	}
	if len(b.Thresholds) != thresholds {
		return t, fmt.Errorf("scheme %s has %d thresholds, want %d", b.Scheme, len(b.Thresholds), thresholds)
	}
	t.Kind = SignValue
	return t, nil
}

func (Binarize) values(Shape, []sets.Set) sets.Set { return sets.Signs }

// ZeroRule says what Sign makes of 0. There is no default: published networks
// differ, and ties are common in real data.
type ZeroRule uint8

const (
	ZeroIsPlus  ZeroRule = iota + 1 // +1 where x ≥ 0
	ZeroIsMinus                     // +1 where x > 0
)

func (r ZeroRule) String() string {
	switch r {
	case ZeroIsPlus:
		return "x ≥ 0"
	case ZeroIsMinus:
		return "x > 0"
	}
	return fmt.Sprintf("ZeroRule(%d)", uint8(r))
}

// Sign turns values into +1 and −1.
type Sign struct {
	Zero ZeroRule
}

func (Sign) Kind() string              { return "sign" }
func (Sign) inputs() (least, most int) { return 1, 1 }

func (s Sign) output(in []ValueType) (ValueType, error) {
	if s.Zero != ZeroIsPlus && s.Zero != ZeroIsMinus {
		return in[0], errors.New("sign has no rule for 0: want ZeroIsPlus or ZeroIsMinus")
	}
	return ValueType{in[0].Shape, SignValue}, nil
}

func (Sign) values(Shape, []sets.Set) sets.Set { return sets.Signs }

// Quantize turns values into integers of a few levels: Low plus the number of
// thresholds that the value reaches (x ≥ threshold), so from Low to
// Low + Levels − 1. A layer with Bits or Int8 weights behind it, or behind a
// max-pool of it, is computed in exact integers, but where a step's WhyFloat says why not.
type Quantize struct {
	Low, Levels int
	// Thresholds do not fall: Levels−1 for all channels, or for each channel,
	// [channel][Levels−1].
	Thresholds []float32
}

// MaxLevels is the largest number of levels of a Quantize layer, and bounds the
// magnitude of each.
const MaxLevels = 256

// Ternary is the sign with three values: −1 where x < 0, 0 where x = 0, +1 where
// x > 0.
func Ternary() Quantize {
	return Quantize{Low: -1, Levels: 3, Thresholds: []float32{0, math.SmallestNonzeroFloat32}}
}

func (Quantize) Kind() string              { return "quantize" }
func (Quantize) inputs() (least, most int) { return 1, 1 }

func (q Quantize) output(in []ValueType) (ValueType, error) {
	t := ValueType{in[0].Shape, RealValue}
	if err := finite("threshold", q.Thresholds); err != nil {
		return t, err
	}
	return t, q.Check(t.Shape.C)
}

func (q Quantize) values(Shape, []sets.Set) sets.Set { return sets.Integers(q.Low, q.Low+q.Levels-1) }

// Check tests levels and their thresholds, one list for all channels or one each.
func (q Quantize) Check(channels int) error {
	low, levels, thresholds := q.Low, q.Levels, q.Thresholds
	if levels < 2 || levels > MaxLevels || low < -MaxLevels || low > MaxLevels+1-levels {
		return fmt.Errorf("%d levels from %d on, want 2 to %d levels of magnitudes up to %d", levels, low, MaxLevels, MaxLevels)
	}
	n := levels - 1
	if len(thresholds) != n && int64(len(thresholds)) != int64(n)*int64(channels) {
		return fmt.Errorf("%d thresholds for %d levels and %d channels, want one less than levels, for all channels or for each", len(thresholds), levels, channels)
	}
	for i := range thresholds {
		if i%n > 0 && !(thresholds[i] >= thresholds[i-1]) {
			return fmt.Errorf("threshold[%d], %v, is below the one before it, %v", i, thresholds[i], thresholds[i-1])
		}
	}
	return nil
}
