package onnx

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/view"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// importCost imports a model and checks that what it takes is charged. The context ends when it has
// been looked at so often.
func importCost(t *testing.T, h hostile, looks int) costtest.Cost {
	t.Helper()
	c := costtest.Measure(t, int64(len(h.model)+len(h.data)), looks, 16<<20, func(ctx context.Context) (int64, error) {
		s := &source{open: func(string) (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(h.data)), int64(len(h.data)), nil
		}}
		require.NoError(t, s.begin(ctx, bcnn.Limits{}))
		require.NoError(t, s.add(int64(len(h.model))))
		im, err := s.translate(h.model, Options{SignOfZero: bcnn.ZeroIsPlus})
		if err == nil {
			require.NotEmpty(t, im.build.Net.Layers)
			err = im.build.Net.Check()
		}
		require.NotErrorIs(t, err, try.ErrPanic)
		return s.budget.Used(), err
	})
	const attempts = 3 // at most, see inputLayouts
	require.LessOrEqual(t, c.Used, attempts*(base+perByte*c.Bytes))
	return c
}

// TestCost imports every kind of model in three sizes: what is done is charged,
// and what is charged does not grow faster than the file.
func TestCost(t *testing.T) {
	for _, k := range slices.Concat(kinds(), rewriteKinds(), foldKinds()) {
		t.Run(k.name, func(t *testing.T) {
			var c []costtest.Cost
			for _, times := range costtest.Sizes() {
				c = append(c, importCost(t, k.make(times*k.n), costtest.Ever))
				t.Log(c[len(c)-1])
			}
			if testing.Short() {
				return
			}
			last := c[2].Err
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
			costtest.RequireLinear(t, c)
		})
	}
}

// TestInterrupt ends the context at different places of every import that looks
// at it more than once.
func TestInterrupt(t *testing.T) {
	times := 10
	if testing.Short() {
		times = 1
	}
	for _, k := range slices.Concat(kinds(), rewriteKinds(), foldKinds()) {
		h := k.make(times * k.n)
		c := importCost(t, h, costtest.Ever)
		for _, looks := range []int{0, 1, c.Looks / 2, c.Looks - 1} {
			if looks < c.Looks {
				c := importCost(t, h, looks)
				require.ErrorIs(t, c.Err, context.Canceled, "%s after %d looks", k.name, looks)
				require.LessOrEqual(t, c.Looks, looks+1, "%s: the first error is final", k.name)
			}
		}
	}
}

// TestSteps counts the steps of TestCost.
func TestSteps(t *testing.T) { costtest.Instrumented(t, "^TestCost$") }

// spent is what the import of a model takes from the budget.
func spent(t *testing.T, m testModel) int64 {
	t.Helper()
	c := importCost(t, hostile{model: m.encode()}, costtest.Ever)
	require.NoError(t, c.Err)
	return c.Used
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
