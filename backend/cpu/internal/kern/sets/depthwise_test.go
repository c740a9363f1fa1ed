package sets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// TestDepthwise compares depthwise convolutions of 3×3 on bytes with sums of nine taps.
func TestDepthwise(t *testing.T) {
	for _, isa := range Names() {
		s, err := Lookup(isa)
		require.NoError(t, err)
		if s.Depthwise == nil {
			continue
		}
		for stride := 1; stride <= len(s.Depthwise.Kernels); stride++ {
			for i, c := range []depthwiseCase{
				{pixels: 4, channels: 64},
				{pixels: 5, channels: 1, scaled: true},
				{pixels: 7, channels: 130, scaled: true, rest: true},
				{pixels: 8, channels: 17, sloped: true},
				{pixels: 9, channels: 96, scaled: true, sloped: true, clip: true},
				{pixels: 14, channels: 63, clip: true, all: true},
			} {
				t.Run(fmt.Sprintf("%s/%d/%+v", isa, stride, c), func(t *testing.T) { c.test(t, s, stride, rand.New(rand.NewPCG(uint64(i), 8))) })
			}
		}
	}
}

type depthwiseCase struct {
	pixels, channels int
	scaled, rest     bool
	sloped, clip     bool
	all              bool // weights and bytes are as large as they can be
}

func (c depthwiseCase) test(t *testing.T, s *kern.Set, stride int, rng *rand.Rand) {
	width := (c.pixels-1)*stride + 3
	image := fenced(t, 3*width*c.channels)
	weights, first := make([]int8, 9*c.channels), make([]int32, c.channels)
	for i := range image {
		image[i] = uint8(rng.IntN(256))
		if c.all {
			image[i] = 255
		}
	}
	for i := range weights {
		weights[i] = int8(rng.IntN(256) - 128)
		if c.all {
			weights[i] = -128
		}
	}
	floats := func(low, high float32) []float32 {
		row := make([]float32, c.channels)
		for i := range row {
			row[i] = low + (high-low)*rng.Float32()
		}
		return row
	}
	for i := range first {
		first[i] = int32(rng.IntN(2001) - 1000)
	}
	levels := kern.Levels{Scale: floats(0.001, 0.01), Shift: floats(-20, 100), Least: -100, Most: 155, Offset: 100}
	if c.rest {
		levels.Rest = floats(0, 1e-9)
	}
	end := kern.End{}
	if c.scaled {
		end.Scale, end.Shift = floats(-1.5, 1.5), floats(-100, 100)
	}
	if c.sloped {
		end.Slope = floats(-0.5, 0.5)
	}
	if c.clip {
		end.Clip, end.Low, end.High = true, -3000, 5000
	}
	f := kern.PackDepthwise(weights, first)
	require.LessOrEqual(t, f.Blocks()*kern.BlockOutputs*16, kern.DepthwiseBytes(c.channels))
	const gap = 3
	dst, check := unaligned(t, c.pixels*(c.channels+gap)-gap, 1)
	for i := range dst {
		dst[i] = 0xab // what is not written must stay
	}
	ordered, numbers := end, levels
	ordered.Scale, ordered.Shift, ordered.Slope = kern.InDepthwiseOrder(end.Scale), kern.InDepthwiseOrder(end.Shift), kern.InDepthwiseOrder(end.Slope)
	numbers.Scale, numbers.Shift, numbers.Rest = kern.InDepthwiseOrder(levels.Scale), kern.InDepthwiseOrder(levels.Shift), kern.InDepthwiseOrder(levels.Rest)
	for block := range f.Blocks() {
		channel := block * kern.BlockOutputs
		j := kern.DepthwiseJob{Row: uintptr(width * c.channels), Column: uintptr(c.channels)}
		j.Dst, j.DstStep, j.Src, j.Pixels = unsafe.Pointer(&dst[channel]), uintptr(c.channels+gap), unsafe.Pointer(&image[channel]), uintptr(c.pixels)
		end, levels := ordered.From(channel), numbers.From(channel)
		s.Depthwise.Levels(&j, f, block, stride, &end, &levels)
	}
	check()
	for p := range c.pixels {
		for ch := range c.channels {
			sum := first[ch]
			for k, v := range weights[9*ch:][:9] {
				sum += int32(v) * int32(image[(k/3*width+p*stride+k%3)*c.channels+ch])
			}
			x := float32(sum)
			if c.scaled {
				x = f32.FMA(x, end.Scale[ch], end.Shift[ch])
			}
			if c.sloped && x < 0 {
				x *= end.Slope[ch]
			}
			if c.clip {
				x = min(max(x, end.Low), end.High)
			}
			requireEqual(t, levels.Number(x, ch), int(dst[p*(c.channels+gap)+ch]), "pixel %d, channel %d: sum %d", p, ch, sum)
		}
		if p > 0 {
			require.Equal(t, slices.Repeat([]uint8{0xab}, gap), []uint8(dst[p*(c.channels+gap)-gap:][:gap]))
		}
	}
}
