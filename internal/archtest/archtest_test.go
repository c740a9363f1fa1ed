// Package archtest keeps the packages of the module apart: it reads every Go
// file, whatever its build tags, and fails where one package imports another
// that it must not know.
package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

const module = "github.com/bitcnn/bitcnn"

// An edge is one import of one package of the module by another. Packages are
// named by their folder, "." being the root.
type edge struct {
	file     string // importing file
	from, to string
}

func (e edge) test() bool { return strings.HasSuffix(e.file, "_test.go") }

// group is the part of the house that a package belongs to.
func group(pkg string) string {
	switch first, rest, _ := strings.Cut(pkg, "/"); first {
	case ".":
		return "front"
	case "bcnn":
		switch rest {
		case "":
			return "bcnn"
		case "bits":
			return "bits"
		case "internal/described", "internal/fakequantize", "internal/resize", "internal/roots", "internal/sets", "internal/try", "internal/values", "internal/view", "internal/weights", "internal/placetest", "simplify", "plan", "lower", "ref":
			return path.Base(rest)
		}
		return "reader" // importers, the model file
	case "backend":
		name, _, _ := strings.Cut(rest, "/")
		switch name {
		case "", "all", "backendtest", "driver", "parity":
			return path.Join("backend", name)
		case "internal":
			switch rest {
			case "internal/gpu", "internal/compare", "internal/trampoline":
				return path.Base(rest)
			}
			return "unknown"
		}
		return "device"
	case "internal":
		if rest == "dataset" || strings.HasPrefix(rest, "dataset/") {
			return "dataset"
		}
		if rest == "measure" || rest == "arrays" || rest == "summary" || rest == "importfuzz" || rest == "answers" || rest == "pages" {
			return rest
		}
		return "internal"
	case "bench", "capi", "cmd", "examples", "models", "serve", "vehiclenet", "vision", "kernels":
		return first
	}
	return "unknown"
}

// allowed lists, for every group, the groups that its packages may import.
var allowed = map[string][]string{
	"bits":                {"internal"},
	"sets":                {"internal"},
	"bcnn":                {"sets", "bits", "internal"},
	"plan":                {"bcnn", "bits", "internal"},
	"lower":               {"simplify", "plan", "bcnn", "bits", "internal"},
	"ref":                 {"plan", "bcnn", "bits", "internal"},
	"placetest":           {"plan", "bcnn"}, // for tests
	"try":                 {},
	"fakequantize":        {"bcnn", "internal"},
	"roots":               {"bcnn"},
	"view":                {"bcnn"},
	"resize":              {"bcnn"},
	"weights":             {"bits", "internal"},
	"values":              {"sets", "weights", "bcnn", "internal"},
	"simplify":            {"values", "weights", "bcnn", "bits", "internal"},
	"described":           {"bcnn"},
	"reader":              {"described", "fakequantize", "simplify", "sets", "values", "view", "weights", "resize", "roots", "try", "bcnn", "bits", "internal"},
	"backend/driver":      {"plan", "bcnn"},
	"backend":             {"backend/driver", "plan", "bcnn", "bits", "internal"},
	"gpu":                 {"backend/driver", "plan", "bcnn", "bits", "internal", "kernels"},
	"trampoline":          {},
	"device":              {"gpu", "trampoline", "backend", "backend/driver", "plan", "ref", "bcnn", "bits", "internal", "kernels"},
	"backend/all":         {"backend", "device"},
	"compare":             {"bcnn", "bits"},
	"backend/parity":      {"compare", "backend", "lower", "plan", "ref", "bcnn", "bits", "reader", "internal"},
	"backend/backendtest": {"backend/parity", "compare", "backend", "lower", "plan", "ref", "bcnn", "bits", "reader", "internal"},
	"vehiclenet":          {"bcnn", "bits", "reader", "internal"},
	"models":              {"vehiclenet", "bcnn", "reader"},
	"front":               {"arrays", "models", "backend", "backend/all", "simplify", "lower", "plan", "bcnn", "reader", "internal"},
	"vision":              {"vision", "front", "bcnn", "internal"},
	"dataset":             {"dataset", "vision", "bcnn", "internal"},
	"arrays":              {"bcnn", "bits", "internal"},
	"summary":             {"plan", "bcnn", "reader", "internal"},
	"pages":               {"dataset", "vision", "plan", "bcnn", "internal"},
	"measure":             {"backend", "lower", "plan", "bcnn", "reader", "internal"},
	"serve":               {"serve", "front", "models", "vision", "arrays", "bcnn", "internal"},
	"cmd":                 {"front", "models", "serve", "vision", "dataset", "pages", "measure", "arrays", "summary", "backend", "backend/all", "backend/parity", "simplify", "lower", "plan", "ref", "bcnn", "bits", "reader", "internal"},
	"capi":                {"front", "vision", "summary", "lower", "bcnn", "reader"},
	"examples":            {"front", "vision"}, // nothing internal: they are copied
	"bench":               {"internal", "measure", "backend", "backend/all", "lower", "plan", "ref", "bcnn", "bits", "reader"},
	"answers":             {"arrays", "lower", "bcnn", "ref", "reader", "internal"}, // for tests
	"importfuzz":          {"front", "arrays", "lower", "bcnn", "ref", "reader", "internal"},
	"internal":            {"internal", "bits"},
	"kernels":             {},
}

// top is the package at the head of a group of folders: backend/cpu for
// backend/cpu/internal/kern.
func top(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// kern describes the kernels of the CPU backend; below it are the kernels.
const kern = "backend/cpu/internal/kern"

// wrongKernels is wrong for kernels: those of an instruction set may fall back to
// generic, and only package sets knows all of them.
func wrongKernels(e edge) string {
	to, below := strings.CutPrefix(e.to, kern+"/")
	from, inside := strings.CutPrefix(e.from, kern+"/")
	switch {
	case !below, from == "sets" && inside, to == "sets" && !inside && e.from != kern:
		return ""
	case inside && (to == "generic" || from == "avx512" && to == "avx2" || from == "amx" && to == "avx512"):
		return ""
	}
	return "which kernels there are is known to " + kern + "/sets only"
}

// cpuRooms lists the rooms of the CPU backend, each with those that it may know: the
// kernels, those who compute tiles, the division into tiles, and the steps, which do
// not know each other. The backend itself knows them all.
var cpuRooms = map[string][]string{
	"tiles":      {"kern"},
	"activation": {"kern"},
	"weights":    {},
	"schedule":   {"kern", "tiles", "weights"},
	"conv":       {"kern", "tiles", "activation", "schedule"},
	"pixelwise":  {"kern", "tiles", "activation", "schedule"},
}

// wrongCPURoom is wrong for the rooms of the CPU backend. Kernels know no room.
func wrongCPURoom(e edge) string {
	const rooms = "backend/cpu/internal/"
	from, inside := strings.CutPrefix(e.from, rooms)
	to, known := strings.CutPrefix(e.to, rooms)
	if !inside || !known || strings.HasPrefix(from, "kern") && strings.HasPrefix(to, "kern") || slices.Contains(cpuRooms[from], to) {
		return ""
	}
	return fmt.Sprintf("%s may know these rooms of backend/cpu: %s", e.from, strings.Join(cpuRooms[from], ", "))
}

// rooms are lists of packages of which each may know those before it only.
var rooms = [][]string{
	{"bcnn/onnx/internal/pb", "bcnn/onnx/internal/eval", "bcnn/internal/view", "bcnn/onnx/internal/build", "bcnn/onnx"},
	{"bcnn/tflite/internal/flat", "bcnn/tflite/internal/schema", "bcnn/tflite"},
}

// wrongRoom is wrong for a package that comes before one that it imports.
func wrongRoom(e edge) bool {
	return slices.ContainsFunc(rooms, func(list []string) bool {
		from := slices.Index(list, e.from)
		return from >= 0 && slices.Index(list, e.to) > from
	})
}

// portable are the packages of the GPU backends that are compiled and tested everywhere,
// since they ask no driver: those that decide what is launched, above all.
var portable = []string{
	"backend/internal/gpu", "backend/cuda/internal/candidates", "backend/cuda/internal/ptx",
	"backend/opencl/internal/candidates", "backend/opencl/internal/hostfloat",
}

// wrong says why an import is not allowed, or nothing.
func wrong(e edge) string {
	from, to := group(e.from), group(e.to)
	switch {
	case from == "unknown":
		return "package " + e.from + " has no place in the rules of this test"
	case (to == "cmd" || to == "capi" || to == "bench" || to == "examples") && top(e.from) != top(e.to):
		return "nothing imports a command"
	case e.test():
		return ""
	case wrongKernels(e) != "":
		return wrongKernels(e)
	case wrongCPURoom(e) != "":
		return wrongCPURoom(e)
	case slices.Contains(portable, e.from) && group(e.to) == "device":
		return e.from + " asks no driver"
	case wrongRoom(e):
		return e.from + " comes before " + e.to
	case top(e.from) == top(e.to) && from == to:
		return ""
	case from == "reader" && to == "reader":
		return "readers do not know each other"
	case from == "device" && to == "device":
		return "a backend imports no other backend"
	case to == "gpu" && top(e.from) == "backend/cpu":
		return "the CPU is planned for in backend/cpu"
	}
	for _, a := range allowed[from] {
		if a == to {
			return ""
		}
	}
	return fmt.Sprintf("%s may import %s only", from, strings.Join(allowed[from], ", "))
}

// imports reads the imports within the module of every Go file below dir.
func imports(t *testing.T, dir string) []edge {
	var edges []edge
	walk(t, dir, func(name string) error {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to == module || strings.HasPrefix(to, module+"/") {
				edges = append(edges, edge{
					file: name,
					from: path.Dir(name),
					to:   path.Clean(strings.TrimPrefix(strings.TrimPrefix(to, module), "/")),
				})
			}
		}
		return nil
	})
	return edges
}

func TestImports(t *testing.T) {
	edges := imports(t, testenv.Root(t))
	seen := map[string]bool{}
	for _, e := range edges {
		seen[e.from+" "+e.to] = true
		if why := wrong(e); why != "" {
			t.Errorf("%s imports %s: %s", e.file, e.to, why)
		}
	}
	// The walk really reads the packages.
	require.True(t, seen["bcnn bcnn/bits"])
	require.True(t, seen["backend bcnn"])
}

// What programs are made of knows nothing of tests.
func TestNoTestingInPrograms(t *testing.T) {
	dir := testenv.Root(t)
	helpers := []string{"backend/backendtest", "bcnn/internal/placetest", "internal/answers", "internal/costtest", "internal/testenv"}
	walk(t, dir, func(name string) error {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(helpers, path.Dir(name)) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if spec.Path.Value == `"testing"` {
				t.Errorf("%s imports testing", name)
			}
		}
		return nil
	})
}

func TestWrong(t *testing.T) {
	for _, c := range []struct {
		file, to string
		ok       bool
	}{
		{"cmd/bcnn/main.go", "backend/all", true},
		{"cmd/bcnn/main.go", "models", true},
		{"cmd/bcnn/main.go", "backend/cpu", false},
		{"bitcnn.go", "backend", true},
		{"bitcnn.go", "backend/all", true},
		{"bitcnn.go", "backend/cpu", false},
		{"bitcnn.go", "bcnn/onnx", true},
		{"bitcnn.go", "vision", false},
		{"bitcnn.go", "kernels", false},
		{"models/models.go", ".", false},
		{"backend/register.go", ".", false},
		{"bcnn/lower/lower.go", ".", false},
		{"internal/files/files.go", ".", false},
		{"cmd/bcnn/main.go", ".", true},
		{"vision/classifier.go", ".", true},
		{"vision/classifier.go", "backend", false},
		{"vision/classifier.go", "backend/driver", false},
		{"vision/classifier.go", "backend/all", false},
		{"vision/classifier_test.go", "backend/all", true},
		{"vision/classifier.go", "backend/cpu", false},
		{"vision/classifier.go", "bcnn/modelfile", false},
		{"vision/classifier.go", "vehiclenet", false},
		{"vehiclenet/models.go", "backend", false},
		{"internal/dataset/folder.go", "vision", true},
		{"internal/dataset/folder.go", "internal/dataset/idx", true},
		{"internal/dataset/folder.go", "backend", false},
		{"internal/files/files.go", "internal/dataset", false},
		{"vision/classifier.go", "internal/dataset", false},
		{"cmd/bcnn/eval.go", "internal/dataset", true},
		{"cmd/bcnn/bench.go", "internal/measure", true},
		{"bench/time.go", "internal/measure", true},
		{"internal/measure/model.go", "backend", true},
		{"internal/measure/model.go", "backend/cpu", false},
		{"internal/measure/model.go", "vision", false},
		{"internal/measure/chart.go", "internal/chart", true},
		{"internal/chart/chart.go", "internal/measure", false},
		{"backend/register.go", "internal/measure", false},
		{"vehiclenet/models.go", "vision", false},
		{"vehiclenet/models.go", "models", false},
		{"models/models.go", "vehiclenet", true},
		{"models/models.go", "backend", false},
		{"vision/classifier.go", "models", false},
		{"vehiclenet/models.go", "bcnn/modelfile", true},
		{"vehiclenet/models.go", "cmd/bcnn", false},
		{"vehiclenet/models_test.go", "cmd/bcnn", false},
		{"backend/register.go", "bcnn", true},
		{"backend/register.go", "backend/driver", true},
		{"backend/driver/driver.go", "bcnn", true},
		{"backend/driver/driver.go", "backend", false},
		{"backend/register.go", "backend/cpu", false},
		{"backend/register.go", "vision", false},
		{"backend/cpu/device.go", "backend", true},
		{"backend/cpu/device.go", "backend/driver", true},
		{"backend/cpu/device.go", "backend/cpu/internal/kern", true},
		{"backend/cpu/device.go", "backend/cpu/internal/kern/sets", true},
		{"backend/cpu/device.go", "backend/cpu/internal/kern/avx2", false},
		{"backend/cpu/device.go", "backend/cpu/internal/kern/generic", false},
		{"backend/cpu/internal/kern/kern.go", "bcnn/bits", true},
		{"backend/cpu/internal/kern/kern.go", "backend/cpu/internal/kern/generic", false},
		{"backend/cpu/internal/kern/kern.go", "backend/cpu/internal/kern/sets", false},
		{"backend/cpu/internal/kern/sets/sets.go", "backend/cpu/internal/kern/avx2", true},
		{"backend/cpu/internal/kern/avx2/set.go", "backend/cpu/internal/kern", true},
		{"backend/cpu/internal/kern/avx2/set.go", "backend/cpu/internal/kern/generic", true},
		{"backend/cpu/internal/kern/avx2/set.go", "backend/cpu/internal/kern/ssse3", false},
		{"backend/cpu/internal/kern/avx2/set.go", "backend/cpu/internal/kern/sets", false},
		{"backend/cpu/internal/kern/avx512/set.go", "backend/cpu/internal/kern/avx2", true},
		{"backend/cpu/internal/kern/amx/set.go", "backend/cpu/internal/kern/avx512", true},
		{"backend/cpu/internal/kern/amx/set.go", "backend/cpu/internal/kern/avx2", false},
		{"backend/cpu/device.go", "backend/cpu/internal/conv", true},
		{"backend/cpu/internal/conv/conv.go", "backend/cpu/internal/schedule", true},
		{"backend/cpu/internal/conv/conv.go", "backend/cpu/internal/kern", true},
		{"backend/cpu/internal/conv/conv.go", "backend/cpu/internal/kern/sets", false},
		{"backend/cpu/internal/conv/conv.go", "backend/cpu/internal/pixelwise", false},
		{"backend/cpu/internal/schedule/schedule.go", "backend/cpu/internal/conv", false},
		{"backend/cpu/internal/schedule/schedule.go", "backend/cpu/internal/tiles", true},
		{"backend/cpu/internal/tiles/workers.go", "backend/cpu/internal/schedule", false},
		{"backend/cpu/internal/kern/kern.go", "backend/cpu/internal/tiles", false},
		{"backend/cpu/device.go", "backend/cuda", false},
		{"backend/cpu/device.go", "backend/all", false},
		{"backend/cpu/device.go", "bcnn/modelfile", false},
		{"backend/cpu/device_test.go", "backend/backendtest", true},
		{"backend/cuda/device.go", "kernels", true},
		{"backend/cuda/device.go", "backend/internal/gpu", true},
		{"backend/cuda/device.go", "backend/internal/other", false},
		{"backend/cpu/device.go", "backend/internal/gpu", false},
		{"backend/check.go", "backend/internal/gpu", false},
		{"backend/internal/gpu/step.go", "backend/driver", true},
		{"backend/internal/gpu/step.go", "backend", false},
		{"backend/internal/gpu/step.go", "kernels", true},
		{"backend/internal/gpu/step.go", "backend/cuda", false},
		{"backend/internal/gpu/step.go", "backend/cuda/internal/shim", false},
		{"backend/internal/gpu/step_test.go", "backend/backendtest", true},
		{"backend/cuda/internal/candidates/conv.go", "backend/internal/gpu", true},
		{"backend/cuda/internal/candidates/conv.go", "backend/cuda/internal/shim", false},
		{"backend/opencl/internal/candidates/conv.go", "backend/opencl", false},
		{"backend/all/all.go", "backend/cpu", true},
		{"backend/parity/check.go", "bcnn/ref", true},
		{"backend/parity/check.go", "backend/internal/compare", true},
		{"backend/parity/check.go", "backend/cpu", false},
		{"backend/parity/check.go", "backend/backendtest", false},
		{"backend/backendtest/run.go", "backend/parity", true},
		{"backend/cpu/device.go", "backend/internal/compare", false},
		{"cmd/bcnn/parity.go", "backend/parity", true},
		{"cmd/bcnn/parity.go", "backend/backendtest", false},
		{"backend/backendtest/published.go", "bcnn/bincnn", true},
		{"backend/backendtest/run.go", "backend/cpu", false},
		{"bcnn/lower/lower.go", "bcnn/bits", true},
		{"bcnn/lower/lower.go", "bcnn/plan", true},
		{"bcnn/plan/plan.go", "bcnn/lower", false},
		{"bcnn/network.go", "bcnn/plan", false},
		{"bcnn/onnx/onnx.go", "bcnn/lower", false},
		{"backend/cpu/compile.go", "bcnn/plan", true},
		{"backend/cpu/compile.go", "bcnn/lower", false}, // a backend decides nothing about arithmetic
		{"bcnn/lower/lower.go", "internal/f32", true},
		{"bcnn/lower/lower.go", "backend", false},
		{"bcnn/onnx/internal/build/zero.go", "bcnn/internal/values", true},
		{"bcnn/ops_weights.go", "bcnn/internal/sets", true},
		{"bcnn/internal/sets/ops.go", "bcnn", false},
		{"bcnn/internal/values/analysis.go", "bcnn", true},
		{"bcnn/internal/values/analysis.go", "bcnn/onnx/internal/build", false},
		{"bcnn/lower/lower.go", "bcnn/modelfile", false},
		{"bcnn/bits/bits.go", "bcnn", false},
		{"bcnn/onnx/load.go", "bcnn", true},
		{"bcnn/onnx/load.go", "bcnn/modelfile", false},
		{"bcnn/onnx/load.go", "backend", false},
		{"bcnn/onnx/load.go", "bcnn/onnx/internal/build", true},
		{"bcnn/onnx/internal/build/sign.go", "bcnn/onnx/internal/eval", true},
		{"bcnn/onnx/internal/eval/tensor.go", "bcnn/onnx/internal/build", false},
		{"bcnn/onnx/internal/pb/wire.go", "bcnn/onnx/internal/eval", false},
		{"bcnn/modelfile/read.go", "bcnn/onnx/internal/pb", false},
		{"bcnn/ref/run.go", "internal/f32", true},
		{"internal/f32/fma.go", "bcnn", false},
		{"bench/main.go", "backend/all", true},
		{"bench/main.go", "backend/cpu", false},
		{"capi/session.go", ".", true},
		{"capi/model.go", "bcnn/modelfile", true},
		{"capi/session.go", "backend", false},
		{"vision/classifier.go", "capi", false},
		{"examples/server/main.go", ".", true},
		{"examples/server/main.go", "vision", true},
		{"examples/server/main.go", "internal/files", false},
		{"examples/camera/main.go", "examples/server", false},
		{"examples/camera/main_test.go", "internal/testenv", true},
		{"elsewhere/x.go", "bcnn", false},
	} {
		e := edge{file: c.file, from: path.Dir(c.file), to: c.to}
		require.Equal(t, c.ok, wrong(e) == "", "%s imports %s: %q", c.file, c.to, wrong(e))
	}
}
