package vision

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"reflect"
	"slices"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
)

// Preprocessing is how an image becomes the input of a network.
//
// An image that has the size of the input is used as it is. Any other is resized
// so that its shorter side is Input.Resize long, or just fits where that is 0,
// the longer one in proportion, and the centre is cropped, unless Input.Photo says that
// it is stretched, or fitted between borders. Nothing is
// interpolated where the scale is 1. Transparent pixels are laid over Background before
// all else.
type Preprocessing struct {
	// Input is the input of the network: Uint8 or Float32, three channels (R, G,
	// B, or B, G, R where Input.Photo says so) or one (the luma, see bcnn.Luma). Mean and
	// Scale of Input.Photo are not looked at: those below are.
	Input bcnn.Input
	// Mean and Scale are for Float32 and turn a byte x of channel c into
	// (x − Mean[c])·Scale[c] in float32. Each has one value per channel, or one
	// for all; none means 0 for Mean and 1 for Scale. For models trained on
	// (x/255 − mean)/std they are 255·mean and 1/(255·std).
	Mean, Scale []float32
	// Background is what lies under transparent pixels, R, G and B; black if it is not set.
	Background [3]uint8
	// Limits bound what Decode and DecodeFile accept.
	Limits Limits
}

// Check reports whether an image can become the input.
func (p Preprocessing) Check() error {
	in, s := p.Input, p.Input.Shape
	switch {
	case in.DType != bcnn.Uint8 && in.DType != bcnn.Float32 || s.C != 1 && s.C != 3:
		return fmt.Errorf("the network reads %v of %v, not an image", in.DType, s)
	case s.H < 1 || s.W < 1 || in.Resize < 0:
		return fmt.Errorf("an input of %v, images resized to %d", s, in.Resize)
	case in.Photo != nil && !slices.Contains(bcnn.Fits(), in.Photo.Fit):
		return fmt.Errorf("images fitted by %q, which is not known", in.Photo.Fit)
	case in.DType == bcnn.Uint8 && len(p.Mean)+len(p.Scale) > 0:
		return errors.New("mean and scale are for networks that read float32, this one reads bytes")
	}
	for _, v := range []struct {
		name   string
		values []float32
	}{{"mean", p.Mean}, {"scale", p.Scale}} {
		if n := len(v.values); n > 1 && n != s.C {
			return fmt.Errorf("%s has %d values, want 1 or %d", v.name, n, s.C)
		}
		for _, x := range v.values {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("%s %v is not a finite number", v.name, x)
			}
		}
	}
	return nil
}

// Fill writes an image to place i of a batch of the input's type and shape. It is
// safe to fill places of one batch at the same time. Large images are resized by
// several goroutines if they are of a type of package image. When the context ends,
// so does the work, within a row of the image: the error is its own.
func (p Preprocessing) Fill(ctx context.Context, batch bcnn.Tensor, i int, img image.Image) error {
	in := p.Input
	if err := p.Check(); err != nil {
		return err
	}
	if err := batch.Check(in.DType, in.Shape); err != nil {
		return err
	}
	if i < 0 || i >= batch.N {
		return fmt.Errorf("image %d of a batch of %d", i, batch.N)
	}
	part, err := see(img, in, p.Background)
	if err != nil {
		return err
	}
	values, channels := in.Shape.Values(), in.Shape.C
	first, last := 0, 2 // channels of R and B
	if in.Photo != nil && in.Photo.BGR {
		first, last = 2, 0
	}
	var put func(at int, v uint8)
	switch in.DType {
	case bcnn.Uint8:
		dst := batch.U8[i*values : (i+1)*values]
		put = func(at int, v uint8) { dst[at] = v }
	case bcnn.Float32:
		dst, tables := batch.F32[i*values:(i+1)*values], p.tables()
		put = func(at int, v uint8) { dst[at] = tables[at%channels][v] }
	}
	inner := innerOf(part.crop.Size(), in, part.orientation)
	grey := uint8(bcnn.LetterboxGrey)
	if in.Photo != nil && in.Photo.Grey != 0 {
		grey = in.Photo.Grey
	}
	for at := range border(inner, in.Shape) {
		for c := range channels {
			put(channels*at+c, grey)
		}
	}
	part.sample(ctx, inner.Size(), func(i int, packed uint64) {
		if inner.Dx() != in.Shape.W || inner.Dy() != in.Shape.H {
			i = (inner.Min.Y+i/inner.Dx())*in.Shape.W + inner.Min.X + i%inner.Dx()
		}
		r, g, b := unpack(packed)
		if channels == 1 {
			put(i, bcnn.Luma(uint8(r), uint8(g), uint8(b)))
			return
		}
		put(3*i+first, uint8(r))
		put(3*i+1, uint8(g))
		put(3*i+last, uint8(b))
	})
	return ctx.Err()
}

// parts cuts a batch into those of up to so many images. What needs no cut is not looked at:
// Session.Run checks it.
func (p Preprocessing) parts(batch bcnn.Tensor, most int) ([]bcnn.Tensor, error) {
	if batch.N <= most {
		return []bcnn.Tensor{batch}, nil
	}
	if err := batch.Check(p.Input.DType, p.Input.Shape); err != nil {
		return nil, fmt.Errorf("%w: %w", bitcnn.ErrShape, err)
	}
	var parts []bcnn.Tensor
	for i := 0; i < batch.N; i += most {
		parts = append(parts, batch.Images(i, min(most, batch.N-i)))
	}
	return parts, nil
}

// tables returns the values of all bytes, per channel.
func (p Preprocessing) tables() [][256]float32 {
	of := func(values []float32, c int, none float32) float32 {
		switch len(values) {
		case 0:
			return none
		case 1:
			return values[0]
		}
		return values[c]
	}
	tables := make([][256]float32, p.Input.Shape.C)
	for c := range tables {
		mean, scale := of(p.Mean, c, 0), of(p.Scale, c, 1)
		for x := range tables[c] {
			tables[c][x] = (float32(x) - mean) * scale
		}
	}
	return tables
}

// seen is the part of an image that becomes the input of a network, as it lies
// in memory.
type seen struct {
	read        pixelReader
	shareable   bool
	crop        image.Rectangle
	orientation orientation
}

func see(img image.Image, in bcnn.Input, g ground) (seen, error) {
	if v := reflect.ValueOf(img); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return seen{}, errors.New("the image is nil")
	}
	s := seen{orientation: asStored}
	if o, ok := img.(*oriented); ok {
		img, s.orientation = o.img, o.orientation
	}
	b := img.Bounds()
	if b.Empty() {
		return seen{}, errors.New("the image is empty")
	}
	if b.Dx() > maxSide || b.Dy() > maxSide {
		return seen{}, fmt.Errorf("the image has %d×%d pixels, sides of at most %d are accepted", b.Dx(), b.Dy(), maxSide)
	}
	s.read, s.shareable = readerOf(img, g), shareable(img)
	upright := cropOf(s.orientation.size(b.Size()), in)
	p := s.orientation.stored(upright.Min, b.Size())
	q := s.orientation.stored(upright.Max.Sub(image.Pt(1, 1)), b.Size())
	s.crop = image.Rect(min(p.X, q.X), min(p.Y, q.Y), max(p.X, q.X)+1, max(p.Y, q.Y)+1).Add(b.Min)
	return s, nil
}

// cropOf returns the part of a photo that becomes the input.
func cropOf(size image.Point, in bcnn.Input) image.Rectangle {
	w, h := size.X, size.Y
	cw, ch := in.Shape.W, in.Shape.H
	switch {
	case in.Photo != nil && in.Photo.Fit != bcnn.FitCrop:
		cw, ch = w, h
	case w == cw && h == ch:
	case in.Resize > 0:
		// Of a side that becomes Resize long, the crop is W or H.
		short := min(w, h)
		cw, ch = share(cw, short, in.Resize, w), share(ch, short, in.Resize, h)
	case int64(w)*int64(ch) >= int64(h)*int64(cw): // the height just fits
		cw, ch = share(cw, h, ch, w), h
	default:
		cw, ch = w, share(ch, w, cw, h)
	}
	at := image.Pt((w-cw)/2, (h-ch)/2)
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(cw, ch))}
}

// share returns n·num/den, rounded, at least 1 and at most most.
func share(n, num, den, most int) int {
	return int(min(max(1, (int64(n)*int64(num)+int64(den)/2)/int64(den)), int64(most)))
}

// sample hands the pixels of an upright picture of the given size to put, packed
// and with their index, from several goroutines, until the context ends.
func (s seen) sample(ctx context.Context, size image.Point, put func(i int, p uint64)) {
	stored := s.orientation.size(size)
	place := func(x, y int, p uint64) {
		at := s.orientation.upright(image.Pt(x, y), stored)
		put(at.Y*size.X+at.X, p)
	}
	if s.crop.Size() != stored {
		s.resize(ctx, stored, place)
		return
	}
	row := make([]uint64, stored.X)
	for y := range stored.Y {
		if ctx.Err() != nil {
			return
		}
		s.read(row, s.crop.Min.X, s.crop.Min.Y+y)
		for x, p := range row {
			place(x, y, p)
		}
	}
}
