package onnx

import (
	"errors"
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

// taps are indices of two taps of two windows.
func (c *series) taps(values ...int) string {
	name := c.list(values...)
	c.m.inits[len(c.m.inits)-1].dims = []int{2, 2}
	return name
}

// each is a constant with a number for each value of an image of the last tensor.
func (c *series) each(choices ...float64) string { return c.constant(c.dims[c.last][1:], choices...) }

type link struct {
	name string
	add  func(c *series)
}

// seriesForms are dimensions that a Reshape makes of an image; nil for none.
var seriesForms = []struct {
	name string
	dims []int
}{
	{"image", nil}, {"vector", []int{0, 24}}, {"rows", []int{0, 6, 4}}, {"halves", []int{0, 3, 8}},
	{"column", []int{0, 24, 1}}, {"line", []int{0, 1, 24}}, {"parts", []int{0, 3, 2, 2, 2}},
}

// seriesSteps leave something to be done to the values.
var seriesSteps = []link{
	{"nothing", func(*series) {}},
	{"thresholds", func(c *series) {
		c.add("GreaterOrEqual", "@", c.each(-1, 0, 0.5))
		c.add("Where", "@", c.constant(nil, 1), c.constant(nil, -1))
	}},
	{"truth values", func(c *series) {
		c.add("Less", c.each(-1, 0, 0.5, 1), "@")
		c.add("Cast", "@", "=to", int(pb.Float))
	}},
	{"equal", func(c *series) {
		c.add("Equal", "@", c.each(-1, 0, 0.5))
		c.add("Where", "@", c.constant(nil, 0.25), c.constant(nil, 0.5))
	}},
	{"values", func(c *series) {
		a, b := c.each(-1, 0, 2), c.each(1, 4)
		c.add("Greater", "@", c.constant(nil, 0))
		c.add("Where", "@", a, b)
	}},
	{"two thresholds", func(c *series) {
		x := c.last
		high := c.each(1, 2)
		c.add("Greater", x, c.each(-1, 0))
		c.add("Where", "@", c.constant(nil, 1), c.constant(nil, 0))
		low := c.last
		c.add("Greater", x, high)
		c.add("Where", "@", c.constant(nil, 3), low)
	}},
	{"clip", func(c *series) { c.add("Clip", "@", c.constant(nil, -1), c.constant(nil, 1)) }},
	{"clip of each", func(c *series) { c.add("Max", "@", c.each(-1, 0, 1)) }},
	{"rounding", func(c *series) { c.add("Clip", "@", c.constant(nil, -2), c.constant(nil, 2)); c.add("Round", "@") }},
	{"half", func(c *series) {
		c.add("Clip", "@", c.constant(nil, -1), c.constant(nil, 1))
		c.add("Ceil", "@")
		c.add("Mul", "@", c.constant(nil, 0.5))
	}},
	{"sign", func(c *series) { c.add("Sign", "@") }},
	{"padding", func(c *series) { c.add("Pad", "@", c.list(0, 0, 1, 1, 0, 0, 1, 1)) }},
	{"padded signs", func(c *series) {
		c.add("Greater", "@", c.constant(nil, 0))
		c.add("Where", "@", c.constant(nil, 1), c.constant(nil, -1))
		c.add("Pad", "@", c.list(0, 0, 0, 2, 0, 0, 1, 0), c.constant(nil, 1))
	}},
	{"largest", func(c *series) {
		c.add("ArgMax", "@", "=axis", 1, "=keepdims", 0)
		c.add("Cast", "@", "=to", int(pb.Float))
	}},
}

// seriesMoves put the values elsewhere, or leave some of them out.
var seriesMoves = []link{
	{"nothing", func(*series) {}},
	{"flatten", func(c *series) { c.add("Flatten", "@") }},
	{"reshape to halves", func(c *series) { c.add("Reshape", "@", c.list(0, 2, -1)) }},
	{"reshape to a column", func(c *series) { c.add("Reshape", "@", c.list(0, -1, 1)) }},
	{"reshape to a line", func(c *series) { c.add("Reshape", "@", c.list(0, 1, -1)) }},
	{"reshape to an image", func(c *series) { c.add("Reshape", "@", c.list(0, 2, -1, 2)) }},
	{"transpose nothing", func(c *series) {
		all := []int{}
		for i := range c.dims[c.last] {
			all = append(all, i)
		}
		c.add("Transpose", "@", "=perm", all)
	}},
	{"transpose", func(c *series) {
		all := []int{0}
		for i := len(c.dims[c.last]) - 1; i > 0; i-- {
			all = append(all, i)
		}
		c.add("Transpose", "@", "=perm", all)
	}},
	{"transpose there and back", func(c *series) {
		n := len(c.dims[c.last])
		there, back := make([]int, n), make([]int, n)
		for i := range there {
			there[i] = (i + 1) % n
			back[there[i]] = i
		}
		c.add("Transpose", "@", "=perm", there)
		c.add("Transpose", "@", "=perm", back)
	}},
	{"unsqueeze", func(c *series) { c.add("Unsqueeze", "@", c.list(1)) }},
	{"unsqueeze the end", func(c *series) { c.add("Unsqueeze", "@", c.list(len(c.dims[c.last]))) }},
	{"unsqueeze and squeeze", func(c *series) { c.add("Unsqueeze", "@", c.list(2)); c.add("Squeeze", "@", c.list(2)) }},
	{"expand", func(c *series) {
		c.add("Unsqueeze", "@", c.list(2))
		c.add("Expand", "@", c.list(append([]int{1, 1, 2}, ones(len(c.dims[c.last])-3)...)...))
	}},
	{"slice", func(c *series) { c.add("Slice", "@", c.list(1), c.list(3), c.list(1)) }},
	{"slice back", func(c *series) { c.add("Slice", "@", c.list(-1), c.list(-100), c.list(1), c.list(-2)) }},
	{"slice the last", func(c *series) { c.add("Slice", "@", c.list(0), c.list(100), c.list(len(c.dims[c.last])-1), c.list(2)) }},
	{"gather", func(c *series) { c.add("Gather", "@", c.list(1, 0, 1), "=axis", 1) }},
	{"gather the last", func(c *series) { c.add("Gather", "@", c.list(0), "=axis", len(c.dims[c.last])-1) }},
	{"concat", func(c *series) { c.add("Concat", "@", "@", "=axis", 1) }},
	{"concat the last", func(c *series) { c.add("Concat", "@", "@", "=axis", len(c.dims[c.last])-1) }},
	{"concat zeros", func(c *series) {
		c.add("Concat", "@", c.constant(append([]int{2}, c.dims[c.last][1:]...), 0), "=axis", 1)
	}},
	{"split", func(c *series) { c.add("Split", "@", c.list(1, c.dims[c.last][1]-1), "=axis", 1); c.last += "b" }},
	{"tile", func(c *series) { c.add("Tile", "@", c.list(append([]int{1, 2}, ones(len(c.dims[c.last])-2)...)...)) }},
	{"pad", func(c *series) {
		n := len(c.dims[c.last])
		pads := make([]int, 2*n)
		pads[n-1], pads[2*n-1] = 1, 2
		c.add("Pad", "@", c.list(pads...))
	}},
	{"pad channels", func(c *series) {
		n := len(c.dims[c.last])
		pads := make([]int, 2*n)
		pads[1], pads[n+1] = 1, 2
		c.add("Pad", "@", c.list(pads...))
	}},
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// seriesEnds read the values.
var seriesEnds = []link{
	{"nothing", func(c *series) { c.add("Mul", "@", c.constant(nil, 1)) }},
	{"product with each", func(c *series) { c.add("Mul", "@", c.each(-1, 0.5, 2)) }},
	{"thresholds", func(c *series) {
		c.add("GreaterOrEqual", "@", c.each(-1, 0, 0.5))
		c.add("Where", "@", c.constant(nil, 1), c.constant(nil, -1))
	}},
	{"choice", func(c *series) {
		v := c.last
		c.add("Greater", "@", c.constant(nil, 0.25))
		c.add("Where", "@", v, c.each(-1, 0.5, 2))
	}},
	{"sum with itself", func(c *series) { c.add("Add", "@", "@") }},
	{"sum with the step", func(c *series) {
		c.add("Add", "@", c.step)
	}},
	{"choice of the step", func(c *series) {
		v := c.last
		c.add("GreaterOrEqual", "@", c.constant(nil, 0.5))
		c.add("Where", "@", c.step, v)
	}},
	{"concat with the step", func(c *series) { c.add("Concat", c.step, "@", "=axis", 1) }},
	{"matrix", func(c *series) {
		d := c.dims[c.last]
		c.add("MatMul", "@", c.constant([]int{d[len(d)-1], 3}, -1, 0.5, 1))
	}},
	{"signs of a matrix", func(c *series) {
		d := c.dims[c.last]
		c.add("MatMul", "@", c.constant([]int{d[len(d)-1], 3}, -1, 1))
	}},
	{"einsum", func(c *series) {
		d := c.dims[c.last]
		if len(d) > 3 {
			panic("too many dimensions")
		}
		in := "nabc"[:len(d)]
		c.add("Einsum", "@", c.constant([]int{d[1], 3}, -1, 1), "=equation", in+",ak->"+strings.ReplaceAll(in, "a", "")+"k")
	}},
	{"convolution", func(c *series) {
		d := c.dims[c.last]
		if len(d) != 4 || d[2] < 2 || d[3] < 2 {
			panic("no image")
		}
		c.add("Conv", "@", c.constant([]int{2, d[1], 2, 2}, -1, 1))
	}},
	{"pool", func(c *series) {
		d := c.dims[c.last]
		if len(d) != 4 || d[2] < 2 || d[3] < 2 {
			panic("no image")
		}
		c.add("MaxPool", "@", "=kernel_shape", []int{2, 2})
	}},
	{"sum", func(c *series) { c.add("ReduceSum", "@", c.list(1), "=keepdims", 0) }},
	{"largest", func(c *series) { c.add("ReduceMax", "@", "=axes", []int{len(c.dims[c.last]) - 1}) }},
	{"softmax", func(c *series) { c.add("Softmax", "@", "=axis", 1) }},
	{"log of softmax of the last", func(c *series) { c.add("LogSoftmax", "@", "=axis", len(c.dims[c.last])-1) }},
	{"where the largest is", func(c *series) {
		c.add("ArgMax", "@", "=axis", 1, "=keepdims", 0)
		c.add("Cast", "@", "=to", int(pb.Float))
	}},
}

// model joins links; ok is false where they do not fit.
func (c *series) model(step, move, end link) (m testModel, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // an interpreter that knows no such tensors, or has no such operator
		}
	}()
	step.add(c)
	c.step = c.last
	move.add(c)
	end.add(c)
	c.m.output = c.last
	return c.m, true
}

// What moves values takes those on which something is pending: thresholds and values of
// each element, clips, roundings, padding. What cannot be represented is an obstacle, and no
// panic.
func TestMovesOfWhatIsPending(t *testing.T) {
	r := rand.New(rand.NewPCG(131, 132))
	every := 8
	if testing.Short() {
		every = 64
	}
	refused, compared := 0, 0
	for _, form := range seriesForms {
		for _, step := range seriesSteps {
			for _, move := range seriesMoves {
				for _, end := range seriesEnds {
					if r.IntN(every) > 0 {
						continue
					}
					m, ok := newSeries(r, form.dims).model(step, move, end)
					if !ok {
						continue
					}
					t.Run(strings.Join([]string{form.name, step.name, move.name, end.name}, ", "), func(t *testing.T) {
						net, _, err := Decode(t.Context(), m.encode(), Options{})
						var obstacles *bcnn.ObstaclesError
						if errors.As(err, &obstacles) || err != nil && strings.Contains(err.Error(), "softmax, which must be the last layer") {
							refused++
							return
						}
						require.NoError(t, err)
						compared++
						compare(t, r, inside(net, m), Options{}, false)
					})
				}
			}
		}
	}
	require.Greater(t, compared, refused)
}

// inside returns the model as compare has it where a softmax has become other layers: what it
// gives is the network's output.
func inside(net *bcnn.Network, m testModel) testModel {
	last := &m.nodes[len(m.nodes)-1]
	if _, logits := net.Layers[len(net.Layers)-1].Op.(bcnn.Softmax); logits || !strings.HasSuffix(last.op, "Softmax") {
		return m
	}
	last.attrs["oracle.inside"] = 1
	m.rounds = true
	return m
}

// Images are turned, as tf2onnx leaves them, while a rounding or a step is pending on them: between
// Round and its limits, inside of a straight-through sum, and for several readers, which share a layer.
func TestTurnedWhilePending(t *testing.T) {
	r := rand.New(rand.NewPCG(551, 552))
	last, first := []int{0, 2, 3, 1}, []int{0, 3, 1, 2}
	conv := op("Conv", "s w", "y", "pads", []int{1, 1, 1, 1})
	for _, c := range []struct {
		name  string
		nodes []testNode // from x, an image, to s, one of few levels
		want  map[string]int
	}{
		{"between Round and Clip", []testNode{op("Mul", "x two", "a"), op("Transpose", "a", "b", "perm", last), op("Round", "b", "c"), op("Transpose", "c", "d", "perm", first), op("Clip", "d minus two", "e"), op("Mul", "e half", "s")},
			map[string]int{"quantize": 1, "clip": 0}},
		{"a straight-through Round", []testNode{op("Transpose", "x", "a", "perm", last), op("Round", "a", "b"), op("Neg", "a", "c"), op("Add", "c b", "d"), op("Add", "a d", "e"), op("Transpose", "e", "f", "perm", first), op("Clip", "f minus two", "s")},
			map[string]int{"quantize": 1, "add": 0}},
		{"twice", []testNode{op("Round", "x", "a"), op("Transpose", "a", "b", "perm", last), op("Transpose", "b", "c", "perm", []int{0, 2, 1, 3}), op("Clip", "c minus one", "d"), op("Transpose", "d", "s", "perm", []int{0, 3, 2, 1})},
			map[string]int{"quantize": 1}},
		{"truth values", []testNode{op("Greater", "x half", "a"), op("Transpose", "a", "b", "perm", last), op("Cast", "b", "c", "to", 1), op("Mul", "c two", "d"), op("Sub", "d one", "e"), op("Transpose", "e", "s", "perm", first)},
			map[string]int{"sign": 1, "transpose": 0}},
		{"several readers", []testNode{op("Sign", "x", "a"), op("Transpose", "a", "b", "perm", last), op("Transpose", "a", "c", "perm", []int{0, 2, 3, 1}), op("Add", "b c", "d"), op("Mul", "d half", "e"), op("Transpose", "e", "s", "perm", first)},
			map[string]int{"quantize": 1, "sign": 0}},
		{"levels of each channel", []testNode{op("Greater", "x high", "a"), op("Where", "a one minus", "b"), op("Transpose", "b", "c", "perm", last), op("Transpose", "c", "s", "perm", first)},
			map[string]int{"sign": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{input: image(3, 4, 3), output: "y", nodes: append(slices.Clip(c.nodes), conv), inits: []testTensor{
				randomTensor(r, "w", []int{2, 3, 3, 3}, -1, 1), floats("high", []int{3, 1, 1}, 0.5, 0, -0.5),
				number("half", 0.5), number("one", 1), number("minus", -1), number("two", 2)}}
			net, _ := compare(t, r, m, Options{}, false)
			have := map[string]int{}
			for _, l := range net.Layers {
				have[l.Op.Kind()]++
			}
			for kind, n := range c.want {
				require.Equal(t, n, have[kind], "%s in %v", kind, have)
			}
			layers := summarize(t, net)
			require.Empty(t, layers[len(layers)-1].WhyFloat)
		})
	}
}
