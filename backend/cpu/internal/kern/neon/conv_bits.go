//go:build arm64 && !purego

package neon

import (
	"encoding/binary"
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Cores is what is known of the cores of a processor.
type Cores struct {
	// InOrder names them if they execute instructions in the order of the
	// program, else it is "".
	InOrder string
	// SlowInsert names them if BIT takes them as long as two other operations, else
	// it is "".
	SlowInsert string
}

// packBits lays out weights of rows runs of n bits for the form of the kernels
// that is the faster one on the cores. Which it is was found with a model of their
// cycles (README.md).
func packBits(cores Cores, w []uint64, outputs, rows, n int) *kern.WideFilter {
	run := runBytes(n)
	pieces := piecesOf(run)
	f, other := packBytesOfBits, bytesOperations(rows, n)
	why := ""
	switch {
	case rows*pieces == 1:
		why = "a patch is one piece"
	case run%pieceBytes == 0:
		f, why = packPieces, "runs of whole pieces"
	case cores.InOrder != "":
		why = cores.InOrder + " loses more on the ends of runs"
	case piecesOperations(rows, n) <= other:
		f, why = packPieces, fmt.Sprintf("runs of %d bytes in %d pieces", run, pieces)
	default:
		why = fmt.Sprintf("runs of %d bytes fill no %d pieces", run, pieces)
	}
	if cores == (Cores{}) && carriesFit(rows, n) {
		other = min(other, piecesOperations(rows, n))
		if carries := carriesOperations(rows, n); carries < 0.95*other {
			f, why = packCarries, fmt.Sprintf("%.1f vector operations for an output, %.1f without", carries, other)
		}
	}
	filter := f(w, outputs, rows, n)
	filter.Why = why
	return filter
}

// bytesOperations, piecesOperations and carriesOperations are what the forms take for an
// output of a patch, in operations on vectors, without what is the same in all.

func bytesOperations(rows, n int) float64 {
	const around = 1.125 // bytes that are spread, sums of 16 bits
	return 3. / 16 * around * float64(rows*runBytes(n))
}

func piecesOperations(rows, n int) float64 { return float64(3 * rows * piecesOf(runBytes(n))) }

func carriesOperations(rows, n int) float64 {
	pieces := carriesPieces(rows, n)
	// Five for two pieces, then the bits of the last parity; a first piece alone is one.
	return float64(5*(pieces/2)+pieces%2) + 2.25
}

// packBytesOfBits lays out bytes of 8 bits, for kernels that spread each over the
// outputs.
func packBytesOfBits(w []uint64, outputs, rows, n int) *kern.WideFilter {
	words, pieces := bits.Words(n), (n+7)/8
	out := kern.NewWideFilter(outputs, rows, pieces, 1, []kern.WideKernels{
		{Outputs: 16, Conv: convBits16NEON, Sums: convBitsSums16NEON, Planes: planes(convBitsPlanes16NEON)},
		{Outputs: 32, Conv: convBits32NEON, Sums: convBitsSums32NEON, Planes: planes(convBitsPlanes32NEON)},
		{Outputs: 64, Conv: convBits64NEON, Sums: convBitsSums64NEON, Planes: planes(convBitsPlanes64NEON)},
	})
	out.Form = "bytes"
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				out.Piece(o, r, i)[0] = uint8(w[(o*rows+r)*words+i/8] >> (i % 8 * 8))
			}
		}
	}
	return out
}

const (
	pieceGroup = 8  // outputs that kernels compute one piece after the other
	pieceBytes = 16 // of a piece, but for the last ones of a run, of 8 and 4
)

// packPieces lays out pieces of 128 bits, for kernels that read as much of a patch
// at a time. What is left of a run is in one of 64 bits and one of 32.
func packPieces(w []uint64, outputs, rows, n int) *kern.WideFilter {
	words, run := bits.Words(n), runBytes(n)
	out := kern.NewGroupedFilter(outputs, pieceGroup, rows, run, piecesOf(run), pieceBytes, []kern.WideKernels{
		{Outputs: 16, Conv: convPieces16NEON, Sums: convPiecesSums16NEON, Planes: planes(convPiecesPlanes16NEON)},
		{Outputs: 32, Conv: convPieces32NEON, Sums: convPiecesSums32NEON, Planes: planes(convPiecesPlanes32NEON)},
		{Outputs: 64, Conv: convPieces64NEON, Sums: convPiecesSums64NEON, Planes: planes(convPiecesPlanes64NEON)},
	})
	out.Form = "pieces of 128"
	bytes := make([]uint8, 8*words)
	for o := range outputs {
		for r := range rows {
			for i, word := range w[(o*rows+r)*words:][:words] {
				binary.LittleEndian.PutUint64(bytes[8*i:], word)
			}
			at := 0
			for i := range out.Pieces() {
				take := pieceBytes
				for at+take > run {
					take /= 2
				}
				at += copy(out.Piece(o, r, i), bytes[at:at+take])
			}
		}
	}
	return out
}

// runBytes returns the bytes of a run of n bits.
func runBytes(n int) int { return num.RoundUp(num.CeilDiv(n, 8), 4) }

// piecesOf returns the number of pieces of a run of so many bytes.
func piecesOf(run int) int { return run/16 + run/8%2 + run/4%2 }

// planes returns the kernels for up to two planes, which are one: the job tells how many
// there are.
func planes(f func(*uint8)) map[[2]int]func(*uint8) {
	return map[[2]int]func(*uint8){{1, 2}: f, {2, 1}: f, {2, 2}: f, {2, 0}: f}
}
