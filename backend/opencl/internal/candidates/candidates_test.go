package candidates

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/tuning"
	"github.com/bitcnn/bitcnn/kernels"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

var (
	local  = Limits{Group: 256, LocalBytes: 32 << 10, Buffer: 1 << 30, LocalMemory: true, GPU: true}
	little = Limits{Group: 16, LocalBytes: 512, Buffer: 1 << 30, LocalMemory: true}
	shared = Limits{Group: 4096, LocalBytes: 1 << 20, Buffer: 1 << 40}
)

// entries are the kernels of the sources by file, with the numbers of their parameters.
func entries(t *testing.T) map[string]map[string]int {
	all := make(map[string]map[string]int)
	comment, attribute := regexp.MustCompile(`//[^\n]*`), regexp.MustCompile(`__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)`)
	signature := regexp.MustCompile(`__kernel\s+void\s+(\w+)\s*\(([^)]*)\)`)
	files, err := kernels.CL.ReadDir("cl")
	require.NoError(t, err)
	for _, f := range files {
		text, err := kernels.CL.ReadFile("cl/" + f.Name())
		require.NoError(t, err)
		name, source := strings.TrimSuffix(f.Name(), ".cl"), attribute.ReplaceAllString(comment.ReplaceAllString(string(text), ""), "")
		all[name] = make(map[string]int)
		for _, m := range signature.FindAllStringSubmatch(source, -1) {
			all[name][m[1]] = len(strings.Split(m[2], ","))
		}
	}
	return all
}

// of lists the candidates of the steps of a network.
func of(t *testing.T, net *bcnn.Network, batch int, limits Limits, forced string) [][]Candidate {
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	var all [][]Candidate
	for i, s := range plan.Steps {
		step, err := gpu.NewStep(plan, i, batch)
		require.NoError(t, err)
		c, err := Of(step, s.Op, limits, forced)
		require.NoError(t, err)
		all = append(all, c)
	}
	return all
}

// TestEveryStep: every candidate of every step of the table names kernels that there
// are, gives them as many arguments as they have, and keeps to the limits of the device.
func TestEveryStep(t *testing.T) {
	there := entries(t)
	for _, c := range backendtest.Cases(t, parity.Cover, parity.Cases) {
		net := c.Network()
		for _, limits := range []Limits{local, little, shared} {
			for _, forced := range []string{"", gpu.Patches, gpu.Direct, gpu.Vectors} {
				for _, candidates := range of(t, net, c.Batch, limits, forced) {
					require.NotEmpty(t, candidates, c.Name)
					require.True(t, forced == gpu.Patches || forced == gpu.Vectors || candidates[0].Variant == gpu.Direct, c.Name)
					require.True(t, forced == "" || len(candidates) == 1, c.Name)
					for _, candidate := range candidates {
						for _, s := range candidate.Specs {
							parameters, ok := there[s.File][s.Name]
							require.True(t, ok, "%s.cl has no kernel %s", s.File, s.Name)
							require.Len(t, s.Args, parameters-1, s.Name) // the geometry is the last
							require.LessOrEqual(t, s.Local, limits.Group, s.Name)
							require.Positive(t, s.Items, s.Name)
							require.True(t, s.Local == 0 || s.Items%s.Local == 0, s.Name)
							for _, a := range s.Args {
								if bytes, ok := a.(Local); ok {
									require.LessOrEqual(t, int(bytes), limits.LocalBytes, s.Name)
								}
							}
						}
					}
				}
			}
		}
	}
}

// names are the kernels of the candidates of a step.
func names(all []Candidate) string {
	var list []string
	for _, c := range all {
		var kernels []string
		for _, s := range c.Specs {
			kernels = append(kernels, s.Name)
		}
		list = append(list, c.Variant+": "+strings.Join(kernels, " "))
	}
	return strings.Join(list, ", ")
}

func TestOf(t *testing.T) {
	net, err := vehiclenet.Topology("rgb", 6, 1)
	require.NoError(t, err)
	const directConv, patches = "direct: conv_bits", "patches: pack_patches xor_gemm finish"
	const vectors = "vectors: conv_vectors"
	const directDense, reduce = "direct: dense_segments finish", "patches: dense_reduce finish"
	for _, c := range []struct {
		limits Limits
		forced string
		want   []string // of the binarisation, a convolution and a dense layer
	}{
		{local, "", []string{"direct: binarize", directConv + ", " + vectors + ", " + patches, directDense + ", " + reduce}},
		{local, gpu.Patches, []string{"direct: binarize", patches, reduce}},
		{local, gpu.Direct, []string{"direct: binarize", directConv, directDense}},
		{shared, "", []string{"direct: binarize", directConv, directDense}},
		{shared, gpu.Vectors, []string{"direct: binarize", vectors, directDense}},
		{shared, gpu.Patches, []string{"direct: binarize", patches, reduce}},
		{little, gpu.Patches, []string{"direct: binarize", patches, directDense}}, // no group of 64
		{Limits{Group: 8, LocalBytes: 512, Buffer: 1 << 30}, gpu.Patches, []string{"direct: binarize", directConv, directDense}},
		{Limits{Group: 256, LocalBytes: 32 << 10, Buffer: 1 << 10}, gpu.Patches, []string{"direct: binarize", directConv, reduce}}, // no buffer for patches
	} {
		all := of(t, net, 1, c.limits, c.forced)
		require.Equal(t, c.want, []string{names(all[0]), names(all[2]), names(all[3])}, "%+v %q", c.limits, c.forced)
	}
	_, err = Of(gpu.Step{}, nil, local, "")
	require.Error(t, err)
}

// TestVectorsOfBytes: where taps of a row lie next to each other they are one run, and a
// work-group has one block of channels where there are pixels enough.
func TestVectorsOfBytes(t *testing.T) {
	net, err := vehiclenet.Topology("none", 6, 1)
	require.NoError(t, err)
	limits := local
	limits.Dot = ArmDot
	all := of(t, net, 1, limits, "")
	require.Equal(t, "direct: conv_values, vectors: conv_vectors", names(all[0]))
	direct, vectors := all[0][0].Specs[0], all[0][1].Specs[0]
	require.Equal(t, ArmDot, vectors.Form.Dot)
	require.Equal(t, NoDot, direct.Form.Dot)
	require.Equal(t, int32(4), vectors.G.Words) // 5 pixels of 3 bytes
	require.Len(t, vectors.Args[2], 5*4*32)
	require.Equal(t, 48*48, vectors.Items)
	require.True(t, direct.Form.Uniform)
	// Work-items have words of 32 channels, and one is padding.
	require.Equal(t, []int{48 * 48, 2}, []int{direct.Items, direct.Blocks})
	dense := all[4][0].Specs[1] // writes floats, of one pixel
	require.False(t, dense.Form.Uniform)
	require.Zero(t, dense.Blocks)
	for i, l := range net.Layers {
		if conv, ok := l.Op.(bcnn.Conv2D); ok {
			conv.DilationH, conv.DilationW, conv.Pad = 2, 2, bcnn.Padding{Top: 4, Bottom: 4, Left: 4, Right: 4}
			net.Layers[i].Op = conv
			break
		}
	}
	dilated := of(t, net, 1, limits, gpu.Vectors)[0][0].Specs[0]
	require.Equal(t, int32(1), dilated.G.Words)
	require.Len(t, dilated.Args[2], 25*32)
}

func TestOptions(t *testing.T) {
	s := Spec{Form: Form{Lanes: 4, Bytes: true, Source: 2}}
	s.G.InH, s.G.SegmentWords = 5, 9
	specialised, general := s.Options(true), s.Options(false)
	for _, options := range []string{specialised, general} {
		require.True(t, strings.HasPrefix(options, "-cl-std=CL1.2 -DLANES=4 -DTO_BITS=0 -DMIXED=0 -DBYTES=1 -DINT8=0 -DPOOLED=0 -DUNIFORM=0 -DDOT_PRODUCT=0 -DSOURCE=2 -DGEMM_TILE=1 "), options)
		for _, name := range gpu.Names() {
			require.Equal(t, 1, strings.Count(options, " -D"+name+"="), name)
		}
	}
	s.Form.Dot = KHRDot
	require.True(t, strings.HasPrefix(s.Options(false), "-cl-std=CL3.0 "))
	s.Form.Dot = NoDot
	require.Contains(t, specialised, " -DIN_H=5 ")
	require.Contains(t, specialised+" ", " -DSEGMENT_WORDS=9 ")
	for i, v := range s.G.Values() {
		require.Equal(t, map[string]int32{"IN_H": 5, "SEGMENT_WORDS": 9}[gpu.Names()[i]], v)
	}
	require.Contains(t, general, " -DIN_H=g[0] ")
	s.G.InH = 6
	require.Equal(t, general, s.Options(false)) // one program for all
	require.NotEqual(t, specialised, s.Options(true))
}

// TestKey: constants do not count, everything else does.
func TestKey(t *testing.T) {
	c := Candidate{Variant: gpu.Direct, Specs: []Spec{{Kernel: gpu.Kernel{Name: "k", Args: []any{[]int32{1}}}, Items: 32}}}
	key := c.Key()
	c.Specs[0].Args = []any{[]int32{2}}
	require.Equal(t, key, c.Key())
	require.NotNil(t, c.Specs[0].Args)
	for _, change := range []func(){
		func() { c.Variant = gpu.Patches }, func() { c.Specs[0].Name = "l" }, func() { c.Specs[0].Items = 64 }, func() { c.Specs[0].Local = 64 },
		func() { c.Specs[0].G.InH = 3 }, func() { c.Specs[0].Form.Mixed = true }, func() { c.Specs = append(c.Specs, Spec{}) },
	} {
		change()
		require.NotEqual(t, key, c.Key())
		key = c.Key()
	}
	require.True(t, c.Is(tuning.Entry{Variant: gpu.Patches, Groups: []int{1}}))
	require.False(t, c.Is(tuning.Entry{Variant: gpu.Direct}))
}
