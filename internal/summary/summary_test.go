package summary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// build returns a network with a float and a binary layer of the given outputs behind
// 64 values, and what is reported on it.
func build(t *testing.T, float, binary int) *Report {
	n := &bcnn.Network{Name: "n", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 64}, DType: bcnn.Float32}}}
	if float > 0 {
		weights := make([]float32, 64*float)
		for i := range weights {
			weights[i] = 1.1 + float32(i%5)*float32(i%3) // which 16 bits do not hold
		}
		n.Append("float", bcnn.Dense{Out: float, Weights: bcnn.Weights{F32: weights}})
		n.Append("add", bcnn.Add{}, 0, 0)
	}
	if binary > 0 {
		n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		in := 64
		if float > 0 {
			in = float
		}
		words := make([]uint64, binary*((in+63)/64))
		for i := range words {
			words[i] = 1 << ((in - 1) % 64) // of which a file keeps all bytes up to this
		}
		n.Append("binary", bcnn.Dense{Out: binary, Weights: bcnn.Weights{Bits: words}})
	}
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	return New(n, p)
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
	require.NoError(t, r.CheckBinary())
	table := r.Table()
	require.Equal(t, []string{"binary", "dense", "binary", "12288", "75.0 %", "49152", "75.0 %", "1536", "8.6 %", "32.0 times", ""}, table[2])
	require.Equal(t, []string{"float", "dense", "float32", "4096", "25.0 %", "16384", "25.0 %", "16384", "91.4 %", "1.0 times", r.Layers[0].WhyFloat}, table[1])
	require.NotEmpty(t, r.Layers[0].WhyFloat)
	require.Equal(t, []string{"all", "", "", "16384", "100.0 %", "65536", "100.0 %", "17920", "100.0 %", "3.7 times", ""}, table[3])
	for i, want := range []string{"other tables", "metadata", "file"} {
		require.Equal(t, want, table[4+i][0])
		require.Equal(t, fmt.Sprint([]int64{r.Tables, r.Metadata, r.File}[i]), table[4+i][7])
	}
	require.Equal(t, []string{"multiplications: 75.0 % binary, 25.0 % float32", "steps without weights in float32: 1 add"}, r.Lines())
}

func TestWarning(t *testing.T) {
	require.Equal(t, "no layer is binary or integer: nothing gets smaller or faster", build(t, 64, 0).Warning)
	require.Equal(t, "most multiplications are float32: 33.3 % binary, 66.7 % float32", build(t, 64, 32).Warning)
	require.Empty(t, build(t, 64, 64).Warning)
	require.Empty(t, build(t, 0, 1).Warning)
}

// A network of bytes needs no binary layers.
func TestBytes(t *testing.T) {
	for outputs, warning := range map[int]string{8: "", 1: "most multiplications are float32: 0.0 % binary, 33.3 % 8-bit, 66.7 % float32"} {
		n := &bcnn.Network{Name: "bytes", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 8}, DType: bcnn.Uint8}}}
		n.Append("8-bit", bcnn.Dense{Out: outputs, Weights: bcnn.Weights{Int8: slices.Repeat([]int8{100}, 8*outputs)}})
		n.Append("float", bcnn.Dense{Out: 16 / outputs, Weights: bcnn.Weights{F32: make([]float32, 16)}})
		p, err := lower.Network(t.Context(), n, lower.Options{})
		require.NoError(t, err)
		r := New(n, p)
		require.Equal(t, warning, r.Warning)
		require.Equal(t, int64(8*outputs), r.ByBits.Of(8))
		require.ErrorContains(t, r.CheckBinary(), "less than half")
		require.Equal(t, []plan.Precision{8, plan.Float}, []plan.Precision{r.Layers[0].Precision, r.Layers[1].Precision})
	}
}

// What a file holds adds up to its size.
// Weights that the file packs count as in the file: here four of the eight bytes of a word.
func TestBytesOfPackedWeights(t *testing.T) {
	n := &bcnn.Network{Name: "packed", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 32}, DType: bcnn.Float32}}}
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	words := make([]uint64, 64*9)
	for i := range words {
		words[i] = 1 << 31
	}
	n.Append("conv", bcnn.Conv2D{Out: 64, Window: bcnn.Window{KH: 3, KW: 3}, Weights: bcnn.Weights{Bits: words}, Bias: make([]float32, 64)})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	r := New(n, p)
	require.Equal(t, []int64{64*9*4 + 64*2, 0}, []int64{r.Stored, r.Tables})
	require.Equal(t, r.Stored, r.Layers[0].Stored)
}

func TestBytesOfFile(t *testing.T) {
	n := &bcnn.Network{Name: "tables", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 1, C: 64}, DType: bcnn.Float32}}}
	n.Append("slopes", bcnn.PReLU{Slope: make([]float32, 64)})
	n.Append("sign", bcnn.Sign{Zero: bcnn.ZeroIsPlus})
	n.Append("binary", bcnn.Dense{Out: 3, Weights: bcnn.Weights{Bits: make([]uint64, 3)}, Bias: make([]float32, 3)})
	p, err := lower.Network(t.Context(), n, lower.Options{})
	require.NoError(t, err)
	r := New(n, p)
	b, err := modelfile.Encode(n)
	require.NoError(t, err)
	require.Equal(t, []int64{3*8 + 3*4, 64 * 4, int64(len(b))}, []int64{r.Stored, r.Tables, r.File})
	require.Equal(t, r.File, r.Stored+r.Tables+r.Metadata)
	n.Name = strings.Repeat("0", 64) // which a file cannot hold
	r = New(n, p)
	require.Equal(t, []int64{0, 0, 0}, []int64{r.Tables, r.Metadata, r.File})
	last := r.Table()[len(r.Table())-1]
	require.Equal(t, "all", last[0])
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
