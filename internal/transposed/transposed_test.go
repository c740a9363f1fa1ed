package transposed

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/budget"
)

// A convolution of phases gives what adding every product to its place gives.
func TestPhases(t *testing.T) {
	const out, channels = 2, 3
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		size, kernel, stride, dilation := 1+r.IntN(5), 1+r.IntN(5), 1+r.IntN(4), 1+r.IntN(3)
		cut, wanted := r.IntN(kernel+2), 1+r.IntN(stride*size+kernel)
		b := budget.New(t.Context(), 1<<30)
		p, err := New(b, size, kernel, stride, dilation, cut, wanted)
		require.NoError(t, err)
		one, err := New(b, 1, 1, 1, 1, 0, 1)
		require.NoError(t, err)
		require.True(t, one.InOrder(1))
		weight := func(m, k, c int) int { return 1 + (m*kernel+k)*channels + c }
		rows := make([]int, stride*out*p.Window*channels)
		require.NoError(t, Fill(b, rows, 1, out, channels, p, one, func(_, m, ky, _, c int) int { return weight(m, ky, c) }))

		x := make([]int, size*channels)
		for i := range x {
			x[i] = r.IntN(100) - 50
		}
		want := make([]int, wanted*out)
		for i, v := range x {
			for k := range kernel {
				at := i/channels*stride + k*dilation - cut
				for m := range out {
					if at >= 0 && at < wanted {
						want[at*out+m] += v * weight(m, k, i%channels)
					}
				}
			}
		}
		got := make([]int, wanted*out)
		for i, at := range p.Positions {
			block, phase := int(at)/stride, int(at)%stride
			require.Less(t, block, p.Output(size))
			for m := range out {
				for tap := range p.Window {
					for c := range channels {
						if y := block + tap - p.Before; y >= 0 && y < size {
							got[i*out+m] += x[y*channels+c] * rows[((phase*out+m)*p.Window+tap)*channels+c]
						}
					}
				}
			}
		}
		require.Equal(t, want, got, "size %d, kernel %d, stride %d, dilation %d, cut %d", size, kernel, stride, dilation, cut)
	}
}
