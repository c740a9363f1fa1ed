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

template <typename T>
static __device__ __forceinline__ void affine(const Geometry &g, const T *in, float *out, const float *scale, const float *shift)
{
	const int item = ITEM;
	const size_t image = blockIdx.z;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int c = item % g.out_c;
	out[image * (g.out_h * g.out_w * g.out_c) + item] = scaled(g, value_of(g, in, image, item, c), scale, shift, c);
}

// Float32 of bytes, bits or floats.
#define AFFINE(name, T) \
	extern "C" __global__ void __launch_bounds__(256) \
	name(const Geometry g, const T *__restrict__ in, float *__restrict__ out, \
		const float *__restrict__ scale, const float *__restrict__ shift) \
	{ \
		affine(g, in, out, scale, shift); \
	}
AFFINE(affine_bytes, uint8_t)
AFFINE(affine_bits, uint32_t)
AFFINE(affine_float, float)

// A warp makes a word: each lane looks at one channel.
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
	const bool plus = c < g.out_c && in[(image * (g.out_h * g.out_w) + pixel) * g.out_c + c] >= thresholds[c];
	const uint32_t word = __ballot_sync(FULL_WARP, plus);
	if (lane == 0)
		out[image * (g.out_h * g.out_w * g.out_words) + item] = g.flip ? word ^ flip[block] : word;
}

extern "C" __global__ void __launch_bounds__(256)
add(const Geometry g, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out)
{
	const int item = ITEM;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const size_t i = (size_t)blockIdx.z * (g.out_h * g.out_w * g.out_c) + item;
	out[i] = rectify(__fadd_rn(a[i], b[i]), g.relu);
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
