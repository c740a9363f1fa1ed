package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/kernels"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

func TestBinarizedForConv(t *testing.T) {
	for scheme, want := range map[vehiclenet.InputScheme]bool{"none": false, "rgb": true, "grey": true, "lbp": true} {
		net, err := vehiclenet.Topology(scheme, 6, 1)
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		require.Equal(t, want, BinarizedForConv(plan), scheme)
		if !want {
			continue
		}
		// Nobody else may want the bits.
		last := &plan.Steps[len(plan.Steps)-1]
		last.In = append(last.In, plan.Steps[0].Out)
		require.False(t, BinarizedForConv(plan))
		plan.Steps = plan.Steps[:1]
		require.False(t, BinarizedForConv(plan))
	}
}

func TestPackImage(t *testing.T) {
	bits := Kernel{Name: "binarize", Args: []any{Tensor(0), Tensor(1), []int32{7}, Scratch{Which: SumMemory}, []uint32{1}},
		G: Geometry{Geometry: kernels.Geometry{InC: 4, GroupIn: 0, Scheme: 2, Parts: 32, Flip: 1}}}
	pack := Kernel{File: "patches", Name: PackPatches, Args: []any{Tensor(1), Scratch{Bytes: 9}, "local"},
		G: Geometry{Geometry: kernels.Geometry{InC: 3, GroupIn: 3, Kh: 5}}}
	require.Equal(t, Kernel{File: "patches", Name: "pack_image",
		Args: []any{Tensor(0), Scratch{Bytes: 9}, []int32{7}, Scratch{Which: SumMemory}, []uint32{1}, "local"},
		G:    Geometry{Geometry: kernels.Geometry{InC: 4, GroupIn: 3, Kh: 5, Scheme: 2, Parts: 32, Flip: 1}},
	}, PackImage(bits, pack))
	require.Equal(t, []any{Tensor(1), Scratch{Bytes: 9}, "local"}, pack.Args)
}
