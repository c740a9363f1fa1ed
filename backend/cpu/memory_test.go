package cpu

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Blocks of memory start at a line of the cache, whatever place the allocator finds for them.
func TestAlignedBytes(t *testing.T) {
	var kept [][]byte // so that each is somewhere else
	for range 20 {
		for n := range 300 {
			b := alignedBytes(n)
			require.Len(t, b, n)
			require.Equal(t, n, cap(b))
			if n > 0 {
				require.Zero(t, uintptr(unsafe.Pointer(&b[0]))%64, n)
			}
			kept = append(kept, b)
		}
	}
	for _, n := range []int{4096, 65537, 1 << 20} {
		require.Len(t, alignedBytes(n), n)
	}
	require.Len(t, kept, 20*300)
}

// Tensors are moved up so that each starts elsewhere within its page; those at one place stay
// together, and those without a place have none.
func TestSpreadPlaces(t *testing.T) {
	for _, c := range []struct {
		name    string
		offsets []int64
		bytes   int64
		want    []int64
		more    int64
	}{
		{"none", nil, 0, nil, 0},
		{"one", []int64{0}, 64, []int64{0}, 0},
		{"pages", []int64{0, 4096, 8192}, 12288, []int64{0, 4096 + 1088, 8192 + 2*1088}, 2 * 1088},
		{"in any order", []int64{8192, -1, 0, 4096, 8192}, 12288, []int64{8192 + 2*1088, -1, 0, 4096 + 1088, 8192 + 2*1088}, 2 * 1088},
		{"at such places already", []int64{0, 1088, 2176, 4096 + 3264}, 8192, []int64{0, 1088, 2176, 4096 + 3264}, 0},
		{"behind it", []int64{0, 1152}, 2048, []int64{0, 4096 + 1088}, 4096 + 1088 - 1152},
		{"more than a page of them", []int64{0, 64, 128, 192, 256}, 320, []int64{0, 1088, 2176, 3264, 4352}, 4352 - 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Placement{Offsets: slices.Clone(c.offsets), Bytes: c.bytes}
			spread(&p)
			require.Equal(t, c.want, p.Offsets)
			require.Equal(t, c.bytes+c.more, p.Bytes)
		})
	}
}

// The largest byte of a tensor is that of the step that makes its levels, or of what a pool
// picks from.
func TestLargest(t *testing.T) {
	p := newPlanner(1, input(bcnn.Uint8, 4, 4, 8))
	p.step("affine", &plan.Affine{}, bcnn.Float32, p.last().Shape)
	for _, levels := range []int{2, 16, 256, 300} {
		p.step("levels", &plan.Quantize{Levels: levels, Thresholds: make([]float32, levels-1)}, bcnn.Uint8, p.last().Shape)
		p.plan.Steps[len(p.plan.Steps)-1].In = []int{1}
	}
	p.step("pool", &plan.MaxPool{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}}, bcnn.Uint8, p.last().Shape)
	p.plan.Steps[len(p.plan.Steps)-1].In = []int{3}
	require.Equal(t, []uint8{math.MaxUint8, math.MaxUint8, 1, 15, 255, 255, 15}, largest(&p.plan))
}

// compileWith is an executable of the best set of kernels.
func compileWith(t *testing.T, plan *plan.Plan, c driver.Config) *executable {
	t.Helper()
	set, err := sets.Lookup(c.ISA)
	require.NoError(t, err)
	c.ISA, c.MaxBatch, c.Threads = set.ISA, max(c.MaxBatch, 1), max(c.Threads, 1)
	if c.ArenaBytes == 0 {
		c.ArenaBytes = 1 << 30
	}
	e, err := newExecutable(t.Context(), plan, set, c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}
