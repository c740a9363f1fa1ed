//go:build amd64 && !purego

// Package avx512 has the kernels for amd64 processors with AVX-512 VPOPCNTDQ, VNNI and
// VBMI. They sum in 32-bit lanes. What gains nothing from more than AVX2 is that
// of avx2.
package avx512

import (
	"math"

	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/avx2"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// Runs reports whether the processor can run the kernels. cpuid reports AVX-512 only where the operating
// system saves its registers.
func Runs() bool {
	return cpuid.CPU.Supports(cpuid.AVX2, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL,
		cpuid.AVX512VBMI, cpuid.AVX512VPOPCNTDQ, cpuid.AVX512VNNI, cpuid.BMI2, cpuid.FMA3)
}

// Carries returns Set with the kernels of carries wherever rows are laid out for them,
// "avx512carries".
func Carries() kern.Set {
	s := Set()
	s.ISA = "avx512carries"
	s.Wide.PackCarries = packCarries
	return s
}

// Set returns the kernels, "avx512vpopcnt".
func Set() kern.Set {
	s := avx2.Set()
	s.ISA = "avx512vpopcnt"
	s.Wide = &kern.Wide{
		MaxPlanes: 2,
		MaxTaps:   math.MaxInt32,
		PackBits: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return packBits32(w, outputs, rows, n, []kern.WideKernels{
				{Outputs: 16, Conv: convBits16AVX512, Sums: convBitsSums16AVX512, Floats: convBitsFloats16AVX512, Pooled: convBitsPooled16AVX512, PooledAlike: convBitsPooledAlike16AVX512,
					Planes: map[[2]int]func(*uint8){{1, 2}: convBitsPlanes1To216AVX512, {2, 1}: convBitsPlanes2To116AVX512, {2, 2}: convBitsPlanes2To216AVX512, {2, 0}: convBitsPlanes2Sums16AVX512}},
				{Outputs: 32, Conv: convBits32AVX512, Sums: convBitsSums32AVX512, Floats: convBitsFloats32AVX512, Pooled: convBitsPooled32AVX512, PooledAlike: convBitsPooledAlike32AVX512,
					Planes: map[[2]int]func(*uint8){{1, 2}: convBitsPlanes1To232AVX512, {2, 1}: convBitsPlanes2To132AVX512, {2, 2}: convBitsPlanes2To232AVX512, {2, 0}: convBitsPlanes2Sums32AVX512}},
				{Outputs: 48, Conv: convBits48AVX512, Sums: convBitsSums48AVX512, Floats: convBitsFloats48AVX512, Pooled: convBitsPooled48AVX512, PooledAlike: convBitsPooledAlike48AVX512,
					Planes: map[[2]int]func(*uint8){{1, 2}: convBitsPlanes1To248AVX512, {2, 1}: convBitsPlanes2To148AVX512, {2, 2}: convBitsPlanes2To248AVX512, {2, 0}: convBitsPlanes2Sums48AVX512}},
				{Outputs: 64, Conv: convBits64AVX512, Sums: convBitsSums64AVX512, Floats: convBitsFloats64AVX512, Pooled: convBitsPooled64AVX512, PooledAlike: convBitsPooledAlike64AVX512,
					Planes: map[[2]int]func(*uint8){{1, 2}: convBitsPlanes1To264AVX512, {2, 1}: convBitsPlanes2To164AVX512, {2, 2}: convBitsPlanes2To264AVX512, {2, 0}: convBitsPlanes2Sums64AVX512}},
			})
		},
		Winograd:    &kern.Winograd{Input: winogradInputAVX512, Products: winogradSumsAVX512, Floats: winogradFloatsAVX512, Levels: winogradLevelsAVX512},
		PackCarries: pickCarries,
		Parities:    parities,
		Patches:     patches,
		PackBytes: func(w []uint64, outputs, rows, n int) *kern.WideFilter {
			return kern.PackSigns(w, outputs, rows, n, 4, []kern.WideKernels{
				{Outputs: 16, Conv: convBytes16AVX512, Sums: convBytesSums16AVX512, Floats: convBytesFloats16AVX512, Levels: convBytesLevels16AVX512, Pooled: convBytesPooled16AVX512},
				{Outputs: 32, Conv: convBytes32AVX512, Sums: convBytesSums32AVX512, Floats: convBytesFloats32AVX512, Levels: convBytesLevels32AVX512, Pooled: convBytesPooled32AVX512},
				{Outputs: 48, Conv: convBytes48AVX512, Sums: convBytesSums48AVX512, Floats: convBytesFloats48AVX512, Levels: convBytesLevels48AVX512, Pooled: convBytesPooled48AVX512},
				{Outputs: 64, Conv: convBytes64AVX512, Sums: convBytesSums64AVX512, Floats: convBytesFloats64AVX512, Levels: convBytesLevels64AVX512, Pooled: convBytesPooled64AVX512},
			})
		},
		PackInt8: func(w []int8, outputs, rows, n int, _ uint8) *kern.WideFilter {
			return kern.PackPieces(w, outputs, rows, n, 4, []kern.WideKernels{
				{Outputs: 16, Sums: convBytesSums16AVX512, Floats: convBytesFloats16AVX512, Levels: convBytesLevels16AVX512},
				{Outputs: 32, Sums: convBytesSums32AVX512, Floats: convBytesFloats32AVX512, Levels: convBytesLevels32AVX512},
				{Outputs: 48, Sums: convBytesSums48AVX512, Floats: convBytesFloats48AVX512, Levels: convBytesLevels48AVX512},
				{Outputs: 64, Sums: convBytesSums64AVX512, Floats: convBytesFloats64AVX512, Levels: convBytesLevels64AVX512},
			})
		},
		PackInt16: func(w []int16, outputs, rows, n int) *kern.WideFilter {
			return kern.PackWords(w, outputs, rows, n, 0, []kern.WideKernels{
				{Outputs: 16, Sums: convWordsSums16AVX512, Floats: convWordsFloats16AVX512},
				{Outputs: 32, Sums: convWordsSums32AVX512, Floats: convWordsFloats32AVX512},
				{Outputs: 48, Sums: convWordsSums48AVX512, Floats: convWordsFloats48AVX512},
				{Outputs: 64, Sums: convWordsSums64AVX512, Floats: convWordsFloats64AVX512},
			})
		},
	}
	s.Block = 8
	s.PackBits = func(w []uint64, outputs, k int) *kern.DotBitsWeights { return kern.PackLanes(w, outputs, k, 8) }
	s.DotBits = dotBits
	s.FloatBlock, s.FloatLanes = 64, 16
	s.FMAPixels = fmaPixels
	s.FMAEach = fmaEach
	s.FMAColumns, s.Columns = fmaColumns, columns
	s.Depthwise = &depthwise
	s.FMAGroups, s.Groups = fmaOfGroups, groups
	s.Threshold = threshold
	s.ThresholdFloat = thresholdFloat
	s.ThresholdPlanes = thresholdPlanes
	s.Scale = scale
	s.ScaleFloat = scaleFloat
	s.ScaleBytes = scaleBytes
	s.LevelBytes, s.LevelFloats = levelBytes, levelFloats
	s.LookUp = lookUp
	s.Add = add
	s.Choose = choose
	s.PickLanes = 16
	s.Pick = pick
	s.Function = function
	s.LookUpBytes = lookUpBytes
	s.Blend, s.BlendRows = blend, blendRows
	s.Mean = mean
	s.MeanSigns = meanSigns
	s.Peaks = []kern.Peak{{Run: peakAVX512, Products: 8 * 12 * 2 * 512}}
	s.Read = func(b []byte) { readAVX512(&b[0], len(b)/kern.ReadBytes) }
	s.PeakFMA, s.PeakFMAs = peakFMAAVX512, 8*16*16
	s.Cost = kern.Cost{Bits: 0.001, Bytes: 0.005, Floats: 0.02, Value: 0.1}
	return s
}

var depthwise = kern.Depthwise{Kernels: [2]func(*uint8){depthwise1AVX512, depthwise2AVX512}}

// packBits32 lays out pieces of 32 bits.
func packBits32(w []uint64, outputs, rows, n int, kernels []kern.WideKernels) *kern.WideFilter {
	words, pieces := bits.Words(n), (n+31)/32
	out := kern.NewWideFilter(outputs, rows, pieces, 4, kernels)
	for o := range outputs {
		for r := range rows {
			for i := range pieces {
				v := uint32(w[(o*rows+r)*words+i/2] >> (i % 2 * 32))
				d := out.Piece(o, r, i)
				d[0], d[1], d[2], d[3] = uint8(v), uint8(v>>8), uint8(v>>16), uint8(v>>24)
			}
		}
	}
	return out
}
