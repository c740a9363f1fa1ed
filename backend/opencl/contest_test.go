//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/candidates"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// TestWrongCandidate: kernels that compute something else than the others are left out, and it is
// said which. One word of the weights of each candidate in turn is another.
func TestWrongCandidate(t *testing.T) {
	d := testDevice(t)
	d.limits.GPU, d.specialiseFrom = true, 1
	before := gpu.Live.Load()
	plan, err := lower.Network(t.Context(), backendtest.OneConv(6, 3, 32, 32), lower.Options{})
	require.NoError(t, err)
	exe, err := compile(t.Context(), d, plan, backend.Options{MaxBatch: 2})
	require.NoError(t, err)
	for _, e := range d.tuning.Steps {
		require.Empty(t, e.Wrong)
	}
	const step = 1
	all, err := exe.candidates(step)
	require.NoError(t, err)
	require.Greater(t, len(all), 1)
	for k, c := range all {
		t.Run(c.Variant, func(t *testing.T) {
			some := append(slices.Clone(all), all[(k+1)%len(all)]) // so that most are right
			some[k].Specs = spoiled(c.Specs)
			key := fmt.Sprint("spoiled ", k)
			best, err := exe.measure(t.Context(), step, some, key)
			require.NoError(t, err)
			defer best.release(d)
			require.NotEqual(t, c.Variant, best.variant)
			require.Equal(t, []string{c.Variant}, d.tuning.Steps[key].Wrong)
			require.Equal(t, gpu.WhyMeasured+"; not used, as it computes wrong bits: "+c.Variant, best.why)
		})
	}
	require.NoError(t, exe.Close())
	require.Equal(t, before, gpu.Live.Load())
}

// spoiled inverts a bit of the first words that kernels are given.
func spoiled(specs []candidates.Spec) []candidates.Spec {
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Args = slices.Clone(specs[i].Args)
		for k, a := range specs[i].Args {
			if words, ok := a.([]uint32); ok && len(words) > 0 {
				words = slices.Clone(words)
				words[0] ^= 1
				specs[i].Args[k] = words
				return specs
			}
		}
	}
	return nil
}
