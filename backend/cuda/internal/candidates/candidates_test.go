package candidates

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/tuning"
	"github.com/bitcnn/bitcnn/kernels"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

var (
	large = Limits{Capability: 90, Processors: 132, Threads: 1024, Shared: 227 << 10, SharedDefault: 48 << 10, GridY: 65535, Cooperative: true}
	small = Limits{Capability: 53, Processors: 1, Threads: 128, Shared: 2 << 10, SharedDefault: 1 << 10, GridY: 2}
)

func blackwell() Limits {
	limits := large
	limits.Capability, limits.Shared = 120, 99<<10
	return limits
}

func hopper() Limits {
	limits := large
	limits.Warpgroups, limits.WarpgroupBytes = true, true
	return limits
}

// entries are the kernels of the PTX for an architecture by file, with the numbers of
// their parameters.
func entries(t *testing.T, arch int) func(file string) map[string]int {
	files := make(map[string]map[string]int)
	declaration, parameter := regexp.MustCompile(`\.visible \.entry (\w+)\(([^)]*)\)`), regexp.MustCompile(`\.param `)
	return func(file string) map[string]int {
		if files[file] == nil {
			text, err := kernels.ReadPTX(file, arch)
			require.NoError(t, err)
			files[file] = make(map[string]int)
			for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
				files[file][m[1]] = len(parameter.FindAllString(m[2], -1))
			}
		}
		return files[file]
	}
}

// of lists the candidates of the steps of a network.
func of(t *testing.T, net *bcnn.Network, batch int, limits Limits, arch int) ([][]Candidate, *plan.Plan) {
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	var all [][]Candidate
	for i, s := range plan.Steps {
		step, err := gpu.NewStep(plan, i, batch)
		require.NoError(t, err)
		c, err := Of(step, s.Op, limits, arch)
		require.NoError(t, err)
		all = append(all, c)
	}
	return all, plan
}

// TestEveryStep: every candidate of every step of the table names kernels that there
// are, gives them as many arguments as they have, and keeps to the limits of the device.
func TestEveryStep(t *testing.T) {
	devices := []struct {
		limits Limits
		arch   int
	}{{large, 90}, {large, 75}, {small, 53}, {blackwell(), 90}, {hopper(), 90}}
	there := make(map[int]func(string) map[string]int)
	for _, on := range devices {
		there[on.arch] = entries(t, on.arch)
	}
	for i, c := range parity.Cases() {
		net := c.Network()
		for k, on := range devices {
			if testing.Short() && i%len(devices) != k {
				continue
			}
			all, _ := of(t, net, c.Batch, on.limits, on.arch)
			for _, candidates := range all {
				require.NotEmpty(t, OfVariant(candidates, gpu.Direct), c.Name)
				seen := make(map[string]bool)
				for _, candidate := range candidates {
					require.False(t, seen[candidate.Variant+candidate.Name], "%s: %s twice", c.Name, candidate.Name)
					seen[candidate.Variant+candidate.Name] = true
					for _, s := range candidate.Specs {
						parameters, ok := there[on.arch](s.File)[s.Name]
						require.True(t, ok, "%s.cu has no kernel %s for sm_%d", s.File, s.Name, on.arch)
						require.Len(t, s.Args, parameters-1, s.Name) // the geometry is the first
						require.LessOrEqual(t, s.Shared, on.limits.Shared, s.Name)
						if candidate.Variant != gpu.Direct {
							require.LessOrEqual(t, s.Block, max(on.limits.Threads, 256), s.Name)
						}
						require.LessOrEqual(t, s.Grid[1], max(on.limits.GridY, int(s.G.Blocks)), s.Name)
						require.Positive(t, s.Block, s.Name)
						require.True(t, s.Grid[0] > 0 || s.ItemsOfBlock > 0, s.Name)
						require.Zero(t, s.Block%Lanes != 0 && s.Name != "pack_patches", s.Name)
					}
				}
			}
		}
	}
}

// names are the candidates of a step, with their variants.
func names(all []Candidate) string {
	var list []string
	for _, c := range all {
		list = append(list, c.Variant+": "+c.Name)
	}
	return strings.Join(list, ", ")
}

// TestOf lists the candidates of some layers, the best guess first.
func TestOf(t *testing.T) {
	net, err := vehiclenet.Topology("rgb", 6, 1)
	require.NoError(t, err)
	all, _ := of(t, net, 1, large, 90)
	require.Equal(t, "direct: binarize", names(all[0]))
	require.Equal(t, "direct: conv_bits_k5_pool2 8×16, direct: conv_bits_k5_pool2 8×8, direct: conv_bits_k5_pool2 4×8, "+
		"direct: conv_bits_v1_p8_pool2 8×16, direct: conv_bits_v1_p8_pool2 8×8, direct: conv_bits_v1_p4_pool2 8×8, direct: conv_bits_v1_p4_pool2 4×8, "+
		"direct: conv_bits_p4, direct: conv_bits_p1, "+
		"tensorcore: conv_and_16x32, tensorcore: conv_and_64x32, tensorcore: conv_and_128x128, tensorcore: conv_and_64x64, tensorcore: conv_and_128x256, "+
		"splitk: conv_and_64x64 in 2 parts, splitk: conv_and_64x32 in 2 parts, splitk: conv_and_16x32 in 2 parts, patches: patches", names(all[2]))
	require.Equal(t, "direct: dense_warp_i1, patches: dense_block, tensorcore: conv_and_16x32, tensorcore: conv_and_64x32, tensorcore: conv_and_128x128, tensorcore: conv_and_64x64, tensorcore: conv_and_128x256, "+
		"splitk: conv_and_64x64 in 36 parts, splitk: conv_and_64x32 in 36 parts, splitk: conv_and_64x32 in 18 parts, splitk: conv_and_16x32 in 36 parts, splitk: conv_and_16x32 in 18 parts",
		names(all[3]))
	all, _ = of(t, net, 1, blackwell(), 90) // which has no tensor instructions for bits
	require.NotContains(t, names(all[2]), "conv_and")
	require.Contains(t, names(all[2]), "tensorcore: conv_imma_16x32")
	all, _ = of(t, net, 4, small, 53)
	require.Equal(t, "direct: conv_bits_p4, direct: conv_bits_p1", names(all[2]))
	require.Equal(t, "direct: dense_warp_i1, direct: dense_warp_i4", names(all[3]))

	_, err = Of(gpu.Step{}, nil, large, 90)
	require.Error(t, err)
}

func TestOfVariant(t *testing.T) {
	all := []Candidate{{Variant: gpu.Direct, Name: "1"}, {Variant: gpu.TensorCore, Name: "2"}, {Variant: gpu.Direct, Name: "3"}}
	require.Equal(t, "direct: 1, tensorcore: 2, direct: 3", names(OfVariant(all, "")))
	require.Equal(t, "tensorcore: 2", names(OfVariant(all, gpu.TensorCore)))
	require.Equal(t, "direct: 1, direct: 3", names(OfVariant(all, gpu.Patches)))
	require.Empty(t, OfVariant(all[1:2], gpu.Patches))
}

// TestKey: constants do not count, everything else does.
func TestKey(t *testing.T) {
	c := Candidate{Variant: gpu.Direct, Name: "n", Specs: []Spec{{Kernel: gpu.Kernel{Name: "k", Args: []any{[]int32{1}}}, Block: 32}}}
	key := c.Key()
	c.Specs[0].Args = []any{[]int32{2}}
	require.Equal(t, key, c.Key())
	require.NotNil(t, c.Specs[0].Args)
	for _, change := range []func(){
		func() { c.Variant = gpu.TensorCore }, func() { c.Name = "m" }, func() { c.Specs[0].Name = "l" }, func() { c.Specs[0].Block = 64 },
		func() { c.Specs[0].G.InH = 3 }, func() { c.Specs[0].Grid[1] = 2 }, func() { c.Specs[0].Shared = 8 }, func() { c.Specs = append(c.Specs, Spec{}) },
	} {
		change()
		require.NotEqual(t, key, c.Key())
		key = c.Key()
	}
	require.True(t, c.Is(tuning.Entry{Variant: gpu.TensorCore, Name: "m"}))
	require.False(t, c.Is(tuning.Entry{Variant: gpu.Direct, Name: "m"}))
	require.False(t, c.Is(tuning.Entry{Variant: gpu.TensorCore, Name: "n"}))
}

// TestFused: which networks one launch executes, and what it takes.
func TestFused(t *testing.T) {
	for _, scheme := range vehiclenet.InputSchemes {
		net, err := vehiclenet.Topology(scheme, 6, 1)
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		f := NewFused(plan, large, 90)
		require.NotNil(t, f, scheme)
		require.EqualValues(t, 2, f.Net.Convs, scheme)
		require.EqualValues(t, 3, f.Net.Denses, scheme)
		require.Len(t, f.Convs, 2)
		require.Equal(t, gpu.Tensor(0), f.Convs[0].In, scheme) // the image, which is binarised on the way
		require.Equal(t, f.Convs[0].Out, f.Convs[1].In, scheme)
		require.EqualValues(t, 128, f.Net.SumStride, scheme)
		require.Len(t, f.Weights, 24*24*128, scheme) // a word of 32 channels for every pixel and output
		require.Zero(t, len(f.Constants)%4, scheme)
		require.EqualValues(t, len(f.Constants), f.Net.ConstantWords, scheme)
		used := make(map[int]bool)
		for _, u := range f.Uses {
			used[u.Tensor] = true
		}
		require.True(t, used[0] && used[plan.Outputs[0]], fmt.Sprint(f.Uses))
		require.Nil(t, NewFused(plan, small, 53), scheme) // too little shared memory
	}
	for _, name := range []string{"binarynet", "birealnet18"} {
		net, err := zoo.New(name, 1)
		require.NoError(t, err)
		plan, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		require.Nil(t, NewFused(plan, large, 90), name)
	}
}

// TestFusedThreads: warps go over the tiles as few times as they can, with the fewest
// threads of a block that do.
func TestFusedThreads(t *testing.T) {
	net, err := vehiclenet.Topology("none", 6, 1)
	require.NoError(t, err)
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	// 1,152 tiles of bytes, then 576 of bits.
	for _, c := range []struct{ processors, arch, threads int }{
		{132, 90, 288}, // 1,188 warps
		{128, 80, 288}, // 1,152 warps
		{144, 90, 256}, // 1,152 warps
		{132, 61, 256}, // no more there
		{8, 80, 384},   // 12 + 6 times
		{64, 75, 288},  // 2 + 1 times
	} {
		limits := large
		limits.Processors = c.processors
		f := NewFused(plan, limits, c.arch)
		require.NotNil(t, f)
		require.Equal(t, c.threads, f.Threads, c)
	}
}

// TestSplitK: sums are split where tiles are few, in as many parts as fill the device, none
// of them empty, and whose counts fit into 16 bits.
func TestSplitK(t *testing.T) {
	for _, c := range []struct {
		size, k, in, out, batch int
		want                    map[string][]int // parts by tile
	}{
		// 18 planes; 32 tiles of 64×64, 64 of 64×32, 208 of 16×32.
		{14, 3, 512, 512, 1, map[string][]int{"64x64": {9, 5}, "64x32": {5, 3, 9}, "16x32": {2, 3}}},
		{14, 3, 512, 512, 16, nil},
		{28, 1, 512, 32, 1, map[string][]int{}}, // one stage
		{2, 5, 1024, 64, 1, map[string][]int{"64x64": {50}, "64x32": {50}, "16x32": {50}}},
		{2, 5, 2048, 64, 1, nil}, // 51,200 bits
	} {
		all, _ := of(t, backendtest.OneConv(c.size, c.k, c.in, c.out), c.batch, large, 90)
		got := make(map[string][]int)
		for _, candidate := range all[1] {
			s := candidate.Specs[0]
			require.Equal(t, candidate.Variant == gpu.SplitK, s.Parts > 1, candidate.Name)
			if s.Parts > 1 {
				_, tile, _ := strings.Cut(s.Name, "_and_")
				got[tile] = append(got[tile], s.Parts)
				require.Less(t, (s.Parts-1)*int(s.G.PartPlanes), int(s.G.Planes), "an empty part")
				require.GreaterOrEqual(t, s.Parts*int(s.G.PartPlanes), int(s.G.Planes))
				require.LessOrEqual(t, 2*s.Parts*int(s.G.PartPlanes)*256, 65535)
			}
		}
		if len(c.want) == 0 {
			require.Empty(t, got, c)
		} else {
			require.Equal(t, c.want, got, c)
		}
	}
}

// TestByteProducts: a convolution of bytes has kernels for tensor cores where the PTX has
// them, with the weights in their order.
func TestByteProducts(t *testing.T) {
	net, err := vehiclenet.Topology("none", 6, 1)
	require.NoError(t, err)
	for arch, want := range map[int][]string{
		75: {"conv_bytes_mma_p16_pool2 8×16", "conv_bytes_mma_p16_pool2 4×16", "conv_bytes_mma_p8_pool2 8×8", "conv_bytes_mma_p8_pool2 4×8"},
		61: nil,
	} {
		all, _ := of(t, net, 8, large, arch)
		var got []string
		for _, c := range all[0] {
			if c.Variant != gpu.TensorCore {
				continue
			}
			got = append(got, c.Name)
			require.Len(t, c.Specs[0].Args[2], 32*32, c.Name) // 25 words of 32 outputs, filled up to 32
		}
		require.ElementsMatch(t, want, got)
	}
}
