// Convolutions of bytes with signed bytes, one group, from shared memory
// (see tile.cuh): four channels of a pixel make a word, whose products with four
// weights are one instruction, and eight such words are one of tensor cores. The border
// is filled with the zero point z, so that
//
//	Σ (x − z)·w = Σ x·w − z·Σ w
//
// over all taps of the window; bias brings the second term.

#include "mma.cuh"
#include "tile.cuh"

// weights: [block][ky][kx][channel / 4][lane], four signed bytes each, 0 where
// there is no channel. words is ceil(C / 4).
#define CONV_BYTES_PARAMS \
	const Geometry g, const uint8_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const int *__restrict__ bias, \
	const int *__restrict__ thresholds, const float *__restrict__ scale, \
	const float *__restrict__ shift, const float *__restrict__ slope, const uint32_t *__restrict__ flip

// Brings the input under the tile to shared memory, a row by a warp. Bytes of channels
// that there are not are any: they have no weights.
static __device__ __forceinline__ void load_tile(const Geometry &g, const Tile &t, int pitch, const uint8_t *in)
{
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
	const int top = t.y0 * g.stride_h - g.pad_t, left = t.x0 * g.stride_w - g.pad_l;
	const uint32_t border = (uint32_t)g.zero_point * 0x01010101u;
	const size_t first = (size_t)blockIdx.z * (g.in_h * g.in_w * g.in_c);
	const int skew = first & 3; // of images whose bytes are no whole words
	in += first - skew;
	for (int row = threadIdx.x / LANES; row < g.tile_h; row += warps)
		for (int i = lane; i < g.tile_w * pitch; i += LANES) {
			const int x = pitch == 1 ? i : i / pitch, c = 4 * (i - x * pitch);
			const int iy = top + row, ix = left + x;
			uint32_t word = border;
			if (c < g.in_c && iy >= 0 && iy < g.in_h && ix >= 0 && ix < g.in_w)
				word = load_bytes(in, (iy * g.in_w + ix) * g.in_c + c + skew, min(4, g.in_c - c));
			t.input[row * g.tile_w * pitch + i] = word;
		}
}

#define CONV_BYTES_KERNEL(name, POOL, sum) \
	extern "C" __global__ void __launch_bounds__(256) name(CONV_BYTES_PARAMS) \
	{ \
		DYNAMIC_SHARED(uint32_t, shared); \
		after_previous(in); \
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

#if HAS_MMA_BYTES
// Where a pixel of a warp's group of 8 lies: in a row, or in two windows side by side.
template <int POOL> DEVICE int group_y(int pixel) { return POOL == 1 ? 0 : pixel / 2 % 2; }
template <int POOL> DEVICE int group_x(int pixel) { return POOL == 1 ? pixel : pixel / 4 * 2 + pixel % 2; }

// Stores the results of a group of 8 pixels, of which (y, x) is the first, before pooling.
template <int POOL>
static __device__ __forceinline__ void store_group(const Geometry &g, const Tile &t, const Epilogue &e, int y, int x, const ByteSums &sums)
{
	const int lane = threadIdx.x % LANES, o = t.block * LANES + lane / 4 * 4;
	const int4 bias = *(const int4 *)&e.bias[o];
	const int added[4] = {bias.x, bias.y, bias.z, bias.w};
	if (!g.to_bits) {
#pragma unroll
		for (int p = 0; p < 2; p++) {
			const int cx = x + 2 * (lane % 4) + p;
			if (POOL > 1 || cx >= g.conv_w) // floats are pooled nowhere
				continue;
			float *out = (float *)e.out + ((size_t)blockIdx.z * (g.out_h * g.out_w) + y * g.out_w + cx) * g.out_c + o;
#pragma unroll
			for (int q = 0; q < 4; q++)
				if (o + q < g.out_c)
					out[q] = scaled(g, (float)(sums.of[q / 2][q % 2 * 2 + p] + added[q]), e.scale, e.shift, e.slope, o + q);
		}
		return;
	}
	const int4 limit = *(const int4 *)&e.thresholds[o];
	const int limits[4] = {limit.x, limit.y, limit.z, limit.w};
	uint32_t votes[2][4]; // of pixels 2(lane % 4) and the next
#pragma unroll
	for (int p = 0; p < 2; p++)
#pragma unroll
		for (int q = 0; q < 4; q++)
			votes[p][q] = __ballot_sync(FULL_WARP, sums.of[q / 2][q % 2 * 2 + p] + added[q] >= limits[q]);
	if (POOL == 2)
#pragma unroll
		for (int q = 0; q < 4; q++) {
			votes[0][q] |= votes[1][q];
			votes[0][q] |= votes[0][q] >> 1;
		}
	// Lane i has result i: a pixel, or a window, which is two lanes' pairs of pixels.
	uint32_t word = word_of_votes(votes[0], POOL == 2 ? 2 * lane % 4 : lane / 2 % 4);
	if (POOL == 1) {
		const uint32_t second = word_of_votes(votes[1], lane / 2 % 4);
		word = lane % 2 == 0 ? word : second;
	}
	const int oy = y / POOL, ox = x / POOL + lane;
	if (lane < 8 / (POOL * POOL) && oy < g.out_h && ox < g.out_w) {
		word &= word_mask(t.block, g.out_c);
		((uint32_t *)e.out)[((size_t)blockIdx.z * (g.out_h * g.out_w) + oy * g.out_w + ox) * g.out_words + t.block] =
			g.flip ? word ^ e.flip[t.block] : word;
	}
}

// As sum_tile, a warp taking so many groups at a time. in_words is how many words of a
// pixel lie in shared memory: an odd multiple of 4 from 4 on, so that 4 words of each of 8
// neighbours are in as many banks. weights: [block][step][half][lane][4],
// as ByteSums wants them.
template <int GROUPS, int POOL>
static __device__ __forceinline__ void sum_groups(const Geometry &g, const Tile &t, const uint32_t *weights, const Epilogue &e)
{
	__syncthreads();
	enum { WIDTH = 8 / POOL }; // of a group
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES, pixel = lane / 4;
	const int across = g.tile_x / (GROUPS * WIDTH), units = across * (g.tile_y / POOL), steps = t.steps / 8;
	for (int unit = threadIdx.x / LANES; unit < units; unit += warps) {
		const int uy = unit / across;
		const int y = uy * POOL, x = (unit - uy * across) * (GROUPS * WIDTH);
		if (t.y0 + y >= g.conv_h || t.x0 + x >= g.conv_w)
			continue;
		const uint32_t *from[GROUPS];
		ByteSums sums[GROUPS] = {};
#pragma unroll
		for (int i = 0; i < GROUPS; i++)
			from[i] = t.input + ((y + group_y<POOL>(pixel)) * g.stride_h * g.tile_w + (x + i * WIDTH + group_x<POOL>(pixel)) * g.stride_w) * g.in_words;
		const uint4 *w = (const uint4 *)weights + (size_t)t.block * steps * (2 * LANES) + lane;
		for (int s = 0; s < steps; s++, w += 2 * LANES) {
			const uint4 fragments[2] = {w[0], w[LANES]};
			const int a0 = t.offsets[8 * s + lane % 4], a1 = t.offsets[8 * s + 4 + lane % 4];
#pragma unroll
			for (int i = 0; i < GROUPS; i++)
				sums[i].add(sums[i], fragments, from[i][a0], from[i][a1]);
		}
#pragma unroll
		for (int i = 0; i < GROUPS; i++)
			store_group<POOL>(g, t, e, t.y0 + y, t.x0 + x + i * WIDTH, sums[i]);
	}
}

#define CONV_BYTES_MMA(name, GROUPS, POOL) \
	extern "C" __global__ void __launch_bounds__(256) name(CONV_BYTES_PARAMS) \
	{ \
		DYNAMIC_SHARED(uint32_t, shared); \
		after_previous(in); \
		if (padding_block(g, out, POOL)) \
			return; \
		const Tile t = make_tile<1, 8>(g, shared, g.in_words); \
		load_tile(g, t, g.in_words, in); \
		const Epilogue e = {out, bias, thresholds, scale, shift, slope, flip, 0, 0, 0}; \
		sum_groups<GROUPS, POOL>(g, t, weights, e); \
	}
CONV_BYTES_MMA(conv_bytes_mma_p8, 1, 1)
CONV_BYTES_MMA(conv_bytes_mma_p16, 2, 1)
CONV_BYTES_MMA(conv_bytes_mma_p8_pool2, 1, 2)
CONV_BYTES_MMA(conv_bytes_mma_p16_pool2, 2, 2)
#endif
