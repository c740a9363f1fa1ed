//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/kernels"
)

// lanes is the number of threads of a warp, and of output channels of a block.
const lanes = 32

// stepCompiler makes the candidates of a step.
type stepCompiler struct {
	limits  limits
	arch    int // of the PTX
	batch   int
	in, out bcnn.PlanTensor
	x, y    tensor // where they are
	other   tensor // second operand of a sum
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// words32 is the number of 32-bit words that store n channels of a pixel.
func words32(n int) int { return 2 * bits.Words(n) }

// shapes starts the geometry of a step.
func (c *stepCompiler) shapes() kernels.Geometry {
	in, out := c.in.Shape, c.out.Shape
	return kernels.Geometry{
		InH: int32(in.H), InW: int32(in.W), InC: int32(in.C), InWords: int32(words32(in.C)),
		OutH: int32(out.H), OutW: int32(out.W), OutC: int32(out.C), OutWords: int32(words32(out.C)),
		ToBits: flag(c.out.DType == bcnn.Bits),
	}
}

func setWindow(g *kernels.Geometry, w bcnn.Window) {
	g.Kh, g.Kw = int32(w.KH), int32(w.KW)
	g.StrideH, g.StrideW = int32(w.StrideH), int32(w.StrideW)
	g.DilationH, g.DilationW = int32(w.DilationH), int32(w.DilationW)
	g.PadT, g.PadL = int32(w.Pad.Top), int32(w.Pad.Left)
}

// compile returns the candidates of a step, of each variant the best first as far
// as that is known without measuring. Every step has variant b.
func (c *stepCompiler) compile(op bcnn.StepOp) ([]candidate, error) {
	conv, ok := op.(*bcnn.ConvStep)
	switch {
	case !ok:
		return c.simple(op)
	case conv.Dense && c.in.DType == bcnn.Bits:
		return c.dense(conv), nil
	case c.in.DType == bcnn.Bits:
		return c.convBits(conv), nil
	case c.in.DType == bcnn.Uint8:
		return c.convBytes(conv), nil
	}
	return c.convFloat(conv), nil
}

// ofVariant returns the candidates to consider: of one variant where it is forced
// and there are any, else of variant b.
func ofVariant(all []candidate, forced string) []candidate {
	if forced == "" {
		return all
	}
	for _, variant := range []string{forced, "b"} {
		var some []candidate
		for _, c := range all {
			if c.variant == variant {
				some = append(some, c)
			}
		}
		if len(some) > 0 {
			return some
		}
	}
	return nil
}

// perItem is a kernel with a thread, or a warp, for every item of an image.
func perItem(file, kernel string, g kernels.Geometry, items, threads int, args ...any) []candidate {
	const block = 256
	return []candidate{{variant: "b", name: kernel, specs: []spec{{
		file: file, kernel: kernel, g: g, args: args, grid: [2]int{num.CeilDiv(items*threads, block), 1}, block: block,
	}}}}
}

// simple compiles the steps that are not convolutions.
func (c *stepCompiler) simple(op bcnn.StepOp) ([]candidate, error) {
	const file = "elementwise"
	g := c.shapes()
	values, words := c.out.Shape.Values(), c.out.Shape.Pixels()*words32(c.out.Shape.C)
	switch op := op.(type) {
	case *bcnn.BinarizeStep:
		return c.binarize(op, g), nil
	case *bcnn.MaxPoolStep:
		setWindow(&g, op.Window)
		if c.in.DType == bcnn.Bits {
			g.Flip = flag(op.Flip != nil)
			return perItem(file, "max_pool_bits", g, words, 1, c.x, c.y, rowWeights(op.Flip)), nil
		}
		return perItem(file, "max_pool_float", g, values, 1, c.x, c.y), nil
	case *bcnn.AffineStep:
		g.Scaled, g.Relu = flag(op.Scale != nil), flag(op.ReLU)
		kernel := map[bcnn.DType]string{bcnn.Uint8: "affine_bytes", bcnn.Bits: "affine_bits", bcnn.Float32: "affine_float"}[c.in.DType]
		return perItem(file, kernel, g, values, 1, c.x, c.y, op.Scale, op.Shift), nil
	case *bcnn.SignStep:
		g.Flip = flag(op.Threshold.Flip != nil)
		return perItem(file, "sign_bits", g, words, lanes, c.x, c.y, op.Threshold.F32, rowWeights(op.Threshold.Flip)), nil
	case *bcnn.AddStep:
		g.Relu = flag(op.ReLU)
		return perItem(file, "add", g, values, 1, c.x, c.other, c.y), nil
	case *bcnn.FlattenStep:
		if c.in.DType == bcnn.Bits {
			return perItem(file, "flatten_bits", g, words, lanes, c.x, c.y), nil
		}
		return perItem(file, "flatten_float", g, values, 1, c.x, c.y), nil
	}
	return nil, fmt.Errorf("operation %T", op)
}

// rangeParts is the number of blocks that search an image for its smallest and
// largest byte; a warp puts their results together.
const rangeParts = lanes

func (c *stepCompiler) binarize(op *bcnn.BinarizeStep, g kernels.Geometry) []candidate {
	g.Scheme = map[bcnn.Scheme]int32{bcnn.SchemeThreshold: 0, bcnn.SchemeGrey: 1, bcnn.SchemeLBP: 2, bcnn.SchemeMinMax: 3}[op.Scheme]
	g.Parts = rangeParts
	var thresholds []int32
	var mask []uint32
	if op.Threshold != nil {
		thresholds, mask = op.Threshold.I32, rowWeights(op.Threshold.Flip)
		g.Flip = flag(mask != nil)
	}
	ranges := scratch{sums, c.batch * rangeParts * 2 * 4}
	made := perItem("binarize", "binarize", g, c.out.Shape.Pixels()*words32(c.out.Shape.C), 1, c.x, c.y, thresholds, ranges, mask)
	if op.Scheme == bcnn.SchemeMinMax {
		search := spec{file: "binarize", kernel: "image_ranges", g: g, args: []any{c.x, ranges}, grid: [2]int{rangeParts, 1}, block: 256}
		made[0].specs = append([]spec{search}, made[0].specs...)
	}
	return made
}
