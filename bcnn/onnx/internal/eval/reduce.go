package eval

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// A reduction makes one value of many: it starts at zero, add takes in a value, and end finishes,
// given how many there were. It is in float64, with one rounding to the type of the tensor at the
// end.
type reduction struct {
	zero float64
	add  func(sum, x float64) float64
	end  func(sum float64, n int) float64
}

func plus(sum, x float64) float64       { return sum + x }
func asItIs(sum float64, _ int) float64 { return sum }

// reductions are the operators that reduce dimensions.
var reductions = map[string]reduction{
	"ReduceL1":        {0, func(sum, x float64) float64 { return sum + math.Abs(x) }, asItIs},
	"ReduceL2":        {0, func(sum, x float64) float64 { return sum + float64(x*x) }, func(sum float64, _ int) float64 { return math.Sqrt(sum) }},
	"ReduceLogSum":    {0, plus, func(sum float64, _ int) float64 { return math.Log(sum) }},
	"ReduceMax":       {math.Inf(-1), func(sum, x float64) float64 { return max(sum, x) }, asItIs},
	"ReduceMean":      {0, plus, func(sum float64, n int) float64 { return sum / float64(n) }},
	"ReduceMin":       {math.Inf(1), func(sum, x float64) float64 { return min(sum, x) }, asItIs},
	"ReduceProd":      {1, func(sum, x float64) float64 { return sum * x }, asItIs},
	"ReduceSum":       {0, plus, asItIs},
	"ReduceSumSquare": {0, func(sum, x float64) float64 { return sum + float64(x*x) }, asItIs},
}

// Reductions returns the names of the operators that Reduce knows.
func Reductions() []string {
	var names []string
	for name := range reductions {
		names = append(names, name)
	}
	names = append(names, "ReduceLogSumExp")
	slices.Sort(names)
	return names
}

// lookUnits is the cost of visiting a value in addition to what walk charges. Nothing is allocated.
const lookUnits = 4

// Reduce reduces the given dimensions of a tensor to size 1.
func (e *Evaluator) Reduce(op string, t *Tensor, axes []int) *Tensor {
	if t.HasBatch() {
		try.Fail(errBatch)
	}
	extreme := op == "ReduceMax" || op == "ReduceMin"
	if !t.Type.Real() && t.Type != pb.Int64 && t.Type != pb.Int32 && !extreme {
		try.Failf("%s of %v is not supported", op, t.Type)
	}
	if op == "ReduceLogSumExp" {
		return e.logSumExp(t, axes)
	}
	r := reductions[op]
	dims, n := slices.Clone(t.Dims), 1 // n values become one
	for _, a := range axes {
		n *= dims[a]
		dims[a] = 1
	}
	out := e.NewTensor(t.Type, dims)
	if n == 0 && out.Len() > 0 && !slices.Contains([]string{"ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"}, op) {
		try.Failf("there are no values to reduce")
	}
	try.Check(e.Budget.Charge(8*int64(out.Len()) + lookUnits*int64(t.Len())))
	sums := make([]float64, out.Len())
	try.Check(e.Budget.Loop(len(sums), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sums[i] = r.zero
		}
	}))
	e.walk(t.Dims, [][]int{stretched(dims, len(dims))}, func(i int, at []int) {
		sums[at[0]] = r.add(sums[at[0]], t.At(i))
	})
	overflow := false
	try.Check(e.Budget.Loop(len(sums), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v := r.end(sums[i], n)
			if !t.Type.Real() {
				v = math.Trunc(v)
				overflow = overflow || !holds(t.Type, v)
			}
			if !overflow {
				out.Set(i, v)
			}
		}
	}))
	if overflow {
		try.Failf("integer overflow")
	}
	return out
}

// logSumExp returns log Σ e^x. It subtracts the largest x first, since e^x may be infinite.
func (e *Evaluator) logSumExp(t *Tensor, axes []int) *Tensor {
	if !t.Type.Real() {
		try.Failf("ReduceLogSumExp of %v is not supported, only of floating-point numbers", t.Type)
	}
	most := e.Reduce("ReduceMax", t, axes)
	try.Check(e.Budget.Loop(most.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if math.IsInf(most.At(i), 0) {
				most.Set(i, 0)
			}
		}
	}))
	t = e.Unary("Exp")([]*Tensor{e.Binary("Sub")([]*Tensor{t, most})})
	sum := e.Unary("Log")([]*Tensor{e.Reduce("ReduceSum", t, axes)})
	return e.Binary("Add")([]*Tensor{sum, most})
}

// Range returns start, start + delta, … up to limit, which is left out.
func (e *Evaluator) Range(start, limit, delta *Tensor) *Tensor {
	for _, t := range []*Tensor{start, limit, delta} {
		if t.Len() != 1 || t.Type != start.Type || t.HasBatch() {
			try.Failf("start, limit and delta must be single values of one type, which do not depend on the batch size: export the model for a fixed one")
		}
	}
	first, step := start.At(0), delta.At(0)
	n := math.Ceil((limit.At(0) - first) / step)
	if !(math.Abs(n) <= pb.MaxSize) || step == 0 {
		try.Failf("it would have %v values: delta must not be 0, and the range not too large", n)
	}
	out := e.NewTensor(start.Type, []int{int(max(n, 0))})
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out.Set(i, first+float64(float64(i)*step))
		}
	}))
	return out
}

// Collapse returns a tensor that broadcasts to the same values: each dimension of along over which
// it does not vary has size 1.
func (e *Evaluator) Collapse(t *Tensor, along []bool) *Tensor {
	dims, steps := slices.Clone(t.Dims), strides(t.Dims)
	for d, size := range t.Dims {
		if !along[d] || size < 2 || t.Len() == 0 {
			continue
		}
		try.Check(e.Budget.Charge(lookUnits * int64(t.Len())))
		varies := false
		// Compare every value with the first one along this dimension.
		first := slices.Clone(steps)
		first[d] = 0
		e.walk(t.Dims, [][]int{first}, func(i int, at []int) {
			varies = varies || !(t.At(i) == t.At(at[0]))
		})
		if !varies {
			dims[d] = 1
		}
	}
	if slices.Equal(dims, t.Dims) {
		return t
	}
	return e.strided(t, dims, 0, steps)
}
