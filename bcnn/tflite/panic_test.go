package tflite

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// A panic in a handler is an error of its operator, beside those of others.
func TestPanicOfOperator(t *testing.T) {
	for name, table := range map[string]func(){
		"of a value": func() {
			handlers["NEG"] = func(_ *importer, o *schema.Operator) []operand { return []operand{{}}[len(o.Inputs)+1:] }
		},
		"of a constant": func() {
			folders["NEG"] = func(*importer, *schema.Operator) *constant { var c *constant; return &constant{dims: c.dims} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			value, folder := handlers["NEG"], folders["NEG"]
			defer func() { handlers["NEG"], folders["NEG"] = value, folder }()
			table()
			g := newGraph(1, 3)
			in := int32(0)
			if name == "of a constant" {
				in = g.floats([]int32{3}, 1, 2, 3)
			}
			n := g.add("NEG", nil, []int32{1, 3}, in)
			g.tensors[n].name = "minus"
			c := g.add("COS", nil, []int32{1, 3}, 0)
			g.outputs[0] = g.add("ADD", nil, []int32{1, 3}, n, c)
			net, _, err := Decode(t.Context(), g.encode(), Options{})
			require.Nil(t, net)
			require.ErrorIs(t, err, try.ErrPanic)
			var all *bcnn.ObstaclesError
			require.ErrorAs(t, err, &all)
			require.Len(t, all.Obstacles, 2)
			require.Regexp(t, `^node "minus" \(NEG, index 0\): internal error at tflite\.TestPanicOfOperator\S* \(panic_test\.go:\d+\): runtime error: .*; this is a bug of the importer, please report it$`, all.Obstacles[0].String())
			require.NotErrorIs(t, all.Obstacles[1].Err, try.ErrPanic)
		})
	}
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
	for _, f := range lceFiles(t) {
		if f.name != "net_joined" {
			continue
		}
		for n := 0; ; n++ {
			left := n
			net, report, err := Decode(failing{t.Context(), &left}, f.data, Options{})
			if err == nil {
				require.Greater(t, n, 2)
				require.NotNil(t, net)
				return
			}
			require.ErrorIs(t, err, try.ErrPanic)
			require.ErrorContains(t, err, ".failing.Err (panic_test.go:")
			require.Nil(t, net)
			require.Nil(t, report)
		}
	}
	t.Fatal("the file is missing")
}
