package parity

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// rareZeroCases are cases of signs of three values, of which 0 is in all rows, in some or in
// none, so that the lower one of two planes is empty or not.
func rareZeroCases() []Case {
	rows := map[string][]int32{
		"nowhere":    {0, 1, 2, 3, 4, 5, 6, 7},
		"first":      {-1, 1, 2, 3, 4, 5, 6, 7},
		"middle":     {0, 1, 2, 3, -1, 5, 6, 7},
		"last":       {0, 1, 2, 3, 4, 5, 6, -1},
		"everywhere": {-1, -1, -1, -1, -1, -1, -1, -1},
	}
	around := bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}
	windows := map[string]bcnn.Window{
		"k3":   {KH: 3, KW: 3, Pad: around},
		"k3s2": {KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: bcnn.Padding{Top: 1, Right: 2}},
		"k2d2": {KH: 2, KW: 3, DilationH: 2, Pad: bcnn.Padding{Top: 1, Left: 2, Bottom: 2}},
		"k1":   {KH: 1, KW: 1},
	}
	// What the convolution ends in; the last one adds it to its input.
	ends := []func(b *builder, input int){
		func(*builder, int) {},
		func(b *builder, _ int) { b.batchNorm(normMixed); b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus}) },
		func(b *builder, _ int) {
			b.batchNorm(normTies)
			b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
			b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		},
		func(b *builder, _ int) { b.batchNorm(normFalling); b.add(bcnn.Ternary()) },
		func(b *builder, input int) {
			b.batchNorm(normMixed)
			b.add(bcnn.Add{}, b.last(), input)
			b.add(bcnn.Clip{Min: -1, Max: 1})
			b.add(bcnn.Ternary())
			b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: 1, KW: 1}, Out: 32}, false)
		},
	}
	var cases []Case
	for i, where := range []string{"nowhere", "first", "middle", "last", "everywhere"} {
		for j, window := range []string{"k3", "k3s2", "k2d2", "k1"} {
			for k, end := range ends {
				c := []int{16, 32, 64, 160, 40}[(i+j+k)%5]
				out, op := []int{64, 16, 32, 130}[(i+2*j+k)%4], windows[window]
				if k == len(ends)-1 { // as large as the input
					out, op = c, windows["k3"]
				}
				name := fmt.Sprintf("levels/zeros/%s/%s/%d", where, window, k)
				cases = append(cases, layerCase(name, "float", [3]int{8, 7, c}, fillRandom, func(b *builder) {
					b.add(bcnn.Pixels{Rows: rows[where], Cols: []int32{0, 1, 2, 3, 4, 5, 6}})
					input := b.last()
					b.add(bcnn.Ternary())
					b.conv(bcnn.Conv2D{Window: op, Out: out}, false)
					end(b, input)
				}))
			}
		}
	}
	return cases
}
