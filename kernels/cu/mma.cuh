// Copies to shared memory that run while others compute, where there are such, and
// which forms of binary tensor cores there are.
#ifndef BCNN_MMA_CUH
#define BCNN_MMA_CUH

#include "common.cuh"

#if __CUDA_ARCH__ >= 800
#define HAS_MMA_AND 1
#define HAS_ASYNC_COPIES 1
#elif __CUDA_ARCH__ >= 750
#define HAS_MMA_XOR 1
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

#endif
