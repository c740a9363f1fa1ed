//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bincnn"
)

// TestPublishedAnswers runs the published weights of the paper's network on the
// twelve images whose sums are known, in the three modes and with every variant.
func TestPublishedAnswers(t *testing.T) {
	d := testDevice(t)
	shared := os.Getenv("BCNN_SHARED_DATA")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(shared); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no folder %s", shared)
	}
	dir := filepath.Join(shared, "bincnn")
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	type sums struct{ D3 []float32 }
	var expected []struct {
		File              string
		Thresh, Norm, Int sums
	}
	require.NoError(t, json.Unmarshal(text, &expected))
	require.Len(t, expected, 12)
	for _, mode := range bincnn.Modes {
		net, err := bincnn.Load(filepath.Join(dir, "wgt"), mode)
		require.NoError(t, err)
		plan, err := bcnn.Lower(net)
		require.NoError(t, err)
		in, out := bcnn.NewTensor(bcnn.Uint8, 12, plan.Input.Shape), bcnn.NewTensor(bcnn.Float32, 12, plan.OutputShape())
		var want []float32
		for i, e := range expected {
			readImage(t, filepath.Join(dir, "images", e.File), in.U8[i*plan.Input.Shape.Values():])
			want = append(want, map[bincnn.Mode]sums{bincnn.Thresh: e.Thresh, bincnn.Norm: e.Norm, bincnn.Int: e.Int}[mode].D3...)
		}
		for _, variant := range append([]string{""}, variantNames...) {
			t.Run(string(mode)+"/"+variant, func(t *testing.T) {
				exe, err := d.Compile(plan, backend.Options{Variant: variant, MaxBatch: 12})
				require.NoError(t, err)
				defer exe.Close()
				clear(out.F32)
				require.NoError(t, exe.Run(context.Background(), out, in))
				require.Equal(t, want, out.F32)
			})
		}
	}
}

// readImage reads the pixels of an image file to NHWC bytes.
func readImage(t *testing.T, path string, to []uint8) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	bounds, i := img.Bounds(), 0
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			copy(to[i:], []uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)})
			i += 3
		}
	}
}
