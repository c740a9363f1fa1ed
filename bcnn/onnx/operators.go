package onnx

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// handlers are the functions that import operators, by domain and name.
var handlers = map[string]map[string]func(*importer, *pb.Node) build.Operand{}

// constantsOnly are the operators that are evaluated on constants and have no layer.
var constantsOnly = map[string]bool{}

func init() {
	onnx := map[string]func(*importer, *pb.Node) build.Operand{
		"ArgMax":                    (*importer).argMax,
		"ArgMin":                    (*importer).argMax,
		"AveragePool":               poolAcross(poolVolumes(arranged(alongRows((*importer).averagePool)))),
		"BatchNormalization":        (*importer).batchNorm,
		"Cast":                      (*importer).castNode,
		"CastLike":                  (*importer).castLike,
		"Celu":                      (*importer).elu,
		"Clip":                      (*importer).clipNode,
		"Col2Im":                    (*importer).col2im,
		"Concat":                    (*importer).concat,
		"ConcatFromSequence":        (*importer).concatFromSequence,
		"Constant":                  (*importer).constantNode,
		"ConstantOfShape":           (*importer).constantOfShape,
		"Conv":                      arranged(acrossChannels(alongRows((*importer).conv))),
		"ConvTranspose":             arranged(alongRows((*importer).convTranspose)),
		"CumSum":                    (*importer).cumSum,
		"DepthToSpace":              arranged((*importer).depthToSpace),
		"DequantizeLinear":          (*importer).dequantizeLinear,
		"Dropout":                   (*importer).identity,
		"Einsum":                    (*importer).einsum,
		"Elu":                       (*importer).elu,
		"Expand":                    (*importer).expand,
		"Flatten":                   (*importer).flatten,
		"Gather":                    (*importer).gather,
		"GatherElements":            (*importer).gatherElements,
		"GatherND":                  (*importer).gatherND,
		"Gelu":                      (*importer).gelu,
		"Gemm":                      (*importer).gemm,
		"GlobalAveragePool":         arranged(alongRows((*importer).globalAveragePool)),
		"GlobalMaxPool":             arranged(alongRows((*importer).globalMaxPool)),
		"GroupNormalization":        (*importer).norm,
		"HardSigmoid":               (*importer).hardSigmoid,
		"HardSwish":                 (*importer).functionNode,
		"Identity":                  (*importer).identity,
		"If":                        (*importer).ifNode,
		"InstanceNormalization":     (*importer).norm,
		"LayerNormalization":        (*importer).norm,
		"LeakyRelu":                 (*importer).leakyRelu,
		"LRN":                       (*importer).lrn,
		"LogSoftmax":                (*importer).softmax,
		"LpNormalization":           (*importer).lpNormalization,
		"MatMul":                    (*importer).matMul,
		"MaxPool":                   poolVolumes(arranged(alongRows((*importer).maxPool))),
		"Mean":                      (*importer).meanNode,
		"MeanVarianceNormalization": (*importer).meanVariance,
		"Mish":                      (*importer).functionNode,
		"Pad":                       (*importer).padNode,
		"OneHot":                    (*importer).oneHot,
		"PRelu":                     (*importer).prelu,
		"QuantizeLinear":            (*importer).quantizeLinear,
		"RMSNormalization":          (*importer).norm,
		"Range":                     (*importer).rangeNode,
		"Reshape":                   (*importer).reshape,
		"Resize":                    channelsBehind(arranged(alongRows((*importer).resize))),
		"Scatter":                   (*importer).scatter,
		"ScatterElements":           (*importer).scatter,
		"ScatterND":                 (*importer).scatter,
		"Selu":                      (*importer).elu,
		"SequenceAt":                (*importer).sequenceAt,
		"SequenceConstruct":         (*importer).sequenceConstruct,
		"SequenceEmpty":             (*importer).sequenceEmpty,
		"SequenceErase":             (*importer).sequenceErase,
		"SequenceInsert":            (*importer).sequenceInsert,
		"SequenceLength":            (*importer).sequenceLength,
		"Shape":                     (*importer).shape,
		"Shrink":                    (*importer).shrink,
		"Size":                      (*importer).size,
		"Slice":                     (*importer).slice,
		"Softmax":                   (*importer).softmax,
		"Softplus":                  (*importer).functionNode,
		"Softsign":                  (*importer).softsign,
		"SpaceToDepth":              arranged((*importer).spaceToDepth),
		"Split":                     (*importer).split,
		"SplitToSequence":           (*importer).splitToSequence,
		"Squeeze":                   func(im *importer, n *pb.Node) build.Operand { return im.squeeze(n, false) },
		"Sum":                       (*importer).sumNode,
		"Swish":                     (*importer).swish,
		"ThresholdedRelu":           (*importer).thresholdedRelu,
		"Tile":                      (*importer).tile,
		"TopK":                      (*importer).topK,
		"Transpose":                 (*importer).transpose,
		"Unsqueeze":                 func(im *importer, n *pb.Node) build.Operand { return im.squeeze(n, true) },
		"Upsample":                  channelsBehind(arranged(alongRows((*importer).resize))),
		"Where":                     (*importer).whereNode,
	}
	for op := range eval.UnaryOps {
		onnx[op] = (*importer).unaryNode
	}
	for _, op := range eval.Reductions() {
		onnx[op] = (*importer).reduce
	}
	for op := range eval.BinaryOps {
		if eval.Logical(op) {
			onnx[op] = (*importer).compare
		} else {
			onnx[op] = (*importer).arithmetic
		}
	}
	delete(onnx, "BipolarQuant")
	delete(onnx, "FMod")
	for op := range folds {
		constantsOnly[op] = onnx[op] == nil
		onnx[op] = orFolded(op, onnx[op])
	}
	qonnx := map[string]func(*importer, *pb.Node) build.Operand{
		"BipolarQuant":   (*importer).bipolarQuant,
		"Im2Col":         (*importer).im2col,
		"IntQuant":       (*importer).quantNode,
		"MultiThreshold": (*importer).multiThreshold,
		"Quant":          (*importer).quantNode,
		"Trunc":          (*importer).truncNode,
	}
	handlers[""] = onnx
	for _, domain := range []string{"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"} {
		handlers[domain] = qonnx
	}
	last := map[string]func(*importer, *pb.Node) build.Operand{}
	for _, op := range []string{"BatchNormalization", "Conv", "MaxPool"} {
		last[op] = channelsLast(onnx[op])
	}
	handlers["qonnx.custom_op.channels_last"] = last
	handlers[contrib] = map[string]func(*importer, *pb.Node) build.Operand{
		"DequantizeLinear": onnx["DequantizeLinear"], "QuantizeLinear": onnx["QuantizeLinear"],
	}
	handlers["org.openvinotoolkit"] = map[string]func(*importer, *pb.Node) build.Operand{"FakeQuantize": (*importer).fakeQuantize}
	handlers["bitcnn"] = map[string]func(*importer, *pb.Node) build.Operand{"Binarize": (*importer).binarize}
}

// unsupported returns why a node cannot be imported whose operator has no handler.
func (im *importer) unsupported(n *pb.Node) error {
	constants := func() bool { _, ok := im.constants(n); return ok }
	if folded, err := try.Do(constants); err == nil && folded && len(n.Inputs) > 0 {
		return errNotFolded
	}
	return errUnsupported
}

// node imports a node. If no layer can be made of it, its outputs become holes, see build.Obstacle.
// An error ends the import.
func (im *importer) node(n *pb.Node) error {
	if err := im.budget.Charge(nodeUnits); err != nil {
		return err
	}
	handler := handlers[n.Domain][n.OpType]
	switch {
	case len(im.model.Functions) > 0 && im.model.Functions[n.Operator()]:
		return im.hole(n, errFunction)
	case handler == nil || constantsOnly[n.OpType] && im.blind(n):
		return im.hole(n, im.unsupported(n))
	case im.blind(n):
		return im.hole(n, nil)
	}
	r, err := build.Operand{}, im.checkTypes(n)
	if err == nil {
		r, err = try.DoSafely(func() build.Operand {
			n.Follow()
			r := im.imported(n, handler)
			if r.Value == nil || !r.Value.Hole {
				im.checkRead(n)
			}
			return r
		})
	}
	if over := im.build.Err(); over != nil { // the cause of other errors
		return over
	}
	if over := im.budget.Charge(0); over != nil {
		return over
	}
	if errors.Is(err, try.ErrPanic) {
		return err
	}
	if err != nil {
		if im.unsure(n) {
			err = nil
		} else if errors.Is(err, errConstant) && errors.Is(im.unsupported(n), errNotFolded) {
			err = errNotFolded
		}
		return im.hole(n, err)
	}
	im.folded[n.Index] = r.Constant != nil
	im.env[n.Outputs[0]] = r
	return nil
}

// imported returns the first output of a node, and sets the others.
func (im *importer) imported(n *pb.Node, handler handler) build.Operand {
	if r, ok := im.ofDistances(n); ok {
		return r
	}
	if r, ok := im.apart(n); ok {
		return r
	}
	if r, ok := im.ofBatch(n); ok {
		return r
	}
	if r, ok := im.ofRows(n, handler); ok {
		return r
	}
	if r, ok := im.ofIntegers(n, handler); ok {
		return r
	}
	return im.inFloat(n, handler)
}
