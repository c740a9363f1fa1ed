package main

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/measure"
)

func TestBench(t *testing.T) {
	keys := []string{"model", "device", "detail", "threads", "batch", "runs", "median_us", "min_us", "p90_us", "mean_us",
		"transfers", "macs", "binary_macs", "macs_by_bits", "macs_per_s", "peak_macs_per_s", "peak_steady", "processor", "version", "date"}
	model := saveLightNet(t)
	got := objects(t, succeed(t, "bench", "--json", "--model", model, "--device", "cpu", "--runs", "5", "--batch", "3", "--threads", "1"),
		append(keys, "steps", "floor_us?")...)[0]
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
	belowPeak(t, last)
	if floor, ok := got["floor_us"]; ok {
		require.InEpsilon(t, 3*32/got["peak_macs_per_s"].(float64)*1e6, floor, 1e-9)
		require.LessOrEqual(t, floor, got["min_us"])
	}
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

	got = objects(t, succeed(t, "bench", "--json", "--model", model, "--paper", "--device", "cpu", "--threads", "1"), keys...)[0]
	require.Equal(t, 1000.0, got["runs"])
	require.Equal(t, 1.0, got["batch"])
	require.Equal(t, false, got["transfers"])

	text := succeed(t, "bench", "--model", model, "--device", "cpu", "--runs", "2", "--isa", "generic")
	require.Contains(t, text, "2 runs of 1 image\nmedian ")
	require.Regexp(t, `(?m)^count  dense     1×1×2 float32  .* (\d+ % +(arithmetic|memory)|\?)$`, text)
}

// belowPeak requires that a step or operator is compared with a peak that it does not exceed,
// or with none.
func belowPeak(t *testing.T, result map[string]any) {
	t.Helper()
	if result["outran_peak"] == true { // on a machine that was busy whenever the loops ran
		require.NotContains(t, result, "peak_fraction")
		return
	}
	require.Positive(t, result["peak_fraction"])
	require.LessOrEqual(t, result["peak_fraction"], 1.0)
	require.Contains(t, []any{measure.Arithmetic, measure.Memory}, result["bound"])
}

// No step of a bundled model is quicker than the peak that it is compared with.
func TestBenchBelowPeak(t *testing.T) {
	if testing.Short() {
		t.Skip("the bundled models take seconds")
	}
	for _, name := range embeddedModels() {
		for _, threads := range []string{"1", "2"} {
			var result struct{ Steps []map[string]any }
			require.NoError(t, json.Unmarshal([]byte(succeed(t, "bench", "--json", "--model", name, "--device", "cpu", "--runs", "20", "--threads", threads)), &result))
			compared := 0
			for _, s := range result.Steps {
				if s["peak_fraction"] != nil || s["outran_peak"] != nil {
					belowPeak(t, s)
					compared++
				}
			}
			require.Positive(t, compared, name)
		}
	}
}

// The count of the steps agrees with the one of the layers.
func TestMACs(t *testing.T) {
	for _, name := range embeddedModels() {
		net, err := loadModel(t.Context(), name)
		require.NoError(t, err)
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		want, got := int64(0), int64(0)
		for _, r := range plan.Summarize(net, p) {
			want += r.MACs
		}
		for i := range p.Steps {
			got += p.MACs(i)
		}
		require.Equal(t, want, got, name)
	}
}

func TestBenchOps(t *testing.T) {
	keys := []string{"op", "group", "device", "isa", "threads", "batch", "runs", "ms", "min_ms", "macs", "bytes",
		"mac_per_s", "byte_per_s", "processor", "version", "date", "peak_mac_per_s", "peak_byte_per_s", "peak_steady", "peak_fraction?", "bound?", "outran_peak?"}
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
		require.InEpsilon(t, want.bytes/r["min_ms"].(float64)*1e3, r["byte_per_s"], 1e-9)
		belowPeak(t, r)
	}

	text := succeed(t, "bench", "--ops=dabnn_3x3_512", "--device", "cpu", "--runs", "1")
	require.Regexp(t, `\Acpu \(\w+\), 1 thread, batch of 1; minimum and median of up to 1 run, rates from the minimum\n\noperator  `, text)
	require.Regexp(t, `(?m)^dabnn_3x3_512  7×7×512 → 512, 3×3, padding 1  .* (\d+ % +(arithmetic|memory)|\?)$`, text)

	// A device without meters has no peak to compare with.
	useFake(t, fakeDevice{id: "fake:0"})
	objects(t, succeed(t, "bench", "--ops=pool5", "--device", "fake:0", "--runs", "1", "--json"), keys[:16]...)
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

// Several models are measured one after the other, with a table of them, and as CSV.
func TestBenchModels(t *testing.T) {
	model := saveLightNet(t)
	other := filepath.Join(t.TempDir(), "with,comma.bcnn")
	data, err := os.ReadFile(model)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, data, 0o600))
	args := []string{"bench", "--device", "cpu", "--runs", "2", "--threads", "1,2", "--model", model + "," + strings.ReplaceAll(other, ",", `\,`)}
	text := succeed(t, args...)
	require.Equal(t, 4, strings.Count(text, "2 runs of 1 image\nmedian "))
	_, table, _ := strings.Cut(text, "\nmedian µs ")
	require.Regexp(t, `\A +cpu, 1 thread, batch of 1 +cpu, 2 threads, batch of 1\n\S+light\.bcnn +[\d.]+ +[\d.]+\n\S+with,comma\.bcnn +[\d.]+ +[\d.]+\n\z`, table)

	lines, err := csv.NewReader(strings.NewReader(succeed(t, append(args, "--format", "csv")...))).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+4*3) // a whole run, and two steps
	require.Equal(t, other, lines[len(lines)-1][0])
	lines, err = csv.NewReader(strings.NewReader(succeed(t, "bench", "--ops=pool5,c16", "--device", "cpu", "--runs", "1", "--format", "csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 3)
	require.Equal(t, "c16", lines[2][0])

	require.Contains(t, fail(t, exitJob, "bench", "--model", model+",nosuch.bcnn", "--device", "cpu"), "nosuch.bcnn")
	require.Contains(t, fail(t, exitUsage, "bench", "--zeros", "1.5"), "from 0 to 1")
	require.Contains(t, fail(t, exitUsage, "bench", "--ops", "--zeros", "0.5"), "takes no --zeros")
}

// What the time of steps on three values depends on is said.
func TestPrintPlanes(t *testing.T) {
	var b strings.Builder
	out := &output{w: &b}
	printPlanes(out, []measure.StepTime{{Name: "a"}})
	require.Empty(t, b.String())
	few, many := 0.0, 0.5
	printPlanes(out, []measure.StepTime{{Name: "a"}, {Planes: 2, PlaneRows: &few}, {Planes: 2, PlaneRows: &many}})
	require.Contains(t, b.String(), "2 steps read several bit planes; 0 % to 50 % of the rows of the lower planes have a set bit here")
}

// What bench prints in the formats for other programs is well formed.
func TestBenchFormats(t *testing.T) {
	model := saveLightNet(t)
	text := succeed(t, "bench", "--model", model, "--device", "cpu", "--runs", "20", "--format", "benchstat")
	require.Regexp(t, `\Agoos: \w+\ngoarch: \w+\npkg: \S+\n(BenchmarkModel/model=light\.bcnn/device=cpu/isa=\w+/threads=\d+/batch=1\t2\t\d+ ns/op\t\S+ GMAC/s\n){10}\z`, text)
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
	}
	picture := succeed(t, strings.Fields("bench --device cpu --format png --ops=pool5 --runs 3")...)
	_, err := png.Decode(strings.NewReader(picture))
	require.NoError(t, err)
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

// Two files of results are put side by side; nothing is measured.
func TestBenchCompare(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const a = `{"model":"net","device":"cpu","threads":1,"batch":1,"median_us":40,"min_us":20,"processor":"one","version":"v1","date":"2026-01-02T03:04:05Z",
		"steps":[{"name":"conv","min_us":12,"median_us":13},{"name":"old","min_us":8}]}
{"op":"c64","device":"cpu","threads":1,"batch":1,"ms":0.004,"min_ms":0.003}
`
	const b = `{"model":"net","device":"cpu","threads":2,"batch":1,"median_us":50,"min_us":40}
{"model":"net","device":"cpu","threads":1,"batch":1,"median_us":12,"min_us":10,"steps":[{"name":"conv","min_us":6,"median_us":13},{"name":"new","min_us":4}]}
{"op":"c64","device":"cpu","threads":1,"batch":1,"ms":0.002,"min_ms":0.002}
`
	first, second := write("a.json", a), write("b.json", b)
	require.Equal(t, "A: "+first+` (cpu: one, v1, 2026-01-02)
B: `+second+`

net on cpu, 1 thread, batch of 1
                   A, min µs  B, min µs  A / B
whole run          20.0       10.0       2.00
whole run, median  40.0       12.0       3.33
conv               12.0       6.0        2.00
old                8.0
new                           4.0
A: the machine was busy: the median is 2.0 times the shortest run

c64 on cpu, 1 thread, batch of 1
                   A, min µs  B, min µs  A / B
whole run          3.0        2.0        1.50
whole run, median  4.0        2.0        2.00

only in B: net on cpu, 2 threads, batch of 1
`, succeed(t, "bench", "--compare", first, second))

	lines := strings.Split(succeed(t, "bench", "--compare", first, second, "--json"), "\n")
	pairs := objects(t, lines[0], "a", "b", "ratio", "steps")
	objects(t, lines[1], "a", "b", "ratio")
	require.Equal(t, 2.0, pairs[0]["ratio"])
	require.Equal(t, map[string]any{"model": "net", "device": "cpu", "threads": 1.0, "batch": 1.0, "min_us": 20.0, "median_us": 40.0}, pairs[0]["a"])
	require.Contains(t, succeed(t, "bench", "--compare", first, second, "--format", "csv"), "\nnet,,cpu,1,1,net,,cpu,1,1,conv,12,6,2\n")
	picture := succeed(t, "bench", "--compare", first, second, "--format", "svg")
	for _, text := range []string{">A: cpu<", ">B: cpu<", ">A: cpu: one, v1, 2026-01-02<", ">c64<"} {
		require.Contains(t, picture, text)
	}

	// One result of each is compared, whatever of.
	other := write("c.json", `{"model":"other","device":"cuda:0","threads":0,"batch":8,"median_us":10,"min_us":10}`)
	one := write("d.json", strings.SplitAfter(a, "]}\n")[0])
	require.Contains(t, succeed(t, "bench", "--compare", one, other), "net / other on cpu / cuda:0, 1 thread / -, batch of 1 / batch of 8\n")

	for _, bad := range []struct{ args, want string }{
		{"--compare " + first, "two files"},
		{"--compare " + first + " " + second + " x", "two files"},
		{"--compare - -", "only once"},
		{"--compare " + first + " " + second + " --runs 3", "--compare takes two files"},
		{"--compare " + first + " " + second + " --format benchstat", "no benchstat"},
		{"--compare " + first + " nosuch.json", "nosuch.json: " + absent(t)},
		{"--compare " + first + " " + write("e", ""), "no results"},
		{"--compare " + first + " " + write("f", "{}"), "result 1: neither a model"},
		{"--compare " + first + " " + write("g", a+"{"), "result 3: unexpected EOF"},
		{"--compare " + first + " " + write("h", `{"model":"net","batch":1,"min_us":2,"median_us":1}`), "result 1: impossible times"},
		{"--compare " + first + " " + write("i", `{"op":"c64","min_ms":0,"ms":1}`), "result 1: impossible times"},
		{"--compare " + first + " " + other, "no measurement in common"},
	} {
		r := runCommand(t, append([]string{"bench"}, strings.Fields(bad.args)...)...)
		require.NotZero(t, r.code, bad.args)
		require.Contains(t, r.stderr, bad.want, bad.args)
	}
}
