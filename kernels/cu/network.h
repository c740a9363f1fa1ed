// The parameter of the kernel network: what a plan comes to that it can execute.
// kernels/network.go mirrors it.
#ifndef BCNN_NETWORK_H
#define BCNN_NETWORK_H

#include "geometry.h"

#define NETWORK_CONVS 4
#define NETWORK_DENSES 4
#define NETWORK_REPLICAS 4     // of the sums of the first dense layer
#define NETWORK_BITS_WORDS 64  // of the result of a dense layer, at the most
#define NETWORK_THREADS 384    // of a block at the most
#define NETWORK_OLD_THREADS 256 // before 7.5, where bytes are summed in more registers
#define NETWORK_PATCH_WORDS 96 // of a warp's shared memory

// Kinds of convolutions: input, size of the window, words of a pixel.
enum NetworkKind {
	NETWORK_BYTES_3,
	NETWORK_BYTES_5,
	NETWORK_BITS_3_1,
	NETWORK_BITS_3_2,
	NETWORK_BITS_3_4,
	NETWORK_BITS_5_1,
	NETWORK_BITS_5_2,
};

// Bytes or bits to bits, with pooling over 2×2 or without. Weights are
// [block][ky][kx][word][lane]: words of bits, or four signed bytes; the latter from 7.5
// on as fragments for tensor cores (see ByteSums of mma.cuh). Thresholds of
// bytes are for the sum Σ x·w with pixels outside the image at the zero point. An
// image that is binarised first is one of bytes, too: b = 0 or 1 in place of −1 or
// +1, and thresholds for 2·Σ b·w; in_c are the channels of the image then.
struct NetworkConv {
	Geometry g;
	int32_t kind;
	int32_t in_bytes; // of an image
	int32_t channels; // of the convolution
	int32_t scheme;   // of the binarisation in front, −1 for none
	int32_t inverted; // its flip mask
	int32_t unused;
	const int32_t *levels; // its thresholds
	const void *in;
	uint32_t *out; // of the last one unused: the first dense layer takes its words
	const uint32_t *weights;
	const int32_t *thresholds;
	const uint32_t *flip;
	const int32_t *rows, *cols, *correction;
};

// A dense layer on bits; places in the constants, in words. Weights are
// [word][output], thresholds and weights padded to out_stride outputs.
struct NetworkDense {
	int32_t row_words; // 32-bit words of the input
	int32_t out_c, out_stride;
	int32_t taps;
	int32_t to_bits, scaled; // 0 or 1
	int32_t activation;
	int32_t weights, thresholds, scale, shift, slope;
	int32_t flip; // −1 for none
};

// The number of images is in the geometry of the first convolution, the start of the
// parameter, where other kernels have it.
struct Network {
	NetworkConv conv[NETWORK_CONVS];
	NetworkDense dense[NETWORK_DENSES];
	int32_t convs, denses;
	int32_t sum_stride;     // outputs of the first dense layer, whole words
	int32_t constant_words; // a multiple of 4
	const uint32_t *constants;
	const uint32_t *weights; // of the first dense layer: [pixel][block][output]
	int32_t *sums;           // [replica][image][output], zero before the first launch
	uint32_t *barrier;       // two words, zero before the first launch
	float *out;
};

#endif
