package onnx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// What exporters of detectors leave in a file besides maps.

// cut makes the maps of a detector the outputs of a graph that goes on behind them, to one output that is
// not a map itself. What decodes maps flattens and joins them; of several nodes that join what is
// flattened, it is the last one. It returns what is to be said of that.
func (d Detection) cut(g *pb.Graph, work *budget.Budget) (deviation string, err error) {
	if d == "" || len(g.Outputs) != 1 || g.Outputs[0].Ranked && len(g.Outputs[0].Dims) == 4 {
		return "", nil
	}
	makers := make(map[string]*pb.Node, len(g.Nodes))
	values := map[string]bool{} // tensors that hold more of the image than its shape
	for _, in := range g.Inputs {
		values[in.Name] = g.Initializers[in.Name] == nil
	}
	for _, n := range g.Nodes {
		if err := work.Charge(nameUnits * int64(1+len(n.Inputs)+len(n.Outputs))); err != nil {
			return "", err
		}
		holds := n.OpType != "Shape" && n.OpType != "Size" && slices.ContainsFunc(n.Inputs, func(name string) bool { return values[name] })
		for _, name := range n.Outputs {
			makers[name], values[name] = n, holds
		}
	}
	seen := map[*pb.Node]bool{}
	for queue := []string{g.Outputs[0].Name}; len(queue) > 0; queue = queue[1:] {
		n := makers[queue[0]]
		if n == nil || seen[n] || !values[queue[0]] {
			continue
		}
		seen[n] = true
		if maps := flattened(n, makers, values); maps != nil {
			end := g.Outputs[0].Name
			g.Outputs = nil
			names := make([]string, len(maps))
			for i, name := range maps {
				g.Outputs = append(g.Outputs, pb.ValueInfo{Name: name, Type: pb.Float})
				names[i] = text.Quote(name)
			}
			return fmt.Sprintf("output %s is left out for the maps that it is made of: %s", text.Quote(end), strings.Join(names, ", ")), nil
		}
		queue = append(queue, n.Inputs...)
	}
	return "", nil
}

// flattened returns the tensors that a Concat joins behind a Reshape or Flatten of each; nil for other nodes.
func flattened(n *pb.Node, makers map[string]*pb.Node, values map[string]bool) (maps []string) {
	if n.OpType != "Concat" || n.Domain != "" || len(n.Inputs) > maxEnds {
		return nil
	}
	for _, name := range n.Inputs {
		from := makers[name]
		if from == nil || from.OpType != "Reshape" && from.OpType != "Flatten" || from.Domain != "" || !values[from.Input(0)] || slices.Contains(maps, from.Input(0)) {
			return nil
		}
		maps = append(maps, from.Input(0))
	}
	return maps
}

// ultralytics reads what Ultralytics' exporter says of a network in metadata_props: "names", the classes, as
// Python prints a dictionary, and "imgsz", rows and columns of the input.
func ultralytics(m *pb.Model, work *budget.Budget) (labels []string, size bcnn.Shape, err error) {
	if string(m.Metadata["author"]) != "Ultralytics" {
		return nil, bcnn.Shape{}, nil
	}
	names, sides := m.Metadata["names"], m.Metadata["imgsz"]
	if len(names) > maxMetadata || len(sides) > maxMetadata {
		return nil, size, fmt.Errorf("metadata \"names\" or \"imgsz\" has more than %d bytes", maxMetadata)
	}
	if err := work.Charge(32 * int64(len(names)+len(sides))); err != nil {
		return nil, size, err
	}
	rows, cols, two := strings.Cut(strings.Trim(string(sides), "[] "), ",")
	h, errH := strconv.Atoi(rows)
	w, errW := strconv.Atoi(strings.TrimSpace(cols))
	if two && errH == nil && errW == nil && min(h, w) > 0 && max(h, w) <= pb.MaxSize {
		size = bcnn.Shape{H: h, W: w}
	}
	return dictionary(string(names)), size, nil
}

// dictionary reads {0: 'a', 1: "b"}, whose keys count from 0; nil if it is something else.
func dictionary(s string) (list []string) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "{")
	for ok && !strings.HasPrefix(rest, "}") {
		if rest, ok = strings.CutPrefix(rest, strconv.Itoa(len(list))+": "); !ok || rest == "" {
			return nil
		}
		var item strings.Builder
		quote, i := rest[0], 1
		for ; i < len(rest) && rest[i] != quote; i++ {
			if rest[i] == '\\' && i+1 < len(rest) && strings.IndexByte(`\'"`, rest[i+1]) >= 0 {
				i++
			}
			item.WriteByte(rest[i])
		}
		if quote != '\'' && quote != '"' || i == len(rest) {
			return nil
		}
		list = append(list, item.String())
		rest = strings.TrimPrefix(rest[i+1:], ", ")
	}
	if !ok || rest != "}" {
		return nil
	}
	return list
}

// openSize returns a size for the first input of a graph if it leaves both of its sides open.
func openSize(g *pb.Graph, size bcnn.Shape) bcnn.Shape {
	for _, in := range g.Inputs {
		if g.Initializers[in.Name] != nil {
			continue
		}
		if len(in.Dims) == 4 && in.Dims[2].Size == 0 && in.Dims[3].Size == 0 {
			return size
		}
		break
	}
	return bcnn.Shape{}
}
