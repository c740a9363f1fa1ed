package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

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

// foldKinds are hostile files for what is evaluated on constants: many results of one.
func foldKinds() []kind {
	few := weightsOf("c", 1<<6, 1<<6)
	of := func(name, ends string, nodes func(to string) []testNode, inits ...testTensor) kind {
		return kind{name, 3, models(func(n int) testModel {
			m := reach(n, func(_ int, to string) []testNode { return nodes(to) }, append(inits, few)...)
			m.opset = 20
			return m
		}), ends}
	}
	single := func(opType, in string, attrs ...any) func(to string) []testNode {
		return func(to string) []testNode { return []testNode{op(opType, in, to, attrs...)} }
	}
	image := weightsOf("i", 1, 4, 32, 32)
	return []kind{
		of("NonZero of one constant", "", single("NonZero", "c")),
		of("Unique of one constant", exceeds, single("Unique", "c")),
		of("GatherND of one constant", exceeds, single("GatherND", "c at"), testTensor{name: "at", typ: pb.Int64, dims: []int{1 << 10, 1}, values: make([]float64, 1<<10)}),
		of("Trilu of one constant", "", single("Trilu", "c")),
		of("Pad of one constant", exceeds, single("Pad", "c by"), ints("by", 0, 0, 1<<20, 0)),
		of("Einsum of one constant", exceeds, single("Einsum", "c c", "equation", "ij,kl->")),
		of("Gemm of one constant", exceeds, single("Gemm", "c c")),
		of("Conv of one constant", exceeds, single("Conv", "i w"), image, weightsOf("w", 16, 4, 3, 3)),
		of("MaxPool of one constant", exceeds, single("MaxPool", "i", "kernel_shape", []int{9, 9}), image),
		of("Softmax of one constant", "", single("Softmax", "c")),
	}
}
