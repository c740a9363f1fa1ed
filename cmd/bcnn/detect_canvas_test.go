package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/vision"
)

// The bundled detector finds five of the six digits on the canvas of the docs: its score of the 3 is below
// the threshold, and it takes the 2 for a 7 as well.
func TestDetectCanvas(t *testing.T) {
	want := []vision.Box{
		{Label: "2", X0: 231, Y0: 6, X1: 296, Y1: 89},
		{Label: "5", X0: 234, Y0: 128, X1: 302, Y1: 191},
		{Label: "0", X0: 31, Y0: 23, X1: 95, Y1: 99},
		{Label: "1", X0: 149, Y0: 16, X1: 176, Y1: 87},
		{Label: "4", X0: 123, Y0: 126, X1: 185, Y1: 223},
		{Label: "7", X0: 226, Y0: 8, X1: 295, Y1: 91},
	}
	line := succeed(t, "detect", "--model", "canvas", "--device", "cpu", "--json", "../../docs/images/canvas.png")
	var out struct {
		Boxes []vision.Box `json:"boxes"`
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(line)), &out))
	require.Len(t, out.Boxes, len(want))
	for i, b := range out.Boxes {
		require.Equal(t, want[i].Label, b.Label)
		require.Greater(t, b.Score, float32(0.6))
		for k, edges := range [][2]float32{{b.X0, want[i].X0}, {b.Y0, want[i].Y0}, {b.X1, want[i].X1}, {b.Y1, want[i].Y1}} {
			require.InDelta(t, edges[1], edges[0], 0.51, "box %d, edge %d", i, k)
		}
	}
}
