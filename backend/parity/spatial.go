package parity

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// positions are ways to pick n rows or columns.
var positions = []struct {
	name string
	of   func(n int) []int32
}{
	{"twice", func(n int) []int32 { return picked(2*n, func(i int) int { return i / 2 }) }},
	{"three halves", func(n int) []int32 { return picked((3*n+1)/2, func(i int) int { return i * 2 / 3 }) }},
	{"half", func(n int) []int32 { return picked((n+1)/2, func(i int) int { return 2 * i }) }},
	{"reflected", func(n int) []int32 {
		return picked(n+4, func(i int) int {
			i = max(i-2, 2-i)
			return max(0, min(i, 2*(n-1)-i))
		})
	}},
	{"edges", func(n int) []int32 { return picked(n+3, func(i int) int { return max(0, min(i-2, n-1)) }) }},
	{"cropped", func(n int) []int32 { return picked(max(1, n-2), func(i int) int { return min(i+1, n-1) }) }},
	{"backwards", func(n int) []int32 { return picked(n, func(i int) int { return n - 1 - i }) }},
	{"padded", func(n int) []int32 {
		return picked(n+3, func(i int) int {
			if i < 1 || i > n {
				return -1
			}
			return i - 1
		})
	}},
	{"spread", func(n int) []int32 {
		return picked(2*n-1, func(i int) int {
			if i%2 == 1 {
				return -1
			}
			return i / 2
		})
	}},
}

func picked(n int, of func(i int) int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(of(i))
	}
	return list
}

// taps are the weights of bilinear resizing from one size to another.
func taps(from, to int) bcnn.Taps {
	t := bcnn.Taps{N: min(2, from)}
	for i := range to {
		at := max(0, (float64(i)+0.5)*float64(from)/float64(to)-0.5)
		first := min(int(at), from-1)
		part := float32(at - float64(first))
		t.Index, t.Weight = append(t.Index, int32(first)), append(t.Weight, 1-part)
		if t.N == 2 {
			t.Index, t.Weight = append(t.Index, int32(min(first+1, from-1))), append(t.Weight, part)
		}
	}
	return t
}

// spatialCases are cases of pixels that are picked and resampled, and of the largest
// values.
func spatialCases() []Case {
	cases := append(pixelsCases(), resampleCases()...)
	for _, c := range []int{1, 2, 10, 67, 1000} {
		for _, f := range []fill{fillRandom, fillTies, fillExtremes, fillOnes} {
			for _, k := range []int{1, 5, 67} {
				for _, values := range []bool{false, true} {
					if k <= c && (k < 6 || c < 100) {
						cases = append(cases, layerCase(fmt.Sprintf("topk/%d/%v", k, values), "float", [3]int{2, 3, c}, f, func(b *builder) { b.add(bcnn.TopK{K: k, Values: values}) }))
					}
				}
			}
		}
	}
	for _, c := range []int{1, 2, 3, 4, 6, 21, 150} { // more pixels than vectors have lanes
		for _, f := range []fill{fillRandom, fillTies, fillExtremes} {
			cases = append(cases, layerCase("topk/many", "float", [3]int{5, 7, c}, f, func(b *builder) { b.add(bcnn.TopK{K: 1, Values: c == 6}) }))
		}
	}
	for _, in := range []string{"bits", "bytes"} {
		cases = append(cases, layerCase("topk", in, [3]int{3, 2, 9}, fillRandom, func(b *builder) { b.add(bcnn.TopK{K: 2}) }))
	}
	return cases
}

func pixelsCases() []Case {
	var cases []Case
	add := func(name, in string, s [3]int, f fill, layers func(b *builder)) {
		cases = append(cases, layerCase("pixels/"+name, in, s, f, layers))
	}
	for i, rows := range positions {
		for _, in := range []string{"bits", "float", "bytes"} {
			for k, c := range []int{1, 3, 33, 64, 130} {
				cols := positions[(i+k)%len(positions)]
				s := [3]int{5, 4, c}
				if in == "bytes" && k > 1 {
					continue
				}
				op := bcnn.Pixels{Rows: rows.of(s[0]), Cols: cols.of(s[1]), Fill: []float32{0, -1, 1, 0.5, float32(math.Copysign(0, -1))}[(i+k)%5]}
				f := fillRandom
				if in == "float" && k%2 == 1 {
					f = fillExtremes
				}
				add(rows.name+", "+cols.name, in, s, f, func(b *builder) { b.add(op) })
			}
		}
	}
	// Rows of many small pixels.
	for i, cols := range positions {
		for _, in := range []string{"bits", "float"} {
			for k, c := range []int{1, 3, 64, 65, 129} {
				s := [3]int{3, 21 + 20*k, c}
				op := bcnn.Pixels{Rows: positions[(i+k)%len(positions)].of(s[0]), Cols: cols.of(s[1]), Fill: []float32{0, -1, 1}[(i+k)%3]}
				f := fillRandom
				if in == "float" {
					op.Fill, f = max(op.Fill, 0), fillExtremes
				}
				add("wide/"+cols.name, in, s, f, func(b *builder) { b.add(op) })
			}
		}
	}
	// The channels of a pixel are those of several.
	for i, block := range [][2]int{{2, 2}, {1, 3}, {3, 1}, {4, 4}} {
		for k, c := range []int{1, 4, 5, 31, 32, 33, 64, 65} {
			for _, in := range []string{"bits", "float"} {
				h, w := 3*block[0], 4*block[1]
				op := bcnn.Pixels{Rows: picked(h, func(i int) int { return i }), Cols: picked(w, func(i int) int { return i }), BlockH: block[0], BlockW: block[1]}
				if (i+k)%2 == 1 {
					op.Rows, op.Cols = op.Rows[1:h-1], slices.Insert(op.Cols[1:], 2, -1)
					op.Fill = []float32{1, -1, 0}[k%3]
				}
				add(fmt.Sprintf("blocks %dx%d/%d", block[0], block[1], k), in, [3]int{3, 4, c * block[0] * block[1]}, fillRandom, func(b *builder) { b.add(op) })
			}
		}
	}
	// Between convolutions.
	three := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
	for i, rows := range positions {
		for _, c := range []int{20, 64} {
			add("between/"+rows.name, "bits", [3]int{6, 5, c}, fillRandom, func(b *builder) {
				b.conv(bcnn.Conv2D{Window: three, Out: 33, PadValue: i%3 - 1}, false)
				b.batchNorm(normTies)
				b.add(bcnn.Sign{Zero: b.zero()})
				b.add(bcnn.Pixels{Rows: rows.of(6), Cols: rows.of(5), Fill: -1})
				b.conv(bcnn.Conv2D{Window: three, Out: 9, PadValue: 0}, false)
			})
			add("levels/"+rows.name, "bits", [3]int{6, 5, c}, fillRandom, func(b *builder) {
				b.conv(bcnn.Conv2D{Window: three, Out: 33, PadValue: i%3 - 1}, false)
				b.quantize(activationLevels[i%len(activationLevels)], i%2 == 0)
				b.add(bcnn.Pixels{Rows: rows.of(6), Cols: rows.of(5)})
				b.conv(bcnn.Conv2D{Window: three, Out: 9}, false)
			})
		}
	}
	return cases
}

func resampleCases() []Case {
	var cases []Case
	for i, size := range [][4]int{{4, 5, 8, 10}, {4, 5, 7, 3}, {1, 6, 3, 6}, {6, 1, 5, 4}, {9, 8, 3, 2}, {1, 1, 4, 4}, {6, 24, 12, 48}} {
		for k, c := range []int{1, 3, 4, 5, 33, 64, 300} {
			op := bcnn.Resample{Rows: taps(size[0], size[2]), Cols: taps(size[1], size[3])}
			f := []fill{fillRandom, fillExtremes, fillTiny, fillTies}[(i+k)%4]
			cases = append(cases, layerCase(fmt.Sprintf("resample/%dx%d", size[2], size[3]), "float", [3]int{size[0], size[1], c}, f, func(b *builder) { b.add(op) }))
		}
		for _, in := range []string{"bits", "bytes"} {
			cases = append(cases, layerCase(fmt.Sprintf("resample/%dx%d", size[2], size[3]), in, [3]int{size[0], size[1], 3}, fillRandom, func(b *builder) {
				b.add(bcnn.Resample{Rows: taps(size[0], size[2]), Cols: taps(size[1], size[3])})
				b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
			}))
		}
	}
	// More taps than two, some of them below 0.
	cases = append(cases, layerCase("resample/cubic", "float", [3]int{5, 6, 9}, fillRandom, func(b *builder) {
		cubic := func(from, to int) bcnn.Taps {
			t := bcnn.Taps{N: 4}
			for i := range to {
				for k := range 4 {
					t.Index = append(t.Index, int32(max(0, min(i*from/to+k-1, from-1))))
				}
				t.Weight = append(t.Weight, -0.0625, 0.5625, 0.5625, -0.0625)
			}
			return t
		}
		b.add(bcnn.Resample{Rows: cubic(5, 9), Cols: cubic(6, 11)})
	}))
	return cases
}

// randomSpatial appends something that moves or resamples pixels.
func (b *builder) randomSpatial() {
	s := b.shape()
	side := func(n int) []int32 {
		if n > 24 {
			return positions[2].of(n) // half
		}
		return positions[b.rng.IntN(len(positions))].of(n)
	}
	switch b.rng.IntN(4) {
	case 0:
		b.add(bcnn.Resample{Rows: taps(s.H, 1+b.rng.IntN(12)), Cols: taps(s.W, 1+b.rng.IntN(12))})
	case 1:
		if s.C%4 == 0 && s.H*s.W < 200 {
			at := func(n int) []int32 { return picked(n, func(i int) int { return i }) }
			b.add(bcnn.Pixels{Rows: at(2 * s.H), Cols: at(2 * s.W), BlockH: 2, BlockW: 2})
		}
	default:
		b.add(bcnn.Pixels{Rows: side(s.H), Cols: side(s.W), Fill: []float32{0, -1, 1}[b.rng.IntN(3)]})
	}
}
