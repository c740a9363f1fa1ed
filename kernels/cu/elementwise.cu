// Pooling, and steps that treat every value by itself. One thread makes one value,
// or one word of 32 channels.

#include "common.cuh"

#define ITEM (at.block * blockDim.x + threadIdx.x)

// The OR over the window.
KERNEL(max_pool_bits, (256), (const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out,
	const uint32_t *__restrict__ flip),
	(g, in, out, flip))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int pixel = item / g.out_words;
	const int k = item - pixel * g.out_words;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	in += image * (g.in_h * g.in_w * g.in_words);
	const int y0 = y * g.stride_h - g.pad_t, x0 = x * g.stride_w - g.pad_l;
	uint32_t word = 0;
	for (int iy = max(y0, 0); iy < min(y0 + g.kh, g.in_h); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + g.kw, g.in_w); ix++)
			word |= in[(iy * g.in_w + ix) * g.in_words + k];
	out[image * (g.out_h * g.out_w * g.out_words) + item] = g.flip ? word ^ flip[k] : word;
}

// Of equal values the first in the order (ky, kx) stays, and so does what cannot
// be compared with what follows.
KERNEL(max_pool_float, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	in += image * (g.in_h * g.in_w * g.in_c);
	const int y0 = y * g.stride_h - g.pad_t, x0 = x * g.stride_w - g.pad_l;
	float best = 0.0f;
	bool first = true;
	for (int iy = max(y0, 0); iy < min(y0 + g.kh, g.in_h); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + g.kw, g.in_w); ix++) {
			const float v = in[(iy * g.in_w + ix) * g.in_c + c];
			if (first || v > best)
				best = v;
			first = false;
		}
	out[image * (g.out_h * g.out_w * g.out_c) + item] = best;
}

// The largest bytes of so many channels at once.
KERNEL(max_pool_bytes, (256), (const Geometry g, const uint8_t *__restrict__ in, uint8_t *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = ITEM, words = g.out_c / g.vector;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * words)
		return;
	const int pixel = item / words;
	const int k = item - pixel * words;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	in += image * (g.in_h * g.in_w * g.in_c) + k * g.vector;
	const int y0 = y * g.stride_h - g.pad_t, x0 = x * g.stride_w - g.pad_l;
	int best[4] = {0, 0, 0, 0};
	for (int iy = max(y0, 0); iy < min(y0 + g.kh, g.in_h); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + g.kw, g.in_w); ix++) {
			const uint8_t *from = in + (iy * g.in_w + ix) * g.in_c;
			const uint32_t word = g.vector == 1 ? *from : *(const uint32_t *)from;
#pragma unroll
			for (int j = 0; j < 4; j++)
				best[j] = max(best[j], (int)(word >> (8 * j) & 255));
		}
	const size_t i = image * (g.out_h * g.out_w * words) + item;
	if (g.vector == 1)
		out[i] = (uint8_t)best[0];
	else
		((uint32_t *)out)[i] = best[0] | best[1] << 8 | best[2] << 16 | best[3] << 24;
}

// The mean a/n, for divisors n and y = 1/n, by the sequence of the numeric contract.
static __device__ __forceinline__ float divided(float a, const float *divisors)
{
	const float n = divisors[0], y = divisors[1];
	const float q = __fmul_rn(a, y);
	return __fmaf_rn(__fmaf_rn(-n, q, a), y, q);
}

// divisors: two for each pixel of the output.
KERNEL(avg_pool_bits, (256), (const Geometry g, const uint32_t *__restrict__ in, float *__restrict__ out, const float *__restrict__ divisors),
	(g, in, out, divisors))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	in += image * (g.in_h * g.in_w * g.in_words) + c / 32;
	const int y0 = y * g.stride_h - g.pad_t, x0 = x * g.stride_w - g.pad_l;
	int sum = 0;
	for (int iy = max(y0, 0); iy < min(y0 + g.kh, g.in_h); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + g.kw, g.in_w); ix++)
			sum += 2 * (int)(in[(iy * g.in_w + ix) * g.in_words] >> (c % 32) & 1) - 1;
	out[image * (g.out_h * g.out_w * g.out_c) + item] = divided((float)sum, divisors + 2 * pixel);
}

KERNEL(avg_pool_float, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ divisors),
	(g, in, out, divisors))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	in += image * (g.in_h * g.in_w * g.in_c);
	const int y0 = y * g.stride_h - g.pad_t, x0 = x * g.stride_w - g.pad_l;
	float sum = 0.0f;
	for (int iy = max(y0, 0); iy < min(y0 + g.kh, g.in_h); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + g.kw, g.in_w); ix++)
			sum = __fadd_rn(sum, in[(iy * g.in_w + ix) * g.in_c + c]);
	out[image * (g.out_h * g.out_w * g.out_c) + item] = divided(sum, divisors + 2 * pixel);
}

static __device__ __forceinline__ float value_of(const Geometry &g, const uint8_t *in, size_t image, int item, int)
{
	return (float)in[image * (g.out_h * g.out_w * g.out_c) + item];
}

static __device__ __forceinline__ float value_of(const Geometry &g, const float *in, size_t image, int item, int)
{
	return in[image * (g.out_h * g.out_w * g.out_c) + item];
}

static __device__ __forceinline__ float value_of(const Geometry &g, const uint32_t *in, size_t image, int item, int c)
{
	const uint32_t word = in[(image * (g.out_h * g.out_w) + item / g.out_c) * g.in_words + c / 32];
	return word >> (c % 32) & 1 ? 1.0f : -1.0f;
}

// A function by a table of polynomials of the distance from the middle of an interval (see
// internal/f32): for each sign and exponent the first of its rows, times 32, and how far
// the mantissa is shifted to be the number of the row among them; then rows of the middle
// and eight coefficients. An infinite number is near the largest finite one.
static __device__ float tabulated(float v, const float *table)
{
	uint32_t b = __float_as_uint(v);
	const uint32_t place = __float_as_uint(table[b >> 23]);
	const float *row = table + 512 + 9 * ((place >> 5) + ((b & 0x7fffffu) >> (place & 31)));
	if ((b & 0x7fffffffu) == 0x7f800000u)
		b--;
	const float u = __fadd_rn(__uint_as_float(b), -row[0]);
	float p = row[8];
#pragma unroll
	for (int i = 7; i > 1; i--)
		p = __fadd_rn(__fmul_rn(p, u), row[i]);
	return __fadd_rn(row[1], p);
}

template <typename T>
static __device__ __forceinline__ void affine(const Place at, const Geometry &g, const T *in, float *out, const float *scale, const float *shift, const float *slope)
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int c = item % g.out_c;
	float v = scaled(g, value_of(g, in, image, item, c), scale, shift, slope, c);
	if (g.activation == ACTIVATION_FUNCTION)
		v = tabulated(v, slope);
	out[image * (g.out_h * g.out_w * g.out_c) + item] = v;
}

// Float32 of bytes, bits or floats.
#define AFFINE(name, T) \
	KERNEL(name, (256), (const Geometry g, const T *__restrict__ in, float *__restrict__ out, \
		const float *__restrict__ scale, const float *__restrict__ shift, const float *__restrict__ slope), (g, in, out, scale, shift, slope)) \
	{ \
		affine(at, g, in, out, scale, shift, slope); \
	}
AFFINE(affine_bytes, uint8_t)
AFFINE(affine_bits, uint32_t)
AFFINE(affine_float, float)

// Float32 of bytes, by a table of 256 for all channels or for each of other_c.
KERNEL(table_float, (256), (const Geometry g, const uint8_t *__restrict__ in, float *__restrict__ out, const float *__restrict__ table),
	(g, in, out, table))
{
	after_previous(in);
	const int item = ITEM;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const size_t i = at.image * (g.out_h * g.out_w * g.out_c) + item;
	out[i] = table[(g.other_c == 1 ? 0 : item % g.out_c * 256) + in[i]];
}

// Bytes of bytes, one or four.
KERNEL(table_bytes, (256), (const Geometry g, const uint8_t *__restrict__ in, uint8_t *__restrict__ out, const float *__restrict__ table),
	(g, in, out, table))
{
	after_previous(in);
	const int item = ITEM, items = g.out_h * g.out_w * g.out_c / g.vector;
	if (item >= items)
		return;
	const size_t i = at.image * items + item;
	int c = item * g.vector % g.out_c;
	if (g.vector == 1) {
		out[i] = (uint8_t)table[(g.other_c == 1 ? 0 : c * 256) + in[i]];
		return;
	}
	const uint32_t four = ((const uint32_t *)in)[i];
	uint32_t word = 0;
#pragma unroll
	for (int j = 0; j < 4; j++) {
		word |= (uint32_t)table[(g.other_c == 1 ? 0 : c * 256) + (four >> (8 * j) & 255)] << (8 * j);
		c = c + 1 == g.out_c ? 0 : c + 1;
	}
	((uint32_t *)out)[i] = word;
}

// The same of numbers, of which plane j has bit j. A warp makes a word of each plane: a
// lane looks at one channel.
KERNEL(table_bits, (256), (const Geometry g, const uint8_t *__restrict__ in, uint32_t *__restrict__ out, const float *__restrict__ table),
	(g, in, out, table))
{
	after_previous(in);
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int pixel = item / g.out_words;
	const int block = item - pixel * g.out_words;
	const int c = block * LANES + lane;
	int number = 0;
	if (c < g.out_c)
		number = (int)table[(g.other_c == 1 ? 0 : c * 256) + in[(image * (g.out_h * g.out_w) + pixel) * g.out_c + c]];
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	for (int j = 0; j < g.out_planes; j++) {
		const uint32_t word = __ballot_sync(FULL_WARP, number >> j & 1);
		if (lane == j)
			out[(((image * g.out_h + y) * g.out_planes + j) * g.out_w + x) * g.out_words + block] = word;
	}
}

// A warp makes a word: each lane looks at one channel of the output. Those of a channel
// of the input lie side by side.
KERNEL(sign_bits, (256), (const Geometry g, const float *__restrict__ in, uint32_t *__restrict__ out,
	const float *__restrict__ thresholds, const uint32_t *__restrict__ flip),
	(g, in, out, thresholds, flip))
{
	after_previous(in);
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int pixel = item / g.out_words;
	const int block = item - pixel * g.out_words;
	const int c = block * LANES + lane;
	int reached = 0;
	if (c < g.out_c) {
		const float v = in[(image * (g.out_h * g.out_w) + pixel) * g.in_c + c];
		for (int k = 0; k < (1 << g.out_planes) - 1; k++)
			reached += v >= thresholds[k * g.out_c + c];
	}
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	for (int j = 0; j < g.out_planes; j++) {
		const uint32_t word = __ballot_sync(FULL_WARP, reached >> j & 1);
		if (lane == j)
			out[(((image * g.out_h + y) * g.out_planes + j) * g.out_w + x) * g.out_words + block] = g.flip ? word ^ flip[block] : word;
	}
}

// The number of thresholds that a value of channel c reaches, end - first of them in
// ascending order, for all channels or for each of other_c. Of 255 it looks at 8.
static __device__ __forceinline__ int level(const Geometry &g, const float *thresholds, float v, int c)
{
	const int n = g.end - g.first;
	thresholds += g.other_c == 1 ? 0 : c * n;
	int reached = 0;
	for (int rest = n; rest > 0; rest /= 2) { // reached to reached + rest of them are
		const int half = (rest + 1) / 2;
		reached += v >= thresholds[reached + half - 1] ? half : 0;
	}
	return reached;
}

// first plus the level.
KERNEL(quantize, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ thresholds),
	(g, in, out, thresholds))
{
	after_previous(in);
	const int item = ITEM;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const size_t i = at.image * (g.out_h * g.out_w * g.out_c) + item;
	out[i] = (float)(g.first + level(g, thresholds, in[i], item % g.out_c));
}

// The level alone, of one value or four.
KERNEL(quantize_bytes, (256), (const Geometry g, const float *__restrict__ in, uint8_t *__restrict__ out, const float *__restrict__ thresholds),
	(g, in, out, thresholds))
{
	after_previous(in);
	const int item = ITEM, items = g.out_h * g.out_w * g.out_c / g.vector;
	if (item >= items)
		return;
	const size_t i = at.image * items + item;
	int c = item * g.vector % g.out_c;
	if (g.vector == 1) {
		out[i] = (uint8_t)level(g, thresholds, in[i], c);
		return;
	}
	const float4 four = ((const float4 *)in)[i];
	const float v[4] = {four.x, four.y, four.z, four.w};
	uint32_t word = 0;
#pragma unroll
	for (int j = 0; j < 4; j++) {
		word |= level(g, thresholds, v[j], c) << (8 * j);
		c = c + 1 == g.out_c ? 0 : c + 1;
	}
	((uint32_t *)out)[i] = word;
}

KERNEL(add, (256), (const Geometry g, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out,
	const float *__restrict__ slope),
	(g, a, b, out, slope))
{
	after_previous(a, b);
	const int item = ITEM;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const size_t i = at.image * (g.out_h * g.out_w * g.out_c) + item;
	out[i] = activate(g.activation, __fadd_rn(a[i], b[i]), slope, item % g.out_c);
}

// What becomes of two values, as bcnn.PairKind: g.scheme.
enum Pair {
	PAIR_MUL,
	PAIR_MIN,
	PAIR_MAX,
	PAIR_MASK,
};

// b has the values of all pixels or of one, and of all channels or of one. In a minimum or
// maximum a NaN wins, and b where both are equal.
KERNEL(pair, (256), (const Geometry g, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out),
	(g, a, b, out))
{
	after_previous(a, b);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int of_pixel = g.other_pixels == 1 ? 0 : pixel * g.other_c;
	const float y = b[image * (g.other_pixels * g.other_c) + of_pixel + (g.other_c == 1 ? 0 : c)];
	const size_t i = image * (g.out_h * g.out_w * g.out_c) + item;
	const float x = a[i];
	if (g.scheme == PAIR_MUL)
		out[i] = __fmul_rn(x, y);
	else if (g.scheme == PAIR_MASK)
		out[i] = y != 0.0f ? x : 0.0f; // also where y is a NaN
	else
		out[i] = (g.scheme == PAIR_MIN ? x < y : x > y) || x != x ? x : y;
}

// Makes channels first to end of the output: channel c is channel index[c - first] of
// the input, or +0 where that is −1.
KERNEL(gather_float, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out, const int *__restrict__ index),
	(g, in, out, index))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	const int channels = g.end - g.first;
	if (item >= g.out_h * g.out_w * channels)
		return;
	const int pixel = item / channels;
	const int c = item - pixel * channels;
	const int from = index[c];
	const float v = from < 0 ? 0.0f : in[(image * (g.out_h * g.out_w) + pixel) * g.in_c + from];
	out[(image * (g.out_h * g.out_w) + pixel) * g.out_c + g.first + c] = v;
}

// A warp makes a word, each lane brings one bit. The launch before has written the
// channels before first, those in the first word of this one, too.
KERNEL(gather_bits, (256), (const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out, const int *__restrict__ index),
	(g, in, out, index))
{
	after_previous(in, out);
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = at.image;
	const int from = g.first / LANES, to = g.end == g.out_c ? g.out_words : (g.end + LANES - 1) / LANES;
	if (item >= g.out_h * g.out_w * (to - from))
		return;
	const int pixel = item / (to - from);
	const int k = from + item - pixel * (to - from);
	const int c = k * LANES + lane;
	bool plus = false;
	if (c >= g.first && c < g.end) {
		const int bit = index[c - g.first];
		plus = in[(image * (g.out_h * g.out_w) + pixel) * g.in_words + bit / 32] >> (bit % 32) & 1;
	}
	const uint32_t word = __ballot_sync(FULL_WARP, plus);
	if (lane == 0) {
		const size_t i = (image * (g.out_h * g.out_w) + pixel) * g.out_words + k;
		out[i] = k * LANES < g.first ? word | out[i] : word;
	}
}

// The pixel of row y and column x of the output is the one of row index[y] and column
// index[out_h + x], or filled with index[out_h + out_w] where either is -1. A pixel of
// the input holds kh rows and kw columns, one after the other.
KERNEL(pixels_float, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out, const int *__restrict__ index),
	(g, in, out, index))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	const int row = index[y], col = index[g.out_h + x];
	float v = __uint_as_float((uint32_t)index[g.out_h + g.out_w]);
	if (row >= 0 && col >= 0) {
		const int iy = row / g.kh, ix = col / g.kw;
		const int block = (row - iy * g.kh) * g.kw + col - ix * g.kw;
		v = in[((image * g.in_h + iy) * g.in_w + ix) * g.in_c + block * g.out_c + c];
	}
	out[image * (g.out_h * g.out_w * g.out_c) + item] = v;
}

// A thread makes a word, of two of the input where their borders differ.
KERNEL(pixels_bits, (256), (const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out, const int *__restrict__ index),
	(g, in, out, index))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int pixel = item / g.out_words;
	const int k = item - pixel * g.out_words;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	const int row = index[y], col = index[g.out_h + x];
	const int left = g.out_c - k * 32; // channels
	uint32_t word = __uint_as_float((uint32_t)index[g.out_h + g.out_w]) > 0.0f ? 0xffffffffu : 0;
	if (left > 0 && row >= 0 && col >= 0) {
		const int iy = row / g.kh, ix = col / g.kw;
		const int first = ((row - iy * g.kh) * g.kw + col - ix * g.kw) * g.out_c + k * 32;
		in += ((image * g.in_h + iy) * g.in_w + ix) * g.in_words + first / 32;
		word = in[0] >> (first % 32);
		if (first % 32 != 0 && first / 32 + 1 < g.in_words)
			word |= in[1] << (32 - first % 32);
	}
	if (left < 32)
		word = left <= 0 ? 0 : word & ((1u << left) - 1);
	out[image * (g.out_h * g.out_w * g.out_words) + item] = word;
}

// Adds up kh x kw weighted pixels: rows index[y * kh + ky], columns behind all rows.
KERNEL(resample, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out,
	const int *__restrict__ index, const float *__restrict__ weights),
	(g, in, out, index, weights))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int y = pixel / g.out_w, x = pixel - y * g.out_w;
	in += image * (g.in_h * g.in_w * g.in_c) + c;
	const int rows = g.out_h * g.kh;
	float sum = 0.0f;
	for (int ky = y * g.kh; ky < (y + 1) * g.kh; ky++)
		for (int kx = rows + x * g.kw; kx < rows + (x + 1) * g.kw; kx++)
			sum = __fmaf_rn(in[(index[ky] * g.in_w + index[kx]) * g.in_c], __fmul_rn(weights[ky], weights[kx]), sum);
	out[image * (g.out_h * g.out_w * g.out_c) + item] = sum;
}

// A thread finds the out_c largest values of a pixel: the next one is the largest of
// those that come behind the one before. A NaN counts as the smallest.
KERNEL(top_k, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item >= g.out_h * g.out_w)
		return;
	in += (image * (g.out_h * g.out_w) + item) * g.in_c;
	out += (image * (g.out_h * g.out_w) + item) * g.out_c;
	const float least = __uint_as_float(0xff800000u);
	int last = -1;
	float before = -least;
	for (int k = 0; k < g.out_c; k++) {
		int best = -1;
		float most = 0.0f;
		for (int c = 0; c < g.in_c; c++) {
			float v = in[c];
			v = v == v ? v : least;
			if ((v < before || (v == before && c > last)) && (best < 0 || v > most)) {
				best = c;
				most = v;
			}
		}
		last = best;
		before = most;
		out[k] = g.flip ? in[best] : (float)best;
	}
}

// Closes the gaps that padding bits leave between pixels: a warp makes a word,
// each lane brings one bit. out_h and out_w are 1.
KERNEL(flatten_bits, (256), (const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = at.image;
	if (item >= g.out_words)
		return;
	const int i = item * LANES + lane;
	bool plus = false;
	if (i < g.out_c) {
		const int pixel = i / g.in_c;
		const int c = i - pixel * g.in_c;
		plus = in[image * (g.in_h * g.in_w * g.in_words) + pixel * g.in_words + c / 32] >> (c % 32) & 1;
	}
	const uint32_t word = __ballot_sync(FULL_WARP, plus);
	if (lane == 0)
		out[image * g.out_words + item] = word;
}

KERNEL(flatten_float, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = ITEM;
	const size_t image = at.image;
	if (item < g.out_c)
		out[image * g.out_c + item] = in[image * g.out_c + item];
}
