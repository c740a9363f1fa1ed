package zoo_test

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

const seed = 1

func lowered(t *testing.T, name string) (*bcnn.Network, *plan.Plan) {
	net, err := zoo.New(name, seed)
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	return net, plan
}

// The counts are those that the topologies are known by: VGG-16 has 138,357,544
// parameters, 13,416 of which are biases, which batch normalisation replaces
// here.
func TestCounts(t *testing.T) {
	for name, want := range map[string]struct {
		params, macs, first int64 // first: products of the first layer
		stored              int64
		exact               int // layers that sum integers
	}{
		"vgg16":       {138_344_128, 15_470_264_320, 86_704_128, 17_297_408, 16},
		"vgg19":       {143_652_544, 19_632_062_464, 86_704_128, 17_960_960, 19},
		"alexnet":     {62_367_776, 1_135_256_096, 105_415_200, 7_910_144, 8},
		"binarynet":   {14_022_016, 616_966_144, 3_538_944, 1_761_536, 9},
		"birealnet18": {11_679_912, 1_814_073_344, 118_013_952, 4_150_944, 16}, // those of ResNet-18
	} {
		net, p := lowered(t, name)
		var params, macs, stored int64
		exact := 0
		for i, r := range plan.Summarize(net, p) {
			if r.Precision < plan.Float {
				exact++
			}
			if i == 0 {
				require.Equal(t, want.first, r.MACs, name)
			}
			params += r.Params
			macs += r.MACs
			stored += r.BytesPacked
		}
		require.Equal(t, want.exact, exact, name)
		require.Equal(t, want.params, params, name)
		require.Equal(t, want.macs, macs, name)
		require.Equal(t, want.stored, stored, name)
	}
}

// Where all layers are binary every step is fused: no float32 between the first
// layer and the last.
func TestOnlyBitsWithin(t *testing.T) {
	for _, name := range []string{"vgg16", "vgg19", "alexnet", "binarynet"} {
		_, plan := lowered(t, name)
		for _, tensor := range plan.Tensors[1:plan.Outputs[0]] {
			require.Equal(t, bcnn.Bits, tensor.DType, "%s: %s", name, tensor.Name)
		}
		require.Equal(t, bcnn.Uint8, plan.Tensors[0].DType)
	}
}

func TestSeeds(t *testing.T) {
	encode := func(seed uint64) []byte {
		net, err := zoo.New("binarynet", seed)
		require.NoError(t, err)
		data, err := modelfile.Encode(net)
		require.NoError(t, err)
		return data
	}
	one := encode(1)
	require.Equal(t, one, encode(1))
	require.NotEqual(t, one, encode(2))
	net, err := modelfile.Read(t.Context(), one, modelfile.Options{})
	require.NoError(t, err)
	want, err := zoo.New("binarynet", 1)
	require.NoError(t, err)
	require.Equal(t, want.Name, net.Name)
	require.Len(t, net.Layers, len(want.Layers))

	_, err = zoo.New("vgg17", 1)
	require.ErrorContains(t, err, `no network "vgg17", there are vgg16, vgg19`)
}

func randomInput(in bcnn.Input) bcnn.Tensor {
	t := bcnn.NewTensor(in.DType, 1, in.Shape)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range t.U8 {
		t.U8[i] = uint8(rng.Uint32())
	}
	return t
}

// Random weights keep the network alive: the bits of every tensor are mixed,
// and so the logits depend on the image.
func TestActivations(t *testing.T) {
	for _, name := range zoo.Names() {
		_, plan := lowered(t, name)
		opts := backend.Options{Tap: func(step int, label string, tensor bcnn.Tensor) {
			if tensor.DType != bcnn.Bits {
				return
			}
			ones := 0
			for _, w := range tensor.Words {
				ones += bits.OnesCount64(w)
			}
			share := float64(ones) / float64(tensor.Shape.Values())
			// An OR over four bits of even odds is 1 fifteen times in sixteen.
			require.InDelta(t, 0.6, share, 0.38, "%s: %s", name, label)
		}}
		exe, err := cpu.Device().Compile(t.Context(), plan, opts)
		require.NoError(t, err)
		in, out := randomInput(plan.Inputs[0]), bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
		require.NoError(t, exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}))
		other := bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
		slices.Reverse(in.U8)
		require.NoError(t, exe.Run(context.Background(), []bcnn.Tensor{other}, []bcnn.Tensor{in}))
		require.NotEqual(t, out.F32, other.F32, name)
		require.NoError(t, exe.Close())
	}
}

// Networks on every instruction set against generic: reduced ones, and of whole ones
// those without layers in float32, as all others take minutes. What is reduced is
// compared with the reference, too.
func TestParity(t *testing.T) {
	run := func(plan *plan.Plan, in bcnn.Tensor, isa string) []float32 {
		exe, err := cpu.Device().Compile(t.Context(), plan, backend.Options{ISA: isa})
		require.NoError(t, err)
		got := bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())
		require.NoError(t, exe.Run(context.Background(), []bcnn.Tensor{got}, []bcnn.Tensor{in}))
		require.NoError(t, exe.Close())
		return got.F32
	}
	check := func(name string, plan *plan.Plan, reference bool) {
		in := randomInput(plan.Inputs[0])
		want := run(plan, in, "generic")
		if reference {
			out, err := ref.Run(t.Context(), plan, in, nil)
			require.NoError(t, err)
			require.Equal(t, out.F32, want, name)
		}
		for _, isa := range cpu.Device().Info().ISAs {
			require.Equal(t, want, run(plan, in, isa), "%s on %s", name, isa)
		}
	}
	for _, e := range zoo.Networks() {
		plan, err := lower.Network(t.Context(), e.Reduced(seed), lower.Options{})
		require.NoError(t, err)
		check(e.Name+", reduced", plan, true)
	}
	if testing.Short() {
		return
	}
	for _, name := range []string{"vgg16", "vgg19", "alexnet", "binarynet", "birealnet18"} {
		_, plan := lowered(t, name)
		check(name, plan, !strings.HasPrefix(name, "vgg"))
	}
}
