package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/summary"
)

// mixedNet has a layer of each precision, whose multiplications can be counted by hand:
// 4·4·2·4 of the bytes of an image, 4·4·4·4 of bits, as many of levels of two bits, and
// 4·4·4·5 of floats.
func mixedNet() *bcnn.Network {
	n := &bcnn.Network{Name: "mixed", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 2}, DType: bcnn.Uint8}}}
	one := bcnn.Window{KH: 1, KW: 1}
	n.Append("image", bcnn.Conv2D{Window: one, Out: 4, Weights: bcnn.Weights{Bits: []uint64{0, 1, 2, 3}}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("bits", bcnn.Conv2D{Window: one, Out: 4, Weights: bcnn.Weights{Bits: []uint64{0, 1, 2, 3}}})
	n.Append("few", bcnn.Quantize{Low: 0, Levels: 4, Thresholds: []float32{1, 2, 3}})
	n.Append("levels", bcnn.Conv2D{Window: one, Out: 4, Weights: bcnn.Weights{Int8: []int8{1, 0, -1, 1, 0, 1, 1, -1, -1, 0, 1, 1, 1, -1, 0, 0}}})
	n.Append("slopes", bcnn.PReLU{Slope: []float32{0.1, 0.2, 0.3, 0.4}})
	n.Append("real", bcnn.Dense{Out: 5, Weights: bcnn.Weights{F32: make([]float32, 320)}})
	return n
}

const (
	mixedShares = "26.7 % binary, 26.7 % 2-bit, 13.3 % 8-bit, 33.3 % float32"
	mixedJSON   = `[{"bits":1,"macs":256},{"bits":2,"macs":256},{"bits":8,"macs":128},{"bits":32,"macs":320}]`
)

// reportFields are the members of a report in JSON, but for those that may be absent.
func reportFields() []string {
	return []string{"layers", "float_steps", "macs", "binary_macs", "macs_by_bits", "multiplications", "float_bytes", "stored_bytes", "compression",
		"table_bytes", "metadata_bytes", "file_bytes"}
}

// All commands count multiplications in the same way.
func TestPrecisions(t *testing.T) {
	dir := t.TempDir()
	in := writeFile(t, filepath.Join(dir, "in.bcnn"), string(saved(t, mixedNet())))
	out, page := filepath.Join(dir, "out.bcnn"), filepath.Join(dir, "net.html")

	requireJSON := func(report any) {
		t.Helper()
		b, err := json.Marshal(report.(map[string]any)["macs_by_bits"])
		require.NoError(t, err)
		require.JSONEq(t, mixedJSON, string(b))
		require.Equal(t, []any{256.0, 960.0}, []any{report.(map[string]any)["binary_macs"], report.(map[string]any)["macs"]})
	}
	for _, text := range []string{succeed(t, "convert", in, "-o", out), succeed(t, "inspect", in, "--html", page)} {
		require.Contains(t, text, "\nmultiplications: "+mixedShares+"\n")
		for layer, precision := range map[string]string{"image": "8-bit", "bits": "binary", "levels": "2-bit", "real": "float32"} {
			require.Regexp(t, `(?m)^`+layer+` +(conv2d|dense) +`+precision+` `, text)
		}
	}
	drawing, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(drawing), "Multiplications: "+mixedShares+".<br>")
	for class, n := range map[string]int{"binary": 1, "integer": 2, "float": 1} {
		require.Equal(t, n, strings.Count(string(drawing), `<rect class="`+class+`"`), class)
	}
	requireJSON(objects(t, succeed(t, "convert", in, "-o", out, "--json"), append(reportFields(), "input", "output")...)[0])
	var inspected, benched map[string]any
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "inspect", in, "--json")), &inspected))
	requireJSON(inspected["report"])
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "bench", "--model", in, "--device", "cpu", "--runs", "1", "--json")), &benched))
	requireJSON(benched)
	sum := 0.0
	for _, s := range benched["steps"].([]any) {
		sum += s.(map[string]any)["macs"].(float64)
	}
	require.Equal(t, 960.0, sum)

	// A network of other integers, or of few binary layers, is no binary one.
	require.NoError(t, os.Remove(out))
	require.Contains(t, fail(t, exitJob, "convert", in, "-o", out, "--require-binary"), in+": less than half of the multiplications are binary: "+mixedShares)
	require.NoFileExists(t, out)
}

// The list of networks and the report on one of them agree: weights and levels of two bits
// are not binary, nor are the bytes of an image.
func TestPrecisionsOfZoo(t *testing.T) {
	list := map[string]zooLine{}
	for line := range strings.Lines(succeed(t, "zoo", "--json")) {
		var l zooLine
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		list[l.Name] = l
	}
	text := succeed(t, "zoo")
	out := filepath.Join(t.TempDir(), "out.bcnn")
	// Windows of 3×3 on 30² pixels of 3 channels, and so on.
	const first = 30 * 30 * 64 * 27
	const others = 9*(28*28*64*64+12*12*64*128+10*10*128*128+3*3*128*256+256*256) + 256*512 + 512*512 + 512*10
	for name, want := range map[string]plan.Multiplications{
		"cnv-2w2a": {{Precision: 2, MACs: others}, {Precision: 8, MACs: first}},
		"cnv-1w1a": {{Precision: plan.Binary, MACs: others}, {Precision: 8, MACs: first}},
		"lfc-1w2a": {{Precision: 2, MACs: 784*1024 + 2*1024*1024 + 1024*10}},
	} {
		require.Equal(t, want, list[name].ByBits, name)
		require.Regexp(t, `(?m)^`+name+` .* `+regexp.QuoteMeta(want.String())+` `, text)
		converted := succeed(t, "convert", "--from", "zoo", name, "-o", out)
		require.Contains(t, converted, "\nmultiplications: "+want.String()+"\n")
		info, err := os.Stat(out)
		require.NoError(t, err)
		require.Equal(t, info.Size(), list[name].File)
	}
	require.Contains(t, fail(t, exitJob, "convert", "--from", "zoo", "cnv-2w2a", "-o", out, "--require-binary"), "0.0 % binary, 97.4 % 2-bit, 2.6 % 8-bit")
	succeed(t, "convert", "--from", "zoo", "cnv-1w1a", "-o", out, "--require-binary")
}

// What a report says of a file adds up to its size.
func TestBytesOfFiles(t *testing.T) {
	files, err := filepath.Glob("../../*/*.bcnn")
	require.NoError(t, err)
	more, err := filepath.Glob("../../vehiclenet/models/*.bcnn")
	require.NoError(t, err)
	require.Greater(t, len(files)+len(more), 6)
	for _, file := range append(files, more...) {
		var got struct{ Report summary.Report }
		require.NoError(t, json.Unmarshal([]byte(succeed(t, "inspect", "--json", file)), &got))
		info, err := os.Stat(file)
		require.NoError(t, err)
		r := got.Report
		require.Equal(t, []int64{info.Size(), info.Size()}, []int64{r.File, r.Stored + r.Tables + r.Metadata}, file)
	}
}
