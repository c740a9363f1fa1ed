//go:build linux && (amd64 || arm64) && cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// Models of one convolution, and tensors of both orders.
func TestConv(t *testing.T) {
	dir := lib(t)
	for name, flags := range builds(dir) {
		t.Run(name, func(t *testing.T) {
			if name != "shared" {
				testenv.Long(t)
			}
			t.Parallel()
			program := compile(t, dir, "testdata/conv.c", append(flags, "-O2")...)
			require.Equal(t, "42 convolutions\n", runProgram(t, program))
		})
	}
}
