//go:build amd64 && !purego

// Package avx2 has the kernels for amd64 processors with AVX2, FMA and POPCNT.
// They look up the popcounts of nibbles and sum them in bytes.
package avx2

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

// Set returns the kernels, "avx2".
func Set() kern.Set {
	s := generic.Set()
	s.ISA = "avx2"
	s.Wide = &kern.Wide{
		Nibbles:     true,
		Expand:      expand,
		ExpandBytes: expandPairedBytes,
		MaxTaps:     math.MaxInt16,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			if outputs <= 16 { // half of a vector
				return kern.PackPairedBytes(w, outputs, rows, n, []kern.WideKernels{
					{Outputs: 16, Conv: convBits16AVX2, Sums: convBitsSums16AVX2, Floats: convBitsFloats16AVX2, Pooled: convBitsPooled16AVX2},
				})
			}
			kernels := []kern.WideKernels{
				{Outputs: 32, Conv: convBits32AVX2, Sums: convBitsSums32AVX2, Floats: convBitsFloats32AVX2, Pooled: convBitsPooled32AVX2},
				{Outputs: 64, Conv: convBits64AVX2, Sums: convBitsSums64AVX2, Floats: convBitsFloats64AVX2, Pooled: convBitsPooled64AVX2},
			}
			if (n+3)/4*rows <= 63 { // counts fit into bytes
				kernels[0].PooledAlike, kernels[1].PooledAlike = convBitsPooledShort32AVX2, convBitsPooledShort64AVX2
			}
			return kern.PackNibbles(w, outputs, rows, n, kernels)
		},
		PackBytes: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return kern.PackSigns(w, outputs, rows, n, 2, []kern.WideKernels{
				{Outputs: 16, Conv: convBytes16AVX2, Sums: convBytesSums16AVX2, Floats: convBytesFloats16AVX2, Levels: convBytesLevels16AVX2, Pooled: convBytesPooled16AVX2},
				{Outputs: 32, Conv: convBytes32AVX2, Sums: convBytesSums32AVX2, Floats: convBytesFloats32AVX2, Levels: convBytesLevels32AVX2, Pooled: convBytesPooled32AVX2},
				// The sums of four pixels do not fit into the registers.
				{Outputs: 64, Conv: convBytes64AVX2, Sums: convBytesSums64AVX2, Floats: convBytesFloats64AVX2, Levels: convBytesLevels64AVX2},
			})
		},
		PackInt8:  packInt8,
		PackInt16: packWords[int16],
	}
	s.DotBits = dotBits
	s.FloatBlock, s.FloatLanes = 16, 8
	s.FMAPixels = fmaPixels
	s.Threshold = threshold
	s.ThresholdFloat = thresholdFloat
	s.ThresholdPlanes = thresholdPlanes
	s.Scale = scale
	s.ScaleFloat = scaleFloat
	s.FMAEach = fmaEach
	s.FMAColumns, s.Columns = fmaColumns, columns
	s.ScaleBytes = scaleBytes
	s.Add = add
	s.Choose = choose
	s.PickLanes = 8
	s.Pick = pick
	s.Function = function
	s.Blend, s.BlendRows = blend, blendRows
	s.LevelBytes, s.LevelFloats = levelBytes, levelFloats
	s.Pairs = pairs
	s.Largest = largest
	s.OrPool = orPool
	s.MaxPool = maxPool
	s.MaxPoolBytes = maxPoolBytes
	s.LookUpBytes = lookUpBytes
	s.Mean = mean
	s.MeanSigns = meanSigns
	s.Narrow = narrow
	s.Join = join
	s.ThresholdBytes = thresholdBytes
	s.Floats = floats
	s.Spread = spread
	s.Luma = luma
	s.LBP = lbp
	s.MinMax = minMax
	s.Peaks = []kern.Peak{{Run: peakAVX2, Products: 12 * 32 * 4}}
	s.Read = func(b []byte) { readAVX2(&b[0], len(b)/kern.ReadBytes) }
	s.PeakFMA, s.PeakFMAs = peakFMAAVX2, 8*12*8
	s.Cost = kern.Cost{Bits: 0.002, Bytes: 0.008, Floats: 0.03, Value: 0.1}
	return s
}

// packInt8 lays out weights of 8 bits for sums in words, where those take several pairs of
// products, and for sums in 32 bits.
func packInt8(w []int8, outputs, rows, n int, most uint8) *kern.WideFilter {
	pairs := kern.PackPairs(w, outputs, rows, n, most, []kern.WideKernels{
		{Outputs: 16, Sums: convBytesSums16AVX2, Floats: convBytesFloats16AVX2, Levels: convBytesLevels16AVX2},
		{Outputs: 32, Sums: convBytesSums32AVX2, Floats: convBytesFloats32AVX2, Levels: convBytesLevels32AVX2},
		{Outputs: 64, Sums: convBytesSums64AVX2, Floats: convBytesFloats64AVX2, Levels: convBytesLevels64AVX2},
	})
	if pairs != nil {
		pairs.Form = "sums in words"
		return pairs
	}
	return packWords(w, outputs, rows, n)
}

// packWords lays out weights for sums in 32 bits.
func packWords[W int8 | int16](w []W, outputs, rows, n int) *kern.WideFilter {
	if outputs <= 16 {
		return kern.PackWords(w, outputs, rows, n, 16, []kern.WideKernels{{Outputs: 16, Sums: convWordsSums16AVX2, Floats: convWordsFloats16AVX2}})
	}
	return kern.PackWords(w, outputs, rows, n, 32, []kern.WideKernels{
		{Outputs: 32, Each: 32, Sums: convWordsSums32AVX2, Floats: convWordsFloats32AVX2, Levels: convWordsLevels32AVX2},
		{Outputs: 64, Each: 32, Sums: convWordsSums32AVX2, Floats: convWordsFloats32AVX2, Levels: convWordsLevels32AVX2},
	})
}
