package gpu

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObjects(t *testing.T) {
	before := Live.Load()
	var o Objects
	require.NoError(t, o.Release())
	var order []int
	late, early := errors.New("late"), errors.New("early")
	for i, err := range []error{early, nil, late, nil} {
		o.Add(func() error {
			order = append(order, i)
			return err
		})
	}
	require.Equal(t, before+4, Live.Load())
	require.Equal(t, late, o.Release()) // of which the release came first
	require.Equal(t, []int{3, 2, 1, 0}, order)
	require.Equal(t, before, Live.Load())
	require.NoError(t, o.Release())
	require.Equal(t, []int{3, 2, 1, 0}, order)
}
