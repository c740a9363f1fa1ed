package measure

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
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

// A share of the values is 0, and the others are those of images without.
func TestThin(t *testing.T) {
	shape := bcnn.Shape{H: 20, W: 20, C: 10}
	for _, d := range []bcnn.DType{bcnn.Uint8, bcnn.Float32} {
		full, thinned := bcnn.NewTensor(d, 1, shape), bcnn.NewTensor(d, 1, shape)
		RandomImages(full, NewRand(Seed))
		rng := NewRand(Seed)
		RandomImages(thinned, rng)
		thin(thinned, 0, rng)
		require.Equal(t, full, thinned)
		thin(thinned, 0.25, rng)
		zeros := 0
		for i := range shape.Values() {
			switch {
			case d == bcnn.Uint8 && thinned.U8[i] == 0, d == bcnn.Float32 && thinned.F32[i] == 0:
				zeros++
			case d == bcnn.Uint8:
				require.Equal(t, full.U8[i], thinned.U8[i])
			default:
				require.Equal(t, full.F32[i], thinned.F32[i])
			}
		}
		require.InDelta(t, 1000, zeros, 100)
	}
}

// A machine is busy where any of the times says so.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		load
		want string
	}{
		{load{10, 15, 20, 0.7}, ""},
		{load{10, 15, 0, 0}, ""},
		{load{0, 0, 0, 0}, ""},
		{load{10, 16, 40, 0.1}, "the machine was busy: the median is 1.6 times the shortest run"},
		{load{150, 173, 659, 0.1}, "the machine was busy: the mean is 3.8 times the median"},
		{load{10, 11, 12, 0.5}, "the machine was busy: the peak loops reached 50 % of their best in the median"},
	} {
		require.Equal(t, c.want, c.busy())
	}
}
