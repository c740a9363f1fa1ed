package onnx

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/view"
	"github.com/bitcnn/bitcnn/internal/text"
)

// sourceUnits is the cost of a source without its name.
const sourceUnits = 256

// maxSourceName is the longest name of a source in bytes. Longer ones are left out.
const maxSourceName = 256

// sources sets the Source of each layer to the tensor of the graph that it computes. Outputs of the
// graph have theirs already.
func (im *importer) sources() error {
	layers := im.build.Net.Layers
	var names []string
	for _, n := range im.model.Graph.Nodes {
		if !im.needed[n.Index] {
			continue
		}
		for _, name := range n.Outputs {
			v := im.env[name].Value.Settled()
			if v != nil {
				names = append(names, text.Escape(name))
			}
			if v == nil || v.Layer <= bcnn.NetworkInput || layers[v.Layer].Source != nil {
				continue
			}
			s, err := im.source(name, v.Shape, v.View)
			if err != nil {
				return err
			}
			layers[v.Layer].Source = s
		}
	}
	im.build.Net.Absorb(names)
	return nil
}

// source describes a tensor that is an NHWC image seen through a view. It is nil if the order of
// the values is neither that of NHWC nor that of NCHW.
func (im *importer) source(name string, shape bcnn.Shape, v view.View) (*bcnn.Source, error) {
	if !view.IsBatch(v[0]) {
		return nil, nil
	}
	if err := im.budget.Charge(sourceUnits + int64(len(name)+len(v))); err != nil {
		return nil, err
	}
	first := !v.InOrder(shape.Values(), view.FlatStride(shape))
	if first && !v.InOrder(shape.Values(), view.PlanarStride(shape)) {
		return nil, nil
	}
	s := &bcnn.Source{Dims: make([]int, 0, len(v)), ChannelsFirst: first}
	for _, d := range v[1:] {
		s.Dims = append(s.Dims, view.Product(d))
	}
	if name = text.Escape(name); len(name) <= maxSourceName {
		s.Name = name
	}
	return s, nil
}
