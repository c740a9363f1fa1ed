package sets

import (
	"math"
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// generic is pure Go on 64-bit words.
var generic = kern.Set{
	ISA:            "generic",
	Block:          genericBlock,
	PackBits:       packBits,
	DotBits:        dotBits,
	PackBytes:      packBytes,
	DotBytes:       dotBytes,
	FMA:            fmaBlock,
	Threshold:      threshold,
	ThresholdFloat: thresholdFloat,
	Or:             or,
	Scale:          scaleInt,
	ScaleFloat:     scaleFloat,
	FMAEach:        fmaEach,
	Add:            add,
	Choose:         choose,
	OrPool:         orPool,
	MaxPool:        maxPool,
	Narrow:         narrow,
	Join:           join,
	ThresholdBytes: thresholdBytes,
	Spread:         spread,
	Luma:           luma,
	LBP:            lbp,
	MinMax:         minMax,
	Cost:           kern.Cost{Bits: 0.012, Bytes: 0.03, Floats: 2.5, Value: 2},

	Peak:         peakGeneric,
	PeakProducts: peakProducts,
}

// genericBlock is the number of output channels whose sums stay in registers.
const genericBlock = 4

// packBits stores blocks of four outputs, word by word: [outputs/4][words][4].
func packBits(w []uint64, outputs, k int) *kern.DotBitsWeights {
	words := bits.Words(k)
	blocks := kern.RoundUp(outputs, genericBlock) / genericBlock
	data := make([]uint64, blocks*words*genericBlock)
	for o := range outputs {
		for i := range words {
			data[(o/genericBlock*words+i)*genericBlock+o%genericBlock] = w[o*words+i]
		}
	}
	return &kern.DotBitsWeights{Outputs: outputs, Words: words, K: k, Data: data}
}

func dotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	k := int32(w.K)
	block := w.Words * genericBlock
	for o := 0; o < n; o += genericBlock {
		rows := w.Data[(first+o)/genericBlock*block:][:block]
		p := 0
		for ; p+1 < at.Pixels; p += 2 {
			var s [8]int
			for r := range at.Rows {
				a := src[p*at.Step+r*at.RowStep:][:at.RowLen]
				b := src[(p+1)*at.Step+r*at.RowStep:][:at.RowLen]
				differences2x4(&s, a, b, rows[r*at.RowLen*genericBlock:])
			}
			d := dst[p*stride+o:][:genericBlock]
			d[0], d[1], d[2], d[3] = k-2*int32(s[0]), k-2*int32(s[1]), k-2*int32(s[2]), k-2*int32(s[3])
			d = dst[(p+1)*stride+o:][:genericBlock]
			d[0], d[1], d[2], d[3] = k-2*int32(s[4]), k-2*int32(s[5]), k-2*int32(s[6]), k-2*int32(s[7])
		}
		if p < at.Pixels {
			var s [4]int
			for r := range at.Rows {
				a := src[p*at.Step+r*at.RowStep:][:at.RowLen]
				differences1x4(&s, a, rows[r*at.RowLen*genericBlock:])
			}
			d := dst[p*stride+o:][:genericBlock]
			d[0], d[1], d[2], d[3] = k-2*int32(s[0]), k-2*int32(s[1]), k-2*int32(s[2]), k-2*int32(s[3])
		}
	}
}

// differences1x4 adds the differing bits of a run of words and of the same run
// of four outputs.
func differences1x4(s *[4]int, a, w []uint64) {
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	w = w[:len(a)*genericBlock]
	for _, x := range a {
		q := (*[4]uint64)(w)
		s0 += mathbits.OnesCount64(x ^ q[0])
		s1 += mathbits.OnesCount64(x ^ q[1])
		s2 += mathbits.OnesCount64(x ^ q[2])
		s3 += mathbits.OnesCount64(x ^ q[3])
		w = w[genericBlock:]
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
}

// differences2x4 is differences1x4 for two pixels, so that every weight is
// loaded once for both.
func differences2x4(s *[8]int, a, b, w []uint64) {
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	s4, s5, s6, s7 := s[4], s[5], s[6], s[7]
	b = b[:len(a)]
	w = w[:len(a)*genericBlock]
	for i, x := range a {
		y := b[i]
		q := (*[4]uint64)(w)
		s0 += mathbits.OnesCount64(x ^ q[0])
		s4 += mathbits.OnesCount64(y ^ q[0])
		s1 += mathbits.OnesCount64(x ^ q[1])
		s5 += mathbits.OnesCount64(y ^ q[1])
		s2 += mathbits.OnesCount64(x ^ q[2])
		s6 += mathbits.OnesCount64(y ^ q[2])
		s3 += mathbits.OnesCount64(x ^ q[3])
		s7 += mathbits.OnesCount64(y ^ q[3])
		w = w[genericBlock:]
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
	s[4], s[5], s[6], s[7] = s4, s5, s6, s7
}

// fmaBlock takes the short way of f32.FMA where it is exact: the product of
// two float32 values is exact in float64, and rounding their sum twice differs
// from rounding it once only where the first result lies in the middle between
// two float32 values, or where float32 becomes subnormal.
func fmaBlock(acc, x, w []float32, stride int) {
	const (
		lost   = 1<<29 - 1 // bits of a float64 that float32 lacks
		middle = 1 << 28
		normal = 0x1p-126
	)
	for i, v := range x {
		row := w[i*stride:][:len(acc)]
		for o, c := range acc {
			s := float64(float64(v)*float64(row[o])) + float64(c)
			if math.Float64bits(s)&lost == middle || math.Abs(s) < normal {
				acc[o] = f32.FMA(v, row[o], c)
			} else {
				acc[o] = float32(s)
			}
		}
	}
}

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	for p := range pixels {
		row := sums[p*stride:][:len(t)]
		out := dst[p*step:]
		for i := 0; i*bits.WordBits < len(t); i++ {
			end := min((i+1)*bits.WordBits, len(t))
			out[i] = notLess(row[i*bits.WordBits:end], t[i*bits.WordBits:end])
		}
	}
}

// notLess packs v ≥ t of at most 64 channels. The difference, which fits into
// 64 bits, is negative where the bit is 0.
func notLess(v, t []int32) uint64 {
	v = v[:len(t)]
	var less uint64
	o := 0
	for ; o+4 <= len(t); o += 4 {
		x, y := (*[4]int32)(v[o:]), (*[4]int32)(t[o:])
		less |= (uint64(int64(x[0])-int64(y[0]))>>63 |
			uint64(int64(x[1])-int64(y[1]))>>63<<1 |
			uint64(int64(x[2])-int64(y[2]))>>63<<2 |
			uint64(int64(x[3])-int64(y[3]))>>63<<3) << (o & 63)
	}
	for ; o < len(t); o++ {
		less |= uint64(int64(v[o])-int64(t[o])) >> 63 << (o & 63)
	}
	return ^less & bits.TailMask(len(t))
}

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	for p := range pixels {
		row := sums[p*stride:][:len(t)]
		out := dst[p*step:]
		for i := 0; i*bits.WordBits < len(t); i++ {
			end := min((i+1)*bits.WordBits, len(t))
			var word uint64
			values := row[i*bits.WordBits : end]
			for o, bound := range t[i*bits.WordBits : end] {
				var bit uint64
				if values[o] >= bound {
					bit = 1
				}
				word |= bit << (o & 63)
			}
			out[i] = word
		}
	}
}

func or(dst, src []uint64) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] |= v
	}
}

func scaleInt(dst []float32, sums []int32, scale, shift []float32, relu bool) {
	for o := range dst {
		v := float32(sums[o])
		if scale != nil {
			v = f32.FMA(v, scale[o], shift[o])
		}
		dst[o] = rectify(v, relu)
	}
}

func scaleFloat(dst, sums []float32, scale, shift []float32, relu bool) {
	for o := range dst {
		v := sums[o]
		if scale != nil {
			v = f32.FMA(v, scale[o], shift[o])
		}
		dst[o] = rectify(v, relu)
	}
}

func rectify(v float32, relu bool) float32 {
	if relu && !(v > 0) {
		return 0
	}
	return v
}

// fmaRest computes pixels from first on, one after the other.
func fmaRest(dst []float32, stride int, src []float32, at *kern.Patches, w []float32, step int, bias []float32, first int,
	fma func(acc, x, w []float32, stride int)) {
	for p := first; p < at.Pixels; p++ {
		acc := dst[p*stride:][:len(bias)]
		copy(acc, bias)
		for r := range at.Rows {
			fma(acc, src[p*at.Step+r*at.RowStep:][:at.RowLen], w[r*at.RowLen*step:], step)
		}
	}
}
