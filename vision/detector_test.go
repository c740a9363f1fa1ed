package vision

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
)

// answers is a session whose outputs are given, the same for every image.
type answers struct {
	input   bitcnn.IO
	outputs []bcnn.Tensor
	labels  []string
	batch   int
}

func (a *answers) Inputs() []bitcnn.IO { return []bitcnn.IO{a.input} }
func (a *answers) Outputs() (list []bitcnn.IO) {
	for _, o := range a.outputs {
		list = append(list, bitcnn.IO{Name: "out", DType: bcnn.Float32, Shape: o.Shape})
	}
	return list
}
func (a *answers) Labels() []string { return a.labels }
func (a *answers) MaxBatch() int    { return max(1, a.batch) }
func (a *answers) Run(_ context.Context, out, in []bcnn.Tensor) error {
	if err := in[0].Check(a.input.DType, a.input.Shape); err != nil { // as a session does
		return err
	}
	for k := range out {
		for i := range in[0].N {
			copy(out[k].Images(i, 1).F32, a.outputs[k].F32)
		}
	}
	return nil
}

// answering makes a session of an input of 40×20 pixels (width, height) that is stretched.
func answering(outputs ...bcnn.Tensor) *answers {
	return &answers{input: bitcnn.IO{
		DType: bcnn.Uint8, Shape: bcnn.Shape{H: 20, W: 40, C: 3}, Photo: &bcnn.Photo{Fit: bcnn.FitStretch},
	}, outputs: outputs}
}

func output(h, w, c int, values ...float32) bcnn.Tensor {
	return bcnn.Tensor{DType: bcnn.Float32, N: 1, Shape: bcnn.Shape{H: h, W: w, C: c}, F32: values}
}

// found runs a detector on a photo of 80×20.
func found(t *testing.T, s *answers, d *bcnn.Detection, opts DetectorOptions) []Box {
	t.Helper()
	det, err := newDetector(s, d, opts)
	require.NoError(t, err)
	boxes, err := det.Detect(t.Context(), image.NewGray(image.Rect(0, 0, 80, 20)))
	require.NoError(t, err)
	return boxes
}

func requireBoxes(t *testing.T, want, got []Box) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		g := got[i]
		require.Equal(t, w.Label, g.Label)
		require.Equal(t, w.Index, g.Index)
		for k, v := range [][2]float32{{w.Score, g.Score}, {w.X0, g.X0}, {w.Y0, g.Y0}, {w.X1, g.X1}, {w.Y1, g.Y1}} {
			require.InDelta(t, v[0], v[1], 1e-4, "box %d, number %d: %+v", i, k, g)
		}
	}
}

// logit of a probability.
func logit(p float64) float32 { return float32(math.Log(p / (1 - p))) }

// Boxes of priors, computed by hand.
func TestPriors(t *testing.T) {
	// The first prior is moved by an eighth of its width and twice as high, the second stays.
	locations := output(1, 1, 8, 1.25, 0, 0, float32(math.Log(2)/0.2), 0, 0, 0, 0)
	log := func(p ...float64) (list []float32) {
		for _, v := range p {
			list = append(list, float32(math.Log(v)))
		}
		return list
	}
	confidences := output(1, 2, 3, append(log(0.1, 0.2, 0.7), log(0.3, 0.6, 0.1)...)...)
	s := answering(locations, confidences)
	s.labels = []string{"nothing", "car", "face"}
	d := &bcnn.Detection{Classes: 3, Threshold: 0.01, Overlap: 0.5, Heads: []bcnn.Head{bcnn.SSD{
		Confidences: 1, Softmax: true, Priors: []float32{0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 1.5, 1}, Variances: []float32{0.1, 0.1, 0.2, 0.2},
	}}}
	want := []Box{
		{Label: "face", Index: 2, Score: 0.7, X0: 0.28125 * 80, X1: 0.53125 * 80, Y0: 0.125 * 20, Y1: 0.625 * 20},
		{Label: "car", Index: 1, Score: 0.6, X0: 40, X1: 80, Y0: 10, Y1: 20},
	}
	requireBoxes(t, want, found(t, s, d, DetectorOptions{}))
	requireBoxes(t, want[:1], found(t, s, d, DetectorOptions{Threshold: 0.65}))
	requireBoxes(t, want[:1], found(t, s, d, DetectorOptions{Top: 1}))
	all := found(t, s, d, DetectorOptions{Threshold: 0.05})
	require.Len(t, all, 4)
	require.Equal(t, []int{2, 1, 1, 2}, []int{all[0].Index, all[1].Index, all[2].Index, all[3].Index})
	// Scores that need no softmax, variances for each prior.
	h := d.Heads[0].(bcnn.SSD)
	h.Softmax, h.Variances = false, append(h.Variances, 1, 1, 1, 1)
	d.Heads[0] = h
	s.outputs[1].F32 = []float32{0.1, 0.2, 0.7, 0.3, 0.6, 0.1}
	requireBoxes(t, want, found(t, s, d, DetectorOptions{}))
	// Without a background the first class counts; without labels classes have numbers.
	d.Background, s.labels, s.outputs[1].F32 = -1, nil, []float32{0.9, 0, 0, 0, 0, 0}
	want[0].Label, want[0].Index, want[0].Score = "0", 0, 0.9
	requireBoxes(t, want[:1], found(t, s, d, DetectorOptions{}))
	// Sizes beyond float32 are no boxes.
	s.outputs[0].F32[3] = 1e4
	require.Empty(t, found(t, s, d, DetectorOptions{}))
}

// Boxes of anchors, computed by hand, with every function that may be missing.
func TestAnchors(t *testing.T) {
	// A map of 1×2 cells with two anchors and two classes: an object in the second cell, of the
	// second anchor.
	one := func(x, y, w, h, object, a, b float32) bcnn.Tensor {
		values := make([]float32, 2*2*7)
		for i := range 4 {
			values[7*i+4] = -20 // no object, before the logistic function as after it
		}
		copy(values[21:], []float32{x, y, w, h, object, a, b})
		return output(1, 2, 14, values...)
	}
	logistic := bcnn.LogisticActivation
	anchors := [][2]float32{{1, 1}, {10, 5}}
	for _, c := range []struct {
		out  bcnn.Tensor
		head bcnn.YOLO
		want Box
	}{
		// Centre at (1 + ½)/2 of 80 pixels and ¼ of 20; a size of 2·10/40 of 80, ½·5/20 of 20.
		{one(0.5, 0.25, float32(math.Log(2)), float32(math.Log(0.5)), 0.9, 0.1, 0.8), bcnn.YOLO{Anchors: anchors},
			Box{Label: "1", Index: 1, Score: 0.72, X0: 40, X1: 80, Y0: 3.75, Y1: 6.25}},
		{one(0, logit(0.25), float32(math.Log(2)), float32(math.Log(0.5)), logit(0.9), logit(0.1), logit(0.8)),
			bcnn.YOLO{Anchors: anchors, Centre: logistic, Object: logistic, Class: logistic},
			Box{Label: "1", Index: 1, Score: 0.72, X0: 40, X1: 80, Y0: 3.75, Y1: 6.25}},
		{one(0.5, 0.25, float32(math.Log(2)), float32(math.Log(0.5)), 0.9, 3, 3+logit(0.8)), bcnn.YOLO{Anchors: anchors, Class: bcnn.SoftmaxActivation},
			Box{Label: "1", Index: 1, Score: 0.72, X0: 40, X1: 80, Y0: 3.75, Y1: 6.25}},
		// In cells, half a cell wide and a quarter of one high.
		{one(0.5, 0.25, float32(math.Log(0.05)), float32(math.Log(0.05)), 0.9, 0.1, 0.8), bcnn.YOLO{Anchors: anchors, Cells: true},
			Box{Label: "1", Index: 1, Score: 0.72, X0: 50, X1: 70, Y0: 2.5, Y1: 7.5}},
		// (2·½)² and (2·0.7071)².
		{one(0.5, 0.5, 0.5, float32(math.Sqrt(0.5)), 0.9, 0.1, 0.8), bcnn.YOLO{Anchors: anchors, Squared: true},
			Box{Label: "1", Index: 1, Score: 0.72, X0: 50, X1: 70, Y0: 5, Y1: 15}},
	} {
		d := &bcnn.Detection{Classes: 2, Background: -1, Threshold: 0.25, Overlap: 0.45, Heads: []bcnn.Head{c.head}}
		requireBoxes(t, []Box{c.want}, found(t, answering(c.out), d, DetectorOptions{}))
		require.Empty(t, found(t, answering(c.out), d, DetectorOptions{Threshold: 0.73}))
	}
}

// squares makes a network that says of squares, by their left edge in a photo of 80×20, the scores of each class.
func squares(classes int, lefts []float32, scores ...float32) (*answers, *bcnn.Detection) {
	head := bcnn.SSD{Confidences: 1, Variances: []float32{1, 1, 1, 1}}
	for _, x := range lefts {
		head.Priors = append(head.Priors, x/80, 0, (x+20)/80, 1)
	}
	n := len(lefts)
	return answering(output(1, 1, 4*n, make([]float32, 4*n)...), output(1, n, classes, scores...)),
		&bcnn.Detection{Classes: classes, Background: -1, Overlap: 0.5, Heads: []bcnn.Head{head}}
}

func lefts(boxes []Box) (list []float32) {
	for _, b := range boxes {
		list = append(list, float32(math.Round(float64(b.X0))))
	}
	return list
}

func TestSuppression(t *testing.T) {
	low := DetectorOptions{Threshold: 0.1}
	for _, c := range []struct {
		name   string
		lefts  []float32
		scores []float32
		opts   DetectorOptions
		change func(d *bcnn.Detection)
		want   []float32
	}{
		{"the better one stays", []float32{0, 4, 40}, []float32{0.6, 0.7, 0.5}, low, nil, []float32{4, 40}},
		{"what a dropped one overlaps stays", []float32{0, 6, 12}, []float32{0.9, 0.8, 0.7}, low, nil, []float32{0, 12}},
		{"of equal scores the first", []float32{0, 4, 40, 44}, []float32{0.6, 0.6, 0.6, 0.6}, low, nil, []float32{0, 40}},
		{"an overlap of a third is allowed", []float32{0, 10}, []float32{0.9, 0.8}, low, nil, []float32{0, 10}},
		{"and not beyond the bound", []float32{0, 10}, []float32{0.9, 0.8}, DetectorOptions{Threshold: 0.1, Overlap: 0.3}, nil, []float32{0}},
		{"none is dropped", []float32{0, 0, 1}, []float32{0.9, 0.8, 0.7}, DetectorOptions{Threshold: 0.1, Overlap: 1}, nil, []float32{0, 0, 1}},
		{"scores exceed the threshold", []float32{0, 40}, []float32{0.5, 0.5000001}, DetectorOptions{}, nil, []float32{40}},
		{"that of the model where it is higher", []float32{0, 40}, []float32{0.6, 0.8}, DetectorOptions{}, func(d *bcnn.Detection) { d.Threshold = 0.7 }, []float32{40}},
		{"that of the options is taken", []float32{0, 40}, []float32{0.6, 0.8}, low, func(d *bcnn.Detection) { d.Threshold = 0.7 }, []float32{40, 0}},
		{"boxes of a class", []float32{0, 4, 40, 60}, []float32{0.9, 0.8, 0.7, 0.6}, low, func(d *bcnn.Detection) { d.TopK = 3 }, []float32{0, 40}},
		{"boxes of an image", []float32{0, 20, 40, 60}, []float32{0.6, 0.9, 0.7, 0.8}, low, func(d *bcnn.Detection) { d.Keep = 3 }, []float32{20, 60, 40}},
		{"fewer by the options", []float32{0, 20, 40, 60}, []float32{0.6, 0.9, 0.7, 0.8}, DetectorOptions{Threshold: 0.1, Top: 2}, func(d *bcnn.Detection) { d.Keep = 3 }, []float32{20, 60}},
		{"beyond the photo is cut", []float32{-10, 70, 90}, []float32{0.6, 0.9, 0.7}, low, nil, []float32{70, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, d := squares(1, c.lefts, c.scores...)
			if c.change != nil {
				c.change(d)
			}
			require.Equal(t, c.want, lefts(found(t, s, d, c.opts)))
		})
	}
	// Boxes of other classes are not dropped; of equal scores the lower class is first.
	s, d := squares(2, []float32{0, 4}, 0.6, 0.8, 0.8, 0.6)
	boxes := found(t, s, d, low)
	require.Equal(t, []float32{4, 0}, lefts(boxes))
	require.Equal(t, 0, boxes[0].Index)
	require.Equal(t, 1, boxes[1].Index)
}

// A model of a stranger: 100,000 boxes of one score, which nothing bounds.
func TestManyEqualBoxes(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	at, scores := make([]float32, n), make([]float32, n)
	for i := range at {
		at[i], scores[i] = rng.Float32()*60, 0.9
	}
	s, d := squares(1, at, scores...)
	boxes := found(t, s, d, DetectorOptions{Overlap: 1})
	require.Len(t, boxes, mostKeep)
	for i, b := range boxes { // the first ones
		require.InDelta(t, at[i], b.X0, 1e-4)
	}
	require.Less(t, len(found(t, s, d, DetectorOptions{})), 12)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	det, err := newDetector(s, d, DetectorOptions{})
	require.NoError(t, err)
	_, err = det.decoder.boxes(ctx, [][]float32{s.outputs[0].F32, s.outputs[1].F32}, Frame{})
	require.ErrorIs(t, err, context.Canceled)
}

// The same outputs give the same boxes, to the bit, on every machine.
func TestBoxesAreTheSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := func(n int, scale float64) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(rng.NormFloat64() * scale)
		}
		return list
	}
	const n = 500
	priors := make([]float32, 4*n)
	for i := range n {
		x, y := rng.Float32(), rng.Float32()
		copy(priors[4*i:], []float32{x - 0.1, y - 0.2, x + 0.1, y + 0.2})
	}
	logistic := bcnn.LogisticActivation
	sum, count := crc32.NewIEEE(), 0
	for _, c := range []struct {
		d   bcnn.Detection
		out []bcnn.Tensor
	}{
		{bcnn.Detection{Classes: 3, Overlap: 0.45, Heads: []bcnn.Head{bcnn.SSD{Confidences: 1, Softmax: true, Priors: priors, Variances: []float32{0.1, 0.1, 0.2, 0.2}}}},
			[]bcnn.Tensor{output(1, 1, 4*n, values(4*n, 2)...), output(1, n, 3, values(3*n, 3)...)}},
		{bcnn.Detection{Classes: 3, Background: -1, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{
			Anchors: [][2]float32{{3, 4}, {20, 9}}, Centre: logistic, Object: logistic, Class: logistic,
		}}}, []bcnn.Tensor{output(7, 9, 16, values(7*9*16, 2)...)}},
	} {
		s := answering(c.out...)
		for _, b := range found(t, s, &c.d, DetectorOptions{Threshold: 0.2}) {
			text, err := json.Marshal(b)
			require.NoError(t, err)
			_, _ = sum.Write(text)
			count++
		}
	}
	require.Greater(t, count, 200)
	require.Equal(t, boxSum, sum.Sum32())
}

// boxSum is what the first machine gave.
const boxSum = uint32(0x44d16268)

func TestDetectorRefuses(t *testing.T) {
	s, d := squares(1, []float32{0}, 0.9)
	for want, change := range map[string]func(s *answers, d **bcnn.Detection, o *DetectorOptions){
		"does not describe how its outputs become boxes": func(_ *answers, d **bcnn.Detection, _ *DetectorOptions) { *d = nil },
		"a threshold of -1":               func(_ *answers, _ **bcnn.Detection, o *DetectorOptions) { o.Threshold = -1 },
		"an overlap of NaN":               func(_ *answers, _ **bcnn.Detection, o *DetectorOptions) { o.Overlap = float32(math.NaN()) },
		"-1 boxes, want 0 or more":        func(_ *answers, _ **bcnn.Detection, o *DetectorOptions) { o.Top = -1 },
		"not an image":                    func(s *answers, _ **bcnn.Detection, _ *DetectorOptions) { s.input.Shape.C = 2 },
		"mean and scale are for networks": func(_ *answers, _ **bcnn.Detection, o *DetectorOptions) { o.Mean = []float32{1} },
		`images fitted by "x"`:            func(_ *answers, _ **bcnn.Detection, o *DetectorOptions) { o.Photo = &bcnn.Photo{Fit: "x"} },
	} {
		other, det, opts := *s, d, DetectorOptions{}
		change(&other, &det, &opts)
		_, err := newDetector(&other, det, opts)
		require.ErrorContains(t, err, want)
	}
	_, err := NewDetector(nil, DetectorOptions{})
	require.ErrorContains(t, err, "got nil")
	det, err := newDetector(s, d, DetectorOptions{})
	require.NoError(t, err)
	_, err = det.Detect(t.Context(), nil)
	require.ErrorContains(t, err, "the image is nil")
	in := bcnn.NewTensor(bcnn.Uint8, 2, bcnn.Shape{H: 20, W: 40, C: 3})
	_, err = det.DetectTensor(t.Context(), in, Frame{})
	require.ErrorContains(t, err, "1 frames of 2 images")
	_, err = det.DetectTensor(t.Context(), bcnn.Tensor{})
	require.ErrorContains(t, err, "want uint8 20×40×3")
	both, err := det.DetectTensor(t.Context(), in, Frame{0, 0, 80, 20, image.Pt(80, 20)}, Frame{0, 0, 40, 20, image.Pt(40, 20)})
	require.NoError(t, err)
	require.Equal(t, float32(20), both[0].Boxes[0].X1)
	require.Equal(t, float32(10), both[1].Boxes[0].X1)
	text, err := json.Marshal(both[1])
	require.NoError(t, err)
	require.Regexp(t, `^{"width":40,"height":20,"boxes":\[{"label":"0","index":0,"score":0.9,"x0":0,"y0":0,"x1":10,"y1":20}\],"us":[0-9.]+}$`, string(text))
	s.outputs[1].F32[0] = float32(math.NaN())
	_, err = det.DetectTensor(t.Context(), in.Images(0, 1), Frame{})
	require.ErrorContains(t, err, "out: output 0 of the model is NaN")
}
