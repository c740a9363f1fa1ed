package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 images", 1: "1 image", 2: "2 images"} {
		require.Equal(t, want, Count(n, "image"))
	}
}
