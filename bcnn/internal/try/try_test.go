package try

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var errFirst = errors.New("first")

// Every way to fail ends what Do waits for, with the error as it was given.
func TestDo(t *testing.T) {
	for name, fail := range map[string]func(){
		"Fail":   func() { Fail(errFirst) },
		"Failf":  func() { Failf("wrapped: %w", errFirst) },
		"Errorf": func() { panic(Errorf("%w", errFirst)) },
		"Check":  func() { Check(errFirst) },
		"Value":  func() { Value(1, errFirst) },
		"Values": func() { Values(1, "", errFirst) },
		"nested": func() { Value(Do(func() int { Check(errFirst); return 1 })) },
	} {
		t.Run(name, func(t *testing.T) {
			after := false
			_, err := Do(func() int { fail(); after = true; return 2 })
			require.ErrorIs(t, err, errFirst)
			require.False(t, after)
		})
	}
}

func TestDoReturns(t *testing.T) {
	v, err := Do(func() string {
		Check(nil)
		n, s := Values(Value(2, nil), "two", nil)
		return fmt.Sprint(n, s)
	})
	require.NoError(t, err)
	require.Equal(t, "2two", v)
}

func TestRun(t *testing.T) {
	require.NoError(t, Run(func() {}))
	require.ErrorIs(t, Run(func() { Check(errFirst) }), errFirst)
}

// Other panics are none of its business.
func TestCatchOther(t *testing.T) {
	require.PanicsWithValue(t, "other", func() { _, _ = Do(func() int { panic("other") }) })
	require.Panics(t, func() { _, _ = Do(func() int { var list []int; return list[len(list)] }) })
}
