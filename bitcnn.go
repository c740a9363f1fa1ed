// Package bitcnn runs binary convolutional neural networks: weights and activations
// are ±1, one bit each. It is the main API of the module:
//
//	model, err := bitcnn.Load(ctx, "model.onnx", bitcnn.LoadOptions{}) // any format
//	s, err := bitcnn.Open(ctx, model, bitcnn.Options{})                // on the best device
//	defer s.Close()
//	outputs, err := s.Predict(ctx, input)                              // from any goroutine
//
// Package vision turns photos into inputs and outputs into labels and boxes. The packages below are
// bcnn (networks), bcnn/onnx and its neighbours (formats), and backend (devices); what they
// return fits here.
package bitcnn

import (
	"errors"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// These are types of the packages bcnn, backend and plan under names of this one, so that most
// programs need not import them. Each comment has what go doc would show of a type of its own.
type (
	// Model is a network with its weights. Any number of sessions share one.
	//
	//	Name       string
	//	Inputs     []bcnn.Input // what it is fed with: Name, DType, Shape, and how photos become it: Resize, Photo
	//	Layers     []bcnn.Layer
	//	Outputs    []int        // layers; none means the last one
	//	Labels     []string     // of the values of the first output, or of classes; empty if unknown
	//	Detection  *bcnn.Detection // how boxes are made of the outputs; nil if it is no detector
	//	Absorbed   []string     // tensors of the file that became part of others
	//	Deviations []string     // what is computed otherwise than in the file, in sentences
	//
	//	func (n *Model) Check() error               // whether it can be computed
	//	func (n *Model) Shapes() ([]Shape, error)   // of the output of each layer
	//	func (n *Model) OutputLayers() []int        // Outputs, or the last layer
	//	func (n *Model) InputName(k int) string     // as a Session, a server, C and Python have it
	//	func (n *Model) OutputName(k int) string
	//
	// Append, Absorb, CheckDetection and Types are for those who make networks: see package bcnn.
	Model = bcnn.Network
	// Tensor is a batch of N images of a Shape, in NHWC layout and in caller-owned memory. NewTensor
	// and TensorOf make one.
	//
	//	DType DType
	//	N     int
	//	Shape Shape
	//	U8    []uint8   // the values, if DType is Uint8
	//	F32   []float32 // the values, if DType is Float32
	//	Words []uint64  // bits, which are inside of networks only
	//
	//	func (t Tensor) Floats(l Layout) ([]float32, error) // the values in a layout
	//	func (t Tensor) Images(from, n int) Tensor          // a part of the batch, in the same memory
	//	func (t Tensor) Check(d DType, s Shape) error       // whether it is of this type and shape
	//	func (t Tensor) String() string                     // type, shape and the first values
	Tensor = bcnn.Tensor
	// Layout is the order of values in memory, NHWC or NCHW.
	Layout = bcnn.Layout
	// Shape is the shape of one image of a tensor. A vector of n values is {1, 1, n}.
	//
	//	H, W, C int // height, width, channels
	//
	//	func (s Shape) Values() int          // H·W·C
	//	func (s Shape) Pixels() int          // H·W
	//	func (s Shape) Bytes(d DType) int64  // of memory for one image
	//	func (s Shape) Elements(d DType) int // of the slice for one image
	//	func (s Shape) Transposed() Shape    // width and height swapped
	//	func (s Shape) Check() error         // whether it is possible
	//	func (s Shape) String() string       // "28×28×1"
	Shape = bcnn.Shape
	// DType is the type of the elements of a tensor: Uint8 or Float32 at the ends of
	// a network. It has String.
	DType = bcnn.DType
	// Limits bound the memory that a model may take. 0 is the default of each.
	//
	//	FileBytes   int64 // of a model with the files that it refers to
	//	Layers      int   // of a network, and nodes of a graph that is imported
	//	TensorBytes int64 // of each tensor, as it is held in memory
	//	ArenaBytes  int64 // for the tensors of a session with the largest batch
	//
	//	func (l Limits) WithDefaults() (Limits, error)
	Limits = bcnn.Limits

	// UnsupportedError lists the steps of a model that a device has no kernels for, in Steps. It
	// matches errors.ErrUnsupported (Error, Is); Add and Err are for devices.
	UnsupportedError = plan.UnsupportedError

	// Device describes a device.
	//
	//	ID          string            // what Options.Device takes: "cpu", "cuda:0"
	//	Name        string            // the product's name
	//	Kind        backend.Kind      // discrete GPU, integrated GPU, CPU or emulated
	//	Detail      string            // "avx2, 8 threads"
	//	Memory      int64             // bytes, 0 if unknown
	//	MaxBatch    int               // images that a Run can count
	//	MaxThreads  int               // what Options.Threads may be; 0 on GPUs
	//	ISAs        []string          // what Options.ISA may be, the best first
	//	MissingISAs map[string]string // instruction sets that may not be used, and why
	//	Kernels     []string          // what Options.Kernels may be, on GPUs
	//	Refused     []string          // what the driver has refused of late, and was done in another way
	Device = backend.Info
	// Choice says how a device executes a step of a network.
	//
	//	Kernel string // "wide bits, joined rows"
	//	Tile   string // "24 rows × 64 channels, 4 tiles"; empty where there are none
	//	Why    string
	//	With   string // the step whose kernel, or whose tiles, compute this one too; empty if none does
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
