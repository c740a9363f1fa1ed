package main

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/samples"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestPublishedNetworks converts the networks that docs/importing.md names as it says, and
// classifies images with them.
func TestPublishedNetworks(t *testing.T) {
	page, err := os.ReadFile("../../docs/importing.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Published networks\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	lines := regexp.MustCompile(`(?m)^    bcnn (convert .*)$`).FindAllStringSubmatch(section, -1)
	labels := regexp.MustCompile(`a line each of (.*?) \|`).FindStringSubmatch(section)
	require.NotNil(t, labels)
	sizes := regexp.MustCompile(`(?m)^\|.*\| ([\d,]+) \|.*\|$`).FindAllStringSubmatch(section, -1)
	require.Len(t, sizes, len(lines))

	networks := map[string]func(t *testing.T, data, model string){
		"binarized_cifar10-resnet18-64bit-symbol.json": knowsCIFAR10,
		"binarized_mnist_32bit-symbol.json":            knowsDigits,
		"qonnx_tfc_1w1a.onnx":                          knowsDigits,
	}
	require.Len(t, lines, len(networks))
	for i, line := range lines {
		args := strings.Fields(line[1])
		file := args[1]
		t.Run(file, func(t *testing.T) {
			folder := "bmxnet"
			if path.Ext(file) == ".onnx" {
				folder = "onnx"
			}
			args[1] = testenv.SharedData(t, path.Join(folder, file))
			data := testenv.SharedData(t, "cifar10")
			t.Chdir(t.TempDir())
			require.NoError(t, os.WriteFile("labels.txt", []byte(strings.ReplaceAll(labels[1], ", ", "\n")), 0o666))
			succeed(t, args...)
			model := args[3]
			info, err := os.Stat(model)
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(sizes[i][1], ",", ""), fmt.Sprint(info.Size()))
			networks[file](t, data, model)
		})
	}
}

// knowsCIFAR10 takes 100 images of the training set, of which a network that is right knows nearly all.
func knowsCIFAR10(t *testing.T, data, model string) {
	pixels, err := os.ReadFile(filepath.Join(data, "first100_32x32x3_hwc_u8.bin"))
	require.NoError(t, err)
	classes, err := os.ReadFile(filepath.Join(data, "first100_labels_u8.bin"))
	require.NoError(t, err)
	labels, err := os.ReadFile("labels.txt")
	require.NoError(t, err)
	names := strings.Split(string(labels), "\n")
	for i, class := range classes {
		img := image.NewNRGBA(image.Rect(0, 0, 32, 32))
		for p := range 32 * 32 {
			copy(img.Pix[4*p:], pixels[3*(1024*i+p):][:3])
			img.Pix[4*p+3] = 255
		}
		dir := filepath.Join("images", names[class])
		require.NoError(t, os.MkdirAll(dir, 0o777))
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%02d.png", i)))
		require.NoError(t, err)
		require.NoError(t, png.Encode(f, img))
		require.NoError(t, f.Close())
	}
	got := objects(t, succeed(t, "eval", "--model", model, "--data", "images", "--json"), "accuracy", "correct", "total", "confusion")
	require.EqualValues(t, 100, got[0]["total"])
	require.EqualValues(t, 98, got[0]["correct"])
}

// knowsDigits takes the digits that are in the command.
func knowsDigits(t *testing.T, _, model string) {
	files, err := samples.Digits.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, files, 10)
	right := 0
	for _, f := range files {
		data, err := samples.Digits.ReadFile(f.Name())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f.Name(), data, 0o666))
		got := objects(t, succeed(t, "classify", "--json", "--model", model, f.Name()), "file", "label", "index", "probability", "logits", "device", "us")
		if fmt.Sprintf("digit-%v.png", got[0]["index"]) == f.Name() {
			right++
		}
	}
	require.GreaterOrEqual(t, right, 9)
}
