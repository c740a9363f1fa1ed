package try

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// beyond panics as Go does itself.
func beyond(list []int) int { return list[len(list)] }

// Any panic becomes an error that can be told from others, and says where it was: through
// Do, too, which lets it pass.
func TestDoSafely(t *testing.T) {
	for name, f := range map[string]func() int{
		"index":   func() int { return beyond(nil) },
		"through": func() int { return Value(Do(func() int { return beyond([]int{1}) })) },
		"again":   func() int { return Value(DoSafely(func() int { return beyond(nil) })) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DoSafely(f)
			require.ErrorIs(t, err, ErrPanic)
			var p *Panic
			require.ErrorAs(t, fmt.Errorf("node 1: %w", err), &p)
			require.Regexp(t, `^internal error at try\.beyond \(panic_test\.go:13\): runtime error: index out of range \[\d\] with length \d; this is a bug of the importer, please report it$`, err.Error())
			require.Contains(t, string(p.Stack), "try.beyond(")
			require.Equal(t, p.Stack, p.Panicked())
		})
	}
}

// Failures are the errors that they are, and results pass.
func TestDoSafelyOrdinary(t *testing.T) {
	_, err := DoSafely(func() int { Check(errFirst); return 1 })
	require.Equal(t, errFirst, err)
	require.NotErrorIs(t, err, ErrPanic)
	v, err := DoSafely(func() int { return 3 })
	require.NoError(t, err)
	require.Equal(t, 3, v)
}

// What a file may have named is escaped, and cut.
func TestPanicText(t *testing.T) {
	_, err := DoSafely(func() int { panic("name\x1b[31m" + strings.Repeat("x", 1000)) })
	require.ErrorIs(t, err, ErrPanic)
	require.Contains(t, err.Error(), `name\x1b[31mxxx`)
	require.Less(t, len(err.Error()), 400)
	_, err = DoSafely(func() int { panic(errors.New("an error")) })
	require.ErrorContains(t, err, ": an error;")
	require.NotErrorIs(t, err, errFirst)
}
