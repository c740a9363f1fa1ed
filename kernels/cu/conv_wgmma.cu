// Convolutions of bits and bytes at stride 1 by the products of Hopper's warpgroups (wgmma),
// for compute capability 9.0 alone: popcount(a AND w) of 64 pixels and 128 channels, 256 bits
// at a time, straight from shared memory. conv_mma.cu says how sums of ±1 come of it. Of
// bytes 32 are multiplied at a time, with as many signed ones: what is said of 256 and 128
// bits below is true of 32 and 16 bytes; their kernels are those of conv_wgmma_bytes.cu.
//
// Per clock a multiprocessor would multiply 64·128·256 bits in 64 clocks (ptxas has one
// instruction for it), twice what mma.sync does. Tiles that are copied for every tap, as
// conv_mma.cu has them, cannot keep up: 128 × 256 outputs take 12 KiB for each 256 bits of
// a sum, in 256 clocks, where the second-level cache gives a multiprocessor about 25 bytes
// per clock. So nothing is copied twice here:
//
//   weights  all of those of 128 channels stay in shared memory, 4 KiB for each 256 bits,
//            and blocks, one to a multiprocessor, go over the tiles of the whole batch;
//   pixels   a warpgroup has tiles of 64 pixels, and copies those under the next one while
//            it multiplies. They lie as [128 bits][row][column], 16 bytes each. A matrix is
//            described by where it begins and how far apart groups of 8 rows are, which
//            are 16 bytes apart themselves. 8 neighbouring pixels are just that, at any
//            tap: it only moves where the matrix begins.
//
// There are two shapes of tiles, and the host takes the one that makes fewer of them first:
//
//   squares    8×8 pixels of an image, which may be pooled. Those that it does not divide
//              multiply pixels that there are not: 23 % of 28×28, 34 % of 13×13.
//   sequences  64 pixels of all images of the batch as one row, in which each row of an
//              image has what is padded behind it, and each image rows of padding. The
//              padding in front of a row is that behind the one before. So at 28×28 with a
//              window of 3×3 one pixel of 29 is none in either direction: 7 %. The pixels under
//              the tile are a sequence, too, of which the rows of the window are so many
//              pixels apart.
//
// A step of 256 bits is two of those chunks, of one tap or of two: how far they are apart
// is part of the description, too. Chunks are ordered by channels, then taps, so that it
// is never negative. What an odd last step has as its second half are weights of zeros.
//
// The warpgroups of a block share nothing but the weights. While one makes outputs,
// others multiply. popcount(a) comes from integer units, which have little else to do:
// counted for every pixel under the tile, then added up over the window. Of bytes there is
// nothing to count; pixels outside of the image are the zero point, as in conv_mma.cu.

#include "mma.cuh"
#include "outputs.cuh"

#define SIDE 8        // of the square tile of a warpgroup, in pixels before pooling
#define SEQUENCE 64   // pixels of the other one
#define COLUMNS 128   // output channels of a block
#define WARPGROUP 128 // its threads
#define CHUNK_WORDS 4 // 128 bits

enum Operands { OF_BITS, OF_BYTES };

// A warp has 16 of the 64 rows.
template <Operands F> using Lane = LaneOutputs<2, COLUMNS / 8, F == OF_BYTES ? 1 : -2>;
typedef int32_t Sums[1][COLUMNS / 8][4];

// A chunk of a pixel under a tile: where that is in the tile, the word of the pixel that
// it begins with, and its place in shared memory.
struct __align__(16) Copy {
	int row, column, from, to;
};

DEVICE bool in_sequence(const Geometry &g) { return g.per_row != 0; }

// Shared memory: the weights, then for each step where its pixels are, for each tap, and for
// each chunk under a tile where it is copied from and to, then
// what each warpgroup has of its own: pixels twice, and their numbers of ones.
struct Memory {
	uint4 *shared;
	int tile, chunks; // pixels under a tile, and their chunks
	int group;        // pixels from 8 rows of a matrix to the next
	int steps_at, taps_at, copies_at, pixels_at, ones_at; // in 16 bytes
	DEVICE int up(int words) { return (words + 3) / 4; }
	__device__ Memory(const Geometry &g, uint4 *shared) : shared(shared)
	{
		tile = g.tile_h * g.tile_w, chunks = g.in_words / CHUNK_WORDS;
		group = in_sequence(g) ? 8 : g.tile_w;
		steps_at = g.planes * 2 * COLUMNS;
		taps_at = steps_at + up(g.planes);
		copies_at = taps_at + up(g.kh * g.kw);
		pixels_at = copies_at + chunks * tile + threadIdx.x / WARPGROUP * (2 * chunks * tile + up(tile));
		ones_at = pixels_at + 2 * chunks * tile;
	}
	__device__ uint4 *weights() const { return shared; } // [step][half][column]
	// From the first chunk of the tile to those of the step.
	__device__ uint32_t *steps() const { return (uint32_t *)(shared + steps_at); }
	__device__ int *taps() const { return (int *)(shared + taps_at); } // from the first pixel of the window
	__device__ Copy *copies() const { return (Copy *)(shared + copies_at); }
	__device__ uint4 *pixels(int parity) const { return shared + pixels_at + parity * chunks * tile; } // [chunk][row][column]
	__device__ int *ones() const { return (int *)(shared + ones_at); } // [row][column]
	// From the first chunk of the tile to a chunk of the sum.
	__device__ int chunk(int number, int of_window) const { return number / of_window * tile + taps()[number % of_window]; }
};

// A pixel before pooling, or of those under the first tap of a window, which begin with the
// padding.
struct Pixel {
	int image, y, x;
};

// The first pixel of the tile of a number, of those of all images. A sequence is in one row.
struct TilePlace : Pixel {
	__device__ TilePlace(const Geometry &g, int number)
	{
		image = y = 0, x = number * SEQUENCE;
		if (in_sequence(g))
			return;
		const int of_image = (g.conv_h + SIDE - 1) / SIDE * g.tiles_x;
		image = number / of_image;
		const int tile = number - image * of_image;
		y = tile / g.tiles_x;
		x = (tile - y * g.tiles_x) * SIDE;
		y *= SIDE;
	}
	// Goes on by as many tiles as that place is from the first one.
	__device__ void move(const Geometry &g, const TilePlace &by)
	{
		const int right = g.tiles_x * SIDE, bottom = (g.conv_h + SIDE - 1) / SIDE * SIDE;
		x += by.x, y += by.y, image += by.image;
		if (x >= right)
			x -= right, y += SIDE;
		if (y >= bottom)
			y -= bottom, image++;
	}
	// The pixel so many rows and columns further. Sequences go on in the next row and image.
	template <bool IN_SEQUENCE> __device__ Pixel pixel(const Geometry &g, int row, int column) const
	{
		if (!IN_SEQUENCE)
			return Pixel{image, y + row, x + column};
		const int to_right = x + column, rows = __umulhi(to_right, g.per_row);
		const int down = y + row + rows, images = __umulhi(down, g.per_image);
		return Pixel{image + images, down - images * g.image_rows, to_right - rows * g.row_pixels};
	}
};

// The number of tiles of all images.
DEVICE int all_tiles(const Geometry &g)
{
	if (in_sequence(g))
		return ((((g.images - 1) * g.image_rows + g.conv_h - 1) * g.row_pixels + g.conv_w) + SEQUENCE - 1) / SEQUENCE;
	return (g.conv_h + SIDE - 1) / SIDE * g.tiles_x * g.images;
}

// Where the chunks under a tile are.
template <int THREADS> DEVICE void list_copies(const Geometry &g, const Memory &m)
{
	for (int i = threadIdx.x; i < m.tile * m.chunks; i += THREADS) {
		const int pixel = i / m.chunks, chunk = i - pixel * m.chunks, row = pixel / g.tile_w, column = pixel - row * g.tile_w;
		const int from = in_sequence(g) ? 0 : (row * g.in_w + column) * g.in_words;
		m.copies()[i] = Copy{row, column, from + chunk * CHUNK_WORDS, chunk * m.tile + pixel};
	}
}

// Copies the pixels under a tile; those outside of the image are zeros, or the zero point.
template <Operands F, bool IN_SEQUENCE> DEVICE void load_pixels(const Geometry &g, const Memory &m, uint4 *to, const uint32_t *in, const TilePlace &at)
{
	const int first = ((at.image * g.in_h + at.y - g.pad_t) * g.in_w + at.x - g.pad_l) * g.in_words;
#pragma unroll 1
	for (int i = threadIdx.x % WARPGROUP; i < m.tile * m.chunks; i += WARPGROUP) {
		const int4 c = *(const int4 *)&m.copies()[i];
		const Pixel p = at.pixel<IN_SEQUENCE>(g, c.x, c.y);
		const int y = p.y - g.pad_t, x = p.x - g.pad_l;
		// Beyond the last image nothing is inside.
		const bool inside = (uint32_t)y < (uint32_t)(p.image < g.images ? g.in_h : 0) && (uint32_t)x < (uint32_t)g.in_w;
		const int word = c.z + (IN_SEQUENCE ? ((p.image * g.in_h + y) * g.in_w + x) * g.in_words : first);
		const uint32_t *const from = in + (inside ? (uint32_t)word : 0);
		if (F == OF_BYTES)
			copy_words_or<CHUNK_WORDS>((uint32_t *)&to[c.w], from, inside, g.zero_point * 0x01010101u);
		else
			cp_async<16>(&to[c.w], from, inside);
	}
}

template <Operands F> DEVICE void load_pixels(const Geometry &g, const Memory &m, uint4 *to, const uint32_t *in, const TilePlace &at)
{
	if (in_sequence(g))
		load_pixels<F, true>(g, m, to, in, at);
	else
		load_pixels<F, false>(g, m, to, in, at);
}

// A matrix that begins elsewhere and whose halves are as far apart, see matrix_move: that is
// in the lower word of a description, and spares the arithmetic of the upper one.
DEVICE uint64_t moved(uint64_t matrix, uint32_t move) { return matrix >> 32 << 32 | ((uint32_t)matrix + move); }

// Counts the ones of the pixels under a tile.
DEVICE void count_ones(const Memory &m, const uint4 *pixels)
{
#pragma unroll 1
	for (int i = threadIdx.x % WARPGROUP; i < m.tile; i += WARPGROUP) {
		int count = 0;
#pragma unroll 1
		for (int c = 0; c < m.chunks; c++) {
			const uint4 v = pixels[c * m.tile + i];
			count += __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w);
		}
		m.ones()[i] = count;
	}
}

// The ones under the window of each of a lane's two rows, which are of two groups of
// pixels. The four lanes of a row share the taps.
DEVICE void add_ones(const Geometry &g, const Memory &m, int (&sum)[2])
{
	const int lane = threadIdx.x % 32, first = threadIdx.x % WARPGROUP / 32 * 2 * m.group + lane / 4;
	sum[0] = sum[1] = 0;
#pragma unroll 1
	for (int i = lane % 4; i < g.kh * g.kw; i += 4) {
		const int at = first + m.taps()[i];
		sum[0] += m.ones()[at];
		sum[1] += m.ones()[at + m.group];
	}
#pragma unroll
	for (int s = 0; s < 2; s++) {
		sum[s] += __shfl_xor_sync(FULL_WARP, sum[s], 1);
		sum[s] += __shfl_xor_sync(FULL_WARP, sum[s], 2);
	}
}

// The pixels of a lane, for finish.
struct Pixels {
	int borders[2], pixels[2];
	__device__ Pixels(const Geometry &g, const TilePlace &at, const int32_t *rows, const int32_t *cols)
	{
		const int lane = threadIdx.x % 32;
#pragma unroll
		for (int s = 0; s < 2; s++) {
			const int group = threadIdx.x % WARPGROUP / 32 * 2 + s;
			const Pixel p = in_sequence(g) ? at.pixel<true>(g, 0, group * 8 + lane / 4) : at.pixel<false>(g, group, lane / 4);
			borders[s] = g.border ? (rows[min(p.y, g.conv_h - 1)] * g.cols + cols[min(p.x, g.conv_w - 1)]) * (g.blocks * LANES) : 0;
			const int oy = p.y >> g.pool_log2 / 2, ox = p.x >> g.pool_log2 / 2;
			pixels[s] = p.image < g.images && oy < g.out_h && ox < g.out_w ? (p.image * g.out_h + oy) * g.out_w + ox : -1;
		}
	}
	__device__ int border(int s) const { return borders[s]; }
	__device__ int pixel(int s) const { return pixels[s]; }
};

// Makes the packed words of the products, and of the ones of a lane's two rows. Three
// instructions for an output: what is added to four times a product, the sum, and its sign,
// which is shifted into a word that has a byte of each of the four packed words. The four
// lanes of a row exchange these bytes, and each stores one of the words.
template <Operands F> DEVICE void finish_bits(const Geometry &g, const Sums &products, const int (&ones)[2], const Outputs &to, const Pixels &pixels)
{
	enum { BLOCKS = COLUMNS / LANES };
	const int lane = threadIdx.x % 32, t = lane % 4, first = blockIdx.y * COLUMNS;
	uint32_t clear[2] = {0, 0};
#pragma unroll
	for (int n = BLOCKS - 1; n >= 0; n--) {
		const int o = first + LANES * n + 8 * t;
		if (first + LANES * n >= g.out_c)
			continue;
		int limit[8];
		Lane<F>::load8(limit, to.thresholds + o);
#pragma unroll
		for (int s = 0; s < 2; s++) {
			int more[8] = {};
			if (F == OF_BITS && pixels.border(s) != 0)
				Lane<F>::load8(more, to.correction + pixels.border(s) + o);
#pragma unroll
			for (int k = 7; k >= 0; k--) {
				const int product = products[0][4 * n + k / 2][s * 2 + k % 2];
				const int sum = F == OF_BYTES ? product : more[k] - 2 * ones[s] + 4 * product;
				clear[s] = __funnelshift_l(limit[k] + sum, clear[s], 1);
			}
		}
	}
	const bool pooled = g.pool_log2 != 0;
	if (pooled) {
		clear[0] &= clear[1];
		clear[0] &= __shfl_xor_sync(FULL_WARP, clear[0], 4);
	}
	const int word = first / LANES + t;
	const bool there = word < g.out_words && (!pooled || lane / 4 % 2 == 0), channels = word * LANES < g.out_c;
	const uint32_t flip = ~(g.flip && there && channels ? to.flip[word] : 0);
#pragma unroll
	for (int s = 0; s < 2; s++) {
		// Byte n of lane t becomes byte t of lane n.
		uint32_t v = clear[s];
		v = __byte_perm(v, __shfl_xor_sync(FULL_WARP, v, 1), t % 2 == 0 ? 0x6240 : 0x3715);
		v = __byte_perm(v, __shfl_xor_sync(FULL_WARP, v, 2), t / 2 == 0 ? 0x5410 : 0x3276);
		if (there && pixels.pixel(s) >= 0 && !(s > 0 && pooled))
			((uint32_t *)to.out)[(size_t)pixels.pixel(s) * g.out_words + word] = channels ? v ^ flip : 0;
	}
}

// Copies that this thread has waited for are there for products, once all threads that copied
// have called this and met at a barrier.
DEVICE void pixels_done()
{
	cp_async_wait<0>();
	fence_proxy_async();
}

// Starts a product of matrices, see wgmma_and_m64n128k256.
template <Operands F, bool FIRST> DEVICE void multiply(Sums &acc, uint64_t a, uint64_t w)
{
	if (F == OF_BYTES)
		wgmma_u8s8_m64n128k32<FIRST>(acc[0], a, w);
	else
		wgmma_and_m64n128k256<FIRST>(acc[0], a, w);
}

// The kernel, of so many warpgroups, for outputs of bits or of floats.
template <Operands F, int GROUPS, bool BITS>
DEVICE void convolve(const Geometry &g, const uint32_t *in, const uint32_t *weights, const int32_t *rows, const int32_t *cols,
	const Outputs &to, uint4 *shared)
{
	const Memory m(g, shared);
	const int tiles = all_tiles(g);
	// Blocks share the last round evenly, too.
	const int behind = threadIdx.x / WARPGROUP * gridDim.x;
	TilePlace at(g, blockIdx.x + behind);
	const TilePlace round(g, gridDim.x * GROUPS);

	const uint32_t *const own = weights + (size_t)blockIdx.y * g.planes * 2 * COLUMNS * CHUNK_WORDS;
	for (int i = threadIdx.x; i < g.planes * 2 * COLUMNS; i += GROUPS * WARPGROUP)
		cp_async<16>(&m.weights()[i], own + i * CHUNK_WORDS);
	list_copies<GROUPS * WARPGROUP>(g, m);
	const int window = g.kh * g.kw, chunks = window * m.chunks;
	for (int i = threadIdx.x; i < window; i += GROUPS * WARPGROUP)
		m.taps()[i] = i / g.kw * g.dilation_h * g.row_pixels + i % g.kw * g.dilation_w;
	__syncthreads();
	load_pixels<F>(g, m, m.pixels(0), in, at);
	cp_async_commit();
	for (int i = threadIdx.x; i < g.planes; i += GROUPS * WARPGROUP) {
		const int first = m.chunk(2 * i, window), second = 2 * i + 1 < chunks ? m.chunk(2 * i + 1, window) : first;
		m.steps()[i] = matrix_move(first, second - first);
	}
	pixels_done();
	__syncthreads();

	// Of all warpgroups the same number. Tiles beyond the last one have a single product, and no outputs.
	for (int first = blockIdx.x, parity = 0; first < tiles; first += gridDim.x * GROUPS, parity ^= 1) {
		const uint4 *const pixels = m.pixels(parity);
		TilePlace next = at;
		next.move(g, round);
		load_pixels<F>(g, m, m.pixels(parity ^ 1), in, next);
		cp_async_commit();

		Sums acc;
		const uint64_t a = matrix_descriptor(pixels, 0, 16 * m.group);
		uint64_t w = matrix_descriptor(m.weights(), 16 * COLUMNS, 16 * 8);
		// ptxas lets products wait for each other in loops of which it does not see that all
		// threads go through them as often.
		const int steps = __shfl_sync(FULL_WARP, first + behind < tiles ? g.planes : 1, 0);
		wgmma_fence();
		multiply<F, true>(acc, moved(a, m.steps()[0]), w);
		for (int i = 1; i < steps; i++) {
			w = moved(w, 2 * COLUMNS);
			multiply<F, false>(acc, moved(a, m.steps()[i]), w);
		}
		wgmma_commit();

		int ones[2] = {};
		if (F == OF_BITS) {
			count_ones(m, pixels);
			warpgroup_barrier();
			add_ones(g, m, ones);
		}
		wgmma_wait<0>(acc[0]);
		const Pixels pixels_of(g, at, rows, cols);
		if (BITS) {
			finish_bits<F>(g, acc, ones, to, pixels_of);
		} else {
#pragma unroll
			for (int j = 0; j < COLUMNS / 8; j++)
#pragma unroll
				for (int k = 0; k < 4; k++)
					acc[0][j][k] = F == OF_BYTES ? acc[0][j][k] : ones[k / 2] - 2 * acc[0][j][k];
			Lane<F>::finish_floats(g, acc, to, pixels_of, blockIdx.y * COLUMNS, g.out_c);
		}
		// The next pixels are there, and these are no longer needed.
		pixels_done();
		warpgroup_barrier();
		at = next;
	}
}

#define CONV(name, operands, groups, bits) \
	extern "C" __global__ void __launch_bounds__(groups * WARPGROUP, 1) \
	name(const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
		const uint32_t *__restrict__ weights, const int32_t *__restrict__ base, \
		const int32_t *__restrict__ thresholds, const float *__restrict__ scale, const float *__restrict__ shift, \
		const float *__restrict__ slope, const uint32_t *__restrict__ flip, \
		const int32_t *__restrict__ rows, const int32_t *__restrict__ cols, const int32_t *__restrict__ correction) \
	{ \
		DYNAMIC_SHARED(uint4, shared); \
		const Outputs to = {out, base, thresholds, scale, shift, slope, flip, correction}; \
		convolve<operands, groups, bits>(g, in, weights, rows, cols, to, shared); \
	}

#if !defined(WITHOUT_ENTRIES)
// As many warpgroups as registers suffice for.
CONV(conv_wgmma_bits, OF_BITS, 4, true)
CONV(conv_wgmma_floats, OF_BITS, 3, false)
#endif
