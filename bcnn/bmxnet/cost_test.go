package bmxnet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// pair are the files of a model.
type pair struct{ symbol, params []byte }

// loading is what is judged of the import of pairs.
func loading(opts Options) costtest.Format[pair] {
	return costtest.Format[pair]{
		Base: base, PerByte: perByte, Steps: 2, Soon: 32 << 20, Kinds: kindsOfCost, Draw: draw,
		Read: func(t testing.TB, ctx context.Context, p pair) (size, used int64, err error) {
			size = int64(len(p.symbol) + len(p.params))
			im, err := begin(ctx, int64(len(p.symbol)), int64(len(p.params)), opts)
			if err != nil {
				return size, 0, err
			}
			if err = im.read(p.symbol, p.params); err == nil {
				_, err = im.network()
			}
			require.NotErrorIs(t, err, try.ErrPanic)
			return size, im.budget.Used(), err
		},
	}
}

// kindsOfCost are files, each of which shows that a charge is missing that drawn files and
// TestCharges do not show.
var kindsOfCost = []costtest.Kind[pair]{
	{Name: "empty nodes", N: 600, Ends: "it has no heads", Make: func(n int) pair {
		return pair{symbol: []byte(`{"nodes":[` + strings.Repeat("{},", n) + `{}]}`)}
	}},
	{Name: "attributes", N: 300, Make: func(n int) pair {
		attrs := map[string]string{"a_max": "1"}
		for i := range n {
			attrs[fmt.Sprint(i)] = ""
		}
		g := newGraph()
		g.op("clip", attrs)
		return g.pair()
	}},
	{Name: "packed weights", N: 1 << 13, Make: func(n int) pair {
		g := newGraph()
		g.word = 64
		g.weighted("QConvolution", attributes2("kernel", "(2, 2)", "num_filter", n/16), 0, n/16, 4, 2, 2)
		return g.pair()
	}},
	{Name: "signs of weights again and again", N: 40, Ends: costtest.Exceeds, Make: func(n int) pair {
		g := newGraph()
		all := []int{0}
		w := g.param("arg:", 4*n)
		for range n {
			w = g.op("det_sign", nil, w)
		}
		all = append(all, w)
		g.op("add_n", nil, all...)
		return g.pair()
	}},
}

func (g *graph) pair() pair { return pair{g.symbol(), g.file()} }

// costShape is an input for which all of these fit.
var costShape = Options{InputShape: bcnn.Shape{H: 5, W: 6, C: 4}, Name: "n"}

// TestCost imports every kind of files.
func TestCost(t *testing.T) { loading(costShape).Test(t) }

// TestInterrupt ends the context at different places of imports.
func TestInterrupt(t *testing.T) { loading(costShape).Interrupt(t) }

// small are files whose bytes are changed.
func small() (all []pair) {
	for _, word := range []int{0, 32, 64} {
		g := newGraph()
		g.word = word
		g.weighted("QConvolution", attributes2("kernel", "(1, 1)", "num_filter", 8), 0, 8, 8, 1, 1)
		g.norm(8)
		g.op("Pooling", attributes2("kernel", "(1, 1)", "pool_type", "avg"))
		g.op("Activation", attributes2("act_type", "tanh"))
		g.weighted("QFullyConnected", attributes2("num_hidden", 2), 0, 2, 64)
		all = append(all, g.pair())
	}
	for seed := range 20 {
		all = append(all, pair{grow(costtest.Program(seed)), paramsFile(0, nil)})
	}
	return all
}

// fuzzShape is an input for which the seeds fit.
var fuzzShape = Options{InputShape: bcnn.Shape{H: 2, W: 4, C: 8}, Name: "n"}

// FuzzLoad imports arbitrary bytes: an error, or a network that can be lowered and, if
// it is small, run.
func FuzzLoad(f *testing.F) {
	for _, p := range small() {
		f.Add(p.symbol, p.params)
	}
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

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading(costShape).Units(t) }

// FuzzCost imports arbitrary bytes, and graphs that a program of bytes makes.
func FuzzCost(f *testing.F) {
	for _, p := range small() {
		f.Add(slices.Concat(p.symbol, []byte{0}, p.params))
	}
	loading(fuzzShape).Fuzz(f, 500)
}

// draw makes files of a program: those that it holds, with a zero between them, or a graph.
func draw(program []byte) pair {
	if symbol, params, _ := bytes.Cut(program, []byte{0}); bytes.HasPrefix(symbol, []byte("{")) {
		return pair{symbol, params}
	}
	return pair{symbol: grow(program)}
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
