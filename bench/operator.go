package main

import (
	"fmt"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// operator is what both sides can compute: one image, square windows, equal
// strides and padding on all sides, neither dilation nor groups.
type operator struct {
	name              string
	kind              string // conv, dense or pool
	in                bcnn.Shape
	out               int
	size, stride, pad int
}

func (o operator) String() string { return fmt.Sprint(o.name, " ", o.args()) }

// args are the arguments by which bench/peers knows the operator.
func (o operator) args() []string {
	args := []string{o.kind}
	for _, n := range []int{o.in.H, o.in.W, o.in.C, o.out, o.size, o.stride, o.pad} {
		args = append(args, strconv.Itoa(n))
	}
	return args
}

func (o operator) window() bcnn.Window {
	return bcnn.Window{
		KH: o.size, KW: o.size, StrideH: o.stride, StrideW: o.stride, DilationH: 1, DilationW: 1,
		Pad: bcnn.Padding{Top: o.pad, Left: o.pad, Bottom: o.pad, Right: o.pad},
	}
}

// newOperator returns an operator of the zoo, if the peers can compute it.
func newOperator(o zoo.Operator) (operator, bool) {
	op := operator{name: o.Name, in: o.In, size: 1, stride: 1}
	window := bcnn.Window{}
	switch z := o.Op.(type) {
	case bcnn.Conv2D:
		op.kind, op.out, window = "conv", z.Out, z.Window
		if z.Groups > 1 {
			return op, false
		}
	case bcnn.Dense:
		op.kind, op.out = "dense", z.Out
		return op, true
	case bcnn.MaxPool:
		op.kind, op.out, window = "pool", o.In.C, z.Window
	}
	op.size, op.stride, op.pad = window.KH, window.StrideH, window.Pad.Top
	return op, op.window() == window
}

// smallCases cover every kind, borders and strides.
func smallCases() []operator {
	return []operator{
		{"small conv", "conv", bcnn.Shape{H: 6, W: 5, C: 64}, 48, 3, 1, 1},
		{"strided conv", "conv", bcnn.Shape{H: 7, W: 9, C: 128}, 32, 5, 2, 2},
		{"small dense", "dense", bcnn.Shape{H: 1, W: 1, C: 200}, 30, 1, 1, 0},
		{"small pool", "pool", bcnn.Shape{H: 6, W: 8, C: 64}, 64, 2, 2, 0},
	}
}
