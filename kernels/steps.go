package kernels

// Step is a step of the table that the CUDA kernel steps walks. It mirrors the struct of
// cu/steps.h, which says what the fields mean; pointers are addresses on the device.
type Step struct {
	G      Geometry
	Kind   int32
	Blocks int32
	Tail   int32
	Stored int32
	Second int32
	Unused [2]int32
	Args   [12]uint64
}

// Sizes of the kernel steps.
const (
	StepsThreads = 256 // of a block
	StepsGroup   = 4   // steps between two barriers at the most
)

// StepKinds are the kernels that a Step may be, in the order of their numbers.
var StepKinds = []string{"image_ranges", "binarize", "conv_bits_p1", "conv_bits_p4", "conv_bits_mixed",
	"conv_values_bytes", "conv_values_float_p1", "conv_values_float_p4", "conv_planes_p1", "conv_planes_mixed",
	"max_pool_planes", "dense_warp_i1", "dense_bytes_i1", "max_pool_bits", "max_pool_bytes", "max_pool_float", "avg_pool_bits", "avg_pool_float",
	"affine_bytes", "affine_bits", "affine_float", "table_float", "table_bytes", "table_bits", "sign_bits", "quantize", "quantize_bytes", "add", "pair",
	"gather_float", "gather_bits", "pixels_float", "pixels_bits", "resample", "top_k", "flatten_bits", "flatten_float",
	"matmul_bits", "matmul_float", "transpose_bits", "transpose_float"}
