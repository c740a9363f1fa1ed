// Pooling, and steps that treat every value by itself. One thread makes one value,
// or one word of 32 channels; grid.z is the image.

#include "common.cuh"

#define ITEM (blockIdx.x * blockDim.x + threadIdx.x)

// The OR over the window.
extern "C" __global__ void __launch_bounds__(256)
max_pool_bits(const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out,
	const uint32_t *__restrict__ flip)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
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
extern "C" __global__ void __launch_bounds__(256)
max_pool_float(const Geometry g, const float *__restrict__ in, float *__restrict__ out)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
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

// The mean a/n, for divisors n and y = 1/n, by the sequence of the numeric contract.
static __device__ __forceinline__ float divided(float a, const float *divisors)
{
	const float n = divisors[0], y = divisors[1];
	const float q = __fmul_rn(a, y);
	return __fmaf_rn(__fmaf_rn(-n, q, a), y, q);
}

// divisors: two for each pixel of the output.
extern "C" __global__ void __launch_bounds__(256)
avg_pool_bits(const Geometry g, const uint32_t *__restrict__ in, float *__restrict__ out, const float *__restrict__ divisors)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
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

extern "C" __global__ void __launch_bounds__(256)
avg_pool_float(const Geometry g, const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ divisors)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
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

// The hyperbolic tangent: a table of polynomials of the distance from the middle of an
// interval, each of eight numbers, from 2^-12 to 10 (see internal/f32).
static __device__ float table_tanh(float v, const float *table)
{
	const uint32_t all = __float_as_uint(v), b = all & 0x7fffffffu;
	if (b < 0x39800000u || b > 0x7f800000u)
		return v;
	float t = 1.0f;
	if (b < 0x41200000u) {
		const float *row = table + ((b - 0x39800000u) >> 20) * 8;
		const float u = __fadd_rn(__uint_as_float(b), -__uint_as_float((b & 0xfff00000u) | 0x80000u));
		float p = row[7];
#pragma unroll
		for (int i = 6; i > 0; i--)
			p = __fadd_rn(__fmul_rn(p, u), row[i]);
		t = __fadd_rn(row[0], p);
	}
	return __uint_as_float(__float_as_uint(t) | (all & 0x80000000u));
}

template <typename T>
static __device__ __forceinline__ void affine(const Geometry &g, const T *in, float *out, const float *scale, const float *shift, const float *slope)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int c = item % g.out_c;
	float v = scaled(g, value_of(g, in, image, item, c), scale, shift, slope, c);
	if (g.activation == ACTIVATION_TANH)
		v = table_tanh(v, slope);
	out[image * (g.out_h * g.out_w * g.out_c) + item] = v;
}

// Float32 of bytes, bits or floats.
#define AFFINE(name, T) \
	extern "C" __global__ void __launch_bounds__(256) \
	name(const Geometry g, const T *__restrict__ in, float *__restrict__ out, \
		const float *__restrict__ scale, const float *__restrict__ shift, const float *__restrict__ slope) \
	{ \
		affine(g, in, out, scale, shift, slope); \
	}
AFFINE(affine_bytes, uint8_t)
AFFINE(affine_bits, uint32_t)
AFFINE(affine_float, float)

// A warp makes a word: each lane looks at one channel of the output. Those of a channel
// of the input lie side by side.
extern "C" __global__ void __launch_bounds__(256)
sign_bits(const Geometry g, const float *__restrict__ in, uint32_t *__restrict__ out,
	const float *__restrict__ thresholds, const uint32_t *__restrict__ flip)
{
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = blockIdx.z;
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

// first plus the number of thresholds that a value reaches, end - first of them for all
// channels or for each of other_c.
extern "C" __global__ void __launch_bounds__(256)
quantize(const Geometry g, const float *__restrict__ in, float *__restrict__ out, const float *__restrict__ thresholds)
{
	const int item = ITEM;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const size_t i = (size_t)blockIdx.z * (g.out_h * g.out_w * g.out_c) + item;
	const int n = g.end - g.first;
	thresholds += g.other_c == 1 ? 0 : item % g.out_c * n;
	const float v = in[i];
	int level = g.first;
	for (int k = 0; k < n; k++)
		level += v >= thresholds[k];
	out[i] = (float)level;
}

extern "C" __global__ void __launch_bounds__(256)
add(const Geometry g, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out,
	const float *__restrict__ slope)
{
	const int item = ITEM;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const size_t i = (size_t)blockIdx.z * (g.out_h * g.out_w * g.out_c) + item;
	out[i] = activate(g.activation, __fadd_rn(a[i], b[i]), slope, item % g.out_c);
}

// b has the values of all pixels or of one, and of all channels or of one.
extern "C" __global__ void __launch_bounds__(256)
mul(const Geometry g, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int pixel = item / g.out_c;
	const int c = item - pixel * g.out_c;
	const int of_pixel = g.other_pixels == 1 ? 0 : pixel * g.other_c;
	const float factor = b[image * (g.other_pixels * g.other_c) + of_pixel + (g.other_c == 1 ? 0 : c)];
	const size_t i = image * (g.out_h * g.out_w * g.out_c) + item;
	out[i] = __fmul_rn(a[i], factor);
}

// Makes channels first to end of the output: channel c is channel index[c - first] of
// the input, or +0 where that is −1.
extern "C" __global__ void __launch_bounds__(256)
gather_float(const Geometry g, const float *__restrict__ in, float *__restrict__ out, const int *__restrict__ index)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
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
extern "C" __global__ void __launch_bounds__(256)
gather_bits(const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out, const int *__restrict__ index)
{
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = blockIdx.z;
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

// Closes the gaps that padding bits leave between pixels: a warp makes a word,
// each lane brings one bit. out_h and out_w are 1.
extern "C" __global__ void __launch_bounds__(256)
flatten_bits(const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out)
{
	const int item = ITEM / LANES, lane = threadIdx.x % LANES;
	const size_t image = blockIdx.z;
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

extern "C" __global__ void __launch_bounds__(256)
flatten_float(const Geometry g, const float *__restrict__ in, float *__restrict__ out)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
	if (item < g.out_c)
		out[image * g.out_c + item] = in[image * g.out_c + item];
}
