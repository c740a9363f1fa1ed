package onnx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
)

// layout is a way to see the graph's input as an image.
type layout struct {
	info  valueInfo
	shape bcnn.Shape
	view  view
}

// input returns the one input that is not an initialiser.
func (g *graph) input() (valueInfo, error) {
	var found []valueInfo
	for _, in := range g.inputs {
		if g.initializers[in.name] == nil {
			found = append(found, in)
		}
	}
	if len(found) != 1 {
		return valueInfo{}, fmt.Errorf("the graph has %d inputs, want 1", len(found))
	}
	return found[0], nil
}

// inputLayouts returns the ways to see the graph's input, the likeliest first.
func (g *graph) inputLayouts(ctx context.Context, opts Options) ([]layout, error) {
	in, err := g.input()
	if err != nil {
		return nil, err
	}
	fail := func(err error) ([]layout, error) { return nil, fmt.Errorf("input %q: %w", in.name, err) }
	switch {
	case in.typ != typeFloat && in.typ != typeUint8:
		return fail(fmt.Errorf("elements of %v are not supported, want FLOAT or UINT8", in.typ))
	case !in.ranked || len(in.dims) < 2 || len(in.dims) > 4:
		return fail(fmt.Errorf("it has %d dimensions, want a batch of images (4), grey images (3) or vectors (2)", len(in.dims)))
	}
	rest := in.dims[1:]
	// fixed takes a dimension from the file, or else from the options; 0 and
	// open where neither fits.
	var open error
	fixed := func(d dim, option int) int {
		var err error
		switch dynamic := d.name != "" || d.size == 0; {
		case dynamic && option > 0:
			return option
		case dynamic:
			err = fmt.Errorf("dimension %q is dynamic: give its size with InputShape", d.name)
		case d.size < 1 || d.size > maxSize || option != 0 && option != int(d.size):
			err = fmt.Errorf("a dimension is %d, InputShape says %d", d.size, option)
		default:
			return int(d.size)
		}
		if open == nil {
			open = err
		}
		return 0
	}
	of := func(h, w, c dim) bcnn.Shape {
		s := opts.InputShape
		return bcnn.Shape{H: fixed(h, s.H), W: fixed(w, s.W), C: fixed(c, s.C)}
	}
	one := dim{size: 1}
	var layouts []layout
	add := func(s bcnn.Shape, view func(bcnn.Shape) view) {
		if s.H > 0 && s.W > 0 && s.C > 0 {
			layouts = append(layouts, layout{in, s, view(s)})
		}
	}
	switch len(rest) {
	case 1:
		s := of(one, one, rest[0])
		add(s, func(s bcnn.Shape) view { return vector(s.C) })
		// A vector may be reshaped to an image first.
		layouts = append(layouts, g.reshapedInput(ctx, in, s.C)...)
	case 2:
		add(of(rest[0], rest[1], one), func(s bcnn.Shape) view { return nhwc(s)[:3] })
	case 3:
		// Images have one channel or three. Elsewhere a Transpose may tell that
		// the file is NHWC.
		colours := func(d dim) bool { return d.size == 1 || d.size == 3 }
		last := colours(rest[2]) && !colours(rest[0])
		if last {
			add(of(rest[0], rest[1], rest[2]), nhwc)
		}
		add(of(rest[1], rest[2], rest[0]), nchw)
		transposes := slices.ContainsFunc(g.nodes, func(n *node) bool { return n.opType == "Transpose" })
		if transposes && !last {
			add(of(rest[0], rest[1], rest[2]), nhwc)
		}
		if len(layouts) > 0 { // a size in the options may fit one layout only
			open = nil
		}
	}
	if open != nil {
		return fail(open)
	}
	for _, l := range layouts {
		if _, err := count([]int{l.shape.H, l.shape.W, l.shape.C}); err != nil {
			return fail(err)
		}
	}
	return layouts, nil
}

// reshapedInput returns the layouts of an input vector that a Reshape with
// constant dimensions turns into images.
func (g *graph) reshapedInput(ctx context.Context, in valueInfo, n int) []layout {
	for _, node := range g.nodes {
		if node.opType != "Reshape" || node.input(0) != in.name {
			continue
		}
		var layouts []layout
		p := g.initializers[node.input(1)]
		if p == nil {
			for _, c := range g.nodes {
				if c.opType == "Constant" && slices.Contains(c.outputs, node.input(1)) && len(c.attrs) == 1 {
					p = c.attrs[0].t
				}
			}
		}
		if p == nil || p.external != nil {
			return nil
		}
		im := newImporter(ctx, nil, "", Options{}, 0)
		t, err := im.tensor(p)
		if err != nil || len(t.i64) != 4 {
			return nil
		}
		d := t.i64[1:]
		if min(d[0], d[1], d[2]) < 1 || max(d[0], d[1], d[2]) > maxSize || d[0]*d[1] > maxSize || d[0]*d[1]*d[2] != int64(n) {
			return nil
		}
		for _, s := range []struct {
			shape bcnn.Shape
			view  func(bcnn.Shape) view
		}{
			{bcnn.Shape{H: int(d[1]), W: int(d[2]), C: int(d[0])}, nchw},
			{bcnn.Shape{H: int(d[0]), W: int(d[1]), C: int(d[2])}, nhwc},
		} {
			image := s.view(s.shape)
			flat := append(append(slices.Clone(image[1]), image[2]...), image[3]...)
			layouts = append(layouts, layout{in, s.shape, view{batchAtom, merge(flat)}})
		}
		return layouts
	}
	return nil
}

// begin sets up the network's input.
func (im *importer) begin(l layout) error {
	if d := l.info.dims[0]; d.name == "" {
		if d.size < 0 || d.size > maxSize {
			return fmt.Errorf("the batch size is %d", d.size)
		}
		im.batch = int(d.size) // 0: not given
	}
	dtype := im.opts.InputType
	if dtype == 0 {
		dtype = bcnn.Float32
		if l.info.typ == typeUint8 {
			dtype = bcnn.Uint8
		}
	}
	im.net.Input = bcnn.Input{Shape: l.shape, DType: dtype}
	v := &value{typ: l.info.typ, layer: bcnn.NetworkInput, shape: l.shape, view: l.view}
	mean, scale := im.opts.Mean, im.opts.Scale
	if len(mean)+len(scale) > 0 {
		if l.info.typ == typeUint8 {
			return errors.New("Mean and Scale are for graphs that take FLOAT; this one takes UINT8 and scales it itself")
		}
		for _, list := range [][]float32{mean, scale} {
			if n := len(list); n > 1 && n != l.shape.C {
				return fmt.Errorf("%d values of Mean or Scale for %d channels", n, l.shape.C)
			}
		}
	}
	if len(mean) > 0 {
		bias := make([]float32, len(mean))
		for i, m := range mean {
			bias[i] = -m
		}
		v = im.emit(nil, "/mean", bcnn.Affine{Bias: bias}, v.shape, v)
	}
	if len(scale) > 0 {
		v = im.emit(nil, "/scale", bcnn.Affine{Scale: scale}, v.shape, v)
	}
	im.env[l.info.name] = result{value: v}
	return nil
}
