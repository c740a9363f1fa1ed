// Convolutions of image bytes with weights of ±1, one group, from shared memory
// (see tile.cuh): four channels of a pixel make a word, whose products with four
// weights are one instruction. The border is filled with the zero point z, so that
//
//	Σ (x − z)·w = Σ x·w − z·Σ w
//
// over all taps of the window; bias brings the second term.

#include "tile.cuh"

// weights: [block][ky][kx][channel / 4][lane], four signed bytes each, 0 where
// there is no channel. words is ceil(C / 4).
#define CONV_BYTES_PARAMS \
	const Geometry g, const uint8_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const int *__restrict__ bias, \
	const int *__restrict__ thresholds, const float *__restrict__ scale, \
	const float *__restrict__ shift, const float *__restrict__ slope, const uint32_t *__restrict__ flip

// Brings the input under the tile to shared memory, a row by a warp.
static __device__ __forceinline__ void load_tile(const Geometry &g, const Tile &t, int pitch, const uint8_t *in)
{
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
	const int top = t.y0 * g.stride_h - g.pad_t, left = t.x0 * g.stride_w - g.pad_l;
	const uint32_t border = (uint32_t)g.zero_point * 0x01010101u;
	in += (size_t)blockIdx.z * (g.in_h * g.in_w * g.in_c);
	for (int row = threadIdx.x / LANES; row < g.tile_h; row += warps)
		for (int i = lane; i < g.tile_w * pitch; i += LANES) {
			const int x = pitch == 1 ? i : i / pitch, c = 4 * (i - x * pitch);
			const int iy = top + row, ix = left + x;
			uint32_t word = border;
			if (iy >= 0 && iy < g.in_h && ix >= 0 && ix < g.in_w) {
				const uint8_t *p = in + (iy * g.in_w + ix) * g.in_c + c;
				word = p[0];
				if (c + 1 < g.in_c)
					word |= (uint32_t)p[1] << 8;
				if (c + 2 < g.in_c)
					word |= (uint32_t)p[2] << 16;
				if (c + 3 < g.in_c)
					word |= (uint32_t)p[3] << 24;
			}
			t.input[row * g.tile_w * pitch + i] = word;
		}
}

#define CONV_BYTES_KERNEL(name, POOL, sum) \
	extern "C" __global__ void __launch_bounds__(256) name(CONV_BYTES_PARAMS) \
	{ \
		DYNAMIC_SHARED(uint32_t, shared); \
		if (padding_block(g, out, POOL)) \
			return; \
		const int pitch = g.words; \
		const Tile t = make_tile<1>(g, shared, pitch); \
		load_tile(g, t, pitch, in); \
		const Epilogue e = {out, bias, thresholds, scale, shift, slope, flip, 0, 0, 0}; \
		sum(g, t, pitch, weights, e); \
	}

#define CONV_BYTES(name, PIXELS, POOL) CONV_BYTES_KERNEL(name, POOL, (sum_tile<SumBytes, 1, PIXELS, POOL>))
CONV_BYTES(conv_bytes_p1, 1, 1)
CONV_BYTES(conv_bytes_p4, 4, 1)
CONV_BYTES(conv_bytes_p8, 8, 1)
CONV_BYTES(conv_bytes_p4_pool2, 4, 2)
CONV_BYTES(conv_bytes_p8_pool2, 8, 2)

#define CONV_BYTES_WINDOWS(name, K, POOL) CONV_BYTES_KERNEL(name, POOL, (sum_windows<SumBytes, K, POOL>))
CONV_BYTES_WINDOWS(conv_bytes_k3, 3, 1)
CONV_BYTES_WINDOWS(conv_bytes_k3_pool2, 3, 2)
CONV_BYTES_WINDOWS(conv_bytes_k5, 5, 1)
CONV_BYTES_WINDOWS(conv_bytes_k5_pool2, 5, 2)
