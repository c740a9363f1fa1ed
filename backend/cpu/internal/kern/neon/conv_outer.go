//go:build arm64 && !purego

package neon

import (
	"encoding/binary"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	// outerWords is the number of words of the longest patch that the kernels of outer
	// products take.
	outerWords = 288
	// streamingBytes is that of the vectors that they are written for.
	streamingBytes = 64
)

// Outer reports whether a processor that has SME2 can run OuterSet.
func Outer() bool { return streamingBytesSME2() == streamingBytes }

// OuterSet returns the kernels for processors with outer products of bits, BMOPA of
// SME2, "sme2".
//
// Their kernels are in streaming mode, and their sums in ZA, from SMSTART to SMSTOP. The
// runtime does not interrupt a function in assembly to run another goroutine, and what
// the system does meanwhile saves both: a signal's handler begins outside of the mode,
// with what was there in its frame, which is 8 KiB of the 32 that the runtime has for it.
func OuterSet(cores Cores) kern.Set {
	s := DotSet(cores)
	s.ISA = "sme2"
	s.Wide.MaxPlanes = 1
	s.Wide.PackBits = func(w []uint64, outputs, rows, n int) *kern.WideFilter {
		if rows*num.CeilDiv(n, 32) > outerWords {
			return packBits(cores, w, outputs, rows, n)
		}
		return packOuter(w, outputs, rows, n)
	}
	s.Cost.Bits /= 20
	return s
}

// packOuter lays out words of 32 bits, inverted.
func packOuter(w []uint64, outputs, rows, n int) *kern.WideFilter {
	words, pieces := bits.Words(n), num.CeilDiv(n, 32)
	out := kern.NewWideFilter(outputs, rows, pieces, 4, []kern.WideKernels{
		{Outputs: kern.BlockOutputs, Conv: convOuter64SME2, Sums: convOuterSums64SME2},
	})
	out.Form = "outer products"
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				v := uint32(w[(o*rows+r)*words+i/2] >> (i % 2 * 32))
				binary.LittleEndian.PutUint32(out.Piece(o, r, i), ^v)
			}
		}
	}
	return out
}
