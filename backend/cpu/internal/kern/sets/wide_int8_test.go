package sets

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// testInt8 compares the kernels of 8-bit weights with plain sums. Weights are largest at
// most, and bytes most.
func testInt8(t *testing.T, wide *kern.Wide, rng *rand.Rand, c wideCase, largest int, most uint8) {
	weights := make([]int8, c.outputs*c.rows*c.taps)
	for i := range weights {
		weights[i] = int8(max(rng.IntN(2*largest+1)-largest, -128))
		if c.largest {
			weights[i] = int8(max(-largest, -128))
		}
	}
	w := wide.PackInt8(weights, c.outputs, c.rows, c.taps, most)
	testWords(t, w, weights, rng, c, most)
}

// testInt16 is testInt8 for weights of 16 bits, as the set lays them out and in parts of 8
// bits.
func testInt16(t *testing.T, s *kern.Set, rng *rand.Rand, c wideCase, largest int) {
	weights := make([]int16, c.outputs*c.rows*c.taps)
	for i := range weights {
		weights[i] = int16(max(min(rng.IntN(2*largest+1)-largest, 32767), -32768))
		if c.largest {
			weights[i] = int16(max(min(largest*(1-2*(i%2)), 32767), -32768))
		}
	}
	testWords(t, s.Wide.PackInt16(weights, c.outputs, c.rows, c.taps), weights, rng, c, 255)
	if s.ISA == "avx2" || s.ISA == "ssse3" { // where the layout depends on the weights
		return
	}
	parts := kern.PackParts(weights, c.outputs, c.rows, c.taps, func(w []int8, outputs, rows, n int) *kern.WideFilter {
		return s.Wide.PackInt8(w, outputs, rows, n, 255)
	})
	testWords(t, parts, weights, rng, c, 255)
}

// testWords compares the kernels of weights with plain sums of bytes that are most at most.
func testWords[W int8 | int16](t *testing.T, w *kern.WideFilter, weights []W, rng *rand.Rand, c wideCase, most uint8) {
	rowStep := w.RunBytes + rng.IntN(3)*8
	pixelStep := 1 + rng.IntN(2*w.RunBytes)
	src := fenced(t, (c.pixels-1)*pixelStep+(c.rows-1)*rowStep+w.RunBytes)
	at, class := make([]uint32, c.pixels), make([]uint32, c.pixels)
	for p, q := range rng.Perm(c.pixels) {
		at[p] = uint32(q * pixelStep)
	}
	for i := range src {
		src[i] = uint8(rng.IntN(int(most) + 1))
		if c.largest {
			src[i] = most
		}
	}
	table := make([]int32, (c.outputs+kern.BlockOutputs-1)/kern.BlockOutputs*kern.BlockOutputs)
	for i := range table {
		table[i] = int32(rng.IntN(1<<20) - 1<<19)
	}
	for block := 0; block*kern.BlockOutputs < c.outputs; block++ {
		first := block * kern.BlockOutputs
		job := &kern.ConvJob{Src: unsafe.Pointer(&src[0]), At: &at[0], Class: &class[0], Table: unsafe.Pointer(&table[first])}
		sums, check := unaligned(t, c.pixels*4*kern.BlockOutputs, 4)
		job.Dst, job.DstStep, job.Pixels = unsafe.Pointer(&sums[0]), 4*kern.BlockOutputs, uintptr(c.pixels)
		w.ConvSums(job, block, rowStep)
		check()
		all := make([]int32, c.pixels*kern.BlockOutputs)
		for i := range all {
			all[i] = int32(binary.LittleEndian.Uint32(sums[4*i:]))
		}
		for p := range c.pixels {
			for o := range min(c.outputs-first, kern.BlockOutputs) {
				want := table[first+o]
				if w.Fix != nil {
					want -= w.Fix[first+o]
				}
				for r := range c.rows {
					for i, v := range weights[((first+o)*c.rows+r)*c.taps:][:c.taps] {
						want += int32(v) * int32(src[int(at[p])+r*rowStep+i])
					}
				}
				requireEqual(t, want, all[p*kern.BlockOutputs+o], "%+v: bytes to %d, pixel %d output %d", c, most, p, o)
			}
		}
		checkFloats(t, rng, w, job, block, rowStep, c.pixels, min(c.outputs-block*kern.BlockOutputs, kern.BlockOutputs), all)
	}
}

func TestWideInt8(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Wide == nil || s.Wide.PackInt8 == nil {
			require.NotContains(t, []string{"ssse3", "avx2", "avx512vpopcnt"}, s.ISA)
			return
		}
		for _, outputs := range []int{1, 15, 16, 17, 32, 33, 48, 64, 65, 96, 128, 130} {
			for _, pixels := range []int{1, 2, 3, 4, 6, 7, 13} {
				for _, size := range []struct {
					weights int
					bytes   uint8
				}{{128, 255}, {127, 255}, {7, 15}, {8, 255}, {128, 15}, {60, 127}, {64, 128}} {
					testInt8(t, s.Wide, rng, wideCase{
						outputs: outputs, pixels: pixels, rows: 1 + rng.IntN(4), taps: 1 + rng.IntN(70),
						classes: 1, largest: rng.IntN(4) == 0,
					}, size.weights, size.bytes)
				}
			}
		}
		// Narrow sums are emptied in time.
		for _, taps := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 310, 313, 1500} {
			for _, rows := range []int{1, 3} {
				for _, largest := range []int{1, 7, 8, 128} {
					for _, most := range []uint8{1, 15, 255} {
						testInt8(t, s.Wide, rng, wideCase{outputs: 20, pixels: 5, rows: rows, taps: taps, classes: 1, largest: true}, largest, most)
					}
				}
			}
		}
	})
}

func TestWideInt16(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Wide == nil {
			return
		}
		for _, outputs := range []int{1, 15, 16, 17, 32, 33, 48, 64, 65, 80, 96, 112, 130} {
			for i, pixels := range []int{1, 2, 3, 4, 5, 6, 7, 13, 64, 150} {
				if outputs < 64 && pixels > 13 {
					continue
				}
				for k, largest := range []int{128, 32639, 32768} {
					if testing.Short() && (i+outputs)%3 != k {
						continue
					}
					testInt16(t, s, rng, wideCase{
						outputs: outputs, pixels: pixels, rows: 1 + rng.IntN(4), taps: 1 + rng.IntN(60),
						classes: 1, largest: i%4 == 0,
					}, largest)
				}
			}
		}
	})
}
