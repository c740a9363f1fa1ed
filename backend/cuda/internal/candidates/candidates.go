// Package candidates lists the kernels that can execute a step of a plan on a CUDA
// device, with their launches. It asks no driver.
package candidates

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/tuning"
)

// Lanes is the number of threads of a warp, and of output channels of a block.
const Lanes = 32

// Limits are what a device can do.
type Limits struct {
	Capability    int // 75 for 7.5
	Processors    int // streaming multiprocessors
	Threads       int // of a block
	Shared        int // shared memory of a block, in bytes
	SharedDefault int // what a kernel gets of it without asking
	GridY         int // blocks of the second and third dimension
	Cooperative   bool
	// Warpgroups multiply bits, and bytes, and the driver knows.
	Warpgroups, WarpgroupBytes bool
}

// Spec says how a kernel is to be launched.
type Spec struct {
	gpu.Kernel
	Grid   [2]int
	Images int // of a block; the third dimension of the grid counts those. 0 means 1
	// If ItemsOfBlock is not 0, the first dimension counts blocks of that many items
	// of the whole batch, of which an image has so many, and the third is 1.
	Items, ItemsOfBlock int
	Parts               int // of a sum, which the third dimension counts then. 0 means 1
	Block               int // threads
	Shared              int // dynamic shared memory of a block, in bytes
	Blocks              int // if not 0, the whole grid
	Cooperative         bool
}

// Label is the name of the kernel, and of how many blocks a sum is, if of several.
func (s Spec) Label() string {
	if s.Parts > 1 {
		return fmt.Sprintf("%s in %d parts", s.Name, s.Parts)
	}
	return s.Name
}

// Candidate is one way to execute a step.
type Candidate struct {
	Variant string
	Name    string // tells it from the others of the step
	Specs   []Spec
}

// Key is all that sets a candidate apart, constants left out.
func (c Candidate) Key() string {
	key := c.Variant + " " + c.Name
	for _, s := range c.Specs {
		s.Args = nil
		key += fmt.Sprintf("\n%+v", s)
	}
	return key
}

// Is reports whether the candidate is the one that was chosen.
func (c Candidate) Is(chosen tuning.Entry) bool {
	return c.Variant == chosen.Variant && c.Name == chosen.Name
}

// planner lists the candidates of a step.
type planner struct {
	gpu.Step
	limits Limits
	arch   int // of the PTX
}

// Of returns the candidates of a step, with kernels as PTX for an architecture (75 for
// 7.5), of each variant the best first as far as that is known without measuring. op is
// what the step does. Every step has variant gpu.Direct.
func Of(step gpu.Step, op plan.Op, limits Limits, arch int) ([]Candidate, error) {
	c := planner{step, limits, arch}
	conv, ok := op.(*plan.Conv)
	switch {
	case !ok:
		return c.elementwise(op)
	case gpu.HasPlanes(conv):
		return c.convPlanes(conv), nil
	case conv.Dense && c.In.DType == bcnn.Bits && conv.Border == nil:
		return c.dense(conv), nil
	case c.In.DType == bcnn.Bits:
		return c.convBits(conv), nil
	case conv.Dense && c.In.DType == bcnn.Uint8 && conv.Int16 == nil:
		return c.denseBytes(conv), nil
	case c.In.DType == bcnn.Uint8:
		return c.convBytes(conv), nil
	}
	return c.convFloat(conv), nil
}

// OfVariant returns the candidates to consider: of one variant where it is forced
// and there are any, else of variant gpu.Direct.
func OfVariant(all []Candidate, forced string) []Candidate {
	if forced == "" {
		return all
	}
	for _, variant := range []string{forced, gpu.Direct} {
		var some []Candidate
		for _, c := range all {
			if c.Variant == variant {
				some = append(some, c)
			}
		}
		if len(some) > 0 {
			return some
		}
	}
	return nil
}

// perItem is a launch with a thread, or a warp, for every item of an image.
func perItem(k gpu.Kernel, items, threads int) Spec {
	const block = 256
	return Spec{Kernel: k, Grid: [2]int{num.CeilDiv(items*threads, block), 1}, Block: block}
}

// matMulTile is the side of the tile of outputs that a block of matmul.cu makes.
const matMulTile = 32

// elementwise is the one candidate of a step that is no convolution.
func (c *planner) elementwise(op plan.Op) ([]Candidate, error) {
	kernels, err := c.Elementwise(op)
	if err != nil {
		return nil, err
	}
	made := Candidate{Variant: gpu.Direct, Name: kernels[len(kernels)-1].Name}
	for _, k := range kernels {
		threads := 1
		switch k.Name {
		case "affine":
			k.Name += map[bcnn.DType]string{bcnn.Uint8: "_bytes", bcnn.Bits: "_bits", bcnn.Float32: "_float"}[c.In.DType]
			made.Name = k.Name
		case "sign_bits", "table_bits", "flatten_bits", "gather_bits", "transpose_bits":
			threads = Lanes
		}
		s := perItem(k.Kernel, k.Items, threads)
		if k.Name == gpu.ImageRanges { // of the results a warp makes one
			s.Grid[0] = gpu.RangeParts
		}
		if _, ok := op.(*plan.MatMul); ok { // a block makes a tile
			out := c.Out.Shape
			s.Grid[0] = num.Product(out.H, num.CeilDiv(out.W, matMulTile), num.CeilDiv(out.C, matMulTile))
		}
		made.Specs = append(made.Specs, s)
	}
	return []Candidate{made}, nil
}
