package eval

import (
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Einsum multiplies the values of all operands and sums over the labels that the result lacks, in
// float64 with one rounding. If an operand has a label twice, its diagonal is taken. Dimensions
// that an ellipsis stands for are broadcast.
func (e *Evaluator) Einsum(equation string, args []*Tensor) *Tensor {
	in, to, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	terms := strings.Split(in, ",")
	if len(terms) != len(args) || len(args) == 0 {
		try.Failf("the equation has %d operands, but the node has %d inputs", len(terms), len(args))
	}
	typ := args[0].Type
	ellipsis := 0 // the most dimensions that one stands for
	for i, t := range args {
		if t.HasBatch() {
			try.Fail(errBatch)
		}
		if t.Type != typ || !typ.Real() && typ != pb.Int64 && typ != pb.Int32 {
			try.Failf("its operands are %v and %v, want numbers of one type", typ, t.Type)
		}
		if before, after, dots := strings.Cut(terms[i], "..."); dots {
			ellipsis = max(ellipsis, len(t.Dims)-len(before)-len(after))
		}
	}
	sizes := map[byte]int{}
	var labels [][]byte // by operand
	for i, t := range args {
		l := expanded(terms[i], len(t.Dims), ellipsis)
		if len(l) != len(t.Dims) {
			try.Failf("the equation has %d labels for the %d dimensions of operand %d", len(l), len(t.Dims), i)
		}
		for d, c := range l {
			if old, ok := sizes[c]; !ok || old == 1 {
				sizes[c] = t.Dims[d]
			} else if t.Dims[d] != old && t.Dims[d] != 1 {
				try.Failf("a label of the equation stands for sizes %d and %d", old, t.Dims[d])
			}
		}
		labels = append(labels, l)
	}
	var result []byte
	if explicit {
		result = expanded(to, -1, ellipsis)
	} else {
		result = implied(labels)
	}
	return e.contract(typ, args, labels, result, sizes)
}

// expanded returns the labels of a term, with bytes below 32 for the dimensions of an ellipsis: as
// many as rank leaves, or all ellipsis of them if rank is −1. Fewer are the last ones.
func expanded(term string, rank, ellipsis int) []byte {
	before, after, dots := strings.Cut(term, "...")
	for _, c := range before + after {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			try.Failf("the equation has a label that is not a letter")
		}
	}
	out := []byte(before)
	if dots {
		n := ellipsis
		if rank >= 0 {
			n = rank - len(before) - len(after)
		}
		for i := ellipsis - n; i < ellipsis && n >= 0; i++ {
			out = append(out, byte(i))
		}
	}
	return append(out, after...)
}

// implied returns the labels of the result if the equation does not give them: those of an
// ellipsis, then those that occur once, in alphabetic order.
func implied(labels [][]byte) []byte {
	var count [128]int
	for _, l := range labels {
		for _, c := range l {
			count[c]++
		}
	}
	var out []byte
	for c, n := range count {
		if n == 1 || n > 0 && c < 32 {
			out = append(out, byte(c))
		}
	}
	return out
}

// contract computes an Einsum with the given labels of the operands and the result.
func (e *Evaluator) contract(
	typ pb.DataType, args []*Tensor, labels [][]byte, result []byte, sizes map[byte]int,
) *Tensor {
	if len(result) > pb.MaxRank {
		try.Failf("the result would have more than %d dimensions", pb.MaxRank)
	}
	try.Check(e.Budget.Charge(8 * int64(len(args)) * int64(len(sizes))))
	order := slices.Clone(result)
	for i, c := range result {
		if _, ok := sizes[c]; !ok || slices.Contains(result[:i], c) {
			try.Failf("the result of the equation has a label twice, or one that no operand has")
		}
	}
	for _, l := range labels {
		for _, c := range l {
			if !slices.Contains(order, c) {
				order = append(order, c)
			}
		}
	}
	dims, inner := make([]int, len(order)), 1
	for i, c := range order {
		if dims[i] = sizes[c]; i >= len(result) {
			inner *= dims[i]
		}
	}
	operands := make([][]int, len(args))
	for k, t := range args {
		operands[k] = make([]int, len(order))
		for d, step := range strides(t.Dims) {
			if t.Dims[d] > 1 {
				operands[k][slices.Index(order, labels[k][d])] += step
			}
		}
	}
	out := e.NewTensor(typ, dims[:len(result)])
	all := try.Value(Count(dims))
	try.Check(e.Budget.Charge(lookUnits * int64(len(args)) * int64(all)))
	sum := 0.0
	e.walk(dims, operands, func(i int, at []int) {
		product := 1.0
		for k, t := range args {
			product *= t.At(at[k])
		}
		if sum += float64(product); (i+1)%inner == 0 {
			if !typ.Real() && !holds(typ, sum) {
				try.Failf("integer overflow")
			}
			out.Set(i/inner, sum)
			sum = 0
		}
	})
	return out
}
