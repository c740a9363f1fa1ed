package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A plain interpreter of ONNX graphs in float64, in the layout of the file: the
// oracle of the importer. It follows the operators' definitions literally and
// panics on what it does not know.
type array struct {
	dims []int
	v    []float64
}

func newArray(dims ...int) array {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return array{slices.Clone(dims), make([]float64, n)}
}

// each calls f with every index of the dimensions.
func each(dims []int, f func(index []int)) {
	n := newArray(dims...)
	index := make([]int, len(dims))
	for i := range n.v {
		rest := i
		for d := len(dims) - 1; d >= 0; d-- {
			index[d] = rest % dims[d]
			rest /= dims[d]
		}
		f(index)
	}
}

// at reads with broadcasting: surplus leading indices are dropped.
func (a array) at(index ...int) float64 { return a.v[a.place(index)] }

func (a array) place(index []int) int {
	index = index[len(index)-len(a.dims):]
	at := 0
	for d, i := range index {
		if a.dims[d] == 1 {
			i = 0
		}
		at = at*a.dims[d] + i
	}
	return at
}

// padded reads an image with a value outside.
func (a array) padded(n, c, y, x int, outside float64) float64 {
	if y < 0 || x < 0 || y >= a.dims[2] || x >= a.dims[3] {
		return outside
	}
	return a.at(n, c, y, x)
}

func (n testNode) int(name string, fallback int) int {
	if v, ok := n.attrs[name]; ok {
		return v.(int)
	}
	return fallback
}

func (n testNode) float(name string, fallback float64) float64 {
	if v, ok := n.attrs[name]; ok {
		return v.(float64)
	}
	return fallback
}

func (n testNode) list(name string, fallback ...int) []int {
	if v, ok := n.attrs[name]; ok {
		return v.([]int)
	}
	return fallback
}

func toInts(a array) []int {
	var out []int
	for _, v := range a.v {
		out = append(out, int(v))
	}
	return out
}

// tensors returns all tensors that the model makes of a batch.
func (m testModel) tensors(in array, more ...array) map[string]array {
	env := map[string]array{m.input.name: in}
	for i, a := range more {
		env[m.extra[i].name] = a
	}
	for _, t := range m.inits {
		env[t.name] = array{t.dims, t.values}
	}
	lists := map[string][]array{}
	for _, n := range m.nodes {
		var in []array
		for _, name := range n.in {
			a, ok := env[name]
			if _, list := lists[name]; !ok && !list && name != "" {
				panic("no " + name)
			}
			in = append(in, a)
		}
		if n.sequence(env, lists) {
			continue
		}
		if n.op == "Split" {
			for i, part := range n.split(in) {
				env[n.out[i]] = part
			}
			continue
		}
		env[n.out[0]] = n.execute(in, m)
	}
	return env
}

func broadcastArrays(in []array, f func(x []float64) float64) array {
	rank := 0
	for _, a := range in {
		rank = max(rank, len(a.dims))
	}
	dims := make([]int, rank)
	for d := range dims {
		dims[d] = 1
		for _, a := range in {
			if i := d - rank + len(a.dims); i >= 0 {
				dims[d] = max(dims[d], a.dims[i])
			}
		}
	}
	out := newArray(dims...)
	x := make([]float64, len(in))
	i := 0
	each(dims, func(index []int) {
		for k, a := range in {
			x[k] = a.at(index...)
		}
		out.v[i] = f(x)
		i++
	})
	return out
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var elementwise = map[string]func(x []float64) float64{
	"Identity":   func(x []float64) float64 { return x[0] },
	"Dropout":    func(x []float64) float64 { return x[0] },
	"Add":        func(x []float64) float64 { return x[0] + x[1] },
	"Sum":        func(x []float64) float64 { return x[0] + x[1] + x[2] },
	"Sub":        func(x []float64) float64 { return x[0] - x[1] },
	"Mul":        func(x []float64) float64 { return x[0] * x[1] },
	"Div":        func(x []float64) float64 { return x[0] / x[1] },
	"Pow":        func(x []float64) float64 { return math.Pow(x[0], x[1]) },
	"Max":        func(x []float64) float64 { return slices.Max(x) },
	"Min":        func(x []float64) float64 { return slices.Min(x) },
	"Neg":        func(x []float64) float64 { return -x[0] },
	"Abs":        func(x []float64) float64 { return math.Abs(x[0]) },
	"Reciprocal": func(x []float64) float64 { return 1 / x[0] },
	"Softsign":   func(x []float64) float64 { return x[0] / (1 + math.Abs(x[0])) },
	"Mean": func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return sum / float64(len(x))
	},
	"Sqrt":           func(x []float64) float64 { return math.Sqrt(x[0]) },
	"Relu":           func(x []float64) float64 { return max(x[0], 0) },
	"Round":          func(x []float64) float64 { return math.RoundToEven(x[0]) },
	"Sign":           func(x []float64) float64 { return b2f(x[0] > 0) - b2f(x[0] < 0) },
	"Not":            func(x []float64) float64 { return 1 - x[0] },
	"And":            func(x []float64) float64 { return x[0] * x[1] },
	"Or":             func(x []float64) float64 { return max(x[0], x[1]) },
	"Xor":            func(x []float64) float64 { return b2f(x[0] != x[1]) },
	"Greater":        func(x []float64) float64 { return b2f(x[0] > x[1]) },
	"GreaterOrEqual": func(x []float64) float64 { return b2f(x[0] >= x[1]) },
	"Less":           func(x []float64) float64 { return b2f(x[0] < x[1]) },
	"LessOrEqual":    func(x []float64) float64 { return b2f(x[0] <= x[1]) },
	"Equal":          func(x []float64) float64 { return b2f(x[0] == x[1]) },
	"BipolarQuant":   func(x []float64) float64 { return x[1] * (2*b2f(x[0] >= 0) - 1) },
	"Floor":          func(x []float64) float64 { return math.Floor(x[0]) },
	"Ceil":           func(x []float64) float64 { return math.Ceil(x[0]) },
	"Tanh":           func(x []float64) float64 { return math.Tanh(x[0]) },
	"Exp":            func(x []float64) float64 { return math.Exp(x[0]) },
	"Erf":            func(x []float64) float64 { return math.Erf(x[0]) },
	"Sigmoid":        func(x []float64) float64 { return sigmoid(x[0]) },
	"Softplus":       func(x []float64) float64 { return softplus(x[0]) },
	"HardSwish":      func(x []float64) float64 { return x[0] * min(max(x[0]+3, 0), 6) / 6 },
	"Mish":           func(x []float64) float64 { return x[0] * math.Tanh(softplus(x[0])) },
	"DequantizeLinear": func(x []float64) float64 {
		if len(x) < 3 {
			return x[0] * x[1]
		}
		return (x[0] - x[2]) * x[1]
	},
	"Where": func(x []float64) float64 {
		if x[0] != 0 {
			return x[1]
		}
		return x[2]
	},
}

func sigmoid(x float64) float64  { return 1 / (1 + math.Exp(-x)) }
func softplus(x float64) float64 { return math.Log1p(math.Exp(x)) }

func (n testNode) execute(in []array, m testModel) array {
	if n.op == "QuantizeLinear" || n.op == "DequantizeLinear" {
		axis := 1
		if a, ok := n.attrs["axis"].(int); ok {
			axis = a
		}
		for i := range in[1:] {
			if len(in[i+1].dims) == 1 { // of each channel
				in[i+1].dims = append(in[i+1].dims, slices.Repeat([]int{1}, len(in[0].dims)-axis-1)...)
			}
		}
	}
	if f := elementwise[n.op]; f != nil {
		return broadcastArrays(in, f)
	}
	one := func(f func(x float64) float64) array {
		return broadcastArrays(in[:1], func(x []float64) float64 { return f(x[0]) })
	}
	elu := func(x, alpha float64) float64 { return max(x, 0) + alpha*math.Expm1(min(x, 0)) }
	switch n.op {
	case "Elu":
		return one(func(x float64) float64 { return elu(x, n.float("alpha", 1)) })
	case "Selu":
		return one(func(x float64) float64 {
			return n.float("gamma", 1.05070102214813232421875) * elu(x, n.float("alpha", 1.67326319217681884765625))
		})
	case "Celu":
		return one(func(x float64) float64 { return n.float("alpha", 1) * elu(x/n.float("alpha", 1), 1) })
	case "ThresholdedRelu":
		return one(func(x float64) float64 { return x * b2f(x > n.float("alpha", 1)) })
	case "Shrink":
		return one(func(x float64) float64 {
			switch bias, lambd := n.float("bias", 0), n.float("lambd", 0.5); {
			case x < -lambd:
				return x + bias
			case x > lambd:
				return x - bias
			}
			return 0
		})
	case "Swish":
		return one(func(x float64) float64 { return x * sigmoid(n.float("alpha", 1)*x) })
	case "Gelu":
		return one(func(x float64) float64 {
			if n.attrs["approximate"] == "tanh" {
				return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
			}
			return x * (1 + math.Erf(x/math.Sqrt2)) / 2
		})
	case "Constant":
		t := n.attrs["value"].(testTensor)
		return array{t.dims, t.values}
	case "Cast", "CastLike":
		return broadcastArrays(in[:1], func(x []float64) float64 {
			switch pb.DataType(n.int("to", 0)) {
			case pb.Bool:
				return b2f(x[0] != 0)
			case pb.Int32, pb.Int64, pb.Int8:
				return math.Trunc(x[0])
			}
			return x[0]
		})
	case "Clip":
		lo, hi := n.float("min", math.Inf(-1)), n.float("max", math.Inf(1))
		if len(in) > 1 && in[1].v != nil {
			lo = in[1].v[0]
		}
		if len(in) > 2 && in[2].v != nil {
			hi = in[2].v[0]
		}
		return broadcastArrays(in[:1], func(x []float64) float64 { return max(lo, min(x[0], hi)) })
	case "HardSigmoid":
		a, b := n.float("alpha", 0.2), n.float("beta", 0.5)
		return broadcastArrays(in, func(x []float64) float64 { return max(0, min(a*x[0]+b, 1)) })
	case "Quant", "IntQuant":
		if n.int("signed", 1) == 1 && in[3].v[0] == 1 {
			return broadcastArrays(in[:2], func(x []float64) float64 { return x[1] * (2*b2f(x[0] >= 0) - 1) })
		}
		lo, hi := 0.0, math.Pow(2, in[3].v[0])-1
		if n.int("signed", 1) == 1 {
			lo, hi = -(hi+1)/2, (hi-1)/2
			lo += float64(n.int("narrow", 1))
		} else {
			hi -= float64(n.int("narrow", 1))
		}
		return broadcastArrays(in[:3], func(x []float64) float64 {
			return x[1] * (n.rounded(max(lo, min(x[0]/x[1]+x[2], hi))) - x[2])
		})
	case "FakeQuantize":
		top := float64(n.int("levels", 0) - 1)
		return broadcastArrays(in, func(x []float64) float64 {
			switch {
			case x[0] <= min(x[1], x[2]):
				return x[3]
			case x[0] > max(x[1], x[2]):
				return x[4]
			}
			return math.RoundToEven((x[0]-x[1])/(x[2]-x[1])*top)/top*(x[4]-x[3]) + x[3]
		})
	case "Trunc": // of version 2
		hi := math.Pow(2, in[5].v[0]) - 1
		return broadcastArrays([]array{in[0], in[1], in[4]}, func(x []float64) float64 {
			return x[2] * n.rounded(max(0, min(math.RoundToEven(x[0]/x[1])/(x[2]/x[1]), hi)))
		})
	case "MultiThreshold":
		return n.thresholds(in[0], in[1])
	case "QuantizeLinear":
		typ := pb.DataType(n.int("output_dtype", int(pb.Uint8)))
		for _, t := range m.inits {
			if len(n.in) > 2 && t.name == n.in[2] {
				typ = t.typ
			}
		}
		lo, hi := typ.Limits()
		return broadcastArrays(in, func(x []float64) float64 {
			zero := 0.0
			if len(x) > 2 {
				zero = x[2]
			}
			return max(float64(lo), min(math.RoundToEven(x[0]/x[1])+zero, float64(hi)))
		})
	case "Conv":
		return n.conv(in)
	case "ConvTranspose":
		return n.convTranspose(in)
	case "DepthToSpace", "SpaceToDepth":
		return n.blocks(in[0])
	case "ArgMax", "ArgMin":
		return n.position(in[0])
	case "TopK":
		return n.best(in)
	case "LRN":
		return n.response(in[0])
	case "MaxPool":
		return n.maxPool(in[0])
	case "AveragePool":
		return n.averagePool(in[0], n.list("kernel_shape"))
	case "GlobalAveragePool":
		return n.averagePool(in[0], in[0].dims[2:])
	case "PRelu":
		return broadcastArrays(in, func(x []float64) float64 { return max(x[0], 0) + x[1]*min(x[0], 0) })
	case "LeakyRelu":
		alpha := float64(float32(n.float("alpha", 0.01)))
		return broadcastArrays(in, func(x []float64) float64 { return max(x[0], 0) + float64(float32(alpha*min(x[0], 0))) })
	case "BatchNormalization":
		eps := n.float("epsilon", 1e-5)
		out := newArray(in[0].dims...)
		i := 0
		each(out.dims, func(index []int) {
			c := index[1]
			out.v[i] = (in[0].v[i]-in[3].v[c])/math.Sqrt(in[4].v[c]+eps)*in[1].v[c] + in[2].v[c]
			i++
		})
		return out
	case "Gemm":
		b := in[1]
		if n.int("transB", 0) != 0 {
			b = transpose(b, []int{1, 0})
		}
		out := matMul(in[0], b)
		each(out.dims, func(index []int) {
			p := out.place(index)
			out.v[p] *= n.float("alpha", 1)
			if len(in) > 2 {
				out.v[p] += n.float("beta", 1) * in[2].at(index...)
			}
		})
		return out
	case "MatMul":
		return matMul(in[0], in[1])
	case "Einsum":
		return n.einsum(in)
	case "Transpose":
		return transpose(in[0], n.list("perm"))
	case "Flatten":
		outer := 1
		for _, d := range in[0].dims[:n.int("axis", 1)] {
			outer *= d
		}
		return array{[]int{outer, len(in[0].v) / outer}, in[0].v}
	case "Reshape":
		dims, known, free := toInts(in[1]), 1, -1
		for i := range dims {
			if dims[i] == 0 {
				dims[i] = in[0].dims[i]
			}
			if dims[i] == -1 {
				free = i
			} else {
				known *= dims[i]
			}
		}
		if free >= 0 {
			dims[free] = len(in[0].v) / known
		}
		return array{dims, in[0].v}
	case "Squeeze", "Unsqueeze":
		axes := n.list("axes")
		if len(in) > 1 {
			axes = toInts(in[1])
		}
		dims := slices.Clone(in[0].dims)
		for d := range dims {
			if len(in) < 2 && n.attrs["axes"] == nil && dims[d] == 1 {
				axes = append(axes, d)
			}
		}
		slices.Sort(axes)
		if n.op == "Unsqueeze" {
			for _, a := range axes {
				dims = slices.Insert(dims, a, 1)
			}
		} else {
			for _, a := range slices.Backward(axes) {
				dims = slices.Delete(dims, a, a+1)
			}
		}
		return array{dims, in[0].v}
	case "Shape":
		out := newArray(len(in[0].dims))
		for i, d := range in[0].dims {
			out.v[i] = float64(d)
		}
		return out
	case "Im2Col":
		return n.im2col(in[0])
	case "Col2Im": // of windows of one pixel
		return array{slices.Concat(in[0].dims[:2], toInts(in[1])), in[0].v}
	case "Gather":
		return n.gather(in)
	case "GatherND":
		return gatherND(in[0], in[1])
	case "ScatterND":
		return scatterND(in[0], in[1], in[2])
	case "ScatterElements":
		return scatterElements(in[0], in[1], in[2], n.int("axis", 0))
	case "Slice":
		return n.slice(in)
	case "Resize": // asymmetric, rounded down
		scales, dims := in[2].v, slices.Clone(in[0].dims)
		for i := range dims {
			dims[i] *= int(scales[i])
		}
		out := newArray(dims...)
		for i := range out.v {
			at, rest, stride := 0, i, 1
			for d := len(dims) - 1; d >= 0; d-- {
				at += rest % dims[d] / int(scales[d]) * stride
				rest, stride = rest/dims[d], stride*in[0].dims[d]
			}
			out.v[i] = in[0].v[at]
		}
		return out
	case "Concat":
		return n.concat(in)
	case "Tile":
		out := in[0]
		for d, k := range toInts(in[1]) {
			var positions []int
			for i := range k * out.dims[d] {
				positions = append(positions, i%out.dims[d])
			}
			out = out.take(d, positions)
		}
		return out
	case "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum":
		return n.reduce(in)
	case "GlobalMaxPool":
		return testNode{op: "ReduceMax", attrs: map[string]any{"axes": []int{2, 3}}}.reduce(in)
	case "ConstantOfShape":
		out := newArray(toInts(in[0])...)
		if fill, ok := n.attrs["value"].(testTensor); ok {
			for i := range out.v {
				out.v[i] = fill.values[0]
			}
		}
		return out
	case "Expand":
		return broadcastArrays([]array{in[0], newArray(toInts(in[1])...)}, func(x []float64) float64 { return x[0] })
	case "Pad":
		pads, value := n.list("pads"), n.float("value", 0)
		if len(in) > 1 {
			pads = toInts(in[1])
		}
		if len(in) > 2 {
			value = in[2].v[0]
		}
		rank := len(in[0].dims)
		dims := slices.Clone(in[0].dims)
		for d := range dims {
			dims[d] += pads[d] + pads[d+rank]
		}
		out := newArray(dims...)
		i := 0
		each(dims, func(index []int) {
			inside := slices.Clone(index)
			out.v[i] = value
			for d := range inside {
				inside[d] -= pads[d]
				if inside[d] < 0 || inside[d] >= in[0].dims[d] {
					inside = nil
					break
				}
			}
			if inside != nil {
				out.v[i] = in[0].at(inside...)
			}
			i++
		})
		return out
	case "LogSoftmax", "Softmax": // executables return the logits before it
		if n.int("oracle.inside", 0) != 0 {
			return n.normalised(in)
		}
		return in[0]
	case "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "MeanVarianceNormalization", "RMSNormalization":
		return n.normalised(in)
	case "ReduceL1", "ReduceL2", "ReduceSumSquare":
		return n.distances(in)
	case "Binarize":
		return n.binarize(in[0])
	}
	panic(fmt.Sprintf("no oracle for %s", n.op))
}

// matMul multiplies the last two dimensions of a and b, of which one may have more.
func matMul(a, b array) array {
	outer := func(x array) []int { return x.dims[:len(x.dims)-2] }
	rows, k, m := a.dims[len(a.dims)-2], a.dims[len(a.dims)-1], b.dims[len(b.dims)-1]
	lead := outer(a)
	if len(outer(b)) > len(lead) {
		lead = outer(b)
	}
	out := newArray(append(slices.Clone(lead), rows, m)...)
	for r := range len(out.v) / m {
		ra, rb := r, r/rows*k
		if len(outer(a)) == 0 {
			ra = r % rows
		}
		if len(outer(b)) == 0 {
			rb = 0
		}
		for o := range m {
			for i := range k {
				out.v[r*m+o] += a.v[ra*k+i] * b.v[(rb+i)*m+o]
			}
		}
	}
	return out
}

func transpose(a array, perm []int) array {
	dims := make([]int, len(perm))
	for i, p := range perm {
		dims[i] = a.dims[p]
	}
	out := newArray(dims...)
	i := 0
	from := make([]int, len(perm))
	each(dims, func(index []int) {
		for d, p := range perm {
			from[p] = index[d]
		}
		out.v[i] = a.at(from...)
		i++
	})
	return out
}

// pads returns the padding at the begin and end of an axis, by the definition
// of auto_pad, and the output size.
func (n testNode) pads(axis, in, kernel int) (begin, size int) {
	s, d := n.list("strides", 1, 1)[axis], n.list("dilations", 1, 1)[axis]
	span := (kernel-1)*d + 1
	p := n.list("pads", 0, 0, 0, 0)
	begin, end := p[axis], p[axis+2]
	if auto, _ := n.attrs["auto_pad"].(string); auto == "SAME_UPPER" || auto == "SAME_LOWER" {
		size = int(math.Ceil(float64(in) / float64(s)))
		total := max(0, (size-1)*s+span-in)
		begin = total / 2
		if auto == "SAME_LOWER" {
			begin = total - total/2
		}
		return begin, size
	}
	exact := float64(in+begin+end-span)/float64(s) + 1
	size = int(math.Floor(exact))
	if n.int("ceil_mode", 0) != 0 {
		size = int(math.Ceil(exact))
		if (size-1)*s >= in+begin {
			size--
		}
	}
	return begin, size
}

func (n testNode) conv(in []array) array {
	x, w := in[0], in[1]
	groups := n.int("group", 1)
	s, d := n.list("strides", 1, 1), n.list("dilations", 1, 1)
	top, h := n.pads(0, x.dims[2], w.dims[2])
	left, wd := n.pads(1, x.dims[3], w.dims[3])
	out := newArray(x.dims[0], w.dims[0], h, wd)
	i := 0
	each(out.dims, func(index []int) {
		b, o, y, xx := index[0], index[1], index[2], index[3]
		sum := 0.0
		if len(in) > 2 {
			sum = in[2].v[o]
		}
		group := o / (w.dims[0] / groups)
		for c := range w.dims[1] {
			for ky := range w.dims[2] {
				for kx := range w.dims[3] {
					sum += w.at(o, c, ky, kx) * x.padded(b, group*w.dims[1]+c, y*s[0]-top+ky*d[0], xx*s[1]-left+kx*d[1], 0)
				}
			}
		}
		out.v[i] = sum
		i++
	})
	return out
}

func (n testNode) maxPool(x array) array {
	k, s, dil := n.list("kernel_shape"), n.list("strides", 1, 1), n.list("dilations", 1, 1)
	top, h := n.pads(0, x.dims[2], k[0])
	left, wd := n.pads(1, x.dims[3], k[1])
	out := newArray(x.dims[0], x.dims[1], h, wd)
	i := 0
	each(out.dims, func(index []int) {
		best := math.Inf(-1)
		for ky := range k[0] {
			for kx := range k[1] {
				best = max(best, x.padded(index[0], index[1], index[2]*s[0]-top+ky*dil[0], index[3]*s[1]-left+kx*dil[1], math.Inf(-1)))
			}
		}
		out.v[i] = best
		i++
	})
	return out
}

// binarize is the operator of domain bitcnn on bytes.
func (n testNode) binarize(x array) array {
	luma := func(b, y, xx int) float64 {
		y, xx = min(max(y, 0), x.dims[2]-1), min(max(xx, 0), x.dims[3]-1)
		return math.Floor((77*x.at(b, 0, y, xx) + 150*x.at(b, 1, y, xx) + 29*x.at(b, 2, y, xx)) / 256)
	}
	t := n.list("thresholds")
	channels := map[string]int{"grey": 1, "lbp": 3, "threshold": 3}[n.attrs["scheme"].(string)]
	out := newArray(x.dims[0], channels, x.dims[2], x.dims[3])
	i := 0
	each(out.dims, func(index []int) {
		b, c, y, xx := index[0], index[1], index[2], index[3]
		var on bool
		switch n.attrs["scheme"] {
		case "grey":
			on = luma(b, y, xx) >= float64(t[0])
		case "threshold":
			on = x.at(b, c, y, xx) >= float64(t[c])
		case "lbp":
			neighbour := [][2]int{{-1, -1}, {0, 1}, {1, -1}}[c]
			on = luma(b, y+neighbour[0], xx+neighbour[1]) > luma(b, y, xx)
		}
		out.v[i] = 2*b2f(on) - 1
		i++
	})
	return out
}

func (n testNode) rounded(x float64) float64 {
	mode := "ROUND"
	if m, ok := n.attrs["rounding_mode"].(string); ok {
		mode = strings.ToUpper(m)
	}
	y := math.Abs(x)
	switch mode {
	case "CEIL":
		return math.Ceil(x)
	case "FLOOR":
		return math.Floor(x)
	case "UP":
		y = math.Ceil(y)
	case "DOWN":
		y = math.Floor(y)
	case "HALF_UP":
		y = math.Floor(y + 0.5)
	case "HALF_DOWN":
		y = math.Ceil(y - 0.5)
	default:
		y = math.RoundToEven(y)
	}
	return math.Copysign(y, x)
}

// thresholds counts, for each value of [image][channel][y][x], those of its channel that
// it reaches.
func (n testNode) thresholds(in, t array) array {
	out := newArray(in.dims...)
	i := 0
	each(in.dims, func(index []int) {
		count := 0
		for k := range t.dims[1] {
			count += int(b2f(in.v[i] >= t.at(min(index[1], t.dims[0]-1), k)))
		}
		out.v[i] = n.float("out_scale", 1)*float64(count) + n.float("out_bias", 0)
		i++
	})
	return out
}
