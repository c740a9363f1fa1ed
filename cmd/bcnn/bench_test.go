package main

import (
	"encoding/json"
	"encoding/xml"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/measure"
)

func TestBench(t *testing.T) {
	keys := []string{"model", "device", "detail", "threads", "batch", "runs", "median_us", "min_us", "p90_us", "mean_us",
		"transfers", "macs", "binary_macs", "macs_per_s", "peak_macs_per_s"}
	model := saveLightNet(t)
	got := objects(t, succeed(t, "bench", "--json", "--model", model, "--device", "cpu", "--runs", "5", "--batch", "3", "--threads", "1"),
		append(keys, "steps", "floor_us")...)[0]
	require.Equal(t, 32.0, got["macs"])
	require.Equal(t, 32.0, got["binary_macs"])
	require.Equal(t, 3.0, got["batch"])
	require.Equal(t, 5.0, got["runs"])
	require.LessOrEqual(t, got["min_us"], got["median_us"])
	require.LessOrEqual(t, got["median_us"], got["p90_us"])
	require.Positive(t, got["peak_macs_per_s"])
	steps := got["steps"].([]any)
	require.Len(t, steps, 2)
	// One step reads bytes, the other is compared with its bound.
	first, last := steps[0].(map[string]any), steps[1].(map[string]any)
	require.NotContains(t, first, "peak_fraction")
	require.InEpsilon(t, first["min_us"].(float64)+last["min_us"].(float64)*last["peak_fraction"].(float64), got["floor_us"], 1e-9)
	share := 0.0
	for i, want := range []struct {
		name, kind, output string
		macs               float64
	}{
		{"grey", "binarize", "4×4×1 bits", 0},
		{"count", "dense", "1×1×2 float32", 32},
	} {
		step := steps[i].(map[string]any)
		require.Equal(t, want.name, step["name"])
		require.Equal(t, want.kind, step["kind"])
		require.Equal(t, want.output, step["output"])
		require.Equal(t, want.macs, step["macs"])
		share += step["share"].(float64)
	}
	require.InDelta(t, 1, share, 1e-9)

	got = objects(t, succeed(t, "bench", "--json", "--model", model, "--paper", "--device", "cpu"), keys...)[0]
	require.Equal(t, 1000.0, got["runs"])
	require.Equal(t, 1.0, got["batch"])
	require.Equal(t, false, got["transfers"])

	text := succeed(t, "bench", "--model", model, "--device", "cpu", "--runs", "2", "--isa", "generic")
	require.Contains(t, text, "2 runs of 1 image\nmedian ")
	require.Regexp(t, `(?m)^count  dense     1×1×2 float32  .* %  +(arithmetic|memory)$`, text)
}

// The count agrees with the one that the layers' report gives.
func TestMACs(t *testing.T) {
	for _, name := range embeddedModels() {
		net, err := loadModel(t.Context(), name)
		require.NoError(t, err)
		plan, err := bcnn.Lower(t.Context(), net, bcnn.LowerOptions{})
		require.NoError(t, err)
		want, got := int64(0), int64(0)
		for _, r := range bcnn.Summarize(net, plan) {
			want += r.MACs
		}
		for i := range plan.Steps {
			got += plan.MACs(i)
		}
		counted, _ := measure.Count(plan)
		require.Equal(t, want, counted, name)
		require.Equal(t, want, got, name)
	}
}

func TestBenchOps(t *testing.T) {
	keys := []string{"op", "group", "device", "isa", "threads", "batch", "runs", "ms", "min_ms", "macs", "bytes",
		"mac_per_s", "byte_per_s", "peak_mac_per_s", "peak_byte_per_s", "peak_fraction", "bound"}
	got := objects(t, succeed(t, "bench", "--ops=pool5,c16", "--device", "cpu", "--isa", "generic", "--runs", "7", "--json", "--batch", "2"), keys...)
	require.Len(t, got, 2)
	for i, want := range []struct {
		op, group   string
		macs, bytes float64
	}{
		{"pool5", "bitflow", 0, 2 * 8 * 8 * (14*14 + 7*7)},
		{"c16", "sweep", 2 * 28 * 28 * 16 * 16 * 9, 2*2*2*28*28 + 2*9*16},
	} {
		r := got[i]
		require.Equal(t, want.op, r["op"])
		require.Equal(t, want.group, r["group"])
		require.Equal(t, want.macs, r["macs"])
		require.Equal(t, want.bytes, r["bytes"])
		require.Equal(t, "generic", r["isa"])
		require.Equal(t, 1.0, r["threads"])
		require.Equal(t, 2.0, r["batch"])
		require.LessOrEqual(t, r["runs"], 7.0)
		require.LessOrEqual(t, r["min_ms"], r["ms"])
		require.Positive(t, r["min_ms"])
		require.InEpsilon(t, want.bytes/r["ms"].(float64)*1e3, r["byte_per_s"], 1e-9)
		require.Positive(t, r["peak_fraction"])
	}
	require.Equal(t, measure.Memory, got[0]["bound"])

	text := succeed(t, "bench", "--ops=dabnn_3x3_512", "--device", "cpu", "--runs", "1")
	require.Regexp(t, `\Acpu \(\w+\), 1 thread, batch of 1; median and minimum of up to 1 run\n\noperator  `, text)
	require.Regexp(t, `(?m)^dabnn_3x3_512  7×7×512 → 512, 3×3, padding 1  .* %  +(arithmetic|memory)$`, text)

	// A device without meters has no peak to compare with.
	useFake(t, fakeDevice{id: "fake:0"})
	objects(t, succeed(t, "bench", "--ops=pool5", "--device", "fake:0", "--runs", "1", "--json"), keys[:13]...)
}

func TestSelectOps(t *testing.T) {
	all, err := selectOps(allOps)
	require.NoError(t, err)
	require.Len(t, all, len(zoo.Operators()))
	some, err := selectOps("c64,bitflow")
	require.NoError(t, err)
	require.Len(t, some, 9)
	require.Equal(t, "c64", some[0].Name)
	require.Equal(t, "conv2.1", some[1].Name)
	_, err = selectOps("bitflow,")
	require.ErrorContains(t, err, `--ops ""`)
}

// What bench prints in the formats for other programs is well formed.
func TestBenchFormats(t *testing.T) {
	model := saveLightNet(t)
	text := succeed(t, "bench", "--model", model, "--device", "cpu", "--runs", "20", "--format", "benchstat")
	require.Regexp(t, `\Agoos: \w+\ngoarch: \w+\npkg: \S+\n(BenchmarkModel/model=light\.bcnn/device=cpu/isa=\w+/threads=0/batch=1\t2\t\d+ ns/op\t\S+ GMAC/s\n){10}\z`, text)
	text = succeed(t, "bench", "--ops=pool5,c16", "--device", "cpu", "--runs", "10", "--format", "benchstat", "--isa", "generic")
	require.Regexp(t, `\n(BenchmarkOp/op=pool5/device=cpu/isa=generic/threads=1/batch=1\t2\t\d+ ns/op\n){5}(BenchmarkOp/op=c16/.*GMAC/s\n){5}\z`, text)

	for _, args := range []string{
		"--model " + model + " --batch 1,3 --threads 1,2", "--model " + model + " --paper", "--ops=pool5,fc1024",
	} {
		args = "bench --device cpu --format svg " + args
		if !strings.Contains(args, "--paper") {
			args += " --runs 3"
		}
		picture := succeed(t, strings.Fields(args)...)
		require.NoError(t, xml.Unmarshal([]byte(picture), new(struct {
			XMLName xml.Name `xml:"svg"`
		})), picture)
		require.Contains(t, picture, ">cpu", args)
		picture = succeed(t, strings.Fields(strings.Replace(args, "svg", "png", 1))...)
		_, err := png.Decode(strings.NewReader(picture))
		require.NoError(t, err)
	}
}

// Lists of batches and threads give a result for each pair.
func TestBenchLists(t *testing.T) {
	model := saveLightNet(t)
	out := succeed(t, "bench", "--json", "--model", model, "--device", "cpu", "--runs", "2", "--batch", "3,1", "--threads", "1,2")
	var got [][2]int
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var r measure.ModelResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		got = append(got, [2]int{r.Threads, r.Batch})
	}
	require.Equal(t, [][2]int{{1, 3}, {1, 1}, {2, 3}, {2, 1}}, got)
}

// With all devices, each takes the options that it has a choice of; one that was named
// has to take them.
func TestBenchAllDevices(t *testing.T) {
	model := saveLightNet(t)
	useFake(t, fakeDevice{id: "fake:0"})
	out := succeed(t, "bench", "--json", "--model", model, "--device", "all", "--runs", "2", "--threads", "1,2", "--isa", "generic")
	threads := map[string][]int{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var r measure.ModelResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		threads[r.Device] = append(threads[r.Device], r.Threads)
	}
	require.Equal(t, []int{1, 2}, threads["cpu"])
	require.Equal(t, []int{0}, threads["fake:0"])
	succeed(t, "parity", "--model", model, "--device", "all", "--threads", "2", "--isa", "generic")
	require.Contains(t, fail(t, exitJob, "bench", "--model", model, "--device", "fake:0", "--threads", "2"), "fake:0")
	require.Equal(t, exitJob, runCommand(t, "parity", "--model", model, "--device", "fake:0", "--isa", "generic").code)
}
