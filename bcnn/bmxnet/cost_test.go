package bmxnet

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/costtest"
	"github.com/bitcnn/bitcnn/internal/drawn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// The tables of functions, made once, are no part of what a network costs.
func init() { f32.TabulateAll() }

// importCost imports files and checks that what it takes is charged.
func importCost(t *testing.T, symbol, params []byte, opts Options, looks int) costtest.Cost {
	t.Helper()
	c := costtest.Measure(t, int64(len(symbol)+len(params)), looks, 32<<20, func(ctx context.Context) (used int64, err error) {
		im, err := begin(ctx, int64(len(symbol)), int64(len(params)), opts)
		if err != nil {
			return 0, err
		}
		if err = im.read(symbol, params); err == nil {
			_, err = im.network()
		}
		require.NotErrorIs(t, err, try.ErrPanic)
		return im.budget.Used(), err
	})
	require.LessOrEqual(t, c.Used, base+perByte*c.Bytes)
	return c
}

// large are files that grow with n, and how their import ends.
var large = []struct {
	name, ends string
	n          int
	make       func(n int) (symbol, params []byte)
}{
	{"nodes", "", 60, func(n int) ([]byte, []byte) {
		g := newGraph()
		for range n {
			g.op("relu", nil)
		}
		return strings2(g)
	}},
	{"nodes that nothing reads", "", 60, func(n int) ([]byte, []byte) {
		g := newGraph()
		for range n {
			g.op("relu", nil, 0)
		}
		return strings2(g)
	}},
	{"empty nodes", "it has no heads", 600, func(n int) ([]byte, []byte) {
		return []byte(`{"nodes":[` + strings.Repeat("{},", n) + `{}]}`), nil
	}},
	{"inputs", "this operator is not supported", 1000, func(n int) ([]byte, []byte) {
		return []byte(`{"nodes":[{},{"inputs":[` + strings.Repeat("[],", n) + `[]]}],"heads":[[1]]}`), paramsFile(0, nil)
	}},
	{"attributes", "", 300, func(n int) ([]byte, []byte) {
		attrs := map[string]string{"a_max": "1"}
		for i := range n {
			attrs[fmt.Sprint(i)] = ""
		}
		g := newGraph()
		g.op("clip", attrs)
		return strings2(g)
	}},
	{"other members", "it has no nodes", 1000, func(n int) ([]byte, []byte) {
		return []byte(`{"x":[` + strings.Repeat("0,", n) + `0]}`), nil
	}},
	{"a long list", "want numbers", 100, func(n int) ([]byte, []byte) {
		g := newGraph()
		g.op("Pooling", attributes2("kernel", strings.Repeat("1,", n)))
		return strings2(g)
	}},
	{"joined", "", 50, func(n int) ([]byte, []byte) {
		g := newGraph()
		inputs := make([]int, n)
		g.op("Concat", nil, inputs...)
		return strings2(g)
	}},
	{"obstacles", "nodes stand in the way", 50, func(n int) ([]byte, []byte) {
		g := newGraph()
		for range n {
			g.op("unknown", nil, 0)
		}
		all := make([]int, n)
		for i := range all {
			all[i] = i + 1
		}
		g.op("add_n", nil, all...)
		return strings2(g)
	}},
	{"arrays", "", 200, func(n int) ([]byte, []byte) {
		g := newGraph()
		for range n {
			g.params = append(g.params, testArray{name: fmt.Sprint("arg:", len(g.params)), dims: []int{0}})
		}
		g.op("relu", nil)
		return strings2(g)
	}},
	{"empty arrays", "0 names for", 1000, func(n int) ([]byte, []byte) {
		g := newGraph()
		g.op("relu", nil)
		file := paramsFile(0, nil)[:16]
		file = append(file, byte(n), byte(n>>8), byte(n>>16), 0, 0, 0, 0, 0)
		return g.symbol(), append(file, make([]byte, 4*n+8)...)
	}},
	{"real weights", "", 2000, func(n int) ([]byte, []byte) {
		g := newGraph()
		g.weighted("Convolution", attributes2("kernel", "(2, 2)", "num_filter", n/16), n/16, n/16, 4, 2, 2)
		return strings2(g)
	}},
	{"packed weights", "", 1 << 13, func(n int) ([]byte, []byte) {
		g := newGraph()
		g.word = 64
		g.weighted("QConvolution", attributes2("kernel", "(2, 2)", "num_filter", n/16), 0, n/16, 4, 2, 2)
		return strings2(g)
	}},
	{"packed dense weights", "", 100, func(n int) ([]byte, []byte) {
		g := newGraph()
		g.op("Pooling", attributes2("kernel", "(2, 3)"))
		g.word = 32
		g.weighted("QFullyConnected", attributes2("num_hidden", n), 0, n, 4*4*4)
		return strings2(g)
	}},
	{"signs and means of weights", "", 2000, func(n int) ([]byte, []byte) {
		g := newGraph()
		w := g.param("arg:", n/16, 4, 2, 2)
		x := g.op("Convolution", attributes2("kernel", "(2, 2)", "num_filter", n/16, "no_bias", 1), 0, g.op("det_sign", nil, w))
		g.op("abs", nil, w)
		g.op("mean", attributes2("axis", 0, "exclude", 1, "keepdims", 1))
		g.op("transpose", attributes2("axes", "(1, 0, 2, 3)"))
		g.op("broadcast_mul", nil, x, len(g.nodes)-1)
		return strings2(g)
	}},
	{"signs of weights again and again", budget.ErrExceeded.Error(), 4000, func(n int) ([]byte, []byte) {
		g := newGraph()
		all := []int{0}
		w := g.param("arg:", 4*n)
		for range n {
			w = g.op("det_sign", nil, w)
		}
		all = append(all, w)
		g.op("add_n", nil, all...)
		return strings2(g)
	}},
	{"borders", "", 20, func(n int) ([]byte, []byte) {
		g := newGraph()
		var all []int
		for range n {
			g.op("Pad", attributes2("mode", "edge", "pad_width", "(0, 0, 0, 0, 9, 0, 9, 0)"), 0)
			all = append(all, g.op("slice_axis", attributes2("axis", 1)))
		}
		g.op("Concat", nil, all...)
		return strings2(g)
	}},
	{"weights that many layers read", budget.ErrExceeded.Error(), 300, func(n int) ([]byte, []byte) {
		g := newGraph()
		w := g.param("arg:", 4, 4, 3, n)
		for range 40 * n {
			g.op("Convolution", attributes2("kernel", fmt.Sprintf("(3, %d)", n), "pad", fmt.Sprintf("(1, %d)", n/2), "num_filter", 4, "no_bias", 1), 0, w)
		}
		all := []int{}
		for i := range 40 * n {
			all = append(all, i+2)
		}
		g.op("add_n", nil, all...)
		return strings2(g)
	}},
}

func strings2(g *graph) (symbol, params []byte) { return g.symbol(), g.file() }

// costShape is an input for which all of these fit.
var costShape = Options{InputShape: bcnn.Shape{H: 5, W: 6, C: 4}, Name: "n"}

// TestCost imports every kind of files in three sizes: what is done is charged, and
// what is charged does not grow faster than the files.
func TestCost(t *testing.T) {
	for _, k := range large {
		t.Run(k.name, func(t *testing.T) {
			var c []costtest.Cost
			for _, times := range costtest.Sizes() {
				n := times * k.n
				if k.ends == budget.ErrExceeded.Error() {
					n = k.n // the bound is all there is to hold
				}
				symbol, params := k.make(n)
				last := importCost(t, symbol, params, costShape, costtest.Ever)
				c = append(c, last)
				t.Log(last)
				if k.ends == "" {
					require.NoError(t, last.Err)
				} else {
					require.ErrorContains(t, last.Err, k.ends)
				}
			}
			if testing.Short() || k.ends == budget.ErrExceeded.Error() {
				return
			}
			costtest.RequireLinear(t, c)
		})
	}
}

// TestInterrupt ends the context at different places of every import.
func TestInterrupt(t *testing.T) {
	for _, k := range large {
		symbol, params := k.make(k.n)
		for _, looks := range []int{0, 1} {
			if c := importCost(t, symbol, params, costShape, looks); c.Used > 1<<22 {
				require.ErrorIs(t, c.Err, context.Canceled, "%s after %d looks", k.name, looks)
			}
		}
	}
}

// TestSteps counts the steps of TestCost.
func TestSteps(t *testing.T) { costtest.Instrumented(t, "^TestCost$") }

// seeds are small files.
func seeds(f *testing.F) {
	for _, word := range []int{0, 32, 64} {
		g := newGraph()
		g.word = word
		g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8), 0, 8, 8, 1, 1)
		g.norm(8)
		g.op("Pooling", attributes2("kernel", "(1, 1)", "pool_type", "avg"))
		g.op("Activation", attributes2("act_type", "tanh"))
		g.weighted("QFullyConnected", attributes2("num_hidden", 2), 0, 2, 64)
		f.Add(g.symbol(), g.file())
	}
	for _, k := range large {
		symbol, params := k.make(1)
		if len(params) < 1<<10 {
			f.Add(symbol, params)
		}
	}
}

// fuzzShape is an input for which the seeds fit.
var fuzzShape = Options{InputShape: bcnn.Shape{H: 2, W: 4, C: 8}, Name: "n"}

// FuzzLoad imports arbitrary bytes: an error, or a network that can be lowered and, if
// it is small, run.
func FuzzLoad(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, symbol, params []byte) {
		net, _, err := Decode(t.Context(), symbol, params, fuzzShape)
		if err != nil {
			require.NotErrorIs(t, err, try.ErrPanic)
			require.Nil(t, net)
			return
		}
		require.NoError(t, net.Check())
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		macs := int64(0)
		for _, l := range plan.Summarize(net, p) {
			macs += l.MACs
		}
		for _, tensor := range p.Tensors {
			macs += int64(tensor.Shape.Values())
		}
		if macs < 1<<16 {
			_, err := ref.Run(t.Context(), p, bcnn.NewTensor(net.Inputs[0].DType, 1, net.Inputs[0].Shape), nil)
			require.NoError(t, err)
		}
	})
}

// FuzzCost fails where an import does what is not charged, see importCost: of arbitrary
// bytes, and of graphs that a program of bytes makes.
func FuzzCost(f *testing.F) {
	seeds(f)
	n := 500
	if testing.Short() {
		n = 50
	}
	for seed := range n {
		f.Add(drawn.Bytes(seed, 64), []byte{})
	}
	f.Fuzz(func(t *testing.T, symbol, params []byte) {
		importCost(t, symbol, params, fuzzShape, math.MaxInt)
		importCost(t, grow(symbol), params, fuzzShape, math.MaxInt)
	})
}

// grow makes a graph of a program: each four bytes are an operator that is repeated,
// and what it reads.
func grow(program []byte) []byte {
	ops := []string{
		"Flatten", "Concat", "add_n", "BatchNorm", "Convolution", "QConvolution", "QFullyConnected", "FullyConnected", "Pooling", "relu", "sigmoid", "tanh",
		"QActivation", "_copy", "broadcast_mul", "LeakyReLU", "SoftmaxOutput", "null", "unknown", "clip",
	}
	nodes := []map[string]any{{"op": "null", "name": "data"}}
	for ; len(program) >= 4 && len(nodes) < 4096; program = program[4:] {
		p := program
		for range 1 << (p[0] / 32) {
			from := len(nodes) - 1 - int(p[1])%min(len(nodes), 16)
			inputs := [][]int{}
			for k := range 1 + int(p[2])%7 {
				inputs = append(inputs, []int{max(0, from-k*int(p[2]/64)), 0, 0})
			}
			nodes = append(nodes, map[string]any{"op": ops[int(p[0]%32)%len(ops)], "name": fmt.Sprint(p[3] % 4), "inputs": inputs, "attrs": map[string]any{
				"kernel": fmt.Sprintf("(%d, %d)", 1+p[3]%3, 1+p[3]/16), "pad": "(1, 1)", "num_filter": "64", "num_hidden": "64", "pool_type": "avg",
				"act_type": "leaky", "a_max": "1", "num_args": "2",
			}})
		}
	}
	b, err := json.Marshal(map[string]any{"nodes": nodes, "heads": [][]int{{len(nodes) - 1, 0, 0}}})
	if err != nil {
		panic(err)
	}
	return b
}
