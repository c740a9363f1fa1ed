package sets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/num"
)

// floatPatches are random patches of so many pixels and runs, with the number of
// taps and of values that they reach.
func floatPatches(rng *rand.Rand, pixels, runs, run int) (at *kern.FloatPatches, taps, values int) {
	at = &kern.FloatPatches{Pixels: pixels, Step: 1 + rng.IntN(run+2), RunLen: run}
	for range runs {
		r := kern.FloatRun{Src: rng.IntN(20), Tap: taps + rng.IntN(3)}
		at.Runs = append(at.Runs, r)
		taps = r.Tap + run
		values = max(values, r.Src+run)
	}
	return at, taps + rng.IntN(2), values + (pixels-1)*at.Step
}

// slidingPatches are those of rows of a window, of so many taps each, which moves by stride
// taps from a pixel to the next.
func slidingPatches(rng *rand.Rand, pixels, rows, slide, stride int) (at *kern.FloatPatches, taps, values int) {
	column := 1 + rng.IntN(9)
	at = &kern.FloatPatches{Pixels: pixels, Step: column * stride, RunLen: 1, Slide: slide, Stride: stride}
	for range rows {
		src := rng.IntN(30)
		taps += rng.IntN(3)
		for k := range slide {
			at.Runs = append(at.Runs, kern.FloatRun{Src: src + k*column, Tap: taps})
			taps++
		}
		values = max(values, src+(slide-1)*column+1)
	}
	return at, taps, values + (pixels-1)*at.Step
}

func floatWeights(rng *rand.Rand, s *kern.Set, outputs, taps int) (w *kern.FloatWeights, rows [][]float32) {
	w = kern.NewFloatWeights(s, outputs, taps, awkwards(rng, outputs))
	for o := range outputs {
		rows = append(rows, awkwards(rng, taps))
		w.Put(o, rows[o])
	}
	return w, rows
}

func anyEnd(rng *rand.Rand, n int) kern.End {
	all := ends(rng, n)
	return all[rng.IntN(len(all))]
}

func TestFMAPixels(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, outputs := range []int{1, 7, 8, 9, 16, 17, 31, 47, 64, 70, 130} {
			for _, runs := range []int{0, 1, 3} {
				for _, pixels := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 25} {
					at, taps, values := floatPatches(rng, pixels, runs, 1+rng.IntN(9))
					w, rows := floatWeights(rng, s, outputs, taps)
					src := awkwards(rng, values)
					for first := 0; first < outputs; first += 64 {
						n := outputs - first
						if rng.IntN(2) == 0 {
							n = min(n, 64)
						}
						stride, end := n+rng.IntN(4), anyEnd(rng, n)
						dst, check := guarded[float32](t, (pixels-1)*stride+n)
						want := append([]float32(nil), dst...)
						for p := range pixels {
							for o := range n {
								acc := w.Bias[first+o]
								for _, r := range at.Runs {
									for i := range at.RunLen {
										acc = f32.FMA(src[p*at.Step+r.Src+i], rows[first+o][r.Tap+i], acc)
									}
								}
								want[p*stride+o] = ended(acc, o, end)
							}
						}
						s.FMAPixels(dst, stride, src, at, w, first, n, end)
						check()
						for i := range want {
							requireSame(t, want[i], dst[i], at, outputs, first, n)
						}
					}
				}
			}
		}
	})
}

func TestFMAEach(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, channels := range []int{1, 3, 4, 15, 16, 33, 64, 65, 100, 200} {
			for _, slide := range [][2]int{{}, {3, 1}, {5, 1}, {1, 1}, {2, 1}, {4, 1}, {3, 2}, {5, 2}, {2, 2}} { // taps, and by how many a window moves
				for _, pixels := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 25} {
					at, taps, values := floatPatches(rng, pixels, []int{0, 1, 9}[rng.IntN(3)], 1)
					if slide[0] > 0 {
						at, taps, values = slidingPatches(rng, pixels, rng.IntN(4), slide[0], slide[1])
					}
					w, rows := floatWeights(rng, s, channels, taps)
					src := awkwards(rng, values+channels-1)
					stride, end := channels+rng.IntN(4), anyEnd(rng, channels)
					dst, check := guarded[float32](t, (pixels-1)*stride+channels)
					want := append([]float32(nil), dst...)
					for p := range pixels {
						for c := range channels {
							acc := w.Bias[c]
							for _, r := range at.Runs {
								acc = f32.FMA(src[p*at.Step+r.Src+c], rows[c][r.Tap], acc)
							}
							want[p*stride+c] = ended(acc, c, end)
						}
					}
					s.FMAEach(dst, stride, src, at, w, end)
					check()
					for i := range want {
						requireSame(t, want[i], dst[i], at, channels)
					}
				}
			}
		}
	})
}

// TestFMAGroups has groups of all sizes for which there are kernels, with outputs as many as inputs or more.
func TestFMAGroups(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		count := 0
		for inputs := 1; inputs <= 16 && s.FMAGroups != nil; inputs++ {
			for outs := 1; outs <= 32; outs++ {
				for _, outputs := range []int{32, 64, 96, 128, 192} {
					pixels := 8 + rng.IntN(20)
					at, _, _ := slidingPatches(rng, pixels, 1+rng.IntN(3), 3, 1)
					if !s.Groups(at, inputs, outs, outputs) {
						continue
					}
					count++
					channels := outputs / outs * inputs
					taps, values := 0, 0
					at.Step, at.RunLen = channels+rng.IntN(4), inputs
					for r := range at.Runs {
						run := &at.Runs[r]
						run.Src, run.Tap = r/3*(pixels+2)*at.Step+r%3*at.Step, inputs*(r+3)
						taps, values = run.Tap+inputs, run.Src+(pixels-1)*at.Step+channels
					}
					w, rows := floatWeights(rng, s, outputs, taps)
					src, _ := guarded[float32](t, values)
					copy(src, awkwards(rng, values))
					stride, end := outputs+rng.IntN(4), anyEnd(rng, outputs)
					dst, check := guarded[float32](t, (pixels-1)*stride+outputs)
					want := append([]float32(nil), dst...)
					for p := range pixels {
						for o := range outputs {
							acc := w.Bias[o]
							for _, r := range at.Runs {
								for i := range inputs {
									acc = f32.FMA(src[p*at.Step+r.Src+o/outs*inputs+i], rows[o][r.Tap+i], acc)
								}
							}
							want[p*stride+o] = ended(acc, o, end)
						}
					}
					s.FMAGroups(dst, stride, src, at, w, inputs, outs, end)
					check()
					for i := range want {
						requireSame(t, want[i], dst[i], at, inputs, outs, outputs)
					}
				}
			}
		}
		require.True(t, s.FMAGroups == nil || count == 4*(4+3+2), count)
	})
}

// TestFMAColumns has images of all sizes that matter to tiles, whose windows reach over
// each side or not.
func TestFMAColumns(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, taps := range []int{3, 5} {
			for i := range 300 {
				side := func() int { return rng.IntN(taps/2 + 1) }
				at := &kern.FloatColumns{Taps: taps, Above: side(), Below: side(), Left: side(), Right: side()}
				at.Pixels = max(at.Left+at.Right-taps+2, 1) + rng.IntN(17)
				at.Rows = max(taps-at.Above-at.Below, 1) + rng.IntN(6)
				channels := s.FloatLanes + rng.IntN(2*s.FloatLanes+2)
				at.DstStep = channels + rng.IntN(3)
				if i%20 == 0 {
					channels = num.RoundUp(channels, 64)
					at.DstStep = 512 // far
				}
				if !s.Columns(taps, at.DstStep) {
					continue
				}
				at.Step = channels + rng.IntN(3)
				at.RowStep = at.Width()*at.Step + rng.IntN(3)
				at.DstRow = at.Pixels*at.DstStep + rng.IntN(3)
				w := kern.NewColumnWeights(s, channels, taps*taps, awkwards(rng, channels))
				var rows [][]float32
				for c := range channels {
					rows = append(rows, awkwards(rng, taps*taps))
					w.Put(c, rows[c])
				}
				src := awkwards(rng, (at.Rows-1)*at.RowStep+(at.Width()-1)*at.Step+channels)
				end := anyEnd(rng, channels)
				dst, check := guarded[float32](t, (at.Height()-1)*at.DstRow+(at.Pixels-1)*at.DstStep+channels)
				want := append([]float32(nil), dst...)
				for y := range at.Height() {
					for x := range at.Pixels {
						for c := range channels {
							acc := w.Bias[c]
							for k := range taps * taps {
								row, col := y-at.Above+k/taps, x-at.Left+k%taps
								if row >= 0 && row < at.Rows && col >= 0 && col < at.Width() {
									acc = f32.FMA(src[row*at.RowStep+col*at.Step+c], rows[c][k], acc)
								}
							}
							want[y*at.DstRow+x*at.DstStep+c] = ended(acc, c, end)
						}
					}
				}
				s.FMAColumns(dst, src, at, w, end)
				check()
				for i := range want {
					if math.Float32bits(want[i]) != math.Float32bits(dst[i]) {
						requireSame(t, want[i], dst[i], at, channels, i)
					}
				}
			}
		}
	})
}

// TestFMARoundsOnce has sums that a float64 sum, rounded again, gets wrong: it
// lies in the middle between two float32 values, normal or subnormal, and what
// it has lost decides.
func TestFMARoundsOnce(t *testing.T) {
	above, below := float32(1+0x1p-23), float32(1-0x1p-23)
	cases := [][3]float32{
		{above * 0x1p-12, below * 0x1p-12, 1 + 0x1p-23},
		{above * 0x1p-12, -below * 0x1p-12, 1 + 0x1p-23},
		{above * 0x1p-75, below * 0x1p-75, 0x1p-127 + 0x1p-149},
		{above * 0x1p-75, -below * 0x1p-75, 0x1p-127 + 0x1p-149},
	}
	forEachOwn(t, func(t *testing.T, s *kern.Set, _ *rand.Rand) {
		for _, c := range cases {
			for _, outputs := range []int{1, 4, 17} { // whatever a kernel takes at a time
				bias := slices.Repeat(c[2:], outputs)
				w := kern.NewFloatWeights(s, outputs, 1, bias)
				for o := range outputs {
					w.Put(o, c[1:2])
				}
				acc, each := make([]float32, outputs), make([]float32, outputs)
				twice := float32(float64(c[0])*float64(c[1]) + float64(c[2]))
				want := f32.FMA(c[0], c[1], c[2])
				require.NotEqual(t, twice, want, "%v is no such case", c)
				at := &kern.FloatPatches{Pixels: 1, Step: 1, RunLen: 1, Runs: []kern.FloatRun{{}}}
				s.FMAPixels(acc, outputs, c[:1], at, w, 0, outputs, kern.End{})
				s.FMAEach(each, outputs, slices.Repeat(c[:1], outputs), at, w, kern.End{})
				for o := range outputs {
					requireSame(t, want, acc[o], c)
					requireSame(t, want, each[o], c)
				}
			}
		}
	})
}

// TestFMATies has sums of which many lie in the middle between two float32
// values after a first rounding to float64, normal and subnormal ones.
func TestFMATies(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, scale := range []float32{1, 0x1p-64, 0x1p-70, 0x1p-74, 0x1p-75} {
			for range 200 {
				const outputs, taps, pixels = 12, 20, 3
				few := func(n, bits int) []float32 { // values of few bits
					v := make([]float32, n)
					for i := range v {
						v[i] = float32(rng.IntN(1<<bits)-1<<(bits-1)) * scale
					}
					return v
				}
				bits := 4 + rng.IntN(20)
				bias := few(outputs, 24)
				for i := range bias {
					bias[i] *= scale
				}
				w := kern.NewFloatWeights(s, outputs, taps, bias)
				rows := make([][]float32, outputs)
				for o := range rows {
					rows[o] = few(taps, 24)
					w.Put(o, rows[o])
				}
				src := few(pixels*taps, bits)
				at := &kern.FloatPatches{Pixels: pixels, Step: taps, RunLen: taps, Runs: []kern.FloatRun{{}}}
				dst, _ := guarded[float32](t, pixels*outputs)
				s.FMAPixels(dst, outputs, src, at, w, 0, outputs, kern.End{})
				for p := range pixels {
					for o := range outputs {
						acc := bias[o]
						for i := range taps {
							acc = f32.FMA(src[p*taps+i], rows[o][i], acc)
						}
						requireSame(t, acc, dst[p*outputs+o], scale, bits, p, o)
					}
				}
			}
		}
	})
}

// BenchmarkFMA times the sums of real weights for a row of 28 pixels, whose
// patches are inside the image: outputs, and rows × taps of a patch, or channels
// and taps of depthwise layers.
func BenchmarkFMA(b *testing.B) {
	const pixels = 28
	for _, s := range runnable() {
		for _, c := range []struct {
			outputs, rows, run int
			each               bool
			slide              int
		}{
			{outputs: 64, rows: 3, run: 192},
			{outputs: 64, rows: 1, run: 256},
			{outputs: 64, rows: 7, run: 21},
			{outputs: 32, rows: 3, run: 9},
			{outputs: 64, rows: 9, run: 1, each: true, slide: 3},
			{outputs: 32, rows: 25, run: 1, each: true, slide: 5},
		} {
			name := fmt.Sprintf("%s/%d/%d×%d", s.ISA, c.outputs, c.rows, c.run)
			if c.each {
				name = fmt.Sprintf("%s/each%d/%d", s.ISA, c.outputs, c.rows)
			}
			b.Run(name, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				floats := func(n int) []float32 {
					v := make([]float32, n)
					for i := range v {
						v[i] = float32(rng.NormFloat64())
					}
					return v
				}
				taps := c.rows * c.run
				w := kern.NewFloatWeights(s, c.outputs, taps, floats(c.outputs))
				for o := range c.outputs {
					w.Put(o, floats(taps))
				}
				at := &kern.FloatPatches{Pixels: pixels, Step: 64, RunLen: c.run, Slide: c.slide, Stride: 1}
				for r := range c.rows {
					at.Runs = append(at.Runs, kern.FloatRun{Src: r * 64, Tap: r * c.run})
				}
				src, dst := floats((pixels+c.rows)*64+c.run), make([]float32, pixels*c.outputs)
				for b.Loop() {
					if c.each {
						s.FMAEach(dst, c.outputs, src, at, w, kern.End{})
					} else {
						s.FMAPixels(dst, c.outputs, src, at, w, 0, c.outputs, kern.End{})
					}
				}
				macs := float64(pixels * c.outputs * taps)
				b.ReportMetric(macs*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				b.ReportMetric(macs, "MAC/op")
			})
		}
	}
}

// BenchmarkColumns reports the least time of depthwise layers of 3×3 and 5×5 taps on an
// image that the first-level cache holds, and the fraction of it that their products take
// at the rate of a loop of nothing else.
func BenchmarkColumns(b *testing.B) {
	const size, channels = 10, 48
	for _, s := range runnable() {
		for _, taps := range []int{3, 5} {
			if s.PeakFMA == nil || !s.Columns(taps, channels) {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d×%d", s.ISA, taps, taps), func(b *testing.B) {
				w := kern.NewColumnWeights(s, channels, taps*taps, make([]float32, channels))
				side := taps / 2
				at := &kern.FloatColumns{
					Taps: taps, Pixels: size, Rows: size, Above: side, Below: side, Left: side, Right: side,
					Step: channels, RowStep: size * channels, DstStep: channels, DstRow: size * channels,
				}
				dst, src := make([]float32, size*size*channels), make([]float32, size*size*channels)
				least, peak := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
				const rounds, loops = 10, 1000
				for b.Loop() {
					start := time.Now()
					for range rounds {
						s.FMAColumns(dst, src, at, w, kern.End{})
					}
					middle := time.Now()
					s.PeakFMA(loops)
					least, peak = min(least, middle.Sub(start)), min(peak, time.Since(middle))
				}
				products := float64(rounds * size * size * channels * taps * taps)
				b.ReportMetric(float64(least)/1e3/rounds, "least-µs")
				b.ReportMetric(products/float64(loops*s.PeakFMAs)*peak.Seconds()/least.Seconds(), "of-roof")
			})
		}
	}
}
