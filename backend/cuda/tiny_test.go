//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// named are so many cases whose names begin in a way, from the whole table.
func named(prefix string, n int) (some []parity.Case) {
	all := slices.DeleteFunc(parity.Cases(), func(c parity.Case) bool { return !strings.HasPrefix(c.Name, prefix) })
	for i := range min(n, len(all)) {
		some = append(some, all[i*len(all)/min(n, len(all))])
	}
	return some
}

// TestTiny is a small table for tools that slow the kernels down a hundred times:
// every kind of kernels on some cases of every kind of step.
func TestTiny(t *testing.T) {
	const candidates, of = 16, 160
	testenv.Long(t) // the stage parity forces kernels, on more cases
	for pick := range candidates {
		t.Run(fmt.Sprint(pick), func(t *testing.T) {
			d := unsharedDevice(t)
			d.pick = pick
			requireParity(t, d, backend.Options{}, everyNth(of, 7*pick))
		})
	}
	for i, variant := range kernelNames {
		t.Run(variant, func(t *testing.T) {
			cases := everyNth(of, 5*i)
			if variant == gpu.Patches { // long sums, channels that leave lanes without work, the paper's dense layers
				cases = slices.Concat(cases, named("conv/bits/4x3x512/", 2), named("dense/bits/1x1x1000/", 2))
			}
			requireParity(t, unsharedDevice(t), backend.Options{Kernels: variant}, cases)
		})
	}
	for pick := range candidates / 2 {
		t.Run(fmt.Sprint("bytes", pick), func(t *testing.T) {
			d := unsharedDevice(t)
			d.pick = pick
			requireParity(t, d, backend.Options{}, slices.Concat(named("bytes/k", 3+pick), named("bytes/dense/", 4), named("bytes/maxpool", 3)))
		})
	}
	// Kernels of few cases, and those that only other capabilities take.
	for kind, n := range map[string]int{"wide+gelu/float/": 3, "gelu/float/": 3, "levels/planes/": 3, "levels/from/": 10, "conv/float/": 9, "topk/": 9, "pixels/": 3, "pixels/blocks ": 9, "resample/": 3, "matmul/": 6, "transpose/": 4} {
		t.Run(strings.TrimRight(kind, "/ "), func(t *testing.T) {
			some := named(kind, n)
			require.NotEmpty(t, some)
			requireParity(t, unsharedDevice(t), backend.Options{}, some)
		})
	}
	t.Run("capability", func(t *testing.T) {
		d := unsharedDevice(t)
		for i, capability := range capabilities(d) {
			end := d.as(capability)
			requireParity(t, d, backend.Options{Kernels: gpu.TensorCore}, everyNth(of, 1+i))
			end()
		}
	})
	t.Run("image", func(t *testing.T) {
		requireParity(t, unsharedDevice(t), backend.Options{Kernels: gpu.Patches}, wholeNetworks(5, 2))
	})
	// Tensors that share memory, for what takes it too early.
	t.Run("whole", func(t *testing.T) {
		requireParity(t, testDevice(t), backend.Options{Kernels: gpu.Fused}, wholeNetworks(4, 2))
	})
}
