package bcnn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// detectors returns a network with a head of priors and one with two of anchors.
func detectors() (priors, anchors *bcnn.Network) {
	priors = &bcnn.Network{Name: "priors", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 1, W: 2, C: 3}, DType: bcnn.Float32, Photo: &bcnn.Photo{Fit: bcnn.FitStretch, BGR: true}}}}
	priors.Append("locations", bcnn.Dense{Out: 8, Weights: bcnn.Weights{F32: make([]float32, 8*6)}})
	priors.Append("scores", bcnn.Softmax{}, bcnn.NetworkInput)
	priors.Outputs, priors.Labels = []int{0, 1}, []string{"nothing", "face", "car"}
	priors.Detection = &bcnn.Detection{Classes: 3, Threshold: 0.01, Overlap: 0.45, Heads: []bcnn.Head{
		bcnn.SSD{Confidences: 1, Softmax: true, Priors: make([]float32, 8), Variances: make([]float32, 4)},
	}}
	anchors = &bcnn.Network{Name: "anchors", Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 2, W: 2, C: 12}, DType: bcnn.Float32}}}
	anchors.Append("a", bcnn.ReLU{})
	anchors.Append("b", bcnn.Channels{Index: []int32{0, 1, 2, 3, 4, 5}}, 0)
	anchors.Outputs = []int{0, 1}
	anchors.Detection = &bcnn.Detection{Classes: 1, Background: -1, Overlap: 0.5, Heads: []bcnn.Head{
		bcnn.YOLO{Anchors: [][2]float32{{1, 2}, {3.5, 4}}, Cells: true, Class: bcnn.SoftmaxActivation},
		bcnn.YOLO{Output: 1, Anchors: [][2]float32{{9, 8}}, Squared: true, Object: bcnn.LogisticActivation},
	}}
	return priors, anchors
}

func TestCheckDetection(t *testing.T) {
	priors, _ := detectors()
	shapes, err := priors.Shapes()
	require.NoError(t, err)
	require.NoError(t, priors.CheckDetection(shapes))
	require.EqualError(t, priors.CheckDetection(shapes[:1]), "1 shapes of 2 outputs")
	shapes[0].C = 9
	require.EqualError(t, priors.CheckDetection(shapes), "head 0 (ssd): output 0 has 9 values, want 4 locations for each of 2 priors")
	priors.Detection.Overlap = 2
	require.ErrorContains(t, priors.CheckDetection(shapes), "an overlap of 2, want 0 to 1")
	priors.Detection = nil
	require.NoError(t, priors.CheckDetection(nil))
}

func TestDetectionCheck(t *testing.T) {
	nan := float32(math.NaN())
	priors, anchors := detectors()
	require.NoError(t, priors.Check())
	require.NoError(t, anchors.Check())
	ssd := func(change func(s *bcnn.SSD)) func(n *bcnn.Network) {
		return func(n *bcnn.Network) {
			s := n.Detection.Heads[0].(bcnn.SSD)
			change(&s)
			n.Detection.Heads[0] = s
		}
	}
	for want, change := range map[string]func(n *bcnn.Network){
		"2 labels for 3 classes of boxes":                    func(n *bcnn.Network) { n.Labels = n.Labels[1:] },
		"0 classes, want 1 to":                               func(n *bcnn.Network) { n.Detection.Classes = 0 },
		"class 3 is the background, but there are 3 classes": func(n *bcnn.Network) { n.Detection.Background = 3 },
		"class -2 is the background":                         func(n *bcnn.Network) { n.Detection.Background = -2 },
		"a threshold of NaN":                                 func(n *bcnn.Network) { n.Detection.Threshold = nan },
		"an overlap of 1.5":                                  func(n *bcnn.Network) { n.Detection.Overlap = 1.5 },
		"-1 boxes of a class":                                func(n *bcnn.Network) { n.Detection.TopK = -1 },
		"-1 of an image":                                     func(n *bcnn.Network) { n.Detection.Keep = -1 },
		"it has no heads":                                    func(n *bcnn.Network) { n.Detection.Heads = nil },
		"head 0 is a <nil>":                                  func(n *bcnn.Network) { n.Detection.Heads[0] = nil },
		"head 0 is a *bcnn.SSD":                              func(n *bcnn.Network) { n.Detection.Heads[0] = (*bcnn.SSD)(nil) },
		"head 1 (ssd): it reads output 0, which does not exist or": func(n *bcnn.Network) { n.Detection.Heads = append(n.Detection.Heads, n.Detection.Heads[0]) },
		"it reads output 2, which does not exist":                  ssd(func(s *bcnn.SSD) { s.Confidences = 2 }),
		"it reads output 1, which does not exist or is read":       ssd(func(s *bcnn.SSD) { s.Locations = 1 }),
		"0 numbers of priors":                                      ssd(func(s *bcnn.SSD) { s.Priors = nil }),
		"7 numbers of priors":                                      ssd(func(s *bcnn.SSD) { s.Priors = s.Priors[1:] }),
		"5 variances, want 4, or 4 for each of 2 priors":           ssd(func(s *bcnn.SSD) { s.Variances = make([]float32, 5) }),
		"output 0 has 8 values, want 4 locations for each of 1":    ssd(func(s *bcnn.SSD) { s.Priors = s.Priors[:4] }),
		"output 1 has 6 values, want 2 confidences for each of 2":  func(n *bcnn.Network) { n.Detection.Classes, n.Labels = 2, nil },
		"output 1 is a softmax of 3 channels, want a softmax of 3": ssd(func(s *bcnn.SSD) { s.Softmax = false }),
		"output 1 is a logsoftmax of 3 channels, want":             func(n *bcnn.Network) { n.Layers[1].Op = bcnn.Softmax{Log: true} },
		"a prior or a variance is NaN":                             ssd(func(s *bcnn.SSD) { s.Variances[3] = nan }),
		"a prior or a variance is +Inf":                            ssd(func(s *bcnn.SSD) { s.Priors[7] = float32(math.Inf(1)) }),
		`an unknown way to fit photos, "x"`:                        func(n *bcnn.Network) { n.Inputs[0].Photo.Fit = "x" },
		"photos are resized to 9 and cropped, but fitted by":       func(n *bcnn.Network) { n.Inputs[0].Resize = 9 },
		"scale of photos has 2 values, want 1 or 3":                func(n *bcnn.Network) { n.Inputs[0].Photo.Scale = []float32{1, 2} },
		"mean of photos is NaN":                                    func(n *bcnn.Network) { n.Inputs[0].Photo.Mean = []float32{nan} },
		"mean and scale of photos are for float32": func(n *bcnn.Network) {
			n.Inputs[0].DType, n.Inputs[0].Photo.Mean = bcnn.Uint8, []float32{1}
		},
		"an order of channels, but it has one":   func(n *bcnn.Network) { n.Inputs[0].Shape.C = 1 },
		"photos have 1 or 3 channels, it has 12": func(n *bcnn.Network) { n.Inputs[0].Shape.C = 12 },
	} {
		n, _ := detectors()
		change(n)
		require.ErrorContains(t, n.Check(), want)
	}
	yolo := func(change func(y *bcnn.YOLO)) func(n *bcnn.Network) {
		return func(n *bcnn.Network) {
			y := n.Detection.Heads[0].(bcnn.YOLO)
			change(&y)
			n.Detection.Heads[0] = y
		}
	}
	for want, change := range map[string]func(n *bcnn.Network){
		"head 0 (yolo): class 0 is the background, which it has not":                      func(n *bcnn.Network) { n.Detection.Background = 0 },
		"0 anchors, want 1 to 1024":                                                       yolo(func(y *bcnn.YOLO) { y.Anchors = nil }),
		"output 0 has 12 channels, but 1 anchors with 5 values and 1 classes each have 6": yolo(func(y *bcnn.YOLO) { y.Anchors = y.Anchors[1:] }),
		"an anchor of 1×0":                         yolo(func(y *bcnn.YOLO) { y.Anchors[0][1] = 0 }),
		"an anchor of NaN×2":                       yolo(func(y *bcnn.YOLO) { y.Anchors[0][0] = nan }),
		`the function "softmax" on the centre`:     yolo(func(y *bcnn.YOLO) { y.Centre = bcnn.SoftmaxActivation }),
		`the function "softmax" on the objectness`: yolo(func(y *bcnn.YOLO) { y.Object = bcnn.SoftmaxActivation }),
		`the function "tanh" on the classes`:       yolo(func(y *bcnn.YOLO) { y.Class = "tanh" }),
		"output 0 is a softmax":                    func(n *bcnn.Network) { n.Layers[0].Op, n.Layers[1].Inputs = bcnn.Softmax{}, []int{bcnn.NetworkInput} },
	} {
		_, n := detectors()
		change(n)
		require.ErrorContains(t, n.Check(), want)
	}
	dfl := func() *bcnn.Network {
		_, n := detectors()
		n.Outputs, n.Detection.Classes = []int{0}, 4
		n.Layers = n.Layers[:1]
		n.Detection.Heads = []bcnn.Head{bcnn.DFL{Bins: 2, Class: bcnn.LogisticActivation}}
		return n
	}
	require.NoError(t, dfl().Check())
	for want, head := range map[string]bcnn.DFL{
		"head 0 (dfl): 1 values of a distance, want 2 to 1024":                        {Bins: 1},
		"1025 values of a distance, want 2 to 1024":                                   {Bins: 1025},
		"output 0 has 12 channels, but 4 distances of 3 values and 4 classes have 16": {Bins: 3},
		`the function "softmax" on the classes is not known`:                          {Bins: 2, Class: bcnn.SoftmaxActivation},
		"it reads output 1, which does not exist":                                     {Output: 1, Bins: 2},
	} {
		n := dfl()
		n.Detection.Heads[0] = head
		require.ErrorContains(t, n.Check(), want)
	}
	n := dfl()
	n.Detection.Background = 3
	require.ErrorContains(t, n.Check(), "class 3 is the background, which it has not")
	n = dfl()
	n.Layers[0].Op, n.Layers[0].Inputs = bcnn.Softmax{}, []int{bcnn.NetworkInput}
	require.ErrorContains(t, n.Check(), "output 0 is a softmax")
}
