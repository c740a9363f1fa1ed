package openvino

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// ssd are the attributes of a DetectionOutput as Open Model Zoo's have them.
const ssd = `num_classes="2" background_label_id="0" top_k="400" keep_top_k="200" code_type="caffe.PriorBoxParameter.CENTER_SIZE" share_location="true" ` +
	`nms_threshold="0.45" confidence_threshold="0.01" normalized="true" variance_encoded_in_target="false" clip_after_nms="false" objectness_score="0"`

const priorAttributes = `min_size="16" max_size="38.4" aspect_ratio="2" density="" fixed_ratio="" fixed_size="" clip="false" flip="true" step="16" offset="0.5" variance="0.1, 0.1, 0.2, 0.2" scale_all_sizes="true"`

// priorLayer adds a layer of priors on a feature map of 1×2 cells of an image of 32×48, and returns it with the
// batch in front.
func (w *writer) priorLayer(typ, attrs string, boxes int) int {
	sizes := func(h, v int64) int { return w.ints(h, v) }
	p := w.op(typ, attrs, []int{2, 8 * boxes}, sizes(1, 2), sizes(32, 48))
	return w.op("Unsqueeze", "", []int{1, 2, 8 * boxes}, p, w.ints(0))
}

// detector writes a detector of two priors layers, of 8 and 4 priors: locations and confidences are
// those of a convolution in the order of rows, columns and channels.
func (w *writer) detector(attrs string, change func(w *writer, priors int) int) pair {
	const n = 12
	x := w.parameter(1, 3, 1, 2)
	part := func(values int) int {
		c := w.floats([]int{n * values / 2, 3, 1, 1}, make([]float32, n*values/2*3)...)
		y := w.op("Convolution", explicit(1, 0), []int{1, n * values / 2, 1, 2}, x, c)
		y = w.op("Transpose", "", []int{1, 1, 2, n * values / 2}, y, w.ints(0, 2, 3, 1))
		return w.op("Reshape", `special_zero="true"`, []int{1, n * values}, y, w.ints(1, -1))
	}
	loc := part(4)
	conf := w.op("Reshape", `special_zero="true"`, []int{1, n, 2}, part(2), w.ints(1, n, 2))
	conf = w.op("Reshape", `special_zero="true"`, []int{1, 2 * n}, w.op("SoftMax", `axis="2"`, nil, conf), w.ints(1, -1))
	a, b := w.priorLayer("PriorBox", priorAttributes, 4), w.priorLayer("PriorBoxClustered", `width="4,8" height="16,2" clip="true" step="16" offset="0.5" variance="0.1,0.1,0.2,0.2"`, 2)
	priors := w.op("Concat", `axis="2"`, []int{1, 2, 4 * n}, a, b)
	if change != nil {
		priors = change(w, priors)
	}
	w.result(w.op("DetectionOutput", attrs, []int{1, 1, 200, 7}, loc, conf, priors))
	return w.files()
}

// What a DetectionOutput says becomes the description of boxes, which a model file keeps.
func TestDetectionOutput(t *testing.T) {
	f := newWriter().detector(ssd, nil)
	net, report, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{Labels: []string{"", "face"}})
	require.NoError(t, err)
	require.Equal(t, []string{"detectionoutput_" + fmt.Sprint(strings.Count(f.xml, "<layer ")-2)}, report.Detections)
	require.Len(t, net.Deviations, 1)
	require.Equal(t, &bcnn.Photo{Fit: bcnn.FitStretch, BGR: true}, net.Inputs[0].Photo)
	d := *net.Detection
	head := d.Heads[0].(bcnn.SSD)
	d.Heads = nil
	require.Equal(t, bcnn.Detection{Classes: 2, Threshold: 0.01, Overlap: 0.45, TopK: 400, Keep: 200}, d)
	require.Equal(t, []float32{0.1, 0.1, 0.2, 0.2}, head.Variances)
	require.True(t, head.Softmax)
	require.Equal(t, [2]int{0, 1}, [2]int{head.Locations, head.Confidences})
	require.Len(t, head.Priors, 48)
	// In pixels, of the second cell's layer: its centre is 24, 8.
	for i, want := range map[int][4]float32{
		0: {0, 0, 16, 16}, 2: {-3.3137, 2.3431, 19.3137, 13.6569}, 3: {2.3431, -3.3137, 13.6569, 19.3137}, 4: {16, 0, 32, 16},
		5: {11.6064, -4.3936, 36.3936, 20.3936}, 8: {6, 0, 10, 16}, 9: {4, 7, 12, 9}, 10: {22, 0, 26, 16},
	} {
		for k, v := range want {
			require.InDelta(t, v, head.Priors[4*i+k]*[]float32{48, 32}[k%2], 1e-3, "%d %d", i, k)
		}
	}
	b, err := modelfile.Encode(net)
	require.NoError(t, err)
	back, err := modelfile.Read(t.Context(), b, modelfile.Options{})
	require.NoError(t, err)
	require.Equal(t, net.Detection, back.Detection)
	require.Equal(t, net.Inputs[0].Photo, back.Inputs[0].Photo)

	net, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{Resize: 9})
	require.NoError(t, err)
	require.Equal(t, &bcnn.Photo{BGR: true}, net.Inputs[0].Photo)
	require.Equal(t, 9, net.Inputs[0].Resize)
	net, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{Labels: []string{"a"}})
	require.NoError(t, err)
	require.Equal(t, []string{"background", "a"}, net.Labels)
	_, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{Labels: []string{"a", "b", "c"}})
	require.ErrorContains(t, err, "it has 3 labels for 2 classes of boxes")

	// Variances in the locations, and of each prior.
	f = newWriter().detector(strings.Replace(ssd, `target="false"`, `target="true"`, 1), nil)
	net, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1, 1, 1}, net.Detection.Heads[0].(bcnn.SSD).Variances)
	f = newWriter().detector(ssd, func(w *writer, priors int) int {
		values := make([]float32, 96)
		for i := range values {
			values[i] = float32(i)
		}
		return w.floats([]int{1, 2, 48}, values...)
	})
	net, _, err = Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.NoError(t, err)
	require.Len(t, net.Detection.Heads[0].(bcnn.SSD).Variances, 48)
}

// Where boxes cannot be made, the network is imported, and says why.
func TestBoxesAreNotDecoded(t *testing.T) {
	replace := func(old, changed string) func() pair {
		return func() pair {
			f := newWriter().detector(ssd, nil)
			xml := strings.Replace(f.xml, old, changed, 1)
			if xml == f.xml {
				panic(old)
			}
			return pair{xml, f.bin}
		}
	}
	for want, make := range map[string]func() pair{
		`its attribute code_type is "caffe.PriorBoxParameter.CORNER"`:        replace("CENTER_SIZE", "CORNER"),
		`its attribute code_type is missing`:                                 replace(`code_type="caffe.PriorBoxParameter.CENTER_SIZE"`, ""),
		`its attribute share_location is "false", want true`:                 replace(`share_location="true"`, `share_location="false"`),
		`its attribute normalized is "false", want true`:                     replace(`normalized="true"`, `normalized="false"`),
		`its attribute clip_after_nms is "true", want false`:                 replace(`clip_after_nms="false"`, `clip_after_nms="true"`),
		`its attribute nms_threshold is missing`:                             replace(`nms_threshold="0.45"`, ""),
		`its attribute num_classes is "3", want 2`:                           replace(`num_classes="2"`, `num_classes="3"`),
		`its attribute objectness, "1", is not supported`:                    replace(`objectness_score="0"`, `objectness="1"`),
		`(PriorBox): its attribute fixed_size is "4", want none`:             replace(`fixed_size=""`, `fixed_size="4"`),
		`its attribute scale_all_sizes is "false", want true`:                replace(`scale_all_sizes="true"`, `scale_all_sizes="false"`),
		`its attribute max_size is "38.4,40", want none or 1 numbers`:        replace(`max_size="38.4"`, `max_size="38.4,40"`),
		`its attribute aspect_ratio is "0", want numbers above 0`:            replace(`aspect_ratio="2"`, `aspect_ratio="0"`),
		`its attribute variance is "0.1,0.1,0.2", want one number`:           replace(`variance="0.1,0.1,0.2,0.2"`, `variance="0.1,0.1,0.2"`),
		`its attribute width is "4,8,9", want 2 numbers`:                     replace(`width="4,8"`, `width="4,8,9"`),
		`its attribute offset is "x", want a finite number`:                  replace(`offset="0.5"`, `offset="x"`),
		`its output has shape [2 32] in the file, but is computed as [2 24]`: replace(`max_size="38.4"`, `max_size=""`),
		"its priors are not constant": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int {
				return w.op("ReLU", "", nil, w.op("Reshape", `special_zero="true"`, []int{1, 2, 3}, 0, w.ints(1, 2, 3)))
			})
		},
		"its priors have shape [2 48], want 1, 2 and four for each": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int {
				return w.op("Squeeze", "", []int{2, 48}, priors, w.ints(0))
			})
		},
		`its attribute background_label_id is "x", want a number`:        replace(`background_label_id="0"`, `background_label_id="x"`),
		`its attribute top_k is "0", want -1 or a number from 1 to`:      replace(`top_k="400"`, `top_k="0"`),
		`its attribute keep_top_k is "0", want -1 or a number from 1 to`: replace(`keep_top_k="200"`, `keep_top_k="0"`),
		"a threshold of 0.01 and an overlap of 1.5, want 0 to 1":         replace(`nms_threshold="0.45"`, `nms_threshold="1.5"`),
		"a threshold of 2 and an overlap of 0.45, want 0 to 1":           replace(`confidence_threshold="0.01"`, `confidence_threshold="2"`),
		"head 0 (ssd): a prior or a variance is NaN": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int {
				values := make32(96)
				values[7] = float32(math.NaN())
				return w.floats([]int{1, 2, 48}, values...)
			})
		},
		"head 0 (ssd): output 0 has 48 values, want 4 locations for each of 6 priors": func() pair {
			f := newWriter().detector(strings.Replace(ssd, `num_classes="2"`, `num_classes="4"`, 1), func(w *writer, priors int) int {
				return w.floats([]int{1, 2, 24}, make32(48)...)
			})
			return f
		},
		"its priors have shape [1 2 0], want 1, 2 and four for each": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int { return w.floats([]int{1, 2, 0}) })
		},
		"it has 24 confidences for 11 priors": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int { return w.floats([]int{1, 2, 44}, make32(88)...) })
		},
		"it makes more than": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int {
				p := w.op("PriorBox", priorAttributes, []int{2, 64}, w.ints(65536, 65536), w.ints(32, 48))
				return w.op("Unsqueeze", "", []int{1, 2, 64}, p, w.ints(0))
			})
		},
		"want a height and a width from 1 to": func() pair {
			return newWriter().detector(ssd, func(w *writer, priors int) int {
				return w.op("PriorBox", priorAttributes, []int{2, 64}, w.ints(1, 0), w.ints(32, 48))
			})
		},
	} {
		f := make()
		net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.NoError(t, err, want)
		require.Nil(t, net.Detection, want)
		require.Nil(t, net.Inputs[0].Photo, want)
		require.Contains(t, net.Deviations[len(net.Deviations)-1], "boxes are not decoded: ")
		require.Contains(t, net.Deviations[len(net.Deviations)-1], want)
	}
}

// Numbers that are out of range, but whose meaning is known.
func TestDetectionOutputOutOfRange(t *testing.T) {
	for _, c := range []struct {
		old, changed string
		background   int
		threshold    float32
	}{
		{`background_label_id="0"`, `background_label_id="1"`, 1, 0.01},
		{`background_label_id="0"`, `background_label_id="-1"`, -1, 0.01},
		{`background_label_id="0"`, `background_label_id="2"`, -1, 0.01},
		{`background_label_id="0"`, `background_label_id="2147483647"`, -1, 0.01},
		{`background_label_id="0"`, `background_label_id="-7"`, -1, 0.01},
		{`confidence_threshold="0.01"`, `confidence_threshold="-1"`, 0, 0},
		{`top_k="400" keep_top_k="200"`, `top_k="-1" keep_top_k="-1"`, 0, 0.01},
	} {
		f := newWriter().detector(ssd, nil)
		xml := strings.Replace(f.xml, c.old, c.changed, 1)
		require.NotEqual(t, f.xml, xml, c.old)
		net, _, err := Decode(t.Context(), []byte(xml), f.bin, Options{})
		require.NoError(t, err, c.changed)
		require.Len(t, net.Deviations, 1, c.changed)
		want := bcnn.Detection{Classes: 2, Background: c.background, Threshold: c.threshold, Overlap: 0.45, TopK: 400, Keep: 200, Heads: net.Detection.Heads}
		if strings.HasPrefix(c.old, "top_k") {
			want.TopK, want.Keep = 0, 0
		}
		require.Equal(t, &want, net.Detection, c.changed)
	}
}

func make32(n int) []float32 { return make([]float32, n) }

// A priors layer whose cells the files do not pay for ends the import.
func TestPriorsAreCharged(t *testing.T) {
	f := newWriter().detector(ssd, func(w *writer, priors int) int {
		p := w.op("PriorBox", priorAttributes, []int{2, 16 * 2000 * 2000}, w.ints(2000, 2000), w.ints(32, 48))
		return w.op("Unsqueeze", "", []int{1, 2, 16 * 2000 * 2000}, p, w.ints(0))
	})
	_, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
	require.ErrorIs(t, err, budget.ErrExceeded)
}

// What RegionYolo layers say becomes the description of boxes.
func TestRegionYolo(t *testing.T) {
	const v3 = `anchors="10,14,23,27,37,58" axis="1" coords="4" classes="2" end_axis="3" num="3" do_softmax="false" mask="0,2"`
	const v2 = `anchors="1,2,3.5,4" axis="1" coords="4" classes="2" end_axis="3" num="2" do_softmax="true" mask=""`
	logistic := bcnn.LogisticActivation
	head := func(k int) bcnn.Head {
		return bcnn.YOLO{Output: k, Anchors: [][2]float32{{10, 14}, {37, 58}}, Centre: logistic, Object: logistic, Class: logistic}
	}
	region := func(attributes ...string) pair {
		w := newWriter()
		x := w.parameter(1, 3, 2, 5)
		for i, a := range attributes {
			c := w.floats([]int{14, 3, 1, 1}, make32(42)...)
			y := w.op("Convolution", explicit(1, 0), []int{1, 14, 2, 5}, x, c)
			dims := []int{1, 14, 2, 5}
			if i == 1 { // what is in another order is put back
				y = w.op("Transpose", "", []int{1, 5, 2, 14}, y, w.ints(0, 3, 2, 1))
				y = w.op("Transpose", "", dims, y, w.ints(0, 3, 2, 1))
			}
			w.result(w.op("RegionYolo", a, dims, y))
		}
		return w.files()
	}
	for _, c := range []struct {
		file pair
		want []bcnn.Head
	}{
		{region(v3), []bcnn.Head{head(0)}},
		{region(v3, v3), []bcnn.Head{head(0), head(1)}},
		{region(v2), []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{1, 2}, {3.5, 4}}, Cells: true, Centre: logistic, Object: logistic, Class: bcnn.SoftmaxActivation}}},
	} {
		net, _, err := Decode(t.Context(), []byte(c.file.xml), c.file.bin, Options{})
		require.NoError(t, err)
		require.Equal(t, &bcnn.Detection{Classes: 2, Background: -1, Threshold: 0.5, Overlap: 0.45, Heads: c.want}, net.Detection)
		require.Len(t, net.OutputLayers(), len(c.want))
		require.Equal(t, &bcnn.Photo{Fit: bcnn.FitStretch, BGR: true}, net.Inputs[0].Photo)
	}
	for want, f := range map[string]pair{
		`its attribute anchors is "10,14,23,27,37,58", want 4 numbers`:                       region(strings.Replace(v3, `num="3"`, `num="2"`, 1)),
		`its attribute coords is "5", want 4`:                                                region(strings.Replace(v3, `coords="4"`, `coords="5"`, 1)),
		`its attribute mask is "0,3", want anchors from 0 to 2`:                              region(strings.Replace(v3, `mask="0,2"`, `mask="0,3"`, 1)),
		`its attribute start_axis, "1", is not supported`:                                    region(v3 + ` start_axis="1"`),
		"head 0 (yolo): output 0 has 14 channels, but 2 anchors with 5 values and 3 classes": region(strings.Replace(v3, `classes="2"`, `classes="3"`, 1)),
		"head 0 (yolo): an anchor of 0×14":                                                   region(strings.Replace(v3, `anchors="10,`, `anchors="0,`, 1)),
		"another layer makes boxes as well":                                                  region(v3, strings.Replace(v3, `classes="2"`, `classes="3"`, 1)),
	} {
		net, _, err := Decode(t.Context(), []byte(f.xml), f.bin, Options{})
		require.NoError(t, err, want)
		require.Nil(t, net.Detection, want)
		require.Contains(t, net.Deviations[len(net.Deviations)-1], want)
	}
}
