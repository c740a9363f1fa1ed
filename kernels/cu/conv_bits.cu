// Convolutions of packed activations with packed weights, direct: an implicit
// GEMM without shared memory, for every window, stride, dilation and grouping.
// (tile.cuh has the faster form for what fits into shared memory.)
//
// A warp computes 32 output channels, a lane each, of PIXELS neighbouring output
// pixels, of all pixels of their pooling windows if there is pooling. Outside the
// image all bits are 0; correction makes that right for other padding values.

#include "common.cuh"
#include "ones.cuh"

// weights: [block][ky][kx][word][lane].
#define CONV_BITS_PARAMS \
	const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const uint32_t *__restrict__ masks, \
	const int *__restrict__ thresholds, const float *__restrict__ scale, \
	const float *__restrict__ shift, const float *__restrict__ slope, const uint32_t *__restrict__ flip, \
	const int *__restrict__ rows, const int *__restrict__ cols, \
	const int *__restrict__ correction

// Adds the products of so many words of a tap, from word k of the pixels on, which lie where
// from says, −1 for those outside.
template <bool MIXED, int WORDS, int PIXELS>
static __device__ __forceinline__ void add_words(const Geometry &g, Ones (&sum)[PIXELS], const int (&from)[PIXELS],
	const uint32_t *in, const uint32_t *weights, const uint32_t *masks, int k)
{
	uint32_t w[WORDS], mask[WORDS];
#pragma unroll
	for (int i = 0; i < WORDS; i++) {
		w[i] = weights[i * LANES];
		mask[i] = MIXED ? masks[i * LANES] : ~0u;
	}
#pragma unroll
	for (int p = 0; p < PIXELS; p++) {
		uint32_t v[WORDS];
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			v[i] = (from[p] >= 0 ? in[from[p] + (MIXED ? min(k + i, g.in_words - 1) : k + i)] : 0) & mask[i];
		sum[p].add(v, w);
	}
}

// MIXED: the lanes belong to groups that do not fill words, so each looks at its
// own words through a mask. FLOATS says what becomes of floats, as Store does.
template <bool MIXED, int PIXELS, typename FLOATS>
static __device__ __forceinline__ void conv_bits_direct(const Place at, const FLOATS &floats, CONV_BITS_PARAMS)
{
	after_previous(in);
	const int lane = threadIdx.x % LANES;
	const int item = (at.block * blockDim.x + threadIdx.x) / LANES;
	const size_t image = at.image;
	const int pixels = g.out_h * g.out_w;
	const int runs = (pixels + PIXELS - 1) / PIXELS;
	if (item >= runs * g.blocks)
		return;
	const int block = item / runs;
	const int first = (item - block * runs) * PIXELS;
	uint32_t *words = (uint32_t *)out + image * (pixels * g.out_words) + block;
	if (g.to_bits && block * LANES >= g.out_c) { // the upper half of a 64-bit word
		if (lane < PIXELS && first + lane < pixels)
			words[(first + lane) * g.out_words] = 0;
		return;
	}
	const int o = block * LANES + lane;
	in += image * (g.in_h * g.in_w * g.in_words);
	int near = 0; // word of the group
	if (MIXED)
		near = min(o, g.out_c - 1) / g.group_out * g.group_in / 32;
	else
		in += block * LANES / g.group_out * g.words;
	int oy[PIXELS], ox[PIXELS], result[PIXELS];
	bool plus[PIXELS];
	for (int p = 0; p < PIXELS; p++) {
		const int pixel = min(first + p, pixels - 1);
		oy[p] = pixel / g.out_w * g.pool_h;
		ox[p] = pixel % g.out_w * g.pool_w;
		plus[p] = false;
		result[p] = 0;
	}
	const int taps = g.kh * g.kw;
	for (int py = 0; py < g.pool_h; py++)
		for (int px = 0; px < g.pool_w; px++) {
			const uint32_t *w = weights + (size_t)block * (taps * g.words * LANES) + lane;
			Ones sum[PIXELS];
			for (int ky = 0; ky < g.kh; ky++)
				for (int kx = 0; kx < g.kw; kx++) {
					int from[PIXELS]; // −1 outside
					for (int p = 0; p < PIXELS; p++) {
						const int iy = (oy[p] + py) * g.stride_h - g.pad_t + ky * g.dilation_h;
						const int ix = (ox[p] + px) * g.stride_w - g.pad_l + kx * g.dilation_w;
						const bool inside = iy >= 0 && iy < g.in_h && ix >= 0 && ix < g.in_w;
						from[p] = inside ? (iy * g.in_w + ix) * g.in_words : -1;
					}
					int k = 0;
					for (; k + 4 <= g.words; k += 4, w += 4 * LANES)
						add_words<MIXED, 4>(g, sum, from, in, w, masks + (block * g.words + k) * LANES + lane, near + k);
					for (; k < g.words; k++, w += LANES)
						add_words<MIXED, 1>(g, sum, from, in, w, masks + (block * g.words + k) * LANES + lane, near + k);
				}
			for (int p = 0; p < PIXELS; p++) {
				int acc = g.taps - 2 * sum[p].total();
				if (g.border)
					acc += correction[(rows[oy[p] + py] * g.cols + cols[ox[p] + px]) * (g.blocks * LANES) + o];
				if (g.to_bits)
					plus[p] = plus[p] || acc >= thresholds[o];
				result[p] = acc;
			}
		}
	if (!g.to_bits) { // which is pooled nowhere
#pragma unroll
		for (int p = 0; p < PIXELS; p++)
			if (first + p < pixels)
				floats.put(g, out, image * pixels + first + p, o, o < g.out_c ? scaled(g, (float)result[p], scale, shift, slope, o) : 0.0f);
		return;
	}
	uint32_t mine = 0;
	for (int p = 0; p < PIXELS; p++) {
		const uint32_t word = __ballot_sync(FULL_WARP, plus[p]);
		if (lane == p)
			mine = word;
	}
	if (lane < PIXELS && first + lane < pixels) {
		mine &= word_mask(block, g.out_c);
		words[(first + lane) * g.out_words] = g.flip ? mine ^ flip[block] : mine;
	}
}

#if !defined(WITHOUT_ENTRIES)
// The second bound asks for few blocks at a time: for more ptxas would spill.
#define CONV_BITS(name, MIXED, PIXELS) \
	extern "C" __global__ void __launch_bounds__(256, PIXELS == 1 ? 4 : 2) name(CONV_BITS_PARAMS) \
	{ \
		conv_bits_direct<MIXED, PIXELS>(THIS_PLACE, Store{}, g, in, out, weights, masks, thresholds, scale, shift, slope, flip, rows, cols, correction); \
	}
CONV_BITS(conv_bits_p1, false, 1)
CONV_BITS(conv_bits_p4, false, 4)
CONV_BITS(conv_bits_mixed, true, 1)
#endif
