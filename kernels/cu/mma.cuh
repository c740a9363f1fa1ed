// Copies to shared memory that run while others compute, where there are such, which
// forms of tensor cores there are, and products of bytes in them.
#ifndef BCNN_MMA_CUH
#define BCNN_MMA_CUH

#include "common.cuh"

#if __CUDA_ARCH__ >= 800
#define HAS_MMA_AND 1
#define HAS_ASYNC_COPIES 1
#elif __CUDA_ARCH__ >= 750
#define HAS_MMA_XOR 1
#endif
#if __CUDA_ARCH__ >= 750
#define HAS_MMA_BYTES 1
#endif

// copy_words<n> copies n words, 1, 2 or 4, aligned to their size, from global to
// shared memory; where not valid, it stores zeros. They are there after
// copies_done and a barrier.
template <int n> DEVICE void copy_words(uint32_t *shared, const uint32_t *global, bool valid)
{
#if HAS_ASYNC_COPIES
	cp_async<4 * n>(shared, global, valid);
#else
	if (n == 4)
		*(uint4 *)shared = valid ? *(const uint4 *)global : make_uint4(0, 0, 0, 0);
	else if (n == 2)
		*(uint2 *)shared = valid ? *(const uint2 *)global : make_uint2(0, 0);
	else
		*shared = valid ? *global : 0;
#endif
}

// copy_words_or is copy_words, but where not valid it stores a word n times.
template <int n> DEVICE void copy_words_or(uint32_t *shared, const uint32_t *global, bool valid, uint32_t word)
{
	if (valid)
		copy_words<n>(shared, global, true);
	else if (n == 4)
		*(uint4 *)shared = make_uint4(word, word, word, word);
	else if (n == 2)
		*(uint2 *)shared = make_uint2(word, word);
	else
		*shared = word;
}

// copies_close ends a group of copies; copies_done<n> waits for this thread's
// groups but the newest n.
DEVICE void copies_close()
{
#if HAS_ASYNC_COPIES
	cp_async_commit();
#endif
}

template <int n> DEVICE void copies_done()
{
#if HAS_ASYNC_COPIES
	cp_async_wait<n>();
#endif
}

#if HAS_MMA_BYTES
// Sums of bytes with signed ones: a warp makes those of 32 output channels and 8
// pixels, of 8 words of their windows at a time. With g = lane / 4 and t = lane % 4, a
// lane brings words t and t + 4 of pixel g, and has channels 4g + q of pixels 2t + e in
// of[q / 2][q % 2 * 2 + e]. The host orders the weights as fragments for that, see
// Fragments of backend/internal/gpu: lanes load them as [half][lane][4].
struct ByteSums {
	int32_t of[2][4];

	DEVICE void add(ByteSums &s, const uint4 (&w)[2], uint32_t x0, uint32_t x1)
	{
#pragma unroll
		for (int m = 0; m < 2; m++) {
			int32_t(&d)[4] = s.of[m];
			const uint32_t a[4] = {w[m].x, w[m].y, w[m].z, w[m].w};
#if __CUDA_ARCH__ >= 800
			const uint32_t b[2] = {x0, x1};
			mma_s8u8_m16n8k32(d, a, b);
#else
			int32_t upper[2] = {d[0], d[1]}, lower[2] = {d[2], d[3]};
			mma_s8u8_m8n8k16(upper, a[0], x0);
			mma_s8u8_m8n8k16(lower, a[1], x0);
			mma_s8u8_m8n8k16(upper, a[2], x1);
			mma_s8u8_m8n8k16(lower, a[3], x1);
			d[0] = upper[0], d[1] = upper[1], d[2] = lower[0], d[3] = lower[1];
#endif
		}
	}
};

// The packed words of pixels, of votes[q] for channels 4g + q: bit 4g + t says of lane
// 4g + t that the channel is set. Of t there is one in each word.
DEVICE uint32_t word_of_votes(const uint32_t (&votes)[4], int t)
{
	uint32_t word = 0;
#pragma unroll
	for (int q = 0; q < 4; q++)
		word |= (votes[q] >> t & 0x11111111u) << q;
	return word;
}
#endif

// Up to four bytes from byte `at` of in on, in a word whose other bytes are any. in is
// aligned to words, and may be read as whole ones.
DEVICE uint32_t load_bytes(const uint8_t *in, int at, int bytes)
{
	const uint32_t *words = (const uint32_t *)in;
	return __funnelshift_r(words[at >> 2], words[(at + bytes - 1) >> 2], 8 * at);
}

#endif
