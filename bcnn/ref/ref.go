// Package ref executes plans one value at a time on unpacked values: the
// oracle that every backend is compared with. It is never optimised. It follows
// the definitions of package bcnn word for word, excludes padded taps by
// looking at their coordinates, and ignores everything that a plan carries only
// to make backends fast (plan.Conv.Border).
package ref

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// tensor is a batch in NHWC order, unpacked. Exactly the slice that dtype names
// is set.
type tensor struct {
	dtype bcnn.DType
	n     int
	shape bcnn.Shape
	u8    []uint8
	pm    []int8 // Bits: +1 or −1
	f32   []float32
}

func newTensor(d bcnn.DType, n int, s bcnn.Shape) *tensor {
	t := &tensor{dtype: d, n: n, shape: s}
	switch d {
	case bcnn.Uint8:
		t.u8 = make([]uint8, n*s.Values())
	case bcnn.Bits:
		t.pm = make([]int8, n*s.Values())
	case bcnn.Float32:
		t.f32 = make([]float32, n*s.Values())
	}
	return t
}

// index is the place of channel c of pixel (y, x) of image n.
func (t *tensor) index(n, y, x, c int) int {
	return ((n*t.shape.H+y)*t.shape.W+x)*t.shape.C + c
}

// inside reports whether (y, x) lies in the image, not in its padding.
func (t *tensor) inside(y, x int) bool {
	return 0 <= y && y < t.shape.H && 0 <= x && x < t.shape.W
}

func unpack(in bcnn.Tensor) *tensor {
	t := newTensor(in.DType, in.N, in.Shape)
	copy(t.u8, in.U8)
	copy(t.f32, in.F32)
	if in.DType == bcnn.Bits {
		bits.Unpack(t.pm, in.Words, in.Shape.C)
	}
	return t
}

func (t *tensor) pack() bcnn.Tensor {
	out := bcnn.NewTensor(t.dtype, t.n, t.shape)
	copy(out.U8, t.u8)
	copy(out.F32, t.f32)
	if t.dtype == bcnn.Bits {
		bits.Pack(out.Words, t.pm, t.shape.C)
	}
	return out
}

// Run is RunAll for a plan with one input and one output.
func Run(ctx context.Context, plan *plan.Plan, in bcnn.Tensor, tap func(step int, name string, t bcnn.Tensor)) (bcnn.Tensor, error) {
	out, err := RunAll(ctx, plan, []bcnn.Tensor{in}, tap)
	if err != nil {
		return bcnn.Tensor{}, err
	}
	if len(out) != 1 {
		return bcnn.Tensor{}, fmt.Errorf("the plan has %d outputs, want 1", len(out))
	}
	return out[0], nil
}

// RunAll executes the plan on a batch of any size and returns its outputs. in must
// have the types and the shapes of the plan's inputs; their padding bits, if they have
// any, must be 0. tap may be nil; otherwise it gets a copy of the tensor that
// each step wrote, packed. Plans that contradict themselves are errors that
// name the step. When ctx ends, its error is returned, in the middle of a step,
// too.
func RunAll(ctx context.Context, p *plan.Plan, in []bcnn.Tensor, tap func(step int, name string, t bcnn.Tensor)) ([]bcnn.Tensor, error) {
	defer fpmode.Enter().Leave()
	if ctx == nil {
		return nil, errors.New("no context")
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	tensors, err := unpackInputs(p, in)
	if err != nil {
		return nil, err
	}
	n := in[0].N
	work := budget.New(ctx, math.MaxInt64) // for looking at ctx now and then
	graph := plan.NewGraph(p)
	for i, s := range p.Steps {
		if err := work.Charge(int64(n * p.Tensors[s.Out].Shape.Values())); err != nil {
			return nil, err
		}
		out := newTensor(p.Tensors[s.Out].DType, n, p.Tensors[s.Out].Shape)
		if err := run(work, s, out, tensors); err != nil {
			return nil, err
		}
		tensors[s.Out] = out
		if tap != nil {
			tap(i, s.Name, out.pack())
		}
		for _, t := range s.In {
			if graph.LastUse(t) == i {
				tensors[t] = nil
			}
		}
	}
	var out []bcnn.Tensor
	for _, t := range p.Outputs {
		out = append(out, tensors[t].pack())
	}
	return out, nil
}

// Step executes step i of a plan alone, and returns what it writes, packed. in are the
// tensors that it reads, in the order of its In, of the types and shapes that the plan has
// for them and of one number of images. The plan must have passed Plan.Check. When ctx
// ends, its error is returned, in the middle of the step, too.
func Step(ctx context.Context, p *plan.Plan, i int, in []bcnn.Tensor) (bcnn.Tensor, error) {
	defer fpmode.Enter().Leave()
	s, tensors := p.Steps[i], make([]*tensor, len(p.Tensors))
	if len(in) != len(s.In) {
		return bcnn.Tensor{}, fmt.Errorf("%d tensors for step %d (%s), which reads %d", len(in), i, s.Name, len(s.In))
	}
	for k, t := range s.In {
		tensors[t] = unpack(in[k])
	}
	of := p.Tensors[s.Out]
	out := newTensor(of.DType, in[0].N, of.Shape)
	if err := run(budget.New(ctx, math.MaxInt64), s, out, tensors); err != nil {
		return bcnn.Tensor{}, err
	}
	return out.pack(), nil
}

// unpackInputs checks the inputs of a plan and returns its tensors, of which the first are
// these.
func unpackInputs(plan *plan.Plan, in []bcnn.Tensor) ([]*tensor, error) {
	inputs := plan.InputTensors()
	if len(in) != len(inputs) {
		return nil, fmt.Errorf("%d inputs, want %d", len(in), len(inputs))
	}
	tensors := make([]*tensor, len(plan.Tensors))
	for i, t := range in {
		err := t.Check(inputs[i].DType, inputs[i].Shape)
		if err == nil && t.DType == bcnn.Bits {
			err = bits.CheckPadding(t.Words, t.Shape.C)
		}
		if err == nil && t.N != in[0].N {
			err = fmt.Errorf("%d images, and the first input has %d", t.N, in[0].N)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", inputs[i].Name, err)
		}
		tensors[i] = unpack(t)
	}
	return tensors, nil
}

// run executes a step.
func run(work *budget.Budget, s plan.Step, out *tensor, tensors []*tensor) error {
	x := tensors[s.In[0]]
	switch op := s.Op.(type) {
	case *plan.Binarize:
		binarize(op, out, x)
	case *plan.Conv:
		return conv(work, op, out, x)
	case *plan.MaxPool:
		return pool(work, op, out, x)
	case *plan.Affine:
		affine(op, out, x)
	case *plan.Table:
		table(op, out, x)
	case *plan.Sign:
		sign(op, out, x)
		flip(out, op.Threshold.Flip)
	case *plan.Quantize:
		quantize(op, out, x)
	case *plan.Add:
		for k, y := range tensors[s.In[1]].f32 {
			out.f32[k] = activate(x.f32[k]+y, op.Activation, k%x.shape.C)
		}
	case *plan.Pair:
		pair(op.Kind, out, x, tensors[s.In[1]])
	case *plan.AvgPool:
		return avgPool(work, op, out, x)
	case *plan.Concat:
		first := 0
		for _, t := range s.In {
			join(out, tensors[t], first)
			first += tensors[t].shape.C
		}
	case *plan.Channels:
		pick(op, out, x)
	case *plan.Pixels:
		pixels(op, out, x)
	case *plan.Resample:
		return resample(work, op, out, x)
	case *plan.TopK:
		return topK(work, op, out, x)
	case *plan.MatMul:
		return matMul(work, out, x, tensors[s.In[1]])
	case *plan.Transpose:
		transpose(out, x)
	case *plan.Flatten:
		copy(out.pm, x.pm)
		copy(out.f32, x.f32)
	}
	return nil
}

func pool(work *budget.Budget, op *plan.MaxPool, out, x *tensor) error {
	defer flip(out, op.Flip)
	if op.Planes > 1 {
		return maxPlanes(work, op, out, x)
	}
	return maxPool(work, op.Window, out, x)
}

func quantize(op *plan.Quantize, out, x *tensor) {
	n := op.Levels - 1
	for k, v := range x.f32 {
		number := 0
		for _, t := range op.Thresholds[k%x.shape.C*n%len(op.Thresholds):][:n] {
			if v >= t {
				number++
			}
		}
		if out.dtype == bcnn.Uint8 {
			out.u8[k] = uint8(number)
		} else {
			out.f32[k] = float32(op.Low + number)
		}
	}
}

// Memory returns the bytes that Run needs for a batch of n: its unpacked tensors as
// long as they are to be read, and what a step makes on the way. What tap keeps
// comes on top.
func Memory(p *plan.Plan, n int) (int64, error) {
	if err := p.Check(); err != nil {
		return 0, err
	}
	bytes := func(d bcnn.DType, s bcnn.Shape) int64 {
		size := int64(n) * int64(s.Values())
		if d == bcnn.Float32 {
			size *= 4
		}
		return size
	}
	of := func(t int) int64 { return bytes(p.Tensors[t].DType, p.Tensors[t].Shape) }
	graph, live := plan.NewGraph(p), int64(0)
	for t := range p.InputTensors() {
		live += of(t)
	}
	peak := live
	for i, s := range p.Steps {
		live += of(s.Out)
		made := int64(n) * p.Tensors[s.Out].Shape.Bytes(p.Tensors[s.Out].DType) // for tap, or as the result
		if op, ok := s.Op.(*plan.Conv); ok {
			in := p.Tensors[s.In[0]]
			sums := bytes(p.Tensors[s.Out].DType, op.Window.Output(op.Image(in.Shape), op.Out))
			if op.OutPlanes > 1 {
				sums += 4 * sums // their numbers
			}
			made = max(made, sums+int64(op.Out)*int64(op.KH)*int64(op.KW)*int64(in.Shape.C/op.Groups))
		}
		if op, ok := s.Op.(*plan.MaxPool); ok && op.Planes > 1 {
			made = max(made, 4*of(s.In[0]))
		}
		peak = max(peak, live+made)
		for j, t := range s.In {
			if graph.LastUse(t) == i && !slices.Contains(s.In[:j], t) {
				live -= of(t)
			}
		}
	}
	return peak, nil
}

func plusMinus(plus bool) int8 {
	if plus {
		return 1
	}
	return -1
}

// activate applies an activation to a value of channel c.
func activate(v float32, a plan.Activation, c int) float32 {
	switch a.Kind {
	case plan.ActivationReLU:
		if v < 0 {
			return 0
		}
	case plan.ActivationPReLU:
		if v < 0 {
			return v * a.Slope[c]
		}
	case plan.ActivationClip:
		if v < a.Min {
			v = a.Min
		}
		if v > a.Max {
			v = a.Max
		}
	case plan.ActivationFunction:
		return f32.Named(string(a.Function)).Of(v)
	}
	return v
}

// flip negates the channels whose bit is set in mask, which may be nil.
func flip(t *tensor, mask []uint64) {
	if mask == nil {
		return
	}
	for i := range t.pm {
		if bits.At(mask, i%t.shape.C) > 0 {
			t.pm[i] = -t.pm[i]
		}
	}
}
