package measure

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// A batch that no memory holds is an error before anything is allocated.
func TestBatchNeedsMemory(t *testing.T) {
	plan := func(in bcnn.Shape) *plan.Plan {
		return &plan.Plan{
			Inputs:  []bcnn.Input{{DType: bcnn.Float32, Shape: in}},
			Tensors: []plan.Tensor{{DType: bcnn.Float32, Shape: in}, {DType: bcnn.Float32, Shape: bcnn.Shape{H: 1, W: 1, C: 1}}}, Outputs: []int{1},
		}
	}
	require.NoError(t, checkMemory(plan(bcnn.Shape{H: 1, W: 1, C: 1}), 1<<16))
	require.ErrorContains(t, checkMemory(plan(bcnn.Shape{H: 1 << 16, W: 1 << 12, C: 1}), 1<<16), "a batch of 65536: images and results take 70368744439808 bytes of memory")
}

func TestQuantiles(t *testing.T) {
	list := times{5, 1, 4, 2, 3, 9, 8, 7, 6, 10}
	require.Equal(t, time.Duration(1), list.quantile(0))
	require.Equal(t, time.Duration(6), list.quantile(0.5))
	require.Equal(t, time.Duration(10), list.quantile(0.9))
	require.Equal(t, time.Duration(10), list.quantile(1))
	require.Equal(t, time.Duration(5), list.mean())
	require.Equal(t, time.Duration(7), times{7}.quantile(0.5))
}

func TestSamples(t *testing.T) {
	list := times{1, 3, 5, 7, 9, 11, 13}
	require.Equal(t, []Sample{{2, 2}, {2, 6}, {3, 11}}, list.samples(3))
	require.Len(t, list.samples(10), 7)
	require.Equal(t, []Sample{{7, 7}}, list.samples(1))
	require.Empty(t, times{}.samples(3))
}

func TestWriteBenchstat(t *testing.T) {
	var text strings.Builder
	list := []Sample{{3, 2 * time.Microsecond}, {4, time.Microsecond}}
	require.NoError(t, writeBenchstat(&text, "Op", []any{"op", "a b/c\n", "threads", 2}, list, 6000))
	require.Equal(t, "BenchmarkOp/op=a_b_c\\n/threads=2\t3\t2000 ns/op\t3.00 GMAC/s\n"+
		"BenchmarkOp/op=a_b_c\\n/threads=2\t4\t1000 ns/op\t6.00 GMAC/s\n", text.String())
	full := errors.New("full")
	require.ErrorIs(t, ModelResult{Samples: list}.WriteBenchstat(failing{full}), full)
	require.ErrorIs(t, WriteBenchstatHeader(failing{full}), full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Random images are the same everywhere and in every run.
func TestRandomImages(t *testing.T) {
	in := bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 1, W: 1, C: 8})
	RandomImages(in, NewRand(Seed))
	again := bcnn.NewTensor(bcnn.Uint8, 1, bcnn.Shape{H: 1, W: 1, C: 8})
	RandomImages(again, NewRand(Seed))
	require.Equal(t, in.U8, again.U8)
	RandomImages(again, NewRand(Seed+1))
	require.NotEqual(t, in.U8, again.U8)

	floats := bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 8, W: 8, C: 8})
	RandomImages(floats, NewRand(Seed))
	low, high := float32(1), float32(-1)
	for _, v := range floats.F32 {
		low, high = min(low, v), max(high, v)
	}
	require.True(t, low >= -1 && low < -0.9 && high < 1 && high > 0.9)
}

// A step takes at least the longer of its two times.
func TestBound(t *testing.T) {
	w := work{macs: 600, bytes: 100}
	for _, c := range []struct {
		peak, bandwidth, seconds float64
		by                       string
	}{
		{100, 100, 6, Arithmetic},
		{1000, 100, 1, Memory},
		{0, 100, 1, Memory},
		{100, 0, 6, Arithmetic},
		{0, 0, 0, ""},
	} {
		seconds, by := w.bound(c.peak, c.bandwidth)
		require.Equal(t, c.seconds, seconds, c)
		require.Equal(t, c.by, by, c)
	}
	seconds, by := work{bytes: 100}.bound(50, 50)
	require.Equal(t, 2.0, seconds)
	require.Equal(t, Memory, by)
}

// Only steps on ±1 values compare with the rates.
func TestWorkOf(t *testing.T) {
	net, err := zoo.New("binarynet", Seed)
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	require.Zero(t, workOf(plan, 0, 1)) // reads bytes
	// 32×32×128 bits in, 16×16×128 bits out, 3×3 kernels.
	require.Equal(t, work{macs: 3 * 32 * 32 * 128 * 128 * 9, bytes: 16 * (3*(32*32+16*16) + 128*9)}, workOf(plan, 1, 3))
}
