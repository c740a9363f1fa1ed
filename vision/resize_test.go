package vision

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	scale "golang.org/x/image/draw"

	"github.com/bitcnn/bitcnn/bcnn"
)

// drawn prepares an image by package draw: the oracle.
func drawn(img image.Image, in bcnn.Input) []uint8 {
	crop := cropOf(img.Bounds().Size(), in).Add(img.Bounds().Min)
	rgba := image.NewRGBA(image.Rectangle{Max: crop.Size()})
	draw.Draw(rgba, rgba.Rect, img, crop.Min, draw.Src)
	if size := image.Pt(in.Shape.W, in.Shape.H); crop.Size() != size {
		resized := image.NewRGBA(image.Rectangle{Max: size})
		scale.BiLinear.Scale(resized, resized.Rect, rgba, rgba.Rect, scale.Src, nil)
		rgba = resized
	}
	dst := make([]uint8, 0, in.Shape.Values())
	for i := 0; i < len(rgba.Pix); i += 4 {
		p := rgba.Pix[i : i+3]
		if in.Shape.C == 1 {
			dst = append(dst, bcnn.Luma(p[0], p[1], p[2]))
		} else {
			dst = append(dst, p...)
		}
	}
	return dst
}

// turned turns an image as Exif describes its orientation: where row 0 and
// column 0 of what is stored are seen.
func turned(img image.Image, o orientation) image.Image {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if o >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	dst := image.NewRGBA(size)
	src := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(src, src.Rect, img, b.Min, draw.Src)
	for y := range h {
		for x := range w {
			at := [...]image.Point{
				1: {x, y},
				2: {w - 1 - x, y},         // top, right
				3: {w - 1 - x, h - 1 - y}, // bottom, right
				4: {x, h - 1 - y},         // bottom, left
				5: {y, x},                 // left, top
				6: {h - 1 - y, x},         // right, top
				7: {h - 1 - y, w - 1 - x}, // right, bottom
				8: {y, w - 1 - x},         // left, bottom
			}[o]
			dst.SetRGBA(at.X, at.Y, src.RGBAAt(x, y))
		}
	}
	return dst
}

// A content fills the planes of an image.
type content struct {
	name string
	at   func(rng *rand.Rand, x, y int) uint8
}

var contents = []content{
	{"noise", func(rng *rand.Rand, x, y int) uint8 { return uint8(rng.Uint32()) }},
	{"gradient", func(rng *rand.Rand, x, y int) uint8 { return uint8(x/3 + y/2 + rng.IntN(9)) }},
	// Means of exactly 127.5 lie on the border of two bytes.
	{"black and white", func(rng *rand.Rand, x, y int) uint8 { return uint8(255 * ((x + y) & 1)) }},
	{"stripes", func(rng *rand.Rand, x, y int) uint8 { return uint8(127 + x>>2&1) }},
	{"flat", func(rng *rand.Rand, x, y int) uint8 { return 1 }},
}

type named struct {
	name string
	image.Image
}

func fill(c content, pix []uint8, stride int) {
	rng := rand.New(rand.NewPCG(uint64(len(pix)), uint64(stride)))
	for i := range pix {
		pix[i] = c.at(rng, i%stride, i/stride)
	}
}

func ycbcr(rect image.Rectangle, ratio image.YCbCrSubsampleRatio, c content) *image.YCbCr {
	img := image.NewYCbCr(rect, ratio)
	fill(c, img.Y, img.YStride)
	fill(c, img.Cb, img.CStride)
	fill(c, img.Cr, img.CStride)
	return img
}

// images returns an image of the given size in every colour model and layout.
func images(w, h int, c content) []named {
	var all []named
	rect := image.Rect(0, 0, w, h)
	for ratio := image.YCbCrSubsampleRatio444; ratio <= image.YCbCrSubsampleRatio410; ratio++ {
		all = append(all, named{ratio.String(), ycbcr(rect, ratio, c)})
		// A part of an image that begins within a chroma sample.
		large := ycbcr(image.Rect(0, 0, w+7, h+3), ratio, c)
		all = append(all, named{ratio.String() + " part", large.SubImage(image.Rect(3, 1, w+3, h+1))})
	}
	gray, gray16 := image.NewGray(rect), image.NewGray16(rect)
	fill(c, gray.Pix, gray.Stride)
	fill(c, gray16.Pix, gray16.Stride)
	all = append(all, named{"Gray", gray}, named{"Gray16", gray16})

	nrgba, opaque, nrgba64 := image.NewNRGBA(rect), image.NewNRGBA(rect), image.NewNRGBA64(rect)
	fill(c, nrgba.Pix, nrgba.Stride)
	fill(c, opaque.Pix, opaque.Stride)
	fill(c, nrgba64.Pix, nrgba64.Stride)
	for i := 3; i < len(opaque.Pix); i += 4 {
		opaque.Pix[i] = 0xff
	}
	all = append(all, named{"NRGBA", nrgba}, named{"NRGBA opaque", opaque}, named{"NRGBA64", nrgba64})
	all = append(all, named{"NRGBA part", nrgba.SubImage(image.Rect(w/3, h/3, w, h))})

	// Premultiplied: no colour is greater than its alpha.
	rgba, rgba64 := image.NewRGBA(rect.Add(image.Pt(-9, 4))), image.NewRGBA64(rect)
	draw.Draw(rgba, rgba.Rect, nrgba, image.Point{}, draw.Src)
	draw.Draw(rgba64, rect, nrgba64, image.Point{}, draw.Src)
	all = append(all, named{"RGBA", rgba}, named{"RGBA64", rgba64})

	cmyk := image.NewCMYK(rect)
	fill(c, cmyk.Pix, cmyk.Stride)
	all = append(all, named{"CMYK", cmyk})

	paletted := image.NewPaletted(rect, make(color.Palette, 256))
	for i := range paletted.Palette {
		paletted.Palette[i] = color.NRGBA{R: uint8(7 * i), G: uint8(255 - i), B: uint8(i * i), A: uint8(255 - i/2)}
	}
	fill(c, paletted.Pix, paletted.Stride)
	all = append(all, named{"Paletted", paletted})

	// An image of which only the interface is known.
	all = append(all, named{"image.Image", struct{ image.Image }{gray}})
	return all
}

var (
	square   = bcnn.Input{Shape: bcnn.Shape{H: 24, W: 24, C: 3}, DType: bcnn.Uint8}
	resized  = bcnn.Input{Shape: bcnn.Shape{H: 24, W: 24, C: 3}, DType: bcnn.Uint8, Resize: 31}
	wide     = bcnn.Input{Shape: bcnn.Shape{H: 9, W: 40, C: 3}, DType: bcnn.Uint8}
	grey     = bcnn.Input{Shape: bcnn.Shape{H: 28, W: 28, C: 1}, DType: bcnn.Uint8}
	tiny     = bcnn.Input{Shape: bcnn.Shape{H: 2, W: 1, C: 3}, DType: bcnn.Uint8}
	stretchy = bcnn.Input{Shape: bcnn.Shape{H: 5, W: 90, C: 3}, DType: bcnn.Uint8, Resize: 7} // larger than what it is cut from
)

func TestResizeGivesTheBytesOfDraw(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {1, 400}, {400, 1}, {7, 5}, {24, 61}, {25, 24}, {33, 150}, {101, 97}, {640, 480}} {
		for k, c := range contents {
			if size.X*size.Y > 1<<16 && k > 0 {
				break
			}
			for _, img := range images(size.X, size.Y, c) {
				for _, in := range []bcnn.Input{square, resized, wide, grey, tiny, stretchy} {
					if img.Bounds().Empty() {
						continue
					}
					require.Equal(t, drawn(img.Image, in), pixels(t, img.Image, in), "%s, %s, %v to %v", img.name, c.name, img.Bounds(), in)
				}
			}
		}
	}
}

// Large images are resized by several goroutines.
func TestResizeOfPhotos(t *testing.T) {
	for _, size := range []image.Point{{1021, 723}, {701, 1000}} {
		require.Greater(t, size.X*size.Y, bandPixels)
		photo := ycbcr(image.Rectangle{Max: size}, image.YCbCrSubsampleRatio420, contents[0])
		require.Equal(t, drawn(photo, rgb96), pixels(t, photo, rgb96))
		require.Equal(t, drawn(turned(photo, 6), rgb96), pixels(t, &oriented{img: photo, orientation: 6}, rgb96))
	}
}

// careful is an image that must be read by one goroutine.
type careful struct {
	image.Image
	readers *atomic.Int32
}

func (c careful) At(x, y int) color.Color {
	if c.readers.Add(1) > 1 {
		panic("read by two goroutines")
	}
	defer c.readers.Add(-1)
	return c.Image.At(x, y)
}

func TestResizeOfImagesFromElsewhere(t *testing.T) {
	photo := ycbcr(image.Rect(0, 0, 1021, 723), image.YCbCrSubsampleRatio420, contents[0])
	require.Equal(t, drawn(photo, rgb96), pixels(t, careful{photo, &atomic.Int32{}}, rgb96))
}

// An image that lies about its size makes the caller panic, who may recover.
func TestResizeOfBrokenImages(t *testing.T) {
	photo := image.NewGray(image.Rect(0, 0, 1021, 723))
	photo.Pix = photo.Pix[:len(photo.Pix)/2]
	require.Panics(t, func() { pixels(t, photo, rgb96) })
}

func TestResizeOfEveryOrientation(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {24, 24}, {50, 31}, {31, 50}, {120, 97}} {
		for _, c := range contents[:4] {
			for _, img := range images(size.X, size.Y, c) {
				for o := orientation(1); o <= 8; o++ {
					if img.Bounds().Empty() {
						continue
					}
					upright := turned(img.Image, o)
					seen := &oriented{img: img.Image, orientation: o}
					require.Equal(t, upright.Bounds(), seen.Bounds())
					for _, in := range []bcnn.Input{square, resized, wide} {
						require.Equal(t, drawn(upright, in), pixels(t, seen, in), "%s, %s, %v, orientation %d", img.name, c.name, size, o)
					}
				}
			}
		}
	}
}

// exactly, which only takes over where it must, gives the right bytes for every
// pixel.
func TestExactly(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {3, 50}, {50, 3}, {61, 47}, {24, 70}} {
		for _, c := range contents {
			for o := orientation(1); o <= 8; o++ {
				img := images(size.X, size.Y, c)[0].Image
				for _, in := range []bcnn.Input{square, wide} {
					s, err := see(&oriented{img: img, orientation: o}, in, ground{})
					require.NoError(t, err)
					want := drawn(turned(img, o), in)
					out := image.Pt(in.Shape.W, in.Shape.H)
					stored := o.size(out)
					if s.crop.Size() == stored {
						continue
					}
					across, down := axis{s.crop.Dx(), stored.X}, axis{s.crop.Dy(), stored.Y}
					for y := range stored.Y {
						for x := range stored.X {
							r, g, b := unpack(s.exactly(across, down, x, y))
							at := o.upright(image.Pt(x, y), stored)
							i := 3 * (at.Y*out.X + at.X)
							require.Equal(t, want[i:i+3], []uint8{uint8(r), uint8(g), uint8(b)}, "%v, %s, orientation %d, %d, %d", size, c.name, o, x, y)
						}
					}
				}
			}
		}
	}
}

// The weights of draw's filter are those of axis, but for rounding.
func TestAxisIsTheTentFilter(t *testing.T) {
	for in := 1; in < 26; in++ {
		for out := 1; out < 26; out++ {
			a := axis{in, out}
			for x := range out {
				tent := a.tent(x)
				lo, hi := a.taps(x)
				require.Less(t, lo, hi)
				sum := 0.0
				for c := -3; c < in+3; c++ {
					w := a.weight(x, c)
					require.Equal(t, w > 0 && c >= 0 && c < in, lo <= c && c < hi, "%d to %d: %d in %d", in, out, c, x)
					if i := c - tent.from; i >= 0 && i < len(tent.weights) {
						require.InDelta(t, tent.weights[i], max(0, float64(w)/float64(a.reach())), 1e-12)
						sum += max(0, float64(w))
					} else if c >= 0 && c < in {
						require.LessOrEqual(t, w, int64(0))
					}
				}
				require.Equal(t, sum, a.total(x))
				require.InDelta(t, 1/tent.inverse, sum/float64(a.reach()), 1e-9)
			}
		}
	}
}

func FuzzResize(f *testing.F) {
	f.Add(uint16(64), uint16(48), uint8(24), uint8(24), uint8(0), uint8(0), uint8(0), uint8(1), uint64(1))
	f.Add(uint16(300), uint16(2), uint8(3), uint8(40), uint8(90), uint8(2), uint8(2), uint8(6), uint64(2))
	f.Fuzz(func(t *testing.T, w, h uint16, outW, outH, resize, kind, model, turn uint8, seed uint64) {
		size := image.Pt(1+int(w%400), 1+int(h%400))
		c := contents[int(kind)%len(contents)]
		all := images(size.X, size.Y, c)
		img := all[int(model)%len(all)]
		if img.Bounds().Empty() {
			return
		}
		o := orientation(1 + turn%8)
		in := bcnn.Input{Shape: bcnn.Shape{H: 1 + int(outH), W: 1 + int(outW), C: 3}, DType: bcnn.Uint8, Resize: int(resize)}
		require.Equal(t, drawn(turned(img.Image, o), in), pixels(t, &oriented{img: img.Image, orientation: o}, in), fmt.Sprint(img.name, c.name, size, o, in))
	})
}
