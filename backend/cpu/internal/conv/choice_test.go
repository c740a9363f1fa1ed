package conv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// TestSumTiles: a tile of several rows has as many channels as their float32 weights let the cache hold.
func TestSumTiles(t *testing.T) {
	of64 := 4 * bits.WordBits * 9 * 512 // bytes
	fit := max(schedule.L2()/2/of64, 1) * bits.WordBits
	for _, c := range []struct {
		in            bcnn.DType
		out, groups   int
		height, block int
	}{
		{bcnn.Float32, 2048, 1, 4, min(fit, 2048)},
		{bcnn.Float32, 64, 1, 4, 64},
		{bcnn.Float32, 2048, 2, 4, 2048}, // groups stay together
		{bcnn.Float32, 2048, 1, 1, 2048}, // weights are read once
		{bcnn.Uint8, 2048, 1, 4, 2048},
	} {
		ctx := &schedule.Context{Threads: 1}
		rows, block := sumTiles(ctx, &plan.Conv{Out: c.out, Groups: c.groups}, geometry(3, 512, 1, 1, 1), c.in, c.height, 1e6)
		require.Equal(t, c.height, rows, "%+v", c)
		require.Equal(t, c.block, block, "%+v: %s", c, ctx.Choice.Why)
	}
}

// wide are instruction sets with kernels for many channels, without any kernel.
func wide(nibbles bool) *kern.Set {
	return &kern.Set{Wide: &kern.Wide{MaxTaps: 5000, Nibbles: nibbles}}
}

func geometry(k, channels, groups, pad, dilation int) window {
	op := &plan.Conv{Groups: groups, Window: bcnn.Window{
		KH: k, KW: k, StrideH: 1, StrideW: 1, DilationH: dilation, DilationW: dilation,
		Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad},
	}}
	side := 20 + 2*pad - dilation*(k-1)
	return newWindow(op, bcnn.Shape{H: 20, W: 20, C: channels}, side, side)
}

func TestPickKernel(t *testing.T) {
	narrow := generic.Set()
	for _, c := range []struct {
		set                      *kern.Set
		in                       bcnn.DType
		k, channels, out, groups int
		want                     kernel
	}{
		{wide(false), bcnn.Float32, 3, 64, 64, 1, sumsKernel},
		{wide(false), bcnn.Bits, 3, 64, 64, 1, wideKernel},
		{wide(false), bcnn.Uint8, 3, 3, 64, 1, wideKernel},
		{&narrow, bcnn.Bits, 3, 64, 64, 1, sumsKernel},
		{wide(false), bcnn.Bits, 9, 64, 64, 1, sumsKernel}, // 5184 taps
		{wide(false), bcnn.Uint8, 9, 64, 64, 1, wideKernel},
		{&narrow, bcnn.Bits, 3, 70, 70, 70, slicedKernel},
		{wide(false), bcnn.Bits, 17, 70, 70, 70, sumsKernel}, // 289 taps
		{wide(false), bcnn.Uint8, 3, 70, 70, 70, sumsKernel},
		{wide(false), bcnn.Bits, 3, 70, 140, 70, sumsKernel}, // two filters a channel
		{wide(false), bcnn.Bits, 3, 64, 128, 2, wideKernel},
		{wide(false), bcnn.Bits, 3, 64, 64, 2, sumsKernel},
		{wide(false), bcnn.Bits, 3, 60, 128, 2, sumsKernel},
		{wide(false), bcnn.Uint8, 3, 60, 128, 2, wideKernel},
		{wide(false), bcnn.Uint8, 3, 64, 64, 2, sumsKernel}, // weights of ±1 are no 0
	} {
		op := &plan.Conv{Out: c.out, Groups: c.groups}
		got, why := pickKernel(&schedule.Context{Set: c.set}, op, geometry(c.k, c.channels, c.groups, 1, 1), c.in)
		require.Equal(t, c.want, got, "%+v: %s", c, why)
		require.NotEmpty(t, why)
	}
	// Bit planes: in the kernel where it has as many, else added up in memory.
	some := wide(false)
	some.Wide.MaxPlanes = 2
	short := wide(false) // sums of 576 taps fit, not 3 times as many
	short.Wide.MaxPlanes, short.Wide.MaxTaps = 2, 1000
	for _, c := range []struct {
		set             *kern.Set
		in, out, groups int
		want            kernel
	}{
		{some, 2, 2, 1, wideKernel}, {some, 1, 2, 1, wideKernel}, {some, 3, 1, 1, wideSums}, {some, 2, 4, 1, wideSums},
		{short, 1, 2, 1, wideKernel}, {short, 2, 2, 1, wideSums},
		{wide(false), 2, 1, 1, wideSums}, {some, 2, 1, 2, sumsKernel}, {&narrow, 2, 2, 1, sumsKernel}, {some, 2, 1, 64, sumsKernel},
	} {
		op := &plan.Conv{
			Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1},
			Out:    64, Groups: c.groups, InPlanes: c.in, OutPlanes: c.out,
		}
		w := newWindow(op, bcnn.Shape{H: 12 * c.in, W: 12, C: 64}, 10, 10)
		got, why := pickKernel(&schedule.Context{Set: c.set}, op, w, bcnn.Bits)
		require.Equal(t, c.want, got, "%+v: %s", c, why)
	}
}

func TestPickLayout(t *testing.T) {
	for _, c := range []struct {
		k, channels, groups, pad, dilation int
		nibbles                            bool
		want                               rowLayout
	}{
		{3, 64, 1, 0, 1, false, rowsInPlace},
		{3, 64, 1, 0, 1, true, paddedRows},
		{3, 64, 1, 1, 1, false, paddedRows},
		{3, 64, 1, 1, 2, false, paddedRows},
		{3, 128, 2, 0, 1, false, paddedRows},
		{5, 3, 1, 2, 1, false, joinedLayout},
		{5, 12, 1, 2, 1, false, joinedLayout}, // two taps in a piece
		{5, 12, 1, 2, 2, false, paddedRows},
		{5, 20, 1, 2, 1, false, paddedRows}, // 4 pieces, not 5: no gain
		{3, 33, 1, 1, 1, false, cutLayout},
		{3, 33, 1, 1, 2, false, paddedRows},
	} {
		got, why := pickLayout(&schedule.Context{Set: wide(c.nibbles)}, geometry(c.k, c.channels, c.groups, c.pad, c.dilation))
		require.Equal(t, c.want, got, "%+v: %s", c, why)
	}
}
