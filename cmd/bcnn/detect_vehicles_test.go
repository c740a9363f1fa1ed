package main

import (
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vision"
)

// The bundled detector finds photos of vehicles that it was not trained with on a grey picture. At 0.5 it takes
// the truck for a minibus as well.
func TestDetectVehicles(t *testing.T) {
	scene := image.NewRGBA(image.Rect(0, 0, 256, 256))
	draw.Draw(scene, scene.Bounds(), image.NewUniform(color.RGBA{130, 135, 130, 255}), image.Point{}, draw.Src)
	want := map[string]image.Point{"car": {10, 20}, "truck": {140, 15}, "bike": {30, 145}}
	for label, at := range want {
		f, err := os.Open(testenv.SharedData(t, "vehicles/"+label+"/"+label+"600.jpg"))
		require.NoError(t, err)
		photo, err := jpeg.Decode(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		draw.Draw(scene, photo.Bounds().Add(at), photo, image.Point{}, draw.Src)
	}
	file := filepath.Join(t.TempDir(), "scene.png")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, png.Encode(out, scene))
	require.NoError(t, out.Close())

	line := succeed(t, "detect", "--model", "vehicles", "--device", "cpu", "--threshold", "0.7", "--json", file)
	var found struct {
		Boxes []vision.Box `json:"boxes"`
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(line)), &found))
	require.Len(t, found.Boxes, len(want))
	for _, b := range found.Boxes {
		at, ok := want[b.Label]
		require.True(t, ok, b.Label)
		edges := [4]float32{float32(at.X), float32(at.Y), float32(at.X + 100), float32(at.Y + 100)}
		for k, edge := range [4]float32{b.X0, b.Y0, b.X1, b.Y1} {
			require.InDelta(t, edges[k], edge, 12, "%+v", b)
		}
	}
}
