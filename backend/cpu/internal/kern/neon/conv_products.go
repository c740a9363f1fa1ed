//go:build arm64 && !purego

package neon

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// products is how weights lie for kernels of products of bytes and weights of 8 bits.
type products struct {
	group, piece int             // outputs, and their bytes for one part of a patch
	zero         func(i int) int // what a byte of the patch is less than it was, i being its place among 16
	kernels      []kern.WideKernels
}

var (
	// longProducts are for all processors.
	longProducts = products{
		group: 8, piece: 16,
		zero: func(i int) int { return 128 - i/8 },
		kernels: []kern.WideKernels{
			{Outputs: 16, Sums: convProductsSums16NEON},
			{Outputs: 32, Sums: convProductsSums32NEON},
			{Outputs: 48, Sums: convProductsSums48NEON},
			{Outputs: 64, Sums: convProductsSums64NEON},
		},
	}
	// dotProducts are for those with the dot product of bytes.
	dotProducts = products{
		group: 16, piece: 4,
		zero: func(int) int { return 128 },
		kernels: []kern.WideKernels{
			{Outputs: 16, Conv: convProducts16NEONDot, Sums: convProductsSums16NEONDot},
			{Outputs: 32, Conv: convProducts32NEONDot, Sums: convProductsSums32NEONDot},
			{Outputs: 48, Conv: convProducts48NEONDot, Sums: convProductsSums48NEONDot},
			{Outputs: 64, Conv: convProducts64NEONDot, Sums: convProductsSums64NEONDot},
		},
	}
	// matrixProducts are for those with products of matrices of bytes.
	matrixProducts = products{
		group: 16, piece: 8,
		zero: func(int) int { return 0 },
		kernels: []kern.WideKernels{
			{Outputs: 16, Conv: convProducts16NEONMatrix, Sums: convProductsSums16NEONMatrix},
			{Outputs: 32, Conv: convProducts32NEONMatrix, Sums: convProductsSums32NEONMatrix},
			{Outputs: 48, Conv: convProducts48NEONMatrix, Sums: convProductsSums48NEONMatrix},
			{Outputs: 64, Conv: convProducts64NEONMatrix, Sums: convProductsSums64NEONMatrix},
		},
	}
)

// packInt8 lays out weights of 8 bits.
func (f *products) packInt8(w []int8, outputs, rows, n int, _ uint8) *kern.WideFilter {
	return f.pack(outputs, rows, n, func(row, i int) int { return int(w[row*n+i]) })
}

// packInt16 lays out weights of 16 bits.
func (f *products) packInt16(w []int16, outputs, rows, n int) *kern.WideFilter {
	return kern.PackParts(w, outputs, rows, n, func(w []int8, outputs, rows, n int) *kern.WideFilter {
		return f.packInt8(w, outputs, rows, n, math.MaxUint8)
	})
}

// packSigns lays out weights of ±1.
func (f *products) packSigns(w []uint64, outputs, rows, n int) *kern.WideFilter {
	words := bits.Words(n)
	return f.pack(outputs, rows, n, func(row, i int) int { return bits.At(w[row*words:][:words], i) })
}

// pack lays out weights, at telling that of a tap of a run. Kernels read 16 bytes of a
// run at a time, of which the last ones may have fewer pieces.
func (f *products) pack(outputs, rows, n int, at func(row, i int) int) *kern.WideFilter {
	const bytes = 16
	pieces := num.CeilDiv(n, f.piece)
	out := kern.NewGroupedFilter(outputs, f.group, rows, num.RoundUp(n, bytes), pieces, f.piece, f.kernels)
	out.Tail = uint64(pieces % (bytes / f.piece))
	out.Fix = make([]int32, outputs)
	for o := range outputs {
		for r := range rows {
			for i := range n {
				v := at(o*rows+r, i)
				out.Piece(o, r, i/f.piece)[i%f.piece] = uint8(v)
				out.Fix[o] += int32(f.zero(i%bytes) * v)
			}
		}
	}
	return out
}
