package tflite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The largest sizes and strides that an image may have, and one more.
func TestLargestSizes(t *testing.T) {
	resize := func(rows int32) *testGraph {
		return with("RESIZE_NEAREST_NEIGHBOR", nil, []int32{1, rows, 1, 2}, func(g *testGraph, o *testOperator) {
			o.inputs = append(o.inputs, g.ints(rows, 1))
		})
	}
	stride := func(rows int) *testGraph {
		return with("MAX_POOL_2D", map[int]any{0: uint8(1), 1: 1, 2: rows, 3: 1, 4: 1}, []int32{1, 1, 4, 2}, nil)
	}
	for _, g := range []*testGraph{resize(maxSide), stride(maxSide)} {
		_, _, err := Decode(t.Context(), g.encode(), Options{Name: "net"})
		require.NoError(t, err)
	}
	refused(t, resize(maxSide+1).encode(), "the new size [65537 1] is not a valid height and width")
	refused(t, stride(maxSide+1).encode(), "stride 65537×1")
}
