package generic

import (
	mathbits "math/bits"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// Block is the number of output channels whose sums stay in registers.
const Block = 4

func packBits(w []uint64, outputs, k int) *kern.DotBitsWeights {
	return kern.PackLanes(w, outputs, k, Block)
}

// DotBits is that of kern.Set.
func DotBits(dst []int32, stride int, src []uint64, at *kern.Patches, w *kern.DotBitsWeights, first, n int) {
	k := int32(w.K)
	block := w.Words * Block
	for o := 0; o < n; o += Block {
		rows := w.Data[(first+o)/Block*block:][:block]
		p := 0
		for ; p+1 < at.Pixels; p += 2 {
			var s [8]int
			for r := range at.Rows {
				a := src[p*at.Step+r*at.RowStep:][:at.RowLen]
				b := src[(p+1)*at.Step+r*at.RowStep:][:at.RowLen]
				differences2x4(&s, a, b, rows[r*at.RowLen*Block:])
			}
			d := dst[p*stride+o:][:Block]
			d[0], d[1], d[2], d[3] = k-2*int32(s[0]), k-2*int32(s[1]), k-2*int32(s[2]), k-2*int32(s[3])
			d = dst[(p+1)*stride+o:][:Block]
			d[0], d[1], d[2], d[3] = k-2*int32(s[4]), k-2*int32(s[5]), k-2*int32(s[6]), k-2*int32(s[7])
		}
		if p < at.Pixels {
			var s [4]int
			for r := range at.Rows {
				a := src[p*at.Step+r*at.RowStep:][:at.RowLen]
				differences1x4(&s, a, rows[r*at.RowLen*Block:])
			}
			d := dst[p*stride+o:][:Block]
			d[0], d[1], d[2], d[3] = k-2*int32(s[0]), k-2*int32(s[1]), k-2*int32(s[2]), k-2*int32(s[3])
		}
	}
}

// differences1x4 adds the differing bits of a run of words and of the same run
// of four outputs.
func differences1x4(s *[4]int, a, w []uint64) {
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	w = w[:len(a)*Block]
	for _, x := range a {
		q := (*[4]uint64)(w)
		s0 += mathbits.OnesCount64(x ^ q[0])
		s1 += mathbits.OnesCount64(x ^ q[1])
		s2 += mathbits.OnesCount64(x ^ q[2])
		s3 += mathbits.OnesCount64(x ^ q[3])
		w = w[Block:]
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
}

// differences2x4 is differences1x4 for two pixels, so that every weight is
// loaded once for both.
func differences2x4(s *[8]int, a, b, w []uint64) {
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	s4, s5, s6, s7 := s[4], s[5], s[6], s[7]
	b = b[:len(a)]
	w = w[:len(a)*Block]
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
		w = w[Block:]
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
	s[4], s[5], s[6], s[7] = s4, s5, s6, s7
}
