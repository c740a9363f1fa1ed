// Counts the ones of many words a ^ w, where popcounts are dear: a multiprocessor makes 16
// a clock, of logic operations of three words 64 (128 before 7.0, with 32 popcounts).
//
// Let P[i] be the parity, at each place of a word, of the first i words d = a ^ w. It takes
// one operation for each, P[i] = P[i-1] ^ a ^ w. What P[i], d[i+1] and d[i+2] add up to is
// P[i+2] and a carry, of which there is no need to know d:
//
//	P[i+1] ? ~P[i+2] : P[i]
//
// since P[i] and d[i+1] are alike where P[i+1] is 0, and else d[i+2] decides. So
//
//	ones of all d = ones of the last P + 2 · ones of all carries,
//
// and two words take three operations and one popcount. A full adder makes two popcounts
// of three carries, for two operations more: of six carries three go through one, which
// takes 20 operations and 5 popcounts for 12 words, 40 clocks each of a quarter of a
// multiprocessor from 7.0 on.
#ifndef BCNN_ONES_CUH
#define BCNN_ONES_CUH

#include "cuda_min.h"

// Functions of three words, bit by bit, one instruction each. Compilers find that only if
// they are told to: from operators they make three.
#define BITWISE(name, table) \
	DEVICE uint32_t name(uint32_t a, uint32_t b, uint32_t c) \
	{ \
		uint32_t d; \
		asm("lop3.b32 %0, %1, %2, %3, " #table ";" : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
		return d; \
	}
BITWISE(odd, 0x96)      // a ^ b ^ c
BITWISE(most, 0xe8)     // (a & b) | (c & (a | b))
BITWISE(carry_of, 0x74) // (b & ~c) | (a & ~b), of three parities one after the other
#undef BITWISE

struct Ones {
	uint32_t parity = 0;
	int carries = 0;

	// The carry of two words.
	__device__ __forceinline__ uint32_t pair(uint32_t a, uint32_t w, uint32_t b, uint32_t v)
	{
		const uint32_t before = parity, between = odd(before, a, w);
		parity = odd(between, b, v);
		return carry_of(before, between, parity);
	}

	// Adds word i of n that come one after the other. i and n are known when this is compiled.
	__device__ __forceinline__ void add(int i, int n, uint32_t a, uint32_t w)
	{
		const uint32_t next = odd(parity, a, w);
		if (i % 2 == 0)
			before = parity;
		const uint32_t carry = i % 2 == 0 ? parity & ~next : carry_of(before, parity, next);
		parity = next;
		if (i % 2 != 0 || i + 1 == n)
			count(i / 2, (n + 1) / 2, carry);
	}

	template <int N> __device__ __forceinline__ void add(const uint32_t (&a)[N], const uint32_t (&w)[N])
	{
#pragma unroll
		for (int i = 0; i < N; i++)
			add(i, N, a[i], w[i]);
	}

	__device__ __forceinline__ int total() const { return 2 * carries + __popc(parity); }

private:
	uint32_t before = 0;          // the first of two words
	uint32_t waiting[2] = {0, 0}; // carries, for a full adder

	// Counts carry i of n.
	__device__ __forceinline__ void count(int i, int n, uint32_t carry)
	{
		const int place = i % 6;
		if (place >= 3 || n - (i - place) < 4)
			carries += __popc(carry);
		else if (place < 2)
			waiting[place] = carry;
		else
			carries += __popc(odd(waiting[0], waiting[1], carry)) + 2 * __popc(most(waiting[0], waiting[1], carry));
	}
};

#endif
