package vision

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"os"

	_ "golang.org/x/image/bmp"
	scale "golang.org/x/image/draw"

	"github.com/bitcnn/bitcnn/bcnn"
)

// MaxPixels is the largest photo that Decode accepts; half of it where a pixel
// has 16 bits per channel, so that a decoded photo takes 256 MiB at the most.
const MaxPixels = 1 << 26

// Decode reads a photo from a file: JPEG, PNG, GIF (the first picture) or BMP.
// TIFF and WebP are left out: the decoders at hand take the size of buffers from
// the file without limit, and that of WebP gives wrong colours. A JPEG
// is turned upright as its Exif orientation says. Errors name the file.
func Decode(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := DecodeFrom(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return img, nil
}

// DecodeFrom is Decode from a reader.
func DecodeFrom(r io.Reader) (image.Image, error) { return decode(r, MaxPixels) }

func decode(r io.Reader, maxPixels int64) (image.Image, error) {
	// The size is looked at before anything of that size is allocated.
	var head bytes.Buffer
	config, format, err := image.DecodeConfig(io.TeeReader(r, &head))
	if err != nil {
		return nil, imageError(err)
	}
	if config.Width < 1 || config.Height < 1 {
		return nil, fmt.Errorf("the image has %d×%d pixels", config.Width, config.Height)
	}
	if config.ColorModel == color.RGBA64Model || config.ColorModel == color.NRGBA64Model {
		maxPixels /= 2
	}
	if int64(config.Width)*int64(config.Height) > maxPixels {
		return nil, fmt.Errorf("the image has %d×%d pixels, at most %d are accepted", config.Width, config.Height, maxPixels)
	}
	start := bytes.Clone(head.Bytes())
	img, _, err := image.Decode(io.MultiReader(&head, r))
	if err != nil {
		return nil, imageError(err)
	}
	if format == "jpeg" {
		img = upright(img, orientation(start))
	}
	return img, nil
}

func imageError(err error) error {
	if errors.Is(err, image.ErrFormat) {
		return errors.New("no image of a known format (JPEG, PNG, GIF, BMP)")
	}
	return fmt.Errorf("broken image: %w", err)
}

// Pixels writes the bytes that a network of the given input is fed with, NHWC,
// to dst: H·W·C bytes, in the order R, G, B or the luma (bcnn.Luma) where C is
// 1. Transparent pixels are laid over black.
//
// A photo that has the size of the input is used as it is. Any other is scaled
// so that its shorter side is in.Resize long, or just fits where that is 0, the
// longer one in proportion, and the centre is cropped. Nothing is interpolated
// where the scale is 1.
func Pixels(dst []uint8, img image.Image, in bcnn.Input) error {
	s := in.Shape
	switch {
	case in.DType != bcnn.Uint8 || s.C != 1 && s.C != 3:
		return fmt.Errorf("the network reads %v of %v, not an image", in.DType, s)
	case len(dst) != s.Values():
		return fmt.Errorf("%d bytes for an input of %v", len(dst), s)
	case img.Bounds().Empty():
		return errors.New("the image is empty")
	}
	crop := cropOf(img.Bounds(), in)
	rgba := image.NewRGBA(image.Rectangle{Max: crop.Size()})
	draw.Draw(rgba, rgba.Rect, img, crop.Min, draw.Src)
	if size := image.Pt(s.W, s.H); crop.Size() != size {
		scaled := image.NewRGBA(image.Rectangle{Max: size})
		// BiLinear widens its kernel where it shrinks: no aliasing.
		scale.BiLinear.Scale(scaled, scaled.Rect, rgba, rgba.Rect, scale.Src, nil)
		rgba = scaled
	}
	for i := 0; i < s.H*s.W; i++ {
		p := rgba.Pix[4*i : 4*i+3]
		if s.C == 3 {
			copy(dst[3*i:], p)
		} else {
			dst[i] = bcnn.Luma(p[0], p[1], p[2])
		}
	}
	return nil
}

// cropOf returns the part of a photo that becomes the input.
func cropOf(b image.Rectangle, in bcnn.Input) image.Rectangle {
	w, h := b.Dx(), b.Dy()
	cw, ch := in.Shape.W, in.Shape.H
	switch {
	case w == cw && h == ch:
	case in.Resize > 0:
		// Of a side that becomes Resize long, the crop is W or H.
		short := min(w, h)
		cw, ch = share(cw, short, in.Resize), share(ch, short, in.Resize)
	case int64(w)*int64(ch) >= int64(h)*int64(cw): // the height just fits
		cw, ch = share(cw, h, ch), h
	default:
		cw, ch = w, share(ch, w, cw)
	}
	cw, ch = min(cw, w), min(ch, h)
	at := b.Min.Add(image.Pt((w-cw)/2, (h-ch)/2))
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(cw, ch))}
}

// share returns n·num/den, rounded, and at least 1.
func share(n, num, den int) int {
	return max(1, int((int64(n)*int64(num)+int64(den)/2)/int64(den)))
}
