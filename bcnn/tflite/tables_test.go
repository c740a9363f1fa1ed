package tflite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Of the tables of a file other than options, what is not read changes nothing or is refused.
func TestFieldsOfTables(t *testing.T) {
	graph := func() *testGraph {
		g := newGraph(1, 3)
		g.quantised(0, 0.1, 3)
		x := g.add("DEQUANTIZE", nil, []int32{1, 3}, 0)
		g.outputs[0] = g.add("ADD", map[int]any{}, []int32{1, 3}, x, g.floats([]int32{3}, 1, 2, 3))
		g.signatures = []int{0}
		return g
	}
	want, _, err := Decode(t.Context(), graph().encode(), Options{Name: "net"})
	require.NoError(t, err)
	for _, c := range []struct {
		table string
		slot  int
		value any
		want  string // of the error; empty if it changes nothing
	}{
		{"Model", 5, []int32{0}, ""},
		{"Model", 6, []int32{}, ""},
		{"Model", 8, []int32{}, ""},
		{"Model", 9, []int32{}, ""},
		{"Model", 10, 0, ""},
		{"Model", 10, 1, "not a valid TensorFlow Lite file: its table, Model of a newer schema, has a field number 10, which is not known here"},
		{"SubGraph", 5, 3, ""},
		{"SubGraph", 6, 0, ""},
		{"SubGraph", 6, 1, "sub-graph 0: its table, SubGraph of a newer schema, has a field number 6"},
		{"SignatureDef", 0, []int32{}, ""},
		{"SignatureDef", 1, []int32{}, ""},
		{"SignatureDef", 3, []byte("tag"), ""},
		{"SignatureDef", 4, 1, `signature "signature 0" is that of sub-graph 1: a file with signatures of several sub-graphs is not supported, convert each to a file of its own`},
		{"SignatureDef", 5, 0, ""},
		{"SignatureDef", 5, 1, `signature "signature 0": its table, SignatureDef of a newer schema, has a field number 5`},
		{"OperatorCode", 4, 0, ""},
		{"OperatorCode", 4, 1, `node "dequantize" (DEQUANTIZE, index 0): its table, OperatorCode of a newer schema, has a field number 4`},
		{"Operator", 6, uint8(0), ""},
		{"Operator", 6, uint8(1), "(ADD, index 1): the format of its custom options is not supported, only FlexBuffers (custom_options_format)"},
		{"Operator", 7, []byte{0, 0}, ""},
		{"Operator", 7, []byte{0, 1}, "(ADD, index 1): it changes an input, which keeps its values between runs: that is not supported (mutating_variable_inputs)"},
		{"Operator", 8, []int32{}, ""},
		{"Operator", 8, []int32{0}, "(ADD, index 1): it has intermediate tensors, which are not supported (intermediates)"},
		{"Operator", 9, uint64(0), ""},
		{"Operator", 9, uint64(1), "(ADD, index 1): its custom options lie behind the tables, which is not supported (large_custom_options_offset)"},
		{"Operator", 10, uint64(1 << 60), "(ADD, index 1): its custom options lie behind the tables, which is not supported (large_custom_options_size)"},
		{"Operator", 13, 7, ""},
		{"Operator", 14, 0, ""},
		{"Tensor", 5, uint8(0), ""},
		{"Tensor", 5, uint8(1), "it keeps its values between runs, which is not supported (is_variable)"},
		{"Tensor", 6, struct{}{}, "sparse tensors are not supported here, only as constants (sparsity)"},
		{"Tensor", 7, []int32{}, ""},
		{"Tensor", 7, []int32{1, 2, 3, 4}, "it has 2 dimensions, of which its shape signature lists 4"},
		{"Tensor", 8, uint8(1), ""},
		{"Tensor", 9, []int32{}, ""},
		{"Tensor", 9, []int32{1}, "it is a list of tensors, which is not supported (variant_tensors)"},
		{"Tensor", 10, 0, ""},
		{"Tensor", 10, 2, "its values are in another file, which is not supported (external_buffer)"},
		{"Tensor", 11, 0, ""},
		{"Tensor", 11, 1, "its table, Tensor of a newer schema, has a field number 11"},
		{"QuantizationParameters", 0, []int32{1}, ""},
		{"QuantizationParameters", 1, []int32{1}, ""},
		{"QuantizationParameters", 4, uint8(0), ""},
		{"QuantizationParameters", 4, uint8(1), "its quantisation is custom or by blocks, which is not supported (details_type)"},
		{"QuantizationParameters", 5, struct{}{}, "its quantisation is custom or by blocks, which is not supported (details)"},
		{"QuantizationParameters", 7, 1, "its table, QuantizationParameters of a newer schema, has a field number 7"},
		{"Buffer", 3, 0, ""},
		{"Buffer", 3, 1, "buffer 1: its table, Buffer of a newer schema, has a field number 3"},
	} {
		g := graph()
		g.extra = map[string]map[int]any{c.table: {c.slot: c.value}}
		if c.want != "" {
			refused(t, g.encode(), c.want)
			continue
		}
		net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err, "%+v", c)
		require.Equal(t, want, net, "%+v", c)
	}
	// Other sub-graphs are bodies of operators, unless they have a signature.
	g := graph()
	g.graphs = 2
	net, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	require.Equal(t, want, net)
	g.signatures = []int{0, 2}
	refused(t, g.encode(), `signature "signature 1" is that of sub-graph 2`)
	// Values of the file stand in for none that are given or computed.
	for i, want := range map[int]string{0: `input "x": it has values in the file`, 4: "its output has values in the file (buffer of tensor 4)"} {
		g = graph()
		g.tensors[i].data = make([]byte, 3*(1+3*(i/4)))
		refused(t, g.encode(), want)
	}
	// What no output needs is not looked at.
	g = graph()
	g.add("RELU", nil, []int32{1, 3}, 0)
	g.operators[2].version, g.operators[2].more = 9, map[int]any{8: []int32{0}}
	net, _, err = Decode(t.Context(), g.encode(), Options{Name: "net"})
	require.NoError(t, err)
	require.Equal(t, want, net)
}

// Inputs that an operator has, but not in this form.
func TestInputsUnread(t *testing.T) {
	for _, s := range customs() {
		if s.op != "LceBconv2d" {
			continue
		}
		g := s.graph(nil)
		o := &g.operators[g.at]
		want := "input 4 "
		if o.inputs[4] < 0 { // numbers need no thresholds
			o.inputs[4] = g.ints(1, 2, 3, 4)
		} else { // and bits no factors
			o.inputs[2] = g.floats([]int32{4}, 1, 2, 3, 4)
			want = "input 2 "
		}
		refused(t, g.encode(), "(LceBconv2d, index 1): "+want)
		refused(t, g.encode(), "is not read here: the operator takes no such input, or not in this form")
	}
	refused(t, with("SQUEEZE", map[int]any{0: []int32{0}}, []int32{1, 3}, func(g *testGraph, o *testOperator) {
		g.tensors[0].dims = []int32{1, 1, 3}
		o.inputs = append(o.inputs, g.ints(0))
	}).encode(), "input 1 (tensor 2) is not read here: the operator takes no such input, or not in this form")
}

// What options and inputs say of the output has to be what the file says of it.
func TestContradictions(t *testing.T) {
	six := []int32{1, 2, 3}
	reshape := func(option, input, out []int32) *testGraph {
		return with("RESHAPE", map[int]any{0: option}, out, func(g *testGraph, o *testOperator) {
			g.tensors[0].dims = six
			if input != nil {
				o.inputs = append(o.inputs, g.ints(input...))
			}
		})
	}
	squeeze := func(dims, in, out []int32) *testGraph {
		return with("SQUEEZE", map[int]any{0: dims}, out, func(g *testGraph, _ *testOperator) { g.tensors[0].dims = in })
	}
	expand := func(out []int32, at ...int32) *testGraph {
		return with("EXPAND_DIMS", nil, out, func(g *testGraph, o *testOperator) {
			g.tensors[0].dims = six
			o.inputs = append(o.inputs, g.ints(at...))
		})
	}
	one := []int32{1, 1, 2, 3}
	for name, c := range map[string]struct {
		g    *testGraph
		want string
	}{
		"an option":                 {reshape([]int32{1, 6}, nil, []int32{1, 6}), ""},
		"an open option":            {reshape([]int32{1, -1}, nil, []int32{1, 6}), ""},
		"two open dimensions":       {reshape([]int32{-1, -1}, nil, []int32{1, 6}), "its output has shape [1 6] in the file, which is not the shape that it is given, [-1 -1]"},
		"another option":            {reshape([]int32{1, 3, 2}, nil, []int32{1, 6}), "its output has shape [1 6] in the file, which is not the shape that it is given, [1 3 2]"},
		"a list":                    {reshape(nil, []int32{-1, 6}, []int32{1, 6}), ""},
		"another list":              {reshape([]int32{1, 6}, []int32{1, 3, 2}, []int32{1, 6}), "which is not the shape that it is given, [1 3 2]"},
		"a list instead of options": {reshape([]int32{1, 3, 2}, []int32{1, 6}, []int32{1, 6}), ""},
		"an option of many":         {reshape(make([]int32, 65), nil, []int32{1, 6}), "a list of 65 integers is too long, at most 64 are supported"},
		"a list of lists": {func() *testGraph {
			g := reshape([]int32{1, 3, 2}, []int32{1, 6}, []int32{1, 6})
			g.tensors[2].dims = []int32{2, 1}
			return g
		}(), "which is not the shape that it is given, [1 3 2]"},
		"squeezed":                  {squeeze([]int32{1}, one, six), ""},
		"squeezed from the end":     {squeeze([]int32{-3, 1}, one, six), ""},
		"squeezed otherwise":        {squeeze([]int32{0}, one, one), "its output has shape [1 1 2 3] in the file, but its input, [1 1 2 3], and its options give [1 2 3]"},
		"squeezed all":              {squeeze(nil, one, six), "its output has shape [1 2 3] in the file, but its input, [1 1 2 3], and its options give [2 3]"},
		"squeezed what is not 1":    {squeeze([]int32{2}, one, six), "squeeze_dims has 2, which is no dimension of size 1 of its input, [1 1 2 3]"},
		"squeezed beyond":           {squeeze([]int32{4}, one, six), "squeeze_dims has 4, which is no dimension of size 1"},
		"squeezed before":           {squeeze([]int32{-5}, one, six), "squeeze_dims has -5, which is no dimension of size 1"},
		"expanded":                  {expand([]int32{1, 2, 1, 3}, 2), ""},
		"expanded from the end":     {expand([]int32{1, 2, 1, 3}, -2), ""},
		"expanded elsewhere":        {expand([]int32{1, 2, 1, 3}, 3), "its output has shape [1 2 1 3] in the file, which is not that of its input, [1 2 3], with a dimension of size 1 inserted"},
		"expanded beyond":           {expand([]int32{1, 2, 1, 3}, 4), "there is no place 4 for a dimension among those of its input, [1 2 3]"},
		"expanded before":           {expand([]int32{1, 2, 1, 3}, -5), "there is no place -5 for a dimension"},
		"expanded twice":            {expand([]int32{1, 2, 1, 3}, 2, 2), "2 dimensions are inserted, only one is supported"},
		"expanded where is unknown": {computed(expand([]int32{1, 2, 1, 3}, 0)), ""},
		"expanded in no place":      {computed(expand([]int32{1, 1, 6}, 0)), "its output has shape [1 1 6] in the file, which is not that of its input"},
		"expanded by nothing":       {with("EXPAND_DIMS", nil, []int32{1, 4, 4, 2}, nil), "its output has shape [1 4 4 2] in the file, which is not that of its input"},
		"mean that keeps":           {with("MEAN", keepDims(true), []int32{1, 2}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(1, 2)) }), "its output has shape [1 2] in the file, want 4 dimensions, since keep_dims is true"},
		"mean that does not keep":   {with("MEAN", keepDims(false), []int32{1, 1, 1, 2}, func(g *testGraph, o *testOperator) { o.inputs = append(o.inputs, g.ints(1, 2)) }), "its output has shape [1 1 1 2] in the file, want 2 dimensions, since keep_dims is false"},
		"dense that keeps": {with("FULLY_CONNECTED", map[int]any{2: uint8(1)}, []int32{1, 1}, func(g *testGraph, o *testOperator) {
			g.tensors[0].dims = []int32{1, 1, 1, 2}
			o.inputs = append(o.inputs, g.floats([]int32{1, 2}, 1, 2), -1)
		}), "its output has shape [1 1] in the file, want 4 dimensions, since keep_num_dims is true"},
		"dense that does not keep": {with("FULLY_CONNECTED", nil, []int32{1, 1, 1, 1}, func(g *testGraph, o *testOperator) {
			g.tensors[0].dims = []int32{1, 1, 1, 2}
			o.inputs = append(o.inputs, g.floats([]int32{1, 2}, 1, 2), -1)
		}), "its output has shape [1 1 1 1] in the file, want 2 dimensions, since keep_num_dims is false"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want != "" {
				refused(t, c.g.encode(), c.want)
				return
			}
			c.g.outputs[0] = c.g.add("NEG", nil, c.g.tensors[1].dims, 1) // so that there is a layer
			require.Equal(t, of(-0, -1, -2, -3, -4, -5), runInputs(t, c.g, counted(6))[0])
		})
	}
	for _, c := range []struct {
		op, form string
		slot     int
		value    any
		want     string
	}{
		{"DEPTHWISE_CONV_2D", "FLOAT32", 3, 1, "depth_multiplier = 1, but filters of shape [1 3 3 4] make 2 of each of 2 channels"},
		{"DEPTHWISE_CONV_2D", "INT8", 3, 0, ""},
		{"SPLIT", "FLOAT32", 0, 3, "it has 2 outputs, but num_splits = 3"},
		{"SPLIT_V", "INT8", 0, 1, "it has 2 outputs, but num_splits = 1"},
		{"SPLIT_V", "INT8", 0, 0, ""},
		{"ARG_MAX", "FLOAT32", 0, uint8(schema.Int64), "its output has type INT32 in the file, but output_type = INT64"},
		{"ARG_MIN", "FLOAT32", 0, uint8(0), ""},
		{"CONV_2D", "INT8", 6, uint8(schema.Int32), ""},
		{"CONV_2D", "INT8", 6, uint8(schema.Int64), "quantized_bias_type = INT64 is not supported, only INT32"},
		{"CONV_2D", "FLOAT32", 6, uint8(schema.Int32), "option quantized_bias_type = 2 is not supported here, only 0"},
		{"FULLY_CONNECTED", "INT8", 4, uint8(schema.Int32), ""},
		{"TRANSPOSE_CONV", "INT8", 4, uint8(schema.Int32), ""},
		{"FULLY_CONNECTED", "FLOAT32", 5, struct{}{}, "option quant_spec = (a list or a table) is not supported here, only none"},
		{"STRIDED_SLICE", "FLOAT32", 5, uint8(1), "option offset = true is not supported here, only false"},
		{"RESIZE_BILINEAR", "FLOAT32", 0, 0, ""},
		{"RESIZE_BILINEAR", "FLOAT32", 0, 5, "its options, ResizeBilinearOptions of another schema, have a field number 0, which is not known here"},
	} {
		for _, s := range smalls() {
			if s.op != c.op || s.form != c.form {
				continue
			}
			options := map[int]any{c.slot: c.value}
			for slot, v := range s.options {
				if slot != c.slot {
					options[slot] = v
				}
			}
			if c.want != "" {
				refused(t, s.graph(options).encode(), c.want)
				continue
			}
			want, _, err := imported(t, s.graph(s.options))
			require.NoError(t, err)
			net, _, err := imported(t, s.graph(options))
			require.NoError(t, err, "%+v", c)
			require.Equal(t, want, net, "%+v", c)
		}
	}
}

// computed makes the second input of a graph's operator one that is computed.
func computed(g *testGraph) *testGraph {
	in := &g.operators[0].inputs[1]
	shape := g.tensors[*in]
	shape.data = nil
	*in = g.tensor(shape)
	g.operators = append(g.operators, testOperator{name: "SHAPE", inputs: []int32{0}, outputs: []int32{*in}})
	return g
}
