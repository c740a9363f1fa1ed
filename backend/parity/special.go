package parity

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

// special are the numbers that IEEE 754 treats apart, and those where the ranges of what
// computes quotients and roots end.
var special = func() (list []float32) {
	for _, x := range []float64{
		0, math.SmallestNonzeroFloat32, 0x1p-148, 0x1p-133, 0x1.fp-133, 0x1p-132, 0x1p-128, 0x1.8p-127, 0x1p-126, 0x1p-125,
		0x1p-17, 0.25, 0.99999994, 1, 4, 0x1p125, 0x1p126, 0x1p127, math.MaxFloat32, math.Inf(1),
	} {
		list = append(list, float32(x), float32(-x))
	}
	return append(list, float32(math.NaN()))
}()

// root is how importers write quotients and roots of the last layer (see bcnn.Inverse): it
// appends a power of two r, the layer times r and times r².
func (b *builder) root() (x, r, xr, y int) {
	x = b.last()
	r = b.add(bcnn.Function{Name: bcnn.RootPower}, x)
	xr = b.add(bcnn.Mul{}, x, r)
	return x, r, xr, b.add(bcnn.Mul{}, xr, r)
}

// specialCases are cases whose inputs are infinite, no numbers, zeros of both signs, subnormal or
// of any exponent: what quotients and roots consist of, and every step that takes float32.
func specialCases() []Case {
	const h, w = 5, 7
	var cases []Case
	add := func(name string, c int, layers func(b *builder)) {
		cases = append(cases, layerCase("special/"+name, "float", [3]int{h, w, c}, fillSpecial, layers))
	}
	function := func(b *builder, name bcnn.FunctionName, in int) int { return b.add(bcnn.Function{Name: name}, in) }
	for i, name := range bcnn.FunctionNames() {
		add("function/"+string(name), []int{5, 16, 33}[i%3], func(b *builder) { function(b, name, bcnn.NetworkInput) })
	}
	for _, c := range []int{1, 19, 64} {
		add("1 over x", c, func(b *builder) {
			_, r, _, y := b.root()
			y = b.add(bcnn.Mul{}, function(b, bcnn.Inverse, y), r)
			b.add(bcnn.Mul{}, y, r)
		})
		add("1 over root of x", c, func(b *builder) {
			_, r, _, y := b.root()
			b.add(bcnn.Mul{}, function(b, bcnn.InverseRoot, y), r)
		})
		add("root of x", c, func(b *builder) {
			_, _, xr, y := b.root()
			b.add(bcnn.Mul{}, xr, function(b, bcnn.RootFactor, y))
		})
		add("quotient", c, func(b *builder) {
			b.add(bcnn.Channels{Index: reversed(c)})
			_, r, _, y := b.root()
			y = b.add(bcnn.Mul{}, function(b, bcnn.Inverse, y), r)
			b.add(bcnn.Mul{}, b.add(bcnn.Mul{}, bcnn.NetworkInput, r), y)
		})
		add("quotient by a channel", c, func(b *builder) {
			b.add(bcnn.Channels{Index: []int32{int32(c / 2)}})
			_, r, _, y := b.root()
			y = b.add(bcnn.Mul{}, function(b, bcnn.Inverse, y), r)
			b.add(bcnn.Mul{}, b.add(bcnn.Mul{}, bcnn.NetworkInput, r), y)
		})
		add("share of a norm", c, func(b *builder) {
			b.add(bcnn.Mul{}, bcnn.NetworkInput, bcnn.NetworkInput)
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 1}, true)
			_, r, _, y := b.root()
			b.add(bcnn.Mul{}, bcnn.NetworkInput, b.add(bcnn.Mul{}, function(b, bcnn.InverseRoot, y), r))
		})
	}
	window := bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Top: 1, Left: 1}}
	for _, c := range []int{3, 16, 33} {
		add("conv", c, func(b *builder) { b.conv(bcnn.Conv2D{Window: window, Out: 13}, true) })
		add("conv of each channel", c, func(b *builder) { b.conv(bcnn.Conv2D{Window: window, Out: c, Groups: c}, true) })
		add("dense", c, func(b *builder) { b.dense(9, true) })
		add("maxpool", c, func(b *builder) { b.add(bcnn.MaxPool{Window: window}) })
		add("avgpool", c, func(b *builder) { b.add(bcnn.AvgPool{Window: window}) })
		add("affine", c, func(b *builder) { b.add(bcnn.Affine{Scale: b.floats(c, 1), Bias: b.floats(c, 1)}) })
		add("add", c, func(b *builder) { b.add(bcnn.Add{}, b.add(bcnn.Channels{Index: reversed(c)}), bcnn.NetworkInput) })
		for _, op := range []bcnn.Op{bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}} {
			add(op.Kind(), c, func(b *builder) { b.add(op, b.add(bcnn.Channels{Index: reversed(c)}), bcnn.NetworkInput) })
		}
		for _, s := range []struct {
			name string
			op   bcnn.Op // makes the second, of many zeros
		}{
			{"equal", bcnn.Channels{Index: reversed(c)}},
			{"pixels", bcnn.Channels{Index: []int32{int32(c / 2)}}},
			{"channels", bcnn.Pixels{Rows: []int32{h / 2}, Cols: []int32{w / 2}}},
		} {
			add("mask/"+s.name, c, func(b *builder) {
				b.add(bcnn.Mask{}, bcnn.NetworkInput, b.add(bcnn.ReLU{}, b.add(s.op)))
			})
			add("mask/by a condition/"+s.name, c, func(b *builder) {
				b.add(s.op)
				b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
				b.add(bcnn.Affine{Bias: []float32{1}})
				b.add(bcnn.Mask{}, bcnn.NetworkInput, b.add(bcnn.Affine{Scale: []float32{0.5}}))
			})
		}
		add("sign", c, func(b *builder) {
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 5}, false)
		})
		add("levels", c, func(b *builder) {
			b.add(bcnn.Ternary())
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 5}, false)
		})
		add("largest", c, func(b *builder) { b.add(bcnn.TopK{K: 1}) })
		add("matmul", c, func(b *builder) { b.add(bcnn.MatMul{}, bcnn.NetworkInput, bcnn.NetworkInput) })
		for _, act := range activations {
			add(fmt.Sprint("activation/", act), c, func(b *builder) { b.activation(act) })
			add(fmt.Sprint("activation/", act, "+maxpool"), c, func(b *builder) {
				b.activation(act)
				b.add(bcnn.MaxPool{Window: window})
			})
			add(fmt.Sprint("activation/conv+", act), c, func(b *builder) {
				b.conv(bcnn.Conv2D{Window: window, Out: 13}, true)
				b.activation(act)
			})
			if act != "prelu" && act != "leaky" { // which may fall
				add(fmt.Sprint("activation/", act, "+sign"), c, func(b *builder) {
					b.activation(act)
					b.add(bcnn.Affine{Bias: b.floats(c, 0.5)})
					b.add(bcnn.Sign{Zero: b.zero()})
					b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 5}, false)
				})
			}
		}
	}
	return cases
}
