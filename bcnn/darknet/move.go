package darknet

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// route is [route]: earlier layers joined, or the same part of the channels of each.
type route struct{ groups, group int }

func readRoute(s *section) layer {
	s.inputs = s.earlier("layers")
	r := route{groups: s.integer("groups", 1, 1, maxChannels), group: s.integer("group_id", 0, 0, maxChannels)}
	if r.group >= r.groups {
		try.Failf("option group_id is %d, but there are groups 0 to %d", r.group, r.groups-1)
	}
	return r
}

func (r route) shape(in []bcnn.Shape) bcnn.Shape {
	out := in[0]
	out.C = 0
	for _, s := range in {
		switch {
		case s.H != out.H || s.W != out.W:
			try.Failf("option layers joins images of %d×%d and %d×%d pixels", out.H, out.W, s.H, s.W)
		case s.C%r.groups != 0:
			try.Failf("option groups is %d, which does not divide %d channels", r.groups, s.C)
		}
		out.C += s.C / r.groups
	}
	return out
}

func (r route) build(im *importer, s *section, in []value) value {
	out := in[0].shape
	out.C = 0
	parts := make([]value, len(in))
	for i, v := range in {
		if r.groups > 1 {
			part := v.shape
			part.C /= r.groups
			index := try.Value(budget.List(im.budget, part.C, func(c int) int32 { return int32(r.group*part.C + c) }))
			v = im.emit(s, fmt.Sprint("/part", i), bcnn.Channels{Index: index}, part, v)
		}
		out.C += v.shape.C
		parts[i] = v
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return im.emit(s, "", bcnn.Concat{}, out, parts...)
}

// shortcut is [shortcut]: earlier layers added to the one in front. Of those with more channels
// than it the first ones are added, and those with fewer are added to its first ones.
type shortcut struct{ activation bcnn.Op }

func readShortcut(s *section) layer {
	s.inputs = append(s.inputs, s.earlier("from")...)
	for _, name := range []string{"weights_type", "weights_normalization"} {
		if s.text(name, "none") != "none" {
			s.fail(name, "which is not supported: want none, a plain sum")
		}
	}
	for _, name := range []string{"alpha", "beta"} {
		if s.float(name, 1) != 1 {
			s.fail(name, "which is not supported: want 1, a plain sum")
		}
	}
	return shortcut{s.activation("linear")}
}

func (shortcut) shape(in []bcnn.Shape) bcnn.Shape {
	for _, s := range in[1:] {
		if s.H != in[0].H || s.W != in[0].W {
			try.Failf("option from adds an image of %d×%d pixels to one of %d×%d", s.H, s.W, in[0].H, in[0].W)
		}
	}
	return in[0]
}

func (l shortcut) build(im *importer, s *section, in []value) value {
	v := in[0]
	for i, other := range in[1:] {
		if c := other.shape.C; c != v.shape.C {
			// Darknet tells whether shapes are equal by the input of the layer that it adds.
			conv, ok := im.layers[s.inputs[1+i]].layer.(*convolution)
			if ok && len(in) == 2 && c < v.shape.C && conv.in == v.shape {
				try.Failf("option from adds %d channels to %d, of which Darknet adds what is behind its output in memory", c, v.shape.C)
			}
			index := try.Value(budget.List(im.budget, v.shape.C, func(i int) int32 {
				if i < c {
					return int32(i)
				}
				return -1 // 0
			}))
			other = im.emit(s, fmt.Sprint("/channels", i), bcnn.Channels{Index: index}, v.shape, other)
		}
		v = im.emit(s, fmt.Sprint("/sum", i), bcnn.Add{}, v.shape, v, other)
	}
	return im.activate(s, l.activation, v)
}

// upsample is [upsample]: pixels repeated.
type upsample struct {
	stride int
	scale  float32
}

func readUpsample(s *section) layer {
	if stride := s.integer("stride", 2, -maxSide, maxSide); stride < 1 {
		s.fail("stride", "which is not supported: sums of pixels")
	}
	return upsample{s.integer("stride", 2, 1, maxSide), s.float("scale", 1)}
}

func (u upsample) shape(in []bcnn.Shape) bcnn.Shape {
	s := in[0]
	if max(s.H, s.W) > maxSide/u.stride {
		try.Failf("option stride is %d, which makes more than %d pixels of %d×%d along a side", u.stride, maxSide, s.H, s.W)
	}
	return bcnn.Shape{H: s.H * u.stride, W: s.W * u.stride, C: s.C}
}

func (u upsample) build(im *importer, s *section, in []value) value {
	v := in[0]
	out := u.shape([]bcnn.Shape{v.shape})
	from := func(n int) []int32 {
		return try.Value(budget.List(im.budget, n, func(i int) int32 { return int32(i / u.stride) }))
	}
	v = im.emit(s, "/pixels", bcnn.Pixels{Rows: from(out.H), Cols: from(out.W)}, out, v)
	if u.scale != 1 {
		v = im.emit(s, "/scale", bcnn.Affine{Scale: []float32{u.scale}}, out, v)
	}
	return v
}

// reorg is [reorg] and [reorg3d]: pixels become channels, or channels pixels.
type reorg struct {
	stride int
	kind   reorgKind
}

type reorgKind int

const (
	plainReorg   reorgKind = iota // [reorg3d]: block by block
	oldReorg                      // [reorg], which takes the image for one of fewer, larger channels
	reverseReorg                  // [reorg] with reverse=1, channels to pixels
)

func readReorg(s *section) layer {
	r := reorg{s.integer("stride", 1, 1, maxSide), oldReorg}
	if s.flag("reverse") {
		r.kind = reverseReorg
	}
	return r
}

func readReorg3D(s *section) layer {
	s.off("what Darknet computes reads beyond the image", "reverse")
	return reorg{s.integer("stride", 1, 1, maxSide), plainReorg}
}

func (r reorg) shape(in []bcnn.Shape) bcnn.Shape {
	s, n := in[0], r.stride
	if r.kind != reverseReorg && (s.H%n != 0 || s.W%n != 0) {
		try.Failf("option stride is %d, which does not divide an image of %d×%d", n, s.H, s.W)
	}
	if r.kind != plainReorg && s.C%(n*n) != 0 {
		try.Failf("option stride is %d, whose square does not divide %d channels", n, s.C)
	}
	if r.kind == reverseReorg {
		return bcnn.Shape{H: s.H * n, W: s.W * n, C: s.C / (n * n)}
	}
	return bcnn.Shape{H: s.H / n, W: s.W / n, C: s.C * n * n}
}

func (r reorg) build(im *importer, s *section, in []value) value {
	v, n := in[0], r.stride
	if n == 1 {
		return v
	}
	out := r.shape([]bcnn.Shape{v.shape})
	list := func(size int, f func(int) int32) []int32 { return try.Value(budget.List(im.budget, size, f)) }
	same := func(i int) int32 { return int32(i) }
	switch r.kind {
	case reverseReorg:
		return im.emit(s, "", bcnn.Pixels{Rows: list(out.H, same), Cols: list(out.W, same), BlockH: n, BlockW: n}, out, v)
	case plainReorg:
		var parts []value
		for offset := range n * n {
			part := bcnn.Pixels{
				Rows: list(out.H, func(y int) int32 { return int32(y*n + offset/n) }),
				Cols: list(out.W, func(x int) int32 { return int32(x*n + offset%n) }),
			}
			parts = append(parts, im.emit(s, fmt.Sprint("/part", offset), part, bcnn.Shape{H: out.H, W: out.W, C: v.shape.C}, v))
		}
		return im.emit(s, "", bcnn.Concat{}, out, parts...)
	}
	// All values in one row, permuted, and spread over the pixels again.
	values := bcnn.Shape{H: 1, W: 1, C: v.shape.Values()}
	if values.C > maxChannels {
		try.Failf("an image of %d values is not supported, at most %d are", values.C, maxChannels)
	}
	v = im.emit(s, "/flatten", bcnn.Flatten{}, values, v)
	from := oldSources(in[0].shape, n)
	index := list(values.C, func(i int) int32 {
		pixel, c := i/out.C, i%out.C
		return int32(from(c*out.Pixels() + pixel))
	})
	v = im.emit(s, "/order", bcnn.Channels{Index: index}, values, v)
	return im.emit(s, "", bcnn.Pixels{Rows: list(out.H, same), Cols: list(out.W, same), BlockH: out.H, BlockW: out.W}, out, v)
}

// oldSources returns where [reorg] takes the value at a place of its output from. Places of the
// output are those of a planar array, those of the input in the order row, column, channel.
//
// Darknet goes through its output as if it had the shape of the input, C×H×W, and through its
// input as if it were C/n²×H·n×W·n: channel k of the output is the one of every n-th row and
// column of channel k mod C/n² that k / (C/n²) counts.
func oldSources(in bcnn.Shape, n int) func(to int) int {
	channels := in.C / (n * n)
	return func(to int) int {
		x, y, k := to%in.W, to/in.W%in.H, to/in.Pixels()
		c, block := k%channels, k/channels
		from := x*n + block%n + in.W*n*(y*n+block/n+in.H*n*c)
		return from%in.Pixels()*in.C + from/in.Pixels()
	}
}
