package gpu

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// The variants of kernels, as Options.Kernels names them.
const (
	Patches    = "patches" // the paper's, which extract patches in local memory
	Direct     = "direct"  // every step has kernels of this variant
	Vectors    = "vectors" // vectors of weights and of sums, in OpenCL
	TensorCore = "tensorcore"
	SplitK     = "splitk" // those of TensorCore, of which several blocks share a sum
	Warpgroup  = "wgmma"  // products of warpgroups, of compute capability 9.0
	Fused      = "fused"  // one launch for a whole network
)

// Step is a step of a plan, for a batch.
type Step struct {
	Batch   int         // images at the most
	In, Out plan.Tensor // the first input, and the output
	X, Y    Tensor      // where they are
	More    []Operand   // the other inputs
}

// Operand is an input of a step, and where it is.
type Operand struct {
	plan.Tensor
	At Tensor
}

// Kernel is a kernel that a step launches. What decides how many threads it is launched
// with differs between CUDA and OpenCL and is kept beside it.
type Kernel struct {
	File string // of the source, without its extension
	Name string
	G    Geometry
	// Args are the arguments beside the geometry: Tensor, Scratch, what a backend has
	// of its own, or constants, which are yet to be uploaded, as []int32, []uint32 or
	// []float32. The kernel does not read empty ones.
	Args []any
}

// Tensor is an argument: the number of a tensor of the plan.
type Tensor int

// Scratch is an argument: memory that steps share, one after the other.
type Scratch struct {
	Which int // PatchMemory and so on
	Bytes int // of the whole batch
}

const (
	PatchMemory = iota
	SumMemory   // also the ranges of minmax
	ZeroMemory  // zero at first, and again after every step
	Scratches   // their number
)

// GrowScratch makes sizes, in bytes, large enough for the kernel.
func (k *Kernel) GrowScratch(sizes *[Scratches]int) {
	for _, a := range k.Args {
		if m, ok := a.(Scratch); ok {
			sizes[m.Which] = max(sizes[m.Which], m.Bytes)
		}
	}
}

// NewStep returns step i of a plan for a batch of so many images at the most. The error
// wraps driver.ErrTooLarge where the 32-bit indices of kernels do not reach.
func NewStep(plan *plan.Plan, i, batch int) (Step, error) {
	of := plan.Steps[i]
	s := Step{Batch: batch, In: plan.Tensors[of.In[0]], Out: plan.Tensors[of.Out], X: Tensor(of.In[0]), Y: Tensor(of.Out)}
	for _, in := range of.In[1:] {
		s.More = append(s.More, Operand{plan.Tensors[in], Tensor(in)})
	}
	return s, s.checkSize(of.Op)
}

func (s Step) checkSize(op plan.Op) error {
	const (
		roundedUp    = 64 // outputs, by so many at the most
		denseThreads = 64 // of an output
		filledUp     = 32 // input channels, to a multiple of so many
	)
	pixels := float64(s.Out.Shape.Pixels())
	if pixels*(float64(s.Out.Shape.C)+roundedUp) > math.MaxInt32 { // threads of an image
		return fmt.Errorf("%w: output of %v", driver.ErrTooLarge, s.Out.Shape)
	}
	conv, ok := op.(*plan.Conv)
	if !ok {
		return nil
	}
	outputs, classes := float64(conv.Out+roundedUp), 1.0
	if conv.Border != nil {
		classes = float64(conv.Border.Rows) * float64(conv.Border.Cols)
	}
	if conv.Pool != nil {
		pixels *= float64(conv.Pool.KH) * float64(conv.Pool.KW)
	}
	if conv.Dense {
		pixels *= denseThreads
	}
	weights := outputs * float64(conv.KH) * float64(conv.KW) * (float64(s.In.Shape.C/conv.Groups) + filledUp)
	if max(outputs*pixels, outputs*classes, weights) > math.MaxInt32 {
		return fmt.Errorf("%w: %d outputs, window of %d×%d", driver.ErrTooLarge, conv.Out, conv.KH, conv.KW)
	}
	return nil
}
