package openvino

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// openError says that the file leaves open how large an input is.
type openError struct{ dims []int }

func (e *openError) Error() string {
	return fmt.Sprintf("the file does not say how large it is, its shape is %v", e.dims)
}

// parameter imports an input of the graph.
func parameter(im *importer, n *node) operand {
	typ, list := "f32", []int(nil)
	if im.graph.old() {
		if len(n.outputs) > 0 {
			list = n.outputs[0].dims
		}
		if p := n.outputPrecision(); p != "FP32" && p != "FP16" {
			try.Failf("an input of precision %s is not supported, want FP32", text.Quote(short(p)))
		}
	} else {
		if typ = n.text("element_type", ""); typ != "f32" && typ != "u8" {
			n.fail("element_type", "f32 or u8")
		}
		for _, s := range splitDims(n.text("shape", "")) {
			if s == "?" || s == "-1" {
				list = append(list, -1)
				continue
			}
			one := &attributes{map[string]string{"shape": s}, map[string]bool{}}
			list = append(list, one.integer("shape", "", 1, maxValues))
		}
	}
	k := len(im.net.Inputs)
	var opts Options // which are about the first input
	if k == 0 {
		opts = im.opts
	}
	if len(list) < 2 || len(list) > 4 {
		try.Failf("it has %d dimensions, want a batch of images (4), of sequences (3) or of vectors (2)", len(list))
	}
	if k > 0 && list[0] != im.batch {
		try.Failf("its first dimension, the batch, is %d, that of another input %d", list[0], im.batch)
	}
	shape, seen := layout(list[1:], opts.InputShape, im.channelsLast(n.layer, list))
	im.checkShape(shape)
	im.batch = list[0]
	in := bcnn.Input{Shape: shape, DType: bcnn.Float32, Resize: opts.Resize}
	v := &value{layer: bcnn.NetworkInput - k, shape: shape, view: seen, bytes: typ == "u8"}
	if v.bytes || opts.InputType == bcnn.Uint8 {
		in.DType = bcnn.Uint8
	}
	if v.bytes && opts.InputType == bcnn.Float32 {
		in.DType = bcnn.Float32
	}
	in.Source = im.source(n.tensor(0), v)
	im.net.Inputs = append(im.net.Inputs, in)
	return operand{v: im.normalised(n, v, opts)}
}

// normalised applies Options.Mean and Options.Scale.
func (im *importer) normalised(n *node, v *value, opts Options) *value {
	for _, list := range []struct {
		name   string
		values []float32
	}{{"Mean", opts.Mean}, {"Scale", opts.Scale}} {
		switch many := len(list.values); {
		case many > 0 && v.bytes:
			try.Failf("Options.%s is for graphs that take f32; this one takes u8 and scales it itself", list.name)
		case many > 1 && many != v.shape.C:
			try.Failf("Options.%s has %d values, the input has %s", list.name, many, text.Count(v.shape.C, "channel"))
		}
	}
	if len(opts.Mean) > 0 {
		bias := make([]float32, len(opts.Mean))
		for i, m := range opts.Mean {
			bias[i] = -m
		}
		v = im.emit(n, "/mean", bcnn.Affine{Bias: bias}, v.shape, v.view, v)
	}
	if len(opts.Scale) > 0 {
		v = im.emit(n, "/scale", bcnn.Affine{Scale: slices.Clone(opts.Scale)}, v.shape, v.view, v)
	}
	return v
}

// splitDims splits a shape, whose dimensions may be open.
func splitDims(s string) (list []string) {
	for len(list) <= maxDims && s != "" {
		i := 0
		for i < len(s) && s[i] != ',' {
			i++
		}
		part := s[:i]
		for len(part) > 0 && part[0] == ' ' {
			part = part[1:]
		}
		list = append(list, part)
		s = s[min(i+1, len(s)):]
	}
	return list
}

// layout returns the image that dimensions behind the batch are, and how they lie on it. Dimensions
// that the file leaves open are those of given. last says that the channels come last; it does not
// matter to what is computed.
func layout(dims []int, given bcnn.Shape, last bool) (bcnn.Shape, view.View) {
	fix := func(d, given int) int {
		switch {
		case d == -1 && given < 1:
			try.Fail(&openError{dims})
		case d == -1:
			return given
		case given != 0 && given != d:
			try.Failf("a dimension of its shape %v is %d, Options.InputShape says %d", dims, d, given)
		}
		return d
	}
	switch len(dims) {
	case 1:
		s := bcnn.Shape{H: 1, W: 1, C: fix(dims[0], given.C)}
		return s, view.Vector(s.C)
	case 2:
		s := bcnn.Shape{H: fix(dims[0], given.H), W: 1, C: fix(dims[1], given.C)}
		return s, view.View{view.Batch, view.All(view.H, s.H), view.All(view.C, s.C)}
	}
	if last {
		s := bcnn.Shape{H: fix(dims[0], given.H), W: fix(dims[1], given.W), C: fix(dims[2], given.C)}
		return s, view.NHWC(s)
	}
	s := bcnn.Shape{C: fix(dims[0], given.C), H: fix(dims[1], given.H), W: fix(dims[2], given.W)}
	return s, view.NCHW(s)
}

// channelsLast tells whether an input of four dimensions is a batch of images with the channels last.
// It is if a Transpose reads it in front of the first convolution or pool. Without any of them a
// last dimension of 1 or 3 is likely that of the channels.
func (im *importer) channelsLast(l *layer, dims []int) bool {
	const most = 100 // that are looked at
	seen := map[int]bool{}
	queue := slices.Clone(im.graph.readers[l.index])
	for k := 0; k < len(queue) && k < most; k++ {
		try.Check(im.budget.Charge(64))
		next := &im.graph.layers[queue[k]]
		switch next.typ {
		case "Transpose", "Permute":
			return true
		case "Convolution", "GroupConvolution", "BinaryConvolution", "MaxPool", "AvgPool":
			return false
		}
		if !seen[queue[k]] {
			seen[queue[k]] = true
			try.Check(im.budget.Charge(16 * int64(len(im.graph.readers[next.index]))))
			queue = append(queue, im.graph.readers[next.index]...)
		}
	}
	colours := func(d int) bool { return d == 1 || d == 3 }
	return len(dims) == 4 && colours(dims[3]) && !colours(dims[1])
}

// convert imports Convert of computed values.
func convert(im *importer, n *node) operand {
	if to := n.text("destination_type", ""); to != "f32" {
		n.fail("destination_type", "f32")
	}
	v := *im.any(n, 0)
	v.bytes, v.truth = false, false
	return operand{v: &v}
}

// order returns the order of dimensions that a Transpose of a tensor of a rank gives.
func (im *importer) order(n *node, rank int) []int {
	var list []int64
	if im.graph.old() {
		for _, d := range n.numbers("order", 0, maxDims) {
			list = append(list, int64(d))
		}
	} else {
		list = im.constant(n, 1).integers(false)
	}
	order := make([]int, len(list))
	for i, d := range list {
		if order[i] = int(d); d < 0 || d >= int64(rank) || slices.Contains(order[:i], int(d)) {
			list = nil
			break
		}
	}
	if len(list) == 0 && len(order) == 0 { // reversed
		for i := range rank {
			order = append(order, rank-1-i)
		}
		list = make([]int64, rank)
	}
	if len(list) != rank {
		try.Failf("its order is not one of the %d dimensions of its input", rank)
	}
	return order
}

func transpose(im *importer, n *node) operand {
	v := im.any(n, 0)
	order := im.order(n, len(v.view))
	if order[0] != 0 {
		try.Failf("it moves the batch, which is not supported")
	}
	seen := make(view.View, len(order))
	for i, d := range order {
		seen[i] = v.view[d]
	}
	return operand{v: v.with(seen)}
}

// newDims returns the dimensions that Reshape, Squeeze or Unsqueeze makes of others; −1 and
// batchSize stand for a batch whose size is open.
func (im *importer) newDims(n *node, dims []int) []int {
	switch n.typ {
	case "Squeeze", "Unsqueeze":
		return im.squeezed(n, dims)
	}
	special := n.flag("special_zero", false)
	list := im.constant(n, 1).integers(true)
	return reshaped(dims, list, special)
}

// reshaped resolves the dimensions of a Reshape.
func reshaped(dims []int, list []int64, special bool) []int {
	out, unknown, rest := given(dims, list, special)
	values := 1
	for _, d := range dims {
		if d == 0 {
			try.Failf("a shape %v has no values", dims)
		}
		if d > 0 {
			values *= d
		}
	}
	switch open := len(dims) > 0 && dims[0] == -1; {
	case unknown == 0 && open:
		if values != rest {
			try.Failf("it joins the batch with other dimensions: of %v it makes %v", dims, list)
		}
		out[0] = -1
	case unknown >= 0:
		if values%rest != 0 {
			try.Failf("a shape %v cannot become %v", dims, list)
		}
		out[unknown] = values / rest
	case values != rest:
		try.Failf("a shape %v cannot become %v", dims, list)
	}
	return out
}

// given returns the dimensions that a Reshape of dims says, of which the product behind the batch is
// rest, and which of them it leaves open, −1 for none.
func given(dims []int, list []int64, special bool) (out []int, unknown, rest int) {
	out, unknown, rest = make([]int, len(list)), -1, 1
	for i, d := range list {
		switch {
		case d == batchSize:
			if i != 0 || len(dims) == 0 || dims[0] != -1 {
				try.Failf("it puts the batch, whose size the file leaves open, in another place")
			}
			out[0] = -1
			continue
		case d == 0 && special:
			if i >= len(dims) {
				try.Failf("its new shape %v takes a dimension of shape %v that is not there", list, dims)
			}
			if d = int64(dims[i]); d == -1 && i == 0 {
				out[0] = -1
				continue
			}
		case d == -1 && unknown < 0:
			unknown = i
			continue
		}
		if d < 1 || d > maxValues {
			try.Failf("its new shape %v is none", list)
		}
		out[i] = int(d)
		if rest *= out[i]; rest > maxValues {
			try.Failf("its new shape %v has more than %d values", list, maxValues)
		}
	}
	return out, unknown, rest
}

// squeezed returns dimensions without some of size 1, or with more of them.
func (im *importer) squeezed(n *node, dims []int) []int {
	more := n.typ == "Unsqueeze"
	if len(n.from) < 2 {
		if more {
			try.Failf("its axes are missing")
		}
		// All of size 1, which is another shape for each batch size.
		return slices.DeleteFunc(slices.Clone(dims), func(d int) bool { return d == 1 })
	}
	axes := im.constant(n, 1).integers(false)
	rank := len(dims)
	if more {
		rank += len(axes)
	}
	chosen := make([]bool, rank)
	for _, a := range axes {
		k := a
		if k < 0 {
			k += int64(rank)
		}
		if k < 0 || k >= int64(rank) || chosen[k] || !more && dims[k] != 1 || rank > maxDims {
			try.Failf("its axis %d is none for a shape %v, or there twice, or not of size 1", a, dims)
		}
		chosen[k] = true
	}
	out, at := []int{}, 0
	for _, is := range chosen {
		switch {
		case more && is:
			out = append(out, 1)
			continue
		case more || !is:
			out = append(out, dims[at])
		}
		at++
	}
	return out
}

// reshape imports Reshape, Squeeze and Unsqueeze of computed values.
func reshape(im *importer, n *node) operand {
	v := im.any(n, 0)
	return operand{v: im.seenAs(n, v, im.newDims(n, append([]int{im.batch}, v.dims()...)))}
}

// seenAs returns a value with other dimensions, of which the first must be the batch.
func (im *importer) seenAs(n *node, v *value, dims []int) *value {
	if len(dims) == 0 || dims[0] != im.batch {
		try.Failf("it moves the batch, or makes one of other dimensions: its output has shape %v, want %d first", dims, im.batch)
	}
	if len(dims) > maxDims {
		try.Failf("a shape %v has more than %d dimensions", dims, maxDims)
	}
	seen, err := v.view.Reshape(dims[1:])
	if err == nil && seenValues(seen) == v.shape.Values() {
		return v.with(seen)
	}
	v.checkLast()
	v = im.plain(n, im.settle(n, v))
	return v.with(vectorView(dims[1:]))
}

func seenValues(v view.View) int {
	values := 1
	for _, d := range v[1:] {
		values *= view.Product(d)
	}
	return values
}

// concat imports Concat.
func concat(im *importer, n *node) operand {
	axis := n.integer("axis", "", -maxDims, maxDims)
	list := make([]*value, len(n.from))
	try.Check(im.budget.Charge(256 * int64(len(list))))
	for k := range list {
		list[k] = im.value(n, k)
	}
	if len(list) == 0 {
		try.Failf("it has no inputs")
	}
	first := list[0]
	if axis < 0 {
		axis += len(first.view)
	}
	if axis < 1 || axis >= len(first.view) {
		try.Failf("it joins dimension %d of %d, which is the batch or none", axis, len(first.view))
	}
	if len(list) == 1 {
		return operand{v: first}
	}
	total, even := joined(list, axis)
	if !even {
		for k, v := range list {
			list[k] = im.joinable(n, v, axis)
		}
	}
	seen := slices.Clone(list[0].view)
	shape := list[0].shape
	shape.C = 0
	for _, v := range list {
		shape.C += v.shape.C
	}
	if seen[axis] = view.All(view.C, total); shape.C != total {
		// Vectors of several dimensions, of which the first one is joined.
		rest := shape.C / total
		seen[axis] = []view.Atom{{Axis: view.C, Stride: rest, Size: total}}
	}
	im.checkShape(shape)
	return operand{v: im.emit(n, "", bcnn.Concat{}, shape, seen, list...)}
}

// joined returns the size of values that are joined along a dimension, and whether it is the channels of all,
// whose pixels are the same.
func joined(list []*value, axis int) (total int, even bool) {
	first := list[0]
	even = true
	for _, v := range list {
		if len(v.view) != len(first.view) {
			try.Failf("it joins tensors of %d and %d dimensions", len(first.view), len(v.view))
		}
		for d := 1; d < len(v.view); d++ {
			if d != axis && v.size(d) != first.size(d) {
				try.Failf("it joins tensors of dimensions %v and %v behind the batch", first.dims(), v.dims())
			}
			even = even && (d == axis || slices.Equal(v.view[d], first.view[d]))
		}
		total += v.size(axis)
		even = even && slices.Equal(v.view[axis], view.All(view.C, v.shape.C)) && v.shape.H == first.shape.H && v.shape.W == first.shape.W
	}
	return total, even
}

// joinable returns a value whose channels can be joined along a dimension: a vector where no
// dimension is in front of it, or an image that has it as its channels.
func (im *importer) joinable(n *node, v *value, axis int) *value {
	var rows, cols []int
	front := 1
	for _, d := range v.indices() {
		switch {
		case d < axis:
			rows, front = append(rows, d), front*v.size(d)
		case d > axis:
			cols = append(cols, d)
		}
	}
	if front == 1 {
		return im.plain(n, v)
	}
	return im.image(n, v, []int{axis}, rows, cols)
}
