package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/recognize"
)

// options are those of the importers. Which of them a format has is in onnx.Options and
// tflite.Options; others are ignored.
type options struct {
	Bytes           bool      `json:"bytes"`        // feed bytes to a model that takes FLOAT
	SignOfZero      int       `json:"sign_of_zero"` // bcnn.ZeroRule
	OverrideZeros   bool      `json:"override_zeros"`
	WeightTolerance float64   `json:"weight_tolerance"`
	Mean            []float32 `json:"mean"`
	Scale           []float32 `json:"scale"`
}

func (o options) input() bcnn.DType {
	if o.Bytes {
		return bcnn.Uint8
	}
	return 0
}

// convert makes a network of a model, whose format shows in its content.
func convert(ctx context.Context, model []byte, o options) (*bcnn.Network, []string, error) {
	format, err := recognize.Head(model[:min(len(model), recognize.HeadBytes)])
	if err != nil {
		return nil, nil, err
	}
	switch format {
	case recognize.ModelFile:
		net, err := modelfile.Read(ctx, model, modelfile.Options{})
		return net, nil, err
	case recognize.ONNX:
		net, r, err := onnx.Decode(ctx, model, onnx.Options{
			InputType: o.input(), SignOfZero: bcnn.ZeroRule(o.SignOfZero), OverrideZeros: o.OverrideZeros,
			WeightTolerance: o.WeightTolerance, Mean: o.Mean, Scale: o.Scale,
		})
		if err != nil {
			return nil, nil, err
		}
		return net, reportONNX(r), nil
	case recognize.TFLite:
		net, r, err := tflite.Decode(ctx, model, tflite.Options{InputType: o.input(), Mean: o.Mean, Scale: o.Scale})
		if err != nil {
			return nil, nil, err
		}
		var lines []string
		for _, d := range r.Deviations {
			lines = append(lines, "deviates: "+d)
		}
		return net, lines, nil
	}
	return nil, nil, fmt.Errorf("a model of %v, which is more than one file", format)
}

// reportONNX is what a conversion says of values that may be others than the file's.
func reportONNX(r *onnx.Report) []string {
	var lines []string
	for _, c := range r.Cancelled {
		lines = append(lines, "cancelled: "+c)
	}
	for _, z := range r.Zeros {
		lines = append(lines, fmt.Sprintf("zero changed: %s, frequent %v", z.Node, z.Frequent))
	}
	for _, z := range r.Ternary {
		lines = append(lines, fmt.Sprintf("ternary: %s, frequent %v", z.Node, z.Frequent))
	}
	for _, n := range r.NearlyBinary {
		lines = append(lines, fmt.Sprintf("nearly binary: %s, by %.3g, taken %v", n.Layer, n.Deviation, n.Taken))
	}
	for _, d := range r.Deviations {
		lines = append(lines, "deviates: "+d)
	}
	return lines
}

// job is a converted model with the inputs of a request.
type job struct {
	ctx    context.Context
	net    *bcnn.Network
	ports  *arrays.Ports
	in     []bcnn.Tensor
	images int
}

// newJob lays out the arrays of a request as the network takes them.
func newJob(ctx context.Context, net *bcnn.Network, inputs []array, data [][]byte) (*job, error) {
	ports, err := arrays.PortsOf(net)
	if err != nil {
		return nil, err
	}
	j := &job{ctx: ctx, net: net, ports: ports}
	for i, p := range ports.Inputs {
		a, err := find(p.Name, inputs, data, len(ports.Inputs) == 1)
		if err != nil {
			return nil, err
		}
		n, err := p.Batch(a.Shape)
		if err != nil {
			return nil, err
		}
		if i > 0 && n != j.images {
			return nil, fmt.Errorf("input %s has %d images, and the first one %d", p.Name, n, j.images)
		}
		j.images = n
		t := bcnn.NewTensor(net.Inputs[i].DType, n, net.Inputs[i].Shape)
		if err := p.Fill(t, a); err != nil {
			return nil, err
		}
		j.in = append(j.in, t)
	}
	return j, nil
}

// find returns the array of a name, or the only one where the network has one input. An
// array that the network does not read is not asked for.
func find(name string, inputs []array, data [][]byte, only bool) (*npy.Array, error) {
	for i, a := range inputs {
		if a.Name == name || only && len(inputs) == 1 {
			return a.toNPY(data[i])
		}
	}
	return nil, fmt.Errorf("no array %s, which is an input of the network", name)
}

// open opens a session on the processor.
func (j *job) open(images, threads int, isa string) (*bitcnn.Session, error) {
	return bitcnn.Open(j.ctx, j.net, bitcnn.Options{Device: "cpu", MaxBatch: images, Parallel: 1, Threads: threads, ISA: isa})
}

// run returns the outputs of a session, at most images at a time, in the order of arrays.
func (j *job) run(s *bitcnn.Session, images int) ([][]float32, error) {
	values := make([][]float32, len(j.ports.Outputs))
	for i, p := range j.ports.Outputs {
		values[i] = make([]float32, j.images*p.Shape.Values())
	}
	for from := 0; from < j.images; from += images {
		x := make([]bcnn.Tensor, len(j.in))
		for i, t := range j.in {
			x[i] = t.Images(from, min(images, j.images-from))
		}
		out, err := s.Predict(j.ctx, x...)
		if err != nil {
			return nil, err
		}
		for i, p := range j.ports.Outputs {
			size := p.Shape.Values()
			p.Values(values[i][from*size:(from+out[i].N)*size], out[i])
		}
	}
	for i, p := range j.ports.Outputs {
		p.Results(values[i])
	}
	return values, nil
}

// obstacles lists why a model was refused.
func obstacles(err error) []obstacle {
	var list *bcnn.ObstaclesError
	if !errors.As(err, &list) {
		return nil
	}
	var all []obstacle
	for _, o := range list.Obstacles {
		all = append(all, obstacle{o.Op, o.Err.Error()})
	}
	return all
}
