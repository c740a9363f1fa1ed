// Convolutions of bytes with integer weights, in exact integers, and of floats with real weights, in the order of the numeric contract: direct, for
// every window, stride, dilation and grouping. The division of work is that of
// conv_bits.cu. (conv_bytes.cu has the faster form for bytes.)

#include "common.cuh"

static __device__ __forceinline__ int step(const Geometry &g, uint8_t v, int w, int acc)
{
	return acc + ((int)v - g.zero_point) * w;
}

static __device__ __forceinline__ float step(const Geometry &, float v, float w, float acc)
{
	return __fmaf_rn(v, w, acc);
}

// weights: [block][ky][kx][channel of the group][lane].
#define CONV_VALUES_PARAMS(VALUE, SUM) \
	const Geometry g, const VALUE *__restrict__ in, void *__restrict__ out, \
	const SUM *__restrict__ weights, const SUM *__restrict__ bias, \
	const SUM *__restrict__ thresholds, const float *__restrict__ scale, \
	const float *__restrict__ shift, const float *__restrict__ slope, const uint32_t *__restrict__ flip

// FLOATS says what becomes of floats, as Store does.
template <int PIXELS, typename VALUE, typename SUM, typename FLOATS>
static __device__ __forceinline__ void conv_values(const Place at, const FLOATS &floats, CONV_VALUES_PARAMS(VALUE, SUM))
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
	in += image * (g.in_h * g.in_w * g.in_c) + min(o, g.out_c - 1) / g.group_out * g.group_in;
	int oy[PIXELS], ox[PIXELS];
	bool plus[PIXELS];
	for (int p = 0; p < PIXELS; p++) {
		const int pixel = min(first + p, pixels - 1);
		oy[p] = pixel / g.out_w * g.pool_h;
		ox[p] = pixel % g.out_w * g.pool_w;
		plus[p] = false;
	}
	for (int py = 0; py < g.pool_h; py++)
		for (int px = 0; px < g.pool_w; px++) {
			const SUM *w = weights + (size_t)block * (g.kh * g.kw * g.group_in * LANES) + lane;
			SUM acc[PIXELS];
			for (int p = 0; p < PIXELS; p++)
				acc[p] = bias[o];
			for (int ky = 0; ky < g.kh; ky++)
				for (int kx = 0; kx < g.kw; kx++) {
					int from[PIXELS]; // −1 outside, where nothing is added
					for (int p = 0; p < PIXELS; p++) {
						const int iy = (oy[p] + py) * g.stride_h - g.pad_t + ky * g.dilation_h;
						const int ix = (ox[p] + px) * g.stride_w - g.pad_l + kx * g.dilation_w;
						const bool inside = iy >= 0 && iy < g.in_h && ix >= 0 && ix < g.in_w;
						from[p] = inside ? (iy * g.in_w + ix) * g.in_c : -1;
					}
					for (int c = 0; c < g.group_in; c++) {
						const SUM weight = *w;
						w += LANES;
						for (int p = 0; p < PIXELS; p++)
							if (from[p] >= 0)
								acc[p] = step(g, in[from[p] + c], weight, acc[p]);
					}
				}
#pragma unroll
			for (int p = 0; p < PIXELS; p++)
				if (g.to_bits)
					plus[p] = plus[p] || acc[p] >= thresholds[o];
				else if (first + p < pixels)
					floats.put(g, out, image * pixels + first + p, o, o < g.out_c ? scaled(g, (float)acc[p], scale, shift, slope, o) : 0.0f);
		}
	if (!g.to_bits)
		return;
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
// As in conv_bits.cu: few blocks at a time, so that nothing is spilled.
#define CONV_VALUES(name, PIXELS, VALUE, SUM) \
	extern "C" __global__ void __launch_bounds__(256, PIXELS == 1 ? 4 : 1) name(CONV_VALUES_PARAMS(VALUE, SUM)) \
	{ \
		conv_values<PIXELS, VALUE, SUM>(THIS_PLACE, Store{}, g, in, out, weights, bias, thresholds, scale, shift, slope, flip); \
	}
CONV_VALUES(conv_values_bytes, 1, uint8_t, int)
CONV_VALUES(conv_values_float_p1, 1, float, float)
CONV_VALUES(conv_values_float_p4, 4, float, float)
#endif
