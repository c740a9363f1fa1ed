package schema

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
)

// Whatever a file says is read, or refused unless it changes no result. Here are the fields of
// the tables that are read in this package, in the order of the schema; those of options are
// in the importer's table of its operators.

// field is what becomes of a field that is not read.
type field struct {
	name string
	// harmless is why it changes no result, and refused is what is said where it may change
	// one and is neither 0 nor empty. Fields that are always read have neither.
	harmless, refused string
	refers            bool // to a table, a vector or a string
}

// fields describes a table.
type fields struct {
	table string
	list  []field
}

var modelFields = fields{"Model", []field{
	{name: "version"},
	{name: "operator_codes"},
	{name: "subgraphs"},
	{name: "description"},
	{name: "buffers"},
	{name: "metadata_buffer", harmless: "for programs that show a model"},
	{name: "metadata", harmless: "the interpreter computes the same without it"},
	{name: "signature_defs"},
	{name: "external_buffer_groups", harmless: "a tensor that uses one is refused"},
	{name: "external_buffers", harmless: "a tensor that uses one is refused"},
}}

var graphFields = fields{"SubGraph", []field{
	{name: "tensors"},
	{name: "inputs"},
	{name: "outputs"},
	{name: "operators"},
	{name: "name"},
	{name: "debug_metadata_index", harmless: "it says what the graph was made of"},
}}

var signatureFields = fields{"SignatureDef", []field{
	{name: "inputs", harmless: "names for inputs of the graph"},
	{name: "outputs", harmless: "names for outputs of the graph"},
	{name: "signature_key"},
	{name: "deprecated_tag", harmless: "a name that is no longer read"},
	{name: "subgraph_index"},
}}

var codeFields = fields{"OperatorCode", []field{
	{name: "deprecated_builtin_code"},
	{name: "custom_code"},
	{name: "version"},
	{name: "builtin_code"},
}}

var operatorFields = fields{"Operator", []field{
	{name: "opcode_index"},
	{name: "inputs"},
	{name: "outputs"},
	{name: "builtin_options_type", refused: "it has the options of another operator"},
	{name: "builtin_options", refused: "it has the options of another operator", refers: true},
	{name: "custom_options", refused: "it has the options of a custom operator", refers: true},
	{name: "custom_options_format", refused: "the format of its custom options is not supported, only FlexBuffers"},
	{name: "mutating_variable_inputs"},
	{name: "intermediates", refused: "it has intermediate tensors, which are not supported", refers: true},
	{name: "large_custom_options_offset", refused: "its custom options lie behind the tables, which is not supported"},
	{name: "large_custom_options_size", refused: "its custom options lie behind the tables, which is not supported"},
	{name: "builtin_options_2_type", refused: "it has options of the second kind (builtin_options_2), which belong to no operator that is supported"},
	{name: "builtin_options_2", refused: "it has options of the second kind (builtin_options_2), which belong to no operator that is supported", refers: true},
	{name: "debug_metadata_index", harmless: "it says what the operator was made of"},
}}

var tensorFields = fields{"Tensor", []field{
	{name: "shape"},
	{name: "type"},
	{name: "buffer"},
	{name: "name"},
	{name: "quantization"},
	{name: "is_variable", refused: "it keeps its values between runs, which is not supported"},
	{name: "sparsity", refused: "sparse tensors are not supported here, only as constants", refers: true},
	{name: "shape_signature"},
	{name: "has_rank", harmless: "it tells a tensor without dimensions from one of which they are not known, and both are taken as the latter"},
	{name: "variant_tensors", refused: "it is a list of tensors, which is not supported", refers: true},
	{name: "external_buffer", refused: "its values are in another file, which is not supported"},
}}

var quantizationFields = fields{"QuantizationParameters", []field{
	{name: "min", harmless: "the least value that was seen, of which the converter has made the scale"},
	{name: "max", harmless: "the largest value that was seen, of which the converter has made the scale"},
	{name: "scale"},
	{name: "zero_point"},
	{name: "details_type", refused: "its quantisation is custom or by blocks, which is not supported"},
	{name: "details", refused: "its quantisation is custom or by blocks, which is not supported", refers: true},
	{name: "quantized_dimension"},
}}

var bufferFields = fields{"Buffer", []field{
	{name: "data"},
	{name: "offset"},
	{name: "size"},
}}

// fieldUnits is what is charged for a field that is not read.
const fieldUnits = 128

// unread returns an error where a table has a field that may change results and was not read.
func (m *Model) unread(t flat.Table, of *fields) error {
	for _, slot := range t.Unread() {
		if slot < len(of.list) && of.list[slot].harmless != "" {
			continue
		}
		if err := m.budget.Charge(fieldUnits); err != nil {
			return err
		}
		if slot >= len(of.list) {
			if !t.Zero(slot) {
				return fmt.Errorf("its table, %s of a newer schema, has a field number %d, which is not known here", of.table, slot)
			}
			continue
		}
		f := &of.list[slot]
		blank := t.Zero
		if f.refers {
			blank = t.Empty
		}
		if !blank(slot) {
			return fmt.Errorf("%s (%s)", f.refused, f.name)
		}
	}
	return m.buffer.Err()
}
