package vision

import (
	"encoding/json"
	"image"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// detecting opens a detector on the processor.
func detecting(t *testing.T, model *bitcnn.Model, isa string, opts DetectorOptions) *Detector {
	s, err := bitcnn.Open(t.Context(), model, bitcnn.Options{Device: "cpu", ISA: isa})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := NewDetector(s, opts)
	require.NoError(t, err)
	return d
}

// isas are the best instruction set of the processor, and slower ones.
func isas(t *testing.T) []string {
	list := []string{""}
	for _, d := range bitcnn.Devices() {
		for _, isa := range d.ISAs {
			if d.ID == "cpu" && (isa == "avx2" || isa == "generic") {
				list = append(list, isa)
			}
		}
	}
	if testing.Short() {
		return list[:1]
	}
	return list
}

// filed returns a model as a model file gives it back.
func filed(t *testing.T, model *bitcnn.Model) *bitcnn.Model {
	path := filepath.Join(t.TempDir(), "model.bcnn")
	require.NoError(t, modelfile.Save(path, model))
	back, err := bitcnn.Load(t.Context(), path, bitcnn.LoadOptions{})
	require.NoError(t, err)
	return back
}

// The face detector of Open Model Zoo finds the faces that OpenVINO finds, in both of its files, from a
// model file too, and the same ones on every instruction set.
func TestFaces(t *testing.T) {
	const folder = "openvino/face-detection-adas-binary-0001/"
	for k, file := range []string{"face-detection-adas-binary-0001.xml", "ir4/face-detection-adas-binary-0001.xml"} {
		model, err := bitcnn.Load(t.Context(), testenv.SharedData(t, folder+file), bitcnn.LoadOptions{})
		require.NoError(t, err)
		model.Labels = []string{"nothing", "face"}
		d := detecting(t, model, "", DetectorOptions{})
		for _, name := range []string{"astronaut", "hopper", "two_faces"} {
			data, err := os.ReadFile(testenv.SharedData(t, folder+name+".json"))
			require.NoError(t, err)
			var want struct {
				Faces []struct {
					Confidence float64
					Box        [4]float64
				}
			}
			require.NoError(t, json.Unmarshal(data, &want))
			img, err := d.Preprocessing().DecodeFile(t.Context(), testenv.SharedData(t, folder+name+".png"))
			require.NoError(t, err)
			boxes, err := d.Detect(t.Context(), img)
			require.NoError(t, err)
			require.Len(t, boxes, len(want.Faces))
			for i, f := range want.Faces {
				b := boxes[i]
				require.Equal(t, "face", b.Label)
				require.InDelta(t, f.Confidence, b.Score, 0.01)
				for k, v := range []float32{b.X0, b.Y0, b.X1, b.Y1} {
					require.InDelta(t, f.Box[k], v, 3, "%s, face %d: %+v", name, i, b)
				}
			}
			if k > 0 || name != "two_faces" {
				continue
			}
			for _, isa := range isas(t)[1:] {
				same, err := detecting(t, model, isa, DetectorOptions{}).Detect(t.Context(), img)
				require.NoError(t, err)
				require.Equal(t, boxes, same, isa)
			}
			back, err := detecting(t, filed(t, model), "", DetectorOptions{}).Detect(t.Context(), img)
			require.NoError(t, err)
			require.Equal(t, boxes, back)
		}
	}
}

// The networks of Darknet, fed with its pictures: all boxes that it has, and no others.
func TestBoxesOfDarknet(t *testing.T) {
	for _, name := range []string{"small-a", "branch-a"} {
		model, err := bitcnn.Load(t.Context(), testenv.SharedData(t, "darknet/"+name+".cfg"), bitcnn.LoadOptions{})
		require.NoError(t, err)
		require.Equal(t, []float32{1. / 255}, model.Inputs[0].Photo.Scale)
		shape := model.Inputs[0].Shape
		planar, boxes := darknetArrays(t, "darknet/"+name+".npz")
		in, err := bitcnn.TensorOf(1, shape, bitcnn.NCHW, planar)
		require.NoError(t, err)
		frame := Frame{W: float64(shape.W), H: float64(shape.H), Size: image.Pt(shape.W, shape.H)}
		var first []Box
		for i, isa := range append(isas(t), "from a file") {
			of := model
			if isa == "from a file" {
				of, isa = filed(t, model), ""
			}
			found, err := detecting(t, of, isa, DetectorOptions{}).DetectTensor(t.Context(), in, frame)
			require.NoError(t, err)
			got := found[0].Boxes
			if i > 0 {
				require.Equal(t, first, got, isa)
				continue
			}
			first = got
			const values = 7 // class, probability, objectness, centre, size
			matched := make([]bool, len(got))
			for at := 0; at < len(boxes); at += values {
				b := boxes[at : at+values]
				if b[1] == 0 {
					continue
				}
				want := [4]float64{}
				for k, side := range []int{shape.W, shape.H} {
					want[k] = min(max(float64(b[3+k]-b[5+k]/2)*float64(side), 0), float64(side))
					want[2+k] = min(max(float64(b[3+k]+b[5+k]/2)*float64(side), 0), float64(side))
				}
				fits := -1
				for i, g := range got {
					near := g.Index == int(b[0]) && math.Abs(float64(g.Score-b[1])) < 1e-4 && !matched[i]
					for k, v := range []float32{g.X0, g.Y0, g.X1, g.Y1} {
						near = near && math.Abs(float64(v)-want[k]) < 0.01
					}
					if near {
						fits = i
					}
				}
				require.GreaterOrEqual(t, fits, 0, "%v among %v", b, got)
				matched[fits] = true
			}
			require.NotContains(t, matched, false, "%v", boxes)
			t.Logf("%s: %d boxes", name, len(got))
		}
	}
}

// darknetArrays reads the picture and the boxes of a file of answers.
func darknetArrays(t *testing.T, name string) (picture, boxes []float32) {
	file, err := os.Open(testenv.SharedData(t, name))
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := npy.Open(file, info.Size())
	require.NoError(t, err)
	read := func(name string) []float32 {
		a, err := f.Read(name)
		require.NoError(t, err)
		values := make([]float32, a.Len())
		require.NoError(t, npy.Values(values, a, 0))
		return values
	}
	return read("input"), read("boxes")
}
