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

// What bounds a detector whose model does not: boxes of a class that are compared with each other, and
// boxes of an image. The time of a class is in proportion to their product.
const (
	mostTopK = 4096
	mostKeep = 1024
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

// candidate is a box of a class.
type candidate struct {
	score     float32
	class, at int // at is that of the box
}

// better orders candidates: no two are equal.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.class, b.class), cmp.Compare(a.at, b.at))
}

// raw are boxes whose classes have not been compared: boxes, and the scores of each.
type raw struct {
	boxes  []corners
	scores []float32 // [box][class]
}

// boxes returns the boxes of an image, whose outputs are finite.
func (d *decoder) boxes(ctx context.Context, out [][]float32, frame Frame) ([]Box, error) {
	defer fpmode.Enter().Leave()
	var all raw
	for _, h := range d.Heads {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch h := h.(type) {
		case bcnn.SSD:
			d.priors(&all, h, out[h.Locations], out[h.Confidences])
		case bcnn.YOLO:
			d.anchors(&all, h, out[h.Output], d.outputs[h.Output])
		}
	}
	var kept, class []candidate
	for c := range d.Classes {
		if c == d.Background {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		class = class[:0]
		for at := range all.boxes {
			if score := all.scores[at*d.Classes+c]; score > d.threshold {
				class = append(class, candidate{score, c, at})
			}
		}
		kept = append(kept, d.suppressed(class, all.boxes)...)
	}
	slices.SortFunc(kept, better)
	boxes := make([]Box, 0, min(len(kept), d.keep))
	for _, k := range kept {
		if len(boxes) == d.keep {
			break
		}
		b := frame.onPhoto(all.boxes[k.at])
		if b.Index, b.Label, b.Score = k.class, d.labels[k.class], k.score; b.X0 < b.X1 && b.Y0 < b.Y1 {
			boxes = append(boxes, b)
		}
	}
	return boxes, nil
}

// suppressed returns those candidates of a class that no better one overlaps, the best first. More than
// keep of one class are never needed.
func (d *decoder) suppressed(class []candidate, boxes []corners) []candidate {
	slices.SortFunc(class, better)
	class = class[:min(len(class), d.topK)]
	var kept []candidate
	for _, c := range class {
		if len(kept) == d.keep {
			break
		}
		if !slices.ContainsFunc(kept, func(k candidate) bool { return intersectionOverUnion(boxes[k.at], boxes[c.at]) > d.overlap }) {
			kept = append(kept, c)
		}
	}
	return kept
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

// add takes a box with its scores, if it is one: its size may leave float32.
func (r *raw) add(x, y, w, h float32, scores []float32) {
	w, h = float32(w*0.5), float32(h*0.5)
	c := corners{x - w, y - h, x + w, y + h}
	for _, v := range [...]float32{c.x0, c.y0, c.x1, c.y1, c.area()} {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return
		}
	}
	r.boxes = append(r.boxes, c)
	r.scores = append(r.scores, scores...)
}

// priors makes the boxes of an SSD head. Those whose scores are all too low are left out.
func (d *decoder) priors(all *raw, h bcnn.SSD, locations, confidences []float32) {
	exp := f32.Named(string(bcnn.Exp))
	scores := make([]float32, d.Classes)
	for i := range len(h.Priors) / 4 {
		copy(scores, confidences[i*d.Classes:])
		if h.Softmax {
			softmax(scores)
		}
		if !d.promising(scores) {
			continue
		}
		l, p, v := locations[4*i:4*i+4], h.Priors[4*i:4*i+4], h.Variances
		if len(v) > 4 {
			v = v[4*i : 4*i+4]
		}
		w, ht := p[2]-p[0], p[3]-p[1]
		x, y := float32((p[0]+p[2])*0.5), float32((p[1]+p[3])*0.5)
		all.add(
			float32(float32(float32(v[0]*l[0])*w)+x), float32(float32(float32(v[1]*l[1])*ht)+y),
			float32(exp.Of(float32(v[2]*l[2]))*w), float32(exp.Of(float32(v[3]*l[3]))*ht), scores)
	}
}

// anchors makes the boxes of a YOLO head, whose map has a shape.
func (d *decoder) anchors(all *raw, h bcnn.YOLO, values []float32, shape bcnn.Shape) {
	exp := f32.Named(string(bcnn.Exp))
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
	scores := make([]float32, d.Classes)
	for cell := range shape.Pixels() {
		for a, anchor := range h.Anchors {
			v := values[cell*shape.C+a*each:][:each]
			object := activated(h.Object, v[bcnn.BoxValues-1])
			if !(object > d.threshold) {
				continue
			}
			copy(scores, v[bcnn.BoxValues:])
			if h.Class == bcnn.SoftmaxActivation {
				softmax(scores)
			}
			for k, s := range scores {
				scores[k] = float32(object * activated(h.Class, s))
			}
			if !d.promising(scores) {
				continue
			}
			x, y := activated(h.Centre, v[0]), activated(h.Centre, v[1])
			all.add(
				float32(float32(cell%shape.W)+x)/float32(shape.W), float32(float32(cell/shape.W)+y)/float32(shape.H),
				size(v[2], anchor[0], width), size(v[3], anchor[1], height), scores)
		}
	}
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

func activated(f bcnn.Activation, x float32) float32 {
	if f == bcnn.LogisticActivation {
		return f32.Named(string(bcnn.Sigmoid)).Of(x)
	}
	return x
}

// softmax is that of some values, in their place: exponentials and their sum, in order, in float32.
func softmax(values []float32) {
	exp := f32.Named(string(bcnn.Exp))
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
