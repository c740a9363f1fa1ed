// The table that the kernel steps walks. kernels/steps.go mirrors it.
#ifndef BCNN_STEPS_H
#define BCNN_STEPS_H

#include "geometry.h"

#define STEPS_THREADS 256 // of a block
#define STEPS_GROUP 4     // steps between two barriers at the most: the table ends in so many unused ones
#define STEPS_ARGS 12

// The kernels that a step may be, with their parameters.
enum StepKind {
	STEP_IMAGE_RANGES,
	STEP_BINARIZE,
	STEP_CONV_BITS_P1,
	STEP_CONV_BITS_P4,
	STEP_CONV_BITS_MIXED,
	STEP_CONV_VALUES_BYTES,
	STEP_CONV_VALUES_FLOAT_P1,
	STEP_CONV_VALUES_FLOAT_P4,
	STEP_CONV_PLANES_P1,
	STEP_CONV_PLANES_MIXED,
	STEP_MAX_POOL_PLANES,
	STEP_DENSE_WARP_I1,
	STEP_DENSE_BYTES_I1,
	STEP_MAX_POOL_BITS,
	STEP_MAX_POOL_BYTES,
	STEP_MAX_POOL_FLOAT,
	STEP_AVG_POOL_BITS,
	STEP_AVG_POOL_FLOAT,
	STEP_AFFINE_BYTES,
	STEP_AFFINE_BITS,
	STEP_AFFINE_FLOAT,
	STEP_TABLE_FLOAT,
	STEP_TABLE_BYTES,
	STEP_TABLE_BITS,
	STEP_SIGN_BITS,
	STEP_QUANTIZE,
	STEP_QUANTIZE_BYTES,
	STEP_ADD,
	STEP_PAIR,
	STEP_GATHER_FLOAT,
	STEP_GATHER_BITS,
	STEP_PIXELS_FLOAT,
	STEP_PIXELS_BITS,
	STEP_RESAMPLE,
	STEP_TOP_K,
	STEP_FLATTEN_BITS,
	STEP_FLATTEN_FLOAT,
	STEP_MATMUL_BITS,
	STEP_MATMUL_FLOAT,
	STEP_TRANSPOSE_BITS,
	STEP_TRANSPOSE_FLOAT,
};

// A step, and before it in the table what comes before it. Steps of a tail take the
// values of a convolution as they are made: sums with what was made before, affine
// functions and signs, each of the value that the one before it left.
struct Step {
	Geometry g; // but for images, those of the whole
	int32_t kind;
	int32_t blocks; // of threads, for an image
	int32_t tail;   // steps after this one that are its tail
	int32_t stored; // whether float32 values are stored, of a convolution and in its tail: 0 or 1
	int32_t second; // whether a sum of the tail has its value as the second operand: 0 or 1
	int32_t unused[2];
	const void *args[STEPS_ARGS]; // of the kernel
};

#endif
