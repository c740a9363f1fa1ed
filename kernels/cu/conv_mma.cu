// Convolutions and dense layers on bits, and on bytes, as one implicit GEMM with tiles
// in shared memory: output pixels are the rows, output channels the columns, and the bits
// of all taps of a window the inner dimension K. Four ways to multiply bits:
//
//   conv_and  tensor cores, popcount(a AND w), m16n8k256: compute capability 8.0
//             and later. Hopper has no other form: .xor.popc becomes two
//             instructions and a call there.
//   conv_imma tensor cores, products of bytes, m16n8k32: for 10.0 and later, which
//             have none of bits: there a conv_and is 103 instructions. Bits become
//             bytes of 0 and 1 in registers; those of a word that are 8 apart go
//             together, of both operands, so that takes a shift and a mask.
//   conv_xor  tensor cores, popcount(a XOR w), m8n8k128: 7.5.
//   conv_popc integer units, with carry-save adders: everywhere.
//
// And one for unsigned bytes with signed ones, for 7.5 and later: conv_bytes. There a
// plane, of which below, has 32 bytes in place of 256 bits, and pixels outside of the image
// are the zero point z, for Σ (x − z)·w = Σ x·w − z·Σ w, of which the host folds the second
// term into base and thresholds. All else is the same.
//
// With bit 1 for +1 and, in conv_and and conv_imma, c = popcount(a AND w),
//
//   Σ ±1·±1 = K − 2·popcount(a) − 2·popcount(w) + 4·c.
//
// The host folds K − 2·popcount(w) into base and thresholds. popcount(a) comes from
// the tensor cores, too: as the product with a column of ones, which lands in
// the registers of the lanes that need it and costs 1/8 of the work of a warp
// that computes 64 channels, shared by the warps of the same pixels.
//
// K is cut into planes of 256 bits, 8 words. Memory and tiles hold planes as
// [plane][row][8 words]. Tensor cores take four words of a pixel row and the row 8
// below in four registers in a row, which is what ldmatrix delivers; the halves of
// rows 4 to 7 of each 8 are swapped in shared memory, so that the 8 rows of a matrix
// lie in different banks. Weights are stored in the order 0 4 1 5 2 6 3 7, so that a
// lane gets the two words that it needs with one 64-bit load, half a warp 128 bytes.
//
// The host also permutes output channels: column 8j + 2t + e of a block of 32 is
// channel 8t + 2j + e. A lane holds columns 8j + 2t and 8j + 2t + 1 of all j, hence
// a whole byte of the packed word, and stores it without talking to others.
//
// Pixels are ordered so that the pixels of a pooling window are rows 8 apart, which
// one lane holds, and, for windows larger than that, neighbouring lanes.
//
// Split-K: where the tiles are few, the third dimension of the grid cuts K into parts
// of g.part_planes planes. Each block adds what it has counted to that of the others of
// its tile, in memory that is zero between launches; the block that is last by a ticket
// takes the total, leaves zeros, and makes the outputs. Counts are integers, so any
// order is exact. They lie beside each other as 16 bits, four to an atomic operation: a
// tile of 64 × 64 is 8 KiB, 256 bytes per warp and operation. Sums of bytes take 32 bits, two
// to an operation. Parts that store their
// counts instead would need no zeros, but the last block would read those of all others,
// at what one multiprocessor reads; here it reads a tile, however many parts there are.
//
// Counts, for tiles of 128 × 128 and a warp tile of 64 × 64: a plane takes 128
// BMMA of m16n8k256 (237 clocks at 0.54 per clock and multiprocessor), 4 ldmatrix and
// 8 loads of 64 bits per warp (128 wavefronts), and 8 KiB of copies. The integer form
// takes, per output and plane, 8 + 8 LOP3 (64 per clock) and 4 POPC (16 per clock):
// 0.25 clocks each, where plain xor and popcount take 0.5.

#include "common.cuh"
#include "mma.cuh"
#include "ones.cuh"
#include "outputs.cuh"

enum Form { FORM_AND, FORM_BYTES, FORM_XOR, FORM_POPC, FORM_U8 };

// Planes that are copied between two barriers.
#define STAGE_PLANES 2
#define PLANE_WORDS 8

// What a row of the tile is: where the window starts, and which output it makes.
struct __align__(16) Row {
	int base;   // of the first tap, in words of the tensor; meaningless outside
	int y, x;   // of the first tap
	int border; // class, times the number of channels that corrections are stored for
};

// Outside of every image.
#define NOWHERE (-(1 << 30))

template <Form F, int BM, int BN, int WARPS_M, int WARPS_N, int STAGES>
struct Tile {
	enum {
		THREADS = 32 * WARPS_M * WARPS_N,
		WM = BM / WARPS_M, WN = BN / WARPS_N, // of a warp
		SLOTS = WM / 8,                       // rows of a lane
		COLS = WN / 8,                        // pairs of columns of a lane
		COUNTS_ROWS = F == FORM_AND || F == FORM_BYTES, // and needs popcount(a)
		UNROLL = F == FORM_POPC ? 1 : STAGE_PLANES,  // large enough already
		SPLITS = BM <= 64, // larger tiles are for grids that fill the device
		SUMS_OF_ADD = F == FORM_U8 ? 2 : 4,          // added up by one atomic operation
		MOST_OF_PLANE = F == FORM_U8 ? PLANE_WORDS * 4 * 255 * 128 : PLANE_WORDS * 32, // its sum, if negative
		STAGE_WORDS = STAGE_PLANES * (BM + BN) * PLANE_WORDS,
	};

	// Output channels that weights, thresholds and corrections are stored for.
	DEVICE int padded(const Geometry &g) { return g.blocks * LANES; }

	// The entries of the table of taps that this thread needs for a stage.
	struct StageTaps {
		int4 of[STAGE_PLANES];
	};

	DEVICE StageTaps stage_taps(const Geometry &g, const int32_t *taps, int first)
	{
		const int chunks = PLANE_WORDS / g.vector, chunk = threadIdx.x & (chunks - 1);
		StageTaps t;
#pragma unroll
		for (int p = 0; p < STAGE_PLANES; p++)
			t.of[p] = ((const int4 *)taps)[min(first + p, g.planes - 1) * chunks + chunk];
		return t;
	}

	// Copies the input words of a plane to a[row][8]. tap.x is the offset, in words,
	// tap.y and tap.z are rows and columns from the first tap.
	template <int V> DEVICE void load_rows(const Geometry &g, uint32_t *a, const uint32_t *in, int4 tap, const Row *rows)
	{
		enum { CHUNKS = PLANE_WORDS / V, STEP = THREADS / CHUNKS };
		static_assert(BM % STEP == 0, "all threads have as many rows");
		const int chunk = threadIdx.x % CHUNKS, first = threadIdx.x / CHUNKS;
#pragma unroll
		for (int i = 0; i < BM; i += STEP) {
			const int r = first + i;
			const int4 row = *(const int4 *)&rows[r];
			const bool inside = (uint32_t)(row.y + tap.y) < (uint32_t)g.in_h && (uint32_t)(row.z + tap.z) < (uint32_t)g.in_w;
			uint32_t *const to = &a[r * PLANE_WORDS + ((chunk * V) ^ (r & 4))];
			const uint32_t *const from = in + (inside ? row.x + tap.x : 0);
			if (F == FORM_U8)
				copy_words_or<V>(to, from, inside, g.zero_point * 0x01010101u);
			else
				copy_words<V>(to, from, inside);
		}
	}

	DEVICE void load_stage(const Geometry &g, uint32_t *stage, const uint32_t *in, const uint32_t *weights, const StageTaps &taps,
		const Row *rows, int first, int end, int first_column)
	{
#pragma unroll
		for (int p = 0; p < STAGE_PLANES; p++) {
			const int plane = first + p;
			if (plane >= end)
				break;
			uint32_t *a = stage + p * BM * PLANE_WORDS;
			if (g.vector == 4)
				load_rows<4>(g, a, in, taps.of[p], rows);
			else if (g.vector == 2)
				load_rows<2>(g, a, in, taps.of[p], rows);
			else
				load_rows<1>(g, a, in, taps.of[p], rows);
			uint32_t *b = stage + (STAGE_PLANES * BM + p * BN) * PLANE_WORDS;
			static_assert(BN * 2 % THREADS == 0 || THREADS % (BN * 2) == 0, "all threads that take part have as many columns");
			const uint32_t *w = weights + ((size_t)plane * padded(g) + first_column) * PLANE_WORDS;
#pragma unroll
			for (int k = 0; k < BN * 2; k += THREADS) {
				const int i = k + threadIdx.x;
				if (BN * 2 < THREADS && i >= BN * 2)
					break;
				const bool inside = first_column + i / 2 < padded(g);
				copy_words<4>(&b[i * 4], inside ? w + i * 4 : weights, inside);
			}
		}
	}

	DEVICE uint2 pair(const uint32_t *p) { return *(const uint2 *)p; }

	// Sums of a lane: [s / 2][j][s % 2 * 2 + e] is that of row 8s + lane / 4 and column
	// 8j + 2(lane % 4) + e, as tensor cores have it.
	typedef LaneOutputs<SLOTS, COLS, F == FORM_U8 ? 1 : -2> Lane;
	typedef typename Lane::Sums Sums;
	typedef int32_t RowSums[SLOTS / 2][4];
	// Of what has been added up by integer units, for each slot and column of a lane.
	typedef uint32_t Parities[SLOTS][COLS * 2];

	// Adds the products over a plane, and to ones the popcounts of the rows if it is
	// this warp's turn.
	DEVICE void multiply(Sums &acc, [[maybe_unused]] RowSums &ones, [[maybe_unused]] Parities &parities, const uint32_t *a, const uint32_t *b, [[maybe_unused]] bool turn)
	{
		[[maybe_unused]] const int lane = threadIdx.x % 32;
		if (F == FORM_POPC) {
			multiply_popc(acc, parities, a, b);
			return;
		}
#if HAS_MMA_AND || HAS_MMA_XOR
		uint32_t x[SLOTS / 2][4];
#pragma unroll
		for (int s = 0; s < SLOTS; s += 2)
			ldmatrix_x4(x[s / 2], &a[(8 * s + lane % 16) * PLANE_WORDS + ((lane / 16 * 4) ^ (lane & 4))]);
		if (F == FORM_BYTES) {
			multiply_bytes(acc, ones, x, b, turn);
			return;
		}
#pragma unroll
		for (int j = 0; j < COLS; j++) {
			const uint2 w = pair(&b[(8 * j + lane / 4) * PLANE_WORDS + 2 * (lane % 4)]);
#pragma unroll
			for (int s = 0; s < SLOTS; s += 2)
				multiply_tile(acc[s / 2][j], x[s / 2], w);
		}
		if (F == FORM_AND && turn)
#pragma unroll
			for (int s = 0; s < SLOTS; s += 2)
				multiply_tile(ones[s / 2], x[s / 2], make_uint2(~0u, ~0u));
#endif
	}

#if HAS_MMA_AND || HAS_MMA_XOR
	// Every eighth bit of a word, from one on, as bytes.
	DEVICE uint32_t spread(uint32_t word, int bit) { return word >> bit & 0x01010101u; }

	// 16 rows and 8 columns, from one bit of each byte at a time.
	DEVICE void multiply_bytes(Sums &acc, RowSums &ones, const uint32_t (&x)[SLOTS / 2][4], const uint32_t *b, bool turn)
	{
#if HAS_MMA_AND
		const int lane = threadIdx.x % 32;
		uint2 w[COLS];
#pragma unroll
		for (int j = 0; j < COLS; j++)
			w[j] = pair(&b[(8 * j + lane / 4) * PLANE_WORDS + 2 * (lane % 4)]);
#pragma unroll
		for (int bit = 0; bit < 8; bit++) {
			uint32_t bytes[SLOTS / 2][4];
#pragma unroll
			for (int i = 0; i < SLOTS / 2 * 4; i++)
				bytes[i / 4][i % 4] = spread(x[i / 4][i % 4], bit);
#pragma unroll
			for (int j = 0; j < COLS; j++) {
				const uint32_t column[2] = {spread(w[j].x, bit), spread(w[j].y, bit)};
#pragma unroll
				for (int s = 0; s < SLOTS / 2; s++)
					mma_s8u8_m16n8k32(acc[s][j], bytes[s], column);
			}
			if (turn) {
				const uint32_t all[2] = {0x01010101u, 0x01010101u};
#pragma unroll
				for (int s = 0; s < SLOTS / 2; s++)
					mma_s8u8_m16n8k32(ones[s], bytes[s], all);
			}
		}
#endif
	}

#if HAS_MMA_XOR
	// 8 rows and 8 columns, of half a plane.
	DEVICE void multiply_quarter(int32_t (&acc)[2], uint32_t a, uint32_t b)
	{
		if (F == FORM_U8)
			mma_u8s8_m8n8k16(acc, a, b);
		else
			mma_xor_m8n8k128(acc, a, b);
	}
#endif

	// 16 rows and 8 columns.
	DEVICE void multiply_tile(int32_t (&acc)[4], const uint32_t (&a)[4], uint2 w)
	{
#if HAS_MMA_AND
		const uint32_t b[2] = {w.x, w.y};
		if (F == FORM_U8)
			mma_u8s8_m16n8k32(acc, a, b);
		else
			mma_and_m16n8k256(acc, a, b);
#else
		int32_t upper[2] = {acc[0], acc[1]}, lower[2] = {acc[2], acc[3]};
		multiply_quarter(upper, a[0], w.x);
		multiply_quarter(lower, a[1], w.x);
		multiply_quarter(upper, a[2], w.y);
		multiply_quarter(lower, a[3], w.y);
		acc[0] = upper[0], acc[1] = upper[1], acc[2] = lower[0], acc[3] = lower[1];
#endif
	}
#endif

	// 8 words by 3 popcounts or 4, in turns: as many clocks of these as of logic operations.
	DEVICE void multiply_popc(Sums &acc, Parities &parities, const uint32_t *a, const uint32_t *b)
	{
		const int at = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
		uint32_t x[SLOTS][PLANE_WORDS];
#pragma unroll
		for (int s = 0; s < SLOTS; s++) {
			const uint32_t *row = &a[(8 * s + at) * PLANE_WORDS];
			load4(&x[s][0], &row[at & 4]);
			load4(&x[s][4], &row[(at & 4) ^ 4]);
		}
#pragma unroll
		for (int c = 0; c < COLS * 2; c++) {
			uint32_t v[PLANE_WORDS];
			load8(v, &b[(c / 2 * 8 + 2 * t + c % 2) * PLANE_WORDS]);
			const uint32_t w[PLANE_WORDS] = {v[0], v[2], v[4], v[6], v[1], v[3], v[5], v[7]};
#pragma unroll
			for (int s = 0; s < SLOTS; s++) {
				Ones ones;
				ones.parity = parities[s][c];
				uint32_t carries[4];
#pragma unroll
				for (int i = 0; i < 4; i++)
					carries[i] = ones.pair(x[s][2 * i], w[2 * i], x[s][2 * i + 1], w[2 * i + 1]);
				parities[s][c] = ones.parity;
				int count = __popc(carries[3]);
				if (s % 2 != 0)
					count += __popc(odd(carries[0], carries[1], carries[2])) + 2 * __popc(most(carries[0], carries[1], carries[2]));
				else
					count += __popc(carries[0]) + __popc(carries[1]) + __popc(carries[2]);
				acc[s / 2][c / 2][s % 2 * 2 + c % 2] += 2 * count;
			}
		}
	}

	DEVICE void load4(uint32_t v[4], const uint32_t *p)
	{
		const uint4 four = *(const uint4 *)p;
		v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
	}

	DEVICE void load8(uint32_t v[8], const uint32_t *p)
	{
		const uint4 low = *(const uint4 *)p, high = *(const uint4 *)(p + 4);
		v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
		v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
	}

	// Row r of the tile is element e of the pooling window of output pixel q of the
	// warp. Windows fill the rows of a lane first.
	DEVICE void window_of(int r, int windows_log2, int &q, int &e)
	{
		const int slot_log2 = min(windows_log2, log2_of(SLOTS)), lane_log2 = windows_log2 - slot_log2;
		const int slot = r % WM / 8, at = r % 8;
		q = r / WM * (WM >> windows_log2) + ((slot >> slot_log2) << (3 - lane_log2)) + (at >> lane_log2);
		e = ((slot & ((1 << slot_log2) - 1)) << lane_log2) + (at & ((1 << lane_log2) - 1));
	}

	// The output pixel of the batch that row r of the tile belongs to, −1 for none.
	DEVICE int pixel_of(const Geometry &g, int r)
	{
		int q, e;
		window_of(r, g.pool_log2, q, e);
		q += blockIdx.x * (BM >> g.pool_log2);
		return q < g.images * g.out_h * g.out_w ? q : -1;
	}

	// The pixels of a lane, for finish: those of every eighth row from the first on.
	struct Pixels {
		const Geometry &g;
		const Row *rows;
		int first;
		__device__ int border(int s) const { return rows[first + 8 * s].border; }
		__device__ int pixel(int s) const { return pixel_of(g, first + 8 * s); }
	};

	DEVICE Row row_of(const Geometry &g, int r, int group, const int32_t *rows, const int32_t *cols)
	{
		int q, e;
		window_of(r, g.pool_log2, q, e);
		q += blockIdx.x * (BM >> g.pool_log2);
		if (q >= g.images * g.out_h * g.out_w)
			return Row{0, NOWHERE, NOWHERE, 0};
		const int image = q / (g.out_h * g.out_w), pixel = q - image * (g.out_h * g.out_w);
		const int oy = pixel / g.out_w, ox = pixel - oy * g.out_w;
		const int py = e / g.pool_w, px = e - py * g.pool_w;
		const int y = oy * g.pool_h + py, x = ox * g.pool_w + px;
		Row row;
		row.y = y * g.stride_h - g.pad_t;
		row.x = x * g.stride_w - g.pad_l;
		row.base = ((image * g.in_h + row.y) * g.in_w + row.x) * g.in_words + group * g.words;
		row.border = g.border ? (rows[y] * g.cols + cols[x]) * padded(g) : 0;
		return row;
	}

	DEVICE void run(const Geometry &g, const uint32_t *in, const uint32_t *weights, const int32_t *taps,
		const int32_t *border_rows, const int32_t *border_cols, const Outputs &to, unsigned long long *parts, uint32_t *shared)
	{
		Row *rows = (Row *)(shared + STAGES * STAGE_WORDS);
		// Tiles of columns do not cross groups.
		const int tiles = (g.group_out + BN - 1) / BN;
		const int group = blockIdx.y / tiles;
		const int first_column = group * g.group_out + (blockIdx.y - group * tiles) * BN;
		for (int r = threadIdx.x; r < BM; r += THREADS)
			rows[r] = row_of(g, r, group, border_rows, border_cols);
		after_previous(in);
		__syncthreads();

		const int warp = threadIdx.x / 32, wm = warp / WARPS_N, wn = warp % WARPS_N;
		Sums acc = {};
		RowSums ones = {};
		Parities parities = {};
		// STAGES − 1 stages are on their way while one is multiplied. The loop
		// starts that much earlier, so that the code to load is there once.
		const int start = SPLITS ? blockIdx.z * g.part_planes : 0;
		const int end = SPLITS ? min(start + g.part_planes, g.planes) : g.planes;
		const int count = (end - start + STAGE_PLANES - 1) / STAGE_PLANES;
		for (int i = 1 - STAGES; i < count; i++) {
			const int next = i + STAGES - 1;
			const StageTaps at = stage_taps(g, taps, start + next * STAGE_PLANES); // early: they come from afar
			if (i >= 0) {
				copies_done<STAGES - 2>();
				__syncthreads();
			}
			if (next < count)
				load_stage(g, shared + next % STAGES * STAGE_WORDS, in, weights, at, rows, start + next * STAGE_PLANES, end, first_column);
			copies_close();
			if (i < 0)
				continue;
			const uint32_t *stage = shared + i % STAGES * STAGE_WORDS;
#pragma unroll UNROLL
			for (int p = 0; p < STAGE_PLANES; p++) {
				const int plane = start + i * STAGE_PLANES + p;
				if (plane < end)
					multiply(acc, ones, parities, stage + (p * BM + wm * WM) * PLANE_WORDS, stage + (STAGE_PLANES * BM + p * BN + wn * WN) * PLANE_WORDS,
						plane % WARPS_N == wn);
			}
		}
		if (F == FORM_POPC)
#pragma unroll
			for (int s = 0; s < SLOTS; s++)
#pragma unroll
				for (int c = 0; c < COLS * 2; c++)
					acc[s / 2][c / 2][s % 2 * 2 + c % 2] += __popc(parities[s][c]);
		finish(g, acc, ones, to, parts, rows, (int *)shared, first_column, (group + 1) * g.group_out);
	}

	// Makes of the products the numbers of bits in which pixels and weights differ, but for
	// the ones of the weights, and of those the outputs of columns first_column to end.
	DEVICE void finish(const Geometry &g, Sums &acc, const RowSums &ones, const Outputs &to, unsigned long long *parts,
		const Row *rows, int *counts, int first_column, int end)
	{
		const int warp = threadIdx.x / 32, wm = warp / WARPS_N, wn = warp % WARPS_N;
		const int lane = threadIdx.x % 32, at = lane / 4, t = lane % 4;
		if (COUNTS_ROWS && WARPS_N > 1) {
			__syncthreads(); // the stages are no longer needed
			if (t == 0)
#pragma unroll
				for (int s = 0; s < SLOTS; s++)
					counts[wn * BM + wm * WM + 8 * s + at] = ones[s / 2][s % 2 * 2];
			__syncthreads();
		}
		if (COUNTS_ROWS)
#pragma unroll
			for (int s = 0; s < SLOTS; s++) {
				int row_sum = WARPS_N > 1 ? 0 : ones[s / 2][s % 2 * 2];
				if (WARPS_N > 1)
#pragma unroll
					for (int n = 0; n < WARPS_N; n++)
						row_sum += counts[n * BM + wm * WM + 8 * s + at];
#pragma unroll
				for (int j = 0; j < COLS; j++)
#pragma unroll
					for (int e = 0; e < 2; e++)
						acc[s / 2][j][s % 2 * 2 + e] = row_sum - 2 * acc[s / 2][j][s % 2 * 2 + e];
			}
		if (SPLITS && gridDim.z > 1 && !gather(g, acc, parts, counts))
			return;
		Lane::finish(g, acc, to, Pixels{g, rows, wm * WM + at}, first_column + wn * WN, end);
	}

	// Adds the counts of this part of K to those of the others of the tile. The last part
	// gets the total; it returns true there. shared is memory of the block.
	DEVICE bool gather(const Geometry &g, Sums &acc, unsigned long long *counts, int *shared)
	{
		enum { OF_TILE = BM * BN / SUMS_OF_ADD };
		const int tile = blockIdx.y * gridDim.x + blockIdx.x;
		unsigned long long *const own = counts + (size_t)tile * OF_TILE + threadIdx.x;
		// Counts may be negative by at most the bits of the part. With as much added none
		// borrows from its neighbour; the host sees to it that the total fits.
		const uint32_t more = g.part_planes * MOST_OF_PLANE;
#pragma unroll
		for (int i = 0; i < SLOTS / 2; i++)
#pragma unroll
			for (int j = 0; j < COLS; j++)
#pragma unroll
				for (int k = 0; k < 4; k += SUMS_OF_ADD)
					atomicAdd(&own[((i * COLS + j) * 4 + k) / SUMS_OF_ADD * THREADS], together(&acc[i][j][k], more));
		__syncthreads();
		if (threadIdx.x == 0) {
			__threadfence(); // for all threads of the block, see grid_sync
			unsigned *ticket = (unsigned *)(counts + (size_t)gridDim.x * gridDim.y * OF_TILE) + tile;
			const bool last = atomicAdd(ticket, 1) == gridDim.z - 1;
			if (last)
				atomicExch(ticket, 0);
			__threadfence();
			shared[0] = last;
		}
		__syncthreads();
		if (!shared[0])
			return false;
		const uint32_t all = more * gridDim.z;
#pragma unroll
		for (int i = 0; i < SLOTS / 2; i++)
#pragma unroll
			for (int j = 0; j < COLS; j++)
#pragma unroll
				for (int k = 0; k < 4; k += SUMS_OF_ADD)
					apart(&acc[i][j][k], atomicExch(&own[((i * COLS + j) * 4 + k) / SUMS_OF_ADD * THREADS], 0ull), all);
		return true;
	}

	// The sums of one atomic operation, with as much added to each, beside each other.
	DEVICE unsigned long long together(const int32_t *v, uint32_t more)
	{
		uint32_t low = v[0] + more, high = v[1] + more;
		if (SUMS_OF_ADD == 4)
			low += high << 16, high = (v[2] + more) + ((v[3] + more) << 16);
		return (unsigned long long)high << 32 | low;
	}

	// Undoes together.
	DEVICE void apart(int32_t *v, unsigned long long sums, uint32_t more)
	{
		const uint32_t low = (uint32_t)sums, high = (uint32_t)(sums >> 32);
		if (SUMS_OF_ADD == 4) {
			v[0] = (low & 0xffff) - more, v[1] = (low >> 16) - more;
			v[2] = (high & 0xffff) - more, v[3] = (high >> 16) - more;
		} else {
			v[0] = low - more, v[1] = high - more;
		}
	}
};

#define CONV(form, F, BM, BN, WARPS_M, WARPS_N, STAGES) \
	extern "C" __global__ void __launch_bounds__(32 * WARPS_M * WARPS_N, F == FORM_POPC ? 16 / (WARPS_M * WARPS_N) : 1) \
	conv_##form##_##BM##x##BN(const Geometry g, const uint32_t *__restrict__ in, void *__restrict__ out, \
		const uint32_t *__restrict__ weights, const int32_t *__restrict__ taps, const int32_t *__restrict__ base, \
		const int32_t *__restrict__ thresholds, const float *__restrict__ scale, const float *__restrict__ shift, \
		const float *__restrict__ slope, const uint32_t *__restrict__ flip, \
		const int32_t *__restrict__ rows, const int32_t *__restrict__ cols, const int32_t *__restrict__ correction, \
		unsigned long long *__restrict__ counts) \
	{ \
		DYNAMIC_SHARED(uint4, shared); \
		typedef Tile<F, BM, BN, WARPS_M, WARPS_N, STAGES> tile; \
		const Outputs to = {out, base, thresholds, scale, shift, slope, flip, correction}; \
		tile::run(g, in, weights, taps, rows, cols, to, counts, (uint32_t *)shared); \
	}

#if HAS_MMA_AND
CONV(and, FORM_AND, 16, 32, 1, 1, 4)
CONV(and, FORM_AND, 64, 32, 2, 1, 3)
CONV(and, FORM_AND, 64, 64, 2, 2, 3)
CONV(and, FORM_AND, 128, 128, 2, 2, 3)
CONV(and, FORM_AND, 128, 256, 2, 4, 3)
#endif
#if __CUDA_ARCH__ >= 900 // the newest PTX is what later devices take
CONV(imma, FORM_BYTES, 16, 32, 1, 1, 4)
CONV(imma, FORM_BYTES, 64, 32, 2, 1, 3)
CONV(imma, FORM_BYTES, 64, 64, 2, 2, 3)
CONV(imma, FORM_BYTES, 128, 128, 2, 2, 3)
#endif
#if HAS_MMA_XOR
CONV(xor, FORM_XOR, 16, 32, 1, 1, 2)
CONV(xor, FORM_XOR, 64, 32, 2, 1, 2)
CONV(xor, FORM_XOR, 64, 64, 2, 2, 2)
CONV(xor, FORM_XOR, 128, 128, 2, 2, 2)
#endif
#if HAS_MMA_BYTES
enum { BYTE_STAGES = __CUDA_ARCH__ >= 800 ? 3 : 2 };
CONV(bytes, FORM_U8, 16, 32, 1, 1, BYTE_STAGES)
CONV(bytes, FORM_U8, 64, 32, 2, 1, BYTE_STAGES)
CONV(bytes, FORM_U8, 64, 64, 2, 2, BYTE_STAGES)
CONV(bytes, FORM_U8, 128, 128, 2, 2, BYTE_STAGES)
#endif
#if HAS_MMA_AND
CONV(bytes, FORM_U8, 128, 256, 2, 4, BYTE_STAGES)
#endif
#if !HAS_MMA_AND && !HAS_MMA_XOR
CONV(popc, FORM_POPC, 16, 32, 1, 1, 2)
CONV(popc, FORM_POPC, 64, 64, 2, 2, 2)
#endif
#if __CUDA_ARCH__ < 800 || __CUDA_ARCH__ >= 900 // 8.0 to 9.0 multiply bits on tensor cores
CONV(popc, FORM_POPC, 128, 64, 4, 2, 2)
#endif
