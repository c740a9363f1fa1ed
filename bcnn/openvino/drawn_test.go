package openvino

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// What OpenVINO computes of random graphs:
//
//	scripts/fuzz-import openvino --graphs 80 --seed 5 --record bcnn/openvino/testdata/drawn.zip
func TestDrawn(t *testing.T) {
	archive, err := zip.OpenReader("testdata/drawn.zip")
	require.NoError(t, err)
	defer archive.Close()
	read := func(name string) []byte {
		f, err := archive.Open(name)
		require.NoError(t, err)
		defer f.Close()
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		return data
	}
	graphs := 0
	for _, f := range archive.File {
		name, ok := strings.CutSuffix(f.Name, ".xml")
		if !ok {
			continue
		}
		graphs++
		t.Run(name, func(t *testing.T) {
			net, _, err := Decode(t.Context(), read(f.Name), read(name+".bin"), Options{})
			require.NoError(t, err)
			answer := read(name + ".npz")
			values, err := npy.Open(bytes.NewReader(answer), int64(len(answer)))
			require.NoError(t, err)
			x, _ := numbers(t, values, "in_x")
			want, _ := numbers(t, values, "out_y")
			requireClose(t, want, run(t, net, x)["y"], 1e-5)
		})
	}
	require.Equal(t, 76, graphs)
}

// A panic in an operator is an error of its layer.
func TestPanicOfLayer(t *testing.T) {
	before := operators["ReLU"]
	defer func() { operators["ReLU"] = before }()
	operators["ReLU"] = operator{versions: before.versions, make: func(im *importer, n *node) operand { return im.values[len(im.values)] }}
	w := newWriter()
	w.op("ReLU", "", nil, w.parameter(1, 4, 2, 2))
	f := w.last()
	_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.ErrorContains(t, err, `node "relu_1" (ReLU opset1, index 1): internal error at openvino.TestPanicOfLayer`)
}
