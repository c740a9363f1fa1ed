package vision

import (
	"image"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// Boxes of maps of YOLOX and YOLOv8 are those of the programs that these are from, as
// testdata/heads.py computes them in float64.
func TestHeadsOfONNX(t *testing.T) {
	f, err := os.Open("testdata/heads.npz")
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	file, err := npy.Open(f, info.Size())
	require.NoError(t, err)
	read := func(name string) ([]float32, []int) {
		a, err := file.Read(name)
		require.NoError(t, err)
		values := make([]float32, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		return values, a.Shape
	}
	heads := map[string]func(output int, stride float32) bcnn.Head{
		"yolox": func(k int, s float32) bcnn.Head { return bcnn.YOLO{Output: k, Anchors: [][2]float32{{s, s}}} },
		"yolov8": func(k int, _ float32) bcnn.Head {
			return bcnn.DFL{Output: k, Bins: 16, Class: bcnn.LogisticActivation}
		},
	}
	for name, head := range heads {
		s := &answers{input: bitcnn.IO{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 64, W: 96, C: 3}, Photo: &bcnn.Photo{Fit: bcnn.FitStretch}}}
		d := &bcnn.Detection{Classes: 3, Background: -1}
		for k, stride := range []string{"8", "16", "32"} {
			values, shape := read(name + "_" + stride)
			s.outputs = append(s.outputs, output(shape[0], shape[1], shape[2], values...))
			d.Heads = append(d.Heads, head(k, float32(96/shape[1])))
		}
		det, err := newDetector(s, d, DetectorOptions{Threshold: 0.05, Overlap: 1})
		require.NoError(t, err)
		boxes, err := det.Detect(t.Context(), image.NewGray(image.Rect(0, 0, 96, 64)))
		require.NoError(t, err)
		want, shape := read(name + "_boxes")
		require.Greater(t, shape[0], 100, name)
		require.Len(t, boxes, shape[0], name)
		for i, b := range boxes {
			w := want[6*i:][:6]
			require.Equal(t, int(w[0]), b.Index, "%s %d", name, i)
			require.InDelta(t, w[1], b.Score, 1e-5)
			for k, v := range []float32{b.X0, b.Y0, b.X1, b.Y1} {
				require.InDelta(t, w[2+k], v, 1e-3, "%s, box %d: %+v", name, i, b)
			}
		}
	}
}
