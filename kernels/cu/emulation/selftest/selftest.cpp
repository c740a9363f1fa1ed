// Checks the emulated machine itself: warp and tensor-core instructions against their
// definition in the PTX ISA, barriers of block and grid, late copies, and that wrong
// kernels are found. Prints a line for each check that fails; exits 1 then.
#define SHARED_SECTION "bitcnn_shared_selftest"
#include "../../cuda_min.h"
#include "../races.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#undef blockIdx
#undef blockDim

using namespace emulation;

static int failures, checks;
static void check(bool ok, const char *what)
{
	checks++;
	if (!ok) {
		failures++;
		printf("FAILED %s\n", what);
	}
}

extern "C" __attribute__((weak)) char __start_bitcnn_shared_selftest[], __stop_bitcnn_shared_selftest[];

// run launches a kernel with one argument.
template <class T>
static Fault run(void (*f)(T), T argument, dim3 grid, dim3 block, size_t dynamic = 0, bool cooperative = false)
{
	static void (*function)(T);
	function = f;
	void *parameters[] = {&argument};
	Kernel k{"selftest", [](void *const *p) { function(*static_cast<T *>(p[0])); }, {sizeof(T)},
		__start_bitcnn_shared_selftest, __stop_bitcnn_shared_selftest};
	Launch l = {&k, parameters, grid, block, dynamic, cooperative, false};
	return launch(l, nullptr);
}

// Memory that the race detector knows as the device's, on pages of its own; zeros.
template <class T> struct Buffer {
	size_t n;
	T *p;
	explicit Buffer(size_t n) : n(n), p(static_cast<T *>(aligned_alloc(4096, (n * sizeof(T) + 4095) / 4096 * 4096)))
	{
		memset(p, 0, n * sizeof(T));
		races::allocated((uintptr_t)p, n * sizeof(T));
	}
	~Buffer()
	{
		races::freed((uintptr_t)p);
		free(p);
	}
	Buffer(const Buffer &) = delete;
	T *data() { return p; }
	void written() { races::written((uintptr_t)p, n * sizeof(T)); }
};

static std::mt19937 rng(1);

// Warps.

struct Warps {
	unsigned *out;
};
static void warps(Warps p)
{
	const unsigned lane = threadIdx.x;
	unsigned *o = p.out + lane * 16;
	o[0] = __ballot_sync(~0u, lane % 3 == 0);
	o[1] = __shfl_sync(~0u, lane * 10, 37, 16);
	o[2] = __shfl_up_sync(~0u, lane * 10, 3, 8);
	o[3] = __shfl_down_sync(~0u, lane * 10, 5);
	o[4] = __shfl_xor_sync(~0u, lane * 10, 9);
	o[5] = (unsigned)__reduce_add_sync(~0u, (int)lane - 20);
	o[6] = __reduce_max_sync(~0u, lane ^ 21);
	o[7] = __any_sync(~0u, lane == 31) * 2 + __all_sync(~0u, lane < 31);
	// Halves of the warp that go their own ways, one of them more often.
	if (lane < 16) {
		o[8] = 0;
		for (int i = 0; i < 3; i++)
			o[8] += __ballot_sync(0x0000ffff, lane > (unsigned)i);
	} else {
		o[8] = __ballot_sync(0xffff0000, lane & 1);
	}
	__syncwarp();
	o[9] = __shfl_sync(~0u, o[8], 31 - lane);
	o[10] = 0;
	if (lane >= 4)
		return;
	// Those who have ended take no part.
	o[10] = __ballot_sync(~0u, 1);
}

static void test_warps()
{
	Buffer<unsigned> out(32 * 16);
	check(run(warps, Warps{out.data()}, 1, 32) == Fault::none, "warps: launch");
	for (unsigned l = 0; l < 32; l++) {
		const unsigned *o = out.data() + l * 16;
		check(o[0] == 0x49249249, "ballot");
		check(o[1] == ((l & 16) + 5) * 10, "shfl of half a warp");
		check(o[2] == (l % 8 < 3 ? l : l - 3) * 10, "shfl_up in eights");
		check(o[3] == (l + 5 > 31 ? l : l + 5) * 10, "shfl_down");
		check(o[4] == (l ^ 9) * 10, "shfl_xor");
		check((int)o[5] == 496 - 640, "reduce_add");
		check(o[6] == 31, "reduce_max");
		check(o[7] == 2, "any, all");
		const unsigned low = 0xfffe + 0xfffc + 0xfff8, high = 0xaaaa0000;
		check(o[8] == (l < 16 ? low : high), "ballots of halves");
		check(o[9] == (31 - l < 16 ? low : high), "shfl after halves");
		check(o[10] == (l < 4 ? 15u : 0u), "ballot after others ended");
	}
}

// Integer instructions.

static void test_integers()
{
	for (int i = 0; i < 1000; i++) {
		const unsigned a = rng(), b = rng(), c = rng();
		int us = (int)c;
		unsigned uu = c;
		int ss = (int)c;
		for (int k = 0; k < 4; k++) {
			const unsigned x = a >> 8 * k & 255, y = b >> 8 * k & 255;
			const int sx = x >= 128 ? (int)x - 256 : (int)x, sy = y >= 128 ? (int)y - 256 : (int)y;
			us = (int)((unsigned)us + (unsigned)((int)x * sy));
			ss = (int)((unsigned)ss + (unsigned)(sx * sy));
			uu += x * y;
		}
		check(dp4a_us(a, (int)b, (int)c) == us, "dp4a_us");
		check(__dp4a((int)a, (int)b, (int)c) == ss, "dp4a signed");
		check(__dp4a(a, b, c) == uu, "dp4a unsigned");
		const unsigned s = c & 31;
		check(__funnelshift_r(a, b, c) == (s ? a >> s | b << (32 - s) : a), "funnelshift_r");
		check(__byte_perm(a, b, 0x5140) == ((a & 255) | (b & 255) << 8 | (a >> 8 & 255) << 16 | (b >> 8 & 255) << 24),
			"byte_perm");
		check(__byte_perm(a, b, 0xfedc) == ((b >> 7 & 1) * 255u | (b >> 15 & 1) * 0xff00u | (b >> 23 & 1) * 0xff0000u |
			(b >> 31) * 0xff000000u), "byte_perm of signs");
	}
}

// Tensor cores: matrices of rows × k elements of the given bits, and fragments filled
// by the formulas of the PTX ISA for element i of the lane's fragment.

enum Shape { m8n8k128, m16n8k128, m16n8k256, m16n8k32s8 };
struct Mma {
	Shape shape;
	bool use_and;
	uint32_t *a, *b;
	int32_t *d; // per lane 4, 2 and 4
};
static void mmas(Mma p)
{
	const unsigned lane = threadIdx.x;
	uint32_t a[4], b[2];
	int32_t d[4];
	memcpy(a, p.a + 4 * lane, sizeof a);
	memcpy(b, p.b + 2 * lane, sizeof b);
	memcpy(d, p.d + 4 * lane, sizeof d);
	switch (p.shape) {
	case m8n8k128: {
		int32_t two[2] = {d[0], d[1]};
		mma_xor_m8n8k128(two, a[0], b[0]);
		d[0] = two[0], d[1] = two[1];
		break;
	}
	case m16n8k128: {
		const uint32_t two[2] = {a[0], a[1]};
		mma_and_m16n8k128(d, two, b[0]);
		break;
	}
	case m16n8k256:
		p.use_and ? mma_and_m16n8k256(d, a, b) : mma_xor_m16n8k256(d, a, b);
		break;
	case m16n8k32s8:
		mma_s8_m16n8k32(d, a, b);
		break;
	}
	memcpy(p.d + 4 * lane, d, sizeof d);
}

static void test_mma(Shape shape, bool use_and, const char *name)
{
	const int rows = shape == m8n8k128 ? 8 : 16, columns = 8;
	const int depth = shape == m16n8k256 ? 256 : shape == m16n8k32s8 ? 32 : 128;
	const bool bytes = shape == m16n8k32s8;
	std::vector<int> A(rows * depth), B(depth * columns), C(rows * columns);
	for (int &v : A)
		v = bytes ? (int8_t)rng() : (int)(rng() & 1);
	for (int &v : B)
		v = bytes ? (int8_t)rng() : (int)(rng() & 1);
	for (int &v : C)
		v = (int)(rng() % 2001) - 1000;
	Buffer<uint32_t> a(32 * 4), b(32 * 2);
	Buffer<int32_t> d(32 * 4);
	const int bits = bytes ? 8 : 1, per_word = 32 / bits;
	const int in_a = rows * depth / 32, in_b = depth * columns / 32, in_d = rows * columns / 32;
	const auto result = [&](int lane, int i, int &row, int &column) {
		row = lane / 4 + (i < 2 ? 0 : 8);
		column = lane % 4 * 2 + (i & 1);
	};
	for (int lane = 0; lane < 32; lane++) {
		const int g = lane / 4, t = lane % 4;
		for (int i = 0; i < in_a; i++) {
			int row = g, k = 0;
			if (shape == m8n8k128) {
				k = t * 32 + i;
			} else if (shape == m16n8k128) {
				row = i < 32 ? g : g + 8;
				k = t * 32 + (i & 31);
			} else if (shape == m16n8k256) {
				row = i < 32 || (i >= 64 && i < 96) ? g : g + 8;
				k = t * 32 + (i & 31) + (i < 64 ? 0 : 128);
			} else {
				row = i < 4 || (i >= 8 && i < 12) ? g : g + 8;
				k = t * 4 + (i & 3) + (i < 8 ? 0 : 16);
			}
			const uint32_t v = (uint32_t)A[row * depth + k] & (bytes ? 255 : 1);
			a.data()[4 * lane + i / per_word] |= v << i % per_word * bits;
		}
		for (int i = 0; i < in_b; i++) {
			const int k = bytes ? t * 4 + (i & 3) + (i < 4 ? 0 : 16) : t * 32 + (i & 31) + (i < 32 ? 0 : 128);
			const uint32_t v = (uint32_t)B[k * columns + g] & (bytes ? 255 : 1);
			b.data()[2 * lane + i / per_word] |= v << i % per_word * bits;
		}
		for (int i = 0; i < in_d; i++) {
			int row, column;
			result(lane, i, row, column);
			d.data()[4 * lane + i] = C[row * columns + column];
		}
	}
	a.written(), b.written(), d.written();
	check(run(mmas, Mma{shape, use_and, a.data(), b.data(), d.data()}, 1, 32) == Fault::none, name);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < in_d; i++) {
			int row, column;
			result(lane, i, row, column);
			int want = C[row * columns + column];
			for (int k = 0; k < depth; k++) {
				const int x = A[row * depth + k], y = B[k * columns + column];
				want += bytes ? x * y : use_and ? (x & y) : (x ^ y);
			}
			check(d.data()[4 * lane + i] == want, name);
		}
}

static void load_matrices(unsigned *out)
{
	__shared__ __align__(16) unsigned rows[32][4];
	for (int i = 0; i < 4; i++)
		rows[threadIdx.x][i] = threadIdx.x * 100 + i;
	__syncthreads();
	uint32_t d[4];
	ldmatrix_x4(d, rows[threadIdx.x]);
	for (int i = 0; i < 4; i++)
		out[4 * threadIdx.x + i] = d[i];
}

static void test_ldmatrix()
{
	Buffer<unsigned> out(128);
	check(run(load_matrices, out.data(), 1, 32) == Fault::none, "ldmatrix: launch");
	for (unsigned l = 0; l < 32; l++)
		for (unsigned i = 0; i < 4; i++)
			check(out.data()[4 * l + i] == (8 * i + l / 4) * 100 + l % 4, "ldmatrix");
}

// Barriers and copies.

static void block_sum(int *out)
{
	DYNAMIC_SHARED(int, value);
	value[threadIdx.x] = threadIdx.x;
	for (unsigned half = 64; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			value[threadIdx.x] += value[threadIdx.x + half];
	}
	if (threadIdx.x == 0)
		out[current->block->index.x] = value[0];
}

static void grid(unsigned *p) // barrier, ticket, results of 6 blocks, total
{
	__shared__ unsigned mine;
	const unsigned b = current->block->index.x;
	if (threadIdx.x == 0) {
		mine = b + 1;
		p[2 + b] = mine;
	}
	grid_sync(p);
	unsigned sum = 0;
	for (int i = 0; i < 6; i++)
		sum += p[2 + i];
	grid_sync(p);
	if (threadIdx.x == 0)
		p[2 + b] = sum * mine; // its own, after others' blocks have run
}

static void late_copy(int *p)
{
	__shared__ __align__(16) int tile[8];
	if (threadIdx.x == 0) {
		cp_async<16>(tile, p);
		cp_async_commit();
		cp_async<16>(tile + 4, p + 4, false);
		cp_async_commit();
		cp_async_wait<1>();
		p[8] = tile[0] + tile[3];
		cp_async_wait<0>();
		p[9] = tile[4];
	}
}

static void test_barriers()
{
	Buffer<int> sums(5);
	check(run(block_sum, sums.data(), 5, 128, 512) == Fault::none, "sum: launch");
	for (int i = 0; i < 5; i++)
		check(sums.data()[i] == 128 * 127 / 2, "sum");
	Buffer<unsigned> g(8);
	g.written();
	check(run(grid, g.data(), 6, 64, 0, true) == Fault::none, "grid: launch");
	for (unsigned i = 0; i < 6; i++)
		check(g.data()[2 + i] == 21 * (i + 1), "grid");
	Buffer<int> c(10);
	for (int i = 0; i < 8; i++)
		c.data()[i] = i + 1;
	c.written();
	check(run(late_copy, c.data(), 1, 32) == Fault::none, "late copy: launch");
	check(c.data()[8] == 5 && c.data()[9] == 0, "late copy");
}

// Wrong kernels.

static void early_return(int *)
{
	if (threadIdx.x >= 20)
		return;
	__syncthreads();
}
static void two_barriers(int *)
{
	if (threadIdx.x & 1)
		__syncthreads();
	else
		__syncthreads();
}
static void absent_lane(int *)
{
	if (threadIdx.x != 7)
		__ballot_sync(~0u, 1);
	__syncthreads();
}
static void not_in_mask(int *) { __syncwarp(1); }
static void lonely_grid(int *) { grid_sync(nullptr); }
[[maybe_unused]] static void far_away(int *p) { p[(size_t)1 << 40] = 1; }

static void test_faults()
{
	check(run(early_return, (int *)nullptr, 1, 32) == Fault::failed, "early return is found");
	check(run(two_barriers, (int *)nullptr, 1, 32) == Fault::failed, "two barriers are found");
	check(run(absent_lane, (int *)nullptr, 1, 32) == Fault::failed, "absent lane is found");
	check(run(not_in_mask, (int *)nullptr, 1, 32) == Fault::failed, "lane outside of its mask is found");
	check(run(lonely_grid, (int *)nullptr, 2, 32) == Fault::failed, "grid_sync without cooperation is found");
#if !defined(EMULATION_ADDRESS)
	int here;
	check(run(far_away, &here, 1, 32) == Fault::illegal_address, "illegal address is found");
#endif
	test_barriers(); // nothing of them remains
}

// Races, which only their detector finds.

static void neighbour(int *p)
{
	__shared__ int tile[64];
	tile[threadIdx.x] = p[threadIdx.x];
	p[threadIdx.x] = tile[threadIdx.x ^ 1];
}
static void warp_neighbour(int *p)
{
	__shared__ int tile[64];
	tile[threadIdx.x] = p[threadIdx.x];
	__syncwarp();
	p[threadIdx.x] = tile[threadIdx.x ^ 1];
}
static void other_warp(int *p)
{
	__shared__ int tile[64];
	tile[threadIdx.x] = p[threadIdx.x];
	__syncwarp();
	p[threadIdx.x] = tile[threadIdx.x ^ 32];
}
static void two_blocks(int *p) { p[threadIdx.x] = 3; }
static void overwritten(int *p)
{
	__shared__ int tile[64];
	for (int i = 0; i < 2; i++) {
		tile[threadIdx.x] = p[threadIdx.x] + i;
		__syncthreads();
		p[threadIdx.x] = tile[63 - threadIdx.x];
	}
}
static void never_written(int *p)
{
	__shared__ int tile[64];
	p[threadIdx.x] = tile[threadIdx.x];
}
template <bool fences> static void tickets(int *p) // ticket, sums of 4 blocks, total
{
	__shared__ int last;
	const unsigned b = current->block->index.x;
	if (threadIdx.x == 5)
		p[1 + b] = b + 1;
	__syncthreads();
	if (threadIdx.x == 0) {
		if (fences)
			__threadfence();
		last = atomicAdd(p, 1) == 3;
	}
	__syncthreads();
	if (last && threadIdx.x == 9)
		p[5] = p[1] + p[2] + p[3] + p[4];
}

static void test_races()
{
#if defined(EMULATION_RACES)
	const Fault race = Fault::failed;
#else
	const Fault race = Fault::none;
#endif
	Buffer<int> p(64);
	p.written();
	check(run(neighbour, p.data(), 1, 64) == race, "race between lanes");
	check(run(warp_neighbour, p.data(), 1, 64) == Fault::none, "lanes ordered by syncwarp");
	check(run(other_warp, p.data(), 1, 64) == race, "race between warps");
	check(run(two_blocks, p.data(), 2, 64) == race, "race between blocks");
	check(run(two_blocks, p.data(), 1, 64) == Fault::none, "no race in one block");
	check(run(overwritten, p.data(), 1, 64) == race, "race with the next round");
	check(run(never_written, p.data(), 1, 64) == race, "read of garbage");
	for (int i = 0; i < 6; i++)
		p.data()[i] = 0;
	check(run(tickets<true>, p.data(), 4, 32) == Fault::none, "tickets with fences");
	check(p.data()[5] == 10, "tickets");
	p.data()[0] = 0;
	check(run(tickets<false>, p.data(), 4, 32) == race, "tickets without fences");
}

int main()
{
	for (const char *order : {"forward", "reverse", "random:1", "random:2"}) {
		setenv("BCNN_EMULATOR_ORDER", order, 1);
		test_warps();
		test_integers();
		test_mma(m8n8k128, false, "mma_xor_m8n8k128");
		test_mma(m16n8k128, true, "mma_and_m16n8k128");
		test_mma(m16n8k256, true, "mma_and_m16n8k256");
		test_mma(m16n8k256, false, "mma_xor_m16n8k256");
		test_mma(m16n8k32s8, false, "mma_s8_m16n8k32");
		test_ldmatrix();
		test_barriers();
		test_faults();
		test_races();
	}
	printf("%d passed, %d failed\n", checks - failures, failures);
	return failures > 0;
}
