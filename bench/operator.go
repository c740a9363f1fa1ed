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

	source zoo.Operator // what the small cases have none of
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
	op := operator{name: o.Name, in: o.In, size: 1, stride: 1, source: o}
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
		{name: "small conv", kind: "conv", in: bcnn.Shape{H: 6, W: 5, C: 64}, out: 48, size: 3, stride: 1, pad: 1},
		{name: "strided conv", kind: "conv", in: bcnn.Shape{H: 7, W: 9, C: 128}, out: 32, size: 5, stride: 2, pad: 2},
		{name: "small dense", kind: "dense", in: bcnn.Shape{H: 1, W: 1, C: 200}, out: 30, size: 1, stride: 1, pad: 0},
		{name: "small pool", kind: "pool", in: bcnn.Shape{H: 6, W: 8, C: 64}, out: 64, size: 2, stride: 2, pad: 0},
	}
}
