package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/build"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/eval"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/text"
)

// layout is a way to see an input of the graph as images.
type layout struct {
	info  pb.ValueInfo
	shape bcnn.Shape
	view  view.View
}

// graphInputs returns the inputs of the graph that are not initialisers.
func graphInputs(g *pb.Graph) ([]pb.ValueInfo, error) {
	var found []pb.ValueInfo
	for _, in := range g.Inputs {
		if g.Initializers[in.Name] != nil {
			continue
		}
		if slices.ContainsFunc(found, func(other pb.ValueInfo) bool { return other.Name == in.Name }) {
			return nil, fmt.Errorf("two inputs of the graph are called %s", text.Quote(in.Name))
		}
		if found = append(found, in); len(found) > maxEnds {
			break
		}
	}
	if n := len(found); n < 1 || n > maxEnds {
		return nil, fmt.Errorf("the graph has %d inputs, want 1 to %d", len(g.Inputs), maxEnds)
	}
	return found, nil
}

// inputLayouts returns the combinations of layouts to try, the likeliest first, each with a layout
// per input. Combination i has layout i of each input, or its last one.
func inputLayouts(e *eval.Evaluator, g *pb.Graph, opts Options) ([][]layout, error) {
	inputs, err := graphInputs(g)
	if err != nil {
		return nil, err
	}
	var each [][]layout
	most := 0
	for i, in := range inputs {
		if i == 1 {
			opts = Options{} // which are about the first
		}
		list, err := layoutsOf(e, g, in, opts)
		if err == nil && len(list) == 0 {
			err = fmt.Errorf("input %s: its dimensions are not those of an image, a sequence or a vector", text.Quote(in.Name))
		}
		if err != nil {
			return nil, err
		}
		each = append(each, list)
		most = max(most, len(list))
	}
	all := make([][]layout, most)
	for i := range all {
		for _, list := range each {
			all[i] = append(all[i], list[min(i, len(list)-1)])
		}
	}
	return all, nil
}

// layoutsOf returns the possible layouts of an input, the likeliest first.
func layoutsOf(e *eval.Evaluator, g *pb.Graph, in pb.ValueInfo, opts Options) ([]layout, error) {
	// The loops below visit all inputs and nodes.
	if err := e.Budget.Charge(nameUnits * int64(len(g.Inputs)+len(g.Nodes))); err != nil {
		return nil, err
	}
	fail := func(err error) ([]layout, error) { return nil, fmt.Errorf("input %s: %w", text.Quote(in.Name), err) }
	switch {
	case !in.Type.Real() && in.Type != pb.Uint8:
		return fail(fmt.Errorf("elements of %v are not supported, want FLOAT, FLOAT16 or UINT8", in.Type))
	case !in.Ranked || len(in.Dims) < 1 || len(in.Dims) > 5:
		return fail(fmt.Errorf("it has %d dimensions, want a batch of volumes (5), images (4), grey images or sequences (3), vectors (2) or numbers (1)", len(in.Dims)))
	}
	transposes := slices.ContainsFunc(g.Nodes, func(n *pb.Node) bool { return n.OpType == "Transpose" })
	ways := &ways{in: in, given: opts.InputShape}
	switch rest := in.Dims[1:]; len(rest) {
	case 0:
		ways.add(absent, absent, absent, func(bcnn.Shape) view.View { return view.View{view.Batch} })
	case 1:
		s := ways.add(absent, absent, rest[0], func(s bcnn.Shape) view.View { return view.Vector(s.C) })
		// The graph may reshape the vector to an image.
		ways.list = append(ways.list, reshapedInput(e, g, in, s.C)...)
	case 2:
		ways.sequence(rest, sequences(g), transposes)
	case 3:
		ways.image(rest, transposes)
	case 4:
		ways.volume(rest)
	}
	var dynamic *bcnn.ObstaclesError
	switch {
	case errors.As(ways.open, &dynamic):
		return nil, ways.open
	case ways.open != nil:
		return fail(ways.open)
	}
	return ways.list, nil
}

// ways collects the layouts of an input.
type ways struct {
	in    pb.ValueInfo
	given bcnn.Shape // Options.InputShape
	list  []layout
	open  error // why a size is not known: the first reason
}

// absent is a dimension that the file does not have.
var absent = pb.Dim{Size: 1}

// fixed returns the size of a dimension: that of the file, or that of the options if the file
// leaves it open. If there is neither, or they differ, it returns 0 and sets open.
func (w *ways) fixed(d pb.Dim, option int) int {
	var err error
	switch dynamic := d.Name != "" || d.Size == 0; {
	case dynamic && option > 0:
		return option
	case dynamic:
		err = &bcnn.ObstaclesError{Obstacles: []bcnn.Obstacle{{
			Node: w.in.Name, Index: -1, Err: fmt.Errorf("dimension %s is dynamic", text.Quote(d.Name)),
			Option: "InputShape", Advice: "give its size with Options.InputShape",
		}}}
	case d.Size < 1 || d.Size > pb.MaxSize || option != 0 && option != int(d.Size):
		err = fmt.Errorf("a dimension in the file is %d, InputShape says %d", d.Size, option)
	default:
		return int(d.Size)
	}
	if w.open == nil {
		w.open = err
	}
	return 0
}

// add adds a layout if all of its sizes are known.
func (w *ways) add(height, width, channels pb.Dim, seen func(bcnn.Shape) view.View) bcnn.Shape {
	s := bcnn.Shape{H: w.fixed(height, w.given.H), W: w.fixed(width, w.given.W), C: w.fixed(channels, w.given.C)}
	if s.H > 0 && s.W > 0 && s.C > 0 {
		w.list = append(w.list, layout{w.in, s, seen(s)})
	}
	return s
}

// sequence adds the layouts of two dimensions behind the batch: sequences, which are channels and
// positions, and images of one channel. Sequences come first if the graph has layers on them.
func (w *ways) sequence(d []pb.Dim, sequences, transposes bool) {
	images := func() { w.add(d[0], d[1], absent, func(s bcnn.Shape) view.View { return view.NHWC(s)[:3] }) }
	if !sequences {
		images()
	}
	w.add(absent, d[1], d[0], func(s bcnn.Shape) view.View {
		return view.View{view.Batch, view.All(view.C, s.C), view.All(view.W, s.W)}
	})
	if sequences {
		images()
	}
	if transposes { // TensorFlow's sequences have the channels last
		w.add(absent, d[0], d[1], func(s bcnn.Shape) view.View {
			return view.View{view.Batch, view.All(view.W, s.W), view.All(view.C, s.C)}
		})
	}
}

// image adds the layouts of three dimensions behind the batch. A dimension of 1 or 3 is likely that
// of the channels. Otherwise a graph with a Transpose may be NHWC.
func (w *ways) image(d []pb.Dim, transposes bool) {
	colours := func(d pb.Dim) bool { return d.Size == 1 || d.Size == 3 }
	last := colours(d[2]) && !colours(d[0])
	if last {
		w.add(d[0], d[1], d[2], view.NHWC)
	}
	w.add(d[1], d[2], d[0], view.NCHW)
	if transposes && !last {
		w.add(d[0], d[1], d[2], view.NHWC)
	}
	if len(w.list) > 0 { // a size in the options may contradict one layout only
		w.open = nil
	}
}

// sequences reports whether the graph has convolutions of sequences: of batch, channels and
// positions.
func sequences(g *pb.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n *pb.Node) bool {
		w := g.Initializers[n.Input(1)]
		return (n.OpType == "Conv" || n.OpType == "ConvTranspose") && w != nil && len(w.Dims) == 3
	})
}

// reshapedInput returns the layouts of an input vector of n values that a Reshape with constant
// dimensions turns into images, nil if there is none.
func reshapedInput(e *eval.Evaluator, g *pb.Graph, in pb.ValueInfo, n int) []layout {
	for _, node := range g.Nodes {
		if node.OpType != "Reshape" || node.Input(0) != in.Name {
			continue
		}
		var layouts []layout
		p := g.Initializers[node.Input(1)]
		if p == nil {
			for _, c := range g.Nodes {
				if c.OpType == "Constant" && slices.Contains(c.Outputs, node.Input(1)) && len(c.Attrs) == 1 {
					p = c.Attrs[0].T
				}
			}
		}
		if p == nil || p.External != nil {
			return nil
		}
		t, err := e.Tensor(p)
		if err != nil || len(t.I64) != 4 {
			return nil
		}
		d := t.I64[1:]
		if min(d[0], d[1], d[2]) < 1 || max(d[0], d[1], d[2]) > pb.MaxSize || d[0]*d[1] > pb.MaxSize || d[0]*d[1]*d[2] != int64(n) {
			return nil
		}
		for _, s := range []struct {
			shape bcnn.Shape
			view  func(bcnn.Shape) view.View
		}{
			{bcnn.Shape{H: int(d[1]), W: int(d[2]), C: int(d[0])}, view.NCHW},
			{bcnn.Shape{H: int(d[0]), W: int(d[1]), C: int(d[2])}, view.NHWC},
		} {
			image := s.view(s.shape)
			flat := append(append(slices.Clone(image[1]), image[2]...), image[3]...)
			layouts = append(layouts, layout{in, s.shape, view.View{view.Batch, view.Merge(flat)}})
		}
		return layouts
	}
	return nil
}

// begin sets up input i of the network.
func (im *importer) begin(i int, l layout) error {
	if err := im.build.CheckShape(l.shape); err != nil {
		return err
	}
	if d := l.info.Dims[0]; d.Name == "" && i == 0 {
		if d.Size < 0 || d.Size > pb.MaxSize {
			return fmt.Errorf("the batch size is %d, which is negative or too large", d.Size)
		}
		im.batch = int(d.Size) // 0 if it is not given
	}
	var opts Options // which are about the first input
	if i == 0 {
		opts = im.opts
	}
	dtype := opts.InputType
	if dtype == 0 {
		dtype = bcnn.Float32
		if l.info.Type == pb.Uint8 {
			dtype = bcnn.Uint8
		}
	}
	source, err := im.source(l.info.Name, l.shape, l.view)
	if err != nil {
		return err
	}
	in := bcnn.Input{Shape: l.shape, DType: dtype, Source: source}
	im.build.Net.Inputs = append(im.build.Net.Inputs, in)
	if l.info.Type != pb.Float && l.info.Type.Real() {
		im.types[l.info.Name] = l.info.Type
	}
	v := &build.Value{Type: computedIn(l.info.Type), Layer: bcnn.NetworkInput - i, Shape: l.shape, View: l.view}
	mean, scale := opts.Mean, opts.Scale
	if len(mean)+len(scale) > 0 {
		if l.info.Type == pb.Uint8 {
			return errors.New("Mean and Scale are for graphs that take FLOAT; this one takes UINT8 and scales it itself")
		}
		for name, list := range map[string][]float32{"Mean": mean, "Scale": scale} {
			if n := len(list); n > 1 && n != l.shape.C {
				return fmt.Errorf("%s has %d values, the input has %s", name, n, text.Count(l.shape.C, "channel"))
			}
		}
	}
	if len(mean) > 0 {
		bias := make([]float32, len(mean))
		for i, m := range mean {
			bias[i] = -m
		}
		v = im.build.Emit(nil, "/mean", bcnn.Affine{Bias: bias}, v.Shape, v)
	}
	if len(scale) > 0 {
		v = im.build.Emit(nil, "/scale", bcnn.Affine{Scale: scale}, v.Shape, v)
	}
	im.env[l.info.Name] = build.Operand{Value: v}
	return nil
}
