package bmxnet

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// logits reads the stored outputs of an independent implementation.
func logits(t *testing.T, name string) []float32 {
	data, err := os.ReadFile(testenv.SharedData(t, name))
	require.NoError(t, err)
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// run returns the outputs of a network for images, one after the other.
func run(t *testing.T, net *bcnn.Network, images []byte) []float32 {
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	dev, err := backend.Open("cpu")
	require.NoError(t, err)
	const batch = 50
	exe, err := dev.Compile(t.Context(), plan, backend.Options{MaxBatch: batch})
	require.NoError(t, err)
	defer exe.Close()
	x := bcnn.Tensor{DType: bcnn.Uint8, N: len(images) / net.Inputs[0].Shape.Values(), Shape: net.Inputs[0].Shape, U8: images}
	out := bcnn.NewTensor(bcnn.Float32, x.N, plan.OutputShape())
	for i := 0; i < x.N; i += batch {
		require.NoError(t, exe.Run(t.Context(), []bcnn.Tensor{out.Images(i, batch)}, []bcnn.Tensor{x.Images(i, batch)}))
	}
	return out.F32
}

func best(v []float32) int {
	b := 0
	for i, x := range v {
		if x > v[b] {
			b = i
		}
	}
	return b
}

// kinds lists the layers of a network.
func kinds(net *bcnn.Network) (list []string) {
	for _, l := range net.Layers {
		list = append(list, l.Op.Kind())
	}
	return list
}

// TestLeNet imports the LeNet that was published with BMXNet. With the MNIST test set
// (t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte) in the folder BCNN_MNIST, its
// outputs for the first 1,000 images are those of an independent implementation, and
// its accuracy is that of it, 97.40 %.
func TestLeNet(t *testing.T) {
	path := testenv.SharedData(t, "bmxnet/binarized_mnist_32bit-symbol.json")
	net, _, err := Load(t.Context(), path, Options{
		InputShape: bcnn.Shape{H: 28, W: 28, C: 1}, InputType: bcnn.Uint8, Scale: []float32{1. / 255},
	})
	require.NoError(t, err)
	require.Equal(t, "binarized_mnist_32bit", net.Name)
	require.Equal(t, []string{
		"affine", "conv2d", "tanh", "maxpool", "batchnorm", "sign", "conv2d", "affine", "batchnorm", "maxpool",
		"sign", "dense", "affine", "batchnorm", "tanh", "dense", "softmax",
	}, kinds(net))
	want := logits(t, "bmxnet/mnist_t10k_first1000_logits_f32le.bin")
	require.Len(t, want, 10000)
	folder := os.Getenv("BCNN_MNIST")
	if folder == "" {
		t.Log("BCNN_MNIST is not set: the outputs are not compared")
		return
	}
	images, err := os.ReadFile(filepath.Join(folder, "t10k-images-idx3-ubyte"))
	require.NoError(t, err)
	labels, err := os.ReadFile(filepath.Join(folder, "t10k-labels-idx1-ubyte"))
	require.NoError(t, err)
	require.EqualValues(t, 0x803, binary.BigEndian.Uint32(images))
	require.EqualValues(t, 0x801, binary.BigEndian.Uint32(labels))
	images, labels = images[16:], labels[8:]
	got := run(t, net, images)
	require.Len(t, got, 10*len(labels))
	worst, correct := 0.0, 0
	for i, v := range want {
		worst = max(worst, math.Abs(float64(v)-float64(got[i])))
	}
	for i, label := range labels {
		if best(got[10*i:10*i+10]) == int(label) {
			correct++
		}
	}
	t.Logf("largest difference %.2g, %d right", worst, correct)
	require.LessOrEqual(t, worst, 1e-4)
	require.Equal(t, 9740, correct)
}

// TestResNet imports the ResNet-18 for CIFAR-10 that was published with BMXNet: its
// outputs for 100 images are those of an independent implementation.
func TestResNet(t *testing.T) {
	path := testenv.SharedData(t, "bmxnet/binarized_cifar10-resnet18-64bit-symbol.json")
	net, _, err := Load(t.Context(), path, Options{
		InputShape: bcnn.Shape{H: 32, W: 32, C: 3}, InputType: bcnn.Uint8, Mean: []float32{123.68, 116.779, 103.939},
	})
	require.NoError(t, err)
	images, err := os.ReadFile(testenv.SharedData(t, "cifar10/first100_32x32x3_hwc_u8.bin"))
	require.NoError(t, err)
	got, want := run(t, net, images), logits(t, "bmxnet/cifar10_first100_logits_f32le.bin")
	require.Len(t, got, len(want))
	worst := 0.0
	for i := 0; i < len(want); i += 10 {
		require.Equal(t, best(want[i:i+10]), best(got[i:i+10]), "image %d", i/10)
		largest := 0.0
		for _, v := range want[i : i+10] {
			largest = max(largest, math.Abs(float64(v)))
		}
		for k := range 10 {
			worst = max(worst, math.Abs(float64(want[i+k])-float64(got[i+k]))/largest)
		}
	}
	t.Logf("largest difference %.2g of the largest output", worst)
	require.LessOrEqual(t, worst, 1e-3)
}
