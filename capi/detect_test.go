//go:build linux && (amd64 || arm64) && cgo

package main

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
)

// TestDetect finds light squares of 2×2 pixels, at even places, in grey images of 8×8, by a C program.
func TestDetect(t *testing.T) {
	dir := lib(t)
	net := &bcnn.Network{
		Name:   "spots",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 8, W: 8, C: 1}, DType: bcnn.Float32, Photo: &bcnn.Photo{Fit: bcnn.FitStretch, Scale: []float32{1. / 255}}}},
	}
	net.Append("pool", bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	net.Append("boxes", bcnn.Conv2D{
		Window: bcnn.Window{KH: 1, KW: 1}, Out: 7, Weights: bcnn.Weights{F32: []float32{0, 0, 0, 0, 1, 0, 0}}, Bias: []float32{0.5, 0.5, 0, 0, 0, 0, 1},
	})
	net.Detection = &bcnn.Detection{Classes: 2, Background: -1, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{2, 2}}}}}
	model := filepath.Join(t.TempDir(), "spots.bcnn")
	require.NoError(t, modelfile.Save(model, net))
	img := image.NewGray(image.Rect(0, 0, 8, 8))
	for at, v := range map[image.Point]uint8{{X: 6}: 255, {X: 2, Y: 4}: 204} {
		for i := range 4 {
			img.Pix[(at.Y+i/2)*8+at.X+i%2] = v
		}
	}
	photo := filepath.Join(t.TempDir(), "photo.png")
	f, err := os.Create(photo)
	require.NoError(t, err)
	require.NoError(t, png.Encode(f, img))
	require.NoError(t, f.Close())
	require.Equal(t, "1 1 6 0 8 2\n1 0.8 2 4 4 6\n", runProgram(t, compile(t, dir, "testdata/check.c", shared(dir)...), "detect", model, photo))
}
