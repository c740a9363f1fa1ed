package sets

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
)

func TestNarrowAndJoin(t *testing.T) {
	forEachOwn(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		for _, n := range sizes {
			src := randomWords(rng, n)
			if n > 0 { // nothing beside it is read
				words := fenced(t, 8*n)
				fencedWords := unsafe.Slice((*uint64)(unsafe.Pointer(&words[0])), n)
				copy(fencedWords, src)
				src = fencedWords
			}
			dst := make([]uint32, n+2)
			s.Narrow(dst[1:n+1], src)
			for i, v := range src {
				requireEqual(t, uint32(v), dst[i+1])
			}
			require.Zero(t, dst[0])
			require.Zero(t, dst[n+1])

			for _, taps := range []int{1, 2, 3, 5, 32} {
				step, shift := rng.IntN(40), 1+rng.IntN(32/taps)
				all := fenced(t, max(4*(n+(taps-1)*step), 1))[:4*(n+(taps-1)*step)]
				from := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(all))), len(all)/4)
				for i := range from {
					from[i] = rng.Uint32() & (1<<shift - 1)
				}
				clear(dst)
				s.Join(dst[1:n+1], from, taps, step, shift)
				for i := range n {
					want := uint32(0)
					for k := range taps {
						want |= from[i+k*step] << (k * shift)
					}
					requireEqual(t, want, dst[i+1], "%d taps, step %d, shift %d", taps, step, shift)
				}
				require.Zero(t, dst[0])
				require.Zero(t, dst[n+1])
			}
		}
	})
}

func TestParities(t *testing.T) {
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Wide == nil || s.Wide.Parities == nil {
			return
		}
		for n := range 70 {
			got, check := unaligned(t, 4*n+4, 4)
			dst := unsafe.Slice((*uint32)(unsafe.Pointer(&got[0])), n+1)
			want := make([]uint32, n+1)
			for i := range dst {
				dst[i] = rng.Uint32()
				want[i] = dst[i]
				if 0 < i && i < n {
					want[i] ^= want[i-1]
				}
			}
			s.Wide.Parities(dst[:n])
			check()
			require.Equal(t, want, dst)
		}
	})
}

func TestExpand(t *testing.T) {
	src := []uint32{0x76543210, 0xfedcba98, 0}
	dst := make([]uint8, 24)
	generic.Expand(dst, src)
	for i := range 16 {
		require.EqualValues(t, i<<4, dst[i])
	}
	require.Equal(t, make([]uint8, 8), dst[16:])
	generic.ExpandBytes(dst, src[1:])
	require.Equal(t, []uint8{0x00, 0x13, 0x40, 0x17, 0x80, 0x1b, 0xc0, 0x1f}, dst[:8])
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Wide == nil {
			return
		}
		require.Equal(t, s.Wide.Nibbles, s.Wide.Expand != nil)
		for _, f := range []struct {
			set, generic func(dst []uint8, src []uint32)
		}{
			{s.Wide.Expand, generic.Expand}, {s.Wide.ExpandBytes, generic.ExpandBytes},
		} {
			for n := 0; n < 40 && f.set != nil; n++ {
				src := make([]uint32, n)
				for i := range src {
					src[i] = rng.Uint32()
				}
				want := make([]uint8, 8*n)
				f.generic(want, src)
				got, check := unaligned(t, 8*n, 4)
				f.set(got, src)
				check()
				require.Equal(t, want, append([]uint8{}, got...))
			}
		}
	})
}
