package sets

import (
	"fmt"
	"math"
	mathbits "math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// forEach runs a test for every Set that this processor can run.
func forEach(t *testing.T, f func(t *testing.T, s *kern.Set, rng *rand.Rand)) {
	for _, s := range sets {
		t.Run(s.ISA, func(t *testing.T) { f(t, s, rand.New(rand.NewPCG(1, 2))) })
	}
}

// guarded returns a slice of n values in the midst of others, and a function
// that checks that these are untouched. The slice is not aligned to vectors.
func guarded[T int32 | uint64 | float32](t *testing.T, n int) ([]T, func()) {
	const margin = 9
	all := make([]T, n+2*margin)
	for i := range all {
		all[i] = 77
	}
	return all[margin:][:n:n], func() {
		t.Helper()
		for i, v := range all {
			if (i < margin || i >= margin+n) && v != 77 {
				t.Fatalf("element %d of %d overwritten with %v", i-margin, n, v)
			}
		}
	}
}

func randomBits(rng *rand.Rand, rows, n int) []uint64 {
	values := make([]int8, rows*n)
	for i := range values {
		values[i] = int8(rng.IntN(2))
	}
	out := make([]uint64, rows*bits.Words(n))
	bits.Pack(out, values, n)
	return out
}

// layouts are patches of k elements in runs.
func layouts(rng *rand.Rand, k int) []kern.Patches {
	var all []kern.Patches
	for _, rows := range []int{1, 2, 3, 5, 7} {
		if k%rows == 0 {
			n := k / rows
			for _, pixels := range []int{1, 2, 3, 4, 5, 9} {
				all = append(all, kern.Patches{Pixels: pixels, Step: 1 + rng.IntN(2*n), Rows: rows, RowStep: n + rng.IntN(5), RowLen: n})
			}
		}
	}
	return all
}

// span is the number of elements that patches reach over.
func span(p *kern.Patches) int { return (p.Pixels-1)*p.Step + (p.Rows-1)*p.RowStep + p.RowLen }

// element returns element i of the patch of pixel p in src.
func element[T any](src []T, at *kern.Patches, p, i int) T {
	return src[p*at.Step+i/at.RowLen*at.RowStep+i%at.RowLen]
}

// ranges are ranges of outputs that a caller may ask for.
func ranges(outputs int) [][2]int {
	all := [][2]int{{0, outputs}}
	if outputs > 64 {
		all = append(all, [2]int{64, outputs - 64}, [2]int{0, 64})
	}
	return all
}

func TestDotBits(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, words := range []int{1, 2, 3, 6, 10, 13, 35} {
			for _, tail := range []int{64, 1 + rng.IntN(63)} {
				for _, outputs := range []int{1, 3, 4, 5, 32, 64, 100, 130} {
					testDotBits(t, s, rng, (words-1)*64+tail, outputs)
				}
			}
		}
	})
}

func testDotBits(t *testing.T, s *kern.Set, rng *rand.Rand, k, outputs int) {
	words := bits.Words(k)
	weights := randomBits(rng, outputs, k)
	packed := s.PackBits(weights, outputs, k)
	for _, at := range layouts(rng, words) {
		// The padding of the last word must be 0, and patches overlap: what is
		// the last word of one may be any word of another.
		src := randomBits(rng, span(&at), k-(words-1)*64)
		for _, r := range ranges(outputs) {
			stride := kern.RoundUp(r[1], s.Block) + rng.IntN(3)
			dst, check := guarded[int32](t, at.Pixels*stride)
			s.DotBits(dst, stride, src, &at, packed, r[0], r[1])
			check()
			for p := range at.Pixels {
				for o := range r[1] {
					want := int32(k)
					for i, w := range weights[(r[0]+o)*words:][:words] {
						want -= 2 * int32(mathbits.OnesCount64(element(src, &at, p, i)^w))
					}
					require.Equal(t, want, dst[p*stride+o], "%+v pixel %d output %d", at, p, r[0]+o)
				}
			}
		}
	}
}

func TestDotBytes(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, k := range []int{1, 3, 4, 9, 27, 75, 255, 256, 257, 260, 600} {
			for _, outputs := range []int{1, 4, 6, 70} {
				for _, brightest := range []int{1, 256} {
					zero := uint8(rng.IntN(256))
					weights := randomBits(rng, outputs, k)
					if brightest == 1 { // all taps of weight +1 and value 255
						bits.Pack(weights, onesOf(outputs*k), k)
					}
					packed := s.PackBytes(weights, outputs, k, zero)
					for _, at := range layouts(rng, k) {
						src := make([]uint8, span(&at))
						for i := range src {
							src[i] = uint8(255 - rng.IntN(brightest))
						}
						for _, r := range ranges(outputs) {
							stride := kern.RoundUp(r[1], s.Block) + rng.IntN(3)
							dst, check := guarded[int32](t, at.Pixels*stride)
							s.DotBytes(dst, stride, src, &at, packed, r[0], r[1])
							check()
							for p := range at.Pixels {
								for o := range r[1] {
									want := int32(0)
									for i := range k {
										x := int32(element(src, &at, p, i)) - int32(zero)
										want += x * int32(bits.At(weights[(r[0]+o)*bits.Words(k):], i))
									}
									require.Equal(t, want, dst[p*stride+o], "%+v pixel %d output %d", at, p, r[0]+o)
								}
							}
						}
					}
				}
			}
		}
	})
}

func onesOf(n int) []int8 {
	out := make([]int8, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// awkward draws float32 values whose sums often lie in the middle between two
// others, cancel, or are subnormal.
func awkward(rng *rand.Rand) float32 {
	switch rng.IntN(6) {
	case 0:
		return math.Float32frombits(rng.Uint32())
	case 1:
		return []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1))}[rng.IntN(7)]
	case 2:
		return float32(math.Ldexp(1+float64(rng.IntN(1<<12))/(1<<12), rng.IntN(40)-140))
	}
	return float32(math.Ldexp(1+float64(rng.IntN(1<<13))/(1<<12), rng.IntN(60)-30)) * float32(1-2*rng.IntN(2))
}

func awkwards(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = awkward(rng)
	}
	return out
}

// requireSame compares by bits, except that processors disagree about those of
// a NaN.
func requireSame(t *testing.T, want, got float32, what ...any) {
	t.Helper()
	if want == want || got == got {
		require.Equal(t, math.Float32bits(want), math.Float32bits(got), append([]any{"want %g, got %g: %v"}, want, got, what)...)
	}
}

func TestFMA(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, outputs := range []int{1, 3, 4, 16, 33, 64} {
			for _, taps := range []int{0, 1, 2, 7} {
				for range 300 {
					stride := outputs + rng.IntN(4)
					x, w := awkwards(rng, taps), awkwards(rng, taps*stride)
					acc, check := guarded[float32](t, outputs)
					copy(acc, awkwards(rng, outputs))
					want := append([]float32(nil), acc...)
					for i := range x {
						for o := range want {
							want[o] = f32.FMA(x[i], w[i*stride+o], want[o])
						}
					}
					s.FMA(acc, x, w, stride)
					check()
					for o := range want {
						requireSame(t, want[o], acc[o], x, w, o)
					}
				}
			}
		}
	})
}

func TestFMAPixels(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.FMAPixels == nil {
			return
		}
		for _, outputs := range []int{1, 7, 8, 9, 16, 17, 31, 64, 70, 130} {
			for _, rows := range []int{1, 3} {
				for _, pixels := range []int{1, 3, 4, 6, 7, 13} {
					run := 1 + rng.IntN(9)
					at := &kern.Patches{Pixels: pixels, Step: 1 + rng.IntN(run), Rows: rows, RowStep: run + rng.IntN(5), RowLen: run}
					stride, step := outputs+rng.IntN(4), outputs+rng.IntN(4)
					src, w, bias := awkwards(rng, span(at)), awkwards(rng, rows*run*step), awkwards(rng, outputs)
					dst, check := guarded[float32](t, (pixels-1)*stride+outputs)
					want := append([]float32(nil), dst...)
					for p := range pixels {
						for o := range outputs {
							acc := bias[o]
							for i := range rows * run {
								acc = f32.FMA(element(src, at, p, i), w[i*step+o], acc)
							}
							want[p*stride+o] = acc
						}
					}
					s.FMAPixels(dst, stride, src, at, w, step, bias)
					check()
					for i := range want {
						requireSame(t, want[i], dst[i], at, outputs)
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
	forEach(t, func(t *testing.T, s *kern.Set, _ *rand.Rand) {
		for _, c := range cases {
			for _, outputs := range []int{1, 4, 17} { // whatever a kernel takes at a time
				w, acc := make([]float32, outputs), make([]float32, outputs)
				for o := range outputs {
					w[o], acc[o] = c[1], c[2]
				}
				twice := float32(float64(c[0])*float64(c[1]) + float64(c[2]))
				want := f32.FMA(c[0], c[1], c[2])
				require.NotEqual(t, twice, want, "%v is no such case", c)
				s.FMA(acc, c[:1], w, outputs)
				for o := range outputs {
					requireSame(t, want, acc[o], c)
				}
			}
		}
	})
}

func TestThreshold(t *testing.T) {
	extremes := []int32{math.MinInt32, math.MinInt32 + 1, -1, 0, 1, math.MaxInt32 - 1, math.MaxInt32}
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{1, 3, 4, 31, 32, 33, 63, 64, 65, 100, 128, 130} {
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

func TestOr(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
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
		}
	})
}

func TestScale(t *testing.T) {
	relu := func(v float32, on bool) float32 {
		if on && !(v > 0) {
			return 0
		}
		return v
	}
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range []int{0, 1, 3, 4, 31, 64, 100} {
			for range 50 {
				for _, on := range []bool{false, true} {
					sums := make([]int32, n)
					for i := range sums {
						sums[i] = int32(rng.Uint32()) >> rng.IntN(32)
					}
					floats := awkwards(rng, n)
					scale, shift := awkwards(rng, n), awkwards(rng, n)
					scaled, check := guarded[float32](t, n)
					plain, checkPlain := guarded[float32](t, n)
					s.Scale(scaled, sums, scale, shift, on)
					s.Scale(plain, sums, nil, nil, on)
					for o, v := range sums {
						requireSame(t, relu(f32.FMA(float32(v), scale[o], shift[o]), on), scaled[o], v)
						requireSame(t, relu(float32(v), on), plain[o], v)
					}
					s.ScaleFloat(scaled, floats, scale, shift, on)
					s.ScaleFloat(plain, floats, nil, nil, on)
					for o, v := range floats {
						requireSame(t, relu(f32.FMA(v, scale[o], shift[o]), on), scaled[o], v)
						requireSame(t, relu(v, on), plain[o], v)
					}
					check()
					checkPlain()
					s.ScaleFloat(floats, floats, scale, shift, on) // in place
					for o := range floats {
						requireSame(t, scaled[o], floats[o])
					}
				}
			}
		}
	})
}

func TestLookup(t *testing.T) {
	names := Names()
	require.Equal(t, "generic", names[len(names)-1])
	best, err := Lookup("")
	require.NoError(t, err)
	require.Equal(t, names[0], best.ISA)
	for _, name := range names {
		s, err := Lookup(name)
		require.NoError(t, err)
		require.Equal(t, name, s.ISA)
		require.Zero(t, 64%s.Block)
	}
	_, err = Lookup("mmx")
	require.EqualError(t, err, fmt.Sprintf(`no kernels for instruction set "mmx" on this processor; there are %s`, strings.Join(names, ", ")))
}
