package backendtest

import (
	"context"
	"sync"
	"time"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// fake is a device that executes plans with package ref, one step at a time.
// The zero value keeps every promise; the hooks break some.
type fake struct {
	// variants are what Options.Variant takes.
	variants []string
	// compile is asked first.
	compile func(p *bcnn.Plan) error
	// step replaces a step; honest executes an operation on in.
	step func(op bcnn.StepOp, in bcnn.Tensor, honest func(op bcnn.StepOp, in bcnn.Tensor) (bcnn.Tensor, error)) (bcnn.Tensor, error)
	// run replaces a whole Run.
	run func(x *fakeExecutable, ctx context.Context, out, in bcnn.Tensor) error
}

func (d fake) Info() backend.Info {
	return backend.Info{ID: "fake", Kind: backend.Emulated, Variants: d.variants}
}

func (d fake) Compile(_ context.Context, p *bcnn.Plan, opts backend.Options) (backend.Executable, error) {
	if d.compile != nil {
		if err := d.compile(p); err != nil {
			return nil, &backend.Error{Device: "fake", Op: "compile", Err: err}
		}
	}
	return &fakeExecutable{fake: d, plan: p, opts: opts}, nil
}

type fakeExecutable struct {
	fake
	plan *bcnn.Plan
	opts backend.Options

	mu     sync.Mutex
	closed bool
	runs   int
}

func (x *fakeExecutable) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return nil
}

func (x *fakeExecutable) Run(ctx context.Context, out, in bcnn.Tensor) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.runs++
	if x.run != nil {
		return x.run(x, ctx, out, in)
	}
	return x.honest(ctx, out, in)
}

func (x *fakeExecutable) check(out, in bcnn.Tensor) error {
	if x.closed {
		return backend.ErrClosed
	}
	if in.Check(x.plan.Input.DType, x.plan.Input.Shape) != nil || out.Check(bcnn.Float32, x.plan.OutputShape()) != nil ||
		in.N != out.N || in.N > max(x.opts.MaxBatch, 1) {
		return backend.ErrShape
	}
	return nil
}

func (x *fakeExecutable) honest(ctx context.Context, out, in bcnn.Tensor) error {
	if err := x.check(out, in); err != nil {
		return err
	}
	return x.execute(ctx, out, in)
}

func (x *fakeExecutable) execute(ctx context.Context, out, in bcnn.Tensor) error {
	tensors := make([]bcnn.Tensor, len(x.plan.Tensors))
	tensors[0] = in
	for i, s := range x.plan.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		var t bcnn.Tensor
		var err error
		if add, ok := s.Op.(*bcnn.AddStep); ok {
			t = sum(add, tensors[s.In[0]], tensors[s.In[1]])
		} else if x.step != nil {
			t, err = x.step(s.Op, tensors[s.In[0]], x.single(s))
		} else {
			t, err = x.single(s)(s.Op, tensors[s.In[0]])
		}
		if err != nil {
			return err
		}
		tensors[s.Out] = t
		if x.opts.Timed != nil {
			x.opts.Timed(i, s.Name, time.Microsecond)
		}
		if x.opts.Tap != nil {
			x.opts.Tap(i, s.Name, t)
		}
	}
	copy(out.F32, tensors[x.plan.Output].F32)
	return nil
}

func sum(op *bcnn.AddStep, a, b bcnn.Tensor) bcnn.Tensor {
	t := bcnn.NewTensor(bcnn.Float32, a.N, a.Shape)
	for i := range t.F32 {
		if t.F32[i] = a.F32[i] + b.F32[i]; op.ReLU && !(t.F32[i] > 0) {
			t.F32[i] = 0
		}
	}
	return t
}

// single executes one operation as a plan of its own. The operation may be of
// another kind than the step; then its output takes the shape that fits.
func (x *fakeExecutable) single(s bcnn.Step) func(bcnn.StepOp, bcnn.Tensor) (bcnn.Tensor, error) {
	out := x.plan.Tensors[s.Out]
	return func(op bcnn.StepOp, in bcnn.Tensor) (bcnn.Tensor, error) {
		if conv, ok := op.(*bcnn.ConvStep); ok { // whose pool a hook may have removed
			out.Shape = conv2DShape(conv, in.Shape)
			if in.DType == bcnn.Bits && conv.PadValue != -1 && conv.Border == nil { // a hook has changed the padding
				c, s := *conv, conv.Window.Output(in.Shape, conv.Out)
				// A plan must have it; the reference does not look at it.
				c.Border = &bcnn.Border{Row: make([]int, s.H), Col: make([]int, s.W), Rows: 1, Cols: 1, Correction: make([]int32, c.Out)}
				op = &c
			}
		}
		if pool, ok := op.(*bcnn.MaxPoolStep); ok {
			out.Shape = pool.Window.Output(in.Shape, in.Shape.C)
		}
		plan := &bcnn.Plan{
			Input:   bcnn.Input{DType: in.DType, Shape: in.Shape},
			Tensors: []bcnn.PlanTensor{{DType: in.DType, Shape: in.Shape}, out},
			Steps:   []bcnn.Step{{Name: s.Name, In: []int{0}, Out: 1, Op: op}},
			Output:  1,
		}
		if out.DType != bcnn.Float32 { // as that of a plan must be
			plan.Tensors = append(plan.Tensors, bcnn.PlanTensor{DType: bcnn.Float32, Shape: out.Shape})
			plan.Steps = append(plan.Steps, bcnn.Step{In: []int{1}, Out: 2, Op: &bcnn.AffineStep{}})
			plan.Output = 2
		}
		var result bcnn.Tensor
		_, err := ref.Run(context.Background(), plan, in, func(step int, _ string, t bcnn.Tensor) {
			if step == 0 {
				result = t
			}
		})
		return result, err
	}
}

func conv2DShape(c *bcnn.ConvStep, in bcnn.Shape) bcnn.Shape {
	s := c.Window.Output(in, c.Out)
	if c.Pool != nil {
		s.H, s.W = s.H/c.Pool.KH, s.W/c.Pool.KW
	}
	return s
}
