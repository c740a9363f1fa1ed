// Package generic has the kernels in pure Go, on 64-bit words, for every
// processor. Other sets call them for what they have no assembly for, and for
// the rest of a row that is too short for it.
package generic

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// Set returns the kernels, "generic".
func Set() kern.Set {
	return kern.Set{
		ISA:            "generic",
		Block:          Block,
		PackBits:       packBits,
		DotBits:        DotBits,
		PackBytes:      packBytes,
		DotBytes:       dotBytes,
		PackInt8:       packWords[int8],
		PackInt16:      packWords[int16],
		DotWords:       dotWords,
		FloatBlock:     floatBlock,
		FloatLanes:     1,
		FMAPixels:      fmaPixels,
		FMAEach:        fmaEach,
		Columns:        func(int, int) bool { return false },
		Threshold:      Threshold,
		ThresholdFloat: ThresholdFloat,
		AddTwice:       AddTwice,
		Or:             Or,
		Scale:          Scale,
		ScaleFloat:     ScaleFloat,
		ScaleBytes:     ScaleBytes,
		Add:            Add,
		Choose:         Choose,
		Pick:           pick,
		Function:       Function,
		Blend:          Blend,
		Pairs:          Pairs,
		Largest:        Largest,
		OrPool:         OrPool,
		MaxPool:        MaxPool[float32],
		MaxPoolBytes:   MaxPool[uint8],
		LookUp:         LookUp,
		LevelBytes:     LevelBytes,
		LevelFloats:    LevelFloats,
		LookUpBytes:    LookUpBytes,
		Mean:           Mean,
		MeanSigns:      meanSigns,
		Narrow:         Narrow,
		Join:           Join,
		ThresholdBytes: ThresholdBytes,
		Floats:         Floats,
		Spread:         spread,
		Luma:           Luma,
		LBP:            LBP,
		MinMax:         MinMax,
		Peaks:          []kern.Peak{{Run: peak, Products: peakProducts}},
		Read:           read,
		Cost:           kern.Cost{Bits: 0.012, Bytes: 0.03, Floats: 2.5, Value: 2},
	}
}
