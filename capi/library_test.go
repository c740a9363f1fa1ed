//go:build linux && (amd64 || arm64) && cgo

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vision"
)

// library builds the library into a folder of the tests, once.
var library = sync.OnceValues(func() (string, error) {
	for _, file := range []string{"bitcnn.c", "include/bitcnn.h", "include/bitcnn.hpp", "../scripts/lib", "../scripts/common"} {
		if _, err := os.ReadFile(file); err != nil { // results of earlier runs are those of the same files
			return "", err
		}
	}
	dir, err := os.MkdirTemp("", "libbitcnn")
	if err != nil {
		return "", err
	}
	folder = dir
	out, err := buildLibrary(runtime.GOARCH, dir, "cc")
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return dir, err
})

var folder string // of library

// buildLibrary runs scripts/lib: with the compiler of releases where it has been installed, and else
// with one of this system, for nothing is to be loaded.
func buildLibrary(arch, dir, cc string) ([]byte, error) {
	cmd := exec.Command("../scripts/lib", arch, dir)
	if _, err := os.Stat("../build/zig/version"); err != nil && os.Getenv("CC") == "" {
		cmd.Env = append(os.Environ(), "CC="+cc)
	}
	return cmd.CombinedOutput()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// lib returns the folder of the library, for which all of Go is compiled anew as code of
// a library.
func lib(t testing.TB) string {
	testenv.Long(t)
	for _, tool := range []string{"cc", "objcopy"} {
		if _, err := exec.LookPath(tool); err != nil {
			testenv.Absent(t, "cc", err)
		}
	}
	dir, err := library()
	require.NoError(t, err)
	return dir
}

// shared links against libbitcnn.so.
func shared(dir string) []string { return []string{"-L" + dir, "-lbitcnn", "-Wl,-rpath," + dir} }

// compile makes a program of a source.
func compile(t testing.TB, dir, source string, flags ...string) string {
	t.Helper()
	_, err := os.ReadFile(source)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	compiler := "cc"
	if filepath.Ext(source) == ".cpp" {
		if compiler = "g++"; !has(compiler) {
			testenv.Absent(t, "g++", errors.New("it is not installed"))
		}
	}
	args := append([]string{"-g", "-O1", "-Wall", "-Wextra", "-Werror", "-I" + dir, source, "-o", program}, flags...)
	out, err := exec.Command(compiler, append(args, "-lpthread")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func has(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}

// run returns what a program prints.
func runProgram(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := command(t, program, args...)
	require.NoError(t, err, "%s %v\n%s", program, args, out)
	return string(out)
}

func command(t testing.TB, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(t.Context(), program, args...)
	// LLVM, in OpenCL on the processor, gives threads a stack for signals that
	// AddressSanitizer takes for its own as a thread ends.
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=use_sigaltstack=0", "UBSAN_OPTIONS=halt_on_error=1",
		"LSAN_OPTIONS=print_suppressions=0:suppressions=testdata/leaks.txt")
	return cmd.CombinedOutput()
}

// builds are the ways in which a program uses the library.
func builds(dir string) map[string][]string {
	return map[string][]string{
		"shared":           shared(dir),
		"static":           {filepath.Join(dir, "libbitcnn.a"), "-ldl", "-lm"},
		"AddressSanitizer": append(shared(dir), "-fsanitize=address,undefined", "-fno-omit-frame-pointer"),
	}
}

func TestChecks(t *testing.T) {
	dir := lib(t)
	onnx := filepath.Join(t.TempDir(), "relu.onnx")
	require.NoError(t, os.WriteFile(onnx, relu(), 0o600))
	for name, flags := range builds(dir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := compile(t, dir, "testdata/check.c", flags...)
			for _, mode := range []string{"misuse", "threads", "forks", "signals"} {
				runProgram(t, program, mode)
			}
			runProgram(t, program, "files", onnx, filepath.Join(t.TempDir(), "digits.bcnn"))
		})
	}
}

// A program whose stacks for signals are too small for tiles of Intel AMX gets the same bits, from
// another set of instructions.
func TestSmallStacks(t *testing.T) {
	dir := lib(t)
	program := compile(t, dir, "testdata/check.c", shared(dir)...)
	const model = "cifar10"
	_, never, _ := strings.Cut(runProgram(t, program, "stacks", "never", model), "\n")
	require.NotEmpty(t, never)
	detail, before, _ := strings.Cut(runProgram(t, program, "stacks", "before", model), "\n")
	require.NotContains(t, detail, "avx512amx")
	require.Equal(t, never, before)
	_, after, _ := strings.Cut(runProgram(t, program, "stacks", "after", model), "\n")
	require.Equal(t, never, after)
}

// Everything that C has is there in C++.
func TestCPlusPlus(t *testing.T) {
	dir := lib(t)
	onnx := filepath.Join(t.TempDir(), "relu.onnx")
	require.NoError(t, os.WriteFile(onnx, relu(), 0o600))
	for _, standard := range []string{"c++11", "c++20"} {
		program := compile(t, dir, "testdata/check.cpp", append(builds(dir)["AddressSanitizer"], "-std="+standard, "-pedantic")...)
		runProgram(t, program, onnx, filepath.Join(t.TempDir(), "saved.bcnn"))
	}
	header, err := os.ReadFile("include/bitcnn.h")
	require.NoError(t, err)
	plus, err := os.ReadFile("include/bitcnn.hpp")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`BITCNN_API .*[ *](bitcnn_[a-z_]*)\(`).FindAllStringSubmatch(string(header), -1) {
		if m[1] != "bitcnn_version_number" { // a number already
			require.Contains(t, string(plus), m[1])
		}
	}
}

// relu is an ONNX file with one node, Relu, of a float input of 1×2×3×4.
func relu() []byte { return node("Relu", 1, 2, 3, 4) }

// node is an ONNX file with one node, of a float input of 1×2×3×4.
func node(op string, output ...int) []byte {
	field := func(n int, content ...[]byte) []byte {
		all := bytes.Join(content, nil)
		return append([]byte{byte(n<<3 | 2), byte(len(all))}, all...)
	}
	number := func(n, v int) []byte { return []byte{byte(n << 3), byte(v)} }
	text := func(n int, s string) []byte { return field(n, []byte(s)) }
	value := func(n int, name string, shape ...int) []byte {
		var dims [][]byte
		for _, d := range shape {
			dims = append(dims, field(1, number(1, d)))
		}
		return field(n, text(1, name), field(2, field(1, number(1, 1), field(2, dims...))))
	}
	graph := field(7,
		field(1, text(1, "x"), text(2, "y"), text(4, op)), text(2, "graph"), value(11, "x", 1, 2, 3, 4), value(12, "y", output...))
	return bytes.Join([][]byte{number(1, 8), text(2, "hand"), graph, field(8, number(2, 13))}, nil)
}

// The pixels of a photo are those that the command sees.
func TestImage(t *testing.T) {
	photo := image.NewRGBA(image.Rect(0, 0, 24, 17))
	for i := range photo.Pix {
		photo.Pix[i] = uint8(i * i / 7)
	}
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, photo, nil))
	path := filepath.Join(t.TempDir(), "photo.jpg")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	decoded, err := vision.DecodeFile(t.Context(), path)
	require.NoError(t, err)
	want := ""
	for _, in := range []bcnn.Input{
		{Shape: bcnn.Shape{H: 5, W: 7, C: 3}, DType: bcnn.Uint8},
		{Shape: bcnn.Shape{H: 6, W: 6, C: 1}, DType: bcnn.Uint8, Resize: 9},
	} {
		x := bcnn.NewTensor(in.DType, 1, in.Shape)
		require.NoError(t, vision.Preprocessing{Input: in}.Fill(t.Context(), x, 0, decoded))
		for _, v := range x.U8 {
			want += fmt.Sprintf("%d ", v)
		}
	}
	dir := lib(t)
	for name, flags := range builds(dir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, runProgram(t, compile(t, dir, "testdata/check.c", flags...), "image", path))
		})
	}
}

// A signal that nobody handles ends a program as it would without the library.
func TestDefaultSignals(t *testing.T) {
	dir := lib(t)
	program := compile(t, dir, "testdata/check.c", shared(dir)...)
	for which, want := range map[string]syscall.Signal{"pipe": syscall.SIGPIPE, "segv": syscall.SIGSEGV} {
		out, err := command(t, program, "default-signals", which)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		status := exit.Sys().(syscall.WaitStatus)
		require.True(t, status.Signaled(), "%s: %v\n%s", which, err, out)
		require.Equal(t, want, status.Signal())
	}
}

// inputs is the sequence that testdata/check.c runs.
func inputs(n int, io bitcnn.IO) bitcnn.Tensor {
	t := bitcnn.NewTensor(io.DType, n, io.Shape)
	x := uint32(1)
	for i := range n * io.Shape.Values() {
		x = x*1664525 + 1013904223
		if io.DType == bitcnn.Float32 {
			t.F32[i] = float32(x>>24)/64 - 2
		} else {
			t.U8[i] = uint8(x >> 24)
		}
	}
	return t
}

// The outputs are those of Go.
func TestOutputs(t *testing.T) {
	dir := lib(t)
	program := compile(t, dir, "testdata/check.c", shared(dir)...)
	onnx := filepath.Join(t.TempDir(), "relu.onnx")
	require.NoError(t, os.WriteFile(onnx, relu(), 0o600))
	for _, name := range append(bitcnn.BundledNames(), onnx) {
		model, err := bitcnn.Bundled(name)
		if err != nil {
			model, err = bitcnn.Load(t.Context(), name, bitcnn.LoadOptions{})
		}
		require.NoError(t, err)
		s, err := bitcnn.Open(t.Context(), model, bitcnn.Options{Device: "cpu", MaxBatch: 3})
		require.NoError(t, err)
		out, err := s.Predict(t.Context(), inputs(3, s.Inputs()[0]))
		require.NoError(t, err)
		var want strings.Builder
		for _, o := range out {
			for _, v := range o.F32 {
				fmt.Fprintln(&want, strconv.FormatFloat(float64(v), 'x', -1, 32))
			}
		}
		var got strings.Builder
		for line := range strings.Lines(runProgram(t, program, "run", name, "3")) {
			v, err := strconv.ParseFloat(strings.TrimSpace(line), 32)
			require.NoError(t, err)
			fmt.Fprintln(&got, strconv.FormatFloat(v, 'x', -1, 32))
		}
		require.Equal(t, want.String(), got.String(), name)
		require.NoError(t, s.Close())
	}
}

// What a program is told is what Go is told.
func TestDescribe(t *testing.T) {
	dir := lib(t)
	model, err := bitcnn.Bundled("vehiclenet")
	require.NoError(t, err)
	s, err := bitcnn.Open(t.Context(), model, bitcnn.Options{Device: "cpu", MaxBatch: 2, Threads: 1})
	require.NoError(t, err)
	defer s.Close()
	in, out := s.Inputs()[0], s.Outputs()[0]
	in.Name, out.Name = "input", "output"

	var want strings.Builder
	fmt.Fprintf(&want, "device cpu\n1 inputs, 1 outputs, %d labels, %d steps, batches of 2\n", len(model.Labels), len(s.Steps()))
	for _, io := range []bitcnn.IO{in, out} {
		fmt.Fprintf(&want, "%s %d %v %d %d\n", io.Name, io.DType, io.Shape, io.Shape.Bytes(io.DType), io.Resize)
	}
	for _, l := range model.Labels {
		fmt.Fprintf(&want, "label %s\n", l)
	}
	for _, step := range s.Steps() {
		fmt.Fprintf(&want, "step|%s|%s|%s|%s|%s\n", step.Name, step.Kind, step.Kernel, step.Tile, step.Why)
	}
	for _, name := range bitcnn.BundledNames() {
		fmt.Fprintf(&want, "bundled %s\n", name)
	}
	text := runProgram(t, compile(t, dir, "testdata/check.c", shared(dir)...), "describe", "vehiclenet")
	first, rest, _ := strings.Cut(text, "\n")
	rest, version, _ := strings.Cut(rest, "version ")
	require.Equal(t, want.String(), rest)
	require.NotEmpty(t, strings.TrimSpace(version))

	var r report
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(first, "report ")), &r))
	require.Equal(t, model.Labels, r.Labels)
	require.Equal(t, model.Inputs[0].Shape, bitcnn.Shape{H: r.Inputs[0].Height, W: r.Inputs[0].Width, C: r.Inputs[0].Channels})
	same, err := newReport(model)
	require.NoError(t, err)
	require.Equal(t, same, &r)
}

// The multiplications of a report, counted by hand: 2·3 of the bytes of an image, 3·4 of
// bits, 4·5 of levels with two bits, 5·6 of floats.
func TestReportCounts(t *testing.T) {
	n := &bitcnn.Model{Name: "mixed", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 2}, DType: bcnn.Uint8}}}
	n.Append("image", bcnn.Dense{Out: 3, Weights: bcnn.Weights{Bits: []uint64{0, 1, 2}}})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("bits", bcnn.Dense{Out: 4, Weights: bcnn.Weights{Bits: []uint64{0, 1, 2, 3}}})
	n.Append("few", bcnn.Quantize{Low: 0, Levels: 4, Thresholds: []float32{1, 2, 3}})
	n.Append("levels", bcnn.Dense{Out: 5, Weights: bcnn.Weights{Bits: []uint64{0, 1, 2, 3, 4}}})
	n.Append("real", bcnn.Dense{Out: 6, Weights: bcnn.Weights{F32: make([]float32, 30)}})
	r, err := newReport(n)
	require.NoError(t, err)
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var got struct {
		MACs   int64           `json:"macs"`
		Binary int64           `json:"binary_macs"`
		ByBits json.RawMessage `json:"macs_by_bits"`
		Words  string          `json:"multiplications"`
		Layers []struct{ Name, Precision string }
	}
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, []int64{68, 12}, []int64{got.MACs, got.Binary})
	require.JSONEq(t, `[{"bits":1,"macs":12},{"bits":2,"macs":20},{"bits":8,"macs":6},{"bits":32,"macs":30}]`, string(got.ByBits))
	require.Equal(t, "17.6 % binary, 29.4 % 2-bit, 8.8 % 8-bit, 44.1 % float32", got.Words)
	for i, want := range []string{"8-bit", "binary", "2-bit", "float32"} {
		require.Equal(t, want, got.Layers[i].Precision, got.Layers[i].Name)
	}
}

// Calls at random, with what no function may take among the arguments.
func TestRandomCalls(t *testing.T) {
	dir := lib(t)
	program := compile(t, dir, "testdata/fuzz.c", builds(dir)["AddressSanitizer"]...)
	seeds, calls := 3, "3000"
	if !testing.Short() {
		seeds, calls = 12, "20000"
	}
	for seed := range seeds {
		runProgram(t, program, "../models/digits.bcnn", strconv.Itoa(seed), calls, strconv.Itoa(1+seed%8))
	}
}

// Memory stays as it is over many runs, sessions and models.
func TestLeak(t *testing.T) {
	testenv.Long(t)
	dir := lib(t)
	text := runProgram(t, compile(t, dir, "testdata/check.c", shared(dir)...), "leak", "100000", "1000")
	more, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " bytes more"))
	require.NoError(t, err)
	// 1,000 sessions take 130 MB if they stay.
	require.Less(t, more, 8<<20)
}

func TestExamples(t *testing.T) {
	dir := lib(t)
	photo, err := filepath.Abs("testdata/digit-7.pgm")
	require.NoError(t, err)
	t.Run("C", func(t *testing.T) {
		if !has("pkg-config") {
			testenv.Absent(t, "pkg-config", errors.New("it is not installed"))
		}
		cmd := exec.Command("pkg-config", "--cflags", "--libs", "bitcnn")
		cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(dir, "pkgconfig"))
		flags, err := cmd.Output()
		require.NoError(t, err)
		program := compile(t, dir, "../examples/c/digit.c", append(strings.Fields(string(flags)), "-Wl,-rpath,"+dir, "-std=c99", "-pedantic")...)
		require.Equal(t, "7\n", runProgram(t, program, photo))
	})
	t.Run("C++", func(t *testing.T) {
		for _, standard := range []string{"c++11", "c++20"} {
			program := compile(t, dir, "../examples/cpp/digit.cpp", append(shared(dir), "-std="+standard, "-pedantic")...)
			require.Equal(t, "7\n", runProgram(t, program, "../models/digits.bcnn", photo))
			out, err := command(t, program, "no such file", photo)
			require.Error(t, err)
			require.Contains(t, string(out), "no such file")
		}
	})
	t.Run("CMake", func(t *testing.T) {
		testenv.Long(t)
		if !has("cmake") {
			testenv.Absent(t, "cmake", errors.New("it is not installed"))
		}
		project := t.TempDir()
		require.NoError(t, os.CopyFS(project, os.DirFS("../examples/c")))
		for _, args := range [][]string{
			{"-S", project, "-B", project + "/build", "-Dbitcnn_DIR=" + dir + "/cmake/bitcnn"}, {"--build", project + "/build"},
		} {
			out, err := exec.Command("cmake", args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		for _, name := range []string{"digit", "digit-static"} {
			require.Equal(t, "7\n", runProgram(t, project+"/build/"+name, photo))
		}
	})
}

// The library for arm64 computes the same, under QEMU.
func TestArm64(t *testing.T) {
	testenv.Long(t)
	if runtime.GOARCH != "amd64" {
		t.Skip(testenv.LeftOutByShort) // all tests are of arm64
	}
	for name, tool := range map[string]string{"aarch64-cc": "aarch64-linux-gnu-gcc", "qemu-aarch64": "qemu-aarch64"} {
		if !has(tool) {
			testenv.Absent(t, name, errors.New("it is not installed"))
		}
	}
	host, dir := lib(t), t.TempDir()
	out, err := buildLibrary("arm64", dir, "aarch64-linux-gnu-gcc")
	require.NoError(t, err, "%s", out)
	emulated := func(source string, flags ...string) []string {
		program := filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c"))
		args := append([]string{"-O1", "-I" + dir, source, "-o", program, "-L" + dir, "-lbitcnn", "-lpthread"}, flags...)
		out, err := exec.Command("aarch64-linux-gnu-gcc", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return []string{"-L", "/usr/aarch64-linux-gnu", "-E", "LD_LIBRARY_PATH=" + dir, program}
	}
	native, check := compile(t, host, "testdata/check.c", shared(host)...), emulated("testdata/check.c")
	for _, name := range []string{"digits", "vehiclenet"} {
		require.Equal(t, runProgram(t, native, "run", name, "2"), runProgram(t, "qemu-aarch64", append(check, "run", name, "2")...))
	}
	for _, mode := range []string{"misuse", "forks"} {
		runProgram(t, "qemu-aarch64", append(check, mode)...)
	}

	models := numbers(t)
	native = compile(t, host, "testdata/modes.c", shared(host)...)
	want := runProgram(t, native, append([]string{modes["amd64"]["up"], "never"}, models...)...)
	program := emulated("testdata/modes.c")
	for _, name := range slices.Sorted(maps.Keys(modes["arm64"])) {
		for _, moment := range []string{"start", "always", "thread"} {
			mode := modes["arm64"][name]
			require.Equal(t, want, runProgram(t, "qemu-aarch64", slices.Concat(program, []string{mode, moment}, models)...), "%s, %s", name, moment)
		}
	}
	program = emulated("testdata/modes.c", "-ffast-math")
	require.Equal(t, want, runProgram(t, "qemu-aarch64", slices.Concat(program, []string{"as-is", "start"}, models)...))
}

// BenchmarkRun compares a run from C with one from Go, of one image on one thread, in
// turns: the best turn of each.
func BenchmarkRun(b *testing.B) {
	dir := lib(b)
	program := compile(b, dir, "testdata/check.c", append(shared(dir), "-O2")...)
	for name, runs := range map[string]int{"digits": 300, "vehiclenet": 20} {
		b.Run(name, func(b *testing.B) {
			model, err := bitcnn.Bundled(name)
			require.NoError(b, err)
			s, err := bitcnn.Open(b.Context(), model, bitcnn.Options{Device: "cpu", Threads: 1})
			require.NoError(b, err)
			defer s.Close()
			in := []bitcnn.Tensor{inputs(1, s.Inputs()[0])}
			out, err := s.Predict(b.Context(), in...)
			require.NoError(b, err)
			fromGo, fromC := time.Hour, time.Hour
			for b.Loop() {
				for range 300 {
					start := time.Now()
					for range runs {
						if err := s.Run(ctx, out, in); err != nil {
							b.Fatal(err)
						}
					}
					fromGo = min(fromGo, time.Since(start)/time.Duration(runs))
				}
				text := runProgram(b, program, "bench", name, strconv.Itoa(runs), "300", "1")
				ns, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				require.NoError(b, err)
				fromC = min(fromC, time.Duration(ns))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(fromGo), "Go-ns")
			b.ReportMetric(float64(fromC), "C-ns")
		})
	}
}
