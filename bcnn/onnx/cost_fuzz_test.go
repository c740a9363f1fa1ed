package onnx

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// grower makes a model of a program.
type grower struct {
	program          []byte
	m                testModel
	constant, vector string // the last constant, and the last list of integers
	value            string // the last that is computed
	name             string // of all nodes, unless it is empty
	external         int    // bytes of the file "data"
	nodes            int
}

func (g *grower) next() int {
	if len(g.program) == 0 {
		return 0
	}
	b := g.program[0]
	g.program = g.program[1:]
	return int(b)
}

func (g *grower) choose(n int) int { return g.next() % n }

// dim is a dimension: small, empty or huge.
func (g *grower) dim() int {
	return []int{1, 2, 3, 0, 8, 64, 1 << 10, 1 << 18, 1 << 28}[g.choose(9)]
}

// add appends a node and returns what it writes.
func (g *grower) add(opType, in string, attrs ...any) string {
	g.nodes++
	out := fmt.Sprint("t", g.nodes)
	n := op(opType, in, out, attrs...)
	if g.name != "" {
		n.name = g.name
	}
	g.m.nodes = append(g.m.nodes, n)
	return out
}

func (g *grower) init(t testTensor) string {
	t.name = fmt.Sprint("i", len(g.m.inits))
	g.m.inits = append(g.m.inits, t)
	return t.name
}

func integer(v int) testTensor {
	return testTensor{typ: pb.Int64, dims: []int{}, values: []float64{float64(v)}}
}

// dims makes a list of dimensions.
func (g *grower) dims() string {
	var list []float64
	for range 1 + g.choose(4) {
		list = append(list, float64(g.dim()))
	}
	return g.init(ints("", list...))
}

// grow runs a program of at most 48 instructions, each of which adds up to 256
// nodes.
func grow(program []byte) hostile {
	g := &grower{program: program, constant: "per", vector: "list", value: "x"}
	g.m = testModel{input: image(2, 4, 4), inits: []testTensor{
		number("one", 1), number("zero", 0), number("minus", -1), number("eight", 8), floats("none", []int{0}), ints("list", 1, 0, 1),
		weightsOf("w", 2, 2, 3, 3), weightsOf("per", 2), weightsOf("scale", 2, 1, 1),
	}}
	if d := g.choose(8); d > 4 {
		g.m.input = testInput{"x", pb.Float, []any{1, []int{8, 1 << 10, 1 << 20}[d-5]}}
	}
	for range 48 {
		if len(g.program) == 0 {
			break
		}
		kind, times, from := g.choose(43), 1<<g.choose(9), g.choose(3)
		constant, vector, value := g.constant, g.vector, g.value
		for range times {
			if from == 0 { // a chain, and not a fan
				constant, vector, value = g.constant, g.vector, g.value
			}
			g.instruction(kind, from == 1, constant, vector, value)
		}
	}
	// An Identity reads one input; those behind it are evaluated all the same.
	g.m.output = g.add("Relu", g.add("Identity", strings.Join([]string{g.value, g.constant, g.vector}, " ")))
	return hostile{g.m.encode(), make([]byte, g.external)}
}

// instruction adds nodes that read the given tensors; twice asks for the same
// operand twice.
func (g *grower) instruction(kind int, twice bool, constant, vector, value string) {
	again := constant
	if !twice {
		again = "per"
	}
	switch kind {
	case 40:
		g.fold(constant, again, vector)
	case 41:
		axis := 1 + g.choose(3)
		part := g.add("Slice", value, "axes", []int{axis}, "starts", []int{0}, "ends", []int{1})
		at := ints("", 0, float64(g.choose(3)))
		at.dims = []int{1, 1, 2}
		places := g.add("Expand", g.init(at)+" "+g.init(ints("", 1, float64(g.dim()), 2)))
		if g.choose(2) == 0 {
			places = g.add("ConstantOfShape", g.add("Shape", part), "value", ints("", float64(g.choose(3))))
			g.value = g.add("ScatterElements", value+" "+places+" "+part, "axis", axis)
		} else {
			g.value = g.add("ScatterND", value+" "+places+" "+[]string{part, constant, g.value}[g.choose(3)])
		}
	case 42:
		flat := g.add("Reshape", value+" "+g.init(ints("", 0, 2, -1)))
		flat = g.add("Concat", flat+" "+flat, "axis", 2)
		g.value = g.add("Reshape", g.add("Slice", flat, "axes", []int{2}, "starts", []int{g.dim()}, "ends", []int{1 << 20})+" "+g.init(ints("", 0, 2, float64(g.dim()), -1)))
	case 32:
		mode := []string{"nearest", "linear", "cubic"}[g.choose(3)]
		sizes := g.init(ints("", 1, 2, float64(g.dim()), float64(g.dim())))
		g.value = g.add("Resize", value+" none none "+sizes, "mode", mode, "antialias", g.choose(2))
	case 33:
		pads := g.init(ints("", 0, 0, float64(g.dim()-1), 0, 0, 0, -1, float64(g.dim())))
		g.value = g.add("Pad", value+" "+pads, "mode", []string{"edge", "wrap", "constant", "reflect"}[g.choose(4)])
	case 34:
		g.value = g.add("ConvTranspose", value+" w", "strides", []int{g.dim(), 1}, "dilations", []int{1, g.dim()}, "pads", []int{g.choose(2), 1, 1, g.choose(3)})
	case 35:
		g.value = g.add([]string{"DepthToSpace", "SpaceToDepth"}[g.choose(2)], value, "blocksize", g.dim())
	case 36:
		g.value = g.add("TopK", value+" "+g.init(integer(g.dim())), "axis", 1)
	case 37:
		g.value = g.add("Cast", g.add("ArgMax", value, "axis", 1), "to", int(pb.Float))
	case 38:
		axis := 1 + g.choose(3)
		switch g.choose(12) {
		case 0:
			g.value = g.add("Div", value+" "+g.value)
		case 1:
			g.value = g.add([]string{"Sqrt", "Reciprocal"}[g.choose(2)], value)
		case 2:
			g.value = g.add([]string{"ReduceL1", "ReduceL2", "ReduceSumSquare"}[g.choose(3)], value, "axes", []int{axis}, "keepdims", g.choose(2))
		case 3:
			g.value = g.add("InstanceNormalization", value+" per per")
		case 4:
			g.value = g.add("GroupNormalization", value+" per per", "num_groups", g.dim())
		case 5:
			g.value = g.add([]string{"LayerNormalization", "RMSNormalization"}[g.choose(2)], value+" "+constant, "axis", axis)
		case 6:
			g.value = g.add("Relu", g.add("Softmax", value, "axis", axis))
		case 7:
			g.value = g.add([]string{"LpNormalization", "MeanVarianceNormalization"}[g.choose(2)], value, "axis", axis, "axes", []int{axis})
		case 8:
			g.value = g.add([]string{"ReduceSum", "ReduceMin"}[g.choose(2)], value, "axes", []int{axis, 1 + g.choose(3)}, "keepdims", g.choose(2))
		case 9:
			g.value = g.add("Concat", value+" "+g.value, "axis", g.choose(5))
		case 10:
			g.value = g.add("Expand", value+" "+g.dims())
		case 11:
			g.value = g.add("Split", value, "axis", axis)
		}
	case 39:
		switch g.choose(8) {
		case 0:
			g.value = g.add("MatMul", value+" "+constant)
		case 1:
			g.value = g.add("MatMul", constant+" "+value)
		case 2:
			g.constant = g.add("MatMul", constant+" "+again)
		case 3:
			equation := []string{"nchw,oc->nohw", "nchw,cw->nhcw", "nc,oc->no", "nchw,c->nwhc"}[g.choose(4)]
			g.value = g.add("Einsum", value+" "+constant, "equation", equation)
		case 4: // two values, and weights of two
			c := g.add("Greater", value+" zero")
			two := testTensor{typ: pb.Float, dims: []int{2, 2, 3, 3}, values: make([]float64, 36)}
			for i := range two.values {
				two.values[i] = []float64{0.25, -1.5}[(i*i+i/7)%2]
			}
			g.value = g.add("Conv", g.add("Where", c+" eight minus")+" "+g.init(two), "pads", []int{g.choose(3), 1, 1, 1}, "strides", []int{1 + g.choose(3), 1})
		case 5:
			g.value = g.add("Reshape", value+" "+g.init(ints("", 0, float64(g.dim()), float64(g.dim()), -1)))
		case 6:
			g.value = g.add("Transpose", value, perm(0, 3, 2, 1)...)
		case 7:
			g.value = g.add("Unsqueeze", value, "axes", []int{1 + g.choose(4)})
		}
	case 0:
		g.constant = g.add("Neg", constant)
	case 1:
		g.constant = g.add("Mul", constant+" "+again)
	case 2:
		g.constant = g.add("Pow", again+" "+constant)
	case 3:
		g.constant = g.add("Concat", constant+" "+again, "axis", max(0, g.choose(6)-3))
	case 4:
		k := 1 << g.choose(8)
		g.constant = g.add("Concat", strings.Repeat(constant+" ", k)+again, "axis", max(0, g.choose(6)-3))
	case 5:
		g.constant = g.add("Gather", constant+" "+vector, "axis", max(0, g.choose(6)-3))
	case 6:
		g.vector = g.add("Gather", vector+" "+vector)
	case 7:
		g.vector = g.add("Concat", vector+" "+vector, "axis", 0)
	case 8:
		g.vector = g.add("Shape", value)
	case 9:
		g.vector = g.add("Shape", constant)
	case 10:
		g.vector = g.add("ConstantOfShape", g.init(ints("", float64(g.dim()))), "value", ints("", float64(g.choose(2))))
	case 11:
		g.constant = g.add("ConstantOfShape", g.dims())
	case 12:
		g.constant = g.add("Expand", constant+" "+g.dims())
	case 13:
		switch g.choose(4) {
		case 0:
			g.constant = g.add("Slice", constant, "starts", []int{g.choose(2)}, "ends", []int{g.dim()})
		case 1:
			g.constant = g.add("Slice", fmt.Sprint(constant, " ", g.init(ints("", float64(-g.dim()))), " ",
				g.init(ints("", float64(-g.dim()))), " list ", g.init(ints("", float64(g.choose(5)-2)))))
		case 2:
			g.constant = g.add("Tile", constant+" "+g.dims())
		case 3:
			g.constant = g.add("Split", constant, "axis", g.choose(2))
		}
	case 14:
		g.constant = g.add("Transpose", constant)
	case 15:
		g.constant = g.add("Reshape", constant+" "+g.dims())
	case 16:
		g.constant = g.add("Unsqueeze", constant, "axes", []int{g.choose(3)})
	case 17:
		switch g.choose(4) {
		case 0:
			g.constant = g.add("Squeeze", constant)
		case 1:
			g.constant = g.add("ReduceMean", constant, "keepdims", g.choose(2))
		case 2:
			g.constant = g.add("ReduceMax", constant, "axes", []int{g.choose(2)})
		case 3:
			g.vector = g.add("Range", g.init(integer(0))+" "+g.init(integer(g.dim()))+" "+g.init(integer(g.choose(4))))
		}
	case 18:
		g.constant = g.add("Cast", vector, "to", int(pb.Float))
	case 19:
		g.vector = g.add("Cast", constant, "to", int(pb.Int64))
	case 20:
		g.constant = g.init(weightsOf("", 1+g.choose(8), 1<<g.choose(9)))
	case 21:
		n := 1 << g.choose(12)
		g.external = max(g.external, 4*n)
		g.constant = g.init(testTensor{typ: pb.Float, dims: []int{n}, external: map[string]string{"location": "data"}})
	case 22:
		g.value = g.add("Relu", value)
	case 23:
		g.value = g.add("Add", value+" "+constant)
	case 24:
		g.value = g.add("Add", value+" "+g.value)
	case 25:
		c := g.add([]string{"Greater", "Less", "GreaterOrEqual"}[g.choose(3)], value+" "+constant)
		g.value = g.add("Where", c+" one minus")
	case 26:
		g.value = g.add("Clip", value+" minus one")
	case 27:
		switch g.choose(14) {
		case 12:
			g.value = g.add("qonnx.custom_op.channels_last/Conv", value+" "+constant)
		case 13:
			g.value = g.add("DequantizeLinear", g.add("QuantizeLinear", value+" "+constant)+" "+constant)
		case 10:
			g.value = g.add("qonnx.custom_op.general/MultiThreshold", value+" "+constant, "out_scale", 2.0, "out_bias", -float64(g.choose(2)))
		case 11:
			g.value = g.add("qonnx.custom_op.general/Trunc", value+" one zero eight one "+constant)
		case 5:
			g.value = g.add("onnx.brevitas/Quant", value+" "+constant+" zero eight", "signed", g.choose(2))
		case 6:
			g.value = g.add("Round", value)
		case 7:
			g.value = g.add("Conv", value+" w", "pads", []int{1, 1, 1, 1})
		case 8:
			g.value = g.add("QuantizeLinear", value+" one")
		case 9:
			g.value = g.add("DequantizeLinear", value+" one")
		case 0:
			g.value = g.add("Conv", value+" w per", "pads", []int{1, 1, 1, 1})
		case 1:
			g.value = g.add("BatchNormalization", value+" per per per per")
		case 2:
			g.value = g.add("MaxPool", value, "kernel_shape", []int{1, 1})
		case 3:
			g.value = g.add("Pad", value+" "+vector)
		case 4:
			g.value = g.add("onnx.brevitas/Quant", value+" "+constant+" zero one")
		}
	case 28:
		g.value = g.add("Transpose", value, perm(0, 2, 3, 1)...)
	case 29:
		g.value = g.add("Flatten", value)
	case 30:
		g.name = []string{"", "a", strings.Repeat("b", 300), "/c/Relu"}[g.choose(4)]
	case 31:
		switch g.choose(16) {
		case 0:
			g.value = g.add("Identity", value)
		case 1:
			g.value = g.add("Concat", value+" "+g.value, "axis", 1)
		case 2:
			g.value = g.add("Gather", value+" "+vector, "axis", 1)
		case 8:
			g.value = g.add([]string{"Mul", "Max", "Min"}[g.choose(3)], value+" "+g.value)
		case 9:
			g.value = g.add("Split", value, "axis", 1)
		case 10:
			g.value = g.add("ReduceMean", value, "axes", []int{1 + g.choose(3)}, "keepdims", g.choose(2))
		case 11:
			g.value = g.add("ReduceMax", value, "axes", []int{2, 3})
		case 12:
			g.value = g.add("PRelu", value+" "+constant)
		case 13:
			g.value = g.add("Slice", value, "starts", []int{g.choose(2)}, "ends", []int{g.dim()}, "axes", []int{1 + g.choose(3)})
		case 14:
			g.value = g.add("Reshape", value+" "+g.dims())
		case 15:
			g.value = g.add("AveragePool", value, "kernel_shape", []int{2, 2}, "pads", []int{1, 1, 1, 1})
		case 3, 4:
			g.value = g.add("Sub", value+" "+g.value)
		case 5, 6:
			g.value = g.add("Sign", value)
		case 7:
			g.value = g.add([]string{"Shrink", "Softsign"}[g.choose(2)], value)
		}
	}
}

// fold adds a node that only constants are read by.
func (g *grower) fold(constant, again, vector string) {
	four := func() string {
		return g.add("Reshape", constant+" "+g.init(ints("", 1, float64(g.dim()), float64(g.dim()), -1)))
	}
	switch g.choose(20) {
	case 0:
		g.vector = g.add("NonZero", constant)
	case 1:
		g.constant = g.add("Compress", constant+" "+g.add("Cast", vector, "to", int(pb.Bool)))
	case 2:
		g.constant = g.add("Compress", constant+" "+g.add("Cast", vector, "to", int(pb.Bool)), "axis", g.choose(2))
	case 3:
		g.constant = g.add("Unique", constant)
	case 4:
		g.constant = g.add("Unique", constant, "axis", g.choose(2), "sorted", 0)
	case 5:
		g.constant = g.add("GatherND", constant+" "+g.add("Unsqueeze", vector, "axes", []int{1}))
	case 6:
		g.constant = g.add("GatherND", constant+" "+g.add("Transpose", g.add("NonZero", again)), "batch_dims", g.choose(2))
	case 7:
		g.constant = g.add("Trilu", constant+" "+g.init(integer(g.dim()-64)), "upper", g.choose(2))
	case 8:
		g.constant = g.add("EyeLike", constant, "k", g.dim())
	case 9:
		g.constant = g.add("ReverseSequence", constant+" "+vector, "batch_axis", g.choose(2), "time_axis", g.choose(2))
	case 10:
		g.constant = g.add("Pad", constant+" "+g.init(ints("", float64(g.dim()-1), 0, 1, float64(g.dim()))), "mode", []string{"edge", "wrap", "constant", "reflect"}[g.choose(4)])
	case 11:
		g.constant = g.add("Einsum", constant+" "+again, "equation", []string{"ij,jk->ik", "ij,kl->", "i,j->ij", "ij,ij", "...i,...i", "ii,jj->ij"}[g.choose(6)])
	case 12:
		g.constant = g.add("Gemm", constant+" "+again, "transA", g.choose(2), "transB", g.choose(2), "alpha", 0.5)
	case 13:
		g.constant = g.add("Conv", four()+" w", "pads", []int{g.dim(), 1, 1, g.choose(3)}, "strides", []int{1 + g.choose(2), g.dim()}, "dilations", []int{1, g.dim()})
	case 14:
		g.constant = g.add([]string{"MaxPool", "AveragePool"}[g.choose(2)], four(), "kernel_shape", []int{g.dim(), 1 + g.choose(3)}, "pads", []int{g.choose(3), 1, 1, 1})
	case 15:
		g.constant = g.add([]string{"Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "GlobalMaxPool"}[g.choose(5)], constant)
	case 16:
		g.constant = g.add([]string{"Elu", "Gelu", "Mish", "Shrink", "IsNaN", "Tan"}[g.choose(6)], constant)
	case 17:
		bits := g.add("Cast", vector, "to", int(pb.Uint8))
		g.vector = g.add("Cast", g.add("BitShift", bits+" "+bits, "direction", "LEFT"), "to", int(pb.Int64))
	case 18:
		g.constant = g.add([]string{"DepthToSpace", "SpaceToDepth"}[g.choose(2)], four(), "blocksize", g.dim())
	case 19:
		sizes := g.init(ints("", float64(g.dim()), float64(g.dim())))
		g.constant = g.add([]string{"CenterCropPad", "PRelu", "ScatterND"}[g.choose(3)], constant+" "+[]string{sizes, again}[g.choose(2)])
	}
}
