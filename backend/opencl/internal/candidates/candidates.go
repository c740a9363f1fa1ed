// Package candidates lists the kernels that can execute a step of a plan on an OpenCL
// device, with their launches. It asks no driver.
package candidates

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/tuning"
)

// Limits are what a device can do.
type Limits struct {
	Group      int   // work-items of a work-group
	LocalBytes int   // local memory of a work-group
	Buffer     int64 // bytes of one buffer
	// LocalMemory says that local memory is not just global memory.
	LocalMemory bool
	// Dot is the function for dot products of bytes.
	Dot DotProduct
	// GPU says that loads are to be few and private arrays in registers; compilers for
	// processors make vectors of scalar loops that are faster than what is written as such.
	GPU bool
}

// Spec says how a kernel is to be launched.
type Spec struct {
	gpu.Kernel
	Form  Form
	Items int // work-items for an image, rounded up to whole work-groups
	// Blocks is how often all of them are launched, in a third dimension; 0 means 1.
	Blocks int
	Local  int // size of a work-group; 0 for any
}

// Local is an argument: bytes of local memory.
type Local int

// Candidate is one way to execute a step.
type Candidate struct {
	Variant string
	Specs   []Spec
}

// Key is all that sets a candidate apart, constants left out.
func (c Candidate) Key() string {
	key := c.Variant
	for _, s := range c.Specs {
		s.Args = nil
		key += fmt.Sprintf("\n%+v", s)
	}
	return key
}

// Is reports whether the candidate is the one that was chosen, whatever the sizes of
// its work-groups.
func (c Candidate) Is(chosen tuning.Entry) bool { return c.Variant == chosen.Variant }

// planner makes the candidates of a step.
type planner struct {
	gpu.Step
	limits Limits
}

// Of returns the candidates of a step, the one to take without measuring first. op is
// what the device does of the step. Where a variant is forced, it is the only one if the
// step has it. Every step has variant gpu.Direct. Local memory that is global memory
// makes gpu.Patches the slower one in any case.
func Of(step gpu.Step, op plan.Op, limits Limits, forced string) ([]Candidate, error) {
	c := planner{step, limits}
	var patches []Spec
	if forced == gpu.Patches || forced == "" && limits.LocalMemory {
		patches = c.patchesOf(op)
	}
	if patches != nil && forced == gpu.Patches {
		return []Candidate{{gpu.Patches, patches}}, nil
	}
	var vectors []Spec
	if conv, ok := op.(*plan.Conv); ok && (forced == gpu.Vectors || forced == "" && limits.GPU) {
		vectors = c.convVectors(conv)
	}
	if vectors != nil && forced == gpu.Vectors {
		return []Candidate{{gpu.Vectors, vectors}}, nil
	}
	direct, err := c.direct(op)
	if err != nil {
		return nil, err
	}
	all := []Candidate{{gpu.Direct, direct}}
	if vectors != nil {
		all = append(all, Candidate{gpu.Vectors, vectors})
	}
	if patches != nil {
		all = append(all, Candidate{gpu.Patches, patches})
	}
	return all, nil
}

// patchesOf returns the kernels of variant gpu.Patches; nil for none.
func (c *planner) patchesOf(op plan.Op) []Spec {
	conv, ok := op.(*plan.Conv)
	switch {
	case !ok || c.In.DType != bcnn.Bits || gpu.HasPlanes(conv):
		return nil
	case conv.Dense && conv.Border == nil:
		return c.denseReduce(conv)
	}
	return c.patches(conv)
}

// direct returns the kernels of variant gpu.Direct.
func (c *planner) direct(op plan.Op) ([]Spec, error) {
	conv, ok := op.(*plan.Conv)
	switch {
	case !ok:
		return c.elementwise(op)
	case gpu.HasPlanes(conv):
		s := c.convBits(conv)
		s[0].File, s[0].Name = gpu.Planes, "conv_planes"
		return s, nil
	case conv.Dense && c.In.DType == bcnn.Bits && conv.Border == nil:
		return c.denseSegments(conv), nil
	case c.In.DType == bcnn.Bits:
		return c.convBits(conv), nil
	}
	return c.convValues(conv), nil
}

func (c *planner) elementwise(op plan.Op) ([]Spec, error) {
	kernels, err := c.Elementwise(op)
	if err != nil {
		return nil, err
	}
	var specs []Spec
	for _, k := range kernels {
		s := Spec{Kernel: k.Kernel, Items: k.Items}
		if k.Name == "affine" {
			s.Form.Source = map[bcnn.DType]int{bcnn.Uint8: 1, bcnn.Bits: 2, bcnn.Float32: 3}[c.In.DType]
		}
		specs = append(specs, s)
	}
	return specs, nil
}
