package sets

import (
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// TestSignals interrupts kernels by the signal that the runtime has for it: what they
// have in registers, and modes that they are in, must be there again.
func TestSignals(t *testing.T) {
	const pixels, outputs, rows, taps = 200, 64, 3, 512
	forEach(t, func(t *testing.T, s *kern.Set, rng *rand.Rand) {
		if s.Wide == nil {
			require.Contains(t, []string{"generic", "neonv7"}, s.ISA)
			return
		}
		w := s.Wide.PackBits(randomBits(rng, outputs*rows, taps), outputs, rows, taps)
		src := make([]uint8, (pixels+rows)*w.RunBytes)
		randomPatches(rng, s.Wide, w, src)
		at, class, table := make([]uint32, pixels), make([]uint32, pixels), make([]int32, kern.BlockOutputs)
		for p := range at {
			at[p] = uint32(p * w.RunBytes)
		}
		var tiles *matrixCase
		if s.Matrix != nil {
			for tiles = drawMatrixCase(t, rng); len(tiles.lines) < 100; {
				tiles = drawMatrixCase(t, rng)
			}
		}
		run := func() []int32 {
			sums := make([]int32, pixels*kern.BlockOutputs)
			if tiles != nil {
				width := tiles.panels * kern.PanelOutputs
				sums = make([]int32, len(tiles.lines)*width)
				j, part := tiles.job(unsafe.Pointer(&sums[0]), 4*width)
				tiles.filter(s.Matrix).Sums32(j, part)
				return sums
			}
			w.ConvSums(&kern.ConvJob{
				Dst: unsafe.Pointer(&sums[0]), DstStep: 4 * kern.BlockOutputs, Src: unsafe.Pointer(&src[0]),
				At: &at[0], Class: &class[0], Table: unsafe.Pointer(&table[0]), Pixels: pixels,
			}, 0, w.RunBytes)
			return sums
		}
		want := run()
		sent, stop, stopped := make(chan error, 1), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				err := syscall.Kill(syscall.Getpid(), syscall.SIGURG)
				select {
				case sent <- err:
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		}()
		require.NoError(t, <-sent) // from here on they come
		for range 30 {
			require.Equal(t, want, run())
		}
		close(stop)
		<-stopped
	})
}
