package bits_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func TestMaxPlanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	number := func(words []uint64, step, planes, i int) (n int) {
		for j := range planes {
			n |= int(words[j*step]>>i&1) << j
		}
		return n
	}
	for planes := 1; planes <= 4; planes++ {
		a, b := make([]uint64, 3*planes), make([]uint64, 2*planes)
		for _, s := range [][]uint64{a, b} {
			for i := range s {
				s[i] = rng.Uint64()
			}
		}
		got := append([]uint64{}, a...)
		bits.MaxPlanes(got, 3, b, 2, planes)
		for i := range 64 {
			require.Equal(t, max(number(a, 3, planes, i), number(b, 2, planes, i)), number(got, 3, planes, i))
		}
		for i := range got {
			if i%3 != 0 { // between planes
				require.Equal(t, a[i], got[i])
			}
		}
	}
}

func TestMaxPlanesOfRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for planes := 1; planes <= 4; planes++ {
		for _, window := range []int{1, 2, 3} {
			const outputs, step = 4, 2
			n := outputs*window - window/2
			plane := outputs*step + 1
			dst, src := make([]uint64, planes*plane), make([]uint64, planes*n)
			for _, s := range [][]uint64{dst, src} {
				for i := range s {
					s[i] = rng.Uint64()
				}
			}
			want := append([]uint64{}, dst...)
			for x := range n {
				bits.MaxPlanes(want[x/window*step:], plane, src[x:], n, planes)
			}
			bits.MaxPlanesOfRow(dst, step, plane, src, window, planes)
			require.Equal(t, want, dst)
		}
	}
}
