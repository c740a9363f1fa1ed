package chart

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

const (
	// scale is the number of pixels of PNG for one of SVG.
	pngScale = 2
	// maxPixels is how large a PNG may be.
	maxPixels = 1 << 26
)

// ErrTooLarge is the error of a PNG that would have more than 64 million pixels.
var ErrTooLarge = errors.New("a chart too large for PNG; SVG has no limit")

// faces holds the font in the sizes that were asked for. A face is for one
// goroutine at a time.
var faces struct {
	sync.Mutex
	bySize map[float64]font.Face
}

// withFace calls f with the font in a size.
func withFace(size float64, f func(font.Face)) {
	faces.Lock()
	defer faces.Unlock()
	face := faces.bySize[size]
	if face == nil {
		// The font is part of the program and is read by the tests.
		parsed, err := opentype.Parse(goregular.TTF)
		if err != nil {
			return
		}
		if face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72}); err != nil {
			return
		}
		if faces.bySize == nil {
			faces.bySize = map[float64]font.Face{}
		}
		faces.bySize[size] = face
	}
	f(face)
}

// width returns the width of a line of text.
func width(s string, size float64) float64 {
	var sum fixed.Int26_6
	withFace(size, func(face font.Face) { sum = font.MeasureString(face, s) })
	return float64(sum) / 64
}

// WriteSVG draws the charts one below the other. A viewer with another font fits
// the texts into the same places.
func WriteSVG(w io.Writer, charts []Chart) error {
	d := layout(charts)
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="Go, sans-serif">`+"\n",
		d.width, d.height, d.width, d.height)
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", white)
	for _, r := range d.rects {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.2f" height="%.1f" fill="%s"/>`+"\n", r.x, r.y, r.w, r.h, r.colour)
	}
	for _, t := range d.texts {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="%.0f" textLength="%.1f" lengthAdjust="spacingAndGlyphs">`, t.x, t.y, t.size, t.width)
		// Errors of b are those of Flush.
		_ = xml.EscapeText(b, []byte(t.text))
		fmt.Fprintln(b, "</text>")
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// WritePNG draws the charts one below the other. Characters that the Go font
// lacks are boxes.
func WritePNG(w io.Writer, charts []Chart) error {
	d := layout(charts)
	width, height := int(d.width*pngScale), int(d.height*pngScale)
	if d.width*d.height*pngScale*pngScale > maxPixels {
		return ErrTooLarge
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	for _, r := range d.rects {
		fill(img, r)
	}
	for _, t := range d.texts {
		withFace(t.size*pngScale, func(face font.Face) {
			drawer := font.Drawer{Dst: img, Src: image.Black, Face: face, Dot: fixed.Point26_6{
				X: fixed.Int26_6(t.x * pngScale * 64), Y: fixed.Int26_6(t.y * pngScale * 64),
			}}
			drawer.DrawString(t.text)
		})
	}
	return png.Encode(w, img)
}

// fill paints a rectangle; columns that it covers in part are mixed with what is
// there, so that bars end where they should.
func fill(img *image.RGBA, r rectangle) {
	c := parse(r.colour)
	x0, x1 := r.x*pngScale, (r.x+r.w)*pngScale
	y0, y1 := int(r.y*pngScale+0.5), int((r.y+r.h)*pngScale+0.5)
	for x := int(x0); float64(x) < x1; x++ {
		c.A = uint8(255*(min(x1, float64(x+1))-max(x0, float64(x))) + 0.5)
		draw.Draw(img, image.Rect(x, y0, x+1, y1), image.NewUniform(c), image.Point{}, draw.Over)
	}
}

// parse reads a colour such as #4477aa.
func parse(colour string) color.NRGBA {
	c := color.NRGBA{A: 255}
	// The colours are those of this package.
	_, _ = fmt.Fscanf(strings.NewReader(colour), "#%02x%02x%02x", &c.R, &c.G, &c.B)
	return c
}
