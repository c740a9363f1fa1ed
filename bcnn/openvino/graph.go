package openvino

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/text"
)

// absent is what an input port reads that no edge leads to.
var absent = source{-1, -1}

// connect resolves the edges and returns the layers in an order in which each comes behind
// what it reads.
func (g *graph) connect(b *budget.Budget) (order []int, err error) {
	if err := b.Charge(64 * int64(len(g.layers)+len(g.edges))); err != nil {
		return nil, err
	}
	byID := make(map[string]int, len(g.layers))
	for i := range g.layers {
		l := &g.layers[i]
		if first, twice := byID[l.id]; twice {
			return nil, fmt.Errorf("layers %s and %s both have the id %s", text.Quote(short(g.layers[first].name)), text.Quote(short(l.name)), text.Quote(short(l.id)))
		}
		byID[l.id] = i
		if err := b.Charge(32 * int64(len(l.inputs))); err != nil {
			return nil, err
		}
		l.from = make([]source, len(l.inputs))
		for k := range l.from {
			l.from[k] = absent
		}
	}
	g.readers = make([][]int, len(g.layers))
	open := make([]int, len(g.layers)) // inputs that are not in the order yet
	for _, e := range g.edges {
		from, fromPort, err := g.end(b, byID, e.fromLayer, e.fromPort, func(l *layer) []port { return l.outputs })
		if err != nil {
			return nil, fmt.Errorf("an edge begins at %w", err)
		}
		to, toPort, err := g.end(b, byID, e.toLayer, e.toPort, func(l *layer) []port { return l.inputs })
		if err != nil {
			return nil, fmt.Errorf("an edge ends at %w", err)
		}
		l := &g.layers[to]
		if l.from[toPort] != absent {
			return nil, fmt.Errorf("two edges end at port %s of layer %s", text.Quote(short(e.toPort)), text.Quote(short(l.name)))
		}
		l.from[toPort] = source{from, fromPort}
		g.readers[from] = append(g.readers[from], to)
		open[to]++
	}
	for i := range g.layers {
		if open[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, to := range g.readers[order[k]] {
			if open[to]--; open[to] == 0 {
				order = append(order, to)
			}
		}
	}
	if len(order) < len(g.layers) {
		i := slices.IndexFunc(open, func(n int) bool { return n > 0 })
		return nil, fmt.Errorf("layer %s is part of a cycle, or reads one", text.Quote(short(g.layers[i].name)))
	}
	return order, nil
}

// end returns the layer and the index of the port at an end of an edge.
func (g *graph) end(b *budget.Budget, byID map[string]int, id, port string, ports func(l *layer) []port) (int, int, error) {
	at, ok := byID[id]
	if !ok {
		return 0, 0, fmt.Errorf("a layer with the id %s, which there is not", text.Quote(short(id)))
	}
	list := ports(&g.layers[at])
	if k := numbered(list, port); k >= 0 {
		return at, k, nil
	}
	if err := b.Charge(int64(len(list))); err != nil {
		return 0, 0, err
	}
	for i := range list {
		if list[i].id == port {
			return at, i, nil
		}
	}
	return 0, 0, fmt.Errorf("port %s of layer %s, which has no such port", text.Quote(short(port)), text.Quote(short(g.layers[at].name)))
}

// numbered returns where a port is if ports are numbered on from the first one, else −1.
func numbered(list []port, id string) int {
	if len(list) == 0 {
		return -1
	}
	first, err := strconv.Atoi(list[0].id)
	k, err2 := strconv.Atoi(id)
	if k -= first; err != nil || err2 != nil || k < 0 || k >= len(list) || list[k].id != id {
		return -1
	}
	return k
}

// outputs returns what the outputs of the network are: what Result layers read, or in old versions,
// which have none, the outputs that nothing reads.
func (g *graph) outputs() (list []source, err error) {
	if g.old() {
		read := map[source]bool{}
		for i := range g.layers {
			for _, from := range g.layers[i].from {
				read[from] = true
			}
		}
		for i := range g.layers {
			for k := range g.layers[i].outputs {
				if s := (source{i, k}); !read[s] {
					list = append(list, s)
				}
			}
		}
	}
	for i := range g.layers {
		l := &g.layers[i]
		if l.typ != "Result" || g.old() {
			continue
		}
		if len(l.from) != 1 || l.from[0] == absent {
			return nil, fmt.Errorf("the Result layer %s reads nothing, or more than one output", text.Quote(short(l.name)))
		}
		list = append(list, l.from[0])
	}
	if len(list) == 0 {
		return nil, errors.New("it has no outputs")
	}
	return list, nil
}
