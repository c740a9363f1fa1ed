package vision

import (
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of every colour there is.
func TestYCbCrIsThatOfPackageColor(t *testing.T) {
	img := image.NewYCbCr(image.Rect(0, 0, 256, 1), image.YCbCrSubsampleRatio444)
	row := make([]uint64, 256)
	for cb := range 256 {
		for cr := range 256 {
			for y := range 256 {
				img.Y[y], img.Cb[y], img.Cr[y] = uint8(y), uint8(cb), uint8(cr)
			}
			readYCbCr(row, img, 0, 0)
			for y, p := range row {
				if want := pack(color.YCbCrToRGB(uint8(y), uint8(cb), uint8(cr))); p != want {
					require.Equal(t, want, p, "%d, %d, %d", y, cb, cr)
				}
			}
		}
	}
}

// A reader gives the colours of image/color, wherever it begins.
func TestReaders(t *testing.T) {
	for _, c := range contents[:2] {
		// Package draw cannot read this one.
		below := ycbcr(image.Rect(-3, -5, 10, 2), image.YCbCrSubsampleRatio420, c)
		for _, img := range append(images(19, 6, c), named{"YCbCr from (-3, -5)", below}) {
			b := img.Bounds()
			read := readerOf(img.Image, ground{})
			for y := range b.Dy() {
				for x := range b.Dx() {
					row := make([]uint64, b.Dx()-x)
					read(row, b.Min.X+x, b.Min.Y+y)
					for i, p := range row {
						want := at(img.Image, x+i, y)
						require.Equal(t, pack(want[0], want[1], want[2]), p, "%s, %s, %d, %d", img.name, c.name, x+i, y)
					}
				}
			}
		}
	}
}
