package sets

import (
	mathbits "math/bits"
	"math/rand/v2"
	"testing"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

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
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
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
			stride := num.RoundUp(r[1], s.Block) + rng.IntN(3)
			dst, check := guarded[int32](t, at.Pixels*stride)
			s.DotBits(dst, stride, src, &at, packed, r[0], r[1])
			check()
			for p := range at.Pixels {
				for o := range r[1] {
					want := int32(k)
					for i, w := range weights[(r[0]+o)*words:][:words] {
						want -= 2 * int32(mathbits.OnesCount64(element(src, &at, p, i)^w))
					}
					requireEqual(t, want, dst[p*stride+o], "%+v pixel %d output %d", at, p, r[0]+o)
				}
			}
		}
	}
}

// FuzzDotBits compares DotBits of all instruction sets with plain sums.
func FuzzDotBits(f *testing.F) {
	f.Add(uint64(1), uint16(700), uint8(20))
	f.Fuzz(func(t *testing.T, seed uint64, k uint16, outputs uint8) {
		for _, s := range runnable() {
			testDotBits(t, s, rand.New(rand.NewPCG(seed, 1)), 1+int(k)%3000, 1+int(outputs)%140)
		}
	})
}

func TestDotBytes(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
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
							stride := num.RoundUp(r[1], s.Block) + rng.IntN(3)
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
									requireEqual(t, want, dst[p*stride+o], "%+v pixel %d output %d", at, p, r[0]+o)
								}
							}
						}
					}
				}
			}
		}
	})
}

func TestDotWords(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, k := range []int{1, 3, 4, 9, 27, 75, 255, 257, 260} {
			for _, outputs := range []int{1, 4, 6, 70} {
				zero := uint8(rng.IntN(256))
				weights8, weights16 := make([]int8, outputs*k), make([]int16, outputs*k)
				for i, v := range randomBytes(rng, len(weights8)) {
					weights8[i], weights16[i] = int8(v), int16(int(int8(v))*257-rng.IntN(2))
				}
				testDotWords(t, s, rng, s.PackInt8(weights8, outputs, k, zero), weights8, zero)
				testDotWords(t, s, rng, s.PackInt16(weights16, outputs, k, zero), weights16, zero)
			}
		}
	})
}

func testDotWords[W int8 | int16](t *testing.T, s *kern.Set, rng *rand.Rand, packed *kern.DotWordsWeights, weights []W, zero uint8) {
	k := packed.K
	for _, at := range layouts(rng, k) {
		src := randomBytes(rng, span(&at))
		for _, r := range ranges(packed.Outputs) {
			stride := num.RoundUp(r[1], s.Block) + rng.IntN(3)
			dst, check := guarded[int32](t, at.Pixels*stride)
			s.DotWords(dst, stride, src, &at, packed, r[0], r[1])
			check()
			for p := range at.Pixels {
				for o := range r[1] {
					want := int32(0)
					for i := range k {
						want += (int32(element(src, &at, p, i)) - int32(zero)) * int32(weights[(r[0]+o)*k+i])
					}
					requireEqual(t, want, dst[p*stride+o], "%+v pixel %d output %d", at, p, r[0]+o)
				}
			}
		}
	}
}

func onesOf(n int) []int8 {
	out := make([]int8, n)
	for i := range out {
		out[i] = 1
	}
	return out
}
