package darknet

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// A panic in what reads a section is an error that names it.
func TestPanicOfSection(t *testing.T) {
	before := kinds["avgpool"]
	defer func() { kinds["avgpool"] = before }()
	kinds["avgpool"] = func(s *section) layer { return []layer{}[s.number] }
	_, _, err := Decode(t.Context(), []byte(net8+"[avgpool]"), header(0, 2), Options{})
	require.ErrorIs(t, err, try.ErrPanic)
	require.Regexp(t, `^node "layer_00" \(avgpool, index 0\): internal error at darknet\.TestPanicOfSection\S* \(panic_test\.go:\d+\): runtime error: index out of range`, err.Error())
}

// failing is a context that panics once it was asked so often whether it has ended.
type failing struct {
	context.Context
	left *int
}

func (c failing) Err() error {
	if *c.left--; *c.left < 0 {
		panic(errors.New("asked too often"))
	}
	return c.Context.Err()
}

// A panic anywhere is an error of Decode.
func TestPanicAnywhere(t *testing.T) {
	m := newModel(2, 2, 3)
	m.convolution("activation=leaky", false)
	for n := 0; ; n++ {
		left := n
		net, report, err := Decode(failing{t.Context(), &left}, []byte(m.cfg.String()), m.weights, Options{})
		if err == nil {
			require.Positive(t, n)
			require.NotNil(t, net)
			return
		}
		require.ErrorIs(t, err, try.ErrPanic)
		require.ErrorContains(t, err, ".failing.Err (panic_test.go:")
		require.Nil(t, net)
		require.Nil(t, report)
	}
}
