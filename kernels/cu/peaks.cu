// What a device can do at best, for comparison: loops of nothing but the arithmetic
// of the kernels, one that only reads, the grid barrier, and a launch of nothing. Every thread or warp
// has several independent sums, so that the pipelines are full. The results are
// stored so that nothing is optimised away. Operations per round and warp, where a
// product of ±1 values counts as two:
//
//   peak_popc      32 lanes · 32 words · 32 bits · 2
//   peak_popc_csa  the same
//   peak_mma_and   8 · 16·8·256 · 2
//   peak_mma_xor   8 · 16·8·256 · 2, on 7.5 as 32 products of 8·8·128
//   peak_mma_s8    8 · 16·8·32 · 2

#include "common.cuh"
#include "ones.cuh"

#define SUMS 8

#define PEAK(name) extern "C" __global__ void __launch_bounds__(256) name(int rounds, uint32_t *__restrict__ out)

DEVICE uint32_t seed() { return (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u; }

// Words that the compiler cannot foresee.
DEVICE void seeds(uint32_t (&v)[SUMS], const uint32_t *out)
{
	for (int i = 0; i < SUMS; i++)
		v[i] = seed() ^ out[i];
}

PEAK(peak_popc)
{
	uint32_t x[SUMS], sums[SUMS] = {};
	seeds(x, out);
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int k = 0; k < 4; k++)
#pragma unroll
			for (int i = 0; i < SUMS; i++)
				sums[i] += __popc(x[i] ^ sums[(i + 1 + k) % SUMS]);
	uint32_t all = 0;
	for (int i = 0; i < SUMS; i++)
		all += sums[i];
	out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

// Words as Ones counts them.
PEAK(peak_popc_csa)
{
	uint32_t x[SUMS];
	Ones sums[4];
	seeds(x, out);
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			uint32_t w[SUMS];
#pragma unroll
			for (int k = 0; k < SUMS; k++)
				w[k] = sums[(i + k) % 4].carries;
			sums[i].add(x, w);
		}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sums[0].total() + sums[1].total() + sums[2].total() + sums[3].total();
}

#if __CUDA_ARCH__ >= 800
#define PEAK_MMA(name, multiply) \
	PEAK(name) \
	{ \
		int32_t sums[SUMS][4] = {}; \
		uint32_t x[SUMS]; \
		seeds(x, out); \
		const uint32_t a[4] = {x[0], x[1], x[2], x[3]}, b[2] = {x[4], x[5]}; \
		for (int r = 0; r < rounds; r++) \
			_Pragma("unroll") for (int i = 0; i < SUMS; i++) \
				multiply(sums[i], a, b); \
		uint32_t all = 0; \
		for (int i = 0; i < SUMS; i++) \
			all += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3]; \
		out[blockIdx.x * blockDim.x + threadIdx.x] = all; \
	}
PEAK_MMA(peak_mma_and, mma_and_m16n8k256)
PEAK_MMA(peak_mma_xor, mma_xor_m16n8k256)
PEAK_MMA(peak_mma_s8, mma_s8_m16n8k32)
#elif __CUDA_ARCH__ >= 750
PEAK(peak_mma_xor)
{
	int32_t sums[SUMS][2] = {};
	uint32_t x[SUMS];
	seeds(x, out);
	for (int r = 0; r < rounds; r++)
#pragma unroll
		for (int k = 0; k < 4; k++)
#pragma unroll
			for (int i = 0; i < SUMS; i++)
				mma_xor_m8n8k128(sums[i], x[k], x[4 + k]);
	uint32_t all = 0;
	for (int i = 0; i < SUMS; i++)
		all += sums[i][0] + sums[i][1];
	out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}
#endif

// Reads the first quads · 16 bytes of in, rounds times.
struct Reads {
	int rounds, quads;
};

extern "C" __global__ void __launch_bounds__(256) peak_read(const Reads reads, uint32_t *__restrict__ out, const uint4 *__restrict__ in)
{
	const int item = blockIdx.x * blockDim.x + threadIdx.x, items = gridDim.x * blockDim.x;
	uint32_t all = 0;
	for (int r = 0; r < reads.rounds; r++)
		for (int i = item; i < reads.quads; i += items) {
			const uint4 v = in[i];
			all += (v.x ^ v.y ^ v.z ^ v.w) * (uint32_t)(2 * r + 1); // so that no round is another's
		}
	out[item] = all;
}

// rounds barriers across the grid, in a cooperative launch. barrier is zero before
// the first.
extern "C" __global__ void __launch_bounds__(256) peak_barrier(int rounds, uint32_t *__restrict__ barrier)
{
	for (int r = 0; r < rounds; r++)
		grid_sync(barrier);
}

// A launch, or a node of a graph.
extern "C" __global__ void peak_empty() {}
