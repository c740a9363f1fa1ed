package bcnn

import "fmt"

// Limits bound what loading, lowering and compiling a network may take, so that
// a program can open what a stranger sends. Time and memory are linear in the
// size of the file and of the tensors that it declares; Limits bound these. A
// field of 0 takes its default.
type Limits struct {
	// FileBytes bounds a model file together with the files it refers to.
	// Default: DefaultFileBytes.
	FileBytes int64
	// Layers bounds the layers of a network, and the nodes of a graph that is
	// imported. Default: DefaultLayers.
	Layers int
	// TensorBytes bounds each tensor as it is held in memory, weights, constants
	// and the feature map of one image, and what a plan adds to the weights of
	// its network: all its thresholds, scales, corrections of borders and
	// rewritten weights together. Default: DefaultTensorBytes.
	TensorBytes int64
	// ArenaBytes bounds the memory for the tensors of one compiled network, for
	// the largest batch, and that of the inputs and outputs of such a batch. Default: the memory of the device; where that is the
	// memory of the machine, what is free for the process.
	ArenaBytes int64
}

// The defaults of Limits.
const (
	DefaultFileBytes   = 4 << 30
	DefaultLayers      = 1 << 16
	DefaultTensorBytes = 4 << 30
)

// WithDefaults returns the limits with the default in place of every 0. A
// negative limit is an error.
func (l Limits) WithDefaults() (Limits, error) {
	if l.FileBytes < 0 || l.Layers < 0 || l.TensorBytes < 0 || l.ArenaBytes < 0 {
		return l, fmt.Errorf("a limit is negative: %+v", l)
	}
	if l.FileBytes == 0 {
		l.FileBytes = DefaultFileBytes
	}
	if l.Layers == 0 {
		l.Layers = DefaultLayers
	}
	if l.TensorBytes == 0 {
		l.TensorBytes = DefaultTensorBytes
	}
	return l, nil
}
