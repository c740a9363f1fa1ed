// CUDA C++ on a processor: what cuda_min.h declares for a GPU, for a C++ compiler.
// Every function does exactly what the instruction does, and fails where its use is
// undefined and that can be seen.
#ifndef BITCNN_EMULATION_DEVICE_H
#define BITCNN_EMULATION_DEVICE_H

#include <cmath>
#include <cstring>
#include <ctime>

#include "engine.h"

#define __host__
#define __device__
#define __global__
#define __constant__
#define __shared__ static __attribute__((section(SHARED_SECTION)))
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define DEVICE [[maybe_unused]] static inline
#define DYNAMIC_SHARED(type, name) type *const name = reinterpret_cast<type *>(emulation::dynamic_shared())
#define warpSize 32

// The place of a call, for messages and for telling barriers apart.
#define HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Functions that must not be seen by the race detector's instrumentation.
#define UNSEEN __attribute__((no_sanitize("thread")))

struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
DEVICE int2 make_int2(int x, int y) { return {x, y}; }
DEVICE int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
DEVICE uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
DEVICE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
DEVICE float2 make_float2(float x, float y) { return {x, y}; }
DEVICE float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

#define threadIdx (emulation::current->index)
#define blockIdx (emulation::current->block->index)
#define blockDim (emulation::block_size)
#define gridDim (emulation::grid_size)

DEVICE void __syncthreads(HERE) { emulation::wait_for_block(file, line); }
DEVICE void __syncwarp(unsigned mask = ~0u, HERE)
{
	emulation::finish(emulation::exchange(mask, nullptr, 0, "__syncwarp", file, line));
}
DEVICE void __threadfence() { emulation::fence(); }
DEVICE void __threadfence_block() {}
DEVICE void grid_sync(unsigned *barrier, HERE) { emulation::wait_for_grid(barrier, file, line); }
DEVICE void griddepcontrol_wait(HERE) { emulation::wait_for_previous(file, line); }
DEVICE void griddepcontrol_launch_dependents() {} // the next kernel begins as early as it can
template <typename T> DEVICE T *unknown_pointer(T *p) { return p; }

DEVICE int __popc(unsigned v) { return __builtin_popcount(v); }
DEVICE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
DEVICE int __clz(int v) { return v ? __builtin_clz(v) : 32; }
DEVICE int __ffs(int v) { return __builtin_ffs(v); }
DEVICE unsigned __brev(unsigned v)
{
	unsigned r = 0;
	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}
DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }
DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
	const uint64_t both = (uint64_t)b << 32 | a;
	unsigned r = 0;
	for (int i = 0; i < 4; i++) {
		const unsigned s = selector >> 4 * i & 15;
		unsigned byte = both >> 8 * (s & 7) & 255;
		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << 8 * i;
	}
	return r;
}
DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
	return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
	return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}
template <class To, class From> UNSEEN static inline To same_bits(From v)
{
	To r;
	static_assert(sizeof r == sizeof v);
	memcpy(&r, &v, sizeof r);
	return r;
}
DEVICE int __float_as_int(float v) { return same_bits<int>(v); }
DEVICE unsigned __float_as_uint(float v) { return same_bits<unsigned>(v); }
DEVICE float __int_as_float(int v) { return same_bits<float>(v); }
DEVICE float __uint_as_float(unsigned v) { return same_bits<float>(v); }

// Warps. What a lane outside of the mask, or one that has ended, would have given
// is undefined on a GPU; here it is garbage.
UNSEEN static inline unsigned lane_value(const emulation::Exchange *e, unsigned lane)
{
	unsigned v = 0xdeadbeef;
	if (e->arrived >> lane & 1)
		memcpy(&v, e->values[lane], 4);
	return v;
}
UNSEEN static inline unsigned vote(unsigned mask, int p, const char *operation, const char *file, int line)
{
	const unsigned v = p != 0;
	emulation::Exchange *e = emulation::exchange(mask, &v, 4, operation, file, line);
	unsigned r = 0;
	for (int i = 0; i < 32; i++)
		if (e->arrived >> i & 1)
			r |= lane_value(e, i) << i;
	emulation::finish(e);
	return r;
}
DEVICE unsigned __ballot_sync(unsigned mask, int p, HERE) { return vote(mask, p, "__ballot_sync", file, line); }
DEVICE int __any_sync(unsigned mask, int p, HERE) { return vote(mask, p, "__any_sync", file, line) != 0; }
DEVICE int __all_sync(unsigned mask, int p, HERE) { return vote(mask, !p, "__all_sync", file, line) == 0; }
template <class T>
UNSEEN static inline T shuffle(unsigned mask, T v, int from, const char *operation, const char *file, int line)
{
	static_assert(sizeof v == 4);
	emulation::Exchange *e = emulation::exchange(mask, &v, 4, operation, file, line);
	const T r = same_bits<T>(lane_value(e, from));
	emulation::finish(e);
	return r;
}
template <class T> static inline T __shfl_sync(unsigned mask, T v, unsigned by, int width = 32, HERE)
{
	const int lane = emulation::current->lane, first = lane & -width;
	return shuffle(mask, v, first + (by & (width - 1)), "__shfl_sync", file, line);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, HERE)
{
	const int lane = emulation::current->lane, first = lane & -width, from = lane - (int)by;
	return shuffle(mask, v, from < first ? lane : from, "__shfl_up_sync", file, line);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, HERE)
{
	const int lane = emulation::current->lane, last = lane | (width - 1), from = lane + (int)by;
	return shuffle(mask, v, from > last ? lane : from, "__shfl_down_sync", file, line);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, unsigned by, int width = 32, HERE)
{
	const int lane = emulation::current->lane, last = lane | (width - 1), from = lane ^ (int)by;
	return shuffle(mask, v, from > last ? lane : from, "__shfl_xor_sync", file, line);
}

template <class T, class F>
UNSEEN static inline T reduce(unsigned mask, T v, F f, const char *operation, const char *file, int line)
{
	emulation::Exchange *e = emulation::exchange(mask, &v, 4, operation, file, line);
	T r = v; // and once more, below
	bool any = false;
	for (int i = 0; i < 32; i++)
		if (e->arrived >> i & 1) {
			const T other = same_bits<T>(lane_value(e, i));
			r = any ? f(r, other) : other;
			any = true;
		}
	emulation::finish(e);
	return r;
}
#define REDUCE(name, type, expression) \
	DEVICE type name(unsigned mask, type v, HERE) \
	{ \
		return reduce(mask, v, [](type a, type b) { return (type)(expression); }, #name, file, line); \
	}
REDUCE(__reduce_add_sync, int, (unsigned)a + (unsigned)b)
REDUCE(__reduce_add_sync, unsigned, a + b)
REDUCE(__reduce_min_sync, int, a < b ? a : b)
REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
REDUCE(__reduce_max_sync, int, a > b ? a : b)
REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
REDUCE(__reduce_or_sync, unsigned, a | b)
#undef REDUCE

// Atomics: threads do not interrupt each other.
template <class T, class F> UNSEEN static inline T atomic(T *p, F f)
{
	emulation::atomic_access(p, sizeof *p);
	const T old = *p;
	*p = f(old);
	return old;
}
DEVICE int atomicAdd(int *p, int v) { return atomic(p, [=](int o) { return (int)((unsigned)o + (unsigned)v); }); }
DEVICE unsigned atomicAdd(unsigned *p, unsigned v) { return atomic(p, [=](unsigned o) { return o + v; }); }
DEVICE unsigned long long atomicAdd(unsigned long long *p, unsigned long long v)
{
	return atomic(p, [=](unsigned long long o) { return o + v; });
}
DEVICE int atomicMin(int *p, int v) { return atomic(p, [=](int o) { return o < v ? o : v; }); }
DEVICE unsigned atomicMin(unsigned *p, unsigned v) { return atomic(p, [=](unsigned o) { return o < v ? o : v; }); }
DEVICE int atomicMax(int *p, int v) { return atomic(p, [=](int o) { return o > v ? o : v; }); }
DEVICE unsigned atomicMax(unsigned *p, unsigned v) { return atomic(p, [=](unsigned o) { return o > v ? o : v; }); }
DEVICE unsigned atomicAnd(unsigned *p, unsigned v) { return atomic(p, [=](unsigned o) { return o & v; }); }
DEVICE unsigned atomicOr(unsigned *p, unsigned v) { return atomic(p, [=](unsigned o) { return o | v; }); }
DEVICE unsigned atomicXor(unsigned *p, unsigned v) { return atomic(p, [=](unsigned o) { return o ^ v; }); }
DEVICE unsigned atomicExch(unsigned *p, unsigned v) { return atomic(p, [=](unsigned) { return v; }); }
DEVICE unsigned long long atomicExch(unsigned long long *p, unsigned long long v)
{
	return atomic(p, [=](unsigned long long) { return v; });
}
DEVICE unsigned atomicCAS(unsigned *p, unsigned compare, unsigned v)
{
	return atomic(p, [=](unsigned o) { return o == compare ? v : o; });
}

// Built with -ffp-contract=off.
DEVICE float __fmaf_rn(float a, float b, float c) { return emulation::fused(a, b, c); }
DEVICE float __fmul_rn(float a, float b) { return a * b; }
DEVICE float __fadd_rn(float a, float b) { return a + b; }
DEVICE int min(int a, int b) { return a < b ? a : b; }
DEVICE int max(int a, int b) { return a > b ? a : b; }
DEVICE unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
DEVICE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
DEVICE int __dp4a(int a, int b, int c)
{
	for (int i = 0; i < 32; i += 8)
		c = (int)((unsigned)c + (unsigned)((int8_t)(a >> i) * (int8_t)(b >> i)));
	return c;
}
DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
	for (int i = 0; i < 32; i += 8)
		c += (a >> i & 255) * (b >> i & 255);
	return c;
}
DEVICE int dp4a_us(unsigned a, int b, int c)
{
	for (int i = 0; i < 32; i += 8)
		c = (int)((unsigned)c + (unsigned)((int)(a >> i & 255) * (int8_t)(b >> i)));
	return c;
}
template <class T> static inline T __ldg(const T *p) { return *p; }
DEVICE long long clock64()
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Tensor cores. Lanes show each other their fragments; each computes its own
// results from the rows and columns that they hold.
struct Fragments {
	uint32_t a[4], b[2];
};
UNSEEN static inline Fragments fragments(const emulation::Exchange *e, unsigned lane)
{
	Fragments f;
	memcpy(&f, e->values[lane], sizeof f);
	return f;
}
// All lanes of the warp must come.
UNSEEN static inline emulation::Exchange *show(const void *v, size_t n, const char *operation, const char *file, int line)
{
	emulation::Exchange *e = emulation::exchange(~0u, v, n, operation, file, line);
	if (e->arrived != ~0u)
		emulation::fail(emulation::Fault::failed, "%s:%d: divergent barrier: %s without the lanes %#x", file, line, operation,
			~e->arrived);
	return e;
}
// mma multiplies a of `rows` × (4 · words per lane) words by b with 8 columns.
template <int results, int words, class Word>
UNSEEN static inline void mma(int32_t (&d)[results], const Fragments &mine, Word product, const char *operation,
	const char *file, int line)
{
	emulation::Exchange *e = show(&mine, sizeof mine, operation, file, line);
	const int lane = emulation::current->lane, g = lane / 4, t = lane % 4;
	constexpr int halves = results / 2; // of the rows: 0–7 and 8–15
	for (int i = 0; i < results; i++) {
		const int half = i / 2, column = 2 * t + i % 2;
		uint32_t sum = (uint32_t)d[i];
		for (int k = 0; k < 4; k++) {
			const Fragments row = fragments(e, 4 * g + k), col = fragments(e, 4 * column + k);
			for (int w = 0; w < words; w++)
				sum += (uint32_t)product(row.a[halves * w + half], col.b[w]);
		}
		d[i] = (int32_t)sum;
	}
	emulation::finish(e);
}
DEVICE void mma_xor_m8n8k128(int32_t (&d)[2], uint32_t a, uint32_t b, HERE)
{
	mma<2, 1>(d, {{a}, {b}}, [](uint32_t x, uint32_t y) { return __popc(x ^ y); }, "mma_xor_m8n8k128", file, line);
}
DEVICE void mma_s8u8_m8n8k16(int32_t (&d)[2], uint32_t a, uint32_t b, HERE)
{
	mma<2, 1>(d, {{a}, {b}}, [](uint32_t x, uint32_t y) { return dp4a_us(y, (int)x, 0); }, "mma_s8u8_m8n8k16", file, line);
}
DEVICE void mma_u8s8_m8n8k16(int32_t (&d)[2], uint32_t a, uint32_t b, HERE)
{
	mma<2, 1>(d, {{a}, {b}}, [](uint32_t x, uint32_t y) { return dp4a_us(x, (int)y, 0); }, "mma_u8s8_m8n8k16", file, line);
}
DEVICE void ldmatrix_x4(uint32_t (&d)[4], const void *row, HERE)
{
	if ((uintptr_t)row % 16)
		emulation::fail(emulation::Fault::failed, "%s:%d: ldmatrix of an address that is not a multiple of 16", file, line);
	emulation::plain_access(row, 16, false);
	uint4 words;
	memcpy(&words, row, sizeof words);
	emulation::Exchange *e = show(&words, sizeof words, "ldmatrix", file, line);
	const int lane = emulation::current->lane;
	for (int i = 0; i < 4; i++)
		memcpy(&d[i], e->values[8 * i + lane / 4] + 4 * (lane % 4), 4);
	emulation::finish(e);
}
DEVICE void mma_and_m16n8k128(int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b, HERE)
{
	mma<4, 1>(d, {{a[0], a[1]}, {b}}, [](uint32_t x, uint32_t y) { return __popc(x & y); }, "mma_and_m16n8k128", file, line);
}
DEVICE void mma_and_m16n8k256(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HERE)
{
	mma<4, 2>(d, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, [](uint32_t x, uint32_t y) { return __popc(x & y); },
		"mma_and_m16n8k256", file, line);
}
DEVICE void mma_xor_m16n8k256(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HERE)
{
	mma<4, 2>(d, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, [](uint32_t x, uint32_t y) { return __popc(x ^ y); },
		"mma_xor_m16n8k256", file, line);
}
DEVICE void mma_s8_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HERE)
{
	mma<4, 2>(d, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, [](uint32_t x, uint32_t y) { return __dp4a((int)x, (int)y, 0); },
		"mma_s8_m16n8k32", file, line);
}
DEVICE void mma_s8u8_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HERE)
{
	mma<4, 2>(d, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, [](uint32_t x, uint32_t y) { return dp4a_us(y, (int)x, 0); },
		"mma_s8u8_m16n8k32", file, line);
}
DEVICE void mma_u8s8_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HERE)
{
	mma<4, 2>(d, {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, [](uint32_t x, uint32_t y) { return dp4a_us(x, (int)y, 0); },
		"mma_u8s8_m16n8k32", file, line);
}

// The bytes arrive as late as they may: when they are waited for.
template <int bytes> static inline void cp_async(void *shared, const void *global, bool valid = true, HERE)
{
	static_assert(bytes == 4 || bytes == 8 || bytes == 16);
	if ((uintptr_t)shared % bytes || (valid && (uintptr_t)global % bytes))
		emulation::fail(emulation::Fault::failed, "%s:%d: cp.async of an address that is not a multiple of %d", file, line, bytes);
	emulation::start_copy(shared, global, bytes, valid ? bytes : 0);
}
DEVICE void cp_async_commit() { emulation::close_group(); }
template <int n> static inline void cp_async_wait() { emulation::wait_for_groups(n); }

// Addresses of shared memory, as descriptions of matrices hold them.
DEVICE unsigned shared_address(const void *p)
{
	return (unsigned)(static_cast<const char *>(p) - emulation::dynamic_shared() + emulation::shared_base);
}
DEVICE uint64_t matrix_descriptor(const void *begin, unsigned halves, unsigned groups)
{
	return (uint64_t)(shared_address(begin) >> 4 & 0x3fff) | (uint64_t)(halves >> 4) << 16 | (uint64_t)(groups >> 4) << 32;
}
DEVICE uint64_t matrix_move(unsigned rows, unsigned halves) { return (uint64_t)halves << 16 | rows; }
DEVICE void fence_proxy_async() { emulation::fence_proxy_async(); }
DEVICE void wgmma_fence(HERE) { emulation::wgmma_fence(file, line); }
DEVICE void wgmma_commit(HERE) { emulation::wgmma_commit(file, line); }
#define WGMMA_REGISTERS(d) (uint32_t *)&d[0], (uint32_t *)&d[1], (uint32_t *)&d[2], (uint32_t *)&d[3]
#define WGMMA_PRODUCT(name, product) \
	template <bool FIRST> static inline void name(int32_t (&d)[16][4], uint64_t a, uint64_t b, HERE) \
	{ \
		emulation::product({WGMMA_REGISTERS(d[0]), WGMMA_REGISTERS(d[1]), WGMMA_REGISTERS(d[2]), WGMMA_REGISTERS(d[3]), \
			WGMMA_REGISTERS(d[4]), WGMMA_REGISTERS(d[5]), WGMMA_REGISTERS(d[6]), WGMMA_REGISTERS(d[7]), \
			WGMMA_REGISTERS(d[8]), WGMMA_REGISTERS(d[9]), WGMMA_REGISTERS(d[10]), WGMMA_REGISTERS(d[11]), \
			WGMMA_REGISTERS(d[12]), WGMMA_REGISTERS(d[13]), WGMMA_REGISTERS(d[14]), WGMMA_REGISTERS(d[15])}, a, b, !FIRST, file, line); \
	}
WGMMA_PRODUCT(wgmma_and_m64n128k256, wgmma_and)
WGMMA_PRODUCT(wgmma_u8s8_m64n128k32, wgmma_u8s8)
#undef WGMMA_PRODUCT
#undef WGMMA_REGISTERS
template <int n> static inline void wgmma_wait(int32_t (&)[16][4], HERE) { emulation::wgmma_wait(n, file, line); }
DEVICE void warpgroup_barrier(HERE) { emulation::wait_for_warpgroup(1 + emulation::current->linear / 128, 128, file, line); }

#endif
