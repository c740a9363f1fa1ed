package sets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// TestWinograd has the kernels of F(2×2, 3×3) do each of their parts, and compares the outputs of all with
// sums of nine taps.
func TestWinograd(t *testing.T) {
	for _, isa := range Names() {
		s, err := Lookup(isa)
		require.NoError(t, err)
		if s.Wide == nil || s.Wide.Winograd == nil {
			continue
		}
		for i, c := range []winogradCase{
			{squares: 4, channels: 64, most: 3, largest: 3},
			{squares: 5, channels: 128, most: 15, largest: 8, zeroPoint: 7},
			{squares: 7, channels: 64, most: 63, largest: 14, zeroPoint: 63},
			{squares: 9, channels: 192, most: 63, largest: 14, all: true},
			{squares: 30, channels: 64, most: 1, largest: 1},
		} {
			t.Run(fmt.Sprintf("%s/%+v", isa, c), func(t *testing.T) { c.test(t, s, rand.New(rand.NewPCG(uint64(i), 7))) })
		}
	}
}

type winogradCase struct {
	squares, channels int // of a row
	most, zeroPoint   uint8
	largest           int  // of the weights
	all               bool // weights and bytes are as large as they can be
}

func (c winogradCase) test(t *testing.T, s *kern.Set, rng *rand.Rand) {
	const outputs = 128
	w, width := s.Wide.Winograd, 2*c.squares+2
	image := fenced(t, 4*width*c.channels)
	weights := make([]int8, outputs*9*c.channels)
	for i := range image {
		image[i] = uint8(rng.IntN(int(c.most) + 1))
		if c.all {
			image[i] = c.most
		}
	}
	for i := range weights {
		weights[i] = int8(rng.IntN(2*c.largest+1) - c.largest)
		if c.all {
			weights[i] = int8(c.largest)
		}
	}
	f := kern.PackWinograd(weights, outputs, c.channels, c.most, c.zeroPoint)
	require.NotNil(t, f)

	// Planes have a gap.
	const gap = 64
	plane := c.squares * c.channels
	bytes := fenced(t, kern.Squares*plane)
	w.Transform(&kern.WinogradInput{
		Dst: unsafe.Pointer(&bytes[0]), Src: unsafe.Pointer(&image[0]), Step: uintptr(c.channels), Row: uintptr(width * c.channels),
		DstStep: uintptr(c.channels), Plane: uintptr(plane), Squares: uintptr(c.squares), Vectors: uintptr(c.channels / 64), Offset: uintptr(f.Offset),
	})
	sums := fenced(t, kern.Squares*c.squares*4*kern.BlockOutputs)
	for block := range outputs / kern.BlockOutputs {
		w.Sums(&kern.WinogradSums{Dst: unsafe.Pointer(&sums[0]), Src: unsafe.Pointer(&bytes[0]), Squares: uintptr(c.squares)}, f, block)
		job := func(dst []uint8, size int) *kern.WinogradJob {
			j := &kern.WinogradJob{Row: uintptr(size * (2*c.squares*kern.BlockOutputs + gap)), Plane: uintptr(c.squares * 4 * kern.BlockOutputs)}
			j.Dst, j.DstStep = unsafe.Pointer(&dst[0]), uintptr(size*kern.BlockOutputs)
			j.Src, j.Pixels = unsafe.Pointer(&sums[0]), uintptr(c.squares)
			return j
		}
		values := 4*c.squares*kern.BlockOutputs + gap
		floats, check := unaligned(t, 4*values, 4)
		for i := range floats {
			floats[i] = 0xff // what is not written must stay
		}
		w.EndFloats(job(floats, 4), &kern.End{}, nil)
		check()
		numbers, check := unaligned(t, values, 1)
		levels := kern.Levels{Scale: make([]float32, kern.BlockOutputs), Shift: make([]float32, kern.BlockOutputs), Least: -100, Most: 155, Offset: 100}
		for o := range levels.Scale {
			levels.Scale[o], levels.Shift[o] = 1/float32(c.channels+o), float32(o%5)
		}
		if rng.IntN(2) == 0 {
			levels.Rest = slices.Repeat([]float32{0.125}, kern.BlockOutputs)
		}
		w.EndLevels(job(numbers, 1), &kern.End{}, &levels)
		check()
		for y := range 2 {
			for x := range 2 * c.squares {
				for o := range kern.BlockOutputs {
					want := int32(0)
					for k, v := range weights[(block*kern.BlockOutputs+o)*9*c.channels:][:9*c.channels] {
						tap, channel := k/c.channels, k%c.channels
						want += int32(v) * (int32(image[((y+tap/3)*width+x+tap%3)*c.channels+channel]) - int32(c.zeroPoint))
					}
					at := y*(2*c.squares*kern.BlockOutputs+gap) + x*kern.BlockOutputs + o
					got := *(*float32)(unsafe.Pointer(&floats[4*at]))
					requireEqual(t, math.Float32bits(float32(want)), math.Float32bits(got), "row %d, pixel %d, output %d: %d, got %v", y, x, o, want, got)
					requireEqual(t, levels.Number(float32(want), o), int(numbers[at]), "level of row %d, pixel %d, output %d", y, x, o)
				}
			}
		}
	}
}
