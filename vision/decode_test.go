package vision

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"

	"github.com/bitcnn/bitcnn/bcnn"
)

func TestDecodeBMP(t *testing.T) {
	src := noise(9, 7)
	var b bytes.Buffer
	require.NoError(t, bmp.Encode(&b, src))
	img, err := Decode(write(t, "a.bmp", b.Bytes()))
	require.NoError(t, err)
	for y := range 7 {
		for x := range 9 {
			require.Equal(t, at(src, x, y), at(img, x, y))
		}
	}
}

// A pixel of 16 bits per channel counts twice.
func TestDecodeLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		img  image.Image
		fits int64
	}{
		{"8 bits", image.NewNRGBA(image.Rect(0, 0, 4, 3)), 12},
		{"16 bits", image.NewNRGBA64(image.Rect(0, 0, 4, 3)), 24},
		{"16 bits, opaque", image.NewRGBA64(image.Rect(0, 0, 4, 3)), 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, png.Encode(&b, c.img))
			_, err := decode(bytes.NewReader(b.Bytes()), c.fits)
			require.NoError(t, err)
			_, err = decode(bytes.NewReader(b.Bytes()), c.fits-2)
			require.ErrorContains(t, err, "4×3 pixels, at most")
		})
	}
}

// FuzzDecode reads arbitrary files and prepares what they show.
func FuzzDecode(f *testing.F) {
	src := noise(5, 4)
	var b bytes.Buffer
	require.NoError(f, bmp.Encode(&b, src))
	f.Add(bytes.Clone(b.Bytes()))
	b.Reset()
	require.NoError(f, gif.Encode(&b, src, nil))
	f.Add(bytes.Clone(b.Bytes()))
	for _, img := range []image.Image{src, image.NewGray16(src.Rect), image.NewPaletted(src.Rect, color.Palette{color.Black, color.White})} {
		b.Reset()
		require.NoError(f, png.Encode(&b, img))
		f.Add(bytes.Clone(b.Bytes()))
	}
	in := bcnn.Input{Shape: bcnn.Shape{H: 6, W: 5, C: 3}, DType: bcnn.Uint8, Resize: 7}
	dst := make([]uint8, in.Shape.Values())
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := decode(bytes.NewReader(data), 1<<12)
		if err != nil {
			return
		}
		require.NoError(t, Pixels(dst, img, in))
	})
}
