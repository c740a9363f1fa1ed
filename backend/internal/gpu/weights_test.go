package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// packed makes rows of random bits.
func packed(rng *rand.Rand, rows, n int) []uint64 {
	values := make([]int8, rows*n)
	for i := range values {
		values[i] = int8(2*rng.IntN(2) - 1)
	}
	out := make([]uint64, rows*bits.Words(n))
	bits.Pack(out, values, n)
	return out
}

// at is the bit of a channel of a tap of an output, 0 or 1.
func (s Sizes) at(weights []uint64, o, t, i int) uint32 {
	return uint32(bits.At(weights[(o*s.Taps+t)*bits.Words(s.In):], i)+1) / 2
}

var sizes = []Sizes{
	{Taps: 1, In: 1, Out: 1, PerGroup: 1, Lanes: 32},
	{Taps: 9, In: 33, Out: 40, PerGroup: 40, Lanes: 32},
	{Taps: 6, In: 128, Out: 64, PerGroup: 64, Lanes: 32},
	{Taps: 4, In: 65, Out: 7, PerGroup: 7, Lanes: 4},
	{Taps: 3, In: 13, Out: 35, PerGroup: 7, Lanes: 32},
	{Taps: 2, In: 48, Out: 6, PerGroup: 2, Lanes: 4},
}

func (s Sizes) complete() Sizes {
	s.Words, s.Blocks = (s.In+31)/32, (s.Out+s.Lanes-1)/s.Lanes
	return s
}

func TestBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range sizes {
		s = s.complete()
		weights := packed(rng, s.Out*s.Taps, s.In)
		for _, vector := range []int{1, 2, 4} {
			if s.Words%vector != 0 {
				continue
			}
			got := s.Bits(weights, vector)
			require.Len(t, got, s.Blocks*s.Taps*s.Words*s.Lanes)
			for o := range s.Blocks * s.Lanes {
				for tap := range s.Taps {
					for i := range s.Words * 32 {
						k := i / 32
						word := got[(((o/s.Lanes*s.Taps+tap)*(s.Words/vector)+k/vector)*s.Lanes+o%s.Lanes)*vector+k%vector]
						want := uint32(0)
						if o < s.Out && i < s.In {
							want = s.at(weights, o, tap, i)
						}
						require.Equal(t, want, word>>(i%32)&1)
					}
				}
			}
		}
	}
}

func TestMixed(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, s := range sizes {
		s = s.complete()
		groups := s.Out / s.PerGroup
		s.Words = MixedWords(s.In, groups)
		weights := packed(rng, s.Out*s.Taps, s.In)
		got, masks := s.Mixed(weights)
		for o := range s.Out {
			first := o / s.PerGroup * s.In // channel of the pixel
			for tap := range s.Taps {
				for bit := range s.Words * 32 {
					i := first/32*32 + bit - first // channel of the group
					k := bit / 32
					mask := masks[(o/s.Lanes*s.Words+k)*s.Lanes+o%s.Lanes] >> (bit % 32) & 1
					weight := got[((o/s.Lanes*s.Taps+tap)*s.Words+k)*s.Lanes+o%s.Lanes] >> (bit % 32) & 1
					if i < 0 || i >= s.In {
						require.Zero(t, mask|weight)
						continue
					}
					require.Equal(t, uint32(1), mask)
					require.Equal(t, s.at(weights, o, tap, i), weight)
				}
			}
		}
	}
}

func TestFloats(t *testing.T) {
	for _, s := range sizes {
		s = s.complete()
		weights := make([]float32, s.Out*s.Taps*s.In)
		for i := range weights {
			weights[i] = float32(i + 1)
		}
		got := s.Floats(weights)
		require.Len(t, got, s.Blocks*s.Taps*s.In*s.Lanes)
		for o := range s.Blocks * s.Lanes {
			for i := range s.Taps * s.In {
				want := float32(0)
				if o < s.Out {
					want = weights[o*s.Taps*s.In+i]
				}
				require.Equal(t, want, got[(o/s.Lanes*s.Taps*s.In+i)*s.Lanes+o%s.Lanes])
			}
		}
	}
}

// signed makes random weights, ±1 or of 8 bits.
func signed(rng *rand.Rand, n int, ones bool) []int8 {
	out := make([]int8, n)
	for i := range out {
		if out[i] = int8(rng.IntN(256) - 128); ones {
			out[i] = int8(2*rng.IntN(2) - 1)
		}
	}
	return out
}

func TestSignsAndBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, s := range sizes {
		s = s.complete()
		ones, weights := signed(rng, s.Out*s.Taps*s.In, true), signed(rng, s.Out*s.Taps*s.In, false)
		signs, negatives := s.Signs(ones)
		integers := s.Int32(weights)
		bytes, sums := s.Bytes(weights)
		words := (s.In + 3) / 4
		require.Len(t, signs, s.Blocks*s.Taps*s.In*s.Lanes)
		require.Len(t, integers, len(signs))
		require.Len(t, bytes, s.Blocks*s.Taps*words*s.Lanes)
		for o := range s.Blocks * s.Lanes {
			var count, sum int32
			for tap := range s.Taps {
				at := o/s.Lanes*s.Taps + tap
				for i := range 4 * words {
					got := int8(bytes[(at*words+i/4)*s.Lanes+o%s.Lanes] >> (i % 4 * 8))
					if o >= s.Out || i >= s.In {
						require.Zero(t, got)
						continue
					}
					from := (o*s.Taps+tap)*s.In + i
					require.Equal(t, weights[from], got)
					sum += int32(got)
					require.EqualValues(t, got, integers[(at*s.In+i)*s.Lanes+o%s.Lanes])
					want := int32(0)
					if ones[from] < 0 {
						want = -1
						count++
					}
					require.Equal(t, want, signs[(at*s.In+i)*s.Lanes+o%s.Lanes])
				}
			}
			if o < s.Out {
				require.Equal(t, count, negatives[o])
				require.Equal(t, sum, sums[o])
			}
		}
	}
}

// TestByteRows: rows follow each other, filled up with 0.
func TestByteRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, s := range sizes {
		s = s.complete()
		row := s.Taps * s.In
		weights := signed(rng, s.Out*row, false)
		for more := range 2 {
			words := (row+3)/4 + more
			got, sums := s.ByteRows(weights, words)
			require.Len(t, got, s.Out*words)
			for o := range s.Out {
				sum := int32(0)
				for i := range 4 * words {
					want := int8(0)
					if i < row {
						want = weights[o*row+i]
					}
					require.Equal(t, want, int8(got[o*words+i/4]>>(i%4*8)))
					sum += int32(want)
				}
				require.Equal(t, sum, sums[o])
			}
		}
	}
}

// TestRuns: the taps of a run follow each other without gaps.
func TestRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	for _, s := range sizes {
		s = s.complete()
		weights := signed(rng, s.Out*s.Taps*s.In, false)
		_, sums := s.Bytes(weights)
		for run := 1; run <= s.Taps; run++ {
			if s.Taps%run != 0 {
				continue
			}
			got, gotSums := s.Runs(weights, run)
			words := (run*s.In + 3) / 4
			require.Len(t, got, s.Blocks*s.Taps/run*words*s.Lanes)
			require.Equal(t, sums, gotSums)
			for o := range s.Out {
				for i := range s.Taps / run * words * 4 {
					first, at := i/(words*4), i%(words*4)
					byte := int8(got[((o/s.Lanes*s.Taps/run+first)*words+at/4)*s.Lanes+o%s.Lanes] >> (at % 4 * 8))
					want := int8(0)
					if at < run*s.In {
						want = weights[(o*s.Taps+first*run)*s.In+at]
					}
					require.Equal(t, want, byte)
				}
			}
		}
	}
}

// TestFragments: where the tensor cores' row r of 16 and word k of 8 are by the PTX ISA, is
// the output that row stands for.
func TestFragments(t *testing.T) {
	for _, c := range []struct{ blocks, words int }{{1, 1}, {1, 8}, {2, 9}, {3, 25}} {
		of := make([]uint32, c.blocks*c.words*32)
		for i := range of {
			of[i] = uint32(i + 1)
		}
		got, steps := Fragments(of, c.words), (c.words+7)/8
		require.Len(t, got, c.blocks*steps*8*32)
		for block := range c.blocks {
			for word := range 8 * steps {
				for half := range 2 {
					for row := range 16 {
						output, k := 4*(row%8)+2*half+row/8, word%8
						lane, i := 4*(row%8)+k%4, row/8+2*(k/4)
						want := uint32(0)
						if word < c.words {
							want = of[(block*c.words+word)*32+output]
						}
						require.Equal(t, want, got[(((block*steps+word/8)*2+half)*32+lane)*4+i])
					}
				}
			}
		}
	}
}

func TestColumns(t *testing.T) {
	weights := []uint64{0x0000000200000001, 0x0000000400000003, 0x0000000600000005, 0x0000000800000007}
	require.Equal(t, []uint32{1, 5, 2, 6, 3, 7, 4, 8}, Columns(weights, 2, 2))
	require.Equal(t, []uint32{1, 5, 0, 2, 6, 0, 3, 7, 0, 4, 8, 0}, Columns(weights, 2, 3))
}

func TestPatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, s := range sizes {
		s = s.complete()
		weights := packed(rng, s.Out*s.Taps, s.In)
		got := s.Patches(weights)
		words := (s.Taps*s.In + 31) / 32
		require.Len(t, got, s.Out*words)
		for o := range s.Out {
			for i := range words * 32 {
				want := uint32(0)
				if i < s.Taps*s.In {
					want = s.at(weights, o, i/s.In, i%s.In)
				}
				require.Equal(t, want, got[o*words+i/32]>>(i%32)&1)
			}
		}
	}
}

func TestSmall(t *testing.T) {
	require.Equal(t, []uint32{0x89abcdef, 0x01234567, 5, 0}, Rows([]uint64{0x0123456789abcdef, 5}))
	require.Nil(t, Rows(nil))
	require.Equal(t, []int32{1, 2, 9, 9}, PadTo([]int32{1, 2}, 4, 9))
	rows, cols, padded := Corrections([]int{0, 1}, []int{0, 0, 1}, []int32{1, 2, 3, 4, 5, 6}, 3, 4)
	require.Equal(t, []int32{0, 1}, rows)
	require.Equal(t, []int32{0, 0, 1}, cols)
	require.Equal(t, []int32{1, 2, 3, 0, 4, 5, 6, 0}, padded)
}
