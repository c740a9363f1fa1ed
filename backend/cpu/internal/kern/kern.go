// Package kern holds the inner loops of the CPU backend, one Set for each
// instruction set. The executor around them knows no instruction set: it hands
// a Set packed weights that the Set itself has laid out, and rows of patches.
//
// All Sets give the same bits. Slices are as long as the doc comments say; the
// callers see to it.
package kern

import (
	"fmt"
	"strings"
)

// Patches says where the patches of a row of pixels lie in a slice: a patch is
// Rows runs of RowLen consecutive elements (words of bits, or bytes). Element
// i of run r of pixel p is at index p·Step + r·RowStep + i.
type Patches struct {
	Pixels  int
	Step    int
	Rows    int
	RowStep int
	RowLen  int
}

// Bits are ±1 weights, laid out by a Set: Outputs rows of Words words each,
// the last rows and bits possibly padding.
type Bits struct {
	Outputs int
	Words   int
	K       int // true taps
	data    []uint64
}

// Bytes are ±1 weights for patches of bytes, laid out by a Set.
type Bytes struct {
	Outputs int
	K       int
	data    []uint8
	fix     []int32 // zero point · Σw per output
}

// Set is the table of kernels of an instruction set.
type Set struct {
	ISA string

	// Block is what output channels come in: DotBits and DotBytes write sums
	// for a multiple of it, those beyond Outputs being meaningless, and start at
	// a multiple of it. It divides 64.
	Block int

	// PackBits lays out weights: outputs rows of bits.Words(k) words.
	PackBits func(w []uint64, outputs, k int) *Bits

	// DotBits computes, for every pixel p and output o from first on,
	//
	//	dst[p·stride + o − first] = K − 2·popcount(patch p XOR weights o)
	//
	// for n outputs, rounded up to a multiple of Block.
	DotBits func(dst []int32, stride int, src []uint64, at *Patches, w *Bits, first, n int)

	// PackBytes lays out weights: outputs rows of bits.Words(k) words.
	PackBytes func(w []uint64, outputs, k int, zeroPoint uint8) *Bytes

	// DotBytes computes, for every pixel p and output o from first on,
	//
	//	dst[p·stride + o − first] = Σ (patch p − zero point)·weights o
	//
	// for n outputs, rounded up to a multiple of Block.
	DotBytes func(dst []int32, stride int, src []uint8, at *Patches, w *Bytes, first, n int)

	// FMA adds the products of the taps x, in their order, to the accumulators:
	// for each i and then each o
	//
	//	acc[o] = fma(x[i], w[i·stride + o], acc[o])
	FMA func(acc, x, w []float32, stride int)

	// Threshold packs pixels rows of len(t) sums, stride apart, to rows of
	// bits.Words(len(t)) words, step apart: bit o of row p is
	// sums[p·stride + o] ≥ t[o]. Padding bits become 0.
	Threshold func(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int)

	// ThresholdFloat is Threshold for float32 sums.
	ThresholdFloat func(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int)

	// Or computes dst[i] |= src[i] for all of src.
	Or func(dst, src []uint64)

	// Scale computes dst[o] = fma(float32(sums[o]), scale[o], shift[o]) for all
	// of dst, then max(·, 0) if relu is set. scale is nil for float32(sums[o]).
	Scale func(dst []float32, sums []int32, scale, shift []float32, relu bool)

	// ScaleFloat is Scale for float32 sums. dst may be sums.
	ScaleFloat func(dst, sums []float32, scale, shift []float32, relu bool)

	// Wide replaces DotBits and DotBytes where all outputs read the same inputs;
	// nil where the instruction set has nothing wider than a word.
	Wide *Wide

	// Peak does rounds × PeakProducts products of bits on registers and the L1
	// cache alone, as fast as the instruction set can.
	Peak         func(rounds int)
	PeakProducts int
}

// sets lists the Sets that this processor can run, the best first. Every
// processor can run the last one.
var sets = []*Set{&generic}

// Names returns the instruction sets that this processor can run, the best
// first.
func Names() []string {
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.ISA
	}
	return names
}

// Lookup returns the Set of an instruction set; "" means the best.
func Lookup(isa string) (*Set, error) {
	for _, s := range sets {
		if isa == s.ISA || isa == "" {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no kernels for instruction set %q on this processor; there are %s", isa, strings.Join(Names(), ", "))
}
