package vision

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// decoder makes boxes of the outputs of a network for one image.
//
// Every operation is rounded to float32 (the conversions keep the compiler from fusing), and
// exponentials are those of the numeric contract, so that the same outputs give the same boxes on every
// machine.
type decoder struct {
	*bcnn.Detection
	input     bcnn.Shape
	outputs   []bcnn.Shape
	threshold float32
	overlap   float32
	topK      int
	keep      int
	labels    []string
}

func newDecoder(d *bcnn.Detection, input bcnn.Shape, outputs []bcnn.Shape, opts DetectorOptions) decoder {
	bound := func(n, most int) int {
		if n == 0 {
			return most
		}
		return min(n, most)
	}
	return decoder{
		Detection: d, input: input, outputs: outputs,
		threshold: cmp.Or(opts.Threshold, max(d.Threshold, DefaultThreshold)), overlap: cmp.Or(opts.Overlap, d.Overlap),
		topK: bound(d.TopK, mostTopK), keep: bound(opts.Top, bound(d.Keep, mostKeep)),
	}
}

// corners are those of a box, in parts of the input.
type corners struct{ x0, y0, x1, y1 float32 }

// scored is a box with the score of each class, where these stand among the outputs.
type scored struct {
	corners
	scores []float32
}

// boxes returns the boxes of an image, whose outputs are finite. It writes scores over these, so that
// they take no memory of their own.
func (d *decoder) boxes(ctx context.Context, out [][]float32, frame Frame) ([]Box, error) {
	defer fpmode.Enter().Leave()
	p := &pace{ctx: ctx}
	all := make([]scored, 0, d.places())
	for _, h := range d.Heads {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		switch h := h.(type) {
		case bcnn.SSD:
			all, err = d.priors(p, all, h, out[h.Locations], out[h.Confidences])
		case bcnn.YOLO:
			all, err = d.anchors(p, all, h, out[h.Output], d.outputs[h.Output])
		case bcnn.DFL:
			all, err = d.distances(p, all, h, out[h.Output], d.outputs[h.Output])
		}
		if err != nil {
			return nil, err
		}
	}
	list, err := d.candidates(p, all)
	if err != nil {
		return nil, err
	}
	return d.selected(p, all, list, frame)
}

// places is how many boxes the heads make at the most.
func (d *decoder) places() (n int) {
	for _, h := range d.Heads {
		switch h := h.(type) {
		case bcnn.SSD:
			n += len(h.Priors) / 4
		case bcnn.YOLO:
			n += d.outputs[h.Output].Pixels() * len(h.Anchors)
		case bcnn.DFL:
			n += d.outputs[h.Output].Pixels()
		}
	}
	return n
}

func (c corners) area() float32 { return float32((c.x1 - c.x0) * (c.y1 - c.y0)) }

// intersectionOverUnion of two boxes is 0 where they do not meet.
func intersectionOverUnion(a, b corners) float32 {
	w, h := min(a.x1, b.x1)-max(a.x0, b.x0), min(a.y1, b.y1)-max(a.y0, b.y0)
	if !(w > 0 && h > 0) {
		return 0
	}
	both := float32(w * h)
	return both / float32(float32(a.area()+b.area())-both)
}

// appendBox appends a box with its scores, if it is one: its size may leave float32.
func appendBox(all []scored, x, y, w, h float32, scores []float32) []scored {
	w, h = float32(w*0.5), float32(h*0.5)
	return appendCorners(all, corners{x - w, y - h, x + w, y + h}, scores)
}

func appendCorners(all []scored, c corners, scores []float32) []scored {
	for _, v := range [...]float32{c.x0, c.y0, c.x1, c.y1, c.area()} {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return all
		}
	}
	return append(all, scored{c, scores})
}

// priors makes the boxes of an SSD head. Those whose scores are all too low are left out.
func (d *decoder) priors(p *pace, all []scored, h bcnn.SSD, locations, confidences []float32) ([]scored, error) {
	exp := f32.Named(string(bcnn.Exp))
	for i := range len(h.Priors) / 4 {
		if err := p.step(d.Classes); err != nil {
			return nil, err
		}
		scores := confidences[i*d.Classes:][:d.Classes]
		if h.Softmax {
			softmax(exp, scores)
		}
		if !d.promising(scores) {
			continue
		}
		l, at, v := locations[4*i:4*i+4], h.Priors[4*i:4*i+4], h.Variances
		if len(v) > 4 {
			v = v[4*i : 4*i+4]
		}
		w, ht := at[2]-at[0], at[3]-at[1]
		x, y := float32((at[0]+at[2])*0.5), float32((at[1]+at[3])*0.5)
		all = appendBox(all,
			float32(float32(float32(v[0]*l[0])*w)+x), float32(float32(float32(v[1]*l[1])*ht)+y),
			float32(exp.Of(float32(v[2]*l[2]))*w), float32(exp.Of(float32(v[3]*l[3]))*ht), scores)
	}
	return all, nil
}

// anchors makes the boxes of a YOLO head, whose map has a shape.
func (d *decoder) anchors(p *pace, all []scored, h bcnn.YOLO, values []float32, shape bcnn.Shape) ([]scored, error) {
	exp := f32.Named(string(bcnn.Exp))
	centre, ofObject, ofClass := activation(h.Centre), activation(h.Object), activation(h.Class)
	each := bcnn.BoxValues + d.Classes
	width, height := float32(d.input.W), float32(d.input.H)
	if h.Cells {
		width, height = float32(shape.W), float32(shape.H)
	}
	size := func(v, anchor, whole float32) float32 {
		if h.Squared {
			v = float32(v * 2)
			return float32(float32(v*v)*anchor) / whole
		}
		return float32(exp.Of(v)*anchor) / whole
	}
	for cell := range shape.Pixels() {
		for a, anchor := range h.Anchors {
			if err := p.step(each); err != nil {
				return nil, err
			}
			v := values[cell*shape.C+a*each:][:each]
			object := ofObject(v[bcnn.BoxValues-1])
			if !(object > d.threshold) {
				continue
			}
			scores := v[bcnn.BoxValues:]
			if h.Class == bcnn.SoftmaxActivation {
				softmax(exp, scores)
			}
			for k, s := range scores {
				scores[k] = float32(object * ofClass(s))
			}
			if !d.promising(scores) {
				continue
			}
			x, y := centre(v[0]), centre(v[1])
			all = appendBox(all,
				float32(float32(cell%shape.W)+x)/float32(shape.W), float32(float32(cell/shape.W)+y)/float32(shape.H),
				size(v[2], anchor[0], width), size(v[3], anchor[1], height), scores)
		}
	}
	return all, nil
}

// distances makes the boxes of a head of distributions, whose map has a shape.
func (d *decoder) distances(p *pace, all []scored, h bcnn.DFL, values []float32, shape bcnn.Shape) ([]scored, error) {
	exp, ofClass := f32.Named(string(bcnn.Exp)), activation(h.Class)
	for cell := range shape.Pixels() {
		if err := p.step(shape.C); err != nil {
			return nil, err
		}
		v := values[cell*shape.C:][:shape.C]
		scores := v[4*h.Bins:]
		for k, s := range scores {
			scores[k] = ofClass(s)
		}
		if !d.promising(scores) {
			continue
		}
		var edges [4]float32
		for e := range edges {
			weights := v[e*h.Bins:][:h.Bins]
			softmax(exp, weights)
			for bin, w := range weights {
				edges[e] = float32(edges[e] + float32(float32(bin)*w))
			}
		}
		x, y := float32(cell%shape.W)+0.5, float32(cell/shape.W)+0.5
		width, height := float32(shape.W), float32(shape.H)
		all = appendCorners(all, corners{
			float32(x-edges[0]) / width, float32(y-edges[1]) / height, float32(x+edges[2]) / width, float32(y+edges[3]) / height,
		}, scores)
	}
	return all, nil
}

// promising reports whether a box of some class may come of the scores.
func (d *decoder) promising(scores []float32) bool {
	for c, s := range scores {
		if s > d.threshold && c != d.Background {
			return true
		}
	}
	return false
}

// activation returns the function that values still need; a softmax is that of several.
func activation(f bcnn.Activation) func(float32) float32 {
	if f == bcnn.LogisticActivation {
		return f32.Named(string(bcnn.Sigmoid)).Of
	}
	return func(x float32) float32 { return x }
}

// softmax is that of some values, in their place: exponentials and their sum, in order, in float32.
func softmax(exp *f32.Function, values []float32) {
	top, sum := slices.Max(values), float32(0)
	for i, v := range values {
		values[i] = exp.Of(v - top)
		sum = float32(sum + values[i])
	}
	for i := range values {
		values[i] /= sum
	}
}

// onPhoto returns the part of a box that is on the photo, in its pixels.
func (f Frame) onPhoto(c corners) Box {
	place := func(part float32, from, length float64, size int) float32 {
		return float32(min(max(float64(float64(part)*length)+from, 0), float64(size)))
	}
	return Box{
		X0: place(c.x0, f.X, f.W, f.Size.X), Y0: place(c.y0, f.Y, f.H, f.Size.Y),
		X1: place(c.x1, f.X, f.W, f.Size.X), Y1: place(c.y1, f.Y, f.H, f.Size.Y),
	}
}
