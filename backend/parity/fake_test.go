package parity

import (
	"context"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// fake is a device that executes plans with package ref, one step at a time.
// The zero value keeps every promise; the hooks break some.
type fake struct {
	// kernels are what Options.Kernels takes.
	kernels []string
	// compile is asked first.
	compile func(p *plan.Plan) error
	// step replaces a step; honest executes an operation on in.
	step func(op plan.Op, in bcnn.Tensor, honest func(op plan.Op, in bcnn.Tensor) (bcnn.Tensor, error)) (bcnn.Tensor, error)
	// several changes an operation of several inputs, and joined what it has made of
	// the first two of them.
	several func(op plan.Op) plan.Op
	joined  func(op plan.Op, out, a, b bcnn.Tensor)
	// ran changes what a step has made of its inputs.
	ran func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error
	// run replaces a whole run.
	run func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error
}

// device is the fake as the suite gets it.
func (d fake) device() *backend.Device { return backend.NewDevice(d) }

func (d fake) Info() driver.Info {
	return driver.Info{ID: "fake", Kind: driver.Emulated, MaxBatch: 1 << 20, Kernels: d.kernels}
}

func (d fake) Compile(ctx context.Context, p *plan.Plan, c driver.Config) (driver.Engine, error) {
	if d.compile != nil {
		if err := d.compile(p); err != nil {
			return nil, err
		}
	}
	for range p.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if err := c.CheckMemory(p.Place(c.MaxBatch, p.Uses()).Bytes); err != nil {
		return nil, err
	}
	return &fakeEngine{fake: d, plan: p, config: c, kept: make(map[int]bcnn.Tensor)}, nil
}

type fakeEngine struct {
	fake
	plan   *plan.Plan
	config driver.Config
	runs   int
	before int    // images of the last run
	left   []bool // by something in the place of an image
	after  func(step int, took time.Duration) error
	last   bcnn.Tensor         // that a step has written
	kept   map[int]bcnn.Tensor // by ran, of an earlier run
	// Those of a run.
	inputs, outputs []bcnn.Tensor
}

func (x *fakeEngine) Close() error { return nil }

func (x *fakeEngine) Explain() []driver.Choice { return make([]driver.Choice, len(x.plan.Steps)) }

func (x *fakeEngine) Run(ctx context.Context, out, in []bcnn.Tensor) error {
	return x.RunSteps(ctx, out, in, func(int, time.Duration) error { return nil })
}

func (x *fakeEngine) RunSteps(ctx context.Context, out, in []bcnn.Tensor, after func(int, time.Duration) error) error {
	x.runs, x.after, x.inputs, x.outputs = x.runs+1, after, in, out
	if x.run != nil {
		return x.run(x, ctx, out[0], in[0])
	}
	return x.honest(ctx, out[0], in[0])
}

func (x *fakeEngine) Read(_ int, t bcnn.Tensor) error {
	copy(t.U8, x.last.U8)
	copy(t.Words, x.last.Words)
	copy(t.F32, x.last.F32)
	return nil
}

func (x *fakeEngine) honest(ctx context.Context, out, in bcnn.Tensor) error {
	tensors := make([]bcnn.Tensor, len(x.plan.Tensors))
	copy(tensors, x.inputs)
	tensors[0] = in
	for i, s := range x.plan.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var t bcnn.Tensor
		var err error
		if len(s.In) > 1 {
			t = x.join(s, tensors)
		} else if x.step != nil {
			t, err = x.step(s.Op, tensors[s.In[0]], x.single(s))
		} else {
			t, err = x.single(s)(s.Op, tensors[s.In[0]])
		}
		if err == nil && x.ran != nil {
			in := make([]bcnn.Tensor, len(s.In))
			for k, tensor := range s.In {
				in[k] = tensors[tensor]
			}
			err = x.ran(x, i, in, t)
		}
		if err != nil {
			return err
		}
		tensors[s.Out], x.last = t, t
		if err := x.after(i, time.Microsecond); err != nil {
			return err
		}
	}
	copy(out.F32, tensors[x.plan.Outputs[0]].F32)
	for i, t := range x.plan.Outputs[1:] {
		copy(x.outputs[1+i].F32, tensors[t].F32)
	}
	return nil
}

// join executes an operation of several inputs.
func (x *fakeEngine) join(s plan.Step, tensors []bcnn.Tensor) bcnn.Tensor {
	op := s.Op
	if x.several != nil {
		op = x.several(op)
	}
	out := x.plan.Tensors[s.Out]
	t := bcnn.NewTensor(out.DType, tensors[s.In[0]].N, out.Shape)
	a, b := tensors[s.In[0]], tensors[s.In[1]]
	switch op := op.(type) {
	case *plan.Add:
		for i := range t.F32 {
			t.F32[i] = a.F32[i] + b.F32[i]
		}
		activate(t.F32, a.Shape.C, op.Activation)
	case *plan.Pair:
		for i := range t.F32 {
			x, y := a.F32[i], factor(a.Shape, b, i)
			switch {
			case op.Kind == plan.PairMul:
				y *= x
			case op.Kind == plan.PairMask && y != 0:
				y = x
			case op.Kind == plan.PairMask:
				y = 0
			case x != x, op.Kind == plan.PairMin && x < y, op.Kind == plan.PairMax && x > y:
				y = x
			}
			t.F32[i] = y
		}
	case *plan.MatMul:
		words := bits.Words(a.Shape.C)
		for i := range t.F32 {
			x, y := i/out.Shape.C, i/out.Shape.C/out.Shape.W*out.Shape.C+i%out.Shape.C // rows of a and of b
			for c := range a.Shape.C {
				switch {
				case a.DType == bcnn.Float32:
					t.F32[i] = f32.FMA(a.F32[x*a.Shape.C+c], b.F32[y*a.Shape.C+c], t.F32[i])
				case bits.At(a.Words[x*words:], c) == bits.At(b.Words[y*words:], c):
					t.F32[i]++
				default:
					t.F32[i]--
				}
			}
		}
	case *plan.Concat:
		first := 0
		for _, in := range s.In {
			in := tensors[in]
			for pixel := range in.N * in.Shape.Pixels() {
				for c := range in.Shape.C {
					to := pixel*out.Shape.C + first + c
					if in.DType == bcnn.Float32 {
						t.F32[to] = in.F32[pixel*in.Shape.C+c]
					} else if bits.At(in.Words[pixel*bits.Words(in.Shape.C):], c) > 0 {
						t.Words[pixel*bits.Words(out.Shape.C)+(first+c)/64] |= 1 << ((first + c) % 64)
					}
				}
			}
			first += in.Shape.C
		}
	}
	if x.joined != nil {
		x.joined(s.Op, t, a, b)
	}
	return t
}

// factor is what value i of a tensor of shape s is multiplied by.
func factor(s bcnn.Shape, by bcnn.Tensor, i int) float32 {
	image, pixel, c := i/s.Values(), i/s.C%s.Pixels(), i%s.C
	if by.Shape.Pixels() == 1 {
		pixel = 0
	}
	if by.Shape.C == 1 {
		c = 0
	}
	return by.F32[(image*by.Shape.Pixels()+pixel)*by.Shape.C+c]
}

// activate ends a step of so many channels.
func activate(values []float32, channels int, a plan.Activation) {
	for i, v := range values {
		switch {
		case a.Kind == plan.ActivationReLU && v < 0:
			v = 0
		case a.Kind == plan.ActivationPReLU && v < 0:
			v *= a.Slope[i%channels]
		case a.Kind == plan.ActivationClip && v < a.Min:
			v = min(a.Min, a.Max)
		case a.Kind == plan.ActivationClip && v > a.Max:
			v = a.Max
		case a.Kind == plan.ActivationFunction:
			v = f32.Named(string(a.Function)).Of(v)
		}
		values[i] = v
	}
}

// single executes one operation as a plan of its own. The operation may be of
// another kind than the step; then its output takes the shape that fits.
func (x *fakeEngine) single(s plan.Step) func(plan.Op, bcnn.Tensor) (bcnn.Tensor, error) {
	out := x.plan.Tensors[s.Out]
	return func(op plan.Op, in bcnn.Tensor) (bcnn.Tensor, error) {
		if conv, ok := op.(*plan.Conv); ok { // whose pool a hook may have removed
			out.Shape = conv2DShape(conv, in.Shape)
			if in.DType == bcnn.Bits && conv.PadValue != -1 && conv.Border == nil { // a hook has changed the padding
				image := in.Shape
				image.H /= max(conv.InPlanes, 1)
				c, s := *conv, conv.Window.Output(image, conv.Out)
				// A plan must have it; the reference does not look at it.
				c.Border = &plan.Border{Row: make([]int, s.H), Col: make([]int, s.W), Rows: 1, Cols: 1, Correction: make([]int32, c.Out)}
				op = &c
			}
		}
		if pool, ok := op.(*plan.MaxPool); ok {
			planes, image := max(pool.Planes, 1), in.Shape
			image.H /= planes
			out.Shape = pool.Window.Output(image, in.Shape.C)
			out.Shape.H *= planes
		}
		p := &plan.Plan{
			Inputs:  []bcnn.Input{{DType: in.DType, Shape: in.Shape}},
			Tensors: []plan.Tensor{{DType: in.DType, Shape: in.Shape}, out},
			Steps:   []plan.Step{{Name: s.Name, In: []int{0}, Out: 1, Op: op}},
			Outputs: []int{1},
		}
		if out.DType != bcnn.Float32 { // as that of a plan must be
			p.Tensors = append(p.Tensors, plan.Tensor{DType: bcnn.Float32, Shape: out.Shape})
			p.Steps = append(p.Steps, plan.Step{In: []int{1}, Out: 2, Op: &plan.Affine{}})
			p.Outputs = []int{2}
		}
		var result bcnn.Tensor
		_, err := ref.Run(context.Background(), p, in, func(step int, _ string, t bcnn.Tensor) {
			if step == 0 {
				result = t
			}
		})
		return result, err
	}
}

func conv2DShape(c *plan.Conv, in bcnn.Shape) bcnn.Shape {
	in.H /= max(c.InPlanes, 1)
	s := c.Window.Output(in, c.Out)
	if c.Pool != nil {
		s.H, s.W = s.H/c.Pool.KH, s.W/c.Pool.KW
	}
	s.H *= max(c.OutPlanes, 1)
	return s
}
