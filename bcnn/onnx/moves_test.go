package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// series is a model of one tensor after the other, of which the dimensions are known.
type series struct {
	m    testModel
	r    *rand.Rand
	dims map[string][]int
	last string
	step string // what the moves are of
}

// newSeries begins with an image, in a form that a Reshape gives it.
func newSeries(r *rand.Rand, form []int) *series {
	c := &series{r: r, last: "x", dims: map[string][]int{}, m: testModel{input: image(3, 2, 4), regrouped: true}}
	c.dims["x"] = []int{2, 3, 2, 4}
	c.add("Conv", "@", c.constant([]int{3, 3, 1, 1}, -1, 0.5, 1)) // behind which a Transpose says nothing of the input
	if form != nil {
		c.add("Reshape", "@", c.list(form...))
	}
	return c
}

// add applies an operator to tensors, of which @ is the last one.
func (c *series) add(opType string, with ...any) string {
	names := []string{}
	for len(with) > 0 && with[0] != "" {
		name, isName := with[0].(string)
		if !isName || strings.HasPrefix(name, "=") {
			break
		}
		names, with = append(names, strings.ReplaceAll(name, "@", c.last)), with[1:]
	}
	for i, a := range with {
		if s, ok := a.(string); ok {
			with[i] = strings.TrimPrefix(s, "=")
		}
	}
	outs := []string{fmt.Sprintf("t%d", len(c.m.nodes))}
	if opType == "Split" {
		outs = append(outs, outs[0]+"b")
	}
	c.m.nodes = append(c.m.nodes, op(opType, strings.Join(names, " "), strings.Join(outs, " "), with...))
	zeros := newArray(2, 3, 2, 4)
	tensors := c.m.tensors(zeros)
	for _, o := range outs {
		c.dims[o] = tensors[o].dims
	}
	c.last = outs[0]
	return c.last
}

func (c *series) constant(dims []int, choices ...float64) string {
	name := fmt.Sprintf("c%d", len(c.m.inits))
	t := randomTensor(c.r, name, dims, choices...)
	c.m.inits = append(c.m.inits, t)
	return name
}

func (c *series) list(values ...int) string {
	name := fmt.Sprintf("c%d", len(c.m.inits))
	t := ints(name)
	t.dims = []int{len(values)}
	for _, v := range values {
		t.values = append(t.values, float64(v))
	}
	c.m.inits = append(c.m.inits, t)
	return name
}

// each is a constant with a number for each value of an image of the last tensor.
func (c *series) each(choices ...float64) string { return c.constant(c.dims[c.last][1:], choices...) }

// A vector that a Reshape made of an image really becomes one where constants vary along it:
// what reads it then sees it as such.
func TestFlattenedThresholds(t *testing.T) {
	r := rand.New(rand.NewPCG(133, 134))
	for _, c := range []struct {
		name string
		add  func(c *series)
	}{
		{"product", func(c *series) {
			c.add("Less", c.each(1, 0), "@")
			c.add("Cast", "@", "=to", int(pb.Float))
			c.add("Einsum", "@", c.constant([]int{24, 3}, -1, 1), "=equation", "na,ak->nk")
		}},
		{"turned product", func(c *series) {
			c.add("Less", c.each(1, 0), "@")
			c.add("Cast", "@", "=to", int(pb.Float))
			c.add("Einsum", "@", c.constant([]int{3, 24}, -1, 1), "=equation", "na,ka->nk")
		}},
		{"choice of what a Transpose leaves", func(c *series) {
			c.add("Equal", "@", c.each(-1, 0, 1))
			v := c.add("Where", "@", c.constant(nil, 0.5), c.constant(nil, 0.25))
			w := c.add("Transpose", "@", "=perm", []int{0, 1})
			c.add("GreaterOrEqual", "@", c.constant(nil, 0.5))
			c.add("Where", "@", v, w)
		}},
		{"there and back", func(c *series) {
			c.add("Equal", "@", c.each(-1, 0, 1))
			c.add("Where", "@", c.each(0.5, 2), c.constant(nil, 0.25))
			c.add("Transpose", "@", "=perm", []int{1, 0})
			c.add("Transpose", "@", "=perm", []int{1, 0})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeries(r, []int{0, 24})
			c.add(s)
			s.m.output = s.last
			compare(t, r, s.m, Options{}, false)
		})
	}
}

// The softmax of a vector has the dimensions of its input, and is in their order.
func TestSoftmaxOfVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(135, 136))
	for _, dims := range [][]int{{0, 24}, {0, 24, 1}, {0, 1, 24}, {0, 1, 24, 1}} {
		for _, op := range []string{"Softmax", "LogSoftmax"} {
			t.Run(fmt.Sprint(op, dims), func(t *testing.T) {
				s := newSeries(r, dims)
				s.add("GreaterOrEqual", "@", s.each(-1, 0, 0.5))
				s.add("Where", "@", s.constant(nil, 1), s.constant(nil, -1))
				s.m.output = s.add(op, "@", "=axis", slices.Index(dims, 24))
				m := s.m
				if op == "LogSoftmax" { // of which compare takes what is in front of it
					net, _, err := Decode(t.Context(), m.encode(), Options{})
					require.NoError(t, err)
					last := net.Layers[len(net.Layers)-1]
					require.Equal(t, bcnn.Softmax{Log: true}, last.Op)
					require.Equal(t, dims[1:], last.Source.Dims)
					return
				}
				net, _ := compare(t, r, m, Options{}, false)
				require.Equal(t, bcnn.Softmax{}, net.Layers[len(net.Layers)-1].Op)
			})
		}
	}
}

// The largest values of a softmax are those of its input, if they are of the same dimension.
func TestLargestOfSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(137, 138))
	s := newSeries(r, nil)
	s.add("Softmax", "@", "=axis", 1)
	same := s.m
	same.nodes = append(slices.Clip(s.m.nodes), op("ArgMax", s.last, "i", "axis", 1), op("Cast", "i", "y", "to", int(pb.Float)))
	same.output = "y"
	compare(t, r, same, Options{}, false)
	s.add("Flatten", "@")
	s.m.output = s.add("ArgMax", "@", "=axis", 1)
	_, _, err := Decode(t.Context(), s.m.encode(), Options{})
	require.ErrorContains(t, err, "the largest values of a softmax over other dimensions")
}
