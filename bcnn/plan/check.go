package plan

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
)

const (
	// maxDim bounds every size that a plan names, so that sums of a few cannot
	// overflow.
	maxDim = 1 << 24
	// maxTensor bounds the bytes of a tensor of one image, with 8 for each value.
	maxTensor = min(1<<42, math.MaxInt/2)
)

// Check makes sure that executing the plan stays within its slices: every step reads
// what has been written, types and shapes fit, parameters have the right lengths and
// padding, and sums fit into 32 bits. Plans that package lower made pass; others may have been
// made by hand. The error names the step. Where nothing is wrong but steps of unknown
// kinds or types, it is an *UnsupportedError, which lists each of them.
func (p *Plan) Check() error {
	if p == nil {
		return errors.New("no plan")
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("plan %s: %w", text.Quote(p.Name), err)
	}
	return nil
}

func (p *Plan) check() error {
	switch {
	case len(p.Tensors) == 0:
		return errors.New("it has no tensors")
	case len(p.Inputs) == 0:
		return errors.New("it has no inputs")
	case len(p.Outputs) == 0:
		return errors.New("it has no outputs")
	}
	for i, t := range p.Tensors {
		if err := t.check(); err != nil {
			return fmt.Errorf("tensor %d (%s): %w", i, text.Escape(t.Name), err)
		}
	}
	if len(p.Inputs) > len(p.Tensors) {
		return fmt.Errorf("it has %d tensors, less than its %d inputs", len(p.Tensors), len(p.Inputs))
	}
	written := make([]bool, len(p.Tensors))
	for i, want := range p.Inputs {
		if in := p.Tensors[i]; in.DType != want.DType || in.Shape != want.Shape {
			return fmt.Errorf("tensor %d is %v %v, but the input is %v %v", i, in.DType, in.Shape, want.DType, want.Shape)
		}
		written[i] = true
	}
	if err := p.checkSteps(written); err != nil {
		return err
	}
	isOutput := make([]bool, len(p.Tensors))
	for _, t := range p.Outputs {
		if t < len(p.Inputs) || t >= len(written) || !written[t] || p.Tensors[t].DType != bcnn.Float32 || isOutput[t] {
			return fmt.Errorf("output tensor %d must be float32, written by a step, and not another output, too", t)
		}
		isOutput[t] = true
	}
	return nil
}

// checkSteps checks all steps, of which each reads what is written, and notes what they write.
func (p *Plan) checkSteps(written []bool) error {
	has := func(i int) bool { return 0 <= i && i < len(written) && written[i] }
	var unsupported UnsupportedError
	for i, s := range p.Steps {
		fail := func(err error) error { return fmt.Errorf("step %d (%s): %w", i, text.Escape(s.Name), err) }
		if err := checkInputs(s); err != nil {
			return fail(err)
		}
		for _, in := range s.In {
			if !has(in) {
				return fail(fmt.Errorf("it reads tensor %d, which no step before it writes", in))
			}
		}
		if s.Out < 1 || s.Out >= len(p.Tensors) || written[s.Out] {
			return fail(fmt.Errorf("it writes tensor %d, which does not exist, is an input, or is written already", s.Out))
		}
		written[s.Out] = true
		if err := p.checkStep(s); err != nil {
			if err := unsupported.Add(p, i, err); err != nil {
				return err
			}
		}
	}
	return unsupported.Err()
}

// checkInputs tests how many tensors a step reads.
func checkInputs(s Step) error {
	switch s.Op.(type) {
	case *Concat:
		if len(s.In) < 2 {
			return fmt.Errorf("it has %d inputs, want 2 or more", len(s.In))
		}
		return nil
	case *Add, *Pair, *MatMul:
		if len(s.In) != 2 {
			return fmt.Errorf("it has %d inputs, want 2", len(s.In))
		}
		return nil
	}
	if len(s.In) != 1 {
		return fmt.Errorf("it has %d inputs, want 1", len(s.In))
	}
	return nil
}

func (t Tensor) check() error {
	if min(t.Shape.H, t.Shape.W, t.Shape.C) < 1 || max(t.Shape.H, t.Shape.W, t.Shape.C) > maxDim ||
		num.Product(t.Shape.H, t.Shape.W, t.Shape.C, 8) > maxTensor {
		return fmt.Errorf("shape %v is empty or too large", t.Shape)
	}
	if t.DType != bcnn.Uint8 && t.DType != bcnn.Bits && t.DType != bcnn.Float32 {
		return fmt.Errorf("unknown type %v", t.DType)
	}
	return nil
}

// hasOp reports whether the step has an operation at all.
func (s Step) hasOp() bool {
	v := reflect.ValueOf(s.Op)
	return v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil())
}

// checkStep checks a step whose tensors exist.
func (p *Plan) checkStep(s Step) error {
	if !s.hasOp() {
		return Unsupported("no operation")
	}
	op, ok := s.Op.(checkedStep)
	if !ok {
		return Unsupported(fmt.Sprintf("unknown operation %T", s.Op))
	}
	in := make([]Tensor, len(s.In))
	for i, t := range s.In {
		in[i] = p.Tensors[t]
	}
	out := p.Tensors[s.Out]
	types, shape, err := op.output(in, out)
	var unsupported Unsupported
	switch {
	case errors.As(err, &unsupported):
		return err
	case !types:
		return Unsupported(fmt.Sprintf("%s from %v to %v", s.Kind(), in[0].DType, out.DType))
	case err == nil && out.Shape != shape:
		return fmt.Errorf("its output has shape %v, want %v", out.Shape, shape)
	}
	return err
}
