package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// TestDenseInBatches has dense layers of batches of which some are multiplied at a time, and of what is left
// of them.
func TestDenseInBatches(t *testing.T) {
	isas := sets.Names()
	if testing.Short() || raceEnabled {
		isas = isas[:1]
	}
	for i, c := range []struct {
		h, w, c, out, batch int
		float               bool
	}{
		{1, 1, 784, 64, 64, false},
		{1, 1, 100, 65, 40, false},
		{2, 3, 64, 1000, 150, true},
		{3, 1, 128, 128, 33, false},
		{1, 1, 70, 20, 32, true},
		{1, 1, 30000, 16, 64, true}, // of which few fit into the cache
		{2, 2, 20, 64, 70, false},   // whose pixels are not whole words
		{1, 1, 512, 96, 15, true},
	} {
		p := newPlanner(uint64(i), input(bcnn.Float32, c.h, c.w, c.c))
		p.sign()
		p.conv(convOptions{window: bcnn.Window{KH: c.h, KW: c.w}, out: c.out, dense: true, float: c.float, end: p.anyActivation()})
		made := p.done()
		for _, isa := range isas {
			set, err := sets.Lookup(isa)
			require.NoError(t, err)
			e, err := newExecutable(t.Context(), made, set, driver.Config{MaxBatch: c.batch, Threads: 1 + i%3, ISA: isa, ArenaBytes: 1 << 30})
			require.NoError(t, err)
			if set.Matrix != nil && set.Matrix.Always {
				require.Equal(t, i < 5, strings.Contains(e.Explain()[1].Kernel, "products of matrices"), "case %d", i)
			}
			for _, n := range []int{c.batch, 1, min(c.batch, 37), c.batch - 1} {
				in := p.input(n)
				want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
				require.NoError(t, err)
				requireOutputs(t, e, want, in, fmt.Sprintf("case %d, %s, %d images", i, isa, n))
			}
			require.NoError(t, e.Close())
		}
	}
}
