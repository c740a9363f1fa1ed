//go:build arm64 && !purego

package neon

import (
	"encoding/binary"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// carriesMost is the number of pieces of the longest patch that the kernels of carries
// have memory for.
const carriesMost = 73

// carriesFit reports whether there are carries in a patch of rows runs of n bits, and
// memory for them.
func carriesFit(rows, n int) bool {
	pieces := carriesPieces(rows, n)
	return 1 < pieces && pieces <= carriesMost
}

// carriesPieces returns the number of pieces of a patch.
func carriesPieces(rows, n int) int { return num.CeilDiv(rows*runBytes(n), pieceBytes) }

// packCarries lays out weights for kernels that add two pieces of 128 bits before they
// count. The runs of a patch stand one behind the other. A piece of the weights is the
// XOR of all up to there; the last but two, and every fourth before it, is inverted.
func packCarries(w []uint64, outputs, rows, n int) *kern.WideFilter {
	words, run, pieces := bits.Words(n), runBytes(n), carriesPieces(rows, n)
	out := kern.NewGroupedFilter(outputs, pieceGroup, 1, run, pieces, pieceBytes, []kern.WideKernels{
		{Outputs: 16, Conv: convCarries16NEON, Sums: convCarriesSums16NEON, Planes: planes(convCarriesPlanes16NEON)},
		{Outputs: 32, Conv: convCarries32NEON, Sums: convCarriesSums32NEON, Planes: planes(convCarriesPlanes32NEON)},
		{Outputs: 64, Conv: convCarries64NEON, Sums: convCarriesSums64NEON, Planes: planes(convCarriesPlanes64NEON)},
	})
	out.Rows = rows
	out.Form = "carries of 128"
	patch, one := make([]uint8, pieces*pieceBytes), make([]uint8, 8*words)
	for o := range outputs {
		clear(patch)
		for r := range rows {
			for i, word := range w[(o*rows+r)*words:][:words] {
				binary.LittleEndian.PutUint64(one[8*i:], word)
			}
			copy(patch[r*run:], one[:run])
		}
		for i := range pieces {
			if i > 0 {
				for b := range pieceBytes {
					patch[i*pieceBytes+b] ^= patch[(i-1)*pieceBytes+b]
				}
			}
			piece := out.Piece(o, 0, i)
			copy(piece, patch[i*pieceBytes:])
			if (pieces-1-i)%4 == 2 {
				for b := range piece {
					piece[b] = ^piece[b]
				}
			}
		}
	}
	return out
}
