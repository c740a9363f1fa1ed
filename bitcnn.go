// Package bitcnn runs binary convolutional neural networks: weights and activations
// are ±1, one bit each. It is the front door of the module:
//
//	model, err := bitcnn.Load(ctx, "model.onnx", bitcnn.LoadOptions{}) // any format
//	s, err := bitcnn.Open(ctx, model, bitcnn.Options{})                // on the best device
//	defer s.Close()
//	outputs, err := s.Predict(ctx, input)                              // from any goroutine
//
// Package vision makes the inputs of photos and says what is on them. Behind the door
// are the packages bcnn (networks and how they are lowered), bcnn/onnx and its
// neighbours (formats), and backend (devices); what they return fits here.
package bitcnn

import (
	"errors"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// These are the types of package bcnn under their own names, so that most programs
// need not import it.
type (
	// Model is a network with its weights.
	Model = bcnn.Network
	// Tensor is a batch of N images in NHWC layout, in memory of the caller's: fields DType,
	// N, Shape, and U8 or F32 with the values. NewTensor and TensorOf make one.
	Tensor = bcnn.Tensor
	// Layout is the order of values in memory, NHWC or NCHW.
	Layout = bcnn.Layout
	// Shape is the shape of one image of a tensor: height, width, channels. A vector
	// of n values is {1, 1, n}.
	Shape = bcnn.Shape
	// DType is the type of the elements of a tensor: Uint8 or Float32 at the ends of
	// a network.
	DType = bcnn.DType
	// Limits bound the memory that a model may take.
	Limits = bcnn.Limits

	// UnsupportedError lists the steps of a model that a device has no kernels for.
	UnsupportedError = plan.UnsupportedError

	// Device describes a device.
	Device = backend.Info
	// Choice says how a device executes a step of a network.
	Choice = backend.Choice
)

const (
	Uint8   = bcnn.Uint8
	Float32 = bcnn.Float32

	// NHWC is the layout of all tensors: image by image, row by row, pixel by pixel, the
	// channels of a pixel side by side.
	NHWC = bcnn.NHWC
	// NCHW is the layout of PyTorch: image by image, channel by channel, row by row.
	NCHW = bcnn.NCHW
)

// Errors that a caller may want to tell apart, by errors.Is. That of a step or an
// option that a device cannot honour matches errors.ErrUnsupported, and is or wraps an
// *UnsupportedError where it is about steps.
var (
	// ErrClosed: the Session has been closed.
	ErrClosed      = errors.New("the session is closed")
	ErrShape       = backend.ErrShape       // a tensor does not fit the model
	ErrUnavailable = backend.ErrUnavailable // a device is not there
	ErrTooLarge    = backend.ErrTooLarge    // a model needs more memory than there is
)

// NewTensor allocates a tensor of n images, all zero.
func NewTensor(d DType, n int, s Shape) Tensor { return bcnn.NewTensor(d, n, s) }

// TensorOf makes a tensor of n images of a shape (height, width, channels) of values in a layout.
// What a PyTorch program has is NCHW. In NHWC the tensor shares the memory of values, else it is
// a copy. Tensor.Floats gives results in either layout.
func TensorOf[E uint8 | float32](n int, s Shape, l Layout, values []E) (Tensor, error) {
	return bcnn.TensorOf(n, s, l, values)
}
