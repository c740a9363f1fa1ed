package build

import (
	"cmp"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// Obstacle is a node that no layer can be made of. A hole stands in the network for its output: a
// layer that does nothing, so that the import goes on and finds further obstacles. A hole that no
// output depends on does no harm.
type Obstacle struct {
	Node *pb.Node // nil for the input
	Err  error
}

// made returns a layer. ok is false for inputs and for holes.
func (b *Builder) made(layer int) (l bcnn.Layer, ok bool) {
	if _, hole := b.holes[layer]; hole || layer < 0 || layer >= len(b.Net.Layers) {
		return l, false
	}
	return b.Net.Layers[layer], true
}

// Choice is an error that an option would avoid.
type Choice struct {
	Option string // the field of Options
	Err    error
}

func (c *Choice) Error() string { return c.Err.Error() }
func (c *Choice) Unwrap() error { return c.Err }

// obstacleUnits is the cost of an obstacle with its text.
const obstacleUnits = 4096

// holeUnits is the cost of a hole without its layer.
const holeUnits = 512

// Hole returns a value that stands for the output of node n. Its layer reads the given values. err
// is nil if an earlier hole is the only reason. The hole has shape, view and type of like; a nil
// view means that its dimensions are unknown. Errors of the budget are in Err.
func (b *Builder) Hole(n *pb.Node, err error, like *Value, reads []*Value) *Value {
	units := int64(holeUnits + 64*len(reads))
	if err != nil {
		units += obstacleUnits
	}
	if b.err == nil {
		b.err = b.budget.Charge(units)
	}
	from := []*Value{{Layer: bcnn.NetworkInput}}
	for _, v := range reads {
		if v.settled != nil { // may be a hole itself
			v = v.settled
		}
		from = append(from, &Value{Layer: v.Layer}) // of whatever is pending nobody asks
	}
	out := b.Emit(n, "", bcnn.Add{}, like.Shape, from...)
	out.View, out.Type, out.Hole = like.View, like.Type, true
	if err != nil && b.err == nil {
		b.holes[out.Layer] = Obstacle{n, err}
	}
	return out
}

// Finish makes the given layers the outputs of the network, and removes layers that none of them
// depends on. If there are obstacles on the way to them, it returns those instead, in the order of
// their nodes. Without outputs it returns all obstacles.
func (b *Builder) Finish(outputs []int) []Obstacle {
	layers := b.Net.Layers
	used := make([]bool, len(layers))
	if len(outputs) == 0 {
		for i := range used {
			used[i] = true
		}
	}
	for _, l := range outputs {
		used[l] = true
	}
	for i := len(layers) - 1; i >= 0; i-- {
		for _, in := range layers[i].Inputs {
			if used[i] && in > bcnn.NetworkInput {
				used[in] = true
			}
		}
	}
	var found []Obstacle
	for i, o := range b.holes {
		if used[i] {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b Obstacle) int {
		return cmp.Or(cmp.Compare(a.Node.Position(), b.Node.Position()), cmp.Compare(a.Err.Error(), b.Err.Error()))
	})
	if len(found) > 0 {
		return found
	}
	to := make([]int, len(layers))
	kept := layers[:0]
	dropped := map[string]bool{}
	for i, l := range layers {
		if !used[i] {
			dropped[l.Name] = true
			continue
		}
		for k, in := range l.Inputs {
			if in > bcnn.NetworkInput {
				l.Inputs[k] = to[in]
			}
		}
		to[i] = len(kept)
		kept = append(kept, l)
	}
	b.Net.Layers = kept
	if len(outputs) > 1 { // a single one is the last layer
		for _, l := range outputs {
			b.Net.Outputs = append(b.Net.Outputs, to[l])
		}
	}
	for node, name := range b.Made {
		if dropped[name] {
			delete(b.Made, node)
		}
	}
	b.Zeros = slices.DeleteFunc(b.Zeros, func(z Zero) bool { return !used[z.layer] })
	b.Ternary = slices.DeleteFunc(b.Ternary, func(z Zero) bool { return !used[z.layer] })
	b.rounding, b.quantised = moved(b.rounding, used, to), moved(b.quantised, used, to)
	return nil
}

// moved returns what is noted of layers, of those that are used, at their new places.
func moved[T any](of map[int]T, used []bool, to []int) map[int]T {
	out := map[int]T{}
	for l, v := range of {
		if used[l] {
			out[to[l]] = v
		}
	}
	return out
}
