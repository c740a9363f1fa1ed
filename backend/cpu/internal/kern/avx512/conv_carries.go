//go:build amd64 && !purego

package avx512

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// patchPieces returns the number of pieces of the parities of a patch of rows runs of n
// bits.
func patchPieces(rows, n int) int { return num.RoundUp(rows*num.CeilDiv(n, 32), 2) }

// pickCarries is packCarries where that takes less time.
func pickCarries(w []uint64, outputs, rows, n, times int) *kern.WideFilter {
	carries, counts := carriesOperations(outputs, rows, n, times), countsOperations(outputs, rows, n)
	if carries > 0.95*counts {
		return nil
	}
	f := packCarries(w, outputs, rows, n, times)
	f.Why = fmt.Sprintf("%.0f vector operations for an output, %.0f without", carries, counts)
	return f
}

// countsOperations and carriesOperations are what kernels of bits and of carries take for
// an output, in operations on vectors, without what is the same in both.

func countsOperations(outputs, rows, n int) float64 {
	return float64(3*rows*num.CeilDiv(n, 32)) * float64(num.RoundUp(outputs, 16)) / float64(outputs)
}

func carriesOperations(outputs, rows, n, times int) float64 {
	blocks := num.CeilDiv(outputs, kern.BlockOutputs)
	// Five for two pieces, then three: the bits of the last parity and two sums.
	each := float64(5*patchPieces(rows, n)/2 + 3)
	patch := float64(times * rows * (patchRun + patchVector*num.CeilDiv(n, 512)))
	return (each*float64(4*blocks) + patch) / (float64(4*outputs) / kern.BlockOutputs)
}

// The time of Patches for a run of a patch, and for each vector of it, in operations.
const patchRun, patchVector = 6, 6

// packCarries lays out weights for kernels that add two pieces of 32 bits before they
// count. A piece is the XOR of all of its patch up to there.
func packCarries(w []uint64, outputs, rows, n, _ int) *kern.WideFilter {
	words, run, pieces := bits.Words(n), num.CeilDiv(n, 32), patchPieces(rows, n)
	out := kern.NewWideFilter(outputs, 1, pieces, 4, []kern.WideKernels{{
		Outputs: 64, Conv: convCarries64AVX512, Sums: convCarriesSums64AVX512, Floats: convCarriesFloats64AVX512,
		Pooled: convCarriesPooled64AVX512, PooledAlike: convCarriesPooledAlike64AVX512,
		Planes: map[[2]int]func(*uint8){
			{1, 2}: convCarriesPlanes1To264AVX512, {2, 1}: convCarriesPlanes2To164AVX512,
			{2, 2}: convCarriesPlanes2To264AVX512, {2, 0}: convCarriesPlanes2Sums64AVX512,
		},
	}})
	out.Form, out.Patches = "carries", true
	for o := range outputs {
		var parity uint32
		for i := range rows * run {
			r, i := i/run, i%run
			parity ^= uint32(w[(o*rows+r)*words+i/2] >> (i % 2 * 32))
			binary.LittleEndian.PutUint32(out.Piece(o, 0, pieces-rows*run+r*run+i), parity)
		}
	}
	return out
}

func parities(dst []uint32) {
	if len(dst) > 0 {
		paritiesAVX512(&dst[0], len(dst))
	}
}

func patches(dst []uint8, src unsafe.Pointer, at []uint32, rows, run, step int) {
	patchesAVX512(&dst[0], (*uint8)(src), &at[0], len(at), rows*run%8, rows, run, step-run)
}
