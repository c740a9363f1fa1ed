package tflite

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/text"
)

// What a file says of an operator is read, or refused: options and inputs that its handler has
// not read are errors, unless they change no result.

// options.tsv has the options of the built-in operators, from the schema. train/tflite_options.py
// makes it and describes its format.
//
//go:embed options.tsv
var optionsTable string

// optionTable is the table of the options of an operator.
type optionTable struct {
	number uint8 // in the union BuiltinOptions, 0 if there is none
	name   string
	fields map[int]option // by slot
}

// option is a field of it.
type option struct {
	name  string
	kind  string // of its bytes
	usual float64
}

// optionTables are the tables by the name of the operator.
var optionTables = sync.OnceValue(func() map[string]*optionTable {
	all := map[string]*optionTable{}
	for line := range strings.Lines(optionsTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		number, _ := strconv.ParseUint(columns[1], 10, 8) // TestOptionsTable reads all of them
		t := &optionTable{number: uint8(number), name: columns[2], fields: map[int]option{}}
		for _, column := range columns[3:] {
			f := strings.Split(column, ":")
			slot, _ := strconv.Atoi(f[0])
			usual, _ := strconv.ParseFloat(f[3], 64)
			t.fields[slot] = option{f[1], f[2], usual}
		}
		all[columns[0]] = t
	}
	return all
})

// harmless are options that change no result here, and why.
var harmless = map[string]map[string]string{
	"ADD":  {"pot_scale_int16": "it is for values of INT16, which are refused"},
	"CAST": {"in_data_type": "the interpreter takes the types of the tensors", "out_data_type": "the interpreter takes the types of the tensors"},
	"SUB":  {"pot_scale_int16": "it is for values of INT16, which are refused"},
	"FULLY_CONNECTED": {
		"asymmetric_quantize_inputs": "it is for weights of 8 bits with an input of FLOAT32, which are refused",
	},
}

// newest are the versions of the operators up to which they are known here, where that is not 1.
// In each a kernel learned another type or option, which the file then has, but what it makes
// of files of the versions before stayed the same. They are those of the interpreter's registry:
// https://github.com/google-ai-edge/LiteRT/blob/main/tflite/core/kernels/register.cc.
var newest = map[string]int{
	"ABS": 5, "ADD": 5, "ARG_MAX": 3, "ARG_MIN": 3, "AVERAGE_POOL_2D": 3, "CONCATENATION": 5, "CONV_2D": 8, "DEPTHWISE_CONV_2D": 7,
	"DEPTH_TO_SPACE": 2, "DEQUANTIZE": 8, "DIV": 2, "EXP": 2, "FULLY_CONNECTED": 14, "GELU": 2, "L2_NORMALIZATION": 2,
	"LEAKY_RELU": 2, "LOGISTIC": 3, "LOG_SOFTMAX": 2, "MAXIMUM": 4, "MAX_POOL_2D": 3, "MEAN": 3, "MINIMUM": 4, "MIRROR_PAD": 3,
	"BATCH_TO_SPACE_ND": 4, "BROADCAST_TO": 3, "CAST": 7, "EQUAL": 4, "FILL": 4, "GATHER": 7, "GREATER": 2, "GREATER_EQUAL": 3, "LESS": 3, "LESS_EQUAL": 2,
	"NOT_EQUAL": 3, "PACK": 4, "REDUCE_MIN": 3, "REDUCE_PROD": 2, "RSQRT": 3, "SELECT": 4, "SELECT_V2": 2, "SPACE_TO_BATCH_ND": 4, "SPACE_TO_DEPTH": 2, "SQUARED_DIFFERENCE": 2, "SUM": 2, "TILE": 3,
	"MUL": 7, "PAD": 5, "PADV2": 5, "QUANTIZE": 5, "REDUCE_MAX": 3, "RELU": 3, "RELU6": 3, "RESIZE_BILINEAR": 4,
	"RESIZE_NEAREST_NEIGHBOR": 4, "SIGN": 2, "SLICE": 7, "SOFTMAX": 3, "SPLIT": 4, "SPLIT_V": 2, "SQUEEZE": 2, "STRIDED_SLICE": 8,
	"SUB": 5, "TANH": 3, "TRANSPOSE": 7, "TRANSPOSE_CONV": 5,
}

// begun checks what a supported operator is said to be, before its handler reads it.
func (im *importer) begun(o *schema.Operator) {
	im.custom, im.used = nil, im.used[:0]
	im.used = append(im.used, make([]bool, len(o.Inputs))...) // which reach has charged for
	try.Check(o.Unread)
	if most := max(newest[o.Name], 1); o.Version < 1 || o.Version > most {
		try.Failf("version %d of the operator is not supported, only 1 to %d", o.Version, most)
	}
	if o.Custom {
		return
	}
	switch t := optionTables()[o.Name]; {
	case o.OptionsType == t.number, o.OptionsType == 0 && o.Options.Absent():
	case o.OptionsType == 0:
		try.Failf("it has options of no type, want %d (%s)", t.number, t.name)
	case t.number == 0:
		try.Failf("it has options of type %d, but the operator has none", o.OptionsType)
	default:
		try.Failf("its options are of type %d, want %d (%s)", o.OptionsType, t.number, t.name)
	}
}

// ended checks that all that the file says of an operator was read.
func (im *importer) ended(o *schema.Operator) {
	for i, t := range o.Inputs {
		if t >= 0 && !im.used[i] {
			try.Failf("input %d (tensor %d) is not read here: the operator takes no such input, or not in this form", i, t)
		}
	}
	if o.Custom {
		im.endedCustom(o)
		return
	}
	table := optionTables()[o.Name]
	said := o.Options.Untracked()
	for _, slot := range o.Options.Unread() {
		try.Check(im.budget.Charge(optionUnits))
		f, known := table.fields[slot]
		switch {
		case !known && !said.Zero(slot) && table.number == 0:
			try.Failf("it has options (field number %d), but the operator has none", slot)
		case !known && !said.Zero(slot):
			try.Failf("its options, %s of another schema, have a field number %d, which is not known here", table.name, slot)
		case !known || harmless[o.Name][f.name] != "":
		default:
			if is, want := f.of(said, slot), f.text(f.usual); is != want {
				try.Failf("option %s = %s is not supported here, only %s", f.name, is, want)
			}
		}
	}
	try.Check(im.model.Err())
}

// optionUnits is what is charged for an option that is not read.
const optionUnits = 128

// of is the text of an option's value.
func (f option) of(t flat.Table, slot int) string {
	switch f.kind {
	case "int8":
		return f.text(float64(int8(t.Uint8(slot, 0))))
	case "int32":
		return f.text(float64(t.Int32(slot, 0)))
	case "uint32":
		return f.text(float64(uint32(t.Int32(slot, 0))))
	case "float32":
		return f.text(float64(t.Float32(slot, 0)))
	case "offset":
		if t.Empty(slot) {
			return f.text(0)
		}
		return f.text(1)
	}
	return f.text(float64(t.Uint8(slot, 0)))
}

func (f option) text(v float64) string {
	switch {
	case f.kind == "bool":
		return strconv.FormatBool(v != 0)
	case f.kind == "offset" && v == 0:
		return "none"
	case f.kind == "offset":
		return "(a list or a table)"
	}
	return fmt.Sprint(v)
}

// options are those of an operator of LCE that were not read so far.
type options flat.Map

// int returns an integer from lo to hi.
func (p options) int(key string, lo, hi int64) int {
	v, ok := p[key]
	if !ok {
		try.Failf("its options lack %s", key)
	}
	if v < lo || v > hi {
		try.Failf("its option %s is %d, want %d to %d", key, v, lo, hi)
	}
	delete(p, key)
	return int(v)
}

func (im *importer) options(o *schema.Operator) options {
	try.Check(im.budget.Charge(int64(len(o.CustomOptions))))
	im.custom = options(try.Value(flat.ReadMap(o.CustomOptions)))
	return im.custom
}

// endedCustom is ended for the options of an operator of LCE.
func (im *importer) endedCustom(o *schema.Operator) {
	if im.custom == nil && len(o.CustomOptions) > 0 { // the handler reads none
		im.options(o)
	}
	for _, key := range slices.Sorted(maps.Keys(im.custom)) {
		try.Failf("option %s = %d is not known here", text.Quote(key), im.custom[key])
	}
}
