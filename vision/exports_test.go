package vision

import (
	"image"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/internal/npy"
)

// Networks that end as YOLOX and YOLOv8 do are detectors as PyTorch exports them: see train/onnx_detectors.py.
func TestExportedDetectors(t *testing.T) {
	const folder = "testdata/detectors/"
	f, err := os.Open(folder + "detectors.npz")
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
	pixels, size := read("photo")
	photo := image.NewNRGBA(image.Rect(0, 0, size[1], size[0]))
	for i := range size[0] * size[1] {
		copy(photo.Pix[4*i:], []byte{byte(pixels[3*i]), byte(pixels[3*i+1]), byte(pixels[3*i+2]), 255})
	}
	for name, kind := range map[string]onnx.Detection{"yolox": onnx.YOLOX, "decoded": onnx.YOLOX, "yolov8": onnx.YOLOv8} {
		want, shape := read(name)
		require.Greater(t, shape[0], 50, name)
		for _, exporter := range []string{"old", "dynamo"} {
			file := name + "." + exporter + ".onnx"
			net, report, err := onnx.Load(t.Context(), folder+file, onnx.Options{Detection: kind})
			require.NoError(t, err, file)
			require.Len(t, report.Deviations, 1, file)
			require.Contains(t, report.Deviations[0], "is left out for the maps that it is made of: ")
			require.Len(t, net.OutputLayers(), 2, file)
			labels := []string(nil)
			if file == "yolov8.old.onnx" {
				labels = []string{"cat", "dog's", "cow's"}
			}
			require.Equal(t, labels, net.Labels, file)
			d := detecting(t, net, "", DetectorOptions{Threshold: 0.25})
			boxes, err := d.Detect(t.Context(), photo)
			require.NoError(t, err)
			require.Len(t, boxes, shape[0], file)
			for i, b := range boxes {
				w := want[6*i:][:6]
				require.Equal(t, int(w[0]), b.Index, "%s %d", file, i)
				require.InDelta(t, w[1], b.Score, 1e-5)
				for k, v := range []float32{b.X0, b.Y0, b.X1, b.Y1} {
					require.InDelta(t, w[2+k], v, 2e-3, "%s, box %d: %+v", file, i, b)
				}
			}
		}
	}
}
