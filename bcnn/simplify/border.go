package simplify

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// bordered are pixels of one value around an image.
type bordered struct {
	inside value
	values bool // the layer of inside gives its values, not codes of them
	pad    bcnn.Padding
	fill   float32
}

// mostBorders is how many borders around each other are taken for one.
const mostBorders = 4

// bordered returns a value as an image with a border; ok is false for other values.
func (p *pass) bordered(in value) (b bordered, ok bool) {
	if b, ok = p.border(in); !ok {
		return b, false
	}
	for range mostBorders - 1 {
		more, ok := p.border(b.inside)
		if !ok || more.fill != b.fill || more.values != b.values {
			break
		}
		more.pad = with(more.pad, b.pad)
		b = more
	}
	return b, true
}

// border is bordered for one border.
func (p *pass) border(in value) (b bordered, ok bool) {
	at := in.layer
	if in.code != nil {
		if at = in.code.layer; !in.code.affine {
			return b, false
		}
	}
	if at <= bcnn.NetworkInput || !p.on(Border) {
		return b, false
	}
	pixels, ok := p.to.Layers[at].Op.(bcnn.Pixels)
	if !ok || max(pixels.BlockH, 1)*max(pixels.BlockW, 1) > 1 {
		return b, false
	}
	b.fill = pixels.Fill
	switch c := in.code; {
	case c != nil:
		b.inside = value{layer: p.to.Layers[at].Inputs[0]}
		b.inside.code = c.moved(b.inside.layer)
		b.fill, b.values = f32.FMA(b.fill, c.gain, c.offset), c.plain()
	case in.of != nil:
		b.inside, b.values = *in.of, true
	default:
		return b, false
	}
	shape := p.shape(b.inside.layer)
	var rows, cols bool
	b.pad.Top, b.pad.Bottom, rows = around(pixels.Rows, shape.H)
	b.pad.Left, b.pad.Right, cols = around(pixels.Cols, shape.W)
	return b, rows && cols && p.budget.Charge(int64(len(pixels.Rows)+len(pixels.Cols))) == nil
}

// around returns how many positions of −1 are in front of 0, 1, … size−1, and behind them; ok
// is false for other lists.
func around(list []int32, size int) (before, after int, ok bool) {
	for before < len(list) && list[before] == -1 {
		before++
	}
	after = len(list) - before - size
	if after < 0 {
		return 0, 0, false
	}
	for k := range size {
		if int(list[before+k]) != k {
			return 0, 0, false
		}
	}
	return before, after, !slices.ContainsFunc(list[before+size:], func(x int32) bool { return x != -1 })
}

// with returns padding and more of it.
func with(a, b bcnn.Padding) bcnn.Padding {
	return bcnn.Padding{Top: a.Top + b.Top, Left: a.Left + b.Left, Bottom: a.Bottom + b.Bottom, Right: a.Right + b.Right}
}

// padded returns the convolution at hand with a border as its padding; nil where the border is
// none that it can have.
func (p *pass) padded(op bcnn.Weighted, w bcnn.Weights, b bordered) (*value, error) {
	conv, ok := op.(bcnn.Conv2D)
	if !ok || conv.Pad != (bcnn.Padding{}) && b.fill != float32(conv.PadValue) {
		return nil, nil
	}
	conv.Pad = with(conv.Pad, b.pad)
	l, _ := p.weighted(conv, b.inside)
	l.fill = b.fill
	before := len(p.findings)
	y, err := p.exactly(l, w, b.inside)
	if err != nil {
		return nil, err
	}
	if y == nil && b.fill == 0 && b.values { // also of real numbers
		made := p.same(p.emit("", conv, l.out, b.inside.layer))
		y = &made
	}
	if y == nil {
		p.findings = p.findings[:before]
		return nil, nil
	}
	p.found(Border, "the pixels of %v around its input are its padding", b.fill)
	return y, nil
}

// pool is the layer at hand where it is a mean or a maximum over windows: zeros around its
// input count as padding of a mean, and what is less than all values never is a maximum.
func (p *pass) pool(op bcnn.Op) (value, error) {
	in := p.input()
	b, ok := p.bordered(in)
	if !ok {
		return p.pooled(op)
	}
	layer := b.inside.layer
	switch pool := op.(type) {
	case bcnn.AvgPool:
		if pool.Pad == (bcnn.Padding{}) && b.fill == 0 && b.values && fits(b.pad, pool.Window) {
			pool.Pad, pool.CountPadding = b.pad, true
			p.found(Border, "the zeros around its input are its padding")
			return p.same(p.emit("", pool, p.shapes[p.at], layer)), nil
		}
	case bcnn.MaxPool:
		of, err := p.sets.Of(layer)
		if err != nil {
			return value{}, err
		}
		if b.values && in.code == nil && of.Min >= float64(b.fill) && fits(with(b.pad, pool.Pad), pool.Window) {
			pool.Pad = with(b.pad, pool.Pad)
			p.found(Border, "the pixels of %v around its input never are a maximum", b.fill)
			return p.same(p.emit("", pool, p.shapes[p.at], layer)), nil
		}
	}
	return p.pooled(op)
}

// pooled is pool where nothing is known of what is around the input.
func (p *pass) pooled(op bcnn.Op) (value, error) {
	if _, ok := op.(bcnn.MaxPool); ok {
		return p.move(op)
	}
	return p.copy(), nil
}

// fits reports whether every position of a window sees the image inside its padding.
func fits(pad bcnn.Padding, w bcnn.Window) bool {
	return max(pad.Top, pad.Bottom) < w.KH && max(pad.Left, pad.Right) < w.KW
}

// inside is coder for a function of an image with a border: it is the function of the image,
// with its value of the border around. ok is false for other inputs.
func (p *pass) inside(op bcnn.Op) (out value, ok bool) {
	in := p.input()
	f := pointwise(op)
	if f == nil || in.code != nil {
		return out, false
	}
	b, ok := p.border(in)
	if !ok || math.IsNaN(float64(b.fill)) {
		return out, false
	}
	if p.room--; p.room < 0 {
		return out, false
	}
	pixels := p.to.Layers[in.layer].Op.(bcnn.Pixels)
	pixels.Fill = f(b.fill)
	y := p.emit("/inside", op, p.shape(b.inside.layer), b.inside.layer)
	return p.same(p.emit("", pixels, p.shapes[p.at], y)), true
}
