package serve

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// A network of PyTorch answers what PyTorch answered, for values in PyTorch's order, in every form
// of both protocols; metadata says that order, and a shape of the other one is an error.
func TestLayoutOfPyTorch(t *testing.T) {
	packed, err := os.Open("../bcnn/onnx/testdata/bireal.old.onnx.gz")
	require.NoError(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "bireal.onnx")
	model, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, model, 0o600))
	s := newServer(t, Options{})
	require.NoError(t, s.Add(t.Context(), "bireal", file))
	url, client := overWeb(t, s), overWire(t, s)

	reference, err := os.Open("../cmd/bcnn/testdata/bireal.old.npz")
	require.NoError(t, err)
	defer reference.Close()
	arrays, err := npy.OpenStream(reference)
	require.NoError(t, err)
	read := func(name string) []float32 {
		a, err := arrays.Read(name)
		require.NoError(t, err)
		values := make([]float32, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		return values
	}
	x, want := read("input"), read("output")
	answers := func(got []float32) {
		t.Helper()
		require.Len(t, got, len(want))
		for i, v := range got {
			require.InDelta(t, want[i], v, 1e-5)
		}
	}
	floats := func(raw []byte) (values []float32) {
		for ; len(raw) >= 4; raw = raw[4:] {
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		}
		return values
	}
	shape := []int64{3, 3, 10, 10}

	var meta struct {
		Inputs []struct{ Shape []int64 }
	}
	get(t, url+"/v2/models/bireal").decode(t, &meta)
	require.Equal(t, []int64{-1, 3, 10, 10}, meta.Inputs[0].Shape)
	path := url + "/v2/models/bireal/infer"
	numbers := make([]float64, len(x))
	for i, v := range x {
		numbers[i] = float64(v)
	}
	input := func(shape []int64) object { return object{"name": "input", "datatype": "FP32", "shape": shape} }
	for _, data := range []any{numbers, nested(numbers, shape)} {
		in := input(shape)
		in["data"] = data
		var answer struct{ Outputs []struct{ Data []float32 } }
		post(t, path, object{"inputs": []any{in}}).decode(t, &answer)
		answers(answer.Outputs[0].Data)
	}
	answers(floats(inferBinary(t, url, "bireal", input(shape), little(x))))

	asked := func(shape []int64, contents *pb.InferTensorContents, raw [][]byte) *pb.ModelInferRequest {
		return &pb.ModelInferRequest{ModelName: "bireal", RawInputContents: raw, Inputs: []*pb.ModelInferRequest_InferInputTensor{
			{Name: "input", Datatype: "FP32", Shape: shape, Contents: contents},
		}}
	}
	for _, r := range []*pb.ModelInferRequest{
		asked(shape, &pb.InferTensorContents{Fp32Contents: x}, nil), asked(shape, nil, [][]byte{little(x)}),
	} {
		answer, err := client.ModelInfer(t.Context(), r)
		require.NoError(t, err)
		answers(floats(answer.RawOutputContents[0]))
	}

	other := []int64{3, 10, 10, 3}
	in := input(other)
	in["data"] = numbers
	r := post(t, path, object{"inputs": []any{in}})
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, string(r.body), "3×10×10")
	_, err = client.ModelInfer(t.Context(), asked(other, nil, [][]byte{little(x)}))
	require.ErrorContains(t, err, "3×10×10")
}
