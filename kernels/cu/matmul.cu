// Products of the rows of two tensors, and the swap of columns and channels.

#include "common.cuh"

#define MATMUL_TILE 32 // rows of either tensor for a block of threads
#define MATMUL_PART 4  // of them for a thread

// A block makes a tile of outputs of a row, 32 pixels by 32: 32 values or words of each of
// their rows are brought to shared memory at a time. A warp has four pixels, a lane an output.
struct BitProduct {
	typedef uint32_t Value;
	typedef int Sum;
	static __device__ __forceinline__ int depth(const Geometry &g) { return g.in_words; }
	static __device__ __forceinline__ int add(int sum, uint32_t x, uint32_t y) { return sum + __popc(x ^ y); }
	static __device__ __forceinline__ float result(const Geometry &g, int sum) { return (float)(g.in_c - 2 * sum); }
};
struct FloatProduct {
	typedef float Value;
	typedef float Sum;
	static __device__ __forceinline__ int depth(const Geometry &g) { return g.in_c; }
	static __device__ __forceinline__ float add(float sum, float x, float y) { return __fmaf_rn(x, y, sum); }
	static __device__ __forceinline__ float result(const Geometry &, float sum) { return sum; }
};

template <typename P>
static __device__ __forceinline__ void multiply(const Place at, const Geometry &g, const typename P::Value *a, const typename P::Value *b,
	float *out)
{
	typedef typename P::Value Value;
	__shared__ Value tiles[2][MATMUL_TILE][MATMUL_TILE + 1];
	const int depth = P::depth(g);
	const int across = (g.out_c + MATMUL_TILE - 1) / MATMUL_TILE, down = (g.out_w + MATMUL_TILE - 1) / MATMUL_TILE;
	const int row = at.block / (across * down), tile = at.block - row * (across * down);
	const int pixel = tile / across * MATMUL_TILE, output = (tile - tile / across * across) * MATMUL_TILE;
	const size_t line = at.image * g.out_h + row;
	a += line * g.out_w * depth;
	b += line * g.out_c * depth;
	const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
	typename P::Sum sums[MATMUL_PART] = {};
	for (int first = 0; first < depth; first += MATMUL_TILE) {
		const int k = first + lane;
		for (int i = warp; i < MATMUL_TILE; i += MATMUL_TILE / MATMUL_PART) {
			tiles[0][i][lane] = k < depth && pixel + i < g.out_w ? a[(size_t)(pixel + i) * depth + k] : Value(0);
			tiles[1][i][lane] = k < depth && output + i < g.out_c ? b[(size_t)(output + i) * depth + k] : Value(0);
		}
		__syncthreads();
		const int n = min(MATMUL_TILE, depth - first);
		for (int i = 0; i < n; i++) {
			const Value y = tiles[1][lane][i];
#pragma unroll
			for (int p = 0; p < MATMUL_PART; p++)
				sums[p] = P::add(sums[p], tiles[0][warp * MATMUL_PART + p][i], y);
		}
		__syncthreads();
	}
#pragma unroll
	for (int p = 0; p < MATMUL_PART; p++) {
		const int x = pixel + warp * MATMUL_PART + p;
		if (x < g.out_w && output + lane < g.out_c)
			out[(line * g.out_w + x) * g.out_c + output + lane] = P::result(g, sums[p]);
	}
}

KERNEL(matmul_bits, (256), (const Geometry g, const uint32_t *__restrict__ a, const uint32_t *__restrict__ b, float *__restrict__ out),
	(g, a, b, out))
{
	after_previous(a, b);
	multiply<BitProduct>(at, g, a, b, out);
}

KERNEL(matmul_float, (256), (const Geometry g, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out),
	(g, a, b, out))
{
	after_previous(a, b);
	multiply<FloatProduct>(at, g, a, b, out);
}

KERNEL(transpose_float, (256), (const Geometry g, const float *__restrict__ in, float *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = at.block * blockDim.x + threadIdx.x;
	if (item >= g.out_h * g.out_w * g.out_c)
		return;
	const int line = item / g.out_c, x = item - line * g.out_c;
	const int row = line / g.out_w, c = line - row * g.out_w;
	out[at.image * (g.out_h * g.out_w * g.out_c) + item] = in[((at.image * g.in_h + row) * g.in_w + x) * g.in_c + c];
}

// A warp makes a word, each lane brings one bit.
KERNEL(transpose_bits, (256), (const Geometry g, const uint32_t *__restrict__ in, uint32_t *__restrict__ out),
	(g, in, out))
{
	after_previous(in);
	const int item = (at.block * blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
	if (item >= g.out_h * g.out_w * g.out_words)
		return;
	const int line = item / g.out_words, k = item - line * g.out_words;
	const int row = line / g.out_w, c = line - row * g.out_w;
	const int x = k * LANES + lane;
	bool plus = false;
	if (x < g.out_c)
		plus = in[((at.image * g.in_h + row) * g.in_w + x) * g.in_words + c / 32] >> (c % 32) & 1;
	const uint32_t word = __ballot_sync(FULL_WARP, plus);
	if (lane == 0)
		out[at.image * (g.out_h * g.out_w * g.out_words) + item] = word;
}
