package vision

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// transparent are images with pixels of every alpha.
func transparent(w, h int) map[string]image.Image {
	rng := rand.New(rand.NewPCG(3, 4))
	size := image.Rect(0, 0, w, h)
	nrgba := image.NewNRGBA(size)
	for i := range nrgba.Pix {
		nrgba.Pix[i] = uint8(rng.Uint32())
	}
	for i := range w {
		nrgba.Pix[4*i+3] = []uint8{0, 255}[i%2]
	}
	all := map[string]image.Image{"NRGBA": nrgba}
	for _, to := range []draw.Image{image.NewRGBA(size), image.NewNRGBA64(size), image.NewRGBA64(size)} {
		draw.Draw(to, size, nrgba, image.Point{}, draw.Src)
		all[map[bool]string{true: "RGBA", false: "16 bits"}[to.ColorModel() == color.RGBAModel]+string(rune('a'+len(all)))] = to
	}
	paletted := image.NewPaletted(size, nil)
	for range 200 {
		paletted.Palette = append(paletted.Palette, nrgba.NRGBAAt(rng.IntN(w), rng.IntN(h)))
	}
	for i := range paletted.Pix {
		paletted.Pix[i] = uint8(rng.IntN(200))
	}
	all["Paletted"] = paletted
	video := image.NewNYCbCrA(size, image.YCbCrSubsampleRatio420)
	for _, plane := range [][]byte{video.Y, video.Cb, video.Cr, video.A} {
		for i := range plane {
			plane[i] = uint8(rng.Uint32())
		}
	}
	all["NYCbCrA"] = video
	return all
}

// What is transparent is laid over the background as package draw lays it, before it is resized.
func TestBackground(t *testing.T) {
	for _, background := range [][3]uint8{{}, {255, 255, 255}, {10, 130, 251}} {
		for name, img := range transparent(31, 23) {
			opaque := image.NewRGBA(img.Bounds())
			draw.Draw(opaque, opaque.Rect, image.NewUniform(color.RGBA{background[0], background[1], background[2], 255}), image.Point{}, draw.Src)
			draw.Draw(opaque, opaque.Rect, img, image.Point{}, draw.Over)
			for _, shape := range []bcnn.Shape{{H: 23, W: 31, C: 3}, {H: 9, W: 11, C: 3}, {H: 9, W: 11, C: 1}} {
				p := Preprocessing{Input: bcnn.Input{Shape: shape, DType: bcnn.Uint8}, Background: background}
				got, want := bcnn.NewTensor(bcnn.Uint8, 1, shape), bcnn.NewTensor(bcnn.Uint8, 1, shape)
				require.NoError(t, p.Fill(t.Context(), got, 0, img))
				require.NoError(t, p.Fill(t.Context(), want, 0, opaque))
				require.Equal(t, want.U8, got.U8, "%s, %v, %v", name, background, shape)
			}
		}
	}
}

// A classifier hands its options on.
func TestClassifierOptions(t *testing.T) {
	n, err := vehiclenet.Topology(vehiclenet.RGBThreshold, 6, 4)
	require.NoError(t, err)
	opts := Options{Background: [3]uint8{1, 2, 3}, Limits: Limits{Pixels: 4, Bytes: 5}}
	p := classifier(t, open(t, n, bitcnn.Options{}), opts).Preprocessing()
	require.Equal(t, opts.Background, p.Background)
	require.Equal(t, opts.Limits, p.Limits)
}

// So it is for the files that have transparent pixels, and for a classifier that is told.
func TestBackgroundOfFiles(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 5, 4))
	var g bytes.Buffer
	paletted := image.NewPaletted(clear.Rect, color.Palette{color.Transparent, color.White})
	require.NoError(t, gif.Encode(&g, paletted, nil))
	var p bytes.Buffer
	require.NoError(t, png.Encode(&p, paletted))
	for name, data := range map[string][]byte{"PNG": encodePNG(t, clear), "PNG with a palette": p.Bytes(), "GIF": g.Bytes(), "WebP": flatWebP(5, 4)} {
		img, err := Decode(t.Context(), bytes.NewReader(data))
		require.NoError(t, err)
		for _, background := range [][3]uint8{{}, {200, 100, 50}} {
			in := bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 4, W: 5, C: 3})
			r := reading(4, 5, 3, 0)
			r.Background = background
			require.NoError(t, r.Fill(t.Context(), in, 0, img))
			require.Equal(t, bytes.Repeat(background[:], 20), in.U8, name)
		}
	}
}
