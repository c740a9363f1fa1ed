//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/kernels"
)

// TestProbe spoils the probe as a driver would that computes something else.
func TestProbe(t *testing.T) {
	d := testDevice(t)
	before := gpu.Live.Load()
	source, err := kernels.CL.ReadFile("cl/probe.cl")
	require.NoError(t, err)
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{"a * b + c", "fma(a, b, c)", "products that are rounded before they are added to"},
		{"p * a + b", "fma(p, a, b)", "products that are rounded before they are added to"},
		{"fma(a, b, c)", "a * b + c", "fma"},
		{"= a * b;", "= fabs(a * b) < 0x1p-126f ? 0.0f : a * b;", "denormals"},
		{"= in[3 * i]", "= fabs(in[3 * i]) < 0x1p-126f ? copysign(0.0f, in[3 * i]) : in[3 * i]", "denormals"},
		{"fma(a, b, c)", "(a * b == 0.0f && c == 0.0f ? a * b : fma(a, b, c))", "fma"}, // -0 of -3·0 + 0, as rusticl
		{"fma(a, b, c)", "(fma(a, b, c) == 0.0f ? -0.0f : fma(a, b, c))", "fma"},
		{"fma(a, b, c)", "(fabs(fma(a, b, c)) < 0x1p-126f ? 0.0f * fma(a, b, c) : fma(a, b, c))", "denormals"},
	} {
		text := strings.Replace(string(source), c.from, c.to, 1)
		require.Equal(t, c.from == "", text == string(source))
		lack, err := d.probeSource(text)
		require.NoError(t, err)
		want := ""
		if c.want != "" {
			want = "its float32 arithmetic lacks " + c.want
		}
		require.Equal(t, want, lack, c.to)
	}
	_, err = d.probeSource("this is no program")
	require.ErrorContains(t, err, "probe of its arithmetic: ")
	require.Equal(t, before, gpu.Live.Load())
}
