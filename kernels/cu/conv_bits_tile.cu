// Convolutions of packed activations with packed weights, one group, from shared
// memory (see tile.cuh). Names say the words of a step and the pixels of a warp at a
// time, or the size of the window, and the side of the pooling window.

#include "tile.cuh"

// weights: [block][ky][kx][word / VEC][lane][word % VEC].
#define CONV_BITS_PARAMS \
	const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const int *__restrict__ thresholds, \
	const float *__restrict__ scale, \
	const float *__restrict__ shift, const float *__restrict__ slope, const uint32_t *__restrict__ flip, \
	const int *__restrict__ rows, const int *__restrict__ cols, \
	const int *__restrict__ correction

// Brings the input under the tile to shared memory. A row of it is contiguous in the
// image; a warp brings a row at a time. Outside the image all bits are 0, which
// correction makes right. Of pixels with a single word only that is stored: pitch is
// the number of words of a pixel that are.
static __device__ __forceinline__ void load_tile(const Geometry &g, const Tile &t, int pitch, const uint32_t *in)
{
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
	const int top = t.y0 * g.stride_h - g.pad_t, left = t.x0 * g.stride_w - g.pad_l;
	const int width = g.tile_w * pitch, each = pitch == 1 ? g.in_words : 1;
	const int from = max(-left, 0) * pitch, to = min(g.in_w - left, g.tile_w) * pitch;
	in += (size_t)blockIdx.z * (g.in_h * g.in_w * g.in_words);
	for (int row = threadIdx.x / LANES; row < g.tile_h; row += warps) {
		const int iy = top + row;
		const bool inside = iy >= 0 && iy < g.in_h;
		const int start = (iy * g.in_w + left) * g.in_words;
		for (int i = lane; i < width; i += LANES)
			t.input[row * width + i] = inside && i >= from && i < to ? in[start + i * each] : 0;
	}
}

#define CONV_BITS_KERNEL(name, VEC, POOL, sum) \
	extern "C" __global__ void __launch_bounds__(256) name(CONV_BITS_PARAMS) \
	{ \
		DYNAMIC_SHARED(uint32_t, shared); \
		after_previous(in); \
		if (padding_block(g, out, POOL)) \
			return; \
		const int pitch = g.words == 1 ? 1 : g.in_words; \
		const Tile t = make_tile<VEC>(g, shared, pitch); \
		load_tile(g, t, pitch, in); \
		const Epilogue e = {out, 0, thresholds, scale, shift, slope, flip, rows, cols, correction}; \
		sum(g, t, pitch, weights, e); \
	}

#define CONV_BITS(name, VEC, PIXELS, POOL) CONV_BITS_KERNEL(name, VEC, POOL, (sum_tile<SumBits, VEC, PIXELS, POOL>))
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

// weights: [block][ky][kx][word][lane].
#define CONV_BITS_WINDOWS(name, K, POOL) CONV_BITS_KERNEL(name, 1, POOL, (sum_windows<SumBits, K, POOL>))
CONV_BITS_WINDOWS(conv_bits_k3, 3, 1)
CONV_BITS_WINDOWS(conv_bits_k3_pool2, 3, 2)
CONV_BITS_WINDOWS(conv_bits_k5, 5, 1)
CONV_BITS_WINDOWS(conv_bits_k5_pool2, 5, 2)
