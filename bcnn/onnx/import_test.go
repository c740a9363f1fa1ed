package onnx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// All constants in these tests are small multiples of powers of two, so that
// float32 and float64 arithmetic are exact, results are equal to the last bit
// and ties at thresholds are common.

func randoms(r *rand.Rand, n int, choices ...float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = choices[r.IntN(len(choices))]
	}
	return out
}

func size(dims ...int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func randomTensor(r *rand.Rand, name string, dims []int, choices ...float64) testTensor {
	return floats(name, dims, randoms(r, size(dims...), choices...)...)
}

func write(t testing.TB, b []byte) string {
	path := filepath.Join(t.TempDir(), "model.onnx")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// batchOf makes a random batch for the model: an array in the layout of the
// file and the same values as a tensor in NHWC. nhwc says that the file's
// layout is NHWC.
func batchOf(r *rand.Rand, m testModel, in bcnn.Input, nhwc bool) (array, bcnn.Tensor) {
	const n = 2
	s := in.Shape
	choices := []float64{-2, -1, -0.5, 0, 0, 0.5, 1, 3}
	if in.DType == bcnn.Uint8 {
		choices = []float64{0, 1, 2, 63, 64, 65, 127, 128, 129, 200, 254, 255}
	}
	x := bcnn.NewTensor(in.DType, n, s)
	a := newArray(n, s.H, s.W, s.C)
	for i, v := range randoms(r, len(a.v), choices...) {
		a.v[i] = v
		if in.DType == bcnn.Uint8 {
			x.U8[i] = uint8(v)
		} else {
			x.F32[i] = float32(v)
		}
	}
	if !nhwc {
		a = transpose(a, []int{0, 3, 1, 2})
	}
	switch len(m.input.dims) {
	case 2:
		a.dims = []int{n, s.Values()}
	case 3:
		a.dims = []int{n, s.H, s.W}
	}
	return a, x
}

// compare imports the model and compares its output with that of the
// interpreter.
func compare(t *testing.T, r *rand.Rand, m testModel, opts Options, nhwc bool) (*bcnn.Network, *Report) {
	t.Helper()
	net, report, err := Load(write(t, m.encode()), opts)
	require.NoError(t, err)
	plan, err := bcnn.Lower(net)
	require.NoError(t, err)
	for range 3 {
		a, x := batchOf(r, m, net.Input, nhwc)
		for i, v := range a.v { // what the options put before the graph
			c := 0
			if len(opts.Mean) > 1 {
				c = i / net.Input.Shape.Pixels() % net.Input.Shape.C
			}
			if opts.Mean != nil {
				v -= float64(opts.Mean[c])
			}
			if opts.Scale != nil {
				v *= float64(opts.Scale[0])
			}
			a.v[i] = v
		}
		want := m.execute(a)
		got, err := ref.Run(plan, x, nil)
		require.NoError(t, err)
		s := plan.OutputShape()
		out := newArray(got.N, s.H, s.W, s.C)
		for i, v := range got.F32 {
			out.v[i] = float64(v)
		}
		if len(want.dims) == 4 && size(want.dims[2:]...) > 1 {
			out = transpose(out, []int{0, 3, 1, 2})
			require.Equal(t, want.dims, out.dims)
		}
		// −0 and 0 are the same number.
		for i := range out.v {
			out.v[i] += 0
			want.v[i] += 0
		}
		require.Equal(t, want.v, out.v)
	}
	return net, report
}

// A signForm is a way to write a binarisation of x as y.
type signForm struct {
	name  string
	nodes []testNode
	inits []testTensor
	at0   float64
}

func signForms() []signForm {
	one, minus, zero := number("one", 1), number("minus", -1), number("zero", 0)
	consts := []testTensor{one, minus, zero, number("two", 2), number("half", 0.5), number("tenth", 0.125)}
	form := func(name string, at0 float64, nodes ...testNode) signForm {
		return signForm{name, nodes, consts, at0}
	}
	toFloat := func(in, out string) testNode { return op("Cast", in, out, "to", int(typeFloat)) }
	ones := func(v float64, out string) testNode {
		return op("ConstantOfShape", "shape", out, "value", floats("", []int{1}, v))
	}
	return []signForm{
		form("where x>=0", 1, op("GreaterOrEqual", "x zero", "c"), op("Where", "c one minus", "y")),
		form("where x>0", -1, op("Greater", "x zero", "c"), op("Where", "c one minus", "y")),
		form("where x<0", 1, op("Less", "x zero", "c"), op("Where", "c minus one", "y")),
		form("where x<=0", -1, op("LessOrEqual", "x zero", "c"), op("Where", "c minus one", "y")),
		form("where 0<=x", 1, op("LessOrEqual", "zero x", "c"), op("Where", "c one minus", "y")),
		form("where 0<x", -1, op("Less", "zero x", "c"), op("Where", "c one minus", "y")),
		form("where 0>x", 1, op("Greater", "zero x", "c"), op("Where", "c minus one", "y")),
		form("where 0>=x", -1, op("GreaterOrEqual", "zero x", "c"), op("Where", "c minus one", "y")),
		form("where not x<0", 1, op("Less", "x zero", "c"), op("Not", "c", "d"), op("Where", "d one minus", "y")),
		form("where x>0 or x=0", 1, op("Greater", "x zero", "c"), op("Equal", "x zero", "d"), op("Or", "c d", "e"), op("Where", "e one minus", "y")),
		form("2 cast(x>0) - 1", -1, op("Greater", "x zero", "c"), toFloat("c", "d"), op("Mul", "two d", "e"), op("Sub", "e one", "y")),
		form("1 - 2 cast(x<0)", 1, op("Less", "x zero", "c"), toFloat("c", "d"), op("Mul", "d two", "e"), op("Sub", "one e", "y")),
		form("(cast(x>=0) - 1/2) / (1/2)", 1, op("GreaterOrEqual", "x zero", "c"), toFloat("c", "d"), op("Sub", "d half", "e"), op("Div", "e half", "y")),
		form("cast(x>0) - cast(x<=0)", -1, op("Greater", "x zero", "c"), toFloat("c", "d"), op("LessOrEqual", "x zero", "e"), toFloat("e", "f"), op("Sub", "d f", "y")),
		form("sign(sign(x)+0.1)", 1, op("Sign", "x", "c"), op("Add", "c tenth", "d"), op("Sign", "d", "y")),
		form("sign(sign(x)-0.1)", -1, op("Sign", "x", "c"), op("Sub", "c tenth", "d"), op("Sign", "d", "y")),
		form("sign(x) + (x=0)", 1, op("Sign", "x", "c"), op("Equal", "c zero", "d"), toFloat("d", "e"), op("Add", "c e", "y")),
		form("where(sign(x)=0, 1, sign(x))", 1, op("Sign", "x", "c"), op("Equal", "c zero", "d"), op("Where", "d one c", "y")),
		form("clip, where x>=0", 1, op("Clip", "x minus one", "b"), op("GreaterOrEqual", "b zero", "c"), op("Where", "c one minus", "y")),
		form("clip at 0, where x>0", -1, op("Clip", "x zero one", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")),
		form("relu, where x>0", -1, op("Relu", "x", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")),
		form("min max, where x>0", -1, op("Min", "x one", "a"), op("Max", "minus a", "b"), op("Greater", "b zero", "c"), op("Where", "c one minus", "y")),
		form("2 round(clip(x/2+1/2)) - 1", -1, op("Mul", "x half", "a"), op("Add", "a half", "b"), op("Clip", "b zero one", "c"), op("Round", "c", "d"), op("Mul", "d two", "e"), op("Sub", "e one", "y")),
		form("2 round(hard sigmoid) - 1", -1, op("HardSigmoid", "x", "c", "alpha", 0.25, "beta", 0.5), op("Round", "c", "d"), op("Mul", "d two", "e"), op("Sub", "e one", "y")),
		form("-where x>=0", 1, op("GreaterOrEqual", "x zero", "c"), op("Where", "c minus one", "d"), op("Neg", "d", "y")),
		form("where ones_like", 1, op("Shape", "x", "shape"), ones(1, "p"), op("Neg", "p", "q"), op("GreaterOrEqual", "x zero", "c"), op("Where", "c p q", "y")),
		form("expanded where", -1, op("Shape", "x", "shape"), op("Expand", "one shape", "p"), op("Greater", "x zero", "c"), op("Where", "c p minus", "y")),
		form("BipolarQuant", 1, op("qonnx.custom_op.general/BipolarQuant", "x one", "y")),
		form("Quant, 1 bit", 1, op("qonnx.custom_op.general/Quant", "x one zero one", "y", "signed", 1, "narrow", 0, "rounding_mode", "ROUND")),
	}
}

// TestSignForms checks that every way to write a sign becomes one Sign layer
// with the right rule for 0.
func TestSignForms(t *testing.T) {
	for _, f := range signForms() {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			m := testModel{
				input:  testInput{"x", typeFloat, []any{"batch", 3, 4, 4}},
				nodes:  append(f.nodes, op("Conv", "y w", "z")),
				inits:  append([]testTensor{randomTensor(r, "w", []int{2, 3, 3, 3}, -1, 1)}, f.inits...),
				output: "z",
			}
			net, report := compare(t, r, m, Options{}, false)
			signs := 0
			for _, l := range net.Layers {
				if s, ok := l.Op.(bcnn.Sign); ok {
					signs++
					want := bcnn.ZeroIsMinus
					if f.at0 > 0 {
						want = bcnn.ZeroIsPlus
					}
					// A sign that falls in x is that of −x with the other rule.
					if slices.ContainsFunc(net.Layers, func(l bcnn.Layer) bool {
						a, ok := l.Op.(bcnn.Affine)
						return ok && len(a.Scale) > 0 && a.Scale[0] < 0
					}) {
						want = bcnn.ZeroIsPlus + bcnn.ZeroIsMinus - want
					}
					require.Equal(t, want, s.Zero)
				}
			}
			require.Equal(t, 1, signs)
			require.True(t, report.Layers[0].Binary)
		})
	}
}

// TestSignRules checks the plain Sign: an error, or the rule of the options.
func TestSignRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := testModel{
		input:  testInput{"x", typeFloat, []any{1, 2, 3, 3}},
		nodes:  []testNode{op("Sign", "x", "y"), op("Conv", "y w", "z")},
		inits:  []testTensor{randomTensor(r, "w", []int{2, 2, 2, 2}, -1, 1), number("zero", 0), number("one", 1), number("minus", -1)},
		output: "z",
	}
	_, _, err := Load(write(t, m.encode()), Options{})
	require.ErrorContains(t, err, `node "n_y" (Sign, index 0)`)
	require.ErrorContains(t, err, "SignOfZero")
	require.ErrorContains(t, err, "model.onnx")
	for rule, comparison := range map[bcnn.ZeroRule]string{bcnn.ZeroIsPlus: "GreaterOrEqual", bcnn.ZeroIsMinus: "Greater"} {
		net, _, err := Load(write(t, m.encode()), Options{SignOfZero: rule})
		require.NoError(t, err)
		exact := m
		exact.nodes = []testNode{op(comparison, "x zero", "c"), op("Where", "c one minus", "y"), m.nodes[1]}
		other, _, err := Load(write(t, exact.encode()), Options{})
		require.NoError(t, err)
		net.Layers[0].Name = other.Layers[0].Name
		require.Equal(t, other, net)
	}
}

// builder makes random models of the operators that networks consist of.
type builder struct {
	r     *rand.Rand
	m     testModel
	count int
	x     string
	dims  []int // channels, height, width of x, or one length
	signs bool  // x is ±1
	sets  map[string]bool
}

func (b *builder) name(s string) string {
	b.count++
	return fmt.Sprintf("%s%d", s, b.count)
}

func (b *builder) add(opType, in string, attrs ...any) {
	out := b.name("t")
	b.m.nodes = append(b.m.nodes, op(opType, in, out, attrs...))
	b.x = out
}

func (b *builder) tensor(dims []int, choices ...float64) string {
	name := b.name("w")
	b.m.inits = append(b.m.inits, randomTensor(b.r, name, dims, choices...))
	return name
}

func (b *builder) coin() bool { return b.r.IntN(2) == 0 }

func (b *builder) sign() {
	forms := signForms()
	f := forms[b.r.IntN(len(forms))]
	rename := map[string]string{"x": b.x}
	for _, t := range f.inits {
		rename[t.name] = t.name
		if !b.sets[t.name] {
			b.sets[t.name] = true
			b.m.inits = append(b.m.inits, t)
		}
	}
	for _, n := range f.nodes {
		for _, o := range n.out {
			rename[o] = b.name("s")
		}
		m := n
		m.in, m.out = nil, nil
		for _, i := range n.in {
			m.in = append(m.in, rename[i])
		}
		for _, o := range n.out {
			m.out = append(m.out, rename[o])
		}
		m.name = "n_" + m.out[0]
		b.m.nodes = append(b.m.nodes, m)
	}
	b.x = rename["y"]
	b.signs = true
}

func (b *builder) weights(dims []int) (name string, binary bool) {
	switch b.r.IntN(4) {
	case 0:
		return b.tensor(dims, -1, -0.5, 0, 0.25, 1), false
	case 1: // ±α per filter
		t := randomTensor(b.r, b.name("w"), dims, -1, 1)
		per := len(t.values) / dims[0]
		for o := range dims[0] {
			alpha := randoms(b.r, 1, 0.5, 1, 2)[0]
			for i := range per {
				t.values[o*per+i] *= alpha
			}
		}
		b.m.inits = append(b.m.inits, t)
		return t.name, true
	}
	return b.tensor(dims, -1, 1), true
}

func (b *builder) conv() {
	c := b.dims[0]
	groups := 1
	if c%2 == 0 && b.coin() {
		groups = 2
	}
	out := 2 * (1 + b.r.IntN(4))
	k := []int{1 + b.r.IntN(3), 1 + b.r.IntN(3)}
	attrs := []any{"group", groups, "kernel_shape", k, "strides", []int{1 + b.r.IntN(2), 1 + b.r.IntN(2)}}
	w, binary := b.weights([]int{out, c / groups, k[0], k[1]})
	padded := false
	if b.r.IntN(3) == 0 {
		value := 0.0
		if binary && b.signs {
			value = randoms(b.r, 1, -1, 1)[0]
		}
		pads := []int{0, 0, 1 + b.r.IntN(2), 1 + b.r.IntN(2), 0, 0, 1 + b.r.IntN(2), 1 + b.r.IntN(2)}
		b.add("Pad", b.x, "mode", "constant", "pads", pads, "value", value)
		b.dims = []int{c, b.dims[1] + pads[2] + pads[6], b.dims[2] + pads[3] + pads[7]}
		padded = value != 0
	}
	switch {
	case padded:
	case min(b.dims[1], b.dims[2]) < 5:
		attrs = append(attrs, "auto_pad", "SAME_UPPER")
	case b.coin():
		attrs = append(attrs, "pads", []int{b.r.IntN(3), b.r.IntN(3), b.r.IntN(3), b.r.IntN(3)}, "dilations", []int{1 + b.r.IntN(2), 1})
	default:
		attrs = append(attrs, "auto_pad", []string{"SAME_UPPER", "SAME_LOWER", "VALID"}[b.r.IntN(3)])
	}
	in := b.x + " " + w
	if b.coin() {
		in += " " + b.tensor([]int{out}, -1, -0.5, 0, 2)
	}
	b.add("Conv", in, attrs...)
	n := b.m.nodes[len(b.m.nodes)-1]
	_, h := n.pads(0, b.dims[1], k[0])
	_, wd := n.pads(1, b.dims[2], k[1])
	b.dims, b.signs = []int{out, h, wd}, false
}

func (b *builder) norm() {
	c := []int{b.dims[0]}
	b.add("BatchNormalization", fmt.Sprintf("%s %s %s %s %s", b.x, b.tensor(c, -2, -1, 0.5, 1), b.tensor(c, -1, 0, 0.5),
		b.tensor(c, -2, 0, 1), b.tensor(c, 0, 0.75, 3.75)), "epsilon", 0.25)
	b.signs = false
}

func (b *builder) pool() {
	attrs := []any{"kernel_shape", []int{2, 2}, "strides", []int{1 + b.r.IntN(2), 2}}
	switch b.r.IntN(3) {
	case 0:
		attrs = append(attrs, "auto_pad", []string{"SAME_UPPER", "SAME_LOWER"}[b.r.IntN(2)])
	case 1:
		attrs = append(attrs, "ceil_mode", 1, "pads", []int{b.r.IntN(2), b.r.IntN(2), b.r.IntN(2), b.r.IntN(2)})
	}
	b.add("MaxPool", b.x, attrs...)
	n := b.m.nodes[len(b.m.nodes)-1]
	_, h := n.pads(0, b.dims[1], 2)
	_, w := n.pads(1, b.dims[2], 2)
	b.dims = []int{b.dims[0], h, w}
}

func (b *builder) arithmetic() {
	c := b.tensor([]int{1, b.dims[0], 1, 1}, -2, -1, -0.5, 0.5, 1, 2)
	if len(b.dims) == 1 {
		c = b.tensor([]int{b.dims[0]}, -2, -1, -0.5, 0.5, 1, 2)
	}
	if b.coin() {
		c = b.tensor([]int{1}, -2, 0.5, 4)
	}
	operator := []string{"Add", "Sub", "Mul", "Div"}[b.r.IntN(4)]
	in := b.x + " " + c
	if operator != "Div" && b.coin() {
		in = c + " " + b.x
	}
	b.add(operator, in)
	b.signs = false
}

func (b *builder) flatten() {
	n := size(b.dims...)
	switch b.r.IntN(4) {
	case 0:
		b.add("Flatten", b.x)
	case 1: // as exporters write x.view(x.size(0), −1)
		image := b.x
		b.add("Shape", image)
		zero := b.name("i")
		minus := b.name("i")
		b.m.inits = append(b.m.inits, testTensor{name: zero, typ: typeInt64, dims: []int{}, values: []float64{0}}, ints(minus, -1))
		b.add("Gather", b.x+" "+zero, "axis", 0)
		b.add("Unsqueeze", b.x, "axes", []int{0})
		b.add("Concat", b.x+" "+minus, "axis", 0)
		b.add("Reshape", image+" "+b.x)
	case 2:
		shape := b.name("i")
		b.m.inits = append(b.m.inits, ints(shape, -1, float64(n)))
		b.add("Reshape", b.x+" "+shape)
	default: // through NHWC, as tf2onnx does
		b.add("Transpose", b.x, "perm", []int{0, 2, 3, 1})
		shape := b.name("i")
		b.m.inits = append(b.m.inits, ints(shape, 0, -1))
		b.add("Reshape", b.x+" "+shape)
	}
	b.dims = []int{n}
}

func (b *builder) dense() {
	k, out := b.dims[0], 1+b.r.IntN(8)
	w, _ := b.weights([]int{out, k})
	i := slices.IndexFunc(b.m.inits, func(t testTensor) bool { return t.name == w })
	switch b.r.IntN(3) {
	case 0:
		attrs := []any{"transB", 1}
		if b.coin() {
			attrs = append(attrs, "alpha", 0.5, "beta", 2.0)
		}
		b.add("Gemm", b.x+" "+w+" "+b.tensor([]int{out}, -1, 0, 0.5), attrs...)
	case 1:
		b.add("Transpose", w, "perm", []int{1, 0})
		b.m.nodes[len(b.m.nodes)-1].in[0] = w
		transposed, x := b.x, b.m.nodes[len(b.m.nodes)-2].out[0]
		b.add("MatMul", x+" "+transposed)
	default:
		a := transpose(array{b.m.inits[i].dims, b.m.inits[i].values}, []int{1, 0})
		b.m.inits[i].dims, b.m.inits[i].values = a.dims, a.v
		b.add("MatMul", b.x+" "+w)
		b.add("Add", b.tensor([]int{out}, -1, 0, 0.5)+" "+b.x)
	}
	b.dims, b.signs = []int{out}, false
}

// TestRandomModels compares imported random networks with the interpreter.
func TestRandomModels(t *testing.T) {
	models := 150
	if testing.Short() {
		models = 30
	}
	for seed := range models {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			b := &builder{r: r, x: "image", dims: []int{1 + r.IntN(4), 7 + r.IntN(4), 7 + r.IntN(4)}, sets: map[string]bool{}}
			b.m.opset = 9 // Pad and Unsqueeze with attributes
			b.m.input = testInput{"image", typeFloat, []any{"batch", b.dims[0], b.dims[1], b.dims[2]}}
			if b.coin() {
				b.m.input.typ = typeUint8
				b.add("Cast", b.x, "to", int(typeFloat))
				b.m.inits = append(b.m.inits, number("offset", 128), number("range", 64))
				b.add("Sub", b.x+" offset")
				b.add("Div", b.x+" range")
			}
			for range 1 + r.IntN(3) {
				if b.coin() {
					b.sign()
				}
				b.conv()
				for range r.IntN(4) {
					switch r.IntN(5) {
					case 0:
						if min(b.dims[1], b.dims[2]) > 2 {
							b.pool()
						}
					case 1:
						b.arithmetic()
					case 2:
						b.add("Relu", b.x)
						b.signs = false
					case 3:
						b.sign()
					default:
						b.norm()
					}
				}
			}
			if b.coin() {
				b.flatten()
				for range 1 + r.IntN(2) {
					if b.coin() {
						b.sign()
					}
					b.dense()
					if b.coin() {
						b.norm()
					} else {
						b.arithmetic()
					}
				}
				if b.coin() {
					b.add("Softmax", b.x, "axis", 1)
				}
			}
			b.m.output = b.x
			compare(t, r, b.m, Options{}, false)
		})
	}
}
