package openvino

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// loading is what is judged of the import of files.
func loading() costtest.Format[pair] {
	return costtest.Format[pair]{
		Base: base, PerByte: perByte, Steps: 2, Soon: 32 << 20, Kinds: kindsOfCost, Draw: draw,
		Free: 1, // the .xml, of which Read makes bytes
		Read: func(t testing.TB, ctx context.Context, f pair) (size, used int64, err error) {
			size = int64(len(f.xml) + len(f.bin))
			im, err := decode(ctx, []byte(f.xml), f.bin, Options{})
			require.NotErrorIs(t, err, try.ErrPanic)
			if im == nil {
				return size, 0, err
			}
			return size, im.budget.Used(), err
		},
	}
}

// kindsOfCost are files, each of which shows that a charge is missing that drawn files do not show.
var kindsOfCost = []costtest.Kind[pair]{
	{Name: "empty elements", N: 1000, Ends: "it has no layers", Make: func(n int) pair {
		return pair{xml: `<net version="11"><rt_info>` + strings.Repeat("<a/>", n) + `</rt_info></net>`}
	}},
	{Name: "attributes", N: 100, Ends: "it has no layers", Make: func(n int) pair {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, ` a%d=""`, i)
		}
		return pair{xml: `<net version="11"><rt_info><a` + s.String() + `/></rt_info></net>`}
	}},
	{Name: "empty layers", N: 100, Ends: `"z" (Unknown, index `, Make: func(n int) pair {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, `<layer id="%d" type="A"/>`, i)
		}
		return pair{xml: `<net version="4"><layers>` + s.String() + `<layer id="z" name="z" type="Unknown"><output><port/></output></layer></layers></net>`}
	}},
	{Name: "ports", N: 30, Ends: "it has no outputs", Make: func(n int) pair {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, `<port id="%d"/>`, i)
		}
		return pair{xml: `<net version="11"><layers><layer id="0" type="A"><output>` + s.String() + `</output></layer></layers></net>`}
	}},
	{Name: "edges", N: 100, Ends: "a layer with the id", Make: func(n int) pair {
		return pair{xml: `<net version="11"><layers><layer id="0" type="A"/></layers><edges>` + strings.Repeat("<edge/>", n) + `</edges></net>`}
	}},
	{Name: "layers of one name", N: 100, Make: func(n int) pair {
		w := newWriter()
		x := w.parameter(1, 4, 2, 2)
		for range n {
			x = w.op("ReLU", "", nil, x)
		}
		f := w.last()
		f.xml = strings.ReplaceAll(f.xml, `name="relu_`, `name="r" output_names="`)
		return f
	}},
	{Name: "constants at one place", N: 100, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		x := w.parameter(1, 40*n)
		w.bin = make([]byte, 160*n)
		for range n {
			x = w.op("Add", "", nil, x, w.at("f32", []int{40 * n}, 0, 160*n))
		}
		return w.last()
	}},
	{Name: "a constant that is read again and again", N: 100, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		x := w.parameter(1, 40*n)
		c := w.floats([]int{40 * n}, make([]float32, 40*n)...)
		for range n {
			x = w.op("Add", "", nil, x, c)
		}
		return w.last()
	}},
	{Name: "constants that are multiplied", N: 100, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		a, b := w.floats([]int{n, 1}, make([]float32, n)...), w.floats([]int{1, n}, make([]float32, n)...)
		c := w.op("Multiply", "", []int{n, n}, a, b)
		return addConstant(w, c, n)
	}},
	{Name: "constants that are moved", N: 60, Make: func(n int) pair {
		w := newWriter()
		c := w.floats([]int{n, 8}, make([]float32, 8*n)...)
		w.op("MatMul", `transpose_b="true"`, []int{1, 8}, w.parameter(1, n), w.op("Transpose", "", []int{8, n}, c, w.ints(1, 0)))
		return w.last()
	}},
	{Name: "constants that are quantised", N: 60, Make: func(n int) pair {
		w := newWriter()
		c := w.floats([]int{8, n}, make([]float32, 8*n)...)
		w.op("MatMul", `transpose_b="true"`, []int{1, 8}, w.parameter(1, n), w.quantize(c, 255, -1, 1, -1, 1))
		return w.last()
	}},
	{Name: "packed weights", N: 60, Make: func(n int) pair {
		w := newWriter()
		w.binary(w.quantize(w.parameter(1, 8, 4, 4), 2, 0, 0, 0, 1), n, "1")
		return w.last()
	}},
	{Name: "real weights", N: 20, Make: func(n int) pair {
		w := newWriter()
		c := w.floats([]int{n, 4, 3, 3}, make([]float32, 36*n)...)
		w.op("Convolution", explicit(1, 1), []int{1, n, 5, 5}, w.parameter(1, 4, 5, 5), c)
		return w.last()
	}},
	{Name: "levels of channels", N: 20, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		low, high := make([]float32, 16*n), make([]float32, 16*n)
		for i := range low {
			low[i], high[i] = -float32(i), float32(i+1)
		}
		dims := []int{16 * n}
		x := w.parameter(1, 16*n)
		w.op("FakeQuantize", `levels="256"`, nil, x, w.floats(dims, low...), w.floats(dims, high...), w.number(0), w.number(1))
		return w.last()
	}},
	{Name: "an image in another order", N: 100, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		x := w.parameter(1, n, n, 1)
		y := w.op("Reshape", "", []int{1, n, n, 1}, w.op("Transpose", "", []int{1, 1, n, n}, x, w.ints(0, 3, 2, 1)), w.ints(1, int64(n), int64(n), 1))
		for range 8 {
			y = w.op("Reshape", "", []int{1, n * n}, y, w.ints(1, -1))
			y = w.op("Reshape", "", []int{1, 1, n, n}, y, w.ints(1, 1, int64(n), int64(n)))
			y = w.op("Transpose", "", []int{1, n, n, 1}, y, w.ints(0, 3, 2, 1))
			y = w.op("MaxPool", `kernel="1,1" rounding_type="floor" `+explicitPool, nil, y)
		}
		return w.last()
	}},
	{Name: "a sum of many", N: 30, Make: func(n int) pair {
		w := newWriter()
		x := w.parameter(1, 4, 2, 2)
		all := []int{}
		for range n {
			all = append(all, w.op("ReLU", "", nil, x))
		}
		w.op("Concat", `axis="1"`, []int{1, 4 * n, 2, 2}, all...)
		return w.last()
	}},
	{Name: "transposed weights", N: 6, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		c := w.floats([]int{1, 1, 1, 1}, 1)
		w.op("ConvolutionBackpropData", fmt.Sprintf(`strides="%d,%d" pads_begin="0,0" pads_end="0,0" dilations="1,1" auto_pad="explicit"`, 8*n, 8*n),
			[]int{1, 1, 8*n + 1, 8*n + 1}, w.parameter(1, 1, 2, 2), c)
		return w.last()
	}},
	{Name: "neighbours", N: 1, Ends: costtest.Exceeds, Make: func(n int) pair {
		w := newWriter()
		w.op("LRN", `alpha="1" beta="0.5" bias="1" size="3"`, nil, w.parameter(1, 64*n, 1, 1), w.ints(1))
		return w.last()
	}},
	{Name: "priors", N: 12, Ends: costtest.Exceeds, Make: func(n int) pair {
		return newWriter().detector(ssd, func(w *writer, _ int) int {
			p := w.op("PriorBox", priorAttributes, []int{2, 16 * n * n}, w.ints(int64(n), int64(n)), w.ints(32, 48))
			return w.op("Unsqueeze", "", []int{1, 2, 16 * n * n}, p, w.ints(0))
		})
	}},
	{Name: "priors that are joined", N: 30, Ends: costtest.Exceeds, Make: func(n int) pair {
		return newWriter().detector(ssd, func(w *writer, p int) int {
			for size := 48; size < 48*n; size *= 2 {
				p = w.op("Concat", `axis="2"`, []int{1, 2, 2 * size}, p, p)
			}
			for range n {
				w.op("Concat", `axis="2"`, []int{1, 2, w.dims[p][2] + 48}, p, 0+w.floats([]int{1, 2, 48}, make([]float32, 96)...))
				p = w.n - 1
			}
			return p
		})
	}},
}

const explicitPool = `strides="1,1" pads_begin="0,0" pads_end="0,0" auto_pad="explicit"`

// addConstant adds a constant of n×n to an input.
func addConstant(w *writer, c, n int) pair {
	w.op("Add", "", nil, w.parameter(1, n, n), c)
	return w.last()
}

// TestCost imports every kind of files.
func TestCost(t *testing.T) { loading().Test(t) }

// TestInterrupt ends the context at different places of imports.
func TestInterrupt(t *testing.T) { loading().Interrupt(t) }

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading().Units(t) }

// seeds are files whose bytes are changed.
func seeds(f testing.TB) (all []pair) {
	for _, name := range []string{"bc_residual_chain", "ir10_shapeof_tail", "uint8_nhwc_input", "two_outputs"} {
		xml, err := os.ReadFile(filepath.Join("testdata", name+".xml"))
		require.NoError(f, err)
		bin, err := os.ReadFile(filepath.Join("testdata", name+".bin"))
		require.NoError(f, err)
		all = append(all, pair{string(xml), bin})
	}
	last := old()
	last.xml = inVersion(last.xml, 7)
	return append(all, old(), last, newWriter().detector(ssd, nil))
}

// FuzzLoad imports arbitrary bytes: an error, or a network that can be lowered and, if it is
// small, run.
func FuzzLoad(f *testing.F) {
	for _, p := range seeds(f) {
		f.Add([]byte(p.xml), p.bin)
	}
	f.Fuzz(func(t *testing.T, xml, bin []byte) {
		net, _, err := Decode(t.Context(), xml, bin, Options{})
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
			var in []bcnn.Tensor
			for _, i := range net.Inputs {
				in = append(in, bcnn.NewTensor(i.DType, 1, i.Shape))
			}
			_, err := ref.RunAll(t.Context(), p, in, nil)
			require.NoError(t, err)
		}
	})
}

// FuzzCost imports arbitrary bytes, and graphs that a program of bytes makes.
func FuzzCost(f *testing.F) {
	for _, p := range seeds(f) {
		f.Add(append(append([]byte(p.xml), 0), p.bin...))
	}
	loading().Fuzz(f, 500)
}

// draw makes files of a program: those that it holds, with a zero between them, or a graph.
func draw(program []byte) pair {
	if xml, bin, _ := bytes.Cut(program, []byte{0}); bytes.HasPrefix(xml, []byte("<")) {
		return pair{string(xml), bin}
	}
	return grow(program)
}

// grow makes a graph of a program: each four bytes are an operator that is repeated, and what it
// reads.
func grow(program []byte) pair {
	ops := []struct{ typ, attrs string }{
		{"ReLU", ""}, {"Sigmoid", ""}, {"Clamp", `min="0" max="1"`}, {"Add", ""}, {"Multiply", ""}, {"Subtract", ""}, {"Maximum", ""},
		{"Concat", `axis="1"`}, {"Concat", `axis="2"`}, {"Transpose", ""}, {"Reshape", `special_zero="true"`}, {"ShapeOf opset3", `output_type="i64"`},
		{"SoftMax", `axis="1"`}, {"MaxPool", `kernel="2,2" rounding_type="ceil" ` + explicitPool}, {"FakeQuantize", `levels="2"`}, {"FakeQuantize", `levels="9"`},
		{"BinaryConvolution", explicit(1, 0) + ` mode="xnor-popcount" pad_value="0"`}, {"Convolution", explicit(1, 0)}, {"MatMul", ""}, {"PReLU", ""},
		{"ConvolutionBackpropData", explicit(2, 0)}, {"LRN", `alpha="1" beta="0.75" bias="1" size="3"`}, {"NormalizeL2", `eps="1" eps_mode="add"`}, {"ShuffleChannels", `axis="1" group="2"`},
		{"ReduceMean", `keep_dims="true"`}, {"Squeeze", ""}, {"Unsqueeze", ""}, {"Unknown", ""},
		{"PriorBox", priorAttributes}, {"PriorBoxClustered", `width="4" height="16" offset="0.5"`}, {"DetectionOutput", ssd}, {"RegionYolo", `anchors="1,2" classes="1" num="1" coords="4"`},
	}
	w := newWriter()
	open := []int{-1, -1, -1, -1}
	w.op("Parameter", `shape="1,4,6,5" element_type="f32"`, []int{1, 4, 6, 5})
	for _, v := range []int64{0, 1, 2} {
		w.ints(v)
	}
	w.ints(0, 2, 3, 1)
	w.ints(0, -1)
	w.number(0)
	w.floats([]int{4, 1, 1}, 1, 2, 3, 4)
	w.floats([]int{4, 4, 1, 1}, make([]float32, 16)...)
	w.data("u1", []int{4, 4, 1, 1}, []byte{0x35, 0x9a})
	constants := w.n
	for ; len(program) >= 4 && w.n < 2048; program = program[4:] {
		p := program
		op := ops[int(p[0]%32)%len(ops)]
		for range 1 << (p[0] / 32) {
			from := w.n - 1 - int(p[1])%min(w.n, 16)
			if from > 0 && from < constants {
				from = 0
			}
			inputs := []int{from}
			for k := range int(p[2]) % 5 {
				inputs = append(inputs, (int(p[3])+k)%w.n)
			}
			w.op(op.typ, op.attrs, open, inputs...)
		}
	}
	return w.last()
}
