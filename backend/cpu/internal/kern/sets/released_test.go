//go:build amd64 && linux && cgo && amxemulated

package sets

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/amxemulator"
)

// TestReleased: kernels leave the tiles of their thread as they were.
func TestReleased(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	forEachMatrix(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		c := drawMatrixCase(t, rng)
		width := c.panels * kern.PanelOutputs
		f, out := c.filter(s.Matrix), make([]int32, len(c.lines)*width)
		kernels := map[string]func(j *kern.MatrixJob, part *kern.MatrixPart){
			"Bits": f.Bits, "Sums32": f.Sums32,
			"Floats": func(j *kern.MatrixJob, part *kern.MatrixPart) { f.Floats(j, part, &kern.End{}, &kern.End{}, nil) },
			"Levels": func(j *kern.MatrixJob, part *kern.MatrixPart) {
				ones := make([]float32, width)
				for i := range ones {
					ones[i] = 1
				}
				f.Levels(j, part, &kern.End{}, nil, &kern.Levels{Scale: ones, Shift: make([]float32, width), Most: 1}, &kern.End{}, nil)
			},
		}
		for name, kernel := range kernels {
			j, part := c.job(unsafe.Pointer(&out[0]), 4*width)
			j.Flip = unsafe.Pointer(&make([]uint8, 2*c.panels)[0])
			kernel(j, part)
			require.True(t, amxemulator.Released(), name)
		}
	})
}
