package openvino

import (
	"cmp"
	"context"
	"encoding/json"
	"image"
	_ "image/png"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

const detector = "openvino/face-detection-adas-binary-0001/"

// box is what a DetectionOutput finds: a confidence, and corners in parts of the picture.
type box struct {
	confidence     float64
	x0, y0, x1, y1 float64
}

// floatsOf reads an attribute of numbers.
func floatsOf(t testing.TB, l *layer, name string) (list []float64) {
	for s := range strings.SplitSeq(l.attrs[name], ",") {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		list = append(list, v)
	}
	return list
}

// priors returns the boxes that the PriorBox layers of a graph of IR 4 give, in the order in which
// they are concatenated, and the variances.
func priors(t testing.TB, g *graph) (list []box, variances []float64) {
	for i := range g.layers {
		l := &g.layers[i]
		if l.typ != "PriorBox" {
			continue
		}
		feature, image := l.inputs[0].dims, l.inputs[1].dims
		least, most, step := floatsOf(t, l, "min_size")[0], floatsOf(t, l, "max_size")[0], floatsOf(t, l, "step")[0]
		sizes := [][2]float64{{least, least}, {math.Sqrt(least * most), math.Sqrt(least * most)}}
		for _, r := range floatsOf(t, l, "aspect_ratio") {
			root := math.Sqrt(r)
			sizes = append(sizes, [2]float64{least * root, least / root}, [2]float64{least / root, least * root})
		}
		h, w := float64(image[2]), float64(image[3])
		for y := range feature[2] {
			for x := range feature[3] {
				cx, cy := (float64(x)+0.5)*step, (float64(y)+0.5)*step
				for _, s := range sizes {
					list = append(list, box{0, (cx - s[0]/2) / w, (cy - s[1]/2) / h, (cx + s[0]/2) / w, (cy + s[1]/2) / h})
				}
			}
		}
		variances = floatsOf(t, l, "variance")
	}
	return list, variances
}

// detect does what the DetectionOutput does with what it reads.
func detect(priors []box, variances []float64, locations, confidences []float32, above, overlap float64) (found []box) {
	var all []box
	for i, p := range priors {
		score := float64(confidences[2*i+1])
		if score <= above {
			continue
		}
		l := locations[4*i:]
		w, h := p.x1-p.x0, p.y1-p.y0
		cx := variances[0]*float64(l[0])*w + (p.x0+p.x1)/2
		cy := variances[1]*float64(l[1])*h + (p.y0+p.y1)/2
		w, h = w*math.Exp(variances[2]*float64(l[2])), h*math.Exp(variances[3]*float64(l[3]))
		all = append(all, box{score, cx - w/2, cy - h/2, cx + w/2, cy + h/2})
	}
	slices.SortStableFunc(all, func(a, b box) int { return cmp.Compare(b.confidence, a.confidence) })
	for _, b := range all {
		if !slices.ContainsFunc(found, func(f box) bool {
			w, h := min(b.x1, f.x1)-max(b.x0, f.x0), min(b.y1, f.y1)-max(b.y0, f.y0)
			both := max(w, 0) * max(h, 0)
			return both > overlap*((b.x1-b.x0)*(b.y1-b.y0)+(f.x1-f.x0)*(f.y1-f.y0)-both)
		}) {
			found = append(found, b)
		}
	}
	return found
}

// picture returns the values of a photo as the detector takes them: B, G, R, channel by channel.
func picture(t testing.TB, file string) []float32 {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	img, _, err := image.Decode(f)
	require.NoError(t, err)
	b := img.Bounds()
	n := b.Dx() * b.Dy()
	out := make([]float32, 3*n)
	for y := range b.Dy() {
		for x := range b.Dx() {
			r, g, bl, _ := img.At(x, y).RGBA()
			for c, v := range []uint32{bl, g, r} {
				out[c*n+y*b.Dx()+x] = float32(v >> 8)
			}
		}
	}
	return out
}

// The trained face detector, in IR 11 and as it was published, finds the faces that OpenVINO finds,
// with what its DetectionOutput reads.
func TestFaceDetector(t *testing.T) {
	const old = detector + "ir4/face-detection-adas-binary-0001.xml"
	xml, err := os.ReadFile(testenv.SharedData(t, old))
	require.NoError(t, err)
	g, err := decodeXML(xml, 1000, budget.New(context.Background(), math.MaxInt64))
	require.NoError(t, err)
	boxes, variances := priors(t, g)
	for _, file := range []string{detector + "face-detection-adas-binary-0001.xml", old} {
		net, report, err := Load(t.Context(), testenv.SharedData(t, file), Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"detection_out"}, report.Detections)
		require.Len(t, net.Deviations, 1)
		binary := 0
		for _, l := range net.Layers {
			if l.Op.Kind() == "sign" {
				binary++
			}
		}
		require.Equal(t, 11, binary)
		for _, name := range []string{"astronaut", "hopper", "two_faces"} {
			got := onCPU(t, net, picture(t, testenv.SharedData(t, detector+name+".png")))
			answers := arrays(t, testenv.SharedData(t, detector+name+".npz"))
			for _, output := range []string{"mbox_loc", "mbox_conf_flatten"} {
				// One sign near 0 that falls the other way would change many of these, by little.
				want, _ := numbers(t, answers, output)
				far := 0
				for i := range want {
					if d := float64(want[i] - got[output][i]); max(d, -d) > 0.01 {
						far++
					}
				}
				t.Logf("%s of %s: %d of %d values differ by more than 0.01", output, name, far, len(want))
				require.Less(t, far, len(want)/20)
			}
			requireFaces(t, testenv.SharedData(t, detector+name+".json"), detect(boxes, variances, got["mbox_loc"], got["mbox_conf_flatten"], 0.5, 0.45))
		}
	}
}

func requireFaces(t testing.TB, file string, found []box) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var want struct {
		Width, Height float64
		Faces         []struct {
			Confidence float64
			Box        [4]float64
		}
	}
	require.NoError(t, json.Unmarshal(data, &want))
	require.Len(t, found, len(want.Faces))
	for i, f := range want.Faces {
		b := found[i]
		require.InDelta(t, f.Confidence, b.confidence, 0.01)
		for k, v := range []float64{b.x0 * want.Width, b.y0 * want.Height, b.x1 * want.Width, b.y1 * want.Height} {
			require.InDelta(t, f.Box[k], v, 3)
		}
	}
}
