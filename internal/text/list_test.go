package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestList(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		require.Equal(t, want, List(words, "or"))
	}
}
