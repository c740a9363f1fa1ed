package main

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vision"
)

// spotNet finds light squares of 2×2 pixels, at even places, in grey images of 8×8: their brightness is
// the score of the class spot.
func spotNet() *bcnn.Network {
	net := &bcnn.Network{
		Name:   "spots",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 8, W: 8, C: 1}, DType: bcnn.Uint8, Photo: &bcnn.Photo{Fit: bcnn.FitStretch}}},
		Labels: []string{"speck", "spot"},
	}
	net.Append("brightness", bcnn.Affine{Scale: []float32{1. / 255}})
	net.Append("pool", bcnn.AvgPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
	net.Append("boxes", bcnn.Conv2D{
		Window: bcnn.Window{KH: 1, KW: 1}, Out: 7, Weights: bcnn.Weights{F32: []float32{0, 0, 0, 0, 1, 0, 0}}, Bias: []float32{0.5, 0.5, 0, 0, 0, 0.1, 1},
	})
	net.Detection = &bcnn.Detection{Classes: 2, Background: -1, Threshold: 0.25, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{2, 2}}}}}
	return net
}

func saveSpotNet(t *testing.T) string { return saveNet(t, spotNet()) }

func saveNet(t *testing.T, net *bcnn.Network) string {
	file := filepath.Join(t.TempDir(), net.Name+".bcnn")
	require.NoError(t, modelfile.Save(file, net))
	return file
}

// spots is a dark image of so many pixels with light squares of a scale at places of an 8×8 image.
func spots(size int, level uint8, at ...image.Point) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, size, size))
	k := size / 8
	for _, p := range at {
		for y := range 2 * k {
			for x := range 2 * k {
				img.Pix[(p.Y*k+y)*img.Stride+p.X*k+x] = level
			}
		}
	}
	return img
}

func TestDetect(t *testing.T) {
	model, dir := saveSpotNet(t), t.TempDir()
	two := writePNG(t, filepath.Join(dir, "000042.png"), spots(8, 255, image.Pt(2, 4), image.Pt(6, 0)))
	none := writePNG(t, filepath.Join(dir, "none.png"), spots(8, 0))
	require.Equal(t, two+"  spot   1.000  6 0 8 2\n"+two+"  spot   1.000  2 4 4 6\n"+none+strings.Repeat(" ", len(two)-len(none))+"  nothing\n",
		succeed(t, "detect", "--model", model, "--device", "cpu", two, none))
	coco := filepath.Join(dir, "results.json")
	got := objects(t, succeed(t, "detect", "--json", "--coco", coco, "--model", model, "--device", "cpu", two, none), "file", "width", "height", "boxes", "device", "us")
	require.Len(t, got, 2)
	require.Equal(t, two, got[0]["file"])
	require.Equal(t, 8.0, got[0]["width"])
	require.Equal(t, "cpu", got[0]["device"])
	require.Equal(t, map[string]any{"label": "spot", "index": 1.0, "score": 1.0, "x0": 6.0, "y0": 0.0, "x1": 8.0, "y1": 2.0}, got[0]["boxes"].([]any)[0])
	require.Equal(t, []any{}, got[1]["boxes"])
	results, err := os.ReadFile(coco)
	require.NoError(t, err)
	require.JSONEq(t, `[{"image_id":42,"category_id":2,"bbox":[6,0,2,2],"score":1},{"image_id":42,"category_id":2,"bbox":[2,4,2,2],"score":1}]`, string(results))
	large := writePNG(t, filepath.Join(dir, "large.png"), spots(800, 255, image.Pt(2, 4)))
	require.Regexp(t, `  spot   0\.\d{3}  200 400 400 600\n$`, succeed(t, "detect", "--model", model, large))
	require.Equal(t, two+"  spot   1.000  6 0 8 2\n", succeed(t, "detect", "--top", "1", "--model", model, two))
	require.Len(t, strings.Split(succeed(t, "detect", "--threshold", "0.05", "--model", model, two), "\n"), 5)
	require.Equal(t, none+"  nothing\n", succeed(t, "detect", "--threshold", "0.05", "--model", model, none))
	require.Equal(t, got[0]["boxes"], objects(t, succeed(t, "detect", "--json", "--fit", "crop", "--channels", "rgb", "--model", model, two), "file", "width", "height", "boxes", "device", "us")[0]["boxes"])

	require.Contains(t, succeed(t, "inspect", model), "\nboxes: 2 classes; YOLO of 1 anchor; scores above 0.25, overlaps up to 0.45; photos: stretch\n")

	// Broken images are reported, others searched all the same; so are those of standard input.
	broken := writeFile(t, filepath.Join(dir, "broken.png"), "no image")
	r := runCommand(t, "detect", "--model", model, broken, two)
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, broken+": unsupported image format")
	require.Contains(t, r.stdout, "  spot   1.000  6 0 8 2\n")
	require.NoError(t, os.Remove(broken))
	stdin(t, two)
	require.Equal(t, "-  spot   1.000  6 0 8 2\n-  spot   1.000  2 4 4 6\n", succeed(t, "detect", "--model", model, "-"))
}

// Photos are drawn with their boxes: one to a file, several to a folder, under names of their own.
func TestDetectDraws(t *testing.T) {
	model, dir := saveSpotNet(t), t.TempDir()
	one := writePNG(t, filepath.Join(dir, "a", "x.png"), spots(64, 200, image.Pt(2, 4)))
	other := writePNG(t, filepath.Join(dir, "b", "x.png"), spots(64, 200))
	read := func(file string) image.Image {
		f, err := os.Open(file)
		require.NoError(t, err)
		defer f.Close()
		img, err := png.Decode(f)
		require.NoError(t, err)
		return img
	}
	before, err := os.ReadFile(one)
	require.NoError(t, err)
	for _, onto := range []string{one, filepath.Dir(one)} {
		require.Contains(t, fail(t, 1, "detect", "--model", model, "--draw", onto, one), "--draw would replace the photo itself, "+one)
		after, err := os.ReadFile(one)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
	out := filepath.Join(dir, "out.png")
	succeed(t, "detect", "--model", model, "--draw", out, one)
	img := read(out)
	require.Equal(t, image.Rect(0, 0, 64, 64), img.Bounds())
	for p, want := range map[image.Point]any{
		{16, 32}: colours[1], {31, 40}: colours[1], {17, 47}: colours[1], {24, 40}: "light", {40, 40}: "dark", {33, 32}: "dark",
	} {
		r, g, b, _ := img.At(p.X, p.Y).RGBA()
		switch want {
		case "light":
			require.Equal(t, [3]uint32{200 * 257, 200 * 257, 200 * 257}, [3]uint32{r, g, b})
		case "dark":
			require.Zero(t, r+g+b, p)
		default:
			wr, wg, wb, _ := colours[1].RGBA()
			require.Equal(t, [3]uint32{wr, wg, wb}, [3]uint32{r, g, b}, p)
		}
	}
	folder := filepath.Join(dir, "drawn")
	succeed(t, "detect", "--model", model, "--draw", folder, dir)
	require.Equal(t, read(out), read(filepath.Join(folder, "x.png")))
	require.NotEqual(t, read(out), read(filepath.Join(folder, "x-2.png")))
	require.Equal(t, read(other).Bounds(), read(filepath.Join(folder, "x-2.png")).Bounds())

	for want, args := range map[string][]string{
		"is for one photo, but there are 2":   {"--draw", out, one, other},
		"want a .png file or a folder":        {"--draw", filepath.Join(dir, "x.jpg"), one},
		"--fit \"x\": want stretch":           {"--fit", "x", one},
		"--channels \"x\": want rgb":          {"--channels", "x", one},
		"want a fraction from 0 to 1":         {"--threshold", "2", one},
		"standard input (-) can be read only": {"-", "-"},
	} {
		r := runCommand(t, append([]string{"detect", "--model", model}, args...)...)
		require.Equal(t, exitUsage, r.code)
		require.Contains(t, r.stderr, want)
	}
	r := runCommand(t, "detect", one)
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, "detect needs --model MODEL, a detector")
	r = runCommand(t, "detect", "--model", "vehiclenet", one)
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, "vehiclenet: the network does not describe how its outputs become boxes")
	r = runCommand(t, "classify", "--model", model, one)
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, "the model is a detector, not a classifier; use 'bcnn detect'")
}

// The face detector finds what OpenVINO finds, as it is published and as a model file of bytes.
func TestDetectFaces(t *testing.T) {
	const folder = "openvino/face-detection-adas-binary-0001/"
	dir := t.TempDir()
	labels := writeFile(t, filepath.Join(dir, "labels"), "face\n")
	model, file := testenv.SharedData(t, folder+"face-detection-adas-binary-0001.xml"), filepath.Join(dir, "faces.bcnn")
	succeed(t, "convert", model, "-o", file, "--labels", labels, "--input", "uint8")
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
		for _, m := range []string{model, file} {
			o := objects(t, succeed(t, "detect", "--json", "--model", m, testenv.SharedData(t, folder+name+".png")), "file", "width", "height", "boxes", "device", "us")
			boxes := o[0]["boxes"].([]any)
			require.Len(t, boxes, len(want.Faces))
			for i, b := range boxes {
				b := b.(map[string]any)
				require.InDelta(t, want.Faces[i].Confidence, b["score"], 0.01)
				for k, edge := range []string{"x0", "y0", "x1", "y1"} {
					require.InDelta(t, want.Faces[i].Box[k], b[edge], 3, "%s: %v", name, b)
				}
			}
		}
	}
}

// A detector of one output is no classifier.
func TestDetectorIsNoClassifier(t *testing.T) {
	m, err := bitcnn.Load(t.Context(), saveSpotNet(t), bitcnn.LoadOptions{})
	require.NoError(t, err)
	s, err := bitcnn.Open(t.Context(), m, bitcnn.Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = vision.NewClassifier(s, vision.Options{})
	require.ErrorContains(t, err, "the network is a detector")
}
