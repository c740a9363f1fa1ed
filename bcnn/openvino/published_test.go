package openvino

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// onCPU is run on the CPU backend, for networks that take the plain executor too long.
func onCPU(t testing.TB, net *bcnn.Network, input []float32) map[string][]float32 {
	t.Helper()
	plan, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	dev, err := backend.Open("cpu")
	require.NoError(t, err)
	exe, err := dev.Compile(t.Context(), plan, backend.Options{})
	require.NoError(t, err)
	defer exe.Close()
	in := net.Inputs[0]
	x := bcnn.Tensor{DType: bcnn.Float32, N: 1, Shape: in.Shape, F32: inOrder(input, in.Shape, in.Source, true)}
	var outs []bcnn.Tensor
	for _, o := range plan.Outputs {
		outs = append(outs, bcnn.NewTensor(plan.Tensors[o].DType, 1, plan.Tensors[o].Shape))
	}
	require.NoError(t, exe.Run(t.Context(), outs, []bcnn.Tensor{x}))
	return named(t, net, outs)
}

// TestResNet50 imports the published structure of the binary ResNet-50 with weights of which all
// arithmetic is exact: the integers of binary convolutions and the signs in front of others are
// equal, not only the outputs.
func TestResNet50(t *testing.T) {
	testenv.Long(t)
	const folder = "openvino/resnet50-binary-0001/"
	script := testenv.SharedData(t, folder+"gen_bin.py")
	if err := exec.Command("python3", "-c", "import numpy").Run(); err != nil {
		testenv.Absent(t, "numpy", err)
	}
	graph := testenv.SharedData(t, folder+"resnet50-binary-0001.xml")
	weights := filepath.Join(t.TempDir(), "weights.bin")
	out, err := exec.Command("python3", script, graph, weights, "50").CombinedOutput()
	require.NoError(t, err, "%s", out)
	xml, err := os.ReadFile(graph)
	require.NoError(t, err)
	bin, err := os.ReadFile(weights)
	require.NoError(t, err)
	im, err := decode(t.Context(), xml, bin, Options{})
	require.NoError(t, err)
	// Layers in the middle become outputs, by the names of their answers.
	inner := map[string]string{
		"Convolution_3167": "bc_Convolution_3167", "Convolution_3293": "bc_Convolution_3293", "Convolution_3811": "bc_Convolution_3811",
		"637/sign": "fq_637", "1198/sign": "fq_1198",
	}
	im.net.Outputs = im.net.OutputLayers()
	im.net.Layers[im.net.Outputs[0]].Source.Name = "output"
	for i, l := range im.net.Layers {
		if name, ok := inner[l.Name]; ok {
			im.net.Outputs = append(im.net.Outputs, i)
			s := *im.net.Layers[0].Source
			shapes, err := im.net.Shapes()
			require.NoError(t, err)
			s.Name, s.Dims = name, []int{shapes[i].C, shapes[i].H, shapes[i].W}
			im.net.Layers[i].Source = &s
		}
	}
	require.Len(t, im.net.Outputs, 6)
	net, _, err := simplify.Network(t.Context(), im.net, simplify.Options{})
	require.NoError(t, err)
	answers := arrays(t, testenv.SharedData(t, folder+"answers-seed50.npz"))
	input, _ := numbers(t, answers, "input")
	got := onCPU(t, net, input)
	for _, name := range answers.Names() {
		want, _ := numbers(t, answers, name)
		switch name[:2] {
		case "in":
		case "bc":
			require.Equal(t, want, got[name], name)
		case "fq": // 0 and 1 stand for −1 and 1
			for i, v := range got[name] {
				require.Equal(t, 2*want[i]-1, v, "%s %d", name, i)
			}
		default:
			requireClose(t, want, got[name], 1e-4/7.381)
		}
	}
}
