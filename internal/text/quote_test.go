package text

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuote(t *testing.T) {
	for _, s := range []string{"", "a", "a\n\x1b\u202e\xff", strings.Repeat("é", 128)} {
		require.Equal(t, strconv.Quote(s), Quote(s))
	}
	x := strings.Repeat("x", 256)
	require.Equal(t, strconv.Quote(x)+"…", Quote(x+"x"))
	require.Equal(t, strconv.Quote(x)+"…", Quote(x+strings.Repeat("é", 1<<20)))
	// No character is cut in two, whatever its length.
	for _, r := range []string{"é", "車", "😀"} {
		for n := range len(r) {
			s := x[:256-n] + r + x
			require.Equal(t, strconv.Quote(x[:256-n])+"…", Quote(s), "%s %d", r, n)
		}
	}
	bytes := strings.Repeat("\x80", 300) // no characters at all
	require.Equal(t, strconv.Quote(bytes[:252])+"…", Quote(bytes))
}
