package onnx

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// A hostile file: the model, and the file "data" beside it.
type hostile struct {
	model, data []byte
}

const attempts = 3 // at most, see inputLayouts

// loading is what is judged of the import of models.
var loading = costtest.Format[hostile]{
	Base: attempts * base, PerByte: attempts * perByte, Steps: 2.5, Soon: 16 << 20, Draw: grow, Read: importFiles, Kinds: kinds(),
}

func importFiles(t testing.TB, ctx context.Context, h hostile) (size, used int64, err error) {
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
	return int64(len(h.model) + len(h.data)), s.budget.Used(), err
}

// TestCost imports every kind of model.
func TestCost(t *testing.T) { loading.Test(t) }

// TestInterrupt ends the context at different places of imports.
func TestInterrupt(t *testing.T) { loading.Interrupt(t) }

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading.Units(t) }

// FuzzCost builds graphs by structure, as a program of bytes says.
func FuzzCost(f *testing.F) {
	for _, seed := range []int{724, 1014} { // which make huge lists of positions, and of what a Resize samples
		f.Add(costtest.Program(seed))
	}
	loading.Fuzz(f, 500)
}

// spent is what the import of a model takes from the budget.
func spent(t *testing.T, m testModel) int64 {
	t.Helper()
	c := loading.Judge(t, hostile{model: m.encode()})
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
