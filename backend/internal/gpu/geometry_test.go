package gpu

import (
	"io/fs"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/kernels"
)

// TestNames compares the sizes with those that the OpenCL sources name.
func TestNames(t *testing.T) {
	used := make(map[string]bool)
	comment, word := regexp.MustCompile(`//[^\n]*`), regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b`)
	require.NoError(t, fs.WalkDir(kernels.CL, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := kernels.CL.ReadFile(path)
		for _, w := range word.FindAllString(comment.ReplaceAllString(string(text), ""), -1) {
			used[w] = true
		}
		return err
	}))
	names := make(map[string]bool)
	for _, name := range Names() {
		require.True(t, used[name], "no kernel names %s", name)
		require.False(t, names[name], "%s twice", name)
		names[name] = true
	}
	for _, f := range cudaOnly {
		_, ok := reflect.TypeFor[Geometry]().FieldByName(f)
		require.True(t, ok, f)
		// The form of a program defines TO_BITS.
		require.True(t, f == "ToBits" || !used[capitals(f)], "a kernel names %s", f)
	}
	require.Equal(t, []string{"IN_H", "IN_W", "IN_C", "IN_WORDS", "OUT_H"}, Names()[:5])
}

// TestValues: every size is in the place of its name.
func TestValues(t *testing.T) {
	for i, name := range Names() {
		var g Geometry
		f := reflect.ValueOf(&g).Elem().FieldByIndex(namedFields[i].Index)
		f.SetInt(7)
		for k, v := range g.Values() {
			if k == i {
				require.EqualValues(t, 7, v, name)
			} else {
				require.Zero(t, v, name)
			}
		}
	}
	require.Len(t, Geometry{}.Values(), len(Names()))
	require.Len(t, Names(), reflect.TypeFor[kernels.Geometry]().NumField()+1-len(cudaOnly))
}

// TestGeometry: sizes of windows in every form.
func TestGeometry(t *testing.T) {
	s := Step{Batch: 2,
		In:  plan.Tensor{DType: bcnn.Bits, Shape: bcnn.Shape{H: 11, W: 9, C: 96}},
		Out: plan.Tensor{DType: bcnn.Bits, Shape: bcnn.Shape{H: 2, W: 1, C: 66}},
	}
	op := &plan.Conv{Window: bcnn.Window{KH: 3, KW: 2, StrideH: 2, StrideW: 3, DilationH: 1, DilationW: 2, Pad: bcnn.Padding{Top: 1, Left: 2}},
		Out: 66, Groups: 3, Pool: &bcnn.Window{KH: 2, KW: 3}, Activation: plan.Activation{Kind: plan.ActivationReLU}, ZeroPoint: 9, Threshold: &plan.Threshold{Flip: []uint64{1, 0}}}
	want := Geometry{Geometry: kernels.Geometry{
		InH: 11, InW: 9, InC: 96, InWords: 4, OutH: 2, OutW: 1, OutC: 66, OutWords: 4,
		Kh: 3, Kw: 2, StrideH: 2, StrideW: 3, DilationH: 1, DilationW: 2, PadT: 1, PadL: 2,
		PoolH: 2, PoolW: 3, ConvH: 4, ConvW: 3, GroupIn: 32, GroupOut: 22, Words: 1, Blocks: 4, Taps: 3 * 2 * 32, ZeroPoint: 9,
		Activation: 1, Flip: 1, ToBits: 1, InPlanes: 1, OutPlanes: 1,
	}}
	c := s.Conv(op, 32)
	require.Equal(t, want, c.G)
	require.True(t, c.MixedLanes) // 22 outputs of a group
	require.Equal(t, Sizes{Taps: 6, In: 32, Out: 66, PerGroup: 22, Words: 1, Lanes: 32, Blocks: 3}, c.Sizes)

	// Blocks of 4 lanes for floats, groups that do not fill words.
	s.Out, s.In.Shape.C = plan.Tensor{DType: bcnn.Float32, Shape: bcnn.Shape{H: 4, W: 3, C: 66}}, 72
	op.Pool, op.Threshold, op.Scale = nil, nil, make([]float32, 66)
	want.InC, want.OutH, want.OutW, want.PoolH, want.PoolW, want.Scaled, want.Flip, want.ToBits = 72, 4, 3, 1, 1, 1, 0, 0
	want.Blocks, want.GroupIn, want.Taps, want.Words = 17, 24, 3*2*24, 2 // channels 24 to 47 touch two words
	c = s.Conv(op, 4)
	require.Equal(t, want, c.G)
	require.Equal(t, Sizes{Taps: 6, In: 24, Out: 66, PerGroup: 22, Words: 2, Lanes: 4, Blocks: 17}, c.Sizes)
	s.In.DType = bcnn.Uint8 // whose channels are no bits of words
	want.Words = 1
	require.Equal(t, want, s.Conv(op, 4).G)
	require.Equal(t, "11×9×72 → 4×3×66, window of 3×2, batch of 2", want.About(2))
}
