// Products of Hopper's warpgroups (wgmma) in a loop, as those of peaks.cu, for compute
// capability 9.0 alone. Matrices lie in shared memory as in conv_wgmma.cu. That of pixels
// begins at a multiple of 128 bytes, or 16 bytes behind one, as it does at most taps: whether
// that costs anything is for a device to say. Operations per round and warp, of which four
// make a product of 64 pixels and 128 channels:
//
//   peak_wgmma_and, peak_wgmma_and_16    16·128·256 · 2
//   peak_wgmma_u8s8, peak_wgmma_u8s8_16  16·128·32 · 2, in peaks_wgmma_bytes.cu

#include "common.cuh"

enum Operands { OF_BITS, OF_BYTES };

#define WARPGROUPS 2
#define ROW 10 // pixels of a row under a tile of 8×8 and a window of 3×3

// Shared memory, in 16 bytes: the weights, and what each warpgroup has of pixels.
#define WEIGHTS 256
#define PIXELS 256

template <Operands F, bool FIRST> DEVICE void multiply(int32_t (&sums)[16][4], uint64_t a, uint64_t w)
{
	if (F == OF_BYTES)
		wgmma_u8s8_m64n128k32<FIRST>(sums, a, w);
	else
		wgmma_and_m64n128k256<FIRST>(sums, a, w);
}

template <Operands F> DEVICE void products(int rounds, uint32_t *out, int begin, uint4 *shared)
{
	const int own = blockIdx.x * blockDim.x + threadIdx.x;
	for (int i = threadIdx.x; i < WEIGHTS + WARPGROUPS * PIXELS; i += blockDim.x) {
		const uint32_t v = (own + i) * 2654435761u ^ out[own];
		shared[i] = make_uint4(v, v * 3, v * 5, v * 7);
	}
	fence_proxy_async();
	__syncthreads();
	const uint64_t w = matrix_descriptor(shared, 16 * WEIGHTS / 2, 16 * 8);
	const uint64_t a = matrix_descriptor(shared + WEIGHTS + threadIdx.x / 128 * PIXELS + begin, 16 * PIXELS / 2, 16 * ROW);
	int32_t sums[16][4];
	const int products = __shfl_sync(FULL_WARP, rounds, 0); // see conv_wgmma.cu
	wgmma_fence();
	multiply<F, true>(sums, a, w);
	for (int i = 1; i < products; i++)
		multiply<F, false>(sums, a, w);
	wgmma_commit();
	wgmma_wait<0>(sums);
	uint32_t all = 0;
#pragma unroll
	for (int j = 0; j < 16; j++)
#pragma unroll
		for (int k = 0; k < 4; k++)
			all += sums[j][k];
	out[own] = all;
}

#define PEAK(name, operands, begin) \
	extern "C" __global__ void __launch_bounds__(WARPGROUPS * 128) name(int rounds, uint32_t *__restrict__ out) \
	{ \
		DYNAMIC_SHARED(uint4, shared); \
		products<operands>(rounds, out, begin, shared); \
	}

#if !defined(WITHOUT_ENTRIES)
PEAK(peak_wgmma_and, OF_BITS, 0)
PEAK(peak_wgmma_and_16, OF_BITS, 1)
#endif
