package vision

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

var rgb96 = bcnn.Input{Shape: bcnn.Shape{H: 96, W: 96, C: 3}, DType: bcnn.Uint8, Resize: 100}

func noise(w, h int) *image.NRGBA {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = uint8(rng.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// at is the colour of a pixel as image/color defines it.
func at(img image.Image, x, y int) []uint8 {
	r, g, b, _ := img.At(img.Bounds().Min.X+x, img.Bounds().Min.Y+y).RGBA()
	return []uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
}

// pixels prepares an image for a network that reads bytes.
func pixels(t testing.TB, img image.Image, in bcnn.Input) []uint8 {
	batch := bcnn.NewTensor(bcnn.Uint8, 1, in.Shape)
	require.NoError(t, Preprocessing{Input: in}.Fill(t.Context(), batch, 0, img))
	return batch.U8
}

func write(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o644))
	return path
}

func encodePNG(t *testing.T, img image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.Bytes()
}

func encodeJPEG(t *testing.T, img image.Image) []byte {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}))
	return b.Bytes()
}
