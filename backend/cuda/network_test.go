//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// netConv is a convolution of a test's network, with what follows it up to the sign.
type netConv struct {
	k, out, pad, padValue int
	pool                  bool
}

// smallNet makes a network of the kind that one launch executes.
func smallNet(size bcnn.Shape, convs []netConv, denses []int) *bcnn.Network {
	rng := rand.New(rand.NewPCG(5, uint64(size.W)))
	net := &bcnn.Network{Name: "small", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: size}}}
	norm := func(i, n int) {
		scale, bias := make([]float32, n), make([]float32, n)
		for k := range n {
			scale[k], bias[k] = float32(rng.NormFloat64()), float32(rng.IntN(9)-4)
		}
		net.Append(fmt.Sprint("norm", i), bcnn.Affine{Scale: scale, Bias: bias})
	}
	for i, v := range convs {
		w := bcnn.Window{KH: v.k, KW: v.k, Pad: bcnn.Padding{Top: v.pad, Left: v.pad, Bottom: v.pad, Right: v.pad}}
		net.Append(fmt.Sprint("conv", i), bcnn.Conv2D{Window: w, Out: v.out, PadValue: v.padValue, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, v.out*v.k*v.k, size.C)}})
		if v.pool {
			net.Append(fmt.Sprint("pool", i), bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
		}
		norm(i, v.out)
		net.Append(fmt.Sprint("sign", i), bcnn.Sign{Zero: bcnn.ZeroIsPlus})
		size = bcnn.Shape{H: size.H + 2*v.pad - v.k + 1, W: size.W + 2*v.pad - v.k + 1, C: v.out}
		if v.pool {
			size.H, size.W = size.H/2, size.W/2
		}
	}
	values := size.Values()
	for i, out := range denses {
		net.Append(fmt.Sprint("dense", i), bcnn.Dense{Out: out, Weights: bcnn.Weights{Bits: backendtest.RandomBits(rng, out, values)}})
		norm(10+i, out)
		if i < len(denses)-1 {
			net.Append(fmt.Sprint("densesign", i), bcnn.Sign{Zero: bcnn.ZeroIsMinus})
		}
		values = out
	}
	return net
}

func needCooperative(t *testing.T) {
	if !testDevice(t).limits.Cooperative {
		testenv.Absent(t, "cooperative-launches", errors.New("the device has none"))
	}
}

// TestNetworkInOneLaunch compares whole networks in one launch with the reference,
// several times: a launch must leave its sums and barriers as it found them.
func TestNetworkInOneLaunch(t *testing.T) {
	needCooperative(t)
	for i, c := range []struct {
		size   bcnn.Shape
		convs  []netConv
		denses []int
	}{
		{bcnn.Shape{H: 16, W: 16, C: 3}, []netConv{{5, 32, 2, 0, true}, {5, 32, 2, -1, true}}, []int{100, 100, 6}},
		{bcnn.Shape{H: 13, W: 11, C: 1}, []netConv{{3, 64, 1, 0, true}, {3, 33, 1, 1, false}}, []int{65, 7}},
		{bcnn.Shape{H: 9, W: 14, C: 4}, []netConv{{3, 40, 0, 0, false}, {5, 70, 2, 0, true}}, []int{10}},
		{bcnn.Shape{H: 8, W: 7, C: 2}, []netConv{{5, 100, 2, 0, false}, {3, 128, 1, -1, false}, {3, 31, 1, 0, true}}, []int{3, 129, 33, 5}},
		{bcnn.Shape{H: 6, W: 6, C: 3}, []netConv{{3, 20, 1, 0, false}}, []int{32, 1}},
		{bcnn.Shape{H: 10, W: 10, C: 3}, []netConv{{3, 10, 1, 0, true}, {3, 32, 1, 1, true}}, []int{64, 2}},
	} {
		for _, p := range placements {
			t.Run(fmt.Sprint(i, "/", p.name), func(t *testing.T) {
				for _, n := range []int{1, 3} {
					exe := requireReference(t, p.device(t), smallNet(c.size, c.convs, c.denses), backend.Options{Kernels: gpu.Fused}, n)
					require.Equal(t, "network", wholeKernel(exe))
					for _, images := range []int{n, 1} {
						requireRun(t, exe, uint64(images+10*n), images)
					}
				}
			})
		}
	}
}

// TestBinarizedNetworkInOneLaunch makes the bits of the image on the way.
func TestBinarizedNetworkInOneLaunch(t *testing.T) {
	needCooperative(t)
	for _, c := range []struct {
		scheme   bcnn.Scheme
		channels int // of the image
	}{
		{bcnn.SchemeThreshold, 3}, {bcnn.SchemeThreshold, 1}, {bcnn.SchemeGrey, 3}, {bcnn.SchemeGrey, 1}, {bcnn.SchemeLBP, 3}, {bcnn.SchemeMinMax, 3},
	} {
		for _, padValue := range []int{-1, 0, 1} {
			t.Run(fmt.Sprintf("%s/%d/pad=%d", c.scheme, c.channels, padValue), func(t *testing.T) {
				made := map[bcnn.Scheme]int{bcnn.SchemeGrey: 1, bcnn.SchemeLBP: 3}[c.scheme]
				op := bcnn.Binarize{Scheme: c.scheme}
				if made == 0 {
					made = c.channels
				}
				if c.scheme == bcnn.SchemeThreshold || c.scheme == bcnn.SchemeGrey {
					op.Thresholds = []int32{100, 120, 140}[:made]
				}
				net := smallNet(bcnn.Shape{H: 11, W: 9, C: made}, []netConv{{5, 40, 2, padValue, true}, {3, 32, 1, 0, false}}, []int{33, 4})
				whole := &bcnn.Network{Name: net.Name, Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 11, W: 9, C: c.channels}}}}
				whole.Append("binarize", op)
				for _, l := range net.Layers {
					whole.Append(l.Name, l.Op)
				}
				for _, p := range placements {
					exe := requireReference(t, p.device(t), whole, backend.Options{Kernels: gpu.Fused}, 2)
					require.Equal(t, map[bool]string{false: "network", true: "steps"}[c.scheme == bcnn.SchemeMinMax], wholeKernel(exe))
				}
			})
		}
	}
}

// TestActivationInOneLaunch ends networks in each kind of activation, with scales and
// without.
func TestActivationInOneLaunch(t *testing.T) {
	needCooperative(t)
	for name, op := range map[string]bcnn.Op{
		"relu": bcnn.ReLU{}, "prelu": bcnn.PReLU{Slope: []float32{-0.5, 0.25, 0, 3, -1}},
		"clip": bcnn.Clip{Min: -3, Max: 2.5}, "least": bcnn.Clip{Min: 0.75, Max: float32(math.Inf(1))},
	} {
		for _, scaled := range []bool{true, false} {
			net := smallNet(bcnn.Shape{H: 9, W: 7, C: 3}, []netConv{{3, 33, 1, 0, true}}, []int{40, 5})
			if !scaled {
				net.Layers = net.Layers[:len(net.Layers)-1]
			}
			net.Append(name, op)
			exe := requireReference(t, testDevice(t), net, backend.Options{Kernels: gpu.Fused}, 3)
			require.Equal(t, "network", wholeKernel(exe), name)
		}
	}
}

// wholeNetworks are every nth of the whole networks of the table.
func wholeNetworks(n, first int) (some []parity.Case) {
	all := slices.DeleteFunc(parity.Cases(), func(c parity.Case) bool { return !strings.HasPrefix(c.Name, "whole/") })
	for i := first; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// TestWholeNetworks makes sure that those of the table are of the kind that one launch
// executes, and runs them with tensors apart, and as if measuring had found each
// variant to be the fastest. TestParity runs them as they are.
func TestWholeNetworks(t *testing.T) {
	needCooperative(t)
	every := 1
	if testing.Short() {
		every = 3
	}
	some := wholeNetworks(every, 0)
	requireParity(t, unsharedDevice(t), backend.Options{}, some)
	for _, variant := range kernelNames {
		d := measured(t, "")
		d.fastest = variant
		for _, c := range some {
			exe := requireReference(t, d, c.Network(), backend.Options{}, c.Batch)
			want := ""
			if variant == gpu.Fused {
				want = map[bool]string{false: "network", true: "steps"}[strings.Contains(c.Name, "/minmax/")]
			}
			require.Equal(t, want, wholeKernel(exe), c.Name)
		}
	}
}

// TestStepsInOneLaunch makes sure that plans beyond the kernel of small networks are
// executed by a table of steps.
func TestStepsInOneLaunch(t *testing.T) {
	needCooperative(t)
	small := bcnn.Shape{H: 8, W: 8, C: 3}
	for name, net := range map[string]*bcnn.Network{
		"window of 7":      smallNet(small, []netConv{{7, 32, 3, 0, true}}, []int{4}),
		"five channels":    smallNet(bcnn.Shape{H: 8, W: 8, C: 5}, []netConv{{3, 32, 1, 0, true}}, []int{4}),
		"three words":      smallNet(small, []netConv{{3, 96, 1, 0, true}, {3, 32, 1, 0, true}}, []int{4}),
		"no convolution":   smallNet(small, nil, []int{40, 4}),
		"five layers":      smallNet(small, []netConv{{3, 8, 1, 0, false}}, []int{9, 8, 7, 6, 5}),
		"wide":             smallNet(small, []netConv{{3, 8, 1, 0, false}}, []int{2049, 5}),
		"binarised, five":  backendtest.OneConv(8, 3, 5, 8),
		"much more memory": smallNet(small, []netConv{{3, 8, 1, 0, false}}, []int{2000, 2000, 5}),
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			requireSteps(t, net, 2)
		})
	}
}

// TestMappedEnds: kernels store small outputs that nothing reads in memory of the host, and
// read inputs from there where the device is part of the processor.
func TestMappedEnds(t *testing.T) {
	plan, err := lower.Network(t.Context(), backendtest.VehicleNet(3, 8), lower.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		unified, integrated bool
		capability, batch   int
		in, out             bool
	}{
		{unified: true, capability: 90, batch: 1, out: true},
		{unified: true, capability: 90, batch: 171}, // 4,104 bytes
		{capability: 90, batch: 1},
		{unified: true, integrated: true, capability: 87, batch: 171, in: true, out: true},
		{unified: true, integrated: true, capability: 53, batch: 1, out: true},
	} {
		for _, place := range placements {
			d := place.device(t)
			d.unified, d.integrated, d.limits.Capability = c.unified, c.integrated, c.capability
			exe := compiled(t, d, plan, backend.Options{}, c.batch)
			requireRun(t, exe, 7, 1)
			require.Equal(t, c.in, exe.inputs[0].mapped, "%+v", c)
			require.Equal(t, c.out, exe.outputs[0].mapped, "%+v", c)
		}
	}
}
