package sets

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// wideCase is a call of a wide kernel with drawn operands.
type wideCase struct {
	bytes               bool
	int8                bool // weights of 8 bits, of bytes
	carries             bool // kernels that read parities of bits
	outputs, rows, taps int  // taps of a run
	pixels, classes     int
	largest             bool // all products as large as they can be
}

// testWide compares both kernels of the case with plain sums.
func testWide(t *testing.T, wide *kern.Wide, rng *rand.Rand, c wideCase) {
	weights := randomBits(rng, c.outputs*c.rows, c.taps)
	words := bits.Words(c.taps)
	if c.largest {
		for i := range weights {
			weights[i] = 0
		}
		bits.Pack(weights, onesOf(c.outputs*c.rows*c.taps), c.taps)
	}
	numbers := randomBytes(rng, c.outputs*c.rows*c.taps) // of 8 bits
	lowest, brightest := rng.IntN(2) == 0, uint8(255*rng.IntN(2))
	if c.largest && lowest {
		for i := range numbers {
			numbers[i] = 128
		}
	}
	weight := func(o, r, i int) int {
		if c.int8 {
			return int(int8(numbers[(o*c.rows+r)*c.taps+i]))
		}
		return bits.At(weights[(o*c.rows+r)*words:][:words], i)
	}
	var w *kern.WideFilter
	switch {
	case c.int8:
		all := make([]int8, len(numbers))
		for i, v := range numbers {
			all[i] = int8(v)
		}
		w = wide.PackInt8(all, c.outputs, c.rows, c.taps, 255)
	case c.bytes:
		w = wide.PackBytes(weights, c.outputs, c.rows, c.taps)
		brightest = 255
	case c.carries:
		if w = wide.PackCarries(weights, c.outputs, c.rows, c.taps, 1); w == nil {
			return
		}
		require.True(t, w.Patches)
	default:
		w = wide.PackBits(weights, c.outputs, c.rows, c.taps)
	}
	lack := func(o int) int {
		if w.Fix == nil {
			return 0
		}
		return int(w.Fix[o])
	}

	// Input: pixels in any order, that overlap where they are bytes.
	run := w.RunBytes
	if c.carries {
		run = (c.taps + 31) / 32 * 4
	}
	rowStep := run + rng.IntN(3)*8
	pixelStep := c.rows * rowStep
	if c.bytes {
		pixelStep = 1 + rng.IntN(2*w.RunBytes)
	}
	src := fenced(t, (c.pixels-1)*pixelStep+(c.rows-1)*rowStep+run)
	at := make([]uint32, c.pixels)
	for p, q := range rng.Perm(c.pixels) {
		at[p] = uint32(q * pixelStep)
	}
	for i := range src {
		src[i] = uint8(rng.IntN(256))
		if c.largest {
			src[i] = brightest
		}
	}
	x := func(p, r, i int) []uint8 { return src[int(at[p])+r*rowStep+i:] }
	if !c.bytes {
		for p := range c.pixels {
			for r := range c.rows {
				fillRun(rng, wide.Expander(w), x(p, r, 0), run, c)
			}
		}
	}
	from, places := src, at
	if c.carries {
		from, places = patchesOf(t, wide, w, src, at, c.rows, run, rowStep)
	}
	counts, counted := make([]int, c.pixels*c.outputs), make([]bool, c.pixels*c.outputs)
	count := func(p, o int) int {
		at := p*c.outputs + o
		if counted[at] {
			return counts[at]
		}
		sum := 0
		for r := range c.rows {
			run := weights[(o*c.rows+r)*words:][:words]
			for i := range c.taps {
				switch {
				case c.bytes:
					sum += int(x(p, r, i)[0]) * weight(o, r, i)
				case w.PairedBytes:
					sum += int(binary.LittleEndian.Uint16(x(p, r, i/8*2))>>(5+i%8)&1) ^ (bits.At(run, i)+1)/2
				case wide.Nibbles:
					sum += int(x(p, r, i/4)[0]>>(4+i%4)&1) ^ (bits.At(run, i)+1)/2
				default:
					sum += int(x(p, r, i/8)[0]>>(i%8)&1) ^ (bits.At(run, i)+1)/2
				}
			}
		}
		sum -= lack(o)
		counts[at], counted[at] = sum, true
		return sum
	}

	padded := (c.outputs + kern.BlockOutputs - 1) / kern.BlockOutputs * kern.BlockOutputs
	table := make([]int32, c.classes*padded)
	class := make([]uint32, c.pixels)
	for p := range class {
		class[p] = uint32(4 * padded * rng.IntN(c.classes))
	}
	for i := range table {
		// Close to what the sums are, so that ties are common, or an extreme.
		table[i] = int32(count(rng.IntN(c.pixels), rng.IntN(c.outputs)) + rng.IntN(3) - 1)
		if rng.IntN(10) == 0 {
			table[i] = []int32{-1, math.MaxInt32}[rng.IntN(2)]
		}
	}
	for block := range padded / kern.BlockOutputs {
		n := min(c.outputs-block*kern.BlockOutputs, kern.BlockOutputs)
		flip := rng.Uint64()
		job := &kern.ConvJob{Src: unsafe.Pointer(&from[0]), At: &places[0], Class: &class[0], Table: unsafe.Pointer(&table[block*kern.BlockOutputs]), Flip: flip}
		job.Pixels = uintptr(c.pixels)
		step := 8 * (1 + rng.IntN(3))
		dst, check := unaligned(t, (c.pixels-1)*step+8, 8)
		job.Dst, job.DstStep = unsafe.Pointer(&dst[0]), uintptr(step)
		if !c.int8 {
			w.Conv(job, block, rowStep)
			check()
		}
		for p := 0; p < c.pixels && !c.int8; p++ {
			got := binary.LittleEndian.Uint64(dst[p*step:]) ^ flip
			for o := range n {
				sum, threshold := count(p, block*kern.BlockOutputs+o), int(table[int(class[p])/4+block*kern.BlockOutputs+o])
				want := sum <= threshold
				if c.bytes {
					want = sum >= threshold
				}
				requireEqual(t, want, got>>o&1 == 1, "%+v: pixel %d output %d: sum %d, threshold %d", c, p, o, sum, threshold)
			}
			for i := p*step + 8; i < min((p+1)*step, len(dst)); i++ {
				require.EqualValues(t, 0xa5, dst[i], "%+v: between pixels", c)
			}
		}

		if w.Pools() && c.pixels >= 4 && !c.int8 {
			words := c.pixels / 4
			dst, check := unaligned(t, (words-1)*step+8, 8)
			job.Dst, job.Pixels = unsafe.Pointer(&dst[0]), uintptr(4*words)
			of := slices.Clone(class)
			alike := c.bytes || rng.IntN(2) == 0
			if alike {
				for p := range of {
					of[p] = class[0]
				}
			}
			job.Class = &of[0]
			w.ConvPooled(job, block, rowStep, alike)
			job.Class = &class[0]
			check()
			for i := range words {
				got := binary.LittleEndian.Uint64(dst[i*step:]) ^ flip
				for o := range n {
					want := false
					for p := 4 * i; p < 4*i+4; p++ {
						sum, threshold := count(p, block*kern.BlockOutputs+o), int(table[int(of[p])/4+block*kern.BlockOutputs+o])
						want = want || sum <= threshold && !c.bytes || sum >= threshold && c.bytes
					}
					requireEqual(t, want, got>>o&1 == 1, "%+v: word %d output %d", c, i, o)
				}
			}
		}

		if !c.bytes {
			testPlanes(t, wide, w, rng, c, job, block, rowStep, count)
		}

		sums, check := unaligned(t, c.pixels*4*kern.BlockOutputs, 4)
		job.Dst, job.DstStep, job.Pixels = unsafe.Pointer(&sums[0]), 4*kern.BlockOutputs, uintptr(c.pixels)
		w.ConvSums(job, block, rowStep)
		check()
		all := make([]int32, c.pixels*kern.BlockOutputs)
		for i := range all {
			all[i] = int32(binary.LittleEndian.Uint32(sums[4*i:]))
		}
		checkFloats(t, rng, w, job, block, rowStep, c.pixels, n, all)
		for p := range c.pixels {
			for o := range n {
				sum := int32(count(p, block*kern.BlockOutputs+o))
				want := table[int(class[p])/4+block*kern.BlockOutputs+o]
				if c.bytes {
					want += sum
				} else {
					want -= 2 * sum
				}
				requireEqual(t, want, int32(binary.LittleEndian.Uint32(sums[4*(p*kern.BlockOutputs+o):])), "%+v: pixel %d output %d", c, p, o)
			}
		}
	}
}

// patchesOf returns the parities of patches, and where they are, and compares them with
// plain ones.
func patchesOf(t *testing.T, wide *kern.Wide, w *kern.WideFilter, src []uint8, at []uint32, rows, run, rowStep int) ([]uint8, []uint32) {
	all := fenced(t, 4+len(src)) // the first patch begins behind a parity
	copy(all[4:], src)
	wide.Parities(unsafe.Slice((*uint32)(unsafe.Pointer(&all[0])), len(all)/4))
	dst, check := unaligned(t, len(at)*w.RunBytes+60, 4)
	wide.Patches(dst, unsafe.Pointer(&all[4]), at, rows, run, rowStep)
	check()
	patches, places := fenced(t, len(at)*w.RunBytes), make([]uint32, len(at))
	copy(patches, dst)
	for p := range at {
		places[p] = uint32(p * w.RunBytes)
		want := make([]uint8, rows*run%8, w.RunBytes)
		for r := range rows {
			want = append(want, src[int(at[p])+r*rowStep:][:run]...)
		}
		for i := 4; i < len(want); i++ {
			want[i] ^= want[i-4]
		}
		require.Equal(t, want, patches[p*w.RunBytes:][:w.RunBytes], "patch %d", p)
	}
	return patches, places
}

// checkFloats compares the values of a kernel that ends sums of n outputs with those of other
// kernels.
func checkFloats(t *testing.T, rng *rand.Rand, w *kern.WideFilter, job *kern.ConvJob, block, rowStep, pixels, n int, sums []int32) {
	if !w.EndsFloats() {
		return
	}
	row := func() []float32 {
		r := make([]float32, n)
		for i := range r {
			r[i] = float32(rng.NormFloat64())
		}
		return r
	}
	for _, end := range []kern.End{
		{},
		{Scale: row(), Shift: row()},
		{Activation: kern.ReLU()},
		{Scale: row(), Shift: row(), Activation: kern.Activation{Slope: row()}},
		{Scale: row(), Shift: row(), Activation: kern.Activation{Clip: true, Low: -0.5, High: 20}},
	} {
		want, added := make([]float32, pixels*n), make([]float32, pixels*n)
		generic.Scale(want, n, sums, kern.BlockOutputs, n, pixels, end)
		for i := range added {
			added[i] = float32(rng.NormFloat64())
		}
		for range 2 {
			dst, check := unaligned(t, pixels*4*n, 4)
			job.Dst, job.DstStep, job.Pixels = unsafe.Pointer(&dst[0]), uintptr(4*n), uintptr(pixels)
			if added == nil {
				w.ConvFloats(job, block, rowStep, &end, nil)
			} else {
				w.ConvFloats(job, block, rowStep, &end, unsafe.Pointer(&added[0]))
			}
			check()
			for i, v := range want {
				if added != nil {
					v += added[i]
				}
				requireSame(t, v, math.Float32frombits(binary.LittleEndian.Uint32(dst[4*i:])), end, i)
			}
			added = nil
		}
		if !w.EndsLevels() {
			continue
		}
		for _, l := range []kern.Levels{{Most: 15}, {Most: 255}, {Least: -7, Most: 8, Offset: 7}} {
			l.Scale, l.Shift = row(), row()
			if rng.IntN(2) == 0 {
				l.Rest = row()
			}
			numbers := make([]uint8, pixels*n)
			generic.LevelBytes(numbers, want, &l)
			dst, check := guarded[uint8](t, pixels*n)
			job.Dst, job.DstStep, job.Pixels = unsafe.Pointer(&dst[0]), uintptr(n), uintptr(pixels)
			w.ConvLevels(job, block, rowStep, &end, &l)
			check()
			require.Equal(t, numbers, append([]uint8{}, dst...), "%+v, %+v", end, l)
		}
	}
}

// testPlanes takes pixels for the planes of fewer.
func testPlanes(t *testing.T, wide *kern.Wide, w *kern.WideFilter, rng *rand.Rand, c wideCase, job *kern.ConvJob, block, rowStep int, count func(p, o int) int) {
	n := min(c.outputs-block*kern.BlockOutputs, kern.BlockOutputs)
	for in := 1; in <= wide.MaxPlanes; in++ {
		pixels := c.pixels / in
		if pixels == 0 {
			continue
		}
		sum := func(p, o int) int {
			sum := 0
			for j := range in {
				sum += count(p*in+j, block*kern.BlockOutputs+o) << j
			}
			return sum
		}
		for out := 0; out <= wide.MaxPlanes; out++ {
			if in == 1 && out < 2 {
				continue
			}
			thresholds := max(1<<out-1, 1)
			table, class := make([]int32, c.classes*thresholds*kern.BlockOutputs), make([]uint32, pixels*in)
			for i := range table {
				table[i] = int32(sum(rng.IntN(pixels), rng.IntN(n)) + rng.IntN(3) - 1)
				if rng.IntN(10) == 0 {
					table[i] = []int32{-1, math.MaxInt32}[rng.IntN(2)]
				}
			}
			for p := range pixels {
				of := uint32(4 * thresholds * kern.BlockOutputs * rng.IntN(c.classes))
				for j := range in {
					class[p*in+j] = of
				}
			}
			size := 8
			if out == 0 {
				size = 4 * kern.BlockOutputs
			}
			planes := max(out, 1)
			dst, check := unaligned(t, pixels*planes*size, 8)
			of := *job
			of.Dst, of.DstStep, of.DstPlane = unsafe.Pointer(&dst[0]), uintptr(size), uintptr(pixels*size)
			of.Class, of.Table, of.Next, of.Pixels = &class[0], unsafe.Pointer(&table[0]), 4*kern.BlockOutputs, uintptr(pixels*in)
			w.ConvPlanes(&of, in, out, block, rowStep)
			check()
			for p := range pixels {
				for o := range n {
					of, sum := table[int(class[p*in])/4+o:], int32(sum(p, o))
					if out == 0 {
						requireEqual(t, of[0]-2*sum, int32(binary.LittleEndian.Uint32(dst[p*size+4*o:])), "%+v: %d planes, pixel %d output %d", c, in, p, o)
						continue
					}
					// The thresholds are in no order here, which changes what numbers are.
					want := make([]bool, out)
					for k := 1; k <= thresholds; k++ {
						for j := range out {
							if k>>j<<j == k {
								want[j] = want[j] != (of[(k-1)*kern.BlockOutputs] >= sum)
							}
						}
					}
					for j := range out {
						got := binary.LittleEndian.Uint64(dst[(j*pixels+p)*size:]) ^ job.Flip
						requireEqual(t, want[j], got>>o&1 == 1, "%+v: %d to %d planes, pixel %d output %d", c, in, out, p, o)
					}
				}
			}
		}
	}
}

// randomPatches draws patches of bits that have no end.
func randomPatches(rng *rand.Rand, wide *kern.Wide, w *kern.WideFilter, src []uint8) {
	for i := range src {
		src[i] = uint8(rng.IntN(256))
	}
	if expand := wide.Expander(w); expand != nil {
		pieces := make([]uint32, (len(src)+7)/8)
		for i := range pieces {
			pieces[i] = rng.Uint32()
		}
		all := make([]uint8, 8*len(pieces))
		expand(all, pieces)
		copy(src, all)
	}
}

// fillRun draws a run of bits, 0 beyond its taps.
func fillRun(rng *rand.Rand, expand func(dst []uint8, src []uint32), dst []uint8, n int, c wideCase) {
	pieces := make([]uint32, (c.taps+31)/32)
	for i := range pieces {
		if !c.largest {
			pieces[i] = rng.Uint32()
		}
	}
	if tail := c.taps % 32; tail != 0 {
		pieces[len(pieces)-1] &= 1<<tail - 1
	}
	if expand != nil {
		all := make([]uint8, 8*len(pieces))
		expand(all, pieces)
		copy(dst[:n], all)
		return
	}
	all := make([]uint8, 4*len(pieces))
	for i, v := range pieces {
		binary.LittleEndian.PutUint32(all[4*i:], v)
	}
	copy(dst[:n], all)
}

func TestWide(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Wide == nil {
			require.Contains(t, []string{"generic", "neonv7"}, s.ISA)
			return
		}
		eight := s.Wide.PackInt8 != nil
		for _, outputs := range []int{1, 15, 16, 17, 32, 33, 48, 64, 65, 100, 128, 130} {
			for _, pixels := range []int{1, 2, 3, 4, 5, 6, 7, 13, 20} {
				for _, bytes := range []bool{false, true} {
					testWide(t, s.Wide, rng, wideCase{
						bytes: bytes, outputs: outputs, pixels: pixels,
						rows: 1 + rng.IntN(5), taps: 1 + rng.IntN(200), classes: 1 + rng.IntN(4),
					})
					testWide(t, s.Wide, rng, wideCase{
						bytes: bytes, outputs: outputs, pixels: pixels,
						rows: 1 + rng.IntN(3), taps: 1 + rng.IntN(84), classes: 1 + rng.IntN(4),
					})
				}
				if eight {
					testWide(t, s.Wide, rng, wideCase{
						bytes: true, int8: true, outputs: outputs, pixels: pixels,
						rows: 1 + rng.IntN(4), taps: 1 + rng.IntN(70), classes: 1 + rng.IntN(4),
					})
				}
			}
		}
		if s.Wide.PackCarries != nil {
			for _, outputs := range []int{1, 64, 70, 128} {
				for _, pixels := range []int{1, 2, 3, 4, 5, 6, 7, 13, 20} {
					for _, taps := range []int{1 + rng.IntN(200), 32 * (1 + rng.IntN(20)), 500 + rng.IntN(600)} {
						testWide(t, s.Wide, rng, wideCase{
							carries: true, outputs: outputs, pixels: pixels,
							rows: 1 + rng.IntN(5), taps: taps, classes: 1 + rng.IntN(4), largest: rng.IntN(8) == 0,
						})
					}
				}
			}
		}
		// Narrow sums are emptied in time.
		for _, taps := range []int{1, 4, 63, 64, 65, 127, 128, 129, 252, 253, 256, 504, 508, 511, 1500} {
			for _, rows := range []int{1, 2, 7} {
				for _, bytes := range []bool{false, true} {
					testWide(t, s.Wide, rng, wideCase{bytes: bytes, outputs: 20, pixels: 5, rows: rows, taps: taps, classes: 1, largest: true})
				}
				if eight {
					testWide(t, s.Wide, rng, wideCase{bytes: true, int8: true, outputs: 20, pixels: 5, rows: rows, taps: taps, classes: 1, largest: true})
				}
			}
		}
		// Runs of whole vectors, and others that end in a part of one.
		for _, outputs := range []int{16, 30, 64, 80} {
			for _, pixels := range []int{3, 4, 9} {
				for _, taps := range []int{128, 256, 384, 128 + 64, 256 + 32, 128 + 64 + 32} {
					for _, rows := range []int{1, 2, 3} {
						testWide(t, s.Wide, rng, wideCase{outputs: outputs, pixels: pixels, rows: rows, taps: taps, classes: 1 + rng.IntN(3)})
					}
				}
			}
		}
		testWide(t, s.Wide, rng, wideCase{outputs: 3, pixels: 1, rows: 1, taps: min(s.Wide.MaxTaps, 40000), classes: 1, largest: true})
	})
}

// FuzzWide compares the wide kernels of all instruction sets with plain sums.
func FuzzWide(f *testing.F) {
	f.Add(uint64(1), uint8(70), uint8(7), uint8(3), uint16(96), true)
	f.Add(uint64(2), uint8(33), uint8(5), uint8(1), uint16(253), false)
	f.Fuzz(func(t *testing.T, seed uint64, outputs, pixels, rows uint8, taps uint16, bytes bool) {
		for _, s := range runnable() {
			if s.Wide != nil {
				testWide(t, s.Wide, rand.New(rand.NewPCG(seed, 1)), wideCase{
					bytes: bytes, int8: bytes && seed%2 == 0 && s.Wide.PackInt8 != nil, outputs: 1 + int(outputs)%140, pixels: 1 + int(pixels)%20,
					rows: 1 + int(rows)%7, taps: 1 + int(taps)%700, classes: 1 + int(seed%3), largest: seed%5 == 0,
				})
			}
			if s.Wide != nil && s.Wide.PackCarries != nil {
				testWide(t, s.Wide, rand.New(rand.NewPCG(seed, 3)), wideCase{
					carries: true, outputs: 1 + int(outputs)%140, pixels: 1 + int(pixels)%20,
					rows: 1 + int(rows)%7, taps: 1 + int(taps)%700, classes: 1 + int(seed%3), largest: seed%5 == 0,
				})
			}
			if s.Wide != nil && s.Wide.PackInt8 != nil {
				testInt8(t, s.Wide, rand.New(rand.NewPCG(seed, 2)), wideCase{
					outputs: 1 + int(outputs)%140, pixels: 1 + int(pixels)%20,
					rows: 1 + int(rows)%7, taps: 1 + int(taps)%700, classes: 1, largest: seed%5 == 0,
				}, 1+int(seed>>8%128), uint8(1+seed>>16%255))
			}
		}
	})
}

// BenchmarkWide times kernels on 28 pixels and one block of outputs. The names
// of the cases are what, outputs, and rows × taps of a patch.
func BenchmarkWide(b *testing.B) {
	const pixels = 28
	for _, s := range runnable() {
		if s.Wide == nil {
			continue
		}
		for _, c := range []wideCase{
			{outputs: 64, rows: 3, taps: 192},
			{outputs: 64, rows: 3, taps: 1536},
			{outputs: 32, rows: 5, taps: 160},
			{outputs: 16, rows: 5, taps: 160},
			{outputs: 64, rows: 3, taps: 9, bytes: true},
			{outputs: 32, rows: 5, taps: 15, bytes: true},
			{outputs: 64, rows: 3, taps: 192, bytes: true},
		} {
			what, pack := "bits", s.Wide.PackBits
			if c.bytes {
				what, pack = "bytes", s.Wide.PackBytes
			}
			b.Run(fmt.Sprintf("%s/%s/%d/%d×%d", s.ISA, what, c.outputs, c.rows, c.taps), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				w := pack(randomBits(rng, c.outputs*c.rows, c.taps), c.outputs, c.rows, c.taps)
				src, dst := make([]uint8, (pixels+c.rows)*w.RunBytes), make([]uint64, pixels)
				if c.bytes {
					for i := range src {
						src[i] = uint8(rng.IntN(256))
					}
				} else {
					randomPatches(rng, s.Wide, w, src)
				}
				at, class, table := make([]uint32, pixels), make([]uint32, pixels), make([]int32, kern.BlockOutputs)
				for p := range at {
					at[p] = uint32(p * w.RunBytes)
				}
				for b.Loop() {
					job := &kern.ConvJob{
						Dst: unsafe.Pointer(&dst[0]), DstStep: 8, Src: unsafe.Pointer(&src[0]),
						At: &at[0], Class: &class[0], Table: unsafe.Pointer(&table[0]), Pixels: pixels,
					}
					w.Conv(job, 0, w.RunBytes)
				}
				macs := float64(pixels * c.outputs * c.rows * c.taps)
				b.ReportMetric(macs*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				b.ReportMetric(macs, "MAC/op")
			})
		}
	}
}
