package summary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// build returns a network with a float and a binary layer of the given outputs behind
// 64 values, and what is reported on it.
func build(t *testing.T, float, binary int) *Report {
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 64}, DType: bcnn.Float32}}}
	if float > 0 {
		n.Append("float", bcnn.Dense{Out: float, Weights: bcnn.Weights{F32: make([]float32, 64*float)}})
		n.Append("add", bcnn.Add{}, 0, 0)
	}
	if binary > 0 {
		n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		in := 64
		if float > 0 {
			in = float
		}
		n.Append("binary", bcnn.Dense{Out: binary, Weights: bcnn.Weights{Bits: make([]uint64, binary*((in+63)/64))}})
	}
	plan, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	return New(n, plan)
}

func TestReport(t *testing.T) {
	r := build(t, 64, 192)
	require.Equal(t, int64(64*64+64*192), r.MACs)
	require.Equal(t, int64(64*192), r.BinaryMACs)
	require.Equal(t, int64(4*64*256), r.Float)
	require.Equal(t, int64(4*64*64+8*192), r.Stored)
	require.Equal(t, 65536.0/17920, r.Compression)
	require.Equal(t, []Steps{{"add", 1}}, r.FloatSteps)
	require.Empty(t, r.Warning)
	table := r.Table()
	require.Equal(t, []string{"binary", "dense", "binary", "12288", "75.0 %", "49152", "75.0 %", "1536", "8.6 %", "32.0 times", ""}, table[2])
	require.Equal(t, []string{"float", "dense", "float", "4096", "25.0 %", "16384", "25.0 %", "16384", "91.4 %", "1.0 times", r.Layers[0].WhyFloat}, table[1])
	require.NotEmpty(t, r.Layers[0].WhyFloat)
	require.Equal(t, []string{"all", "", "", "16384", "100.0 %", "65536", "100.0 %", "17920", "100.0 %", "3.7 times", ""}, table[3])
	require.Equal(t, []string{"75.0 % of the multiplications are binary", "steps without weights in float32: 1 add"}, r.Lines())
}

func TestWarning(t *testing.T) {
	require.Equal(t, "no layer is binary: nothing gets smaller or faster", build(t, 64, 0).Warning)
	require.Equal(t, "only 33.3 % of the multiplications are binary", build(t, 64, 32).Warning)
	require.Empty(t, build(t, 64, 64).Warning)
	require.Empty(t, build(t, 0, 1).Warning)
}

// A network of bytes needs no binary layers.
func TestBytes(t *testing.T) {
	for outputs, warning := range map[int]string{8: "", 1: "only 0.0 % of the multiplications are binary, 33.3 % of 8 bits"} {
		n := &bcnn.Network{Name: "bytes", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 8}, DType: bcnn.Uint8}}}
		n.Append("8-bit", bcnn.Dense{Out: outputs, Weights: bcnn.Weights{Int8: slices.Repeat([]int8{100}, 8*outputs)}})
		n.Append("float", bcnn.Dense{Out: 16 / outputs, Weights: bcnn.Weights{F32: make([]float32, 16)}})
		plan, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		r := New(n, plan)
		require.Equal(t, warning, r.Warning)
		require.Equal(t, int64(8*outputs), r.Int8MACs)
		require.Equal(t, []string{"8-bit", "float"}, []string{r.Layers[0].Precision(), r.Layers[1].Precision()})
	}
}

// A layer of ±1 but for few zeros is named, with others it is not.
func TestFewZeros(t *testing.T) {
	most := slices.Repeat([]int8{1, -1}, 100)
	with := func(values ...int8) []int8 { return append(slices.Clone(most), values...) }
	for name, c := range map[string]struct {
		weights []int8
		want    int
	}{
		"none": {most, 0}, "one": {with(0, 1), 1}, "two": {with(0, 0), 2}, "three": {with(0, 0, 0, 1), 0},
		"of others": {with(0, 2), 0}, "doubled": {append(slices.Repeat([]int8{2, -2}, 100), 0), 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := &bcnn.Network{Name: "zeros", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: len(c.weights)}, DType: bcnn.Float32}}}
			n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			n.Append("d", bcnn.Dense{Out: 1, Weights: bcnn.Weights{Int8: c.weights}})
			p, err := lower.Network(t.Context(), n, lower.Options{})
			require.NoError(t, err)
			r := New(n, p)
			require.Equal(t, c.want, r.Layers[0].FewZeros)
			lines := strings.Join(r.Lines(), "\n")
			require.Equal(t, c.want > 0, strings.Contains(lines, fmt.Sprintf("d (%d)", c.want)), lines)
		})
	}
}

// A product of two layers has multiplications and no weights to make smaller.
func TestProducts(t *testing.T) {
	n := &bcnn.Network{Name: "product", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 4, C: 8}, DType: bcnn.Float32}}}
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("scores", bcnn.MatMul{}, 0, 0)
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	r := New(n, p)
	require.Equal(t, []int64{4 * 4 * 8, 4 * 4 * 8}, []int64{r.MACs, r.BinaryMACs})
	require.Empty(t, r.FloatSteps)
	require.Empty(t, r.Warning)
	row := r.Table()[1]
	require.Equal(t, []string{"scores", "matmul", "binary"}, row[:3])
	require.Equal(t, "", row[len(row)-2])
}
