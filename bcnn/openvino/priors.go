package openvino

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/num"
)

// maxSizes is how many sizes or ratios of priors a layer has at the most: more than any network has.
const maxSizes = 256

// reals returns a list of numbers such as "0.1,0.2", which may be empty.
func (a *attributes) reals(name string) []float32 {
	s := a.text(name, "")
	if s == "" {
		return nil
	}
	parts := strings.SplitN(s, ",", maxSizes+1)
	list := make([]float32, len(parts))
	for i, part := range parts {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || i == maxSizes {
			a.fail(name, fmt.Sprintf("at most %d finite numbers", maxSizes))
		}
		list[i] = float32(v)
	}
	return list
}

// grid is what priors are laid over: the cells of a feature map, on an image.
type grid struct {
	rows, columns, height, width int
	stepX, stepY, offset         float32 // of cells, in pixels
	clip                         bool
}

// sizes returns the height and width that two inputs of a layer of priors have: in IR 4 they are the
// tensors themselves, later lists of their sizes.
func (im *importer) sizes(n *node) (g grid) {
	each := [2]*[2]*int{{&g.rows, &g.columns}, {&g.height, &g.width}}
	for k, to := range each {
		size := []int64{}
		if im.graph.old() {
			o := im.operand(n, k)
			if o.v == nil || len(o.v.view) != 4 {
				try.Failf("its input %d must be computed and have 4 dimensions", k)
			}
			size = append(size, int64(o.v.size(2)), int64(o.v.size(3)))
		} else {
			size = im.constant(n, k).integers(false)
		}
		if len(size) != 2 || slices.Min(size) < 1 || slices.Max(size) > maxSide {
			try.Failf("its input %d says a size of %v, want a height and a width from 1 to %d", k, size, maxSide)
		}
		*to[0], *to[1] = int(size[0]), int(size[1])
	}
	return g
}

// boxes makes the output of a layer of priors: in each cell a box of each size around its centre, and
// the variances once for each box. Sizes are widths and heights in pixels.
func (g grid) boxes(im *importer, n *node, sizes [][2]float32) operand {
	variance := n.reals("variance")
	if len(variance) == 0 {
		variance = []float32{0.1}
	}
	if len(variance) != 1 && len(variance) != 4 {
		n.fail("variance", "one number or four")
	}
	if len(sizes) == 0 {
		try.Failf("it makes no priors")
	}
	cells := g.rows * g.columns
	count := cells * len(sizes)
	if int64(cells)*int64(len(sizes)) > maxValues/8 {
		try.Failf("it makes more than %d priors", maxValues/8)
	}
	list := im.newFloats(8 * count)
	right, down := 1/float32(g.width), 1/float32(g.height)
	try.Check(im.budget.Loop(cells, func(lo, hi int) {
		try.Check(im.budget.Charge(8 * int64(len(sizes)) * int64(hi-lo)))
		for cell := lo; cell < hi; cell++ {
			x := float32((float32(cell%g.columns) + g.offset) * g.stepX)
			y := float32((float32(cell/g.columns) + g.offset) * g.stepY)
			for i, s := range sizes {
				w, h := float32(s[0]*0.5), float32(s[1]*0.5)
				box := [4]float32{float32((x - w) * right), float32((y - h) * down), float32((x + w) * right), float32((y + h) * down)}
				for k, v := range box {
					at := 4*(cell*len(sizes)+i) + k
					if g.clip {
						v = min(max(v, 0), 1)
					}
					list[at], list[4*count+at] = v, variance[k%len(variance)]
				}
			}
		}
	}))
	dims := []int{2, 4 * count}
	if im.graph.old() {
		dims = []int{1, 2, 4 * count}
	}
	return operand{c: &constant{typ: "f32", dims: dims, floats: list}}
}

// priorBox imports PriorBox.
func priorBox(im *importer, n *node) operand {
	g := im.sizes(n)
	if !n.flag("scale_all_sizes", true) {
		n.fail("scale_all_sizes", "true")
	}
	for _, name := range []string{"density", "fixed_ratio", "fixed_size"} {
		if len(n.reals(name)) > 0 {
			n.fail(name, "none")
		}
	}
	g.clip = n.flag("clip", false)
	step := n.number("step", "0")
	g.stepX, g.stepY, g.offset = step, step, n.number("offset", "")
	if step == 0 { // and then the offset is not read
		g.stepX, g.stepY, g.offset = float32(g.width)/float32(g.columns), float32(g.height)/float32(g.rows), 0.5
	}
	least, most := n.reals("min_size"), n.reals("max_size")
	if len(most) != 0 && len(most) != len(least) {
		n.fail("max_size", fmt.Sprintf("none or %d numbers, as min_size has", len(least)))
	}
	ratios, flip := []float32{1}, n.flag("flip", false)
	for _, r := range n.reals("aspect_ratio") {
		if !(r > 0) {
			n.fail("aspect_ratio", "numbers above 0")
		}
		const same = 1e-6
		if slices.ContainsFunc(ratios, func(o float32) bool { return math.Abs(float64(r-o)) < same }) {
			continue
		}
		if ratios = append(ratios, r); flip {
			ratios = append(ratios, 1/r)
		}
	}
	before := n.flag("min_max_aspect_ratios_order", true)
	var sizes [][2]float32
	for i, s := range least {
		sizes = append(sizes, [2]float32{s, s})
		large := func() {
			if len(most) > 0 {
				both := float32(math.Sqrt(float64(float32(s * most[i]))))
				sizes = append(sizes, [2]float32{both, both})
			}
		}
		if before {
			large()
		}
		for _, r := range ratios[1:] {
			root := float32(math.Sqrt(float64(r)))
			sizes = append(sizes, [2]float32{s * root, s / root})
		}
		if !before {
			large()
		}
	}
	return g.boxes(im, n, sizes)
}

// priorBoxClustered imports PriorBoxClustered, whose boxes have the sizes that a list says.
func priorBoxClustered(im *importer, n *node) operand {
	g := im.sizes(n)
	g.clip, g.offset = n.flag("clip", false), n.number("offset", "")
	step := n.text("step", "0")
	g.stepX, g.stepY = n.number("step_w", step), n.number("step_h", step)
	if g.stepX == 0 && g.stepY == 0 {
		g.stepX, g.stepY = n.number("step", "0"), n.number("step", "0")
	}
	if g.stepX == 0 && g.stepY == 0 {
		g.stepX, g.stepY = float32(g.width)/float32(g.columns), float32(g.height)/float32(g.rows)
	}
	width, height := n.reals("width"), n.reals("height")
	if len(width) != len(height) {
		n.fail("width", fmt.Sprintf("%d numbers, as height has", len(height)))
	}
	sizes := make([][2]float32, len(width))
	for i := range sizes {
		sizes[i] = [2]float32{width[i], height[i]}
	}
	return g.boxes(im, n, sizes)
}

// joined concatenates constants of f32 along an axis.
func (im *importer) joined(n *node, axis int) *constant {
	first := im.constant(n, 0)
	if axis < 0 {
		axis += len(first.dims)
	}
	if axis < 0 || axis >= len(first.dims) {
		try.Failf("it joins dimension %d of constants of shape %v", axis, first.dims)
	}
	out := &constant{typ: "f32", dims: slices.Clone(first.dims)}
	out.dims[axis] = 0
	list := make([]*constant, len(n.from))
	try.Check(im.budget.Charge(64 * int64(len(list))))
	for k := range list {
		c := im.constant(n, k)
		c.checkReal()
		if len(c.dims) != len(first.dims) || !slices.Equal(c.dims[:axis], first.dims[:axis]) || !slices.Equal(c.dims[axis+1:], first.dims[axis+1:]) {
			try.Failf("it joins constants of shapes %v and %v along dimension %d", first.dims, c.dims, axis)
		}
		list[k] = c
		out.dims[axis] += c.dims[axis]
	}
	count := num.Product(out.dims...)
	if count > maxValues || int64(count)*4 > im.limits.TensorBytes {
		try.Failf("a constant of shape %v is too large; Limits.TensorBytes allows more", out.dims)
	}
	out.floats = im.newFloats(count)[:0]
	outer := num.Product(out.dims[:axis]...)
	for i := range outer {
		try.Check(im.budget.Charge(8 * int64(len(list))))
		for _, c := range list {
			part := len(c.floats) / outer
			try.Check(im.budget.Charge(4 * int64(part)))
			out.floats = append(out.floats, c.floats[i*part:(i+1)*part]...)
		}
	}
	return out
}
