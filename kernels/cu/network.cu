// A whole small network in one cooperative launch: convolutions with grid barriers
// between them, the sums of the first dense layer made on the way, and the rest of
// the dense layers by the block that finishes last. For the vehicle network that is
// three phases (bytes to bits | grid barrier | bits to sums | ticket | dense), where
// five kernels take five launches: at batch 1, launches and barriers are the time.
//
// Phase one, 96×96×3 bytes, 5×5, 32 channels: 1,152 warps' tiles of 4×2 pixels with
// 8 products of 16×8×32 bytes in tensor cores, where there are such, else with 200 dp4a
// per lane. Phase two,
// 48×48×32 bits, 5×5: 576 tiles of 2×2 pixels; with carry-save adders 52 LOP3 and 12
// POPC per lane and pixel instead of 25 and 25. The dense layer's 57,600 words are
// read once, by whoever made the word that they meet.

#include "binarize.cuh"
#include "mma.cuh"
#include "network.h"
#include "ones.cuh"

#if __CUDA_ARCH__ >= 600 // has cooperative launches

#define PATCH_WORDS NETWORK_PATCH_WORDS
#if HAS_MMA_BYTES
#define MOST_THREADS NETWORK_THREADS
#else
#define MOST_THREADS NETWORK_OLD_THREADS
#endif

// Counts the ones of many words a ^ w; the carries of two words go through full adders, too,
// so that of four words one comes to be counted.
struct Counter {
	Ones ones;
	uint32_t twos;

	template <int N> __device__ __forceinline__ void add(const uint32_t *x, const uint32_t *w)
	{
#pragma unroll
		for (int i = 0; i + 1 < N; i += 4) {
			const uint32_t carry = ones.pair(x[i], w[i], x[i + 1], w[i + 1]);
			if (i + 3 < N) {
				const uint32_t next = ones.pair(x[i + 2], w[i + 2], x[i + 3], w[i + 3]);
				ones.carries += 2 * __popc(most(twos, carry, next));
				twos = odd(twos, carry, next);
			} else {
				ones.carries += __popc(carry);
			}
		}
		if (N % 2 != 0)
			ones.add(0, 1, x[N - 1], w[N - 1]);
	}

	__device__ __forceinline__ int total() const { return ones.total() + 2 * __popc(twos); }
};

// What a warp does with a word of 32 channels: store it, or multiply it with its
// rows of the first dense layer.
struct Sink {
	uint32_t *out;            // of the image; null for the dense layer
	const uint32_t *weights;  // of the dense layer: [pixel][block][output]
	int *sums;                // of the block, in shared memory
	int stride;               // of outputs

	__device__ __forceinline__ void put(const Geometry &g, int pixel, int block, uint32_t word, const uint32_t *flip) const
	{
		const int lane = threadIdx.x % LANES, blocks = (g.out_c + LANES - 1) / LANES;
		if (g.flip)
			word ^= flip[block];
		if (out != nullptr) {
			if (lane == 0)
				out[pixel * g.out_words + block] = word;
			if (lane == 1 && block + 1 == blocks && blocks < g.out_words)
				out[pixel * g.out_words + blocks] = 0;
			return;
		}
		const uint32_t *w = weights + (size_t)(pixel * blocks + block) * stride;
		for (int o = lane; o < stride; o += LANES)
			atomicAdd(&sums[o], __popc(word ^ w[o]));
	}
};

// The tiles of a phase that a warp takes. Neighbouring tiles go to different blocks, so
// that few tiles are spread over all multiprocessors.
struct Tiles {
	int across, down, blocks, tx, ty;

	DEVICE int first() { return threadIdx.x / LANES * gridDim.x + blockIdx.x; }
	DEVICE int step() { return blockDim.x / LANES * gridDim.x; }
	__device__ __forceinline__ Tiles(const Geometry &g, int tx, int ty)
		: across((g.conv_w + tx - 1) / tx), down((g.conv_h + ty - 1) / ty), blocks((g.out_c + LANES - 1) / LANES), tx(tx), ty(ty)
	{
	}
	__device__ __forceinline__ int count() const { return across * down * blocks; }
	__device__ __forceinline__ void place(int i, int &block, int &y, int &x) const
	{
		const int at = i / blocks, row = at / across;
		block = i - at * blocks;
		y = row * ty;
		x = (at - row * across) * tx;
	}
};

// The bytes of a pixel of an image; those of channels that there are not are any. Pixels
// outside are what adds nothing, the zero point.
DEVICE uint32_t image_pixel(const Geometry &g, const uint8_t *in, int y, int x)
{
	if (y < 0 || y >= g.in_h || x < 0 || x >= g.in_w)
		return g.zero_point * 0x01010101u;
	const int skew = (int)(size_t)in & 3; // of images whose bytes are no whole words
	return load_bytes(in - skew, (y * g.in_w + x) * g.in_c + skew, g.in_c);
}

// The bits of a pixel of an image that is binarised first, as bytes; 0 outside.
DEVICE uint32_t binarized_pixel(const NetworkConv &c, const uint8_t *in, int y, int x)
{
	const Geometry &g = c.g;
	uint32_t v = 0;
	if (y >= 0 && y < g.in_h && x >= 0 && x < g.in_w)
		for (int k = 0; k < c.channels; k++)
			v |= (uint32_t)(binarized(g, c.scheme, in, c.levels, y, x, k) ^ (c.inverted >> k & 1)) << (8 * k);
	return v;
}

// A phase: all tiles of TX×TY output pixels of a convolution with a K×K window at
// stride 1, of bits with WORDS words per pixel or of bytes with up to 4 channels. A
// lane computes one output channel of all pixels of the tile; the pixels under the
// tile are read from shared memory by all lanes at once.
template <bool BYTES, int K, int WORDS, int TX, int TY>
struct Phase {
	enum { ROWS = TY + K - 1, COLS = (TX + K - 1) * WORDS, PITCH = (COLS + 3) / 4 * 4 };
	static_assert(ROWS * PITCH <= PATCH_WORDS, "the patch does not fit");

	static __device__ __forceinline__ uint32_t load(const NetworkConv &c, const uint8_t *in, int y, int x, int word)
	{
		const Geometry &g = c.g;
		if (BYTES)
			return c.scheme < 0 ? image_pixel(g, in, y, x) : binarized_pixel(c, in, y, x);
		const bool inside = y >= 0 && y < g.in_h && x >= 0 && x < g.in_w;
		return inside ? ((const uint32_t *)in)[(y * g.in_w + x) * g.in_words + word] : 0;
	}

	static __device__ __forceinline__ void tile(const NetworkConv &c, const uint8_t *in, const Sink &sink, uint32_t *patch, int block, int y, int x)
	{
		const Geometry &g = c.g;
		const int lane = threadIdx.x % LANES, o = block * LANES + lane;
		__syncwarp(); // the patch of the tile before is no longer needed
		for (int i = lane; i < ROWS * PITCH; i += LANES) {
			const int row = i / PITCH, col = i % PITCH; // beyond COLS loaded, but not used
			patch[i] = load(c, in, y + row - g.pad_t, x + col / WORDS - g.pad_l, col % WORDS);
		}
		uint32_t w[K * K * WORDS];
#pragma unroll
		for (int i = 0; i < K * K * WORDS; i++)
			w[i] = c.weights[(block * (K * K * WORDS) + i) * LANES + lane];
		const int threshold = c.thresholds[o];
		__syncwarp();

		int acc[TY][TX] = {};
		Counter counters[TY][TX] = {};
#pragma unroll
		for (int row = 0; row < ROWS; row++) {
			uint32_t v[PITCH];
#pragma unroll
			for (int i = 0; i < PITCH; i += 4) {
				const uint4 four = *(const uint4 *)&patch[row * PITCH + i];
				v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
			}
#pragma unroll
			for (int py = 0; py < TY; py++) {
				const int ky = row - py;
				if (ky < 0 || ky >= K)
					continue;
#pragma unroll
				for (int px = 0; px < TX; px++) {
					if (!BYTES)
						counters[py][px].template add<K * WORDS>(&v[px * WORDS], &w[ky * K * WORDS]);
					else
#pragma unroll
						for (int kx = 0; kx < K; kx++)
							acc[py][px] = dp4a_us(v[px + kx], (int)w[ky * K + kx], acc[py][px]);
				}
			}
		}
		uint32_t plus = 0; // bit TX·py + px
#pragma unroll
		for (int py = 0; py < TY; py++)
#pragma unroll
			for (int px = 0; px < TX; px++) {
				int sum = BYTES ? acc[py][px] << (c.scheme >= 0) : g.taps - 2 * counters[py][px].total();
				if (g.border && y + py < g.conv_h && x + px < g.conv_w)
					sum += c.correction[(c.rows[y + py] * g.cols + c.cols[x + px]) * (g.blocks * LANES) + o];
				plus |= (uint32_t)(sum >= threshold) << (TX * py + px);
			}
		const int pool = g.pool_h;
		if (pool == 2) {
			plus |= plus >> TX;
			plus |= plus >> 1;
		}
#pragma unroll 1
		for (int i = 0; i < TX * TY / pool; i += pool) {
			const uint32_t word = __ballot_sync(FULL_WARP, plus >> i & 1);
			const int oy = (y + i / TX) / pool, ox = (x + i % TX) / pool;
			if (oy < g.out_h && ox < g.out_w)
				sink.put(g, oy * g.out_w + ox, block, word, c.flip);
		}
	}

	static __device__ __forceinline__ void run(const NetworkConv &c, const uint8_t *in, const Sink &sink, uint32_t *patch)
	{
		const Tiles tiles(c.g, TX, TY);
		for (int i = tiles.first(); i < tiles.count(); i += tiles.step()) {
			int block, y, x;
			tiles.place(i, block, y, x);
			tile(c, in, sink, patch, block, y, x);
		}
	}
};

#if HAS_MMA_BYTES
// A phase of bytes in tensor cores: tiles of 4×2 pixels, of which neighbours in the order
// of ByteSums are those of a pooling window.
template <int K>
struct BytesPhase {
	enum { TX = 4, TY = 2, ROWS = TY + K - 1, PITCH = TX + K - 1, STEPS = (K * K + 7) / 8 };
	static_assert((ROWS + 1) * PITCH + 8 <= PATCH_WORDS, "the patch does not fit");

	static __device__ __forceinline__ void run(const NetworkConv &c, const uint8_t *in, const Sink &sink, uint32_t *patch)
	{
		const Geometry &g = c.g;
		const int lane = threadIdx.x % LANES, pixel = lane / 4, t = lane % 4;
		const Tiles tiles(g, TX, TY);
		uint4 w[STEPS][2];
		int loaded = -1; // block of which the weights are
		int4 limit = {};
		for (int k = lane; k < PATCH_WORDS; k += LANES) // the words behind the patch are read, too
			patch[k] = 0;
		for (int i = tiles.first(); i < tiles.count(); i += tiles.step()) {
			int block, y, x;
			tiles.place(i, block, y, x);
			if (block != loaded) {
				const uint4 *from = (const uint4 *)c.weights + (size_t)block * (STEPS * 2 * LANES) + lane;
#pragma unroll
				for (int s = 0; s < 2 * STEPS; s++)
					w[s / 2][s % 2] = from[s * LANES];
				limit = *(const int4 *)&c.thresholds[block * LANES + 4 * pixel];
				loaded = block;
			}
			__syncwarp(); // the patch of the tile before is no longer needed
			if (c.scheme < 0) {
#pragma unroll
				for (int k = 0; k < ROWS * PITCH; k += LANES)
					if (k + lane < ROWS * PITCH)
						patch[k + lane] = image_pixel(g, in, y - g.pad_t + (k + lane) / PITCH, x - g.pad_l + (k + lane) % PITCH);
			} else {
#pragma unroll 1
				for (int k = lane; k < ROWS * PITCH; k += LANES)
					patch[k] = binarized_pixel(c, in, y - g.pad_t + k / PITCH, x - g.pad_l + k % PITCH);
			}
			__syncwarp();

			// Words of the window beyond its end are whatever follows: they have no weights.
			const uint32_t *const from = patch + (pixel / 2 % 2) * PITCH + pixel / 4 * 2 + pixel % 2 + t;
			const uint32_t *const next = from + PITCH - K; // for taps of the row after
			ByteSums sums = {};
#pragma unroll
			for (int s = 0; s < STEPS; s++) {
				uint32_t v[2];
#pragma unroll
				for (int half = 0; half < 2; half++) {
					const int tap = 8 * s + 4 * half, left = K - tap % K; // of the row of the first
					const uint32_t *row = left >= 4 || t < left ? from : next;
					v[half] = row[tap + tap / K * (PITCH - K)];
				}
				sums.add(sums, w[s], v[0], v[1]);
			}
			finish(c, sums, limit, sink, block, y, x);
		}
	}

	static __device__ __forceinline__ void finish(const NetworkConv &c, const ByteSums &sums, int4 limit, const Sink &sink, int block, int y, int x)
	{
		const Geometry &g = c.g;
		const int lane = threadIdx.x % LANES, t = lane % 4;
		const int limits[4] = {limit.x, limit.y, limit.z, limit.w};
		uint32_t votes[2][4]; // of pixels 2t and 2t + 1
#pragma unroll
		for (int e = 0; e < 2; e++) {
			const int cy = y + t % 2, cx = x + t / 2 * 2 + e;
			int4 more = {};
			if (g.border && cy < g.conv_h && cx < g.conv_w)
				more = *(const int4 *)&c.correction[(c.rows[cy] * g.cols + c.cols[cx]) * (g.blocks * LANES) + block * LANES + lane / 4 * 4];
			const int added[4] = {more.x, more.y, more.z, more.w};
#pragma unroll
			for (int q = 0; q < 4; q++)
				votes[e][q] = __ballot_sync(FULL_WARP, (sums.of[q / 2][q % 2 * 2 + e] << (c.scheme >= 0)) + added[q] >= limits[q]);
		}
		if (g.pool_h == 2) {
#pragma unroll
			for (int q = 0; q < 4; q++) {
				votes[0][q] |= votes[1][q];
				votes[0][q] |= votes[0][q] >> 1;
			}
			for (int i = 0; i < 2; i++)
				if (y / 2 < g.out_h && x / 2 + i < g.out_w)
					sink.put(g, y / 2 * g.out_w + x / 2 + i, block, word_of_votes(votes[0], 2 * i), c.flip);
			return;
		}
#pragma unroll 1
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				const int oy = y + i % 2, ox = x + i / 2 * 2 + e;
				if (oy < g.out_h && ox < g.out_w)
					sink.put(g, oy * g.out_w + ox, block, word_of_votes(votes[e], i), c.flip);
			}
	}
};
#else
template <int K> struct BytesPhase : Phase<true, K, 1, 4, 2> {};
#endif

DEVICE void run_phase(const NetworkConv &c, const uint8_t *in, const Sink &sink, uint32_t *patch)
{
	switch (c.kind) {
	case NETWORK_BYTES_3:
		return BytesPhase<3>::run(c, in, sink, patch);
	case NETWORK_BYTES_5:
		return BytesPhase<5>::run(c, in, sink, patch);
	case NETWORK_BITS_3_1:
		return Phase<false, 3, 1, 2, 2>::run(c, in, sink, patch);
	case NETWORK_BITS_3_2:
		return Phase<false, 3, 2, 2, 2>::run(c, in, sink, patch);
	case NETWORK_BITS_3_4:
		return Phase<false, 3, 4, 2, 2>::run(c, in, sink, patch);
	case NETWORK_BITS_5_1:
		return Phase<false, 5, 1, 2, 2>::run(c, in, sink, patch);
	case NETWORK_BITS_5_2:
		return Phase<false, 5, 2, 2, 2>::run(c, in, sink, patch);
	}
}

// Makes output o of a dense layer of its popcount, a warp 32 outputs at once.
DEVICE void finish_dense(const NetworkDense &d, const uint32_t *constants, int o, int count, uint32_t *bits, float *out)
{
	const int acc = d.taps - 2 * count;
	if (d.to_bits) {
		const uint32_t word = __ballot_sync(FULL_WARP, acc >= (int)constants[d.thresholds + o]);
		if (o % LANES == 0)
			bits[o / LANES] = d.flip >= 0 ? word ^ constants[d.flip + o / LANES] : word;
		return;
	}
	if (o >= d.out_c)
		return;
	float v = (float)acc;
	if (d.scaled)
		v = __fmaf_rn(v, __uint_as_float(constants[d.scale + o]), __uint_as_float(constants[d.shift + o]));
	out[o] = activate(d.activation, v, (const float *)constants + d.slope, o);
}

// The dense layers of an image, by one block. Layers have whole words of outputs;
// those beyond out_c have thresholds that are never reached.
DEVICE void run_dense(const Network &n, int images, int image, const uint32_t *constants, uint32_t *bits)
{
	float *out = n.out + (size_t)image * n.dense[n.denses - 1].out_c;
	for (int o = threadIdx.x; o < n.sum_stride; o += blockDim.x) {
		int count = 0; // and zero for the next launch
		for (int r = 0; r < NETWORK_REPLICAS; r++)
			count += atomicExch((uint32_t *)&n.sums[(r * images + image) * n.sum_stride + o], 0);
		finish_dense(n.dense[0], constants, o, count, bits, out);
	}
	for (int i = 1; i < n.denses; i++) {
		const NetworkDense &d = n.dense[i];
		const uint32_t *x = bits + (i - 1) % 2 * NETWORK_BITS_WORDS;
		__syncthreads();
		for (int o = threadIdx.x; o < d.out_stride; o += blockDim.x) {
			int count = 0;
			for (int k = 0; k < d.row_words; k++)
				count += __popc(x[k] ^ constants[d.weights + k * d.out_stride + o]);
			finish_dense(d, constants, o, count, bits + i % 2 * NETWORK_BITS_WORDS, out);
		}
	}
	__syncthreads(); // before the next image takes the bits
}

// One block to a multiprocessor: registers are of use, more blocks are not.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1)
network(const Network n)
{
	DYNAMIC_SHARED(uint4, shared); // constants, patches, bits, sums
	uint32_t *const constants = (uint32_t *)shared, *const patches = constants + n.constant_words;
	uint32_t *const bits = patches + blockDim.x / LANES * PATCH_WORDS;
	int *const sums = (int *)(bits + 2 * NETWORK_BITS_WORDS);
	__shared__ bool last;
	const int images = n.conv[0].g.images;

	// Every block may come to do the dense layers: its constants are on their way
	// while the convolutions run.
	for (int i = threadIdx.x; i < n.constant_words / 4; i += blockDim.x)
		copy_words<4>(&constants[4 * i], n.constants + 4 * i, true);
	copies_close();

	for (int i = 0; i < n.convs; i++) {
		const NetworkConv &c = n.conv[i];
		const bool dense = i == n.convs - 1;
		for (int image = 0; image < images; image++) {
			const Sink sink = {dense ? nullptr : c.out + (size_t)image * c.g.out_h * c.g.out_w * c.g.out_words, n.weights, sums, n.sum_stride};
			if (dense) {
				for (int o = threadIdx.x; o < n.sum_stride; o += blockDim.x)
					sums[o] = 0;
				__syncthreads();
			}
			run_phase(c, (const uint8_t *)c.in + image * c.in_bytes, sink, patches + threadIdx.x / LANES * PATCH_WORDS);
			if (dense) {
				__syncthreads();
				// Integers, so the order does not matter. Blocks share few
				// addresses less when there are several of each sum.
				int *to = n.sums + ((int)(blockIdx.x % NETWORK_REPLICAS) * images + image) * n.sum_stride;
				for (int o = threadIdx.x; o < n.sum_stride; o += blockDim.x)
					if (sums[o] != 0)
						atomicAdd(&to[o], sums[o]);
			}
		}
		if (!dense)
			grid_sync(n.barrier);
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence(); // for all threads of the block, see grid_sync
		last = atomicAdd(n.barrier + 1, 1) == gridDim.x - 1;
		if (last)
			atomicExch(n.barrier + 1, 0);
		__threadfence();
	}
	__syncthreads();
	if (!last)
		return;
	copies_done<0>();
	__syncthreads();
	for (int image = 0; image < images; image++)
		run_dense(n, images, image, constants, bits);
}
#endif
