package kernels

// Network is the parameter of the CUDA kernel network, a whole small network. It and
// its parts mirror the structs of cu/network.h, which says what the fields mean;
// pointers are addresses on the device.
type Network struct {
	Conv          [4]NetworkConv
	Dense         [4]NetworkDense
	Convs, Denses int32
	SumStride     int32
	ConstantWords int32
	Constants     uint64
	Weights       uint64
	Sums          uint64
	Barrier       uint64
	Out           uint64
}

// NetworkConv is a convolution of a Network.
type NetworkConv struct {
	G                            Geometry
	Kind                         int32
	InBytes                      int32
	Channels, Scheme, Inverted   int32
	Unused                       int32
	Levels                       uint64
	In, Out, Weights, Thresholds uint64
	Flip, Rows, Cols, Correction uint64
}

// NetworkDense is a dense layer of a Network.
type NetworkDense struct {
	RowWords            int32
	OutC, OutStride     int32
	Taps                int32
	ToBits, Scaled      int32
	Activation          int32
	Weights, Thresholds int32
	Scale, Shift, Slope int32
	Flip                int32
}

// The kinds of convolutions of a Network, by input, side of the window and words of
// a pixel.
const (
	NetworkBytes3 = iota
	NetworkBytes5
	NetworkBits3x1
	NetworkBits3x2
	NetworkBits3x4
	NetworkBits5x1
	NetworkBits5x2
)

// Sizes of the kernel network.
const (
	NetworkReplicas   = 4
	NetworkBitsWords  = 64
	NetworkThreads    = 384 // of a block at the most
	NetworkOldThreads = 256 // before 7.5
	NetworkPatchWords = 96  // of a warp
)
