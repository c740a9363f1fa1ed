package bmxnet

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// graph is a network that a test writes as MXNet does, and computes as BMXNet does: in
// float64, images being [channel][row][column].
type graph struct {
	nodes  []testNode
	params []testArray
	rng    *rand.Rand
	// Of the files.
	attrs  string // the key of the attributes
	header uint32 // of an array: 0 for the oldest
	word   int    // of packed weights, 0 if they are floats
}

type testNode struct {
	op, name string
	attrs    map[string]string
	inputs   []int
}

type testArray struct {
	name   string
	dims   []int
	values []float64
	dtype  int32
	raw    []byte // in place of values
}

func newGraph() *graph {
	g := &graph{rng: rand.New(rand.NewPCG(6, 6)), attrs: "attrs", header: magicV2}
	g.nodes = []testNode{{op: "null", name: "data"}}
	return g
}

// attributes are given one after the other: name, value.
func attributes2(list ...any) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		m[list[i].(string)] = fmt.Sprint(list[i+1])
	}
	return m
}

// op appends an operator that reads the given nodes, or the last one.
func (g *graph) op(op string, attrs map[string]string, inputs ...int) int {
	if len(inputs) == 0 {
		inputs = []int{len(g.nodes) - 1}
	}
	g.nodes = append(g.nodes, testNode{op, fmt.Sprint(op, len(g.nodes)), attrs, inputs})
	return len(g.nodes) - 1
}

// param appends random weights of the given dimensions.
func (g *graph) param(prefix string, dims ...int) int {
	a := testArray{name: prefix + fmt.Sprint("w", len(g.nodes)), dims: dims}
	n := 1
	for _, d := range dims {
		n *= d
	}
	for range n {
		v := float32(g.rng.NormFloat64())
		if prefix == "aux:var" {
			v = v*v + 0.5
		}
		a.values = append(a.values, float64(v))
	}
	g.params = append(g.params, a)
	g.nodes = append(g.nodes, testNode{op: "null", name: a.name[4:]})
	return len(g.nodes) - 1
}

// weighted appends an operator that reads the last node and weights of the dimensions,
// and a bias of so many values if there are any.
func (g *graph) weighted(op string, attrs map[string]string, bias int, dims ...int) int {
	inputs := []int{len(g.nodes) - 1, g.param("arg:", dims...)}
	if bias > 0 {
		inputs = append(inputs, g.param("arg:", bias))
	}
	return g.op(op, attrs, inputs...)
}

func (g *graph) norm(channels int, attrs ...any) int {
	inputs := []int{len(g.nodes) - 1}
	for _, prefix := range []string{"arg:", "arg:", "aux:", "aux:var"} {
		inputs = append(inputs, g.param(prefix, channels))
	}
	return g.op("BatchNorm", attributes2(attrs...), inputs...)
}

func (g *graph) symbol() []byte {
	var nodes []map[string]any
	for _, n := range g.nodes {
		inputs := [][]int{}
		for _, i := range n.inputs {
			inputs = append(inputs, []int{i, 0, 0})
		}
		node := map[string]any{"op": n.op, "name": n.name, "inputs": inputs}
		if n.attrs != nil {
			attrs := n.attrs
			if g.word > 0 && n.op[0] == 'Q' {
				attrs = map[string]string{"binarized_weights_only": "True"}
				for k, v := range n.attrs {
					attrs[k] = v
				}
			}
			node[g.attrs] = attrs
		}
		nodes = append(nodes, node)
	}
	b, err := json.Marshal(map[string]any{
		"nodes": nodes, "arg_nodes": []int{0}, "heads": [][]int{{len(nodes) - 1, 0, 0}}, "attrs": map[string]any{"mxnet_version": []any{"int", 903}},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// array returns the weights of a node.
func (g *graph) array(node int) *testArray {
	for i := range g.params {
		if g.params[i].name[4:] == g.nodes[node].name {
			return &g.params[i]
		}
	}
	panic("no weights " + g.nodes[node].name)
}

// written returns the weights as they are in the file: those of binary layers packed, if
// the graph says so.
func (g *graph) written() []testArray {
	list := append([]testArray(nil), g.params...)
	for _, n := range g.nodes {
		if g.word == 0 || n.op != "QConvolution" && n.op != "QFullyConnected" {
			continue
		}
		for i := range list {
			if list[i].name[4:] == g.nodes[n.inputs[1]].name {
				list[i] = packed(list[i], g.word, n.op == "QFullyConnected")
			}
		}
	}
	return list
}

// packed returns the signs of weights in words, those of a dense layer input by input.
func packed(a testArray, word int, dense bool) testArray {
	words := (len(a.values) + word - 1) / word
	if dense {
		words = (a.dims[1] + word - 1) / word * a.dims[0]
	}
	p := testArray{name: a.name, dims: []int{words}, raw: make([]byte, words*word/8), dtype: float32s}
	if word == 64 {
		p.dtype = float64s
	}
	for i, v := range a.values {
		at := i
		if dense {
			o, k := i/a.dims[1], i%a.dims[1]
			at = (k/word*a.dims[0]+o)*word + k%word
		}
		if v >= 0 {
			p.raw[at/8] |= 1 << (at % 8)
		}
	}
	return p
}

func (g *graph) file() []byte { return paramsFile(g.header, g.written()) }

func paramsFile(header uint32, arrays []testArray) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, listMagic), 0), uint64(len(arrays)))
	for _, a := range arrays {
		switch header {
		case magicV2, magicV3:
			b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, header), 0), uint32(len(a.dims)))
		case magicV1:
			b = le.AppendUint32(le.AppendUint32(b, header), uint32(len(a.dims)))
		default:
			b = le.AppendUint32(b, uint32(len(a.dims)))
		}
		for _, d := range a.dims {
			if header == 0 {
				b = le.AppendUint32(b, uint32(d))
			} else {
				b = le.AppendUint64(b, uint64(d))
			}
		}
		b = le.AppendUint32(le.AppendUint64(b, 1), uint32(a.dtype))
		if a.raw != nil {
			b = append(b, a.raw...)
			continue
		}
		for _, v := range a.values {
			switch a.dtype {
			case float64s:
				b = le.AppendUint64(b, math.Float64bits(v))
			default:
				b = le.AppendUint32(b, math.Float32bits(float32(v)))
			}
		}
	}
	b = le.AppendUint64(b, uint64(len(arrays)))
	for _, a := range arrays {
		b = append(le.AppendUint64(b, uint64(len(a.name))), a.name...)
	}
	return b
}

// image is a value of the graph; a vector is a column of channels.
type image struct {
	c, h, w int
	v       []float64
}

func (x image) at(c, y, z int) (v float64, inside bool) {
	if y < 0 || y >= x.h || z < 0 || z >= x.w {
		return 0, false
	}
	return x.v[(c*x.h+y)*x.w+z], true
}

func (x image) each(f func(c int, v float64) float64) image {
	out := image{x.c, x.h, x.w, make([]float64, len(x.v))}
	for i, v := range x.v {
		out.v[i] = f(i/(x.h*x.w), v)
	}
	return out
}

func plus(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}

// constant returns what a node computes of weights alone, nil where it reads more.
func (g *graph) constant(node int) []float64 {
	n := g.nodes[node]
	if n.op == "null" {
		for _, a := range g.params {
			if a.name[4:] == n.name {
				return a.values
			}
		}
		return nil
	}
	in := g.constant(n.inputs[0])
	if in == nil {
		return nil
	}
	var out []float64
	switch n.op {
	case "det_sign":
		for _, v := range in {
			out = append(out, plus(v))
		}
	case "abs":
		for _, v := range in {
			out = append(out, math.Abs(v))
		}
	case "mean":
		filters := g.array(g.nodes[n.inputs[0]].inputs[0]).dims[0]
		each := len(in) / filters
		for o := range filters {
			sum := 0.0
			for _, v := range in[o*each:][:each] {
				sum += v
			}
			out = append(out, sum/float64(each))
		}
	case "transpose", "BlockGrad":
		return in
	}
	return out
}

// compute evaluates the graph for an input.
func (g *graph) compute(t *testing.T, in image) image {
	values := make([]image, len(g.nodes))
	values[0] = in
	for i, n := range g.nodes {
		if n.op == "null" || g.constant(i) != nil {
			continue
		}
		x := values[n.inputs[0]]
		a := &node{attrs: n.attrs}
		read := a.attributes()
		weights := func(k int) []float64 { return g.constant(n.inputs[k]) }
		act, bit := read.integer("act_bit", 1, 1, 32), read.integer("weight_bit", 1, 1, 32)
		binary := n.op[0] == 'Q' && act == 1 && bit == 1
		// As q_helper.h of BMXNet has them.
		quantise := func(v float64, k int) float64 {
			levels := math.Pow(2, float64(k)) - 1
			return math.Floor(levels*v+0.5) / levels
		}
		activation := func(v float64, k int) float64 {
			switch k {
			case 1:
				return plus(v)
			case 32:
				return v
			}
			return quantise(min(max(v, 0), 1), k)
		}
		quantised := func(list []float64) []float64 {
			most := 0.0
			for _, w := range list {
				most = max(most, math.Abs(math.Tanh(w)))
			}
			var out []float64
			for _, w := range list {
				if bit == 32 {
					out = append(out, w)
				} else if bit == 1 {
					out = append(out, plus(w))
				} else {
					out = append(out, 2*quantise(math.Tanh(w)/(2*most)+0.5, bit)-1)
				}
			}
			return out
		}
		switch n.op {
		case "Convolution", "QConvolution":
			w := read.window()
			out, groups := read.integer("num_filter", 0, 1, 1000), read.integer("num_group", 1, 1, 1000)
			in, perGroup := x.c/groups, out/groups
			y := image{c: out, h: (x.h+2*w.Pad.Top-w.DilationH*(w.KH-1)-1)/w.StrideH + 1, w: (x.w+2*w.Pad.Left-w.DilationW*(w.KW-1)-1)/w.StrideW + 1}
			filter := quantised(weights(1))
			mean := 0.0
			for _, v := range weights(1) {
				mean += math.Abs(v) / float64(len(weights(1)))
			}
			for o := range out {
				for p := range y.h * y.w {
					sum := 0.0
					for k := range in * w.KH * w.KW {
						c, ky, kx := k/(w.KH*w.KW), k/w.KW%w.KH, k%w.KW
						v, _ := x.at(o/perGroup*in+c, p/y.w*w.StrideH-w.Pad.Top+ky*w.DilationH, p%y.w*w.StrideW-w.Pad.Left+kx*w.DilationW)
						weight := weights(1)[o*in*w.KH*w.KW+k]
						if n.op[0] == 'Q' {
							v, weight = activation(v, act), filter[o*in*w.KH*w.KW+k]
						}
						sum += v * weight
					}
					if binary {
						sum = (sum + float64(in*w.KH*w.KW)) / 2
					}
					if len(n.inputs) > 2 {
						sum += weights(2)[o]
					}
					if read.text("scaling_mode", "") == "forward" {
						sum *= mean
					}
					y.v = append(y.v, sum)
				}
			}
			values[i] = y
		case "FullyConnected", "QFullyConnected":
			y := image{c: read.integer("num_hidden", 0, 1, 1000), h: 1, w: 1}
			filter := quantised(weights(1))
			for o := range y.c {
				sum := 0.0
				for k, v := range x.v {
					weight := weights(1)[o*len(x.v)+k]
					if n.op[0] == 'Q' {
						v, weight = activation(v, act), filter[o*len(x.v)+k]
					}
					sum += v * weight
				}
				if binary {
					sum = (sum + float64(len(x.v))) / 2
				}
				if len(n.inputs) > 2 {
					sum += weights(2)[o]
				}
				y.v = append(y.v, sum)
			}
			values[i] = y
		case "BatchNorm":
			values[i] = x.each(func(c int, v float64) float64 {
				gamma := weights(1)[c]
				if read.flag("fix_gamma", true) {
					gamma = 1
				}
				return (v-weights(3)[c])*gamma/math.Sqrt(weights(4)[c]+float64(read.number("eps", 1e-3))) + weights(2)[c]
			})
		case "Pooling":
			values[i] = pool(x, read)
		case "QActivation":
			values[i] = x
			if !read.flag("backward_only", false) {
				values[i] = x.each(func(_ int, v float64) float64 { return activation(v, act) })
			}
		case "Activation":
			f := map[string]func(float64) float64{
				"relu": func(v float64) float64 { return max(v, 0) }, "tanh": math.Tanh,
				"sigmoid": func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }, "softrelu": func(v float64) float64 { return math.Log1p(math.Exp(v)) },
			}[n.attrs["act_type"]]
			values[i] = x.each(func(_ int, v float64) float64 { return f(v) })
		case "L2Normalization":
			values[i] = normalised(x, read)
		case "LeakyReLU":
			values[i] = x.each(func(c int, v float64) float64 {
				if n.attrs["act_type"] == "gelu" {
					return v * (1 + math.Erf(v/math.Sqrt2)) / 2
				}
				if v >= 0 {
					return v
				}
				switch n.attrs["act_type"] {
				case "elu":
					return math.Expm1(v)
				case "prelu":
					return v * weights(1)[c%len(weights(1))]
				case "rrelu":
					return v * (0.125 + 0.334) / 2
				}
				return v * float64(read.number("slope", 0.25))
			})
		case "clip":
			values[i] = x.each(func(_ int, v float64) float64 {
				return min(max(v, float64(read.number("a_min", 0))), float64(read.number("a_max", 0)))
			})
		case "Flatten", "Reshape":
			values[i] = image{len(x.v), 1, 1, x.v}
		case "Concat":
			y := image{h: x.h, w: x.w}
			for _, k := range n.inputs {
				y.c += values[k].c
				y.v = append(y.v, values[k].v...)
			}
			values[i] = y
		case "det_sign":
			values[i] = x.each(func(_ int, v float64) float64 { return plus(v) })
		case "_maximum_scalar":
			values[i] = x.each(func(_ int, v float64) float64 { return max(v, float64(read.number("scalar", 0))) })
		case "_minimum_scalar":
			values[i] = x.each(func(_ int, v float64) float64 { return min(v, float64(read.number("scalar", 0))) })
		case "mean":
			values[i] = image{c: x.c, h: 1, w: 1}
			for c := range x.c {
				sum := 0.0
				for _, v := range x.v[c*x.h*x.w : (c+1)*x.h*x.w] {
					sum += v
				}
				values[i].v = append(values[i].v, sum/float64(x.h*x.w))
			}
		case "Pad":
			values[i] = extended(x, read)
		case "slice_axis":
			begin, end := read.integer("begin", 0, -99, 99), read.integer("end", x.c, -99, 99)
			if begin < 0 {
				begin += x.c
			}
			if end < 0 {
				end += x.c
			}
			values[i] = image{end - begin, x.h, x.w, x.v[begin*x.h*x.w : end*x.h*x.w]}
		case "elemwise_sub", "broadcast_sub", "broadcast_add", "_mul":
			first, second := n.inputs[0], n.inputs[1]
			f := map[string]func(a, b float64) float64{
				"_mul": func(a, b float64) float64 { return a * b }, "broadcast_add": func(a, b float64) float64 { return a + b },
			}[n.op]
			if f == nil {
				f = func(a, b float64) float64 { return a - b }
			}
			values[i] = image{c: max(values[first].c, values[second].c), h: max(values[first].h, values[second].h), w: max(values[first].w, values[second].w)}
			pixels := values[i].h * values[i].w
			at := func(k, j int) float64 {
				if list := g.constant(k); list != nil {
					return list[j/pixels%len(list)]
				}
				return values[k].v[j]
			}
			for j := range values[i].c * pixels {
				values[i].v = append(values[i].v, f(at(first, j), at(second, j)))
			}
		case "elemwise_add", "add_n":
			values[i] = x.each(func(_ int, v float64) float64 { return v })
			for _, k := range n.inputs[1:] {
				for j, v := range values[k].v {
					values[i].v[j] += v
				}
			}
		case "broadcast_mul":
			y := values[n.inputs[1]]
			if list := g.constant(n.inputs[1]); list != nil {
				y = image{len(list), 1, 1, list}
			}
			if len(y.v) > len(x.v) {
				x, y = y, x
			}
			values[i] = image{x.c, x.h, x.w, nil}
			for j, v := range x.v {
				at := j / (x.h * x.w / (y.h * y.w)) // of a value for each channel
				if y.c == 1 && y.h == x.h {         // a value for each pixel
					at = j
				}
				values[i].v = append(values[i].v, v*y.v[at%len(y.v)])
			}
		case "_rminus_scalar":
			values[i] = x.each(func(_ int, v float64) float64 { return float64(read.number("scalar", 0)) - v })
		case "_plus_scalar", "_minus_scalar", "_mul_scalar", "_div_scalar":
			s := float64(read.number("scalar", 0))
			values[i] = x.each(func(_ int, v float64) float64 {
				return map[byte]float64{'p': v + s, 'm': v * s, 'd': v / s}[n.op[1]]
			})
			if n.op == "_minus_scalar" {
				values[i] = x.each(func(_ int, v float64) float64 { return v - s })
			}
		case "Dropout", "_copy", "BlockGrad", "SoftmaxOutput", "_contrib_gradcancel", "log_softmax":
			values[i] = x
		case "softmax": // its logits
			values[i] = x.each(func(_ int, v float64) float64 { return v / float64(read.number("temperature", 1)) })
		default:
			t.Fatal(n.op)
		}
	}
	return values[len(values)-1]
}

// extended puts rows and columns around an image.
// normalised divides values by the root of the sum of the squares of those that count together.
func normalised(x image, read attributes) image {
	together := func(k int) int {
		switch pixels := x.h * x.w; read.text("mode", "instance") {
		case "channel":
			return k % pixels
		case "spatial":
			return k / pixels
		}
		return 0
	}
	sums := make([]float64, len(x.v))
	for k, v := range x.v {
		sums[together(k)] += v * v
	}
	out := x
	out.v = make([]float64, len(x.v))
	for k, v := range x.v {
		out.v[k] = v / math.Sqrt(sums[together(k)]+float64(read.number("eps", 1e-10)))
	}
	return out
}

func extended(x image, read attributes) image {
	width := read.list("pad_width", 0, 99)
	y := image{c: x.c, h: width[4] + x.h + width[5], w: width[6] + x.w + width[7]}
	nearest := func(i, size int) int {
		switch {
		case read.text("mode", "") == "edge":
			return min(max(i, 0), size-1)
		case read.text("mode", "") == "reflect" && i < 0:
			return -i
		case read.text("mode", "") == "reflect" && i >= size:
			return size - 1 - (i - (size - 1))
		}
		return i
	}
	for j := range y.c * y.h * y.w {
		v, inside := x.at(j/(y.h*y.w), nearest(j/y.w%y.h-width[4], x.h), nearest(j%y.w-width[6], x.w))
		if !inside {
			v = float64(read.number("constant_value", 0))
		}
		y.v = append(y.v, v)
	}
	return y
}

// pool takes windows as MXNet's loops do.
func pool(x image, read attributes) image {
	w := read.window()
	if read.flag("global_pool", false) {
		w.KH, w.KW, w.StrideH, w.StrideW = x.h, x.w, 1, 1
	}
	size := func(n, pad, k, s int) int {
		if read.text("pooling_convention", "valid") == "full" {
			return 1 + int(math.Ceil(float64(n+2*pad-k)/float64(s)))
		}
		return 1 + (n+2*pad-k)/s
	}
	y := image{c: x.c, h: size(x.h, w.Pad.Top, w.KH, w.StrideH), w: size(x.w, w.Pad.Left, w.KW, w.StrideW)}
	for i := range y.c * y.h * y.w {
		top, left := i/y.w%y.h*w.StrideH-w.Pad.Top, i%y.w*w.StrideW-w.Pad.Left
		bottom, right := min(top+w.KH, x.h+w.Pad.Top), min(left+w.KW, x.w+w.Pad.Left)
		counted := float64((bottom - top) * (right - left))
		largest, sum, inside := math.Inf(-1), 0.0, 0.0
		for p := top; p < bottom; p++ {
			for q := left; q < right; q++ {
				if v, ok := x.at(i/(y.h*y.w), p, q); ok {
					largest, sum, inside = max(largest, v), sum+v, inside+1
				}
			}
		}
		if !read.flag("count_include_pad", true) {
			counted = inside
		}
		if read.text("pool_type", "max") == "avg" {
			largest = sum / counted
		}
		y.v = append(y.v, largest)
	}
	return y
}
