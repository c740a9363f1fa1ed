// Package bcnn describes binary convolutional neural networks.
//
// A Network is what a user builds or imports: layers in the field's terms. Package lower turns it
// into the Plan of package plan, a flat list of fused steps with static shapes, which backends
// execute. The numeric contract that plans obey is written down in docs/numeric-contract.md.
package bcnn

// Network is a directed acyclic graph of layers, most often with one input and one
// output, the last layer. It is plain data; Check says whether it is well formed.
type Network struct {
	Name string
	// Inputs are what the network is fed with, one or more. A layer refers to number i
	// of them by NetworkInput−i.
	Inputs []Input
	Layers []Layer
	// Outputs are the layers whose outputs are those of the network, in their order;
	// none means the last layer.
	Outputs []int
	// Labels names the values of the first output, in order, or the classes of Detection; empty if
	// unknown.
	Labels []string
	// Detection says how boxes are made of the outputs; nil where the network is no detector.
	Detection *Detection
	// Absorbed names tensors of the imported model that no layer's output is, as their
	// operators became part of other layers; nil where they are not known.
	Absorbed []string
	// Deviations say what the network computes otherwise than the file that it was imported from,
	// and by how much at most; a sentence each, empty if there is nothing of the kind.
	Deviations []string
}

// OutputLayers returns the layers whose outputs are those of the network.
func (n *Network) OutputLayers() []int {
	if len(n.Outputs) == 0 {
		return []int{len(n.Layers) - 1}
	}
	return n.Outputs
}

// Input describes what a network is fed with.
type Input struct {
	Shape Shape
	// DType is Uint8 for images (three channels are R, G, B; one is grey) or
	// Float32 for anything else.
	DType DType
	// Resize is the length in pixels that the shorter side of a photo is
	// resized to before the centre is cropped to Shape. 0 means that the crop
	// just fits. Photos that already have the size of Shape are used as is.
	Resize int
	// Photo says what else becomes of a photo; nil if nothing is known.
	Photo *Photo
	// Source is the input of the model that the network was imported from; nil if
	// there is none, or nothing to say about it.
	Source *Source
}

// NetworkInput is the index by which a layer refers to the network's first input;
// the indices below it are those of the further inputs.
const NetworkInput = -1

// Layer is one node of the graph.
type Layer struct {
	Name string
	// Inputs are indices of earlier layers, or NetworkInput or below.
	Inputs []int
	Op     Op
	// Source is the tensor of an imported model that has the values of the layer's
	// output; nil if there is none.
	Source *Source
}

// Append adds a layer that takes the given layers as inputs, or the layer
// before it if none is given, and returns its index.
func (n *Network) Append(name string, op Op, inputs ...int) int {
	if len(inputs) == 0 {
		inputs = []int{len(n.Layers) - 1} // NetworkInput for the first layer
	}
	n.Layers = append(n.Layers, Layer{Name: name, Inputs: inputs, Op: op})
	return len(n.Layers) - 1
}
