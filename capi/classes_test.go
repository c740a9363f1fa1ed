//go:build linux && (amd64 || arm64) && cgo

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/vision"
)

// TestClasses compares what a C program makes of scores with package vision.
func TestClasses(t *testing.T) {
	want := make([]float64, 4)
	for _, c := range vision.TopK([]float32{0.5, 3, -1, 3}, nil, 4) {
		want[c.Index] = c.Probability
	}
	dir := lib(t)
	var got []float64
	for _, field := range strings.Fields(runProgram(t, compile(t, dir, "testdata/check.c", shared(dir)...), "classes")) {
		p, err := strconv.ParseFloat(field, 64)
		require.NoError(t, err)
		got = append(got, p)
	}
	require.Equal(t, want, got)
}
