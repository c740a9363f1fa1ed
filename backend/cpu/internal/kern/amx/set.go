//go:build amd64 && !purego

// Package amx has the kernels for amd64 processors that multiply tiles of bytes: Intel's AMX, of
// Xeons since 2023.
package amx

import (
	"sync"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// Always returns Set with the kernels of tiles wherever there are some, "avx512tiles".
func Always(others kern.Set) kern.Set {
	s := Set(others)
	s.ISA = "avx512tiles"
	s.Matrix.Always = true
	return s
}

// Set returns the kernels, "avx512amx", with those of others for what gains nothing from tiles.
//
// Tiles are configured when a kernel begins, and released before it ends. The runtime does not
// interrupt a function in assembly to run another goroutine, and what the system does meanwhile
// saves the tiles: a signal's handler finds them in its frame, which is 11 KiB of the 32 that the
// runtime has for it.
func Set(others kern.Set) kern.Set {
	s := others
	s.ISA = "avx512amx"
	s.Matrix = &kern.Matrix{
		LinesOfBits: func(dst []uint8, src []uint64, at *kern.LineRows) {
			linesOfBitsAMX(&dst[0], (*uint8)(unsafe.Pointer(unsafe.SliceData(src))), (*uint8)(unsafe.Pointer(at)))
		},
		LinesOfBytes: func(dst, src []uint8, at *kern.LineRows) {
			linesOfBytesAMX(&dst[0], unsafe.SliceData(src), (*uint8)(unsafe.Pointer(at)))
		},
		LinesOfRuns: func(dst, src []uint8, at *kern.RunRows) {
			linesOfRunsAMX(&dst[0], &src[0], (*uint8)(unsafe.Pointer(at)))
		},
		Signs: convSignsAMX, Nibbles: convNibblesAMX, Bytes: convBytesAMX,
	}
	s.Peaks = append([]kern.Peak{{Run: peak, Products: 4 * kern.TileRows * kern.PanelOutputs * kern.LineBytes}}, others.Peaks...)
	return s
}

// peak multiplies random bits, as many as there are zeros among them: what tiles hold changes the
// rate, since that lies at the power that a core may take.
func peak(rounds int) {
	config, memory := kern.TileConfig(kern.TileRows, kern.TileRows), randomBits()
	peakAMX(&config[0], &memory[0], rounds)
}

var randomBits = sync.OnceValue(func() []uint8 {
	const tiles = 4
	memory := kern.AlignedBytes(tiles * kern.TileRows * kern.LineBytes)
	state := uint64(1)
	for i := range memory {
		state = state*6364136223846793005 + 1442695040888963407
		memory[i] = uint8(state >> 63)
	}
	return memory
})
