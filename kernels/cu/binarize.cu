// Binarisation of image bytes. grid.z is the image.

#include "binarize.cuh"

static __device__ __forceinline__ int warp_min(int v)
{
	for (int width = LANES / 2; width > 0; width >>= 1)
		v = min(v, __shfl_xor_sync(FULL_WARP, v, width));
	return v;
}

static __device__ __forceinline__ int warp_max(int v)
{
	for (int width = LANES / 2; width > 0; width >>= 1)
		v = max(v, __shfl_xor_sync(FULL_WARP, v, width));
	return v;
}

// The smallest and largest byte of parts (at most 32) of every image:
// ranges[image][part][2]. A block of whole warps looks at a part.
static __device__ __forceinline__ void find_ranges(const Place at, const Geometry g, const uint8_t *__restrict__ in, int *__restrict__ ranges)
{
	after_previous(in);
	__shared__ int lows[LANES], highs[LANES];
	const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
	const int size = g.in_h * g.in_w * g.in_c;
	const size_t image = at.image;
	in += image * size;
	int lo = in[0], hi = in[0];
	for (int i = at.block * blockDim.x + threadIdx.x; i < size; i += g.parts * blockDim.x) {
		lo = min(lo, (int)in[i]);
		hi = max(hi, (int)in[i]);
	}
	lo = warp_min(lo);
	hi = warp_max(hi);
	if (lane == 0) {
		lows[warp] = lo;
		highs[warp] = hi;
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int i = 1; i < (int)blockDim.x / LANES; i++) {
			lo = min(lo, lows[i]);
			hi = max(hi, highs[i]);
		}
		ranges[(image * g.parts + at.block) * 2] = lo;
		ranges[(image * g.parts + at.block) * 2 + 1] = hi;
	}
}

#if !defined(WITHOUT_ENTRIES)
extern "C" __global__ void __launch_bounds__(256)
image_ranges(const Geometry g, const uint8_t *__restrict__ in, int *__restrict__ ranges)
{
	find_ranges(THIS_PLACE, g, in, ranges);
}
#endif

// One thread makes 32 channels of a pixel.
KERNEL(binarize, (256), (const Geometry g, const uint8_t *__restrict__ in, uint32_t *__restrict__ out,
	const int *__restrict__ thresholds, const int *__restrict__ ranges, const uint32_t *__restrict__ flip),
	(g, in, out, thresholds, ranges, flip))
{
	after_previous(in, ranges);
	const int item = at.block * blockDim.x + threadIdx.x;
	const size_t image = at.image;
	int lo = 0, hi = 0;
	if (g.scheme == SCHEME_MINMAX) { // by whole warps, so before any thread leaves
		const int part = min((int)threadIdx.x % LANES, g.parts - 1);
		lo = warp_min(ranges[(image * g.parts + part) * 2]);
		hi = warp_max(ranges[(image * g.parts + part) * 2 + 1]);
	}
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int pixel = item / g.out_words;
	const int block = item - pixel * g.out_words;
	const int y = pixel / g.in_w, x = pixel - y * g.in_w;
	in += image * (g.in_h * g.in_w * g.in_c);
	uint32_t word = 0;
	const int count = min(LANES, g.out_c - block * LANES);
	for (int l = 0; l < count; l++) {
		const int c = block * LANES + l;
		bool plus;
		if (g.scheme == SCHEME_MINMAX)
			plus = 2 * ((int)in[pixel * g.in_c + c] - lo) > hi - lo;
		else
			plus = binarized(g, g.scheme, in, thresholds, y, x, c);
		word |= (uint32_t)plus << l;
	}
	out[image * (g.out_h * g.out_w * g.out_words) + item] = g.flip ? word ^ flip[block] : word;
}
