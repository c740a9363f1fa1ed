package onnx

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// usual are nodes of the operators that have attributes, as newest operator sets have them, with the
// attributes that they must have. usualGraph has what they read.
var usual = map[string]testNode{
	"ArgMax": op("ArgMax", "x", "y", "axis", 1), "ArgMin": op("ArgMin", "x", "y", "axis", 1),
	"AveragePool":        op("AveragePool", "x", "y", "kernel_shape", []int{2, 2}),
	"BatchNormalization": op("BatchNormalization", "x ones ones ones ones", "y"),
	"BitShift":           op("BitShift", "u8 ones8", "y", "direction", "LEFT"),
	"Cast":               op("Cast", "x", "y", "to", int(pb.Float)), "CastLike": op("CastLike", "x w", "y"),
	"Celu": op("Celu", "x", "y"), "CenterCropPad": op("CenterCropPad", "w sizes", "y"), "Clip": op("Clip", "x", "y"),
	"Col2Im":   op("Col2Im", "wide image block", "y"),
	"Compress": op("Compress", "w truth", "y"), "Concat": op("Concat", "x x", "y", "axis", 1),
	"ConcatFromSequence": op("ConcatFromSequence", "parts", "y", "axis", 1), "Constant": op("Constant", "", "y", "value_float", 0.5),
	"ConstantOfShape": op("ConstantOfShape", "sizes", "y"), "Conv": op("Conv", "x w", "y"), "ConvTranspose": op("ConvTranspose", "x w", "y"),
	"CumSum": op("CumSum", "w i0", "y"), "DepthToSpace": op("DepthToSpace", "x", "y", "blocksize", 2),
	"DequantizeLinear": op("DequantizeLinear", "u8 half", "y"), "Dropout": op("Dropout", "x", "y"),
	"Einsum": op("Einsum", "m m", "y", "equation", "ij,jk->ik"), "Elu": op("Elu", "x", "y"), "EyeLike": op("EyeLike", "m", "y"),
	"Flatten": op("Flatten", "x", "y"), "Gather": op("Gather", "x one", "y", "axis", 1), "GatherElements": op("GatherElements", "m places", "y"),
	"GatherND": op("GatherND", "m pairs", "y"), "Gelu": op("Gelu", "x", "y"), "Gemm": op("Gemm", "m m m", "y"),
	"GroupNormalization": op("GroupNormalization", "x pair pair", "y", "num_groups", 2), "HardSigmoid": op("HardSigmoid", "x", "y"),
	"Hardmax": op("Hardmax", "m", "y"), "If": op("If", "true", "y", "then_branch", testModel{nodes: []testNode{op("Relu", "x", "t")}, output: "t"}),
	"InstanceNormalization": op("InstanceNormalization", "x ones ones", "y"), "IsInf": op("IsInf", "m", "y"), "LRN": op("LRN", "x", "y", "size", 3),
	"LayerNormalization": op("LayerNormalization", "x ones", "y"), "LeakyRelu": op("LeakyRelu", "x", "y"), "LogSoftmax": op("LogSoftmax", "m", "y"),
	"LpNormalization": op("LpNormalization", "x", "y", "axis", 1), "MaxPool": op("MaxPool", "x", "y", "kernel_shape", []int{2, 2}), "Mean": op("Mean", "x x", "y"),
	"MeanVarianceNormalization": op("MeanVarianceNormalization", "x", "y", "axes", []int{1, 2, 3}), "Mod": op("Mod", "lengths last", "y"),
	"OneHot": op("OneHot", "one last pair", "y"), "PRelu": op("PRelu", "x half", "y"), "Pad": op("Pad", "x pads", "y"),
	"QuantizeLinear": op("QuantizeLinear", "m half", "y"), "RMSNormalization": op("RMSNormalization", "x ones", "y"), "Range": op("Range", "i0 i4 i1", "y"),
	"Reshape": op("Reshape", "m flat", "y"), "Resize": op("Resize", "x _ scales", "y"), "ReverseSequence": op("ReverseSequence", "m lengths", "y"),
	"Scatter": op("Scatter", "m places m", "y"), "ScatterElements": op("ScatterElements", "m places m", "y"), "ScatterND": op("ScatterND", "m pairs m", "y"),
	"Selu": op("Selu", "x", "y"), "SequenceEmpty": op("SequenceEmpty", "", "y"), "Shape": op("Shape", "x", "y"), "Shrink": op("Shrink", "x", "y"),
	"Slice": op("Slice", "x first last one", "y"), "Softmax": op("Softmax", "m", "y"), "SpaceToDepth": op("SpaceToDepth", "x", "y", "blocksize", 2),
	"Split": op("Split", "x", "y y1", "axis", 1), "SplitToSequence": op("SplitToSequence", "x", "y", "axis", 1), "Squeeze": op("Squeeze", "thin", "y"),
	"Sum": op("Sum", "x x", "y"), "Swish": op("Swish", "x", "y"), "ThresholdedRelu": op("ThresholdedRelu", "x", "y"), "TopK": op("TopK", "x one", "y", "axis", 1),
	"Transpose": op("Transpose", "m", "y"), "Trilu": op("Trilu", "m", "y"), "Unique": op("Unique", "m", "y"), "Unsqueeze": op("Unsqueeze", "m first", "y"),
	"Upsample":                        op("Upsample", "x scales", "y"),
	generalDomain + ".Quant":          op(generalDomain+"/Quant", "x half zero four", "y"),
	generalDomain + ".IntQuant":       op(generalDomain+"/IntQuant", "x half zero four", "y"),
	generalDomain + ".MultiThreshold": op(generalDomain+"/MultiThreshold", "x thresholds", "y"),
	generalDomain + ".Trunc":          op(generalDomain+"/Trunc", "levels half zero eight half two", "y"),
	generalDomain + ".Im2Col":         op(generalDomain+"/Im2Col", "nhwc", "y", "kernel_size", []int{2, 2}, "stride", []int{1, 1}),
}

// early are nodes of operators whose parameters were attributes before an operator set.
var early = map[string]struct {
	opset int64 // the first one that has usual
	node  testNode
}{
	"Pad":    {11, op("Pad", "x", "y", "pads", []int{0, 0, 1, 1, 0, 0, 1, 1})},
	"Resize": {11, op("Resize", "x scales", "y")}, "Slice": {10, op("Slice", "x", "y", "axes", []int{1}, "starts", []int{0}, "ends", []int{2})},
	"TopK": {10, op("TopK", "x", "y", "k", 1, "axis", 1)}, "Unsqueeze": {13, op("Unsqueeze", "m", "y", "axes", []int{0})},
	"Upsample": {9, op("Upsample", "x", "y", "scales", []float64{1, 1, 2, 2})}, "Gemm": {11, op("Gemm", "m m m", "y")},
	"Split": {13, op("Split", "x", "y y1", "axis", 1)},
}

// unread are the attributes that no handler reads. They are an error unless they are at their
// default or immaterial.
var unread = []string{
	"Constant.sparse_value", "Constant.value_strings",
	"GroupNormalization.stash_type", "Im2Col.depthwise", "LayerNormalization.stash_type", "RMSNormalization.stash_type", "Range.stash_type",
}

// usualGraph returns a graph whose last node is n, with the tensors that usual nodes read.
func usualGraph(opset int64, n testNode) testModel {
	i64 := func(name string, dims []int, v ...float64) testTensor {
		return testTensor{name: name, typ: pb.Int64, dims: dims, values: v}
	}
	square := []float64{1, -1, 0.5, 1, 0.25, -1, -1, 1, 3, 1, -1, -1, 1, 2, 1, 1}
	return testModel{opset: opset, input: testInput{"x", pb.Float, []any{1, 4, 4, 4}}, output: "y", inits: []testTensor{
		floats("w", []int{4, 4, 1, 1}, square...), floats("m", []int{4, 4}, square...), floats("rows", []int{4, 4, 4}, slices.Repeat(square, 4)...),
		floats("ones", []int{4}, 1, 1, 1, 1), floats("pair", []int{2}, 1, 2), floats("scales", []int{4}, 1, 1, 2, 2), floats("thin", []int{4, 1}, 1, 2, 3, 4),
		floats("thresholds", []int{4, 2}, 0, 1, 0, 1, 0, 2, 0, 1),
		number("half", 0.5), number("zero", 0), number("two", 2), number("four", 4), number("eight", 8),
		{name: "u8", typ: pb.Uint8, dims: []int{4, 4}, values: []float64{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 1}},
		{name: "ones8", typ: pb.Uint8, dims: []int{}, values: []float64{1}}, ints("windows", 0, 4, 16),
		{name: "truth", typ: pb.Bool, dims: []int{4}, values: []float64{1, 0, 1, 1}}, {name: "true", typ: pb.Bool, dims: []int{}, values: []float64{1}},
		ints("sizes", 4, 4, 4, 4), ints("first", 0), ints("one", 1), ints("last", 4), ints("flat", -1), ints("lengths", 1, 2, 3, 4), ints("pads", 0, 0, 1, 1, 0, 0, 1, 1), ints("block", 1, 1), ints("image", 4, 4),
		i64("places", []int{4, 4}, make([]float64, 16)...), i64("pairs", []int{4, 1}, 0, 1, 2, 3), i64("i0", []int{}, 0), i64("i1", []int{}, 1), i64("i4", []int{}, 4),
	}, nodes: []testNode{
		op("Transpose", "x", "nhwc", "perm", []int{0, 2, 3, 1}), op("SplitToSequence", "x", "parts", "axis", 1, "keepdims", 1),
		op(generalDomain+"/Quant", "x half zero four", "levels", "signed", 1, "narrow", 0), op("Reshape", "x windows", "wide"), n,
	}}
}

// importLast imports a graph up to its last node, and that without a check of what it reads.
func importLast(t *testing.T, m testModel) (*pb.Node, error) {
	t.Helper()
	s := &source{}
	require.NoError(t, s.begin(t.Context(), bcnn.Limits{}))
	model, err := pb.Decode(m.encode(), s.budget)
	require.NoError(t, err)
	im := newImporter(model, Options{}, s)
	layouts, err := inputLayouts(s.eval, model.Graph, Options{})
	require.NoError(t, err)
	require.NoError(t, im.begin(0, layouts[0][0]))
	nodes := model.Graph.Nodes
	for _, n := range nodes[:len(nodes)-1] {
		require.NoError(t, im.node(n))
	}
	n := nodes[len(nodes)-1]
	n.Follow()
	err = try.Run(func() { im.imported(n, handlers[n.Domain][n.OpType]) })
	return n, err
}

// TestAttributes has every attribute of every operator, in every operator set that changed them: it
// is read, known to change nothing, or an error unless it is at its default.
func TestAttributes(t *testing.T) {
	values := map[int64][]any{
		pb.AttrFloat: {0.375}, pb.AttrInt: {1, 0, 2}, pb.AttrString: {"A"}, pb.AttrInts: {[]int{1, 1}, []int{1}, []int{0, 0, 1, 1}}, pb.AttrFloats: {[]float64{1, 1, 2, 2}},
		pb.AttrTensor: {floats("v", []int{1}, 2)}, pb.AttrGraph: {testModel{nodes: []testNode{op("Relu", "x", "t")}, output: "t"}},
	}
	found := map[string]bool{}
	for name, versions := range signatures() {
		domain, opType := "", name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			domain, opType = name[:i], name[i+1:]
		}
		if handlers[domain][opType] == nil {
			continue
		}
		for i, s := range versions {
			to := newestOpset()
			if i+1 < len(versions) {
				to = versions[i+1].since - 1
			}
			if to < 7 || len(s.attributes) == 0 {
				continue
			}
			base, ok := usual[name]
			if strings.HasPrefix(name, "Reduce") {
				base, ok = op(name, "m", "y"), true
			}
			require.True(t, ok, "%s has attributes, but no node to try them", name)
			if e := early[name]; to < e.opset {
				base = e.node
			}
			if domain == "" {
				_, err := importLast(t, usualGraph(to, base))
				assert.NoError(t, err, "%s in operator set %d", name, to)
			}
			for _, a := range s.attributes {
				read := false
				for _, v := range values[a.typ] {
					n := base
					n.attrs = map[string]any{a.name: v}
					for k, v := range base.attrs {
						if k != a.name && opType != "Constant" { // which has one
							n.attrs[k] = v
						}
					}
					last, _ := importLast(t, usualGraph(to, n))
					attributes, _ := last.Unread()
					read = read || !slices.ContainsFunc(attributes, func(u *pb.Attribute) bool { return u.Name == a.name })
				}
				if !read && immaterial[opType+"."+a.name] == "" {
					found[opType+"."+a.name] = true
				}
			}
		}
	}
	var list []string
	for name := range found {
		list = append(list, name)
	}
	slices.Sort(list)
	require.Equal(t, unread, list)
}

// TestUnread has attributes and inputs that a handler does not read, wherever a node may stand.
func TestUnread(t *testing.T) {
	bytes := testTensor{name: "b", typ: pb.Uint8, dims: []int{}, values: []float64{0}}
	branch := func(n testNode) testModel { return testModel{nodes: []testNode{n}, output: "t"} }
	for _, c := range []struct {
		name  string
		nodes []testNode
		want  string // "" for none
	}{
		{"an attribute of no schema", []testNode{op("Relu", "x", "y", "slope", 0.5)}, `attribute "slope" is not one that the operator has in operator set 21`},
		{"on constants", []testNode{op("Softmax", "w", "v", "axes", []int{1}), op("Conv", "x v", "y")}, `attribute "axes" is not one`},
		{"of another domain", []testNode{op(generalDomain+"/BipolarQuant", "x one", "y", "signed", 1)}, `attribute "signed" is not one`},
		{"in a branch", []testNode{op("Equal", "one one", "c"), op("If", "c", "y", "then_branch", branch(op("Relu", "x", "t", "slope", 0.5)))}, `attribute "slope"`},
		{"in a branch that is not taken", []testNode{op("Equal", "one one", "c"), op("If", "c", "y", "then_branch", branch(op("Relu", "x", "t")), "else_branch", branch(op("Relu", "x", "t", "slope", 0.5)))}, ""},
		{"not at its default", []testNode{op("LayerNormalization", "x row", "y", "stash_type", int(pb.Double))}, `attribute "stash_type" is not read here: only 1 is supported`},
		{"at its default", []testNode{op("LayerNormalization", "x row", "y", "stash_type", int(pb.Float))}, ""},
		{"immaterial", []testNode{op("MaxPool", "x", "y", "kernel_shape", []int{2, 2}, "storage_order", 1)}, ""},
		{"of a later operator set", []testNode{op("QuantizeLinear", "x one b", "q", "precision", 0), op("DequantizeLinear", "q one b", "y")}, ""},
		{"an input too many", []testNode{op("Identity", "x one", "y")}, `input 1 ("one") is not read here`},
		{"an input too many on constants", []testNode{op("Pad", "w pads one axes one", "v"), op("Conv", "x v", "y")}, `input 4 ("one") is not read here`},
		{"an optional input that a copy of the node reads", []testNode{op("Clip", "x _ one", "a"), op("Conv", "a w bias", "y")}, ""},
		{"another type than the zero point's", []testNode{op("QuantizeLinear", "x one b", "q", "output_dtype", int(pb.Int8)), op("DequantizeLinear", "q one b", "y")}, "output_dtype is INT8, but the zero point is UINT8"},
		{"a precision", []testNode{op("QuantizeLinear", "x one b", "q", "precision", int(pb.Float16)), op("DequantizeLinear", "q one b", "y")}, "precision is FLOAT16, which is not supported, want FLOAT"},
		{"as many parts as it says", []testNode{op("Split", "x", "a b1", "axis", 2, "num_outputs", 3), op("Add", "a b1", "y")}, "num_outputs is 3, but it has 2 outputs"},
		{"neither yes nor no", []testNode{op("ReduceMax", "x axes", "y", "keepdims", 2)}, `attribute "keepdims" is 2, want 0 or 1`},
		{"scales of images", []testNode{op("QuantizeLinear", "x one b", "q"), op("DequantizeLinear", "q row b", "y", "axis", 0)}, "its axis is the batch: want one scale for all images"},
		{"another kernel than its weights", []testNode{op("ConvTranspose", "x w", "y", "kernel_shape", []int{3, 3})}, "kernel_shape is [3 3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := testModel{opset: 21, input: image(3, 4, 4), output: "y", nodes: c.nodes, inits: []testTensor{
				number("one", 1), bytes, floats("w", []int{3, 3, 1, 1}, 1, -1, 1, 1, 1, -1, -1, 1, 1), floats("bias", []int{3}, 1, 2, 3), floats("row", []int{4}, 1, 1, 1, 1), ints("pads", 0, 0), ints("axes", 0),
			}}
			_, _, err := Decode(t.Context(), m.encode(), Options{})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestImmaterial holds the list against the schemas: what they do not have needs no reason.
func TestImmaterial(t *testing.T) {
	for name, why := range immaterial {
		require.NotEmpty(t, why)
		at := strings.IndexAny(name, "./")
		opType, rest := name[:at], name[at+1:]
		versions := append(signatures()[opType], signatures()[generalDomain+"."+opType]...)
		require.True(t, slices.ContainsFunc(versions, func(s signature) bool {
			if name[at] == '/' {
				return rest == strconv.Itoa(min(1, len(s.inputs)-1)) // all in the list are second ones
			}
			return slices.ContainsFunc(s.attributes, func(a attribute) bool { return a.name == rest })
		}), name)
	}
}

// A model of an operator set that nobody here has seen may mean something else, which is said, and
// operators that a file defines itself anything.
func TestWhatIsNotKnown(t *testing.T) {
	m := testModel{opset: newestOpset(), input: image(3, 4, 4), output: "y", nodes: []testNode{op("Relu", "x", "y")}}
	_, report, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	require.Empty(t, report.Deviations)
	function := message(message(nil, 1, []byte("Relu")), 10, []byte("ai.onnx"))
	_, _, err = Decode(t.Context(), message(m.encode(), 25, function), Options{})
	require.ErrorContains(t, err, "(Relu, index 0): the file defines this operator itself, as a function; put the operators of the function in its place, with onnx.inliner.inline_local_functions")
	function = message(message(nil, 1, []byte("Relu")), 10, []byte("another"))
	_, _, err = Decode(t.Context(), message(m.encode(), 25, function), Options{})
	require.NoError(t, err)
	m.opset++
	net, report, err := Decode(t.Context(), m.encode(), Options{})
	require.NoError(t, err)
	require.Equal(t, report.Deviations, net.Deviations)
	require.Equal(t, []string{"its operator set, 29, is newer than the newest one known here, 28, as which its operators are read: " +
		"if one of them has changed since then, the results are wrong; opset_version=28 of the exporter, or onnx.version_converter, makes sure"}, net.Deviations)
	m.nodes = []testNode{op("Relu", "x", "y", "novel", 1)}
	_, _, err = Decode(t.Context(), m.encode(), Options{})
	require.ErrorContains(t, err, "novel")
}
