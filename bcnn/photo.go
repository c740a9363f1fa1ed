package bcnn

import (
	"errors"
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/internal/text"
)

// Photo says how a photo becomes an input, as far as the model that the network was imported from
// says it or its format is known for it.
type Photo struct {
	// Fit is how a photo of another size comes to that of the input.
	Fit Fit
	// BGR says that the channels are B, G, R, else R, G, B.
	BGR bool
	// Grey is the byte of the borders of FitLetterbox, in all channels; 0 stands for LetterboxGrey.
	Grey uint8
	// Corner says that FitLetterbox has the photo in the upper left corner, else in the middle.
	Corner bool
	// Mean and Scale are for an input of Float32: a byte x of a channel is (x − Mean)·Scale. Each has
	// one value, one per channel of the input, or none, which is 0 for Mean and 1 for Scale.
	Mean, Scale []float32
}

// Fit is how a photo of another size comes to that of an input.
type Fit string

const (
	// FitCrop: the photo is resized as Input.Resize says, and its centre is cropped.
	FitCrop Fit = ""
	// FitStretch: the whole photo is resized to the height and the width of the input, whatever
	// becomes of its proportions.
	FitStretch Fit = "stretch"
	// FitLetterbox: the photo keeps its proportions and lies between grey borders, see Photo.Grey
	// and Photo.Corner.
	FitLetterbox Fit = "letterbox"
)

// LetterboxGrey is the byte of the borders of FitLetterbox where Photo.Grey says none: half of the range.
const LetterboxGrey = 128

// Fits returns all ways in which photos are fitted.
func Fits() []Fit { return []Fit{FitCrop, FitStretch, FitLetterbox} }

// check tests the description of photos for an input.
func (p *Photo) check(in Input) error {
	switch {
	case p == nil:
		return nil
	case in.Shape.C != 1 && in.Shape.C != 3:
		return fmt.Errorf("photos have 1 or 3 channels, it has %d", in.Shape.C)
	case p.Fit != FitCrop && p.Fit != FitStretch && p.Fit != FitLetterbox:
		return fmt.Errorf("an unknown way to fit photos, %s", text.Quote(string(p.Fit)))
	case p.Fit != FitCrop && in.Resize != 0:
		return fmt.Errorf("photos are resized to %d and cropped, but fitted by %s", in.Resize, p.Fit)
	case p.BGR && in.Shape.C != 3:
		return errors.New("an order of channels, but it has one channel")
	case in.DType == Uint8 && len(p.Mean)+len(p.Scale) > 0:
		return errors.New("mean and scale of photos are for float32, but it reads bytes")
	}
	for _, v := range []struct {
		name   string
		values []float32
	}{{"mean", p.Mean}, {"scale", p.Scale}} {
		if n := len(v.values); n > 1 && n != in.Shape.C {
			return fmt.Errorf("%s of photos has %d values, want 1 or %d", v.name, n, in.Shape.C)
		}
		if i := notFinite(v.values); i >= 0 {
			return fmt.Errorf("%s of photos is %v, want finite numbers", v.name, v.values[i])
		}
	}
	return nil
}

// notFinite returns where a value is infinite or NaN, −1 where none is.
func notFinite(values []float32) int {
	for i, v := range values {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return i
		}
	}
	return -1
}
