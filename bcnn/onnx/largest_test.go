package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// position is ArgMax and ArgMin along any axis.
func (n testNode) position(x array) array {
	axis := (n.int("axis", 0) + len(x.dims)) % len(x.dims)
	dims := slices.Clone(x.dims)
	dims[axis] = 1
	out := newArray(dims...)
	each(dims, func(index []int) {
		at, best := slices.Clone(index), 0
		value := func(p int) float64 {
			at[axis] = p
			if n.op == "ArgMin" {
				return -x.at(at...)
			}
			return x.at(at...)
		}
		for p := range x.dims[axis] {
			if v, most := value(p), value(best); v > most || v == most && n.int("select_last_index", 0) != 0 {
				best = p
			}
		}
		out.v[out.place(index)] = float64(best)
	})
	if n.int("keepdims", 1) == 0 {
		out.dims = slices.Delete(out.dims, axis, axis+1)
	}
	return out
}

// The largest and the smallest along every dimension, the first and the last of equal ones.
func TestPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(97, 98))
	for _, opType := range []string{"ArgMax", "ArgMin"} {
		for axis := -3; axis < 4; axis++ {
			for keep := range 2 {
				for last := range 2 {
					if axis == 0 {
						continue
					}
					name := fmt.Sprint(opType, axis, keep, last)
					find := func(x string, axis int) []testNode {
						return []testNode{op(opType, x, "p", "axis", axis, "keepdims", keep, "select_last_index", last), op("Cast", "p", "f", "to", int(pb.Float)), op("Mul", "f half", "y")}
					}
					m := testModel{input: image(3, 4, 5), output: "y", nodes: append([]testNode{op("Conv", "x w", "a")}, find("a", axis)...), inits: []testTensor{
						randomTensor(r, "w", []int{4, 3, 1, 1}, -1, 1), number("half", 0.5), ints("flat", 0, -1), ints("lines", 0, 4, -1)}}
					t.Run(name, func(t *testing.T) { compare(t, r, m, Options{}, false) })
					if axis < 1 || axis > 2 {
						continue
					}
					shape := []string{"flat", "lines"}[axis-1] // all values, or those of each channel
					m.nodes = append([]testNode{op("Conv", "x w", "a"), op("Reshape", "a "+shape, "b")}, find("b", axis)...)
					t.Run(name+" "+shape, func(t *testing.T) { compare(t, r, m, Options{}, false) })
				}
			}
		}
	}
}

// Outputs of truth values and of integers that are made of comparisons are whole numbers.
func TestTruthOutputs(t *testing.T) {
	r := rand.New(rand.NewPCG(99, 100))
	for _, c := range []struct {
		name  string
		nodes []testNode
		form  bcnn.SourceType
	}{
		{"a comparison", []testNode{op("Greater", "a zero", "y")}, bcnn.SourceUint8},
		{"of two", []testNode{op("Greater", "a zero", "b"), op("Less", "x zero", "c"), op("And", "b c", "y")}, bcnn.SourceUint8},
		{"a window", []testNode{op("Greater", "a zero", "b"), op("LessOrEqual", "a two", "c"), op("And", "b c", "d"), op("Not", "d", "y")}, bcnn.SourceUint8},
		{"as an integer", []testNode{op("Greater", "a zero", "b"), op("Cast", "b", "y", "to", int(pb.Int64))}, bcnn.SourceInt64},
		{"counts", []testNode{op("Greater", "a zero", "b"), op("LessOrEqual", "a two", "c"), op("Cast", "b", "d", "to", int(pb.Int32)), op("Cast", "c", "e", "to", int(pb.Int32)), op("Add", "d e", "y")}, bcnn.SourceInt32},
		{"a class", []testNode{op("ArgMax", "a", "b", "axis", 1), op("Equal", "b one", "y")}, bcnn.SourceUint8},
		{"classes as ones", []testNode{op("ArgMax", "a", "b", "axis", 1), op("Equal", "b all", "c"), op("Cast", "c", "y", "to", int(pb.Int64))}, bcnn.SourceInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 5), output: "y", nodes: append([]testNode{op("Conv", "x w", "a")}, c.nodes...), inits: []testTensor{
				randomTensor(r, "w", []int{3, 3, 1, 1}, -1, 1), number("zero", 0), number("two", 2), {name: "one", typ: pb.Int64, dims: []int{}, values: []float64{1}},
				{name: "all", typ: pb.Int64, dims: []int{3, 1, 1}, values: []float64{0, 1, 2}}}}
			net, _, err := Decode(t.Context(), m.encode(), Options{})
			require.NoError(t, err)
			plan, err := lower.Network(t.Context(), net, lower.Options{})
			require.NoError(t, err)
			a, x := batchOf(r, m, net.Inputs[0], false)
			want := m.tensors(a)["y"]
			got, err := ref.Run(t.Context(), plan, x, nil)
			require.NoError(t, err)
			out := newArray(got.N, got.Shape.H, got.Shape.W, got.Shape.C)
			for i, v := range got.F32 {
				out.v[i] = float64(v)
			}
			require.Equal(t, want.v, transpose(out, []int{0, 3, 1, 2}).v)
			require.Equal(t, c.form, net.Layers[len(net.Layers)-1].Source.Type)
		})
	}
	// Integers that float32 does not have are no output.
	m := testModel{input: image(3, 4, 5), output: "y", nodes: []testNode{op("Greater", "x zero", "a"), op("Where", "a large one", "y")}, inits: []testTensor{
		number("zero", 0), {name: "large", typ: pb.Int64, dims: []int{}, values: []float64{1<<24 + 1}}, {name: "one", typ: pb.Int64, dims: []int{}, values: []float64{1}}}}
	_, _, err := Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, "INT64")
	// Nor are they compared with numbers of channels.
	m = testModel{input: image(3, 4, 5), output: "y", nodes: []testNode{op("ArgMax", "x", "a", "axis", 1), op("Equal", "a large", "y")}, inits: m.inits}
	_, _, err = Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, "only with integers up to 2²⁴")
}
