package vision

import (
	"image"
	"iter"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Frame is what the input of a network shows of a photo, in pixels of the photo: the rectangle from
// (X, Y), W wide and H high. Beyond the photo are the borders of bcnn.FitLetterbox.
type Frame struct {
	X, Y, W, H float64
	// Size is that of the photo.
	Size image.Point
}

// Size returns the size of the photo that an image was decoded from, upright: that of the image, but
// where Preprocessing.Decode has decoded a smaller one.
func Size(img image.Image) image.Point {
	if o, ok := img.(*oriented); ok && o.full != (image.Point{}) {
		return o.full
	}
	return img.Bounds().Size()
}

// Frame returns what the input shows of an image that Fill takes. The errors are those of Fill for
// such an image.
func (p Preprocessing) Frame(img image.Image) (Frame, error) {
	if err := p.Check(); err != nil {
		return Frame{}, err
	}
	part, err := see(img, p.Input, p.Background)
	if err != nil {
		return Frame{}, err
	}
	size, all := img.Bounds().Size(), Size(img)
	crop := cropOf(size, p.Input)
	inner := innerOf(part.crop.Size(), p.Input, part.orientation)
	axis := func(full, decoded, from, length, at, inner, outer int) (float64, float64) {
		pixel := float64(full) / float64(decoded) // of the decoded image, in those of the photo
		step := float64(float64(length)*pixel) / float64(inner)
		return float64(float64(from)*pixel) - float64(float64(at)*step), float64(float64(outer) * step)
	}
	f := Frame{Size: all}
	f.X, f.W = axis(all.X, size.X, crop.Min.X, crop.Dx(), inner.Min.X, inner.Dx(), p.Input.Shape.W)
	f.Y, f.H = axis(all.Y, size.Y, crop.Min.Y, crop.Dy(), inner.Min.Y, inner.Dy(), p.Input.Shape.H)
	return f, nil
}

// innerOf returns the part of an input that shows what is seen of a photo, which is stored with a size.
func innerOf(stored image.Point, in bcnn.Input, o orientation) image.Rectangle {
	w, h := in.Shape.W, in.Shape.H
	if in.Photo != nil && in.Photo.Fit == bcnn.FitLetterbox {
		size := o.size(stored)
		if x, y := int64(size.X), int64(size.Y); int64(w)*y < int64(h)*x {
			h = max(1, int(y*int64(w)/x))
		} else {
			w = max(1, int(x*int64(h)/y))
		}
	}
	at := image.Pt((in.Shape.W-w)/2, (in.Shape.H-h)/2)
	if in.Photo != nil && in.Photo.Corner {
		at = image.Point{}
	}
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(w, h))}
}

// border returns the indices of the pixels of an image around a rectangle.
func border(inner image.Rectangle, s bcnn.Shape) iter.Seq[int] {
	return func(yield func(int) bool) {
		if inner.Dx() == s.W && inner.Dy() == s.H {
			return
		}
		for i := range s.Pixels() {
			if !image.Pt(i%s.W, i/s.W).In(inner) && !yield(i) {
				return
			}
		}
	}
}
