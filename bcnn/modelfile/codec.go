package modelfile

import "github.com/bitcnn/bitcnn/bcnn"

// codec stores the layers of one kind.
type codec struct {
	op    bcnn.Op // of the kind, without parameters
	first int     // the first version of the format that has it
	write func(w *layerWriter, op bcnn.Op)
	read  func(r *layerReader) (bcnn.Op, error)
}

// fields are those of a layer, which are written, or read, in the order in which they are named.
type fields interface {
	// scalars are a struct of JSON, whose fields point to those of the operation.
	scalars(json any)
	floats(role string, v *[]float32)
	ints(role string, v *[]int32)
	// weights have the given outer dimensions; the innermost one is what is left of their length.
	weights(v *bcnn.Weights, outer ...int)
}

// converted writes, or reads, scalars that the file has in another form than the operation.
func converted[JSON any](f fields, write func() JSON, read func(p JSON) error) {
	r, ok := f.(*layerReader)
	if !ok {
		f.scalars(write())
		return
	}
	var p JSON
	if f.scalars(&p); r.err == nil {
		r.err = read(p)
	}
}

// layer returns the codec of an operation of which of names the fields.
func layer[Op bcnn.Op](first int, of func(f fields, op *Op)) []codec {
	var zero Op
	return []codec{{zero, first,
		func(w *layerWriter, op bcnn.Op) {
			typed := op.(Op)
			of(w, &typed)
		},
		func(r *layerReader) (bcnn.Op, error) {
			var op Op
			of(r, &op)
			return op, r.err
		},
	}}
}

// bare returns the codecs of layers without parameters.
func bare(first int, ops ...bcnn.Op) []codec {
	out := make([]codec, len(ops))
	for i, op := range ops {
		out[i] = codec{op, first, func(*layerWriter, bcnn.Op) {}, func(*layerReader) (bcnn.Op, error) { return op, nil }}
	}
	return out
}

// functions returns the codecs of functions, each of which is a kind.
func functions(first int, names ...bcnn.FunctionName) []codec {
	ops := make([]bcnn.Op, len(names))
	for i, name := range names {
		ops[i] = bcnn.Function{Name: name}
	}
	return bare(first, ops...)
}

func byKind(lists ...[]codec) map[string]codec {
	out := map[string]codec{}
	for _, list := range lists {
		for _, c := range list {
			out[c.op.Kind()] = c
		}
	}
	return out
}

// The params of layers.
type (
	binarizeJSON struct {
		Scheme *string `json:"scheme"`
	}
	windowJSON struct {
		Kernel   []int `json:"kernel"`   // height, width
		Stride   []int `json:"stride"`   // height, width
		Dilation []int `json:"dilation"` // height, width
		Pad      []int `json:"pad"`      // top, left, bottom, right
	}
	conv2DJSON struct {
		windowJSON
		Out      int `json:"out"`
		Groups   int `json:"groups"`
		PadValue int `json:"pad_value"`
	}
	denseJSON struct {
		Out *int `json:"out"`
	}
	batchNormJSON struct {
		Epsilon *float32 `json:"epsilon"`
	}
	avgPoolJSON struct {
		windowJSON
		CountPadding bool `json:"count_padding"`
	}
	clipJSON struct {
		Min *float32 `json:"min,omitempty"` // nil where this side is open
		Max *float32 `json:"max,omitempty"`
	}
	signJSON struct {
		Zero int `json:"zero"` // what 0 becomes, +1 or −1
	}
	pixelsJSON struct {
		Block []int   `json:"block"` // height, width
		Fill  float32 `json:"fill"`
	}
	resampleJSON struct {
		Taps []int `json:"taps"` // of a row, of a column
	}
	topKJSON struct {
		K      *int  `json:"k"`
		Values *bool `json:"values"` // else their channels
	}
	quantizeJSON struct {
		Low    *int `json:"low"`
		Levels *int `json:"levels"`
		// Since version packedVersion: how thresholds on lines are rounded.
		Line *string `json:"line,omitempty"`
		// Parts of integers that they are rounded to.
		Parts int `json:"parts,omitempty"`
		// Knee is the threshold with which a second line begins.
		Knee int `json:"knee,omitempty"`
	}
)
