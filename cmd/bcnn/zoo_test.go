package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/modelfile"
)

func TestZoo(t *testing.T) {
	found := map[string]zooLine{}
	for _, line := range strings.Split(strings.TrimSpace(succeed(t, "zoo", "--json")), "\n") {
		var l zooLine
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		found[l.Name] = l
	}
	require.Len(t, found, len(builtIn()))
	vgg := found["vgg16"]
	require.NotEmpty(t, vgg.About)
	vgg.About = ""
	require.Equal(t, zooLine{
		Name: "vgg16", Input: "224×224×3", Params: 138_344_128, MACs: 15_470_264_320, BinaryMACs: 15_383_560_192,
		Float: 553_376_512, Stored: 17_297_408,
	}, vgg)
	require.True(t, found["digits"].Trained)

	require.Equal(t, 99.51, found["digits"].Training.Accuracy)

	text := succeed(t, "zoo")
	require.Regexp(t, `(?m)^roadsigns +German road signs \(GTSRB\), 43 and none +96\.63 % +its test images, as published +github\.com/Xilinx/BNN-PYNQ, cnvW1A1 +BSD-3-Clause$`, text)
	require.Regexp(t, `(?m)^vgg19 +random +224×224×3 +143652544 +19545358336 +86704128 +574610176 +17960960$`, text)
	require.Regexp(t, `(?m)^vehiclenet-rgb +trained +96×96×3 +1881800 +82954600 +0 +7527200 +244896$`, text)
}

func TestConvertZoo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.bcnn")
	text := succeed(t, "convert", "--from", "zoo", "binarynet", "-o", file)
	require.Regexp(t, `(?m)^conv1 +conv2d +binary +3538944 +0\.6 % +13824 +0\.0 % +9216 +0\.5 % +1\.5 times *$`, text)
	require.Regexp(t, `(?m)^all +616966144 +100\.0 % +56088064 +100\.0 % +1761536 +100\.0 % +31\.8 times *$`, text)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.InDelta(t, 1761536, info.Size(), 100_000)
	// The file holds what the name means.
	net, err := loadModel(t.Context(), "binarynet")
	require.NoError(t, err)
	want, err := modelfile.Encode(net)
	require.NoError(t, err)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}
