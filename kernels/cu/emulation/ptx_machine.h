// The instructions of PTX for what kernels/internal/ptxcpp makes of a file. Registers
// are unsigned integers of their size, floats too; addresses of global memory are
// pointers, those of shared memory and of parameters count from a base of their own.
//
// Every function does exactly what the instruction does, and fails where its use is
// undefined: an address that is no multiple of the width, lanes of a mask that are not
// there, a division by zero.
#ifndef BITCNN_EMULATION_PTX_MACHINE_H
#define BITCNN_EMULATION_PTX_MACHINE_H

#include <cfenv>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine.h"

namespace ptx {

using emulation::fail;
using emulation::Fault;

// Where an instruction stands, for messages and for telling barriers apart.
#define AT const char *file, int line

// Addresses.

// Where parameters begin, so that an address of another space is none.
const uint64_t param_base = 1 << 20;
using emulation::shared_base;

struct Space {
	char *begin;
	uint64_t size, base;
};

static inline Space shared_space() { return {emulation::shared_memory(), emulation::shared_size(), shared_base}; }
static inline Space param_space(void *const *parameters, uint64_t size)
{
	return {size ? static_cast<char *>(parameters[0]) : nullptr, size, param_base};
}

__attribute__((noinline, cold, noreturn)) static void misaligned(uint64_t a, unsigned n, AT)
{
	fail(Fault::failed, "%s:%d: address %#zx is not a multiple of %u", file, line, (size_t)a, n);
}
__attribute__((noinline, cold, noreturn)) static void beyond(uint64_t a, unsigned n, const Space &s, AT)
{
	fail(Fault::illegal_address, "%s:%d: illegal address: %u bytes at %lld are outside of the %zu bytes of the space", file, line, n,
		(long long)(a - s.base), (size_t)s.size);
}

// The memory of n bytes at an address.
using emulation::Access;
template <unsigned n, Access how> static inline char *global(uint64_t a, AT)
{
	if (__builtin_expect(a % n != 0, 0))
		misaligned(a, n, file, line);
	emulation::access(reinterpret_cast<char *>(a), n, how, line);
	return reinterpret_cast<char *>(a);
}
template <unsigned n> static inline char *place(const Space &s, uint64_t a, AT)
{
	if (__builtin_expect(a % n != 0, 0))
		misaligned(a, n, file, line);
	const uint64_t offset = a - s.base;
	if (__builtin_expect(offset > s.size || s.size - offset < n, 0))
		beyond(a, n, s, file, line);
	return s.begin + offset;
}
template <unsigned n, Access how> static inline char *within(const Space &s, uint64_t a, AT)
{
	char *const p = place<n>(s, a, file, line);
	if (s.base == shared_base)
		emulation::access(p, n, how, line);
	return p;
}
template <class V> static inline V load(const char *p)
{
	V v;
	memcpy(&v, p, sizeof v);
	return v;
}
template <class V> static inline void store(char *p, V v) { memcpy(p, &v, sizeof v); }

// Atomic operations return what was there.
template <class V, class F> static inline V atomic(char *p, F f)
{
	const V old = load<V>(p);
	store<V>(p, f(old));
	return old;
}

// Integers. V is the type of the operands, signed or unsigned.

template <class V> static inline V divide(V a, V b, AT)
{
	if (b == 0)
		fail(Fault::failed, "%s:%d: division by zero", file, line);
	return (V)-1 < 0 && b == (V)-1 ? (V)(0 - (std::make_unsigned_t<V>)a) : (V)(a / b);
}
template <class V> static inline V remainder(V a, V b, AT)
{
	if (b == 0)
		fail(Fault::failed, "%s:%d: division by zero", file, line);
	return (V)-1 < 0 && b == (V)-1 ? 0 : (V)(a % b);
}
// Shifts clamp at the width.
template <class V> static inline V shl(V a, uint32_t n) { return n >= 8 * sizeof(V) ? 0 : (V)((uint64_t)a << n); }
template <class V> static inline V shr(V a, uint32_t n)
{
	const uint32_t most = 8 * sizeof(V) - 1;
	if (n > most)
		return (V)-1 < 0 ? (V)(a >> most) : 0;
	return (V)(a >> n);
}
static inline uint32_t shf_l(uint32_t low, uint32_t high, uint32_t n)
{
	return (uint32_t)(((uint64_t)high << 32 | low) << n >> 32);
}
static inline uint32_t shf_r(uint32_t low, uint32_t high, uint32_t n)
{
	return (uint32_t)(((uint64_t)high << 32 | low) >> n);
}
static inline int32_t add_sat(int32_t a, int32_t b)
{
	int32_t r;
	return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT32_MIN : INT32_MAX) : r;
}
static inline int32_t sub_sat(int32_t a, int32_t b)
{
	int32_t r;
	return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT32_MIN : INT32_MAX) : r;
}
// The bits a[position+length-1:position]; beyond the width, zeros or the sign, which is
// the highest bit of the field or of a.
template <class V> static inline V bfe(V a, uint32_t position, uint32_t length)
{
	const unsigned width = 8 * sizeof(V), p = position & 255, n = length & 255;
	if (n == 0)
		return 0;
	const unsigned last = p + n - 1 < width - 1 ? p + n - 1 : width - 1;
	const V sign = (V)-1 < 0 && a >> last & 1 ? (V)-1 : 0;
	std::make_unsigned_t<V> r = 0;
	if (p < width)
		r = (std::make_unsigned_t<V>)a >> p;
	const unsigned kept = p < width ? (n < width - p ? n : width - p) : 0;
	if (kept == width)
		return (V)r;
	const std::make_unsigned_t<V> low = ((std::make_unsigned_t<V>)1 << kept) - 1;
	return (V)((r & low) | ((std::make_unsigned_t<V>)sign & ~low));
}
template <class V> static inline V bfi(V a, V into, uint32_t position, uint32_t length)
{
	const unsigned width = 8 * sizeof(V), p = position & 255, n = length & 255;
	for (unsigned i = 0; i < n && p + i < width; i++)
		into = (V)((into & ~((V)1 << (p + i))) | (a >> i & 1) << (p + i));
	return into;
}
// Any function of two and of three bits: bit 2b+c and bit 4a+2b+c of its table.
template <unsigned table> static inline uint32_t lop2(uint32_t b, uint32_t c)
{
	return (table & 8 ? b & c : 0) | (table & 4 ? b & ~c : 0) | (table & 2 ? ~b & c : 0) | (table & 1 ? ~b & ~c : 0);
}
template <unsigned table> static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c)
{
	return (a & lop2<table / 16>(b, c)) | (~a & lop2<table % 16>(b, c));
}
// c and the products of bytes of a, of type A, by those of b.
template <class A, class B> static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c)
{
	for (int i = 0; i < 32; i += 8)
		c += (uint32_t)((int)(A)(a >> i) * (int)(B)(b >> i));
	return c;
}
static inline uint32_t dp4a_ss(uint32_t a, uint32_t b, uint32_t c) { return dp4a<int8_t, int8_t>(a, b, c); }
static inline uint32_t dp4a_uu(uint32_t a, uint32_t b, uint32_t c) { return dp4a<uint8_t, uint8_t>(a, b, c); }
static inline uint32_t dp4a_us(uint32_t a, uint32_t b, uint32_t c) { return dp4a<uint8_t, int8_t>(a, b, c); }
static inline uint32_t clz(uint32_t v) { return v ? __builtin_clz(v) : 32; }
static inline uint32_t brev(uint32_t v)
{
	uint32_t r = 0;
	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector)
{
	const uint64_t both = (uint64_t)b << 32 | a;
	uint32_t r = 0;
	for (int i = 0; i < 4; i++) {
		const uint32_t s = selector >> 4 * i & 15;
		uint32_t byte = both >> 8 * (s & 7) & 255;
		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << 8 * i;
	}
	return r;
}
// Saturation to D.
template <class D, class S> static inline D saturate(S v)
{
	const __int128 wide = v, low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
	return (D)(wide < low ? low : wide > high ? high : wide);
}

// Floats. What yields a NaN yields this one.
const uint32_t nan = 0x7fffffff;

template <class To, class From> static inline To same_bits(From v)
{
	To r;
	static_assert(sizeof r == sizeof v);
	memcpy(&r, &v, sizeof r);
	return r;
}
static inline float f32(uint32_t v) { return same_bits<float>(v); }
static inline uint32_t bits(float v) { return v != v ? nan : same_bits<uint32_t>(v); }

enum Rounding { rn = FE_TONEAREST, rz = FE_TOWARDZERO, rm = FE_DOWNWARD, rp = FE_UPWARD };

// rounded computes f with a direction of rounding; its operands must be volatile.
template <Rounding r, class F> static inline uint32_t rounded(F f)
{
	if (r == rn)
		return bits(f());
	fesetround(r);
	const volatile float v = f();
	fesetround(FE_TONEAREST);
	return bits(v);
}
template <Rounding r> static inline uint32_t add(uint32_t a, uint32_t b)
{
	if (r == rn)
		return bits(f32(a) + f32(b));
	const volatile float x = f32(a), y = f32(b);
	return rounded<r>([&] { return x + y; });
}
template <Rounding r> static inline uint32_t sub(uint32_t a, uint32_t b)
{
	const volatile float x = f32(a), y = f32(b);
	return rounded<r>([&] { return x - y; });
}
template <Rounding r> static inline uint32_t mul(uint32_t a, uint32_t b)
{
	const volatile float x = f32(a), y = f32(b);
	return rounded<r>([&] { return x * y; });
}
template <Rounding r> static inline uint32_t fma(uint32_t a, uint32_t b, uint32_t c)
{
	if (r == rn)
		return bits(emulation::fused(f32(a), f32(b), f32(c)));
	const volatile float x = f32(a), y = f32(b), z = f32(c);
	return rounded<r>([&] { return emulation::fused(x, y, z); });
}
static inline uint32_t saturate_f32(uint32_t v) // to [0, 1], NaN to 0
{
	const float f = f32(v);
	return f > 0 ? f < 1 ? v : 0x3f800000 : 0;
}
static inline uint32_t neg_f32(uint32_t v) { return v ^ 0x80000000; }
static inline uint32_t abs_f32(uint32_t v) { return v & 0x7fffffff; }
// −0 is less than +0; a NaN gives way to a number.
static inline uint32_t min_f32(uint32_t a, uint32_t b)
{
	const float x = f32(a), y = f32(b);
	if (x != x || y != y)
		return x == x ? a : y == y ? b : nan;
	return x < y || (x == y && a >> 31) ? a : b;
}
static inline uint32_t max_f32(uint32_t a, uint32_t b)
{
	const float x = f32(a), y = f32(b);
	if (x != x || y != y)
		return x == x ? a : y == y ? b : nan;
	return x > y || (x == y && b >> 31) ? a : b;
}
template <Rounding r, class S> static inline uint32_t to_f32(S v)
{
	const volatile S s = v;
	return rounded<r>([&] { return (float)s; });
}
// The nearest integer of a float in a direction, as a float.
template <Rounding r> static inline uint32_t round_f32(uint32_t v)
{
	const float f = f32(v);
	return bits(r == rn ? __builtin_roundevenf(f) : r == rz ? __builtin_truncf(f) :
		r == rm ? __builtin_floorf(f) : __builtin_ceilf(f));
}
// To an integer of at most 32 bits: what does not fit is clamped, NaN is 0.
template <class D, Rounding r> static inline D to_integer(uint32_t v)
{
	static_assert(sizeof(D) <= 4);
	const double d = f32(round_f32<r>(v)), low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
	return d != d ? 0 : d < low ? std::numeric_limits<D>::min() : d > high ? std::numeric_limits<D>::max() : (D)d;
}

// Warps. All lanes of the mask must come, at the same instruction.
static inline emulation::Exchange *exchange(uint32_t mask, const void *v, size_t n, const char *operation, AT)
{
	emulation::Exchange *e = emulation::exchange(mask, v, n, operation, file, line);
	if (__builtin_expect(e->arrived != mask, 0))
		fail(Fault::failed, "%s:%d: divergent barrier: %s of the mask %#x without the lanes %#x", file, line, operation,
			mask, mask & ~e->arrived);
	return e;
}
static inline uint32_t lane_value(const emulation::Exchange *e, unsigned lane)
{
	uint32_t v;
	memcpy(&v, e->values[lane], sizeof v);
	return v;
}
// of_all returns what f makes of the values of all lanes.
template <class F> static inline uint32_t of_all(emulation::Exchange *e, F f)
{
	if (!e->known) {
		e->result = f();
		e->known = true;
	}
	return e->result;
}
static inline void warp_sync(uint32_t mask, AT) { emulation::finish(exchange(mask, nullptr, 0, "bar.warp.sync", file, line)); }
static inline uint32_t ballot(bool p, uint32_t mask, AT)
{
	const uint32_t v = p;
	emulation::Exchange *e = exchange(mask, &v, sizeof v, "vote", file, line);
	const uint32_t r = of_all(e, [&] {
		uint32_t bits = 0;
		for (unsigned i = 0; i < 32; i++)
			if (mask >> i & 1)
				bits |= lane_value(e, i) << i;
		return bits;
	});
	emulation::finish(e);
	return r;
}
enum Shuffle { up, down, bfly, idx };
template <Shuffle mode> static inline uint32_t shfl(uint32_t v, uint32_t b, uint32_t c, uint32_t mask, AT)
{
	const int lane = emulation::current->lane, segment = c >> 8 & 31, bound = c & 31, by = b & 31;
	const int first = lane & segment, last = first | (bound & ~segment);
	int from = mode == up ? lane - by : mode == down ? lane + by : mode == bfly ? lane ^ by : first | (by & ~segment);
	if (mode == up ? from < last : from > last)
		from = lane;
	if (!(mask >> from & 1))
		fail(Fault::failed, "%s:%d: shfl of lane %d, which is not in its mask %#x", file, line, from, mask);
	emulation::Exchange *e = exchange(mask, &v, sizeof v, "shfl", file, line);
	const uint32_t r = lane_value(e, from);
	emulation::finish(e);
	return r;
}
template <class V, class F> static inline uint32_t redux(uint32_t v, uint32_t mask, F f, AT)
{
	emulation::Exchange *e = exchange(mask, &v, sizeof v, "redux", file, line);
	const uint32_t r = of_all(e, [&] {
		V all = 0;
		bool any = false;
		for (unsigned i = 0; i < 32; i++)
			if (mask >> i & 1) {
				const V other = (V)lane_value(e, i);
				all = any ? (V)f(all, other) : other;
				any = true;
			}
		return (uint32_t)all;
	});
	emulation::finish(e);
	return r;
}

// Each lane shows a row; d[i] becomes word lane%4 of row lane/4 of matrix i, of 8 rows.
static inline void exchange_rows(uint32_t (&d)[4], const char *row, AT)
{
	emulation::Exchange *e = exchange(~0u, row, 16, "ldmatrix", file, line);
	for (int i = 0, lane = emulation::current->lane; i < 4; i++)
		memcpy(&d[i], e->values[8 * i + lane / 4] + 4 * (lane % 4), 4);
	emulation::finish(e);
}
static inline void ldmatrix(uint32_t (&d)[4], const Space &s, uint64_t a, AT)
{
	exchange_rows(d, within<16, Access::read>(s, a, file, line), file, line);
}

// Tensor cores (tensor.cpp). A lane has of a `words` words for each half of the rows, 0 to 7 and
// 8 to 15, as many of b, which has 8 columns, and two results of a half; a product is that of two
// words.
struct Fragments {
	uint32_t a[4], b[2];
};
enum Product { and_popc, xor_popc, s8_s8, s8_u8, u8_s8 };
template <int results, int words> void mma(int32_t (&d)[results], const Fragments &mine, Product product, AT) EMULATION;

// Copies of n bytes, of which the first `read` come from global memory and the others
// are zeros, when they are waited for.
template <unsigned n> static inline void cp_async(const Space &s, uint64_t to, uint64_t from, uint32_t read, AT)
{
	char *const t = place<n>(s, to, file, line);
	if (from % n != 0)
		misaligned(from, n, file, line);
	const char *const f = reinterpret_cast<char *>(from);
	if (read > n)
		fail(Fault::failed, "%s:%d: cp.async of %u bytes of %u", file, line, read, n);
	emulation::start_copy(t, f, n, read, line);
}

} // namespace ptx
#endif
