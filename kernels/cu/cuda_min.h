// The CUDA C++ that the kernels use, for compilers without NVIDIA's headers.
//
//   clang -x cuda    declares the built-in variables and functions (scripts/ptx)
//   nvcc             brings them itself; only our own functions are added
//
// Names that CUDA has mean what CUDA's programming guide says. Our own are dp4a_us,
// mma_*, ldmatrix_x4, cp_async*, wgmma_*, matrix_*, fence_proxy_async,
// warpgroup_barrier, griddepcontrol_*, unknown_pointer, grid_sync and DYNAMIC_SHARED.
#ifndef BITCNN_CUDA_MIN_H
#define BITCNN_CUDA_MIN_H

#define DEVICE static __device__ __forceinline__

// The dynamic shared memory of a block as an array of type called name, 16-byte
// aligned.
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

#if defined(__NVCC__)
#include <stdint.h>
#else

typedef __SIZE_TYPE__ size_t;
typedef __INT8_TYPE__ int8_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __INT16_TYPE__ int16_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

struct dim3 { unsigned x, y, z; };
struct __align__(8) int2 { int x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
struct __align__(8) float2 { float x, y; };
struct __align__(16) float4 { float x, y, z, w; };
DEVICE int2 make_int2(int x, int y) { return int2{x, y}; }
DEVICE int4 make_int4(int x, int y, int z, int w) { return int4{x, y, z, w}; }
DEVICE uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
DEVICE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }
DEVICE float2 make_float2(float x, float y) { return float2{x, y}; }
DEVICE float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }

// The special registers, read where they are named.
#define SPECIAL_REGISTERS(type, name) \
	struct type { \
		__declspec(property(get = get_x)) unsigned x; \
		__declspec(property(get = get_y)) unsigned y; \
		__declspec(property(get = get_z)) unsigned z; \
		static __device__ __forceinline__ unsigned get_x() { return __nvvm_read_ptx_sreg_##name##_x(); } \
		static __device__ __forceinline__ unsigned get_y() { return __nvvm_read_ptx_sreg_##name##_y(); } \
		static __device__ __forceinline__ unsigned get_z() { return __nvvm_read_ptx_sreg_##name##_z(); } \
	}
SPECIAL_REGISTERS(thread_index_registers, tid);
SPECIAL_REGISTERS(block_size_registers, ntid);
SPECIAL_REGISTERS(block_index_registers, ctaid);
SPECIAL_REGISTERS(grid_size_registers, nctaid);
#undef SPECIAL_REGISTERS
extern const __device__ __attribute__((weak)) thread_index_registers threadIdx;
extern const __device__ __attribute__((weak)) block_size_registers blockDim;
extern const __device__ __attribute__((weak)) block_index_registers blockIdx;
extern const __device__ __attribute__((weak)) grid_size_registers gridDim;
#define warpSize 32

// Barriers and fences; __syncthreads is a built-in of clang.
DEVICE void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
DEVICE void __threadfence() { __nvvm_membar_gl(); }
DEVICE void __threadfence_block() { __nvvm_membar_cta(); }

// Bits.
DEVICE int __popc(unsigned v) { return __builtin_popcount(v); }
DEVICE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
DEVICE int __clz(int v) { return v ? __builtin_clz(v) : 32; }
DEVICE int __ffs(int v) { return __builtin_ffs(v); }
DEVICE unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
DEVICE unsigned __umulhi(unsigned a, unsigned b) { return __nvvm_mulhi_ui(a, b); }
DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) { return __nvvm_prmt(a, b, selector); }
DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
	unsigned d;
	asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(low), "r"(high), "r"(shift));
	return d;
}
DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
	unsigned d;
	asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(low), "r"(high), "r"(shift));
	return d;
}
DEVICE int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
DEVICE unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
DEVICE float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
DEVICE float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }

// Warps. The last operand of shfl holds the segment's bound and mask.
DEVICE unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
DEVICE int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p); }
DEVICE int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p); }
#define SHUFFLE(name, operation, operand) \
	DEVICE int name(unsigned mask, int v, unsigned by, int width = 32) \
	{ \
		return __nvvm_shfl_sync_##operation##_i32(mask, v, by, (32 - width) << 8 | operand); \
	} \
	DEVICE unsigned name(unsigned mask, unsigned v, unsigned by, int width = 32) \
	{ \
		return (unsigned)name(mask, (int)v, by, width); \
	} \
	DEVICE float name(unsigned mask, float v, unsigned by, int width = 32) \
	{ \
		return __int_as_float(name(mask, __float_as_int(v), by, width)); \
	}
SHUFFLE(__shfl_sync, idx, 31)
SHUFFLE(__shfl_up_sync, up, 0)
SHUFFLE(__shfl_down_sync, down, 31)
SHUFFLE(__shfl_xor_sync, bfly, 31)
#undef SHUFFLE

#if __CUDA_ARCH__ >= 800
#define REDUCE(name, type, operation) \
	DEVICE type name(unsigned mask, type v) \
	{ \
		type d; \
		asm volatile("redux.sync." operation " %0, %1, %2;" : "=r"(d) : "r"(v), "r"(mask)); \
		return d; \
	}
REDUCE(__reduce_add_sync, int, "add.s32")
REDUCE(__reduce_add_sync, unsigned, "add.u32")
REDUCE(__reduce_min_sync, int, "min.s32")
REDUCE(__reduce_min_sync, unsigned, "min.u32")
REDUCE(__reduce_max_sync, int, "max.s32")
REDUCE(__reduce_max_sync, unsigned, "max.u32")
REDUCE(__reduce_or_sync, unsigned, "or.b32")
#undef REDUCE
#endif

// Atomics: relaxed, on any address, returning the old value.
DEVICE int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
DEVICE unsigned atomicAdd(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_add_gen_i((int *)p, (int)v); }
DEVICE unsigned long long atomicAdd(unsigned long long *p, unsigned long long v)
{
	return (unsigned long long)__nvvm_atom_add_gen_ll((long long *)p, (long long)v);
}
DEVICE int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
DEVICE unsigned atomicMin(unsigned *p, unsigned v) { return __nvvm_atom_min_gen_ui(p, v); }
DEVICE int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
DEVICE unsigned atomicMax(unsigned *p, unsigned v) { return __nvvm_atom_max_gen_ui(p, v); }
DEVICE unsigned atomicAnd(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_and_gen_i((int *)p, (int)v); }
DEVICE unsigned atomicOr(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_or_gen_i((int *)p, (int)v); }
DEVICE unsigned atomicXor(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_xor_gen_i((int *)p, (int)v); }
DEVICE unsigned atomicExch(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_xchg_gen_i((int *)p, (int)v); }
DEVICE unsigned long long atomicExch(unsigned long long *p, unsigned long long v)
{
	return (unsigned long long)__nvvm_atom_xchg_gen_ll((long long *)p, (long long)v);
}
DEVICE unsigned atomicCAS(unsigned *p, unsigned compare, unsigned v)
{
	return (unsigned)__nvvm_atom_cas_gen_i((int *)p, (int)compare, (int)v);
}

// Arithmetic. ptxas contracts plain mul and add, but not what says its rounding.
DEVICE float __fmaf_rn(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
DEVICE float __fmul_rn(float a, float b) { return __nvvm_mul_rn_f(a, b); }
DEVICE float __fadd_rn(float a, float b) { return __nvvm_add_rn_f(a, b); }
DEVICE int min(int a, int b) { return a < b ? a : b; }
DEVICE int max(int a, int b) { return a > b ? a : b; }
DEVICE unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
DEVICE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
#if __CUDA_ARCH__ >= 610
DEVICE int __dp4a(int a, int b, int c)
{
	int d;
	asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
}
DEVICE unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
	unsigned d;
	asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
}
#endif

// Loads through the read-only cache.
DEVICE uint8_t __ldg(const uint8_t *p) { return __nvvm_ldg_uc(p); }
DEVICE int __ldg(const int *p) { return __nvvm_ldg_i(p); }
DEVICE unsigned __ldg(const unsigned *p) { return __nvvm_ldg_ui(p); }
DEVICE float __ldg(const float *p) { return __nvvm_ldg_f(p); }
typedef unsigned unsigned_vector2 __attribute__((ext_vector_type(2)));
typedef unsigned unsigned_vector4 __attribute__((ext_vector_type(4)));
typedef float float_vector4 __attribute__((ext_vector_type(4)));
DEVICE uint2 __ldg(const uint2 *p) { return __builtin_bit_cast(uint2, __nvvm_ldg_ui2((const unsigned_vector2 *)p)); }
DEVICE uint4 __ldg(const uint4 *p) { return __builtin_bit_cast(uint4, __nvvm_ldg_ui4((const unsigned_vector4 *)p)); }
DEVICE float4 __ldg(const float4 *p) { return __builtin_bit_cast(float4, __nvvm_ldg_f4((const float_vector4 *)p)); }

DEVICE long long clock64()
{
	long long v;
	asm volatile("mov.u64 %0, %%clock64;" : "=l"(v));
	return v;
}

#endif // not nvcc

// Our own functions.

// dp4a_us returns c + the dot product of the four unsigned bytes of a with the four
// signed bytes of b, modulo 2^32.
DEVICE int dp4a_us(unsigned a, int b, int c)
{
#if __CUDA_ARCH__ >= 610
	int d;
	asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
	return d;
#else
	for (int i = 0; i < 32; i += 8)
		c += (int)(a >> i & 255) * (int)(int8_t)(b >> i);
	return c;
#endif
}

// mma_*: warp-wide d += a·b in tensor cores, "·" being the population count of the
// bitwise and or xor of a row of a and a column of b. With g = lane / 4 and
// t = lane % 4, a lane holds (PTX ISA, Matrix Fragments for mma):
//   m8n8k128:  a: row g, bits 32t…; b: column g, bits 32t…;
//              d[i]: row g, column 2t+i
//   m16n8k256: a[i]: row g+8(i%2), bits 32t+128(i/2)…; b[i]: column g, bits
//              32t+128i…;
//              d[i]: row g+8(i/2), column 2t+i%2
// mma_s8u8_* multiply signed bytes by unsigned ones in the same places, four to a word,
// and mma_u8s8_* unsigned by signed ones.
// All lanes of the warp must take part. Hopper has no xor of its own: there
// mma_xor_m16n8k256 takes several instructions.
#if __CUDA_ARCH__ >= 750
DEVICE void mma_xor_m8n8k128(int32_t (&d)[2], uint32_t a, uint32_t b)
{
	asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0,%1}, {%2}, {%3}, {%0,%1};"
		: "+r"(d[0]), "+r"(d[1]) : "r"(a), "r"(b));
}
DEVICE void mma_s8u8_m8n8k16(int32_t (&d)[2], uint32_t a, uint32_t b)
{
	asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
		: "+r"(d[0]), "+r"(d[1]) : "r"(a), "r"(b));
}
DEVICE void mma_u8s8_m8n8k16(int32_t (&d)[2], uint32_t a, uint32_t b)
{
	asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
		: "+r"(d[0]), "+r"(d[1]) : "r"(a), "r"(b));
}
#endif
#if __CUDA_ARCH__ >= 800
DEVICE void mma_and_m16n8k256(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
		"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_xor_m16n8k256(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc "
		"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// mma_s8_m16n8k32: bytes with signs in place of bits: a[i] holds row g+8(i%2),
// elements 4t+16(i/2)…, b[i] column g, elements 4t+16i….
DEVICE void mma_s8_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
		"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_s8u8_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
		"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_u8s8_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
		"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

DEVICE unsigned shared_address(const void *p)
{
#if defined(__NVCC__)
	return (unsigned)__cvta_generic_to_shared(p);
#else
	return (unsigned)(size_t)(__attribute__((address_space(3))) const void *)p;
#endif
}

#if __CUDA_ARCH__ >= 750
// ldmatrix_x4 loads four 8×4 matrices of words from shared memory; row is, in lane
// l, the 16-byte aligned address of row l%8 of matrix l/8. d[i] becomes word
// lane%4 of row lane/4 of matrix i.
DEVICE void ldmatrix_x4(uint32_t (&d)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(shared_address(row)) : "memory");
}
#endif

#if __CUDA_ARCH__ >= 800
// cp_async<bytes> starts a copy of 4, 8 or 16 bytes, aligned to that, from global to
// shared memory; if not valid, it stores zeros and reads nothing. cp_async_commit
// closes a group of copies, cp_async_wait<n> waits for this thread's groups but the
// newest n. Other threads see the bytes after a barrier.
template <int bytes> DEVICE void cp_async(void *shared, const void *global, bool valid = true)
{
	if (bytes == 16) // past the first-level cache
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
			:: "r"(shared_address(shared)), "l"(global), "r"(valid ? 16 : 0) : "memory");
	else
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
			:: "r"(shared_address(shared)), "l"(global), "n"(bytes == 16 ? 8 : bytes), "r"(valid ? bytes : 0) : "memory");
}
DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory"); }
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// wgmma: what a warpgroup, four warps of which the first is a multiple of four, multiplies
// while it does something else. Matrices lie in shared memory as rows of 16 bytes: 8 of
// them one behind the other, the next 8 `groups` bytes after these, and the second half
// of a row of 32 bytes `halves` bytes after the first. b has its columns in place of rows.
DEVICE uint64_t matrix_descriptor(const void *begin, unsigned halves, unsigned groups)
{
	return (uint64_t)(shared_address(begin) >> 4 & 0x3fff) | (uint64_t)(halves >> 4) << 16 | (uint64_t)(groups >> 4) << 32;
}

// What is added to a matrix that begins so many times 16 bytes later, with so many times 16
// bytes more between its halves.
DEVICE uint64_t matrix_move(unsigned rows, unsigned halves) { return (uint64_t)halves << 16 | rows; }

// wgmma_and_m64n128k256 starts d += a·b, or d = a·b if FIRST, "·" as for mma_and, and
// wgmma_u8s8_m64n128k32 the same of unsigned bytes by signed ones. Of warp w of
// the warpgroup a lane holds in d[j][i] row 16w+g+8(i/2), column 8j+2t+i%2. wgmma_fence
// comes first, and nothing touches d until wgmma_wait<n> has waited for its group, which
// wgmma_commit closed, and for all but the newest n. What the matrices hold was stored
// before fence_proxy_async and a barrier.
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define WGMMA(d, of) \
	of(d[0]), of(d[1]), of(d[2]), of(d[3]), of(d[4]), of(d[5]), of(d[6]), of(d[7]), \
	of(d[8]), of(d[9]), of(d[10]), of(d[11]), of(d[12]), of(d[13]), of(d[14]), of(d[15])
#define WGMMA_RESULT(d) "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
#define WGMMA_SUM(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define WGMMA_TEXT(product, add) \
	"wgmma.mma_async.sync.aligned." product " " \
	"{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
	"%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
	"%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
	"%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, " \
	add ";"
#define WGMMA_PRODUCT(name, product) \
	template <bool FIRST> DEVICE void name(int32_t (&d)[16][4], uint64_t a, uint64_t b) \
	{ \
		if (FIRST) \
			asm volatile(WGMMA_TEXT(product, "0") : WGMMA(d, WGMMA_RESULT) : "l"(a), "l"(b) : "memory"); \
		else \
			asm volatile(WGMMA_TEXT(product, "1") : WGMMA(d, WGMMA_SUM) : "l"(a), "l"(b) : "memory"); \
	}
WGMMA_PRODUCT(wgmma_and_m64n128k256, "m64n128k256.s32.b1.b1.and.popc")
WGMMA_PRODUCT(wgmma_u8s8_m64n128k32, "m64n128k32.s32.u8.s8")

// Beside the wait, tells the compiler that d changes here.
template <int n> DEVICE void wgmma_wait(int32_t (&d)[16][4])
{
	asm volatile("wgmma.wait_group.sync.aligned %64;" : WGMMA(d, WGMMA_SUM) : "n"(n) : "memory");
}
#undef WGMMA
#undef WGMMA_RESULT
#undef WGMMA_SUM
#undef WGMMA_TEXT
#undef WGMMA_PRODUCT

// Waits for the threads of the warpgroup. Barrier 0 is that of the block.
DEVICE void warpgroup_barrier() { asm volatile("barrier.sync.aligned %0, 128;" :: "r"(1 + threadIdx.x / 128) : "memory"); }
#endif

#if __CUDA_ARCH__ >= 900
// griddepcontrol_wait returns when the kernels that this one was launched to depend on
// have ended, and what they wrote is visible. griddepcontrol_launch_dependents lets those
// begin that depend on this one, once all its blocks have called it or ended.
DEVICE void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void griddepcontrol_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// unknown_pointer returns the same pointer to global memory, which for the compiler may be
// any, so that it moves no load through it to an earlier place.
template <typename T> DEVICE T *unknown_pointer(T *p)
{
#if defined(__NVCC__)
	asm volatile("" : "+l"(p) :: "memory");
	return p;
#else
	__attribute__((address_space(1))) T *global; // so that loads are of global memory
	asm volatile("cvta.to.global.u64 %0, %1;" : "=l"(global) : "l"(p) : "memory");
	return (T *)global;
#endif
}
#endif

// grid_sync waits until all threads of all blocks are there, and makes what they
// wrote before visible to all. The launch must be cooperative. *barrier is a word of
// global memory, zero before the first launch that uses it and left alone between:
// its highest bit flips with every barrier, the others count the blocks.
DEVICE void grid_sync(unsigned *barrier)
{
	__syncthreads();
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
		const unsigned others = gridDim.x * gridDim.y * gridDim.z - 1;
		const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
		const unsigned add = first ? 0x80000000u - others : 1u;
		unsigned before, now;
		// What the other threads of the block wrote this one has seen at the barrier above, and
		// passes on: release and acquire are cumulative (PTX ISA, memory consistency model).
#if __CUDA_ARCH__ >= 700
		asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(barrier), "r"(add) : "memory");
		do
			asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
		while (((before ^ now) & 0x80000000u) == 0);
#else
		__threadfence();
		before = atomicAdd(barrier, add);
		do
			asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
		while (((before ^ now) & 0x80000000u) == 0);
		__threadfence();
#endif
	}
	__syncthreads();
}

#endif
