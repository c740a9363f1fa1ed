package bmxnet

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// A panic in an operator is an error of its node, and a panic in Go's own words.
func TestPanicOfNode(t *testing.T) {
	before := operators["clip"]
	defer func() { operators["clip"] = before }()
	operators["clip"] = func(im *importer, n *node) value { return im.values[len(im.values)] }
	g := newGraph()
	g.op("clip", nil)
	_, _, err := Decode(t.Context(), g.symbol(), g.file(), fuzzShape)
	require.ErrorIs(t, err, try.ErrPanic)
	require.Regexp(t, `^node "clip1" \(clip, index 1\): internal error at bmxnet\.TestPanicOfNode\S* \(panic_test\.go:\d+\): runtime error: index out of range \[2\] with length 2; this is a bug`, err.Error())
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
	g := newGraph()
	g.op("Flatten", nil)
	for n := 0; ; n++ {
		left := n
		net, report, err := Decode(failing{t.Context(), &left}, g.symbol(), g.file(), fuzzShape)
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
