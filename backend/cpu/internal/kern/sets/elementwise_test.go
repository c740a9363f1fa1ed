package sets

import (
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// requireOneOf requires that the set of a test is one of those that lack a kernel.
func requireOneOf(t *testing.T, sets ...string) { require.Contains(t, sets, path.Base(t.Name())) }

func TestThreshold(t *testing.T) {
	extremes := []int32{math.MinInt32, math.MinInt32 + 1, -1, 0, 1, math.MaxInt32 - 1, math.MaxInt32}
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 3, 4, 8, 16, 31, 32, 33, 48, 56, 63, 64, 65, 72, 100, 128, 130} {
			for _, pixels := range []int{1, 2, 5} {
				stride, step := n+rng.IntN(3), bits.Words(n)+rng.IntN(2)
				draw := func() int32 {
					if rng.IntN(3) == 0 {
						return extremes[rng.IntN(len(extremes))]
					}
					return int32(rng.IntN(5))
				}
				sums, bounds := make([]int32, pixels*stride), make([]int32, n)
				floats, floatBounds := awkwards(rng, pixels*stride), awkwards(rng, n)
				for i := range sums {
					sums[i] = draw()
				}
				for o := range bounds {
					bounds[o] = draw()
					if rng.IntN(2) == 0 {
						floatBounds[o] = floats[o] // a tie, or NaN
					}
				}
				size := (pixels-1)*step + bits.Words(n)
				got, check := guarded[uint64](t, size)
				gotFloat, checkFloat := guarded[uint64](t, size)
				want := append([]uint64(nil), got...)
				wantFloat := append([]uint64(nil), got...)
				for p := range pixels {
					row, rowFloat := make([]int8, n), make([]int8, n)
					for o := range n {
						if sums[p*stride+o] >= bounds[o] {
							row[o] = 1
						}
						if floats[p*stride+o] >= floatBounds[o] {
							rowFloat[o] = 1
						}
					}
					bits.Pack(want[p*step:], row, n)
					bits.Pack(wantFloat[p*step:], rowFloat, n)
				}
				s.Threshold(got, step, sums, stride, bounds, pixels)
				s.ThresholdFloat(gotFloat, step, floats, stride, floatBounds, pixels)
				check()
				checkFloat()
				require.Equal(t, want, got)
				require.Equal(t, wantFloat, gotFloat)
			}
		}
	})
}

// Three thresholds in ascending order, of which a value reaches none to all.
func TestThresholdPlanes(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.ThresholdPlanes == nil {
			t.Skip("the set has none")
		}
		for n := 8; n <= 200; n += 8 {
			for _, pixels := range []int{0, 1, 2, 7} {
				stride, words := n+rng.IntN(3), bits.Words(n)
				step := 2*words + rng.IntN(2)
				plane := words + rng.IntN(step-2*words+1)
				values, thresholds := awkwards(rng, pixels*stride+1), make([]float32, 3*n)
				for o := range n {
					list := awkwards(rng, 3)
					if pixels > 0 && rng.IntN(2) == 0 {
						list[1] = values[o] // a tie, or NaN
					}
					slices.Sort(list)
					for k, v := range list {
						thresholds[k*n+o] = v
					}
				}
				dst, check := guarded[uint64](t, max(0, pixels*step))
				want := append([]uint64{}, dst...)
				for p := range pixels {
					low, high := make([]int8, n), make([]int8, n)
					for o := range n {
						for k := range 3 {
							if values[p*stride+o] >= thresholds[k*n+o] {
								low[o] ^= 1
							}
						}
						if values[p*stride+o] >= thresholds[n+o] {
							high[o] = 1
						}
					}
					bits.Pack(want[p*step:], low, n)
					bits.Pack(want[p*step+plane:], high, n)
				}
				s.ThresholdPlanes(dst, step, plane, values, stride, thresholds, pixels)
				check()
				require.Equal(t, want, append([]uint64{}, dst...), "%d values, %d pixels", n, pixels)
			}
		}
	})
}

func TestOr(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for n := range 40 {
			dst, check := guarded[uint64](t, n)
			src := make([]uint64, n)
			want := make([]uint64, n)
			for i := range dst {
				dst[i], src[i] = rng.Uint64(), rng.Uint64()
				want[i] = dst[i] | src[i]
			}
			s.Or(dst, src)
			check()
			require.Equal(t, want, append([]uint64{}, dst...))

			sums, check := guarded[int32](t, n)
			add, total := make([]int32, n), make([]int32, n)
			for i := range sums {
				sums[i], add[i] = int32(rng.Uint32()), int32(rng.Uint32())
				total[i] = sums[i] + 2*add[i]
			}
			s.AddTwice(sums, add)
			check()
			require.Equal(t, total, append([]int32{}, sums...))
		}
	})
}

// ends are the ends of n values: with a scale and without, and every activation.
func ends(rng *rand.Rand, n int) []kern.End {
	scale, shift := awkwards(rng, n), awkwards(rng, n)
	low, high := awkward(rng), awkward(rng)
	for !(low <= high) {
		low, high = awkward(rng), awkward(rng)
	}
	var out []kern.End
	for _, act := range []kern.Activation{{}, kern.ReLU(), {Slope: awkwards(rng, n)}, {Clip: true, Low: low, High: high}} {
		out = append(out, kern.End{Activation: act}, kern.End{Scale: scale, Shift: shift, Activation: act})
	}
	return out
}

func ended(v float32, o int, end kern.End) float32 {
	if end.Scale != nil {
		v = f32.FMA(v, end.Scale[o], end.Shift[o])
	}
	switch {
	case end.Slope != nil && v < 0:
		v *= end.Slope[o]
	case end.Clip:
		if v < end.Low {
			v = end.Low
		}
		if v > end.High {
			v = end.High
		}
	}
	return v
}

func TestScale(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{0, 1, 3, 4, 8, 17, 31, 64, 100} {
			for range 50 {
				for _, end := range ends(rng, n) {
					rows, step, stride := 1+rng.IntN(3), n+rng.IntN(3), n+rng.IntN(3)
					sums := make([]int32, rows*step)
					for i := range sums {
						sums[i] = int32(rng.Uint32()) >> rng.IntN(32)
					}
					floats := awkwards(rng, rows*step)
					ints, check := guarded[float32](t, (rows-1)*stride+n)
					scaled, checkFloats := guarded[float32](t, (rows-1)*stride+n)
					wantInts, want := slices.Clone(ints), slices.Clone(scaled)
					for r := range rows {
						for o := range n {
							wantInts[r*stride+o] = ended(float32(sums[r*step+o]), o, end)
							want[r*stride+o] = ended(floats[r*step+o], o, end)
						}
					}
					s.Scale(ints, stride, sums, step, n, rows, end)
					s.ScaleFloat(scaled, stride, floats, step, n, rows, end)
					check()
					checkFloats()
					for i := range want {
						requireSame(t, wantInts[i], ints[i], end)
						requireSame(t, want[i], scaled[i], end)
					}
					s.ScaleFloat(floats, step, floats, step, n, rows, end) // in place
					for r := range rows {
						for o := range n {
							requireSame(t, want[r*stride+o], floats[r*step+o], end)
						}
					}
				}
			}
		}
	})
}

func TestScaleAdd(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		kernels := []func([]float32, int, []int32, int, int, int, kern.End, kern.End, []float32){generic.ScaleAdd}
		if s.ScaleAdd != nil {
			kernels = append(kernels, s.ScaleAdd)
		}
		for _, n := range []int{0, 1, 3, 4, 8, 17, 31, 64, 100} {
			for range 4 {
				for _, end := range ends(rng, n) {
					for _, then := range ends(rng, n) {
						if then.Slope != nil {
							continue
						}
						rows, step, stride := 1+rng.IntN(3), n+rng.IntN(3), n+rng.IntN(3)
						sums := make([]int32, rows*step)
						for i := range sums {
							sums[i] = int32(rng.Uint32()) >> rng.IntN(32)
						}
						for _, scaleAdd := range kernels {
							dst, check := guarded[float32](t, (rows-1)*stride+n)
							added, checkAdded := guarded[float32](t, len(dst))
							copy(added, awkwards(rng, len(added)))
							want, over := slices.Clone(dst), slices.Clone(added)
							for r := range rows {
								for o := range n {
									v := ended(float32(sums[r*step+o]), o, end)
									v = ended(v, o, kern.End{Scale: then.Scale, Shift: then.Shift})
									over[r*stride+o] = ended(v+added[r*stride+o], o, kern.End{Activation: then.Activation})
									want[r*stride+o] = over[r*stride+o]
								}
							}
							scaleAdd(dst, stride, sums, step, n, rows, end, then, added)
							scaleAdd(added, stride, sums, step, n, rows, end, then, added) // in place
							check()
							checkAdded()
							for i := range want {
								requireSame(t, want[i], dst[i], end, then)
								requireSame(t, over[i], added[i], end, then)
							}
						}
					}
				}
			}
		}
	})
}

func TestScaleBytes(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{0, 1, 23, 24, 25, 47, 48, 49, 96, 130, 200} {
			for _, end := range ends(rng, 2*kern.BytePeriod) {
				if end.Scale == nil {
					continue
				}
				for _, values := range [][]float32{end.Scale, end.Shift, end.Slope} {
					if values != nil {
						copy(values[kern.BytePeriod:], values)
					}
				}
				src := randomBytes(rng, n)
				dst, check := guarded[float32](t, n)
				s.ScaleBytes(dst, src, end)
				check()
				for i, v := range src {
					requireSame(t, ended(float32(v), i%kern.BytePeriod, end), dst[i], i, v, end)
				}
			}
		}
	})
}

func TestAddChoose(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			for range 40 {
				x, w := awkwards(rng, n), awkwards(rng, n)
				dst, check := guarded[float32](t, n)
				for _, end := range ends(rng, n) {
					end.Scale = nil
					s.Add(dst, x, w, end.Activation)
					check()
					for i := range dst {
						requireSame(t, ended(x[i]+w[i], i, end), dst[i], x[i], w[i], end)
					}
				}
				src := randomWords(rng, (n+63)/64)
				for _, period := range []int{n, 64, 128} {
					x, w := x[:min(period, n)], w[:min(period, n)]
					s.Choose(dst, src, x, w)
					check()
					for i := range dst {
						want := w[i%period]
						if src[i/64]>>(i%64)&1 == 1 {
							want = x[i%period]
						}
						requireSame(t, want, dst[i], i, period)
					}
				}
			}
		}
	})
}

func TestPick(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, channels := range []int{1, 3, 4, 7, 8, 16, 20, 48, 130} {
			for _, n := range []int{1, 4, 8, 15, 16, 33, 96} {
				for _, groups := range []int{0, 1, 2, 3, 4, 5, 8} { // of a shuffle; 0 for any channel, 1 for their order
					index := make([]int32, n)
					for i := range index {
						k := i % channels
						if each := channels / max(groups, 1); groups > 0 && each > 0 && k < groups*each {
							k = k%groups*each + k/groups
						}
						if index[i] = int32(k); groups == 0 {
							index[i] = int32(rng.IntN(channels))
						}
						if rng.IntN(8) == 0 || n == 33 && i < 20 { // vectors of zeros too
							index[i] = -1
						}
					}
					pixels := rng.IntN(5)
					src := awkwards(rng, pixels*channels)
					dst, check := guarded[float32](t, pixels*n)
					s.Pick(dst, src, kern.NewPicks(s.PickLanes, channels, index), pixels)
					check()
					for p := range pixels {
						for c, from := range index {
							var want float32
							if from >= 0 {
								want = src[p*channels+int(from)]
							}
							requireSame(t, want, dst[p*n+c], channels, index, p, c)
						}
					}
				}
			}
		}
	})
}

// TestLargest has values of which several are the largest, infinities and NaNs, and pixels of
// nothing but those.
func TestLargest(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 19, 21, 64, 150} {
			for _, pixels := range []int{0, 1, 7, 8, 9, 15, 16, 17, 33} {
				for range 4 {
					src := awkwards(rng, pixels*n)
					for i := range src {
						switch rng.IntN(4) {
						case 0:
							src[i] = float32(rng.IntN(3))
						case 1:
							src[i] = []float32{-inf, inf, nan, 0, float32(math.Copysign(0, -1))}[rng.IntN(5)]
						}
						if i/n%5 == 4 {
							src[i] = []float32{-inf, nan}[rng.IntN(2)]
						}
					}
					dst, check := guarded[float32](t, pixels)
					if len(src) > 0 { // nothing behind it is read
						end := fenced(t, 4*len(src))
						from := unsafe.Slice((*float32)(unsafe.Pointer(&end[0])), len(src))
						copy(from, src)
						src = from
					}
					s.Largest(dst, src, n)
					check()
					for p := range dst {
						best, most := 0, -inf
						for c, v := range src[p*n:][:n] {
							if v > most {
								best, most = c, v
							}
						}
						requireEqual(t, float32(best), dst[p], "%d channels, pixel %d of %d: %v", n, p, pixels, src[p*n:][:n])
					}
				}
			}
		}
	})
}

// TestFunction tries the numbers about the ends of intervals of every function.
func TestFunction(t *testing.T) {
	var about []float32
	for high := range uint32(1 << 12) { // sign, exponent and 3 bits of the mantissa
		for _, low := range []uint32{0, 1, 0x3fff, 0x4000, 0xfffff} {
			about = append(about, math.Float32frombits(high<<20|low))
		}
	}
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, name := range f32.Names() {
			f := kern.FunctionNamed(name)
			for _, n := range append(sizes, len(about)) {
				src := awkwards(rng, n)
				for i := range src {
					if rng.IntN(2) == 0 { // where it bends
						src[i] = float32(rng.NormFloat64() * 8)
					}
				}
				if n == len(about) {
					src = about
				}
				dst, check := guarded[float32](t, n)
				s.Function(dst, src, f)
				check()
				for i, x := range src {
					requireSame(t, f.Of.Of(x), dst[i], name, x)
				}
				copy(dst, src)
				s.Function(dst, dst, f) // in place
				for i, x := range src {
					requireSame(t, f.Of.Of(x), dst[i], name, x)
				}
			}
		}
	})
}

// TestBlendRows has rows of the least width and others, enlarged and not, whose lanes lie as
// far apart as may be.
func TestBlendRows(t *testing.T) {
	const height = 3
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.BlendRows == nil {
			requireOneOf(t, "ssse3", "neonv7", "generic")
			return
		}
		fits := 0
		for _, channels := range []int{1, 2, 3, 4, 5, 7, 11, 15} {
			for _, width := range []int{4, 6, 8, 16, 17, 40} {
				for _, times := range []float64{0.9, 1, 1.5, 2, 3.3} {
					for _, taps := range []int{2, 4} {
						pixels := int(float64(width) * times)
						var index []int32
						for x := range pixels {
							for k := range taps {
								index = append(index, int32(min(max(int(float64(x)/times)+k-taps/2, 0), width-1)))
							}
						}
						weights := awkwards(rng, len(index))
						cols := kern.NewBlendColumns(s.FloatLanes, index, weights, taps, channels, width*channels)
						if cols == nil {
							continue
						}
						fits++
						rowIndex := make([]int32, taps)
						for i := range rowIndex {
							rowIndex[i] = int32(rng.IntN(height))
						}
						count := 1 + rng.IntN(4)
						rows := kern.NewBlendTaps(slices.Repeat(rowIndex, count), awkwards(rng, count*taps), width*channels)
						if count > 1 && rng.IntN(2) == 0 { // the second row mirrors the first
							for i := range taps {
								rows[2*taps-1-i].Weight = rows[i].Weight
							}
						}
						src := awkwards(rng, height*width*channels)
						dst, check := guarded[float32](t, count*pixels*channels)
						s.BlendRows(dst, src, rows, cols)
						check()
						taken := kern.NewBlendTaps(index, weights, channels)
						for i, got := range dst {
							sum := float32(0)
							for _, row := range rows[i/channels/pixels*taps:][:taps] {
								for _, col := range taken[i/channels%pixels*taps:][:taps] {
									at, weight := row.Value(col)
									sum = f32.FMA(src[at+i%channels], weight, sum)
								}
							}
							requireSame(t, sum, got, channels, width, times, taps, i)
						}
					}
				}
			}
		}
		if fits < 50 {
			t.Fatalf("%d cases fit", fits)
		}
	})
}

func TestBlend(t *testing.T) {
	taps := func(rng *rand.Rand, n, size, step int) []kern.BlendTap {
		index := make([]int32, n)
		for i := range index {
			index[i] = int32(rng.IntN(size))
		}
		return kern.NewBlendTaps(index, awkwards(rng, n), step)
	}
	const height, width = 3, 4
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 3, 4, 7, 8, 15, 16, 17, 40, 64, 100, 128, 261} {
			for _, each := range []int{1, 2, 4} {
				for _, pixels := range []int{0, 1, 2, 5} {
					src := awkwards(rng, height*width*n)
					rows, cols := taps(rng, each, height, width*n), taps(rng, pixels*each, width, n)
					dst, check := guarded[float32](t, pixels*n)
					s.Blend(dst, src, rows, cols, n, pixels)
					check()
					for p := range pixels {
						for c := range n {
							sum := float32(0)
							for _, row := range rows {
								for _, col := range cols[p*each:][:each] {
									at, weight := row.Value(col)
									sum = f32.FMA(src[at+c], weight, sum)
								}
							}
							requireSame(t, sum, dst[p*n+c], n, each, p, c)
						}
					}
				}
			}
		}
	})
}
