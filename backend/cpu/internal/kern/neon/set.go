//go:build arm64 && !purego

// Package neon has the kernels for arm64 processors. They count bits in bytes, 16
// outputs side by side.
package neon

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// Set returns the kernels for every arm64 processor, "neon", as they are best on
// some cores.
func Set(cores Cores) kern.Set {
	s := generic.Set()
	s.ISA = "neon"
	s.DotBits = dotBits
	s.Wide = &kern.Wide{
		MaxPlanes: 2,
		MaxTaps:   math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return packBits(cores, w, outputs, rows, n)
		},
		PackBytes: packOnes,
	}
	s.Wide.PackInt8, s.Wide.PackInt16 = longProducts.packInt8, longProducts.packInt16
	s.FloatBlock, s.FloatLanes = 16, 4
	s.FMAPixels = fmaPixels
	s.Threshold = threshold
	s.ThresholdFloat = thresholdFloat
	s.Or = or
	s.Scale = scale
	s.ScaleFloat = scaleFloat
	s.ScaleAdd = scaleAdd
	s.FMAEach = fmaEach
	s.ScaleBytes = scaleBytes
	s.LevelBytes = levelBytes
	s.LevelFloats = levelFloats
	s.LookUp = lookUp
	s.Add = add
	s.Choose = choose
	s.PickLanes = 4
	s.Pick = pick
	s.Blend, s.BlendRows = blend, blendRows
	s.Function = function
	s.Pairs = pairs
	s.Largest = largest
	s.MeanSigns = meanSigns
	s.OrPool = orPool
	s.MaxPool = maxPool
	s.MaxPoolBytes = maxPoolBytes
	s.LookUpBytes = lookUpBytes
	s.Mean = mean
	s.Narrow = narrow
	s.Join = join
	s.ThresholdBytes = thresholdBytes
	s.Spread = spread
	s.Floats = floats
	s.Luma = luma
	s.LBP = lbp
	s.MinMax = minMax
	s.Peaks = []kern.Peak{{Run: peakNEON, Products: 16 * 128}}
	s.PeakFMA, s.PeakFMAs = peakFMANEON, 16*4
	s.Cost = kern.Cost{Bits: 0.008, Bytes: 0.03, Floats: 0.1, Value: 0.3}
	return s
}

// Forms returns Set with one form of the kernels of bits for all convolutions:
// "neonbytes", "neonpieces" and "neoncarries", which takes pieces where a patch is too
// short or too long for carries.
func Forms() []kern.Set {
	lanes, pieces, carries := Set(Cores{}), Set(Cores{}), Set(Cores{})
	lanes.ISA, lanes.Wide.PackBits = "neonbytes", packBytesOfBits
	pieces.ISA, pieces.Wide.PackBits = "neonpieces", packPieces
	carries.ISA = "neoncarries"
	carries.Wide.PackBits = func(w []uint64, outputs, rows, n int) *kern.WideFilter {
		if !carriesFit(rows, n) {
			return packPieces(w, outputs, rows, n)
		}
		return packCarries(w, outputs, rows, n)
	}
	return []kern.Set{carries, pieces, lanes}
}

// DotSet returns the kernels for processors with the dot product of bytes,
// "neondot".
func DotSet(cores Cores) kern.Set {
	s := Set(cores)
	s.ISA = "neondot"
	s.Wide.PackBytes = dotProducts.packSigns
	s.Wide.PackInt8, s.Wide.PackInt16 = dotProducts.packInt8, dotProducts.packInt16
	return s
}

// MatrixSet returns the kernels for processors that also have products of matrices of
// bytes, "neoni8mm".
func MatrixSet(cores Cores) kern.Set {
	s := DotSet(cores)
	s.ISA = "neoni8mm"
	s.Wide.PackBytes = matrixProducts.packSigns
	s.Wide.PackInt8, s.Wide.PackInt16 = matrixProducts.packInt8, matrixProducts.packInt16
	return s
}

// packOnes lays out pairs of taps as bytes, whose bits are all set where the weight is +1.
func packOnes(w []uint64, outputs, rows, n int) *kern.WideFilter {
	words, pieces := bits.Words(n), (n+1)/2
	out := kern.NewWideFilter(outputs, rows, pieces, 2, []kern.WideKernels{
		{Outputs: 16, Conv: convBytes16NEON, Sums: convBytesSums16NEON},
		{Outputs: 32, Conv: convBytes32NEON, Sums: convBytesSums32NEON},
		{Outputs: 64, Conv: convBytes64NEON, Sums: convBytesSums64NEON},
	})
	out.Tail = ^uint64(0) >> (64 - 8*(n-(pieces-1)*2))
	for o := range outputs {
		for r := range rows {
			run := w[(o*rows+r)*words:][:words]
			for i := range n {
				if bits.At(run, i) > 0 {
					out.Piece(o, r, i/2)[i%2] = 0xff
				}
			}
		}
	}
	return out
}
