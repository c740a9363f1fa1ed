package tflite

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// folded adds a constant to zeros, channel by channel, so that the output is its numbers.
func folded(n int32, constant func(g *testGraph) int32) *testGraph {
	g := newGraph(1, 1, 1, n)
	k := constant(g)
	k = g.add("RESHAPE", nil, []int32{n}, k)
	g.outputs[0] = g.add("ADD", nil, []int32{1, 1, 1, n}, 0, k)
	return g
}

// words adds packed bits.
func (g *testGraph) words(dims []int32, values ...uint32) int32 {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, v)
	}
	return g.tensor(testTensor{name: "w", typ: schema.Int32, dims: dims, data: data})
}

// What converters leave to be computed of constants.
func TestConstants(t *testing.T) {
	six := of(1, 2, 3, 4, 5, 6)
	twelve := of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
	two := func(name string, d0 []int32, v0 []float32, d1 []int32, v1 []float32, out ...int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 { return g.add(name, nil, out, g.floats(d0, v0...), g.floats(d1, v1...)) }
	}
	one := func(name string, values ...float32) func(g *testGraph) int32 {
		n := int32(len(values))
		return func(g *testGraph) int32 { return g.add(name, nil, []int32{n}, g.floats([]int32{n}, values...)) }
	}
	mean := func(dims []int32, values []float32, keep uint8, axes ...int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 {
			return g.add("MEAN", map[int]any{0: keep}, nil, g.floats(dims, values...), g.ints(axes...))
		}
	}
	turn := func(dims []int32, values []float32, perm ...int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 {
			return g.add("TRANSPOSE", nil, nil, g.floats(dims, values...), g.ints(perm...))
		}
	}
	for name, c := range map[string]struct {
		of   func(g *testGraph) int32
		want []float32
	}{
		"ABS":                  {one("ABS", -1.5, 0, 2), of(1.5, 0, 2)},
		"NEG":                  {one("NEG", -1.5, 0, 2), of(1.5, 0, -2)},
		"DEQUANTIZE":           {one("DEQUANTIZE", -1.5, 0.25), of(-1.5, 0.25)},
		"RELU":                 {one("RELU", -1.5, 0.5, 70), of(0, 0.5, 70)},
		"RELU6":                {one("RELU6", -1.5, 0.5, 5.5, 70), of(0, 0.5, 5.5, 6)},
		"RELU_N1_TO_1":         {one("RELU_N1_TO_1", -1.5, -0.5, 0.5, 2), of(-1, -0.5, 0.5, 1)},
		"ADD":                  {two("ADD", []int32{2, 3}, six, []int32{2, 3}, of(6, 4, 2, 0, -2, -4), 2, 3), of(7, 6, 5, 4, 3, 2)},
		"SUB":                  {two("SUB", []int32{2, 3}, six, []int32{3}, of(10, 20, 30), 2, 3), of(-9, -18, -27, -6, -15, -24)},
		"SUB of more":          {two("SUB", []int32{3}, of(10, 20, 30), []int32{2, 3}, six, 2, 3), of(9, 18, 27, 6, 15, 24)},
		"MUL of both":          {two("MUL", []int32{2, 1}, of(2, 3), []int32{1, 3}, of(1, 10, 100), 2, 3), of(2, 20, 200, 3, 30, 300)},
		"MUL of rows":          {two("MUL", []int32{2, 3}, six, []int32{2, 1}, of(1, -1), 2, 3), of(1, 2, 3, -4, -5, -6)},
		"MUL in the middle":    {two("MUL", []int32{2, 1, 2}, of(1, 2, 3, 4), []int32{2, 1}, of(1, 10), 2, 2, 2), of(1, 2, 10, 20, 3, 4, 30, 40)},
		"DIV by one":           {two("DIV", []int32{2, 3}, six, []int32{1}, of(2), 2, 3), of(0.5, 1, 1.5, 2, 2.5, 3)},
		"DIV by a number":      {two("DIV", []int32{3}, of(1, 2, 3), nil, of(4), 3), of(0.25, 0.5, 0.75)},
		"MAXIMUM":              {two("MAXIMUM", []int32{3}, of(-1, 2, 3), []int32{3}, of(0, 1, 4), 3), of(0, 2, 4)},
		"MINIMUM":              {two("MINIMUM", []int32{3}, of(-1, 2, 3), []int32{3}, of(0, 1, 4), 3), of(-1, 1, 3)},
		"MEAN of rows":         {mean([]int32{2, 3}, six, 1, 0), of(2.5, 3.5, 4.5)},
		"MEAN of columns":      {mean([]int32{2, 3}, six, 0, -1), of(2, 5)},
		"MEAN of the middle":   {mean([]int32{2, 3, 2}, twelve, 1, 1), of(2, 3, 8, (7+9+12)/3.0)},
		"MEAN of the ends":     {mean([]int32{2, 3, 2}, twelve, 0, 0, -1), of(3.5, 5.5, 31/4.0)},
		"MEAN of all":          {mean([]int32{2, 3}, six, 1, 0, 1), of(3.5)},
		"MEAN twice":           {mean([]int32{2, 3}, six, 1, 1, -1), of(2, 5)},
		"TRANSPOSE":            {turn([]int32{2, 3}, six, 1, 0), of(1, 4, 2, 5, 3, 6)},
		"TRANSPOSE to the end": {turn([]int32{2, 3, 2}, twelve, 1, 2, 0), of(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 12)},
		"TRANSPOSE of nothing": {turn([]int32{2, 3}, six, 0, 1), six},
		"SQUEEZE": {func(g *testGraph) int32 {
			return g.add("SQUEEZE", map[int]any{0: []int32{1}}, []int32{2, 3}, g.floats([]int32{2, 1, 3}, six...))
		}, six},
		"EXPAND_DIMS": {func(g *testGraph) int32 {
			return g.add("EXPAND_DIMS", nil, []int32{1, 6}, g.floats([]int32{6}, six...), g.ints(0))
		}, six},
		"signs": {func(g *testGraph) int32 {
			q := g.add("LceQuantize", nil, []int32{5}, g.floats([]int32{5}, -2, 0, 0.5, float32(math.Copysign(0, -1)), -1e-30))
			return g.add("LceDequantize", nil, []int32{5}, q)
		}, of(-1, 1, 1, 1, -1)},
		"a dimension kept": {func(g *testGraph) int32 { // so that it repeats along rows
			m := g.add("MEAN", map[int]any{0: uint8(1)}, nil, g.floats([]int32{2, 3}, six...), g.ints(1))
			return g.add("ADD", nil, nil, m, g.floats([]int32{2, 3}, six...))
		}, of(3, 4, 5, 9, 10, 11)},
		"a dimension gone": {func(g *testGraph) int32 { // so that it repeats along columns
			m := g.add("MEAN", map[int]any{0: uint8(0)}, nil, g.floats([]int32{2, 2}, 1, 3, 5, 7), g.ints(1))
			return g.add("ADD", nil, nil, m, g.floats([]int32{2, 2}, 10, 20, 30, 40))
		}, of(12, 26, 32, 46)},
		"a transposed one": {func(g *testGraph) int32 { // of other dimensions
			m := g.add("TRANSPOSE", nil, nil, g.floats([]int32{1, 3}, 1, 2, 3), g.ints(1, 0))
			return g.add("ADD", nil, nil, m, g.floats([]int32{1, 2}, 10, 20))
		}, of(11, 21, 12, 22, 13, 23)},
	} {
		t.Run(name, func(t *testing.T) {
			_, y := runGraph(t, folded(int32(len(c.want)), c.of), make([]float32, len(c.want))...)
			require.Equal(t, c.want, y)
		})
	}
}

// Words of bits, of which the last of each pixel need not be full: bit i of word w is
// channel 32·w + i, and 1 stands for −1.
func TestPackedConstants(t *testing.T) {
	list := []uint32{0x80000001, 0x2, 0xffff0000, 0xff, 0, 0xaa}
	g := folded(3*40, func(g *testGraph) int32 {
		return g.add("LceDequantize", nil, []int32{3, 40}, g.words([]int32{3, 2}, list...))
	})
	_, y := runGraph(t, g, make([]float32, 3*40)...)
	for i, v := range y {
		row, c := i/40, i%40
		require.Equal(t, 1-2*float32(list[2*row+c/32]>>(c%32)&1), v, "row %d channel %d", row, c)
	}
}

// Operators on constants that contradict themselves, or have what is not computed.
func TestHostileConstants(t *testing.T) {
	three := func(g *testGraph) int32 { return g.floats([]int32{3}, 1, 2, 3) }
	binary := func(name string, options map[int]any, inputs ...func(g *testGraph) int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 {
			var list []int32
			for _, f := range inputs {
				list = append(list, f(g))
			}
			return g.add(name, options, []int32{3}, list...)
		}
	}
	unpack := func(dims, words []int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 {
			n := 1
			for _, d := range words {
				n *= int(d)
			}
			return g.add("LceDequantize", nil, dims, g.words(words, make([]uint32, n)...))
		}
	}
	of23 := func(g *testGraph) int32 { return g.floats([]int32{2, 3}, 1, 2, 3, 4, 5, 6) }
	ints := func(list ...int32) func(g *testGraph) int32 {
		return func(g *testGraph) int32 { return g.ints(list...) }
	}
	relu := map[int]any{0: uint8(1)}
	for name, c := range map[string]struct {
		of   func(g *testGraph) int32
		want string
	}{
		"an activation":           {binary("MUL", relu, three, three), "(MUL, index 0): option fused_activation_function = 1 is not supported here, only 0"},
		"an option":               {binary("RELU", relu, three), "it has options (field number 0), but the operator has none"},
		"one input":               {binary("ADD", nil, three), "it has 1 inputs, want 2"},
		"three inputs":            {binary("ADD", nil, three, three, three), "it has 3 inputs, want 2"},
		"unlike dimensions":       {binary("ADD", nil, three, func(g *testGraph) int32 { return g.floats([]int32{2}, 1, 2) }), "constants of shapes [3] and [2] cannot be combined"},
		"integers":                {binary("ADD", nil, three, func(g *testGraph) int32 { return g.ints(1) }), "constants of INT32 are not supported here"},
		"an unknown operator":     {binary("COS", nil, three), "(COS, index 0): this operator is not supported"},
		"another size":            {func(g *testGraph) int32 { return g.add("RESHAPE", nil, []int32{2, 2}, three(g)) }, "3 values cannot be reshaped to [2 2]"},
		"a short permutation":     {binary("TRANSPOSE", nil, of23, ints(1)), "a permutation of 1 dimensions for an input of 2 dimensions"},
		"a permutation of -1":     {binary("TRANSPOSE", nil, of23, ints(-1, 0)), "the permutation [-1 0] must have each dimension once"},
		"a permutation beyond":    {binary("TRANSPOSE", nil, of23, ints(0, 2)), "the permutation [0 2] must have each dimension once"},
		"a permutation twice":     {binary("TRANSPOSE", nil, of23, ints(1, 1)), "the permutation [1 1] must have each dimension once"},
		"a mean beyond":           {binary("MEAN", nil, of23, ints(2)), "there is no dimension 2, its input has 2 dimensions"},
		"a mean of -3":            {binary("MEAN", nil, of23, ints(-3)), "there is no dimension -1, its input has 2 dimensions"},
		"words as what is none":   {unpack(nil, nil), "packed words of shape [] do not hold values of shape []"},
		"words of more":           {unpack([]int32{2, 40}, []int32{2}), "packed words of shape [2] do not hold values of shape [2 40]"},
		"words of fewer":          {unpack([]int32{40}, []int32{2, 2}), "packed words of shape [2 2] do not hold values of shape [40]"},
		"words of other rows":     {unpack([]int32{2, 40}, []int32{3, 2}), "packed words of shape [3 2] do not hold values of shape [2 40]"},
		"words of other channels": {unpack([]int32{2, 65}, []int32{2, 2}), "packed words of shape [2 2] do not hold values of shape [2 65]"},
		"bits as numbers": {func(g *testGraph) int32 {
			return g.add("NEG", nil, []int32{3}, g.add("LceQuantize", nil, []int32{3}, three(g)))
		}, "a constant of packed bits is not supported here"},
		"computed integers": {func(g *testGraph) int32 {
			return g.add("TRANSPOSE", nil, []int32{2, 3}, of23(g), g.add("NEG", nil, []int32{2}, g.floats([]int32{2}, 0, -1)))
		}, "integers must be stored in the file, not computed from other constants"},
		"a computed filter of bits": {func(g *testGraph) int32 {
			g.tensors[0].typ = schema.Int32
			filter := g.add("LceQuantize", nil, []int32{1, 1, 1, 1}, g.floats([]int32{1, 1, 1, 1}, 1))
			y := g.add("LceBconv2d", nil, nil, 0, filter, g.floats([]int32{1}, 1), g.floats([]int32{1}, 1), -1)
			g.operators[1].custom = bconvOptions(96, 1)
			return y
		}, "packed bits must be stored in the file here, not computed from other constants"},
		"too many values": {func(g *testGraph) int32 {
			n := int32(1 << 15)
			column, row := g.floats([]int32{n, 1}, make([]float32, n)...), g.floats([]int32{1, n}, make([]float32, n)...)
			return g.add("ADD", nil, nil, column, row)
		}, "a constant of shape [32768 32768] is too large"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, folded(3, c.of).encode(), c.want) })
	}
}
