package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// innerCheck compares the tensors between input and output that a reference has.
type innerCheck struct {
	absorbed    []string            // names of tensors that the network does not compute; nil if they are not known
	ports       map[int]arrays.Port // by layer
	results     []int               // the layer of each step; several may have the same
	wanted      map[int]*imageArrays
	numbers     map[int][]float64 // what has been read of the batch
	differences map[int]*arrays.Difference
	notCompared []string
	unknown     []string // of those, names that the source of the network does not have
	known       []string // names that the network has
	exe         *backend.Executable
	out         []bcnn.Tensor
	failed      error // of a comparison
}

// newInnerCheck finds the arrays of layers, which have so many images. The plan is lowered
// without fusing, so that there are as many tensors as possible; its outputs are the same bits.
func (r *arrayRunner) newInnerCheck(ctx context.Context, f *arrayFile, images int) (_ *innerCheck, err error) {
	k := &innerCheck{wanted: map[int]*imageArrays{}, differences: map[int]*arrays.Difference{}, notCompared: []string{}, unknown: []string{}}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	var names []string // of arrays for the inside
	ends := slices.Concat(r.ports.Inputs, r.ports.Outputs)
	for _, name := range f.Names() {
		isEnd := slices.ContainsFunc(ends, func(p arrays.Port) bool { return p.Name == name })
		if !isEnd && len(f.Names()) > 1 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return k, nil
	}
	program, err := lower.Compile(ctx, r.net, lower.Options{Unfused: true})
	if err != nil {
		return nil, files.Name(r.model, err)
	}
	inner, err := arrays.PortsOf(program.Network)
	if err != nil {
		return nil, files.Name(r.model, err)
	}
	k.ports, k.absorbed = inner.Layers, program.Network.Absorbed
	k.results = plan.Results(program.Network, program.Plan)
	layers := map[string]int{}
	for _, layer := range k.results {
		p, ok := k.ports[layer]
		if _, seen := layers[p.Name]; ok && !seen {
			layers[p.Name], k.known = layer, append(k.known, p.Name)
		}
	}
	for _, name := range names {
		layer, ok := layers[name]
		if !ok {
			k.notCompared = append(k.notCompared, name)
			if k.isUnknown(name) {
				k.unknown = append(k.unknown, name)
			}
			continue
		}
		if k.wanted[layer], err = findArrays(f, []arrays.Port{k.ports[layer]}, images, false); err != nil {
			delete(k.wanted, layer)
			return nil, err
		}
		k.differences[layer] = &arrays.Difference{}
	}
	slices.Sort(k.notCompared)
	if len(k.differences) == 0 {
		return nil, k.unmatched(f, k.absorbed != nil)
	}
	dev, err := backend.Open(r.opts.Device)
	if err != nil {
		return nil, err
	}
	k.exe, err = dev.Compile(ctx, program.Plan, backend.Options{
		MaxBatch: min(r.opts.MaxBatch, images), Threads: r.opts.Threads, ISA: r.opts.ISA, Kernels: r.opts.Kernels, Tap: k.tap,
	})
	if err != nil {
		return nil, err
	}
	for _, t := range k.exe.Outputs() {
		k.out = append(k.out, bcnn.NewTensor(t.DType, min(r.opts.MaxBatch, images), t.Shape))
	}
	return k, nil
}

// isUnknown reports whether the model that was converted has no tensor of the name, as far
// as is known.
func (k *innerCheck) isUnknown(name string) bool {
	for _, p := range k.ports {
		if p.Name == name {
			return false
		}
	}
	return k.absorbed != nil && !slices.Contains(k.absorbed, text.Escape(name))
}

// unmatched is the error where a reference has arrays for the inside of a model, but none of
// their names is that of a result. isKnown says whether all tensors of the source are known.
func (k *innerCheck) unmatched(f *arrayFile, isKnown bool) error {
	has := "which kept no inner tensors of its source"
	if len(k.known) > 0 {
		has = "which has " + arrays.Quoted(k.known)
	}
	why := ""
	if isKnown && len(k.unknown) == 0 {
		why = ", all of which became part of other layers"
	}
	return files.Name(f.name, fmt.Errorf("apart from inputs and outputs, no array is named after a tensor of the model, %s; the reference has %s%s",
		has, arrays.Quoted(k.notCompared), why))
}

// tap compares the result of a step.
func (k *innerCheck) tap(step int, _ string, t bcnn.Tensor) {
	layer := k.results[step]
	if k.differences[layer] == nil || k.failed != nil {
		return
	}
	port := k.ports[layer]
	should, err := k.should(layer, t.N)
	if err != nil {
		k.failed = err
		return
	}
	got := make([]float32, t.N*port.Shape.Values())
	port.Values(got, t)
	port.Results(got)
	k.differences[layer].Add(got, should)
}

// should returns what the next images of a layer should be.
func (k *innerCheck) should(layer, n int) ([]float64, error) {
	if numbers := k.numbers[layer]; numbers != nil {
		return numbers, nil
	}
	a, err := k.wanted[layer].next(0, n)
	if err != nil {
		return nil, err
	}
	numbers, err := k.ports[layer].Numbers(a)
	k.numbers[layer] = numbers
	return numbers, files.Name(k.wanted[layer].file.name, err)
}

// run runs the next images.
func (k *innerCheck) run(ctx context.Context, x []bcnn.Tensor) error {
	if k.exe == nil {
		return nil
	}
	k.numbers = map[int][]float64{}
	out := make([]bcnn.Tensor, len(k.out))
	for i := range out {
		out[i] = k.out[i].Images(0, x[0].N)
	}
	return cmp.Or(k.exe.Run(ctx, out, x), k.failed)
}

// result returns the tensors in the order of execution, and the names of those that the network
// does not have.
func (k *innerCheck) result(tolerance float64) (layers []checkedTensor, notCompared []string) {
	layers = []checkedTensor{}
	seen := map[int]bool{}
	for _, layer := range k.results {
		if d := k.differences[layer]; d != nil && !seen[layer] {
			seen[layer] = true
			layers = append(layers, newCheckedTensor(k.ports[layer].Name, *d, tolerance))
		}
	}
	return layers, k.notCompared
}

func (k *innerCheck) close() {
	for _, a := range k.wanted {
		a.Close()
	}
	if k.exe != nil {
		k.exe.Close()
	}
}
