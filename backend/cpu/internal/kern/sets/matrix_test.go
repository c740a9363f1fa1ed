package sets

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// forEachMatrix is forEach for the Sets that have a kern.Matrix of their own.
func forEachMatrix(t *testing.T, f func(t *testing.T, s *kern.Set, rng *rand.Rand)) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Matrix != nil {
			f(t, s, rng)
		}
	})
}

// TestLines has rows of each kind, of which those of the border may be all there are.
func TestLines(t *testing.T) {
	count := 400
	if testing.Short() {
		count = 50
	}
	forEachMatrix(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for n := range count {
			at := kern.LineRows{Rows: 1 + rng.IntN(4), Before: rng.IntN(3), Inside: rng.IntN(20), After: rng.IntN(3), Planes: 1, Mask: ^uint64(0), Border: uint8(rng.IntN(256))}
			ofBits, width := n%2 == 0, 1+rng.IntN(kern.LineBytes)
			if ofBits {
				at.Planes, width, at.Border = 1+rng.IntN(8), 8, 0
			} else {
				at.Mask >>= kern.LineBytes - width
			}
			if at.Before+at.Inside+at.After == 0 {
				continue
			}
			at.Step = 8 * (1 + rng.IntN(3))
			at.Plane = 8 * (1 + rng.IntN(60))
			at.Row = 8 * rng.IntN(60)
			src := fenced(t, (at.Rows-1)*at.Row+max(at.Inside-1, 0)*at.Step+(at.Planes-1)*at.Plane+width)
			for i := range src {
				src[i] = uint8(rng.IntN(256))
			}
			line := at.Before + at.Inside + at.After
			dst := fenced(t, at.Rows*line*kern.LineBytes)
			if ofBits {
				s.Matrix.LinesOfBits(dst, wordsOf(src), &at)
			} else {
				s.Matrix.LinesOfBytes(dst, src, &at)
			}
			for k, got := range dst {
				r, p, i := k/kern.LineBytes/line, k/kern.LineBytes%line-at.Before, k%kern.LineBytes
				want, from := uint8(0), r*at.Row+p*at.Step
				switch {
				case p < 0 || p >= at.Inside:
					want = at.Border
				case ofBits:
					for j := range at.Planes {
						want |= src[from+j*at.Plane+i/8] >> (i % 8) & 1 << j
					}
				case i < width:
					want = src[from+i]
				}
				if at.Mask>>i&1 == 0 {
					want = 0
				}
				requireEqual(t, want, got, "%+v: row %d, pixel %d, byte %d", at, r, p, i)
			}
		}
	})
}

// TestLinesOfRuns has patches whose runs fill lines, as far as they fit.
func TestLinesOfRuns(t *testing.T) {
	forEachMatrix(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for range 300 {
			n := 1 + rng.IntN(kern.LineBytes)
			at := &kern.RunRows{Rows: 1 + rng.IntN(4), Pixels: 1 + rng.IntN(9), Step: 1 + rng.IntN(8), Runs: make([]kern.LineRun, 1+rng.IntN(kern.LineBytes/n))}
			row := (at.Pixels-1)*at.Step + n
			at.Row = row * (1 + rng.IntN(2))
			for r := range at.Runs {
				at.Runs[r] = kern.LineRun{Offset: r*row - r*n, Mask: ^uint64(0) >> (kern.LineBytes - n) << (r * n)}
			}
			src := fenced(t, (at.Rows-1)*at.Row+len(at.Runs)*row)
			for i := range src {
				src[i] = uint8(1 + rng.IntN(255))
			}
			dst := fenced(t, at.Rows*at.Pixels*kern.LineBytes)
			s.Matrix.LinesOfRuns(dst, src, at)
			for k, got := range dst {
				r, p, i := k/kern.LineBytes/at.Pixels, k/kern.LineBytes%at.Pixels, k%kern.LineBytes
				want := uint8(0)
				if run := i / n; run < len(at.Runs) {
					want = src[r*at.Row+p*at.Step+run*row+i%n]
				}
				requireEqual(t, want, got, "%+v: row %d, pixel %d, byte %d", at, r, p, i)
			}
		}
	})
}

func wordsOf(b []uint8) []uint64 { return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8) }

// matrixCase is a drawn call of the kernels of a kern.Matrix.
type matrixCase struct {
	signs          bool
	outputs, steps int
	panel, panels  int
	rows, last     int
	line           int  // bytes from a line to the next
	largest        bool // all products as large as they can be

	words  []uint64 // weights of ±1, a line each
	bytes  []int8   // or of 8 bits
	src    []uint8
	taps   []uint32
	blocks []kern.MatrixBlock
	lines  []uint32 // of each pixel
	pixels []kern.MatrixPixel
	step   int     // of a class of the table, in values
	table  []int32 // of two classes
}

func drawMatrixCase(t *testing.T, rng *rand.Rand) *matrixCase {
	c := &matrixCase{signs: rng.IntN(2) == 0, outputs: 1 + rng.IntN(200), steps: 1 + rng.IntN(12), largest: rng.IntN(8) == 0}
	all := (c.outputs + 63) / 64 * 4
	c.panel = rng.IntN(all)
	c.panels = 1 + rng.IntN(all-c.panel)
	c.rows = 1 + rng.IntN(kern.TileRows)
	c.last = 1 + rng.IntN(c.rows)
	if c.line = kern.LineBytes; rng.IntN(2) == 0 {
		c.line = 1 + rng.IntN(2*kern.LineBytes)
	}
	lines := kern.TileRows + rng.IntN(200)
	c.src = fenced(t, (lines-1)*c.line+kern.LineBytes)
	for i := range c.src {
		switch {
		case c.largest:
			c.src[i] = 255
		case c.signs:
			c.src[i] = uint8(rng.IntN(2))
		default:
			c.src[i] = uint8(rng.IntN(256))
		}
	}
	reach := rng.IntN(lines - kern.TileRows + 1)
	for range c.steps {
		c.taps = append(c.taps, uint32(rng.IntN(reach*c.line+1)))
	}
	c.taps[rng.IntN(c.steps)] = uint32(reach * c.line)
	for b := range 1 + rng.IntN(5) {
		block := kern.MatrixBlock{First: uint32(len(c.lines)), Tiles: uint32(1 + rng.IntN(kern.BlockTiles))}
		for i := range block.Tiles {
			rows := c.rows
			if i == block.Tiles-1 {
				rows = c.last
			}
			start := rng.IntN(lines - reach - rows + 1)
			if b == 0 {
				start = lines - reach - rows // the last lines that there are
			}
			block.Lines[i] = uint32(start * c.line)
			for r := range rows {
				if rng.IntN(4) > 0 {
					c.lines = append(c.lines, uint32(start+r))
					c.pixels = append(c.pixels, kern.MatrixPixel{Sums: (i*kern.TileRows + uint32(r)) * kern.LineBytes})
				}
			}
		}
		block.Pixels = uint32(len(c.lines)) - block.First
		c.blocks = append(c.blocks, block)
	}
	if len(c.lines) == 0 {
		return drawMatrixCase(t, rng)
	}
	c.drawWeights(rng)
	c.step = all * kern.PanelOutputs
	c.table = make([]int32, 2*c.step)
	for i := range c.table {
		c.table[i] = rng.Int32N(200) - 100
	}
	for i := range c.pixels {
		c.pixels[i].Table = uint32(rng.IntN(2) * 4 * c.step)
	}
	return c
}

func (c *matrixCase) drawWeights(rng *rand.Rand) {
	c.words, c.bytes = randomWords(rng, c.outputs*c.steps), make([]int8, c.outputs*c.steps*kern.LineBytes)
	var few []int8 // values; nil for any
	if rng.IntN(2) == 0 {
		few = make([]int8, 1+rng.IntN(16))
		for i := range few {
			few[i] = int8(rng.IntN(256))
		}
	}
	for i := range c.bytes {
		c.bytes[i] = int8(rng.IntN(256))
		if few != nil {
			c.bytes[i] = few[rng.IntN(len(few))]
		}
		if c.largest {
			c.bytes[i] = -128
		}
	}
}

func (c *matrixCase) filter(m *kern.Matrix) *kern.MatrixFilter {
	if c.signs {
		return kern.PackMatrixSigns(m, c.words, c.outputs, c.steps)
	}
	if f := kern.PackMatrixNibbles(m, c.bytes, c.outputs, c.steps); f != nil {
		return f
	}
	return kern.PackMatrixBytes(m, c.bytes, c.outputs, c.steps)
}

// sum is that of the products of a pixel and an output.
func (c *matrixCase) sum(pixel, o int) (sum int32) {
	if o >= c.outputs {
		return 0 // nobody says what
	}
	for s, tap := range c.taps {
		line := c.src[int(c.lines[pixel])*c.line+int(tap):][:kern.LineBytes]
		for i, v := range line {
			if c.signs {
				sum += int32(v) * int32(bits.At(c.words[o*c.steps+s:], i))
			} else {
				sum += int32(v) * int32(c.bytes[(o*c.steps+s)*kern.LineBytes+i])
			}
		}
	}
	return sum
}

func (c *matrixCase) job(dst unsafe.Pointer, step int) (*kern.MatrixJob, *kern.MatrixPart) {
	return &kern.MatrixJob{
			Src: unsafe.Pointer(&c.src[0]), Pixels: &c.pixels[0],
			Table: unsafe.Pointer(&c.table[c.panel*kern.PanelOutputs]), Dst: dst, DstStep: uintptr(step),
		}, &kern.MatrixPart{
			Taps: c.taps, Blocks: c.blocks, Panel: c.panel, Panels: c.panels, Rows: c.rows, Last: c.last, Line: c.line,
			Memory: make([]uint8, kern.MatrixMemory),
		}
}

// each calls do for all sums that are computed: of a pixel, and of output first + k.
func (c *matrixCase) each(do func(pixel, k, o int, sum, entry int32)) {
	for p, pixel := range c.pixels {
		for k := range c.panels * kern.PanelOutputs {
			if o := c.panel*kern.PanelOutputs + k; o < c.outputs {
				do(p, k, o, c.sum(p, o), c.table[int(pixel.Table)/4+o])
			}
		}
	}
}

func TestMatrix(t *testing.T) {
	forEachMatrix(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for n := range 150 {
			c := drawMatrixCase(t, rng)
			what := fmt.Sprintf("case %d: %d outputs, panels %d to %d, %d steps, %d blocks, %d rows, last %d", n,
				c.outputs, c.panel, c.panel+c.panels, c.steps, len(c.blocks), c.rows, c.last)
			f, width, pixels := c.filter(s.Matrix), c.panels*kern.PanelOutputs, len(c.lines)

			// Packed, in words of which they are a part.
			step := 2*c.panels + 2*rng.IntN(3)
			packed, flip := fenced(t, (pixels-1)*step+2*c.panels), fenced(t, 2*c.panels)
			for i := range flip {
				flip[i] = uint8(rng.IntN(256))
			}
			untouched := append([]uint8(nil), packed...)
			j, part := c.job(unsafe.Pointer(&packed[0]), step)
			j.Flip = unsafe.Pointer(&flip[0])
			f.Bits(j, part)
			c.each(func(p, k, o int, sum, entry int32) {
				want := (sum >= entry) != (flip[k/8]>>(k%8)&1 == 1)
				requireEqual(t, want, packed[p*step+k/8]>>(k%8)&1 == 1, "%s: pixel %d, output %d: sum %d, threshold %d", what, p, o, sum, entry)
			})
			for p := range pixels - 1 {
				require.Equal(t, untouched[p*step+2*c.panels:(p+1)*step], packed[p*step+2*c.panels:(p+1)*step], what)
			}

			doubled := uint32(rng.IntN(2))
			sums := fenced(t, 4*pixels*width)
			j, part = c.job(unsafe.Pointer(&sums[0]), 4*width)
			j.Shift = doubled
			all := part.Blocks
			for first := range 2 { // the first block, and those behind it
				part.Blocks = all[:1]
				if first > 0 {
					part.Blocks = all[1:]
				}
				if len(part.Blocks) > 0 && part.Blocks[0].First < uint32(pixels) {
					j.Before = uintptr(4 * width * int(part.Blocks[0].First))
					j.Dst = unsafe.Pointer(&sums[j.Before])
					f.Sums32(j, part)
				}
			}
			got := unsafe.Slice((*int32)(unsafe.Pointer(&sums[0])), pixels*width)
			c.each(func(p, k, o int, sum, entry int32) {
				requireEqual(t, sum<<doubled+entry, got[p*width+k], "%s: pixel %d, output %d", what, p, o)
			})
			c.testFloats(t, s, f, rng, doubled, what)
		}
	})
}

// testFloats compares float32 outputs with those that Scale makes of sums.
func (c *matrixCase) testFloats(t *testing.T, s *kern.Set, f *kern.MatrixFilter, rng *rand.Rand, doubled uint32, what string) {
	width, pixels := c.panels*kern.PanelOutputs, len(c.lines)
	var end kern.End
	if rng.IntN(2) == 0 {
		end.Scale, end.Shift = awkwards(rng, width), awkwards(rng, width)
	}
	if rng.IntN(2) == 0 {
		end.Slope = awkwards(rng, width)
	}
	if rng.IntN(2) == 0 {
		end.Clip, end.Low, end.High = true, -3, 1000
	}
	sums := make([]int32, pixels*width)
	c.each(func(p, k, _ int, sum, entry int32) { sums[p*width+k] = sum<<doubled + entry })
	want := make([]float32, len(sums))
	s.Scale(want, width, sums, width, width, pixels, end)
	var added unsafe.Pointer
	var then kern.End
	if rng.IntN(3) > 0 {
		values := awkwards(rng, len(want))
		added = unsafe.Pointer(&values[0])
		if rng.IntN(2) == 0 {
			then.Scale, then.Shift = awkwards(rng, width), awkwards(rng, width)
			s.ScaleFloat(want, width, want, width, width, pixels, then)
		}
		if rng.IntN(2) == 0 {
			then.Clip, then.Low, then.High = true, -2, 500
		}
		s.Add(want, want, values, then.Activation)
	}
	memory := fenced(t, 4*len(want))
	got := unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), len(want))
	j, part := c.job(unsafe.Pointer(&memory[0]), 4*width)
	j.Shift = doubled
	f.Floats(j, part, &end, &then, added)
	c.each(func(p, k, o int, _, _ int32) { requireSame(t, want[p*width+k], got[p*width+k], what, p, o) })

	l := &kern.Levels{Scale: awkwards(rng, width), Shift: awkwards(rng, width), Least: -float32(rng.IntN(100)), Most: float32(rng.IntN(100))}
	l.Offset = int32(-l.Least) + rng.Int32N(50)
	if rng.IntN(2) == 0 {
		l.Rest = awkwards(rng, width)
	}
	s.Scale(want, width, sums, width, width, pixels, end)
	var fake *kern.FakeQuantize
	if rng.IntN(2) == 0 {
		by := &kern.Levels{Scale: awkwards(rng, width), Shift: awkwards(rng, width), Least: -float32(rng.IntN(100)), Most: float32(rng.IntN(100))}
		by.Offset = int32(-by.Least) + rng.Int32N(50)
		if rng.IntN(2) == 0 {
			by.Rest = awkwards(rng, width)
		}
		fake = &kern.FakeQuantize{Levels: by, Low: -float32(rng.IntN(200)), Scale: awkwards(rng, width), Shift: awkwards(rng, width)}
		for i, v := range want {
			want[i] = fake.Low + float32(by.Number(v, i%width))
		}
		s.ScaleFloat(want, width, want, width, width, pixels, kern.End{Scale: fake.Scale, Shift: fake.Shift})
	}
	added, then = nil, kern.End{}
	if rng.IntN(3) > 0 {
		bytes, values := fenced(t, len(want)), make([]float32, len(want))
		for i := range bytes {
			bytes[i] = uint8(rng.IntN(256))
			values[i] = float32(bytes[i])
		}
		added = unsafe.Pointer(&bytes[0])
		if rng.IntN(2) == 0 {
			then.Scale, then.Shift = awkwards(rng, width), awkwards(rng, width)
			s.ScaleFloat(values, width, values, width, width, pixels, then)
		}
		if rng.IntN(2) == 0 {
			then.Clip, then.Low, then.High = true, -2, 500
		}
		s.Add(want, want, values, then.Activation)
	}
	numbers := fenced(t, len(want))
	j, part = c.job(unsafe.Pointer(&numbers[0]), width)
	j.Shift = doubled
	f.Levels(j, part, &end, fake, l, &then, added)
	c.each(func(p, k, o int, _, _ int32) {
		requireEqual(t, uint8(l.Number(want[p*width+k], k)), numbers[p*width+k], "%s: pixel %d, output %d: level of %g", what, p, o, want[p*width+k])
	})
}

// TestMatrixOnThreads has many goroutines on few threads, whose number changes, and threads that end:
// what tiles hold belongs to a thread, and kernels leave nothing there. TestSignals interrupts them.
func TestMatrixOnThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	forEachMatrix(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		const goroutines = 64
		cases := make([]*matrixCase, goroutines)
		for i := range cases {
			cases[i] = drawMatrixCase(t, rng)
		}
		sums := func(c *matrixCase) []int32 {
			width := c.panels * kern.PanelOutputs
			out := make([]int32, len(c.lines)*width)
			j, part := c.job(unsafe.Pointer(&out[0]), 4*width)
			c.filter(s.Matrix).Sums32(j, part)
			return out
		}
		want := make([][]int32, goroutines)
		for i, c := range cases {
			want[i] = sums(c)
		}
		var all sync.WaitGroup
		wrong := make([]bool, goroutines)
		for i, c := range cases {
			all.Go(func() {
				if i%4 == 0 { // its thread ends with it
					runtime.LockOSThread()
				}
				for k := range 20 {
					if k == i%20 {
						runtime.GOMAXPROCS(1 + i%3)
					}
					for o, v := range sums(c) {
						wrong[i] = wrong[i] || v != want[i][o]
					}
				}
			})
		}
		all.Wait()
		require.Equal(t, make([]bool, goroutines), wrong)
	})
}
