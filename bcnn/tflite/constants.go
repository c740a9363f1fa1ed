package tflite

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// constant is a tensor that is known: of the file, or computed from others.
type constant struct {
	tensor *schema.Tensor // nil if it is computed
	dims   []int          // those of packed bits count channels where it is computed
	list   []float32      // its numbers, once they are asked for
	packed bool           // they are packed bits, as +1 and −1
	whole  []int64        // whole numbers that are computed
}

// floats returns the numbers of a constant.
func (c *constant) floats(b *budget.Budget) []float32 {
	if c.packed {
		try.Failf("a constant of packed bits is not supported here")
	}
	if c.whole != nil {
		try.Failf("a constant of whole numbers is not supported here")
	}
	if c.list == nil {
		c.list = try.Value(c.tensor.Floats(b))
	}
	return c.list
}

// weights is floats of the weights of a float layer.
func (c *constant) weights(b *budget.Budget) []float32 {
	if c.tensor != nil && (c.tensor.Type == schema.Int8 || c.tensor.Type == schema.Uint8) {
		try.Failf("8-bit weights with a float input are not supported, since TensorFlow Lite rounds that input to 8 bits: convert the model without quantising it")
	}
	return c.floats(b)
}

// words returns the packed bits of a constant of the file.
func (c *constant) words() flat.Int32s {
	if c.tensor == nil {
		try.Failf("packed bits must be stored in the file here, not computed from other constants")
	}
	return try.Value(c.tensor.Int32s())
}

// maxIntegers is how many integers an operator takes as dimensions, sizes or positions.
const maxIntegers = 64

// integers returns the numbers of a constant of a few integers.
func (c *constant) integers() []int64 {
	if c.whole != nil {
		return c.whole
	}
	if c.tensor == nil {
		try.Failf("integers must be stored in the file, not computed from other constants")
	}
	if n := c.tensor.Values(); n > maxIntegers {
		try.Failf("a list of %d integers is too long, at most %d are supported", n, maxIntegers)
	}
	return try.Value(c.tensor.Integers())
}

// onConstants returns the handler of an operator on constants, nil if there is none.
func (im *importer) onConstants(o *schema.Operator) func(*importer, *schema.Operator) []operand {
	f := folders[o.Name]
	if t := try.Value(im.model.Tensor(o.Outputs[0])); t.Type == schema.Int32 && !o.Custom || t.Type == schema.Int64 {
		f = wholeFolders[o.Name]
	}
	if f == nil {
		return nil
	}
	return func(im *importer, o *schema.Operator) []operand {
		c := f(im, o)
		return []operand{{constant: c}}
	}
}

// folders are the operators on constants.
var folders map[string]func(*importer, *schema.Operator) *constant

func init() {
	unary := func(f func(x float32) float32) func(*importer, *schema.Operator) *constant {
		return func(im *importer, o *schema.Operator) *constant { return im.foldUnary(o, f) }
	}
	binary := func(f func(x, y float32) float32) func(*importer, *schema.Operator) *constant {
		return func(im *importer, o *schema.Operator) *constant { return im.foldBinary(o, f) }
	}
	clip := func(lo, hi float32) func(x float32) float32 {
		return func(x float32) float32 { return min(max(x, lo), hi) }
	}
	same := func(x float32) float32 { return x }
	folders = map[string]func(*importer, *schema.Operator) *constant{
		"ABS":           unary(func(x float32) float32 { return max(x, -x) }),
		"ADD":           binary(func(x, y float32) float32 { return x + y }),
		"BROADCAST_TO":  (*importer).foldFill,
		"DENSIFY":       func(im *importer, o *schema.Operator) *constant { return im.required(o, 0) }, // as tensor has it
		"DEQUANTIZE":    unary(same),
		"FILL":          (*importer).foldFill,
		"SQUARE":        unary(func(x float32) float32 { return x * x }),
		"DIV":           binary(func(x, y float32) float32 { return x / y }),
		"EXPAND_DIMS":   (*importer).foldReshape,
		"LceDequantize": (*importer).foldDequantize,
		"LceQuantize":   (*importer).foldQuantize,
		"MAXIMUM":       binary(func(x, y float32) float32 { return max(x, y) }),
		"MEAN":          (*importer).foldMean,
		"MINIMUM":       binary(func(x, y float32) float32 { return min(x, y) }),
		"MUL":           binary(func(x, y float32) float32 { return x * y }),
		"NEG":           unary(func(x float32) float32 { return -x }),
		"RELU":          unary(clip(0, math.MaxFloat32)),
		"RELU6":         unary(clip(0, 6)),
		"RELU_N1_TO_1":  unary(clip(-1, 1)),
		"RESHAPE":       (*importer).foldReshape,
		"SQUEEZE":       (*importer).foldReshape,
		"SUB":           binary(func(x, y float32) float32 { return x - y }),
		"TRANSPOSE":     (*importer).foldTranspose,
	}
}

// room makes a constant of n zeros.
func (im *importer) room(dims []int, n int) *constant {
	if bytes := 4 * int64(n); bytes > im.limits.TensorBytes {
		try.Failf("a constant of %d bytes, at most %d are allowed; Limits.TensorBytes allows more", bytes, im.limits.TensorBytes)
	}
	try.Check(im.budget.Charge(4 * int64(n)))
	return &constant{dims: dims, list: make([]float32, n)}
}

// each makes a constant of n numbers.
func (im *importer) each(dims []int, n int, f func(i int) float32) *constant {
	c := im.room(dims, n)
	try.Check(im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.list[i] = f(i)
		}
	}))
	return c
}

// walk calls f for every position of a tensor in order, with the offsets of it that two
// lists of strides give.
func (im *importer) walk(dims []int, n int, x, y []int, f func(i, x, y int)) {
	at := make([]int, len(dims))
	var a, b int
	try.Check(im.budget.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i, a, b)
			for k := len(dims) - 1; k >= 0; k-- {
				at[k]++
				a += x[k]
				b += y[k]
				if at[k] < dims[k] {
					break
				}
				at[k] = 0
				a -= dims[k] * x[k]
				b -= dims[k] * y[k]
			}
		}
	}))
}

func (im *importer) foldUnary(o *schema.Operator, f func(x float32) float32) *constant {
	x := im.required(o, 0)
	list := x.floats(im.budget)
	return im.each(x.dims, len(list), func(i int) float32 { return f(list[i]) })
}

func (im *importer) foldBinary(o *schema.Operator, f func(x, y float32) float32) *constant {
	if len(o.Inputs) != 2 {
		try.Failf("it has %d inputs, want 2", len(o.Inputs))
	}
	var c [2]*constant
	var lists [2][]float32
	for i := range c {
		c[i] = im.required(o, i)
		lists[i] = c[i].floats(im.budget)
	}
	dims := broadcast(c[0].dims, c[1].dims)
	n := 1
	for _, d := range dims {
		if n > schema.MaxSize/d {
			try.Failf("a constant of shape %v is too large", dims)
		}
		n *= d
	}
	out := im.room(dims, n)
	im.walk(dims, n, strides(c[0].dims, dims), strides(c[1].dims, dims), func(i, x, y int) {
		out.list[i] = f(lists[0][x], lists[1][y])
	})
	return out
}

// broadcast returns the dimensions of a result of two tensors, lined up at the last
// ones.
func broadcast(x, y []int) []int {
	out := make([]int, max(len(x), len(y)))
	for k := range out {
		at := func(d []int) int {
			if i := len(d) - len(out) + k; i >= 0 {
				return d[i]
			}
			return 1
		}
		a, b := at(x), at(y)
		if a != b && a != 1 && b != 1 {
			try.Failf("constants of shapes %v and %v cannot be combined", x, y)
		}
		out[k] = max(a, b)
	}
	return out
}

// strides returns how far apart the values of a tensor are along each dimension of one
// that it is repeated to.
func strides(d, to []int) []int {
	out := make([]int, len(to))
	stride := 1
	for i := len(d) - 1; i >= 0; i-- {
		if d[i] > 1 {
			out[len(to)-len(d)+i] = stride
		}
		stride *= d[i]
	}
	return out
}

func (im *importer) foldReshape(o *schema.Operator) *constant {
	x := im.required(o, 0)
	list := x.floats(im.budget)
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	if t.Values() != len(list) {
		try.Failf("%d values cannot be reshaped to %v", len(list), t.Dims)
	}
	im.reshapes(o, t)
	return &constant{dims: t.Dims, list: list}
}

func (im *importer) foldTranspose(o *schema.Operator) *constant {
	x := im.required(o, 0)
	list := x.floats(im.budget)
	perm := im.integers(o, 1)
	if len(perm) != len(x.dims) {
		try.Failf("a permutation of %d dimensions for an input of %d dimensions", len(perm), len(x.dims))
	}
	from := strides(x.dims, x.dims)
	dims, steps := make([]int, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		if p < 0 || p >= int64(len(perm)) || slices.Contains(perm[:i], p) {
			try.Failf("the permutation %v must have each dimension once", perm)
		}
		dims[i], steps[i] = x.dims[p], from[p]
	}
	out := im.room(dims, len(list))
	im.walk(dims, len(list), steps, steps, func(i, x, _ int) { out.list[i] = list[x] })
	return out
}

// foldMean is MEAN over all dimensions but some.
func (im *importer) foldMean(o *schema.Operator) *constant {
	x := im.required(o, 0)
	list := x.floats(im.budget)
	axes := im.integers(o, 1)
	over := make([]bool, len(x.dims))
	for _, a := range axes {
		if a < 0 {
			a += int64(len(over))
		}
		if a < 0 || a >= int64(len(over)) {
			try.Failf("there is no dimension %d, its input has %d dimensions", a, len(over))
		}
		over[a] = true
	}
	keep := o.Options.Uint8(0, 0) != 0
	n, steps := 1, make([]int, len(over))
	var dims []int
	for k := len(over) - 1; k >= 0; k-- {
		switch {
		case !over[k]:
			steps[k] = n
			n *= x.dims[k]
			dims = append(dims, x.dims[k])
		case keep:
			dims = append(dims, 1)
		}
	}
	slices.Reverse(dims)
	try.Check(im.budget.Charge(8 * int64(n)))
	sums := make([]float64, n)
	im.walk(x.dims, len(list), steps, steps, func(i, at, _ int) { sums[at] += float64(list[i]) })
	return im.each(dims, n, func(i int) float32 { return float32(sums[i] / float64(len(list)/n)) })
}

// foldQuantize is LceQuantize.
func (im *importer) foldQuantize(o *schema.Operator) *constant {
	x := im.required(o, 0)
	list := x.floats(im.budget)
	c := im.each(x.dims, len(list), func(i int) float32 {
		if list[i] < 0 {
			return -1
		}
		return 1
	})
	c.packed = true
	return c
}

// foldDequantize is LceDequantize.
func (im *importer) foldDequantize(o *schema.Operator) *constant {
	x := im.required(o, 0)
	if x.packed {
		return &constant{dims: x.dims, list: x.list}
	}
	// Words of the file: the output says how many channels they hold.
	words := x.words()
	t := try.Value(im.model.Tensor(o.Outputs[0]))
	d := t.Dims
	if len(d) == 0 || len(d) != len(x.dims) || !slices.Equal(d[:len(d)-1], x.dims[:len(d)-1]) || wordsOf(d[len(d)-1]) != x.dims[len(d)-1] {
		try.Failf("packed words of shape %v do not hold values of shape %v", x.dims, d)
	}
	channels := d[len(d)-1]
	return im.each(d, t.Values(), func(i int) float32 {
		c := i % channels
		return 1 - 2*float32(uint32(words.At(i/channels*wordsOf(channels)+c/wordBits))>>(c%wordBits)&1)
	})
}
