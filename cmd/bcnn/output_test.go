package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/summary"
)

// hostile is what a stranger may call a label, a layer or a file: it sets the
// title of a terminal, erases a line, makes lines and cells of its own, and turns
// the order of what follows.
const hostile = "\x1b]0;PWNED\a\x1b[2K\r\n/etc/passwd\tcar 99.9 %\u009b31m\u202etac\xff\x7f\v\f"

const shown = `\x1b]0;PWNED\a\x1b[2K\r\n/etc/passwd\tcar 99.9 %\u009b31m\u202etac\xff\x7f\v\f`

// harmless requires that a terminal does nothing with a text but show it: lines
// and tabs are those of the command itself.
func harmless(t *testing.T, text string, lines int) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	for _, r := range text {
		require.True(t, strconv.IsPrint(r) || r == '\n' || r == '\t', "%q in %q", r, text)
	}
	require.Equal(t, lines, strings.Count(text, "\n"), "%q", text)
}

// Whatever prints names prints them escaped.
func TestHostileNames(t *testing.T) {
	step := measure.StepTime{Name: hostile, Kind: hostile, Output: hostile, Bound: hostile, Median: 1, Min: 1, MACs: 5, Fraction: 1}
	result := measure.ModelResult{Model: hostile, Device: hostile, Detail: hostile, Batch: 1, Runs: 1, Median: 1, Peak: 1, Floor: 1,
		Origin: measure.Origin{Processor: hostile}, Steps: []measure.StepTime{step}, ISA: hostile, Samples: []measure.Sample{{Runs: 1, Mean: time.Second}}}
	op := measure.OperatorResult{Op: hostile, Device: hostile, ISA: hostile, Threads: 1, Batch: 1, Runs: 1, MACs: 1, Fraction: 1, Peak: 1,
		Origin: measure.Origin{Processor: hostile}, Bound: hostile, Operator: zoo.Operator{Op: bcnn.Dense{}}, Samples: []measure.Sample{{Runs: 1, Mean: time.Second}}}
	weights := summary.Layer{Name: hostile, Kind: hostile, WhyFloat: hostile}
	report := &summary.Report{Layers: []summary.Layer{weights}, Warning: "little"}
	array := arrayInfo{Name: hostile, Dims: []int{1}}
	info := inspection{
		Name: hostile, Labels: []string{hostile, "b"}, Input: inputInfo{Type: hostile, Resize: 5},
		Layers: []layerInfo{{Name: hostile, Kind: hostile, Output: hostile, Details: hostile, Weights: &weights}},
		Arrays: arraysInfo{[]arrayInfo{array, array}, []arrayInfo{array}}, Report: report,
		Plan: &planInfo{Device: hostile, Detail: hostile, Steps: []planStep{{
			Name: hostile, Kind: hostile, Layers: []string{hostile}, Inputs: []string{hostile}, Output: hostile,
			Kernel: hostile, Tile: hostile, Why: hostile,
		}}},
	}
	for name, c := range map[string]struct {
		print func(out *output)
		lines int // of output, whatever the names hold
	}{
		"inspect": {func(out *output) { printInspection(out, &info) }, 3 + 1 + 2 + 4 + 4 + 1 + 5},
		"convert": {func(out *output) { (&conversion{Input: hostile, Output: hostile, Report: report}).print(out) }, 6},
		"check": {func(out *output) {
			checked := checkedTensor{Name: hostile}
			(&checkResult{Device: hostile, Outputs: []checkedTensor{checked}, Layers: []checkedTensor{checked}, NotCompared: []string{hostile}}).print(out)
		}, 5},
		"eval": {func(out *output) {
			printEvaluation(out, &dataset.Evaluation{Confusion: [][]int{{1, 2}, {3, 4}}}, []string{hostile, hostile})
		}, 5},
		"bench":               {func(out *output) { printBench(out, result) }, 8},
		"benchstat":           {func(out *output) { _ = result.WriteBenchstat(out) }, 1},
		"bench --ops":         {func(out *output) { printOps(out, []measure.OperatorResult{op}) }, 6},
		"benchstat of --ops":  {func(out *output) { _ = op.WriteBenchstat(out) }, 1},
		"zoo":                 {func(out *output) { printZoo(out, []zooLine{{Name: hostile, Input: hostile}}) }, 2},
		"text and no numbers": {func(out *output) { out.printf("%s %v\n", errors.New(hostile), []string{hostile}) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			c.print(&output{w: &b})
			harmless(t, b.String(), c.lines)
			if name != "benchstat" && name != "benchstat of --ops" { // which know no spaces and slashes
				require.Contains(t, strings.ReplaceAll(b.String(), "&#39;", "'"), shown)
			}
		})
	}
}

// JSON holds what there is, in one line that a terminal can show.
func TestHostileJSON(t *testing.T) {
	valid := strings.ReplaceAll(hostile, "\xff", "")
	var b bytes.Buffer
	require.NoError(t, (&output{w: &b}).json(planStep{Name: valid, Layers: []string{valid}}))
	harmless(t, b.String(), 1)
	var step planStep
	require.NoError(t, json.Unmarshal(b.Bytes(), &step))
	require.Equal(t, planStep{Name: valid, Layers: []string{valid}}, step)
}

// anyNames skips the test where files may not have any names.
func anyNames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names have no control characters on Windows")
	}
}

// A file of any name is classified, and its name shown or given in full.
func TestHostileFileNames(t *testing.T) {
	anyNames(t)
	model, dir := saveLightNet(t), t.TempDir()
	name := strings.ReplaceAll(hostile, "/", "-")
	img := writePNG(t, filepath.Join(dir, name), lightImage(16))
	plain := writePNG(t, filepath.Join(dir, "größe.png"), lightImage(16))

	text := succeed(t, "classify", "--model", model, img, plain)
	harmless(t, text, 2)
	lines := strings.Split(text, "\n")
	require.Contains(t, lines[0], strings.ReplaceAll(shown, "/", "-")+"  light  ")
	// The columns stand below each other.
	require.Equal(t, utf8.RuneCountInString(lines[0][:strings.Index(lines[0], "  light")]),
		utf8.RuneCountInString(lines[1][:strings.Index(lines[1], "  light")]))

	r := runCommand(t, "classify", "--json", "--model", model, img, plain)
	require.Equal(t, exitOK, r.code)
	harmless(t, r.stdout, 2)
	var got [2]struct {
		File  string
		Bytes *string `json:"file_bytes"`
	}
	for i, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
		require.NoError(t, json.Unmarshal([]byte(line), &got[i]))
	}
	require.Equal(t, strings.ToValidUTF8(img, "\ufffd"), got[0].File)
	back, err := base64.StdEncoding.DecodeString(*got[0].Bytes)
	require.NoError(t, err)
	require.Equal(t, img, string(back))
	require.Equal(t, plain, got[1].File)
	require.Nil(t, got[1].Bytes)

	copied := filepath.Join(dir, name+".bcnn")
	data, err := os.ReadFile(model)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, data, 0o644))
	var measured measure.ModelResult
	line := succeed(t, "bench", "--json", "--paper", "--model", copied, "--device", "cpu")
	harmless(t, line, 1)
	require.NoError(t, json.Unmarshal([]byte(line), &measured))
	require.Equal(t, copied, string(measured.ModelBytes))
	harmless(t, succeed(t, "convert", "--from", "zoo", "vgg16", "-o", copied), 23)
}

// An error that names such a file is one line.
func TestHostileErrors(t *testing.T) {
	anyNames(t)
	dir := t.TempDir()
	t.Chdir(dir)
	name := strings.ReplaceAll(hostile, "/", "-")
	require.NoError(t, os.WriteFile(name, []byte("nothing"), 0o644))
	require.NoError(t, os.WriteFile(name+".onnx", []byte("nothing"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join("folder", name), 0o755))
	require.NoError(t, os.Mkdir("empty", 0o755))
	require.NoError(t, os.Mkdir(filepath.Join("empty", "0"+name), 0o755))
	idx := writeFile(t, "labels", "\x00\x00\x08\x01\x00\x00\x00\x00")
	for _, args := range [][]string{
		{hostile},
		{"help", hostile},
		{"completion", hostile},
		{"--" + hostile},
		{"classify", "--model", "digits", name},
		{"classify", "--model", "digits", "absent" + name},
		{"classify", "--model", name, "x.png"},
		{"classify", "--model", "absent" + name, "x.png"},
		{"classify", "--model", name + ".onnx", "x.png"},
		{"classify", "--model", "absent" + name + ".onnx", "x.png"},
		{"classify", "--model", "digits", "--device", hostile, "x.png"},
		{"eval", "--model", "digits", "--data", "absent" + name},
		{"eval", "--model", "digits", "--data", "folder"},
		{"eval", "--model", "digits", "--data", filepath.Join("folder", name)},
		{"eval", "--model", "digits", "--data", filepath.Join("folder", name), "--labels", "x"},
		{"eval", "--model", "digits", "--data", name},
		{"eval", "--model", "digits", "--data", name, "--labels", name},
		{"eval", "--model", "digits", "--data", idx, "--labels", name},
		{"eval", "--model", "digits", "--data", "empty"},
		{"convert", name, "-o", name},
		{"convert", "empty", "-o", "x.bcnn", "--from", hostile},
		{"convert", filepath.Join("folder", name), "-o", "x.bcnn"},
		{"convert", name, "-o", "x.bcnn", "--from", "bincnn", "--mode", hostile},
		{"convert", name, "-o", "x.bcnn", "--from", "bincnn", "--mode", "int"},
		{"convert", filepath.Join("folder", name), "-o", "x.bcnn", "--from", "bincnn", "--mode", "int"},
		{"convert", hostile, "-o", "x.bcnn", "--from", "zoo"},
		{"convert", name + ".onnx", "-o", "x.bcnn"},
		{"convert", name + ".onnx", "-o", "x.bcnn", "--labels", "absent" + name},
		{"convert", name + ".onnx", "-o", "x.bcnn", "--input", hostile},
		{"convert", name + ".onnx", "-o", "x.bcnn", "--shape", hostile},
		{"convert", "vgg16", "--from", "zoo", "-o", filepath.Join("absent"+name, "x.bcnn")},
		{"inspect", name},
		{"inspect", "digits", "--plan", "--isa", hostile},
		{"inspect", "digits", "--plan", "--device", hostile},
		{"inspect", "digits", "--plan", "--threads", hostile},
		{"parity", "--device", hostile},
		{"parity", "--model", name},
		{"bench", "--model", name},
		{"bench", "--ops=" + hostile},
		{"bench", "--format", hostile},
		{"bench", "--isa", hostile},
		{"zoo", hostile},
	} {
		r := runCommand(t, args...)
		require.NotEqual(t, exitOK, r.code, "%q", args)
		require.Empty(t, r.stdout, "%q", args)
		harmless(t, r.stderr, 1)
	}
	harmless(t, fail(t, exitJob, "classify", "--model", "digits", name), 1)
	require.Contains(t, fail(t, exitJob, "classify", "--model", name, "x"), strings.ReplaceAll(shown, "/", "-")+": ")
}

// A name as long as a model likes makes no table that wide.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("ü", 1000)
	rows := []row{"step\twhy"}
	for range 100 {
		rows = append(rows, rowf("%s\t%s", "short", "short"))
	}
	var b strings.Builder
	(&output{w: &b}).table(append(rows, rowf("%s\t%s", long, long)))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Equal(t, "short"+strings.Repeat(" ", maxCell-3)+"short", lines[1])
	require.Equal(t, strings.Repeat("ü", maxCell-1)+"…  "+long, lines[101])
	require.Equal(t, strings.Repeat("ü", maxCell), cut(strings.Repeat("ü", maxCell)))
}
