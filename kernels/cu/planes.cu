// Convolutions and pools of bit planes: a value has in_planes bits, and those of a row of
// the image lie in as many rows of the tensor. in_h and out_h count rows of images.

#include "common.cuh"

// A warp computes 32 output channels, a lane each, of PIXELS neighbouring output pixels,
// of all pixels of their pooling windows if there is pooling: for each of them a weight
// meets all planes. Outside the image all bits are 0; correction makes that right for
// other padding values.
//
// weights: [block][ky][kx][word][lane]; thresholds: [threshold][blocks of lanes].
#define CONV_PLANES_PARAMS \
	const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const uint32_t *__restrict__ masks, \
	const int *__restrict__ thresholds, const float *__restrict__ scale, \
	const float *__restrict__ shift, const float *__restrict__ slope, const uint32_t *__restrict__ flip, \
	const int *__restrict__ rows, const int *__restrict__ cols, \
	const int *__restrict__ correction

// MIXED is that of conv_bits.cu.
template <bool MIXED, int PIXELS>
static __device__ __forceinline__ void conv_planes(const Place at, CONV_PLANES_PARAMS)
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
	const int o = block * LANES + lane;
	const int plane = g.in_w * g.in_words; // words of a row
	in += image * (g.in_h * g.in_planes * plane);
	const bool padding = g.to_bits && block * LANES >= g.out_c; // the upper half of a 64-bit word
	int near = 0; // word of the group
	if (MIXED)
		near = min(o, g.out_c - 1) / g.group_out * g.group_in / 32;
	else
		in += block * LANES / g.group_out * g.words;
	int oy[PIXELS], ox[PIXELS], most[PIXELS];
	for (int p = 0; p < PIXELS; p++) {
		const int pixel = min(first + p, pixels - 1);
		oy[p] = pixel / g.out_w * g.pool_h;
		ox[p] = pixel % g.out_w * g.pool_w;
		most[p] = -0x7fffffff - 1;
	}
	const int taps = g.kh * g.kw;
	for (int py = 0; py < g.pool_h && !padding; py++)
		for (int px = 0; px < g.pool_w; px++) {
			const uint32_t *w = weights + (size_t)block * (taps * g.words * LANES) + lane;
			int sum[PIXELS];
			for (int p = 0; p < PIXELS; p++)
				sum[p] = 0;
			for (int ky = 0; ky < g.kh; ky++)
				for (int kx = 0; kx < g.kw; kx++) {
					int from[PIXELS]; // −1 outside
					for (int p = 0; p < PIXELS; p++) {
						const int iy = (oy[p] + py) * g.stride_h - g.pad_t + ky * g.dilation_h;
						const int ix = (ox[p] + px) * g.stride_w - g.pad_l + kx * g.dilation_w;
						const bool inside = iy >= 0 && iy < g.in_h && ix >= 0 && ix < g.in_w;
						from[p] = inside ? iy * g.in_planes * plane + ix * g.in_words : -1;
					}
					for (int k = 0; k < g.words; k++) {
						const uint32_t weight = *w;
						w += LANES;
						const int word = MIXED ? min(near + k, g.in_words - 1) : k;
						const uint32_t mask = MIXED ? masks[(block * g.words + k) * LANES + lane] : 0xffffffffu;
						for (int j = 0; j < g.in_planes; j++)
							for (int p = 0; p < PIXELS; p++) {
								const uint32_t v = from[p] >= 0 ? in[from[p] + j * plane + word] : 0;
								sum[p] += __popc((v ^ weight) & mask) << j;
							}
					}
				}
			for (int p = 0; p < PIXELS; p++) {
				int acc = g.taps * ((1 << g.in_planes) - 1) - 2 * sum[p];
				if (g.border)
					acc += correction[(rows[oy[p] + py] * g.cols + cols[ox[p] + px]) * (g.blocks * LANES) + o];
				most[p] = max(most[p], acc);
			}
		}
	if (!g.to_bits) { // which is pooled nowhere
		for (int p = 0; p < PIXELS; p++)
			if (o < g.out_c && first + p < pixels)
				((float *)out)[(image * pixels + first + p) * g.out_c + o] = scaled(g, (float)most[p], scale, shift, slope, o);
		return;
	}
	for (int p = 0; p < PIXELS; p++) {
		int reached = 0;
		for (int k = 0; k < (1 << g.out_planes) - 1 && !padding; k++)
			reached += most[p] >= thresholds[k * (g.blocks * LANES) + o];
		const int y = (first + p) / g.out_w, x = (first + p) - y * g.out_w;
		for (int j = 0; j < g.out_planes; j++) {
			uint32_t word = __ballot_sync(FULL_WARP, reached >> j & 1) & word_mask(block, g.out_c);
			if (g.flip)
				word ^= flip[block];
			if (lane == j && first + p < pixels)
				((uint32_t *)out)[(((image * g.out_h + y) * g.out_planes + j) * g.out_w + x) * g.out_words + block] = word;
		}
	}
}

#if !defined(WITHOUT_ENTRIES)
#define CONV_PLANES(name, MIXED, PIXELS) \
	extern "C" __global__ void __launch_bounds__(256, PIXELS == 1 ? 4 : 2) name(CONV_PLANES_PARAMS) \
	{ \
		conv_planes<MIXED, PIXELS>(THIS_PLACE, g, in, out, weights, masks, thresholds, scale, shift, slope, flip, rows, cols, correction); \
	}
CONV_PLANES(conv_planes_p1, false, 1)
CONV_PLANES(conv_planes_p4, false, 4)
CONV_PLANES(conv_planes_mixed, true, 1)
#endif

// A thread makes a word of all planes: 32 numbers, the largest of the window.
KERNEL(max_pool_planes, (256), (const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out,
	const uint32_t *__restrict__ flip),
	(g, in, out, flip))
{
	after_previous(in);
	const int item = at.block * blockDim.x + threadIdx.x;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int pixel = item / g.out_words;
	const int k = item - pixel * g.out_words;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	const int plane = g.in_w * g.in_words;
	in += image * (g.in_h * g.in_planes * plane) + k;
	const int y0 = y * g.stride_h - g.pad_t, x0 = x * g.stride_w - g.pad_l;
	uint32_t most[MAX_PLANES];
	for (int j = 0; j < MAX_PLANES; j++)
		most[j] = 0;
	for (int iy = max(y0, 0); iy < min(y0 + g.kh, g.in_h); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + g.kw, g.in_w); ix++) {
			const uint32_t *p = in + iy * g.in_planes * plane + ix * g.in_words;
			uint32_t take = 0, decided = 0, v[MAX_PLANES]; // where it is larger, and where they differ
#pragma unroll
			for (int j = MAX_PLANES - 1; j >= 0; j--) {
				v[j] = j < g.in_planes ? p[j * plane] : 0;
				const uint32_t differ = (most[j] ^ v[j]) & ~decided;
				take |= differ & v[j];
				decided |= differ;
			}
#pragma unroll
			for (int j = 0; j < MAX_PLANES; j++)
				most[j] ^= (most[j] ^ v[j]) & take;
		}
	out += ((image * g.out_h + y) * g.in_planes * g.out_w + x) * g.out_words + k;
#pragma unroll
	for (int j = 0; j < MAX_PLANES; j++)
		if (j < g.in_planes)
			out[j * (g.out_w * g.out_words)] = g.flip ? most[j] ^ flip[k] : most[j];
}
