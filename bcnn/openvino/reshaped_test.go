package openvino

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// A new shape is that of as many values, and shapes without any or without a batch have none.
func TestReshaped(t *testing.T) {
	for _, c := range []struct {
		dims []int
		list []int64
		want []int
		err  string
	}{
		{[]int{2, 6}, []int64{3, -1}, []int{3, 4}, ""},
		{[]int{-1, 6}, []int64{batchSize, 3, -1}, []int{-1, 3, 2}, ""},
		{[]int{}, []int64{1}, []int{1}, ""},
		{[]int{0}, []int64{1}, nil, "has no values"},
		{[]int{0, 4}, []int64{4}, nil, "has no values"},
		{[]int{0, 4}, []int64{-1, 4}, nil, "has no values"},
		{[]int{}, []int64{batchSize}, nil, "in another place"},
		{[]int{4}, []int64{3}, nil, "cannot become"},
	} {
		got, err := try.DoSafely(func() []int { return reshaped(c.dims, c.list, false) })
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v → %v", c.dims, c.list)
			require.NotContains(t, err.Error(), "internal error")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}
