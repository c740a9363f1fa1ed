package parity

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// smallConv is a convolution at stride 1 with what follows it up to the sign.
type smallConv struct {
	k, out, pad int
	pool        bool // 2×2
}

// smallNets are sized so that a kernel that executes a whole small network takes
// them. The outputs of a first convolution need more memory than the image in some
// and less in others, so that tensors meet in memory in several ways.
var smallNets = []struct {
	name   string
	h, w   int
	convs  []smallConv
	denses []int
}{
	{"5x5+3x3", 10, 9, []smallConv{{5, 20, 2, true}, {3, 32, 1, false}}, []int{12, 6}},
	{"3x3+3x3+3x3", 8, 7, []smallConv{{3, 40, 1, false}, {3, 12, 0, true}, {3, 8, 1, false}}, []int{5}},
}

// smallNetCases are whole small networks of images in every scheme, which every variant
// of a device executes: what a single step cannot show is that one of them takes the
// memory of a tensor that another one, or a part of it, still reads.
func smallNetCases() []Case {
	var cases []Case
	const bytes, around = "bytes", "bytes-around-128" // of which 0 or 128 stands for 0
	for _, scheme := range []bcnn.Scheme{bytes, around, bcnn.SchemeThreshold, bcnn.SchemeGrey, bcnn.SchemeLBP, bcnn.SchemeMinMax} {
		for i, net := range smallNets {
			for _, batch := range []int{1, 2} {
				cases = append(cases, Case{
					Name: fmt.Sprintf("whole/%s/%s/batch=%d", scheme, net.name, batch), Batch: batch, everyKernel: true,
					build: func(b *builder) *bcnn.Network {
						b.input(bcnn.Uint8, net.h, net.w, 3)
						switch scheme {
						case bytes:
						case around:
							b.add(bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{-2}})
						default:
							op := bcnn.Binarize{Scheme: scheme}
							for range map[bcnn.Scheme]int{bcnn.SchemeThreshold: 3, bcnn.SchemeGrey: 1}[scheme] {
								op.Thresholds = append(op.Thresholds, 100+b.rng.Int32N(56))
							}
							b.add(op)
						}
						for k, c := range net.convs {
							padValue := (i+k)%3 - 1
							if k == 0 && (scheme == bytes || scheme == around) {
								padValue = 0 // bytes have no other
							}
							b.conv(bcnn.Conv2D{Window: bcnn.Window{KH: c.k, KW: c.k, Pad: bcnn.Padding{Top: c.pad, Left: c.pad, Bottom: c.pad, Right: c.pad}},
								Out: c.out, PadValue: padValue}, false)
							if c.pool {
								b.add(bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
							}
							b.batchNorm(normTies)
							b.add(bcnn.Sign{Zero: bcnn.ZeroIsPlus})
						}
						for k, out := range net.denses {
							b.dense(out, false)
							b.batchNorm(normMixed)
							if k < len(net.denses)-1 {
								b.add(bcnn.Sign{Zero: bcnn.ZeroIsMinus})
							}
						}
						return b.net
					},
				})
			}
		}
	}
	return cases
}
