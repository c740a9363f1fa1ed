//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// TestTiny is a small table for tools that slow the kernels down a hundred times:
// every kind of kernels on some cases of every kind of step.
func TestTiny(t *testing.T) {
	const candidates, of = 16, 160
	for pick := range candidates {
		t.Run(fmt.Sprint(pick), func(t *testing.T) {
			d := apartDevice(t)
			d.pick = pick
			requireParity(t, d, backend.Options{}, everyNth(of, 7*pick))
		})
	}
	for i, variant := range kernelNames {
		t.Run(variant, func(t *testing.T) {
			requireParity(t, apartDevice(t), backend.Options{Kernels: variant}, everyNth(of, 5*i))
		})
	}
	t.Run("image", func(t *testing.T) {
		requireParity(t, apartDevice(t), backend.Options{Kernels: gpu.Patches}, wholeNetworks(5, 2))
	})
	// Tensors that share memory, for what takes it too early.
	t.Run("whole", func(t *testing.T) {
		requireParity(t, testDevice(t), backend.Options{Kernels: gpu.Fused}, wholeNetworks(4, 2))
	})
}
