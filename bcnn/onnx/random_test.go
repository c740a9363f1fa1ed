package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

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

func (b *builder) weightsOf(dims []int) (name string, binary bool) {
	switch b.r.IntN(6) {
	case 4:
		return b.tensor(dims, -1, 0, 1), false
	case 5:
		return b.tensor(dims, -1, -0.5, 0, 0.5), false
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
	w, binary := b.weightsOf([]int{out, c / groups, k[0], k[1]})
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

// channels joins, picks or mixes channels; ±1 values stay such.
func (b *builder) channels() {
	c := b.dims[0]
	switch b.r.IntN(3) {
	case 0:
		if c <= 8 {
			b.add("Concat", b.x+" "+b.x, "axis", 1)
			b.dims = []int{2 * c, b.dims[1], b.dims[2]}
		}
	case 1:
		lo := b.r.IntN(c)
		b.add("Slice", b.x, "starts", []int{lo, 0}, "ends", []int{c, 1 << 30}, "axes", []int{1, 3})
		b.dims = []int{c - lo, b.dims[1], b.dims[2]}
	case 2:
		if c%2 == 0 {
			shapes := []string{b.name("shape"), b.name("shape")}
			b.m.inits = append(b.m.inits, ints(shapes[0], 0, 2, float64(c/2), float64(b.dims[1]), float64(b.dims[2])),
				ints(shapes[1], 0, float64(c), float64(b.dims[1]), float64(b.dims[2])))
			b.add("Reshape", b.x+" "+shapes[0])
			b.add("Transpose", b.x, perm(0, 2, 1, 3, 4)...)
			b.add("Reshape", b.x+" "+shapes[1])
		}
	}
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

// levels are a few whole numbers, or halves of them, of a value.
func (b *builder) levels() {
	b.signs = false
	scale := randoms(b.r, 1, 0.5, 1, 2)[0]
	switch b.r.IntN(4) {
	case 0:
		b.add("Sign", b.x)
	case 1:
		width, signed := float64(2+b.r.IntN(3)), b.r.IntN(2)
		b.add("onnx.brevitas/Quant", fmt.Sprintf("%s %s %s %s", b.x, b.tensor([]int{}, scale), b.tensor([]int{}, 0), b.tensor([]int{}, width)),
			"signed", signed, "narrow", b.r.IntN(2))
	case 2:
		b.add("Clip", b.x, "min", -float64(b.r.IntN(3)), "max", float64(1+b.r.IntN(4)))
		b.add([]string{"Round", "Floor", "Ceil"}[b.r.IntN(3)], b.x)
		b.add("Mul", b.x+" "+b.tensor([]int{}, scale))
	case 3:
		zero := testTensor{name: b.name("w"), typ: pb.Uint8, dims: []int{}, values: []float64{float64(b.r.IntN(4))}}
		b.m.inits = append(b.m.inits, zero)
		by := " " + b.tensor([]int{}, scale) + " " + zero.name
		b.add("QuantizeLinear", b.x+by)
		b.add("Clip", b.x, "min", 0.0, "max", float64(2+b.r.IntN(4)))
		b.add("DequantizeLinear", b.x+by)
	}
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
		b.m.inits = append(b.m.inits, testTensor{name: zero, typ: pb.Int64, dims: []int{}, values: []float64{0}}, ints(minus, -1))
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
	w, _ := b.weightsOf([]int{out, k})
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
			b.m.input = testInput{"image", pb.Float, []any{"batch", b.dims[0], b.dims[1], b.dims[2]}}
			if b.coin() {
				b.m.input.typ = pb.Uint8
				b.add("Cast", b.x, "to", int(pb.Float))
				b.m.inits = append(b.m.inits, number("offset", 128), number("range", 64))
				b.add("Sub", b.x+" offset")
				b.add("Div", b.x+" range")
			}
			for range 1 + r.IntN(3) {
				switch r.IntN(4) {
				case 0, 1:
					b.sign()
				case 2:
					b.levels()
				}
				b.conv()
				for range r.IntN(4) {
					switch r.IntN(8) {
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
					case 4:
						b.channels()
					case 5:
						b.add("Clip", b.x, "min", -float64(r.IntN(3)), "max", float64(1+r.IntN(6)))
						b.signs = false
					default:
						b.norm()
					}
				}
			}
			if b.coin() {
				b.flatten()
				for range 1 + r.IntN(2) {
					switch r.IntN(4) {
					case 0, 1:
						b.sign()
					case 2:
						b.levels()
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
