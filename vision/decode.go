package vision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	"image/png"
	"io"
	"time"

	"golang.org/x/image/bmp"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/vision/internal/jpeg"
)

const (
	// MaxPixels is the size of the largest image that Decode accepts.
	MaxPixels = 1 << 26
	// MaxBytes is all the memory that one call of Decode allocates at the most,
	// what it has let go of included. Few images of up to MaxPixels need more:
	// progressive JPEGs of more than 59 million pixels if their colours are not
	// subsampled (41 million of R, G and B, 33 in CMYK), PNGs of 16 bits that are
	// interlaced, and WebPs of more than 24 million pixels with alpha.
	MaxBytes = 512 << 20
)

// Limits bound what decoding an image may take, below MaxPixels and MaxBytes. The zero
// value is those.
type Limits struct {
	Pixels int64 // of the image as it is stored
	Bytes  int64 // of memory, as MaxBytes counts it
	// Overrun is for how long decoding may go on when its context has ended. Only a WebP
	// takes such a time, which is reckoned from its header: 32 ns a pixel and, of a lossy
	// one, 120 ns a byte, up to 120 ns a pixel. That is what one core of 2023 takes at the
	// most, photos about half of it. Zero is as long as it takes.
	Overrun time.Duration
}

func (l Limits) pixels() int64 { return within(l.Pixels, MaxPixels) }
func (l Limits) bytes() int64  { return within(l.Bytes, MaxBytes) }

func within(limit, most int64) int64 {
	if limit == 0 {
		return most
	}
	return min(limit, most)
}

// Decode reads an image: JPEG, PNG, GIF (the first picture), BMP or WebP (no animations, at
// most 64 MiB and 2²⁵ pixels). TIFF is left out: the decoder at hand takes the size of buffers from the file
// without limit.
//
// A JPEG or WebP is seen upright, as its Exif orientation says. That costs nothing: the
// pixels stay where they are, and the colours are those of the decoder. Chroma that is
// subsampled is repeated, and not interpolated, in a JPEG; a WebP has the colours that libwebp
// gives it.
//
// The size is looked at before anything of that size is allocated: see MaxPixels
// and MaxBytes. What a file has that is right and not read, as arithmetic coding of
// JPEG, is called unsupported, all else broken.
//
// When the context ends, so does the work, with its error: it is looked at before
// anything is read or allocated, between the rows of a JPEG, and whenever some bytes
// of the file are read; but not while the pixels of a lossy WebP are decoded, or the
// transforms of a lossless one undone: see Limits.Overrun.
func Decode(ctx context.Context, r io.Reader) (image.Image, error) {
	return decode(ctx, r, Limits{}, fullScale)
}

// DecodeFile reads an image from a regular file, as Decode does. Errors name the
// file.
func DecodeFile(ctx context.Context, path string) (image.Image, error) {
	return decodeFile(ctx, path, Decode)
}

func decodeFile(ctx context.Context, path string, decode func(context.Context, io.Reader) (image.Image, error)) (image.Image, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := decode(ctx, f)
	return img, files.Name(path, err)
}

// Decode is the function Decode for an image that Fill is to take: a JPEG of which the network
// sees more than twice as many pixels as it has inputs is decoded at a half, a quarter or an
// eighth of its size, from the low frequencies alone, and all else as ever. The scale is the
// smallest at which both sides of what is seen still have twice as many pixels as the input.
// So a photo costs a fraction of the time, and the input is the same on every machine. JPEGs
// that hold R, G and B or CMYK are decoded as a whole. What takes more than p.Limits is an
// error before anything of its size is allocated.
func (p Preprocessing) Decode(ctx context.Context, r io.Reader) (image.Image, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return decode(ctx, r, p.Limits, p.scale)
}

// DecodeBytes reads the beginning of an image and returns how many bytes of memory Decode
// allocates for it at the most, for who shares memory among many. The errors are those of
// Decode that are known so early: what is no image, unsupported, or beyond p.Limits. It
// takes no memory for pixels.
func (p Preprocessing) DecodeBytes(ctx context.Context, r io.Reader) (int64, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	o, err := openImage(ctx, r, p.Limits, p.scale)
	return o.bytes, err
}

// DecodeFile is Decode of a regular file. Errors name the file.
func (p Preprocessing) DecodeFile(ctx context.Context, path string) (image.Image, error) {
	return decodeFile(ctx, path, p.Decode)
}

// scale returns by how much smaller a JPEG of an upright size may be.
func (p Preprocessing) scale(size image.Point) int {
	const spare = 2 // as Pillow's thumbnails have it
	seen, shape := cropOf(size, p.Input).Size(), p.Input.Shape
	for scale := 8; scale > 1; scale /= 2 {
		if int64(seen.X) >= int64(shape.W)*int64(spare*scale) && int64(seen.Y) >= int64(shape.H)*int64(spare*scale) {
			return scale
		}
	}
	return 1
}

// fullScale is the scale of those who want all pixels.
func fullScale(image.Point) int { return 1 }

// maxHead is what may stand in front of the size of an image: profiles,
// thumbnails and notes.
const maxHead = jpeg.MaxHead

// opened is an image whose beginning has been read, and nothing allocated for its pixels.
type opened struct {
	size  image.Point // as it is stored
	most  int64       // pixels, if fewer than of other formats
	bytes int64       // no less than what decoding allocates in all
	// overrun is how long decoding may take between two looks at the context, if that is long.
	overrun time.Duration
	decode  func() (image.Image, error)
}

// decode decodes an image, a JPEG at 1/scaleOf(its upright size).
func decode(ctx context.Context, r io.Reader, limits Limits, scaleOf func(image.Point) int) (image.Image, error) {
	o, err := openImage(ctx, r, limits, scaleOf)
	if err != nil {
		return nil, err
	}
	img, err := o.decode()
	if err != nil {
		return nil, imageError(ctx, err)
	}
	if size := img.Bounds(); size.Empty() { // the first frame of a GIF may be
		return nil, fmt.Errorf("broken image: its first frame has %d×%d pixels", size.Dx(), size.Dy())
	}
	return img, nil
}

// openImage reads the beginning of an image and compares its size with the limits.
func openImage(ctx context.Context, r io.Reader, limits Limits, scaleOf func(image.Point) int) (opened, error) {
	if r == nil {
		return opened{}, errors.New("no reader for the image")
	}
	o, err := openAny(ctx, r, scaleOf)
	if err != nil {
		return opened{}, imageError(ctx, err)
	}
	w, h := o.size.X, o.size.Y
	most := limits.pixels()
	if o.most > 0 {
		most = min(most, o.most)
	}
	switch {
	case w < 1 || h < 1:
		return opened{}, fmt.Errorf("the image has %d×%d pixels", w, h)
	case int64(w)*int64(h) > most:
		return opened{}, fmt.Errorf("the image has %d×%d pixels, at most %d are accepted", w, h, most)
	case o.bytes > limits.bytes():
		return opened{}, fmt.Errorf("decoding the %d×%d pixels takes %d bytes of memory, at most %d are accepted", w, h, o.bytes, limits.bytes())
	case limits.Overrun > 0 && o.overrun > limits.Overrun:
		return opened{}, fmt.Errorf("decoding the %d×%d pixels of a WebP cannot be stopped for up to %v, at most %v are accepted: "+
			"make it smaller, or a JPEG or PNG", w, h, o.overrun.Round(time.Millisecond), limits.Overrun)
	}
	return o, nil
}

// reader reads as long as a context has not ended, in small pieces: of one a decoder may make a
// thousand times as many bytes of pixels.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b[:min(len(b), pieceBytes)])
}

const pieceBytes = 128

func openAny(ctx context.Context, r io.Reader, scaleOf func(image.Point) int) (opened, error) {
	if err := ctx.Err(); err != nil {
		return opened{}, err
	}
	start := make([]byte, 12)
	n, err := io.ReadFull(r, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return opened{}, err
	}
	r = io.MultiReader(bytes.NewReader(start[:n]), r)
	switch {
	case string(start[:2]) == "\xff\xd8":
		return openJPEG(ctx, r, scaleOf)
	case isWebP(start[:n]):
		return openWebP(ctx, &reader{ctx, r})
	}
	r = &reader{ctx, r}
	var head bytes.Buffer
	config, format, err := image.DecodeConfig(io.TeeReader(io.LimitReader(r, maxHead), &head))
	if err != nil {
		if head.Len() == maxHead {
			err = errHead
		}
		return opened{}, err
	}
	return opened{
		size:  image.Pt(config.Width, config.Height),
		bytes: decodingBytes(format, config, head.Bytes()),
		decode: func() (image.Image, error) {
			img, _, err := image.Decode(io.MultiReader(&head, r))
			return img, err
		},
	}, nil
}

func openJPEG(ctx context.Context, r io.Reader, scaleOf func(image.Point) int) (opened, error) {
	d, err := jpeg.Open(r, ctx.Err)
	if err != nil {
		if errors.Is(err, jpeg.ErrHead) {
			err = errHead
		}
		return opened{}, err
	}
	o := tiffOrientation(d.Exif())
	scale := scaleOf(o.size(d.Size()))
	return opened{size: d.Size(), bytes: d.Bytes(scale), decode: func() (image.Image, error) {
		img, err := d.Decode(scale)
		if err == nil && (o != asStored || scale > 1) {
			img = &oriented{img, o, o.size(d.Size())}
		}
		return img, err
	}}, nil
}

// unsupported is what a file has that is right and not read.
type unsupported string

func (u unsupported) Error() string { return string(u) }

var errHead = fmt.Errorf("no size in the first %d bytes", maxHead)

// imageError says what is wrong with an image, unless it is the context that ended the work.
func imageError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, image.ErrFormat) {
		return errors.New("unsupported image format (supported: JPEG, PNG, GIF, BMP, WebP)")
	}
	var ofJPEG jpeg.Unsupported
	var ofPNG png.UnsupportedError
	var own unsupported
	if errors.As(err, &ofJPEG) || errors.As(err, &ofPNG) || errors.As(err, &own) || errors.Is(err, bmp.ErrUnsupported) {
		return fmt.Errorf("unsupported image: %w", err)
	}
	return fmt.Errorf("broken image: %w", err)
}

// decodingBytes returns no less than what the decoder of a format allocates in
// all, and what decode keeps of the file.
func decodingBytes(format string, config image.Config, head []byte) int64 {
	w, h := int64(config.Width), int64(config.Height)
	// Tables and buffers; and a buffer that grows by doubling, until it is full.
	size := 256<<10 + 4*int64(len(head))
	switch format {
	case "png":
		pixel := int64(4) // grey may have a transparent level
		switch config.ColorModel {
		case color.Gray16Model, color.RGBA64Model, color.NRGBA64Model:
			pixel = 8
		}
		if _, ok := config.ColorModel.(color.Palette); ok {
			pixel = 1
		}
		size += pixel*w*h + 2*(pixel*w+1) // with two rows
		const interlace = 28
		if head[interlace] != 0 { // seven passes, each an image with its rows
			size += pixel*(w+8)*(h+8) + 8*(pixel*w+1)
		}
	case "gif":
		size += 2 * w * h // interlaced rows are put in order in a second image
	default: // BMP
		size += 4*w*h + 4*w
	}
	return size
}
