package onnx

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/npy"
)

// TestNearestPixels compares with ONNX Runtime: train/onnx_resize.py.
func TestNearestPixels(t *testing.T) {
	file, err := os.Open("testdata/resize.npz")
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := npy.Open(file, info.Size())
	require.NoError(t, err)
	require.Len(t, f.Names(), 6*4)
	for _, name := range f.Names() {
		a, err := f.Read(name)
		require.NoError(t, err)
		values := make([]float64, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		coordinates, nearest, _ := strings.Cut(name, " ")
		r := resizing{mode: "nearest", coordinates: coordinates, nearest: nearest}
		for from := 1; from <= a.Shape[0]; from++ {
			for to := 1; to <= a.Shape[1]; to++ {
				want := make([]int32, to)
				for i := range want {
					want[i] = int32(values[i])
				}
				require.Equal(t, want, r.positions(from, to, float32(to)/float32(from)), "%s, %d to %d", name, from, to)
				values = values[a.Shape[2]:]
			}
		}
	}
}

// A filter that grows with what is left out weighs all pixels, by definition: each by its
// distance to the middle of the new one. What lies outside counts as the pixel at the border,
// or not at all.
func TestFilteredPixels(t *testing.T) {
	triangle := func(d float64) float64 { return max(0, 1-d) }
	cubic := func(d float64) float64 { // of Keys, with a = −½
		switch {
		case d <= 1:
			return 1.5*d*d*d - 2.5*d*d + 1
		case d < 2:
			return -0.5*d*d*d + 2.5*d*d - 4*d + 2
		}
		return 0
	}
	for mode, f := range map[string]func(float64) float64{"linear": triangle, "cubic": cubic} {
		for _, exclude := range []bool{false, true} {
			for from := 1; from < 9; from++ {
				for to := 1; to < 12; to++ {
					r := resizing{mode: mode, coordinates: "half_pixel", cubic: -0.5, exclude: exclude, antialias: true}
					scale := float64(to) / float64(from)
					taps := r.filtered(from, to, float32(scale))
					require.Len(t, taps.Index, taps.N*to)
					require.LessOrEqual(t, taps.N, from)
					for i := range to {
						want, sum := make([]float64, from), 0.0
						for at := -40; at < 60; at++ {
							w := f(math.Abs(float64(at)+0.5-(float64(i)+0.5)/scale) * min(scale, 1))
							if exclude && (at < 0 || at >= from) {
								continue
							}
							want[max(0, min(at, from-1))] += w
							sum += w
						}
						got := make([]float64, from)
						for k := range taps.N {
							got[taps.Index[i*taps.N+k]] += float64(taps.Weight[i*taps.N+k])
						}
						for k := range want {
							require.InDelta(t, want[k]/sum, got[k], 1e-5, fmt.Sprint(mode, exclude, from, to, i, k))
						}
					}
				}
			}
		}
	}
}
