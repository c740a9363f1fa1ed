package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosest(t *testing.T) {
	words := []string{"model", "mode", "device", "threads", "ops", "isa", "größe"}
	for wrong, want := range map[string]string{
		"mdoel": "model", "mdel": "model", "moddel": "model", "model": "model", "devcie": "device", "treads": "threads",
		"op": "", "iso": "isa", "kernels": "", "": "", "grosse": "", "grösse": "größe", "xxxxxxxxx": "",
	} {
		require.Equal(t, want, Closest(wrong, words), wrong)
	}
	require.Equal(t, 2, distance([]rune("ca"), []rune("ac b")[:3]))
	require.Equal(t, 3, distance([]rune("kitten"), []rune("sitting")))
}
