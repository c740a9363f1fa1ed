package vehiclenet_test

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vehiclenet"
	"github.com/bitcnn/bitcnn/vision"
)

// seen is what the network makes of a photo.
type seen struct {
	label, answer string
	probability   float64
	inner         []float64 // the sums of the first dense layer, of length 1
}

// observer runs vehiclenet with an output more: the sums of its first dense layer.
func observer(t *testing.T) func(label string, img image.Image) seen {
	net, err := vehiclenet.Load(t.Context(), "vehiclenet")
	require.NoError(t, err)
	dense := slices.IndexFunc(net.Layers, func(l bcnn.Layer) bool { return l.Name == "dense1" })
	require.Positive(t, dense)
	net.Outputs = []int{len(net.Layers) - 1, dense}
	session, err := bitcnn.Open(t.Context(), net, bitcnn.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	in := vision.Preprocessing{Input: net.Inputs[0]}
	return func(label string, img image.Image) seen {
		x := bcnn.NewTensor(bcnn.Uint8, 1, net.Inputs[0].Shape)
		require.NoError(t, in.Fill(t.Context(), x, 0, img))
		out, err := session.Predict(t.Context(), x)
		require.NoError(t, err)
		best := vision.TopK(out[0].F32, net.Labels, 1)[0]
		s := seen{label: label, answer: best.Label, probability: best.Probability}
		length := 0.0
		for _, v := range out[1].F32 {
			s.inner = append(s.inner, float64(v))
			length += float64(v) * float64(v)
		}
		for i := range s.inner {
			s.inner[i] /= math.Sqrt(length)
		}
		return s
	}
}

// What docs/photos.md says about "none of these": neither a limit of the probability nor
// the distance to the photos of the training tells vehicles from other things. Whoever has a rule
// that does changes these figures.
func TestNoneOfThese(t *testing.T) {
	testenv.Long(t)
	folder := testenv.SharedData(t, "vehicles")
	see := observer(t)
	var training, held []seen
	for _, label := range vehicleLabels {
		for i := 1; i <= 640; i++ {
			img, err := vision.DecodeFile(t.Context(), filepath.Join(folder, label, fmt.Sprintf("%s%d.jpg", label, i)))
			require.NoError(t, err)
			if s := see(label, img); i <= 560 {
				training = append(training, s)
			} else {
				held = append(held, s)
			}
		}
	}
	right := slices.DeleteFunc(held, func(s seen) bool { return s.label != s.answer })
	require.Len(t, right, 455)

	// The first hundred images of CIFAR-10: 28 cars and trucks, and 72 other things.
	pixels, err := os.ReadFile(testenv.SharedData(t, "cifar10/first100_32x32x3_hwc_u8.bin"))
	require.NoError(t, err)
	classes, err := os.ReadFile(testenv.SharedData(t, "cifar10/first100_labels_u8.bin"))
	require.NoError(t, err)
	var vehicles, others []seen
	for i, class := range classes {
		img := image.NewRGBA(image.Rect(0, 0, 32, 32))
		for j := range 32 * 32 {
			copy(img.Pix[4*j:], append(slices.Clone(pixels[3*(32*32*i+j):][:3]), 255))
		}
		switch class {
		case 1:
			vehicles = append(vehicles, see("car", img))
		case 9:
			vehicles = append(vehicles, see("truck juggernaut pickup", img))
		default:
			others = append(others, see("", img))
		}
	}
	correct := slices.DeleteFunc(slices.Clone(vehicles), func(s seen) bool { return !slices.Contains(strings.Fields(s.label), s.answer) })
	require.Len(t, correct, 9)

	nearest := func(s seen) float64 { // the cosine
		best := -1.0
		for _, other := range training {
			cosine := 0.0
			for i, v := range s.inner {
				cosine += v * other.inner[i]
			}
			best = max(best, cosine)
		}
		return best
	}
	type refused struct{ others, vehicles int }
	for name, c := range map[string]struct {
		score func(seen) float64
		want  refused
	}{
		"probability": {func(s seen) float64 { return s.probability }, refused{33, 14}},
		"distance":    {nearest, refused{65, 27}},
	} {
		scores := func(list []seen) (all []float64) {
			for _, s := range list {
				all = append(all, c.score(s))
			}
			return all
		}
		of := scores(right)
		slices.SortFunc(of, cmp.Compare[float64])
		limit := of[len(of)*3/100] // 442 of the 455 right answers stay
		below := func(list []seen) (n int) {
			for _, v := range scores(list) {
				if v < limit {
					n++
				}
			}
			return n
		}
		require.Equal(t, c.want, refused{below(others), below(vehicles)}, name)
	}
}

var vehicleLabels = []string{"bike", "car", "juggernaut", "minibus", "pickup", "truck"}
