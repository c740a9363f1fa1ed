package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/internal/text"
)

// UnsupportedError lists the steps of a plan that cannot be executed: by
// Plan.Check those of unknown kinds or types, by a device those that it has no
// kernel for. It matches errors.ErrUnsupported.
type UnsupportedError struct {
	Steps []UnsupportedStep // in the order of the plan
}

// UnsupportedStep is a step that cannot be executed.
type UnsupportedStep struct {
	Step   int    // in Plan.Steps
	Name   string // of the step
	Kind   string // as Step.Kind has it; empty if there is no operation, or one of unknown kind
	Reason string
}

func (e *UnsupportedError) Error() string {
	var steps []string
	for _, s := range e.Steps {
		steps = append(steps, fmt.Sprintf("step %d (%s): %s", s.Step, text.Escape(s.Name), s.Reason))
	}
	return "not supported: " + strings.Join(steps, "; ")
}

// Is reports whether target is errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// Unsupported says what is not supported, as an error that matches
// errors.ErrUnsupported: the reason why a step cannot be executed, or an option that
// a device cannot honour.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Is reports whether target is errors.ErrUnsupported.
func (u Unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// Add takes the error of a step of p: one that matches errors.ErrUnsupported is
// listed, and Add returns nil; others come back with the number and the name of the
// step.
func (e *UnsupportedError) Add(p *Plan, step int, err error) error {
	s := p.Steps[step]
	if !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("step %d (%s): %w", step, text.Escape(s.Name), err)
	}
	kind := ""
	if s.hasOp() {
		switch s.Op.(type) { // others may have been made by embedding Op, which is nil then
		case *Binarize, *Conv, *MaxPool, *AvgPool, *Affine, *Table, *Sign, *Quantize, *Add, *Pair, *Concat, *Channels,
			*Pixels, *Resample, *TopK, *Flatten, *MatMul, *Transpose:
			kind = s.Kind()
		}
	}
	e.Steps = append(e.Steps, UnsupportedStep{Step: step, Name: s.Name, Kind: kind, Reason: err.Error()})
	return nil
}

// Err returns e, or nil if it lists no step.
func (e *UnsupportedError) Err() error {
	if len(e.Steps) == 0 {
		return nil
	}
	return e
}
