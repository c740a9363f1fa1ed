package darknet

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// planar is an array of Darknet: channel, row, column.
type planar struct {
	shape  bcnn.Shape
	values []float32
}

// arrays reads the arrays of Darknet of an .npz file, and those of scales and boxes.
func arrays(t *testing.T, name string) (layers map[string]planar, scales map[string][]float32) {
	file, err := os.Open(testenv.SharedData(t, name))
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := npy.Open(file, info.Size())
	require.NoError(t, err)
	layers, scales = map[string]planar{}, map[string][]float32{}
	for _, name := range f.Names() {
		a, err := f.Read(name)
		require.NoError(t, err)
		r, err := f.Array(name)
		require.NoError(t, err)
		dims := r.Shape()
		require.NoError(t, r.Close())
		values := make([]float32, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		switch len(dims) {
		case 3:
			layers[name] = planar{bcnn.Shape{C: dims[0], H: dims[1], W: dims[2]}, values}
		default:
			scales[name] = values
		}
	}
	return layers, scales
}

// tensor returns an array as a network takes it.
func (p planar) tensor() bcnn.Tensor {
	x := bcnn.NewTensor(bcnn.Float32, 1, p.shape)
	for i := range x.F32 {
		pixel, c := i/p.shape.C, i%p.shape.C
		x.F32[i] = p.values[c*p.shape.Pixels()+pixel]
	}
	return x
}

// compute returns the outputs of a network on the CPU.
func compute(t testing.TB, net *bcnn.Network, in ...bcnn.Tensor) []bcnn.Tensor {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	dev, err := backend.Open("cpu")
	require.NoError(t, err)
	exe, err := dev.Compile(t.Context(), plan, backend.Options{MaxBatch: 1})
	require.NoError(t, err)
	defer exe.Close()
	shapes, err := net.Shapes()
	require.NoError(t, err)
	var out []bcnn.Tensor
	for _, l := range net.OutputLayers() {
		out = append(out, bcnn.NewTensor(bcnn.Float32, 1, shapes[l]))
	}
	require.NoError(t, exe.Run(t.Context(), out, in))
	return out
}

// everyLayer returns the values of all layers of Darknet that are still computed, by their names.
func everyLayer(t testing.TB, net *bcnn.Network, in bcnn.Tensor) map[string]bcnn.Tensor {
	t.Helper()
	all := *net
	all.Outputs, all.Labels, all.Detection = nil, nil, nil
	var names []string
	for i, l := range net.Layers {
		if l.Source != nil {
			all.Outputs, names = append(all.Outputs, i), append(names, l.Source.Name)
		}
	}
	values := map[string]bcnn.Tensor{}
	for i, out := range compute(t, &all, in) {
		values[names[i]] = out
	}
	return values
}

// requireClose requires values within a part of the largest.
func requireClose(t testing.TB, want planar, got bcnn.Tensor, tolerance float64, name string) {
	t.Helper()
	require.Equal(t, want.shape, got.Shape, name)
	expected := want.tensor().F32
	largest, worst := 0.0, 0.0
	for i, v := range expected {
		largest = max(largest, math.Abs(float64(v)))
		worst = max(worst, math.Abs(float64(v)-float64(got.F32[i])))
	}
	t.Logf("%s: largest difference %.2g of the largest value", name, worst/largest)
	require.LessOrEqual(t, worst, tolerance*largest, name)
}

const darknetTolerance = 2e-6

// The networks that Darknet has answered for: every layer, computed from the picture.
func TestAnswersOfDarknet(t *testing.T) {
	for _, name := range []string{"small-a", "branch-a"} {
		t.Run(name, func(t *testing.T) {
			want, scales := arrays(t, "darknet/"+name+".npz")
			net, report, err := Load(t.Context(), testenv.SharedData(t, "darknet/"+name+".cfg"), Options{})
			require.NoError(t, err)
			require.Equal(t, name, net.Name)
			got := everyLayer(t, net, want["input"].tensor())
			for layer := range got {
				requireClose(t, want[layer], got[layer], darknetTolerance, layer)
			}
			require.Len(t, got, len(want)-1)
			require.Len(t, report.Heads, 1)
			last := fmt.Sprintf("layer_%02d", report.Heads[0].Section)
			requireBoxes(t, report.Heads[0], got[last], net.Inputs[0].Shape, scales["boxes"])
			requireScales(t, net, scales)
		})
	}
}

// requireBoxes requires that the boxes of Darknet, those that it does not suppress, can be made of
// an output and what is known of its head.
func requireBoxes(t testing.TB, h Head, out bcnn.Tensor, input bcnn.Shape, want []float32) {
	t.Helper()
	const values = 7 // class, probability, objectness, centre, size
	require.NotEmpty(t, want)
	var all [][values]float64
	each := cellValues + h.Classes
	for cell := range out.Shape.Pixels() {
		for a, anchor := range h.Anchors {
			v := floats64(out.F32[cell*out.Shape.C+a*each:][:each])
			for class, p := range v[cellValues:] {
				all = append(all, [values]float64{
					float64(class), v[4] * p, v[4],
					(float64(cell%out.Shape.W) + v[0]) / float64(out.Shape.W), (float64(cell/out.Shape.W) + v[1]) / float64(out.Shape.H),
					math.Exp(v[2]) * float64(anchor[0]) / float64(input.W), math.Exp(v[3]) * float64(anchor[1]) / float64(input.H),
				})
			}
		}
	}
	for i := 0; i < len(want); i += values {
		box := floats64(want[i:][:values])
		require.True(t, slices.ContainsFunc(all, func(b [values]float64) bool {
			for k, v := range box {
				if math.Abs(v-b[k]) > 1e-4*max(1, math.Abs(v)) {
					return false
				}
			}
			return true
		}), "%v", box)
	}
}

// requireScales requires the scales of filters, and that the layers are binary.
func requireScales(t testing.TB, net *bcnn.Network, want map[string][]float32) {
	t.Helper()
	found := 0
	for i, l := range net.Layers {
		number, ok := strings.CutPrefix(strings.TrimSuffix(l.Name, "/scale"), "layer_")
		op, affine := l.Op.(bcnn.Affine)
		if !ok || !affine || want["scale_"+number] == nil {
			continue
		}
		found++
		require.InEpsilonSlice(t, floats64(want["scale_"+number]), floats64(op.Scale), darknetTolerance, l.Name)
		conv, ok := net.Layers[net.Layers[i].Inputs[0]].Op.(bcnn.Conv2D)
		require.True(t, ok && conv.Weights.Binary(), l.Name)
	}
	for name := range want {
		if strings.HasPrefix(name, "scale_") {
			found--
		}
	}
	require.Zero(t, found, "scales")
}

func floats64(list []float32) []float64 {
	all := make([]float64, len(list))
	for i, v := range list {
		all[i] = float64(v)
	}
	return all
}

// Every layer alone: Darknet's own layers in front of it are its inputs, so that no sign that
// an earlier rounding has changed gets in the way.
func TestLayersOfDarknet(t *testing.T) {
	for _, name := range []string{"small-a", "branch-a"} {
		want, _ := arrays(t, "darknet/"+name+".npz")
		net, _, err := Load(t.Context(), testenv.SharedData(t, "darknet/"+name+".cfg"), Options{})
		require.NoError(t, err)
		for i, l := range net.Layers {
			if l.Source == nil {
				continue
			}
			part, inputs := alone(t, net, i, want)
			got := compute(t, part, inputs...)
			requireClose(t, want[l.Source.Name], got[0], darknetTolerance, name+" "+l.Source.Name)
		}
	}
}

// alone returns the layers between others with a source, or the input, and one of these.
func alone(t *testing.T, net *bcnn.Network, last int, values map[string]planar) (*bcnn.Network, []bcnn.Tensor) {
	part := &bcnn.Network{}
	var inputs []bcnn.Tensor
	made := map[int]int{}
	var add func(i int) int
	add = func(i int) int {
		if at, ok := made[i]; ok {
			return at
		}
		var s *bcnn.Source
		if i < 0 {
			s = net.Inputs[0].Source
		} else if i != last {
			s = net.Layers[i].Source
		}
		if s != nil {
			v := values[s.Name].tensor()
			made[i] = bcnn.NetworkInput - len(inputs)
			part.Inputs = append(part.Inputs, bcnn.Input{Shape: v.Shape, DType: bcnn.Float32})
			inputs = append(inputs, v)
			return made[i]
		}
		l := net.Layers[i]
		l.Inputs = slices.Clone(l.Inputs)
		for k, in := range l.Inputs {
			l.Inputs[k] = add(in)
		}
		part.Layers = append(part.Layers, l)
		made[i] = len(part.Layers) - 1
		return made[i]
	}
	add(last)
	return part, inputs
}

// The description that was published with Darknet, at its own size, with weights and a picture
// that NumPy draws.
func TestYoloV3TinyXNOR(t *testing.T) {
	testenv.Long(t)
	want, scales := arrays(t, "darknet/yolov3-tiny_xnor.npz")
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import numpy").Run()
	}
	if err != nil {
		testenv.Absent(t, "numpy", fmt.Errorf("python3 with NumPy writes the weights: %w", err))
	}
	dir := t.TempDir()
	cfg, weights, picture := testenv.SharedData(t, "darknet/yolov3-tiny_xnor.cfg"), filepath.Join(dir, "weights"), filepath.Join(dir, "picture")
	for _, args := range [][]string{
		{testenv.SharedData(t, "darknet/mkweights.py"), cfg, weights, "41"},
		{"-c", "import numpy, sys; numpy.random.default_rng(1041).random((3,416,416), numpy.float32).tofile(sys.argv[1])", picture},
	} {
		out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	net, report, err := Load(t.Context(), cfg, Options{Weights: weights})
	require.NoError(t, err)
	requireScales(t, net, scales)
	require.Equal(t, []Head{
		{Section: 16, Kind: "yolo", Classes: 80, Anchors: [][2]float32{{81, 82}, {135, 169}, {344, 319}}},
		{Section: 23, Output: 1, Kind: "yolo", Classes: 80, Anchors: [][2]float32{{10, 14}, {23, 27}, {37, 58}}},
	}, report.Heads)
	data, err := os.ReadFile(picture)
	require.NoError(t, err)
	in := planar{shape: bcnn.Shape{H: 416, W: 416, C: 3}}
	for i := range in.shape.Values() {
		in.values = append(in.values, math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	got := everyLayer(t, net, in.tensor())
	for layer := range want {
		requireClose(t, want[layer], got[layer], darknetTolerance, layer)
	}
}
