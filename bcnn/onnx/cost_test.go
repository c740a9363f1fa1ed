package onnx

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/steps"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// The cost model: an import takes time and memory in proportion to the bytes
// that it reads. It is held in two ways. What is charged to the budget cannot
// exceed base and perByte; and what is done must be charged, which is shown here
// by counts that know nothing of the budget: the bytes that are allocated, and
// where the code is instrumented (see TestSteps) the steps that it takes.

// cost is what an import took.
type cost struct {
	bytes            int64 // of the files
	used             int64 // of the budget
	allocated, steps int64
	looks            int // at the context
	err              error
}

// watched is a context that ends when it has been looked at so often, and
// remembers the most steps between two looks.
type watched struct {
	context.Context
	looks, end int
	last, most int64
}

func (w *watched) Err() error {
	w.looks++
	w.most = max(w.most, steps.N-w.last)
	w.last = steps.N
	if w.looks > w.end {
		return context.Canceled
	}
	return nil
}

// importCost imports a model and checks that what it takes is charged. The context
// ends when it has been looked at so often.
func importCost(t *testing.T, h hostile, looks int) cost {
	t.Helper()
	w := &watched{Context: t.Context(), end: looks, last: steps.N}
	s := &source{open: func(string) (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(h.data)), int64(len(h.data)), nil
	}}
	require.NoError(t, s.begin(w, bcnn.Limits{}))
	require.NoError(t, s.add(int64(len(h.model))))
	c := cost{bytes: int64(len(h.model) + len(h.data))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	executed := steps.N
	im, err := s.translate(h.model, Options{SignOfZero: bcnn.ZeroIsPlus})
	c.steps = steps.N - executed
	runtime.ReadMemStats(&after)
	c.allocated = int64(after.TotalAlloc - before.TotalAlloc)
	c.used, c.looks, c.err = s.budget.Used(), w.looks, err
	if err == nil {
		require.NotEmpty(t, im.build.Net.Layers)
		c.err = im.build.Net.Check()
	}
	const attempts = 3 // at most, see inputLayouts
	require.LessOrEqual(t, c.used, attempts*(base+perByte*c.bytes))
	require.LessOrEqual(t, c.allocated, c.used+1<<20, "allocations are charged: %+v", c)
	require.LessOrEqual(t, c.steps, 3*c.used+1<<14, "steps are charged: %+v", c)
	w.Err()
	require.LessOrEqual(t, w.most, int64(16<<20), "an interrupt is seen soon: %+v", c)
	return c
}

// TestCost imports every kind of model in three sizes: what is done is charged,
// and what is charged does not grow faster than the file.
func TestCost(t *testing.T) {
	sizes := []int{1, 10, 100}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, k := range slices.Concat(kinds(), rewriteKinds(), foldKinds()) {
		t.Run(k.name, func(t *testing.T) {
			var c [3]cost
			for i, times := range sizes {
				c[i] = importCost(t, k.make(times*k.n), math.MaxInt)
				end, _, _ := strings.Cut(fmt.Sprint(c[i].err), "\n")
				t.Logf("%d bytes, %d units, %d bytes allocated, %d steps: %s", c[i].bytes, c[i].used, c[i].allocated, c[i].steps, end)
			}
			if testing.Short() {
				return
			}
			last := c[2].err
			switch k.ends {
			case "":
				require.NoError(t, last)
			case exceeds:
				require.ErrorIs(t, last, budget.ErrExceeded)
			default:
				require.ErrorContains(t, last, k.ends)
				require.NotErrorIs(t, last, budget.ErrExceeded)
			}
			if k.ends == exceeds {
				return // the bound is all there is to hold
			}
			for _, count := range []func(cost) int64{
				func(c cost) int64 { return c.used },
				func(c cost) int64 { return c.allocated },
				func(c cost) int64 { return c.steps },
			} {
				// Ten times the size, and as much for slices and maps, which grow in
				// steps. What is quadratic takes a hundred times as much.
				first, second := count(c[1])-count(c[0]), count(c[2])-count(c[1])
				require.LessOrEqual(t, second, 20*max(first, 0)+1<<17, "%+v", c)
			}
		})
	}
}

// TestInterrupt ends the context at different places of every import that looks
// at it more than once.
func TestInterrupt(t *testing.T) {
	for _, k := range slices.Concat(kinds(), rewriteKinds(), foldKinds()) {
		h := k.make(10 * k.n)
		c := importCost(t, h, math.MaxInt)
		for _, looks := range []int{0, 1, c.looks / 2, c.looks - 1} {
			if looks < c.looks {
				c := importCost(t, h, looks)
				require.ErrorIs(t, c.err, context.Canceled, "%s after %d looks", k.name, looks)
				require.LessOrEqual(t, c.looks, looks+1, "%s: the first error is final", k.name)
			}
		}
	}
}

// TestSteps runs TestCost again on copies of the packages that count their steps.
func TestSteps(t *testing.T) {
	if steps.N > 0 {
		return // this is the run on the copies
	}
	testenv.Long(t)
	if _, err := exec.LookPath("go"); err != nil {
		testenv.Absent(t, "go", err)
	}
	dir := t.TempDir()
	run := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
	}
	run("run", "../../internal/steps/instrument", "-o", dir, "..", "../bits", "./...")
	run("test", "-count=1", "-overlay", filepath.Join(dir, "overlay.json"), "-run", "^TestCost$", ".")
}

// spent is what the import of a model takes from the budget.
func spent(t *testing.T, m testModel) int64 {
	t.Helper()
	c := importCost(t, hostile{model: m.encode()}, math.MaxInt)
	require.NoError(t, c.err)
	return c.used
}

// Work whose length the file decides is charged where it is done, beside the memory.
func TestChargedWork(t *testing.T) {
	// The numbers of a batch norm are put in the order of channels in memory: four lists, each of
	// which looks at the parts of a dimension for each channel.
	const c, h, w = 4, 32, 32
	with := func(input testInput, last testNode, before ...testNode) int64 {
		return spent(t, testModel{input: input, nodes: append(before, last), inits: []testTensor{filled("v", []int{c * h * w}, 1)}, output: "y"})
	}
	vector, norm, relu := testInput{"x", pb.Float, []any{1, c * h * w}}, op("BatchNormalization", "a v v v v", "y"), op("Relu", "a", "y")
	inOrder := with(vector, norm, op("Identity", "x", "a")) - with(vector, relu, op("Identity", "x", "a"))
	mixed := with(image(c, h, w), norm, op("Flatten", "x", "a")) - with(image(c, h, w), relu, op("Flatten", "x", "a"))
	require.GreaterOrEqual(t, mixed-inOrder, int64(4*(4+1)*c*h*w), "4 bytes and a step for each")

	// What a node in a branch reads is listed.
	const names = 1000
	list := op("Sum", strings.Repeat("x ", names), "s")
	m := testModel{input: testInput{"x", pb.Float, []any{1, 3}}, nodes: []testNode{op("If", "c", "y", "then_branch", testModel{nodes: []testNode{list}, output: "s"})}, output: "y"}
	s := &source{}
	require.NoError(t, s.begin(t.Context(), bcnn.Limits{}))
	model, err := pb.Decode(m.encode(), s.budget)
	require.NoError(t, err)
	im := newImporter(model, Options{}, s)
	_, err = model.Graph.Nodes[0].Graph("then_branch", s.budget) // which is read once
	require.NoError(t, err)
	before := s.budget.Used()
	read, err := im.reads(model.Graph.Nodes[0])
	require.NoError(t, err)
	require.Len(t, read, names+2)
	require.GreaterOrEqual(t, s.budget.Used()-before, int64(nameUnits*names))

	// So is the name of a tensor that is described.
	before = s.budget.Used()
	_, err = im.source(strings.Repeat("x", names), bcnn.Shape{H: 1, W: 1, C: 3}, view.Vector(3))
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.budget.Used()-before, int64(sourceUnits+names))
}
