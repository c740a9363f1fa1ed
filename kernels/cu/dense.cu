// Dense layers on bits and bytes, with everything that follows: xor and popcount, or
// products of bytes, of the row of the input with a row of weights per output. A block
// makes 8 outputs, which are a byte of the packed result; rows are read as pairs of
// words, or four of them, so coalesced. weights: [output][word].

#include "mma.cuh"

#define OUTPUTS 8 // of a block

#define DENSE_PARAMS \
	const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const int *__restrict__ thresholds, \
	const float *__restrict__ scale, const float *__restrict__ shift, const float *__restrict__ slope, \
	const uint32_t *__restrict__ flip

// finish_dense stores the outputs of the sums of the block's outputs for an image. All threads
// call it, the first of each output with its sum.
static __device__ __forceinline__ void finish_dense(const Place at, const Geometry &g, void *out, const int *thresholds,
	const float *scale, const float *shift, const float *slope, const uint32_t *flip, int (&sums)[OUTPUTS])
{
	__syncthreads();
	const int i = threadIdx.x, o = at.block * OUTPUTS + i;
	if (!g.to_bits) {
		if (i < OUTPUTS && o < g.out_c)
			((float *)out)[at.image * g.out_c + o] = scaled(g, (float)sums[i], scale, shift, slope, o);
	} else if (i == 0) {
		uint32_t byte = 0;
		for (int k = 0; k < OUTPUTS; k++)
			if (o + k < g.out_c)
				byte |= (uint32_t)(sums[k] >= thresholds[o + k]) << k;
		if (g.flip)
			byte ^= flip[o / 32] >> (o % 32);
		((uint8_t *)out)[at.image * (4 * g.out_words) + at.block] = (uint8_t)byte;
	}
	__syncthreads();
}

// A warp per output, for IMAGES images at once, which share the weights: the place
// counts those.
template <int IMAGES>
static __device__ __forceinline__ void dense_warp(const Place at, DENSE_PARAMS)
{
	__shared__ int sums[IMAGES][OUTPUTS];
	const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
	const int o = at.block * OUTPUTS + warp, pairs = o < g.out_c ? g.row_words / 2 : 0;
	const int first = (int)at.image * IMAGES;
	const uint2 *w = (const uint2 *)weights + (size_t)o * (g.row_words / 2);
#if BEGINS_EARLY
	// Weights come from no other kernel, and take longest at one image. Loads of what is
	// known to be constant would be moved behind the wait.
	enum { EARLY = IMAGES == 1 ? 8 : 4 };
	uint2 early[EARLY];
	w = unknown_pointer(w);
#pragma unroll
	for (int i = 0; i < EARLY; i++)
		early[i] = lane + i * LANES < pairs ? w[lane + i * LANES] : make_uint2(0, 0);
#else
	enum { EARLY = 0 };
#endif
	after_previous(in);
	int sum[IMAGES];
	const uint2 *x[IMAGES];
#pragma unroll
	for (int i = 0; i < IMAGES; i++) {
		sum[i] = 0;
		x[i] = (const uint2 *)in + (size_t)min(first + i, g.images - 1) * (g.row_words / 2);
	}
#if BEGINS_EARLY
#pragma unroll
	for (int i = 0; i < IMAGES; i++) {
		uint2 a[EARLY];
#pragma unroll
		for (int j = 0; j < EARLY; j++)
			a[j] = lane + j * LANES < pairs ? x[i][lane + j * LANES] : make_uint2(0, 0);
#pragma unroll
		for (int j = 0; j < EARLY; j++)
			sum[i] += __popc(a[j].x ^ early[j].x) + __popc(a[j].y ^ early[j].y);
	}
#endif
#pragma unroll 4
	for (int k = lane + EARLY * LANES; k < pairs; k += LANES) {
		const uint2 v = w[k];
#pragma unroll
		for (int i = 0; i < IMAGES; i++) {
			const uint2 a = x[i][k];
			sum[i] += __popc(a.x ^ v.x) + __popc(a.y ^ v.y);
		}
	}
#pragma unroll
	for (int i = 0; i < IMAGES; i++) {
		const int total = warp_sum(sum[i]);
		if (lane == 0)
			sums[i][warp] = g.taps - 2 * total;
	}
	for (int i = 0; i < IMAGES && first + i < g.images; i++)
		finish_dense(Place{at.block, (size_t)(first + i)}, g, out, thresholds, scale, shift, slope, flip, sums[i]);
}

// Rows of signed bytes are of row_words, a multiple of vector; images have less bytes where
// they are no whole words.
#define DENSE_BYTES_PARAMS \
	const Geometry g, const uint8_t *__restrict__ in, void *__restrict__ out, \
	const uint32_t *__restrict__ weights, const int *__restrict__ bias, const int *__restrict__ thresholds, \
	const float *__restrict__ scale, const float *__restrict__ shift, const float *__restrict__ slope, \
	const uint32_t *__restrict__ flip

// As dense_warp. Four words are read at a time where images have so many.
template <int IMAGES>
static __device__ __forceinline__ void dense_bytes(const Place at, DENSE_BYTES_PARAMS)
{
	__shared__ int sums[IMAGES][OUTPUTS];
	after_previous(in);
	const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
	const int o = at.block * OUTPUTS + warp, words = o < g.out_c ? g.row_words : 0;
	const int first = (int)at.image * IMAGES;
	const uint32_t *w = weights + (size_t)o * g.row_words;
	int sum[IMAGES];
	size_t from[IMAGES]; // byte
#pragma unroll
	for (int i = 0; i < IMAGES; i++) {
		sum[i] = 0;
		from[i] = (size_t)min(first + i, g.images - 1) * g.taps;
	}
	if (g.vector == 4) {
		for (int k = lane; k < words / 4; k += LANES) {
			const uint4 v = ((const uint4 *)w)[k];
#pragma unroll
			for (int i = 0; i < IMAGES; i++) {
				const uint4 a = ((const uint4 *)(in + from[i]))[k];
				sum[i] = dp4a_us(a.x, (int)v.x, sum[i]);
				sum[i] = dp4a_us(a.y, (int)v.y, sum[i]);
				sum[i] = dp4a_us(a.z, (int)v.z, sum[i]);
				sum[i] = dp4a_us(a.w, (int)v.w, sum[i]);
			}
		}
	} else {
		for (int k = lane; k < words; k += LANES) {
			const int v = (int)w[k];
#pragma unroll
			for (int i = 0; i < IMAGES; i++) {
				const int skew = (int)(from[i] & 3);
				sum[i] = dp4a_us(load_bytes(in + from[i] - skew, 4 * k + skew, min(4, g.taps - 4 * k)), v, sum[i]);
			}
		}
	}
#pragma unroll
	for (int i = 0; i < IMAGES; i++) {
		const int total = warp_sum(sum[i]);
		if (lane == 0)
			sums[i][warp] = o < g.out_c ? total + bias[o] : 0;
	}
	for (int i = 0; i < IMAGES && first + i < g.images; i++)
		finish_dense(Place{at.block, (size_t)(first + i)}, g, out, thresholds, scale, shift, slope, flip, sums[i]);
}

#if !defined(WITHOUT_ENTRIES)
#define DENSE_BYTES(name, IMAGES) \
	extern "C" __global__ void __launch_bounds__(LANES * OUTPUTS, 4) name(DENSE_BYTES_PARAMS) \
	{ \
		dense_bytes<IMAGES>(THIS_PLACE, g, in, out, weights, bias, thresholds, scale, shift, slope, flip); \
	}
DENSE_BYTES(dense_bytes_i1, 1)
DENSE_BYTES(dense_bytes_i4, 4)

#define DENSE(name, IMAGES) \
	extern "C" __global__ void __launch_bounds__(LANES * OUTPUTS, 4) name(DENSE_PARAMS) \
	{ \
		dense_warp<IMAGES>(THIS_PLACE, g, in, out, weights, thresholds, scale, shift, slope, flip); \
	}
DENSE(dense_warp_i1, 1)
DENSE(dense_warp_i4, 4)

// The paper's: 64 threads per output, each one of 64 segments of the row, then a
// reduction in shared memory.
#define SEGMENTS 64

extern "C" __global__ void __launch_bounds__(SEGMENTS * OUTPUTS)
dense_block(DENSE_PARAMS)
{
	__shared__ int partial[OUTPUTS][SEGMENTS];
	__shared__ int sums[OUTPUTS];
	after_previous(in);
	const int segment = threadIdx.x % SEGMENTS, i = threadIdx.x / SEGMENTS;
	const int o = blockIdx.x * OUTPUTS + i;
	const size_t image = blockIdx.z;
	int sum = 0;
	if (o < g.out_c)
		for (int k = segment; k < g.row_words; k += SEGMENTS)
			sum += __popc(in[image * g.row_words + k] ^ weights[(size_t)o * g.row_words + k]);
	partial[i][segment] = sum;
	__syncthreads();
	for (int width = SEGMENTS / 2; width > 0; width >>= 1) {
		if (segment < width)
			partial[i][segment] += partial[i][segment + width];
		__syncthreads();
	}
	if (segment == 0)
		sums[i] = g.taps - 2 * partial[i][0];
	finish_dense(THIS_PLACE, g, out, thresholds, scale, shift, slope, flip, sums);
}
#endif
