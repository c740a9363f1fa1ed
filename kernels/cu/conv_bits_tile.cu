// Convolutions of packed activations with packed weights, one group, from shared
// memory (see tile.cuh). Names say the words of a step, the pixels of a warp at a
// time and the side of the pooling window.

#include "tile.cuh"

// weights: [block][ky][kx][word / VEC][lane][word % VEC].
#define CONV_BITS_PARAMS \
	const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const int *__restrict__ thresholds, \
	const float *__restrict__ scale, \
	const float *__restrict__ shift, const uint32_t *__restrict__ flip, \
	const int *__restrict__ rows, const int *__restrict__ cols, \
	const int *__restrict__ correction

template <int VEC, int PIXELS, int POOL>
static __device__ __forceinline__ void conv_bits_tile(CONV_BITS_PARAMS)
{
	DYNAMIC_SHARED(uint32_t, shared);
	if (padding_block(g, out, POOL))
		return;
	const int pitch = g.in_words;
	const Tile t = make_tile<VEC>(g, shared, pitch);
	// A row of the tile is contiguous in the image. A warp brings a row at a time;
	// outside the image all bits are 0, which correction makes right.
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
	const int top = t.y0 * g.stride_h - g.pad_t, left = t.x0 * g.stride_w - g.pad_l;
	const int width = g.tile_w * pitch;
	const int from = max(-left, 0) * pitch, to = min(g.in_w - left, g.tile_w) * pitch;
	in += (size_t)blockIdx.z * (g.in_h * g.in_w * g.in_words);
	for (int row = threadIdx.x / LANES; row < g.tile_h; row += warps) {
		const int iy = top + row;
		const bool inside = iy >= 0 && iy < g.in_h;
		const int start = (iy * g.in_w + left) * pitch;
		for (int i = lane; i < width; i += LANES)
			t.input[row * width + i] = inside && i >= from && i < to ? in[start + i] : 0;
	}
	const Epilogue e = {out, 0, thresholds, scale, shift, flip, rows, cols, correction};
	sum_tile<SumBits, VEC, PIXELS, POOL>(g, t, pitch, weights, e);
}

#define CONV_BITS(name, VEC, PIXELS, POOL) \
	extern "C" __global__ void __launch_bounds__(256) name(CONV_BITS_PARAMS) \
	{ \
		conv_bits_tile<VEC, PIXELS, POOL>(g, in, out, weights, thresholds, scale, shift, flip, rows, cols, correction); \
	}
CONV_BITS(conv_bits_v1_p1, 1, 1, 1)
CONV_BITS(conv_bits_v1_p4, 1, 4, 1)
CONV_BITS(conv_bits_v1_p8, 1, 8, 1)
CONV_BITS(conv_bits_v1_p4_pool2, 1, 4, 2)
CONV_BITS(conv_bits_v1_p8_pool2, 1, 8, 2)
CONV_BITS(conv_bits_v2_p1, 2, 1, 1)
CONV_BITS(conv_bits_v2_p4, 2, 4, 1)
CONV_BITS(conv_bits_v2_p8, 2, 8, 1)
CONV_BITS(conv_bits_v2_p4_pool2, 2, 4, 2)
CONV_BITS(conv_bits_v2_p8_pool2, 2, 8, 2)
CONV_BITS(conv_bits_v4_p1, 4, 1, 1)
CONV_BITS(conv_bits_v4_p4, 4, 4, 1)
CONV_BITS(conv_bits_v4_p8, 4, 8, 1)
CONV_BITS(conv_bits_v4_p4_pool2, 4, 4, 2)
CONV_BITS(conv_bits_v4_p8_pool2, 4, 8, 2)
