// Convolutions whose input tile lies in shared memory, an implicit GEMM: the part
// that conv_bits_tile.cu and conv_bytes.cu share.
//
// A block computes 32 output channels of tile_y × tile_x pixels (before pooling)
// of an image. It brings the input under them, borders filled, to shared memory;
// then a warp takes PIXELS pixels at a time, each lane one output channel. A
// weight, read coalesced, serves PIXELS pixels; a word of input is the same for
// all lanes, which is a broadcast. POOL is the side of the pooling window: the
// pixels of PIXELS/POOL² windows, which are thresholded and ORed in registers
// before the ballot makes the packed word.
//
// The shared memory holds, first, where the input of each step of the sum is,
// relative to the first tap: so windows, dilations and channels need neither
// divisions nor code of their own.
#ifndef BCNN_TILE_CUH
#define BCNN_TILE_CUH

#include "common.cuh"
#include "ones.cuh"

template <int VEC> struct Words;
template <> struct Words<1> { typedef uint32_t type; };
template <> struct Words<2> { typedef uint2 type; };
template <> struct Words<4> { typedef uint4 type; };

template <int VEC>
static __device__ __forceinline__ void load(uint32_t *to, const uint32_t *from)
{
	const typename Words<VEC>::type v = *(const typename Words<VEC>::type *)from;
	const uint32_t *w = (const uint32_t *)&v;
#pragma unroll
	for (int j = 0; j < VEC; j++)
		to[j] = w[j];
}

// Where the lanes' sums go. thresholds and correction are padded to whole blocks.
struct Epilogue {
	void *out;
	const int *bias; // of bytes
	const int *thresholds;
	const float *scale, *shift, *slope;
	const uint32_t *flip;
	const int *rows, *cols, *correction; // of bits
};

// Sums of bits.
struct SumBits {
	typedef Ones Sum;
	static __device__ __forceinline__ int value(const Geometry &g, const Epilogue &e, int sum, int o, int y, int x)
	{
		int acc = g.taps - 2 * sum;
		if (g.border)
			acc += e.correction[(e.rows[y] * g.cols + e.cols[x]) * (g.blocks * LANES) + o];
		return acc;
	}
};

// Sums of bytes, four channels of a word at once.
struct SumBytes {
	struct Sum {
		int sum = 0;
		__device__ __forceinline__ void add(int, int, uint32_t a, uint32_t w) { sum = dp4a_us(a, (int)w, sum); }
		template <int N> __device__ __forceinline__ void add(const uint32_t (&a)[N], const uint32_t (&w)[N])
		{
#pragma unroll
			for (int i = 0; i < N; i++)
				add(i, N, a[i], w[i]);
		}
		__device__ __forceinline__ int total() const { return sum; }
	};
	static __device__ __forceinline__ int value(const Geometry &, const Epilogue &e, int sum, int o, int, int)
	{
		return sum + e.bias[o];
	}
};

// Where a block works.
struct Tile {
	int block, y0, x0; // channels; first pixel before pooling
	int steps;         // of the sum, VEC words each
	uint32_t *offsets, *input; // in shared memory
};

// words is how many words of a pixel a tap has, pitch how many lie in shared
// memory. The offsets take a multiple of 16 bytes. ROUND is what steps are a multiple of:
// those beyond the window are at its start.
template <int VEC, int ROUND = 1>
static __device__ __forceinline__ Tile make_tile(const Geometry &g, uint32_t *shared, int pitch)
{
	Tile t;
	const int ty = blockIdx.x / g.tiles_x;
	t.block = blockIdx.y;
	t.y0 = ty * g.tile_y;
	t.x0 = (blockIdx.x - ty * g.tiles_x) * g.tile_x;
	const int vectors = g.words / VEC;
	const int steps = g.kh * g.kw * vectors;
	t.steps = (steps + ROUND - 1) / ROUND * ROUND;
	t.offsets = shared;
	t.input = shared + (t.steps + 3) / 4 * 4;
	for (int i = threadIdx.x; i < t.steps; i += blockDim.x) {
		const int tap = i / vectors, ky = tap / g.kw;
		t.offsets[i] = i >= steps ? 0
			: (ky * g.dilation_h * g.tile_w + (tap - ky * g.kw) * g.dilation_w) * pitch + (i - tap * vectors) * VEC;
	}
	return t;
}

// store_floats makes the float32 outputs of the sums of neighbouring pixels.
template <typename SUM, int PIXELS>
static __device__ __forceinline__ void store_floats(const Geometry &g, const Tile &t, const Epilogue &e, int y, int x, const int (&sum)[PIXELS])
{
	const int o = t.block * LANES + threadIdx.x % LANES;
	if (o >= g.out_c)
		return;
	const int cy = min(t.y0 + y, g.conv_h - 1);
	float v[PIXELS];
#pragma unroll
	for (int p = 0; p < PIXELS; p++)
		v[p] = (float)SUM::value(g, e, sum[p], o, cy, min(t.x0 + x + p, g.conv_w - 1));
	if (g.scaled) {
		const float scale = e.scale[o], shift = e.shift[o];
#pragma unroll
		for (int p = 0; p < PIXELS; p++)
			v[p] = __fmaf_rn(v[p], scale, shift);
	}
	activate_all<0>(g.activation, v, e.slope, o);
	float *out = (float *)e.out + ((size_t)blockIdx.z * (g.out_h * g.out_w) + cy * g.out_w + t.x0 + x) * g.out_c + o;
#pragma unroll
	for (int p = 0; p < PIXELS; p++)
		if (t.x0 + x + p < g.conv_w)
			out[p * g.out_c] = v[p];
}

// store makes the result of the sums of a warp's pixels, of which (y, x) of the tile is
// the first: those of a pooling window follow each other.
template <typename SUM, int PIXELS, int POOL>
static __device__ __forceinline__ void store(const Geometry &g, const Tile &t, const Epilogue &e, int y, int x, const typename SUM::Sum (&sums)[PIXELS])
{
	const int WINDOW = POOL * POOL, RESULTS = PIXELS / WINDOW;
	int sum[PIXELS];
#pragma unroll
	for (int p = 0; p < PIXELS; p++)
		sum[p] = sums[p].total();
	if (!g.to_bits) { // which is pooled nowhere
		if (POOL == 1)
			store_floats<SUM>(g, t, e, y, x, sum);
		return;
	}
	const int lane = threadIdx.x % LANES, o = t.block * LANES + lane;
	const size_t image = blockIdx.z;
	// Rows and columns of the tile beyond the image have sums of zeros, which
	// are not stored.
	uint32_t mine = 0;
#pragma unroll
	for (int r = 0; r < RESULTS; r++) {
		bool plus = false;
#pragma unroll
		for (int i = 0; i < WINDOW; i++) {
			const int cy = min(t.y0 + y + i / POOL, g.conv_h - 1), cx = min(t.x0 + x + r * POOL + i % POOL, g.conv_w - 1);
			const int acc = SUM::value(g, e, sum[r * WINDOW + i], o, cy, cx);
			plus = plus || acc >= e.thresholds[o];
		}
		const uint32_t word = __ballot_sync(FULL_WARP, plus);
		if (lane == r)
			mine = word;
	}
	const int oy = (t.y0 + y) / POOL, ox = (t.x0 + x) / POOL + lane;
	if (lane < RESULTS && ox < g.out_w) {
		mine &= word_mask(t.block, g.out_c);
		((uint32_t *)e.out)[(image * (g.out_h * g.out_w) + oy * g.out_w + ox) * g.out_words + t.block] =
			g.flip ? mine ^ e.flip[t.block] : mine;
	}
}

// sum_tile is called by all threads of a block, after the input has been stored
// and before the barrier. weights: [block][step][lane][VEC].
template <typename SUM, int VEC, int PIXELS, int POOL>
static __device__ __forceinline__ void sum_tile(const Geometry &g, const Tile &t, int pitch, const uint32_t *weights, const Epilogue &e)
{
	__syncthreads();
	// As many steps at a time make words enough for full adders, and registers suffice.
	const int WINDOW = POOL * POOL, RESULTS = PIXELS / WINDOW, STEPS = VEC == 1 ? 4 : 3;
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
	const int across = g.tile_x / (RESULTS * POOL), units = across * (g.tile_y / POOL);
	weights += ((size_t)t.block * t.steps * LANES + lane) * VEC;
	for (int unit = threadIdx.x / LANES; unit < units; unit += warps) {
		const int uy = unit / across;
		const int y = uy * POOL, x = (unit - uy * across) * RESULTS * POOL; // of the first pixel, in the tile
		if (t.y0 + y >= g.conv_h || t.x0 + x >= g.conv_w)
			continue;
		int from[PIXELS];
		typename SUM::Sum sum[PIXELS];
#pragma unroll
		for (int p = 0; p < PIXELS; p++) {
			const int py = p % WINDOW / POOL, px = p / WINDOW * POOL + p % POOL;
			from[p] = ((y + py) * g.stride_h * g.tile_w + (x + px) * g.stride_w) * pitch;
		}
		const uint32_t *w = weights;
		int s = 0;
		for (; s + STEPS <= t.steps; s += STEPS, w += STEPS * LANES * VEC) {
			uint32_t u[STEPS * VEC];
			int at[STEPS];
#pragma unroll
			for (int i = 0; i < STEPS; i++) {
				load<VEC>(&u[i * VEC], w + i * LANES * VEC);
				at[i] = t.offsets[s + i];
			}
#pragma unroll
			for (int p = 0; p < PIXELS; p++) {
				uint32_t a[STEPS * VEC];
#pragma unroll
				for (int i = 0; i < STEPS; i++)
					load<VEC>(&a[i * VEC], t.input + from[p] + at[i]);
				sum[p].add(a, u);
			}
		}
		for (; s < t.steps; s++, w += LANES * VEC) {
			uint32_t u[VEC];
			load<VEC>(u, w);
			const int at = t.offsets[s];
#pragma unroll
			for (int p = 0; p < PIXELS; p++) {
				uint32_t a[VEC];
				load<VEC>(a, t.input + from[p] + at);
				sum[p].add(a, u);
			}
		}
		store<SUM, PIXELS, POOL>(g, t, e, y, x, sum);
	}
}

// sum_windows is sum_tile for windows of K×K at stride and dilation 1, four pixels
// of a warp at a time: a word of input is read once for all taps of the four that it
// takes part in (36 or 40 reads for 100 products at K = 5), and the weights of a
// word of the window stay in registers. Reads from shared memory are what limits
// sums with few channels otherwise: one for each product, at a quarter of the rate of
// the products of bytes. weights: [block][ky][kx][word][lane].
template <typename SUM, int K, int POOL>
static __device__ __forceinline__ void sum_windows(const Geometry &g, const Tile &t, int pitch, const uint32_t *weights, const Epilogue &e)
{
	__syncthreads();
	const int PIXELS = 4, WIDTH = PIXELS / POOL; // of the four, in POOL rows
	const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
	const int across = g.tile_x / WIDTH, units = across * (g.tile_y / POOL);
	weights += (size_t)t.block * (K * K * g.words * LANES) + lane;
	uint32_t u[K * K];
	bool loaded = false;
	for (int unit = threadIdx.x / LANES; unit < units; unit += warps) {
		const int uy = unit / across;
		const int y = uy * POOL, x = (unit - uy * across) * WIDTH;
		if (t.y0 + y >= g.conv_h || t.x0 + x >= g.conv_w)
			continue;
		typename SUM::Sum sum[PIXELS];
		for (int k = 0; k < g.words; k++) {
			if (!loaded) {
#pragma unroll
				for (int i = 0; i < K * K; i++)
					u[i] = weights[(i * g.words + k) * LANES];
				loaded = g.words == 1; // and stay there
			}
			const uint32_t *from = t.input + (y * g.tile_w + x) * pitch + k;
#pragma unroll
			for (int r = 0; r < K + POOL - 1; r++, from += g.tile_w * pitch) {
				uint32_t a[K - 1 + WIDTH];
#pragma unroll
				for (int c = 0; c < K - 1 + WIDTH; c++)
					a[c] = from[c * pitch];
#pragma unroll
				for (int p = 0; p < PIXELS; p++) {
					const int ky = r - (POOL == 1 ? 0 : p / POOL), px = POOL == 1 ? p : p % POOL;
					if (ky >= 0 && ky < K)
#pragma unroll
						for (int kx = 0; kx < K; kx++)
							sum[p].add(ky * K + kx, K * K, a[px + kx], u[ky * K + kx]);
				}
			}
		}
		store<SUM, PIXELS, POOL>(g, t, e, y, x, sum);
	}
}

// The block of channels that is only the upper half of a 64-bit word: zeros.
// Reports whether it is that. POOL is that of the tile.
static __device__ __forceinline__ bool padding_block(const Geometry &g, void *out, int pool)
{
	const int block = blockIdx.y;
	if (!g.to_bits || block * LANES < g.out_c)
		return false;
	const int ty = blockIdx.x / g.tiles_x, tx = blockIdx.x - ty * g.tiles_x;
	const int h = g.tile_y / pool, w = g.tile_x / pool;
	for (int i = threadIdx.x; i < h * w; i += blockDim.x) {
		const int y = ty * h + i / w, x = tx * w + i % w;
		if (y < g.out_h && x < g.out_w)
			((uint32_t *)out)[((size_t)blockIdx.z * (g.out_h * g.out_w) + y * g.out_w + x) * g.out_words + block] = 0;
	}
	return true;
}

#endif
