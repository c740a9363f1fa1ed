//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"fmt"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/layout"
)

// spec says how a kernel is to be launched.
type spec struct {
	file, kernel string
	form         form
	g            geometry
	args         []any // without the geometry: buffers, scratch, local memory
	items        int   // work-items for an image, rounded up to whole work-groups
	local        int   // size of a work-group; 0 for any
}

// scratch is an argument: memory that steps share, one after the other.
type scratch struct {
	which int // patches or sums
	bytes int // of the whole batch
}

const (
	patches = iota
	sums    // also the ranges of minmax
	scratches
)

// stepCompiler makes the specs of a step. It uploads to bag.
type stepCompiler struct {
	bag     *bag
	limits  limits
	batch   int
	in, out bcnn.PlanTensor
	x, y    *cl.MemObject // where they are
	other   *cl.MemObject // second operand of a sum
	err     error         // the first
}

// put uploads constants; the first failure is kept in c.err.
func put[T int32 | uint32 | float32](c *stepCompiler, data []T) *cl.MemObject {
	if c.err != nil {
		return nil
	}
	m, err := upload(c.bag, data)
	c.err = err
	return m
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// words32 is the number of 32-bit words that store n channels of a pixel.
func words32(n int) int { return 2 * bits.Words(n) }

// shapes starts the geometry of a step.
func (c *stepCompiler) shapes() geometry {
	in, out := c.in.Shape, c.out.Shape
	return geometry{
		"IN_H": in.H, "IN_W": in.W, "IN_C": in.C, "IN_WORDS": words32(in.C),
		"OUT_H": out.H, "OUT_W": out.W, "OUT_C": out.C, "OUT_WORDS": words32(out.C),
	}
}

func (g geometry) window(w bcnn.Window) {
	g["KH"], g["KW"] = w.KH, w.KW
	g["STRIDE_H"], g["STRIDE_W"] = w.StrideH, w.StrideW
	g["DILATION_H"], g["DILATION_W"] = w.DilationH, w.DilationW
	g["PAD_T"], g["PAD_L"] = w.Pad.Top, w.Pad.Left
}

// outputs is the number of work-items that make the output of an image, 32
// channels each for bits.
func (c *stepCompiler) outputs() int {
	if c.out.DType == bcnn.Bits {
		return c.out.Shape.Pixels() * words32(c.out.Shape.C)
	}
	return c.out.Shape.Values()
}

// compile returns the kernels of a step in the given variant, or nothing if there
// is no such variant of the step. Every step has variant b.
func (c *stepCompiler) compile(op bcnn.StepOp, variant string) ([]spec, error) {
	var specs []spec
	switch conv, ok := op.(*bcnn.ConvStep); {
	case !ok && variant == "a":
	case !ok:
		specs = c.simple(op)
	case conv.Dense && c.in.DType == bcnn.Bits:
		specs = c.dense(conv, variant)
	case variant == "a":
		specs = c.patches(conv)
	case c.in.DType == bcnn.Bits:
		specs = c.convBits(conv)
	default:
		specs = c.convValues(conv)
	}
	return specs, c.err
}

// simple compiles the steps that are not convolutions.
func (c *stepCompiler) simple(op bcnn.StepOp) []spec {
	g := c.shapes()
	s := spec{file: "elementwise.cl", g: g, items: c.outputs()}
	switch op := op.(type) {
	case *bcnn.BinarizeStep:
		return c.binarize(op, s)
	case *bcnn.MaxPoolStep:
		g.window(op.Window)
		g["FLIP"] = flag(op.Flip != nil)
		if c.in.DType == bcnn.Bits {
			s.kernel, s.args = "max_pool_bits", []any{c.x, c.y, put(c, layout.Rows(op.Flip))}
		} else {
			s.kernel, s.args = "max_pool_float", []any{c.x, c.y}
		}
	case *bcnn.AffineStep:
		g["SCALED"], g["RELU"] = flag(op.Scale != nil), flag(op.ReLU)
		s.form.source = map[bcnn.DType]int{bcnn.Uint8: 1, bcnn.Bits: 2, bcnn.Float32: 3}[c.in.DType]
		s.kernel, s.args = "affine", []any{c.x, c.y, put(c, op.Scale), put(c, op.Shift)}
	case *bcnn.SignStep:
		g["FLIP"] = flag(op.Threshold.Flip != nil)
		s.kernel, s.args = "sign_bits", []any{c.x, c.y, put(c, op.Threshold.F32), put(c, layout.Rows(op.Threshold.Flip))}
	case *bcnn.AddStep:
		g["RELU"] = flag(op.ReLU)
		s.kernel, s.args = "add", []any{c.x, c.other, c.y}
	case *bcnn.FlattenStep:
		s.kernel, s.args = "flatten_float", []any{c.x, c.y}
		if c.in.DType == bcnn.Bits {
			s.kernel = "flatten_bits"
		}
	default:
		c.err = fmt.Errorf("operation %T", op)
		return nil
	}
	return []spec{s}
}

// rangeParts is the number of work-items that search an image for its smallest
// and largest byte.
const rangeParts = 32

func (c *stepCompiler) binarize(op *bcnn.BinarizeStep, s spec) []spec {
	s.file, s.kernel = "binarize.cl", "binarize"
	s.g["SCHEME"] = map[bcnn.Scheme]int{bcnn.SchemeThreshold: 0, bcnn.SchemeGrey: 1, bcnn.SchemeLBP: 2, bcnn.SchemeMinMax: 3}[op.Scheme]
	s.g["PARTS"] = rangeParts
	var thresholds []int32
	var mask []uint32
	if op.Threshold != nil {
		thresholds, mask = op.Threshold.I32, layout.Rows(op.Threshold.Flip)
	}
	s.g["FLIP"] = flag(mask != nil)
	ranges := scratch{sums, c.batch * rangeParts * 2 * 4}
	s.args = []any{c.x, c.y, put(c, thresholds), ranges, put(c, mask)}
	if op.Scheme != bcnn.SchemeMinMax {
		return []spec{s}
	}
	return []spec{{file: s.file, kernel: "image_ranges", g: s.g, args: []any{c.x, ranges}, items: rangeParts}, s}
}
