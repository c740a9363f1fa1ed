package onnx

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestQONNX imports a published network of the QONNX model zoo: an MLP for
// MNIST, 784-64-64-64-10, one bit for weights and activations. Its pixels go
// from 0 to 1. With the MNIST test set (t10k-images-idx3-ubyte and
// t10k-labels-idx1-ubyte) in the folder BCNN_MNIST, its accuracy is the
// published one, 92.96 %.
func TestQONNX(t *testing.T) {
	path := testenv.SharedData(t, "onnx/qonnx_tfc_1w1a.onnx")
	net, _, err := Load(t.Context(), path, Options{InputType: bcnn.Uint8, Scale: []float32{1. / 255}})
	require.NoError(t, err)
	require.Equal(t, bcnn.Shape{H: 28, W: 28, C: 1}, net.Inputs[0].Shape)
	var kinds []string
	for _, l := range net.Layers {
		kinds = append(kinds, l.Op.Kind())
		if s, ok := l.Op.(bcnn.Sign); ok {
			require.Equal(t, bcnn.ZeroIsPlus, s.Zero)
		}
	}
	require.Equal(t, []string{
		"affine", "affine", "affine", "sign", "dense", "batchnorm", "sign", "dense", "batchnorm", "sign",
		"dense", "batchnorm", "sign", "dense", "affine", "affine", "affine", "affine",
	}, kinds)
	layers := summarize(t, net)
	require.Len(t, layers, 4)
	for i, want := range []int64{784 * 64, 64 * 64, 64 * 64, 64 * 10} {
		require.True(t, layers[i].small)
		require.Equal(t, want, layers[i].Params)
	}

	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	folder := os.Getenv("BCNN_MNIST")
	if folder == "" {
		t.Log("BCNN_MNIST is not set: the accuracy is not measured")
		return
	}
	images, err := os.ReadFile(filepath.Join(folder, "t10k-images-idx3-ubyte"))
	require.NoError(t, err)
	labels, err := os.ReadFile(filepath.Join(folder, "t10k-labels-idx1-ubyte"))
	require.NoError(t, err)
	require.EqualValues(t, 0x803, binary.BigEndian.Uint32(images))
	require.EqualValues(t, 0x801, binary.BigEndian.Uint32(labels))
	images, labels = images[16:], labels[8:]
	out, err := ref.Run(t.Context(), plan, bcnn.Tensor{DType: bcnn.Uint8, N: len(labels), Shape: net.Inputs[0].Shape, U8: bytes.Clone(images)}, nil)
	require.NoError(t, err)
	correct := 0
	for i, label := range labels {
		logits := out.F32[10*i : 10*i+10]
		best := 0
		for k, v := range logits {
			if v > logits[best] {
				best = k
			}
		}
		if best == int(label) {
			correct++
		}
	}
	require.Equal(t, 9296, correct)
}
