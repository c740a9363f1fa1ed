package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
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
		ByBits: plan.Multiplications{{Precision: plan.Binary, MACs: 15_383_560_192}, {Precision: 8, MACs: 86_704_128}},
		Float:  553_376_512, Stored: 17_297_408, File: 17_527_300,
	}, vgg)
	require.True(t, found["digits"].Trained)

	require.Equal(t, 99.51, found["digits"].Training.Accuracy)

	text := succeed(t, "zoo")
	require.Regexp(t, `(?m)^roadsigns +German road signs \(GTSRB\), 43 and none +96\.63 % +its test images, as published +github\.com/Xilinx/BNN-PYNQ, cnvW1A1 +BSD-3-Clause$`, text)
	require.Regexp(t, `(?m)^vgg19 +random +224×224×3 +143652544 +19632062464 +99\.6 % binary, 0\.4 % 8-bit +574610176 +17960960 +\d+$`, text)
	require.Regexp(t, `(?m)^vehiclenet-rgb +trained +96×96×3 +1881800 +82954600 +100\.0 % binary +7527200 +244896 +\d+$`, text)
}

func TestConvertZoo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net.bcnn")
	text := succeed(t, "convert", "--from", "zoo", "binarynet", "-o", file)
	require.Regexp(t, `(?m)^conv1 +conv2d +8-bit +3538944 +0\.6 % +13824 +0\.0 % +9216 +0\.5 % +1\.5 times *$`, text)
	require.Regexp(t, `(?m)^all +616966144 +100\.0 % +56088064 +100\.0 % +1761536 +100\.0 % +31\.8 times *$`, text)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`(?m)^file +%d$`, info.Size()), text)
	// The file holds what the name means.
	net, err := loadModel(t.Context(), "binarynet")
	require.NoError(t, err)
	want, err := modelfile.Encode(net)
	require.NoError(t, err)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}
