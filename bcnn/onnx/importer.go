package onnx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
)

// importer turns a graph into a network, node by node.
type importer struct {
	ctx    context.Context
	limits bcnn.Limits
	model  *model
	opts   Options
	dir    string // of external data
	budget int64  // bytes, see charge
	// credited are the external files that have been added to the budget.
	credited map[string]bool

	net    *bcnn.Network
	names  map[string]bool // of layers
	env    map[string]result
	made   map[int]string // the first layer that a node became
	folded map[int]bool   // nodes that are constant
	needed map[int]bool   // nodes that the output depends on
	batch  int            // the batch size in the file, 0 if dynamic
}

// result is a tensor of the graph: a constant or a value.
type result struct {
	constant *tensor
	value    *value
}

func (r result) typ() elemType {
	if r.constant != nil {
		return r.constant.typ
	}
	return r.value.typ
}

func newImporter(ctx context.Context, m *model, dir string, opts Options, size int64) *importer {
	return &importer{
		ctx: ctx, limits: opts.Limits, model: m, opts: opts, dir: dir,
		budget:   min(baseBudget+unpackFactor*size, maxBudget),
		credited: map[string]bool{},
		net:      &bcnn.Network{},
		names:    map[string]bool{},
		env:      map[string]result{},
		made:     map[int]string{},
		folded:   map[int]bool{},
	}
}

type metadata struct {
	name   string
	labels []string
	resize int
}

// describe reads what metadata_props say, unless the options do.
func (m *model) describe(opts Options) (metadata, error) {
	meta := metadata{opts.Name, opts.Labels, opts.Resize}
	if meta.name == "" {
		meta.name = m.metadata["name"]
	}
	if meta.name == "" {
		meta.name = opts.fallbackName
	}
	if s := m.metadata["labels"]; s != "" && meta.labels == nil {
		if err := json.Unmarshal([]byte(s), &meta.labels); err != nil {
			return meta, fmt.Errorf("metadata \"labels\" is not a JSON array of strings: %w", err)
		}
	}
	if s := m.metadata["resize"]; s != "" && meta.resize == 0 {
		v, err := strconv.Atoi(s)
		if err != nil || v < 0 {
			return meta, fmt.Errorf("metadata \"resize\" is %q, want a number of pixels", s)
		}
		meta.resize = v
	}
	return meta, nil
}

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

// run imports the graph.
func (im *importer) run(l layout) error {
	g := im.model.graph
	if err := im.begin(l); err != nil {
		return fmt.Errorf("input %q: %w", l.info.name, err)
	}
	if len(g.outputs) != 1 {
		return fmt.Errorf("the graph has %d outputs, want 1", len(g.outputs))
	}
	output := g.outputs[0].name
	var err error
	if im.needed, err = g.needed(output); err != nil {
		return err
	}
	for _, n := range g.nodes {
		if !im.needed[n.index] {
			continue
		}
		if err := im.node(n); err != nil {
			return fmt.Errorf("%v: %w", n, err)
		}
	}
	r, err := im.lookup(output)
	if err == nil {
		err = im.output(r)
	}
	if err == nil && im.budget < 0 {
		err = errBudget
	}
	if err != nil {
		return fmt.Errorf("output %q: %w", output, err)
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

// needed marks the nodes that the output depends on.
func (g *graph) needed(output string) (map[int]bool, error) {
	maker := make(map[string]*node, len(g.nodes))
	for _, n := range g.nodes {
		for _, name := range n.outputs {
			if name == "" {
				continue
			}
			if maker[name] != nil {
				return nil, fmt.Errorf("%v: %v writes %q too", n, maker[name], name)
			}
			maker[name] = n
		}
	}
	needed := map[int]bool{}
	queue := []string{output}
	for len(queue) > 0 {
		n := maker[queue[len(queue)-1]]
		queue = queue[:len(queue)-1]
		if n != nil && !needed[n.index] {
			needed[n.index] = true
			queue = append(queue, n.inputs...)
		}
	}
	return needed, nil
}

// lookup returns a tensor of the graph by its name.
func (im *importer) lookup(name string) (result, error) {
	if r, ok := im.env[name]; ok {
		return r, nil
	}
	p := im.model.graph.initializers[name]
	if p == nil {
		return result{}, fmt.Errorf("%q is given by no initialiser and is not the first output of an earlier node", name)
	}
	t, err := im.tensor(p)
	if err != nil {
		return result{}, err
	}
	im.env[name] = result{constant: t}
	return im.env[name], nil
}

// operand returns an input of a node.
func (im *importer) operand(n *node, i int) (result, error) {
	name := n.input(i)
	if name == "" {
		return result{}, fmt.Errorf("input %d is missing", i)
	}
	return im.lookup(name)
}

// constant returns an input that must be constant, or nil if it is left out.
func (im *importer) constant(n *node, i int) (*tensor, error) {
	if n.input(i) == "" {
		return nil, nil
	}
	r, err := im.operand(n, i)
	if err == nil && r.constant == nil {
		err = fmt.Errorf("input %d (%q) must be constant", i, n.input(i))
	}
	return r.constant, err
}

// required is constant for an input that must be there.
func (im *importer) required(n *node, i int) (*tensor, error) {
	t, err := im.constant(n, i)
	if err == nil && t == nil {
		err = fmt.Errorf("input %d is missing", i)
	}
	return t, err
}

// value returns an input that must be computed, with nothing pending but what
// its layer can take in.
func (im *importer) value(n *node, i int) (*value, error) {
	r, err := im.operand(n, i)
	if err == nil && r.value == nil {
		err = fmt.Errorf("input %d (%q) is constant", i, n.input(i))
	}
	return r.value, err
}

// settled is value as real numbers with nothing pending.
func (im *importer) settled(n *node, i int) (*value, error) {
	v, err := im.value(n, i)
	if err == nil {
		err = v.real()
	}
	if err != nil {
		return nil, err
	}
	return im.settle(v)
}

// emit appends a layer made of a node (nil for the input) and returns its
// output, seen as the first operand is.
func (im *importer) emit(n *node, suffix string, op bcnn.Op, shape bcnn.Shape, inputs ...*value) *value {
	// Lowering allocates for every channel, row and column of a layer, however
	// large the file claims them to be. node sees the overdraft.
	_ = im.charge(16 * (int64(shape.C) + int64(shape.H) + int64(shape.W)))
	list := make([]int, len(inputs))
	for i, in := range inputs {
		list[i] = in.layer
	}
	out := &value{typ: typeFloat, node: n, shape: shape, view: inputs[0].view}
	name := im.layerName(n.label() + suffix)
	out.layer = im.net.Append(name, op, list...)
	if n != nil && im.made[n.index] == "" {
		im.made[n.index] = name
	}
	return out
}

// layerName makes a name valid and unique.
func (im *importer) layerName(name string) string {
	const maxLen = 200
	name = strings.ToValidUTF8(name, "?")
	if len(name) > maxLen {
		name = strings.ToValidUTF8(name[:maxLen], "")
	}
	unique := name
	for i := 2; im.names[unique] || unique == ""; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	im.names[unique] = true
	return unique
}

// label is the name that layers made of a node have. PyTorch names nodes
// "/module/Operator"; the module is what a user knows.
func (n *node) label() string {
	if n == nil {
		return "input"
	}
	name := strings.TrimPrefix(n.name, "/")
	if name = strings.TrimSuffix(name, "/"+n.opType); name != "" {
		return name
	}
	return fmt.Sprintf("%s_%d", n.opType, n.index)
}

// output makes the graph's output that of the last layer.
func (im *importer) output(r result) error {
	if r.value == nil {
		return errors.New("it is constant")
	}
	v, err := im.settle(r.value)
	if err != nil {
		return err
	}
	if v.typ != typeFloat {
		return fmt.Errorf("it is %v, want FLOAT", v.typ)
	}
	if !isBatch(v.view[0]) {
		return errors.New("its first dimension is not the batch")
	}
	// Feature maps stay NHWC; anything else becomes a vector.
	if !v.view.equal(nchw(v.shape)) {
		if v, err = im.vector(v, v.node); err != nil {
			return err
		}
	}
	if v.layer != len(im.net.Layers)-1 {
		return errors.New("no layer computes it")
	}
	return nil
}

// vector returns a value whose dimensions, one after the other, are in the
// order of the memory, as a vector.
func (im *importer) vector(v *value, n *node) (*value, error) {
	var all []atom
	for _, d := range v.view.flatten(v.shape)[1:] {
		all = append(all, d...)
	}
	if !slices.Equal(merge(all), whole(axisC, v.shape.Values())) {
		return nil, errors.New("its values are in an order that would need a transposition")
	}
	return im.flattened(v, n), nil
}

// flattened returns the value with all its pixels lined up as channels.
func (im *importer) flattened(v *value, n *node) *value {
	if v.shape.Pixels() == 1 {
		return v
	}
	out := im.emit(n, "/flatten", bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: v.shape.Values()}, v)
	out.view, out.signs = v.view.flatten(v.shape), v.signs
	return out
}
