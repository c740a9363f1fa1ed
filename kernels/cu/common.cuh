// Shared by every kernel. The numeric contract forbids contraction, so every
// fused multiply-add is written as __fmaf_rn, every other sum and product of
// floats as __fadd_rn and __fmul_rn.
//
// An entry point is `extern "C" __global__ void NAME(const Geometry g, pointers)`.
// Families that differ in template arguments define their parameters once, as a
// macro that ends in _PARAMS, and each entry through a macro whose first argument
// is its name. What steps.cu executes, too, is the body of a function that is told
// where it works.
#ifndef BCNN_COMMON_CUH
#define BCNN_COMMON_CUH

#include "cuda_min.h"
#include "geometry.h"

#define LANES 32
#define FULL_WARP 0xffffffffu

// What a block does for an image: of a launch, or of a step of several.
struct Place {
	int block;
	size_t image;
};
#define THIS_PLACE (Place{(int)blockIdx.x, blockIdx.z})

// KERNEL(name, bounds, parameters, arguments) { body } makes a kernel, and the function
// name_body{place}arguments, of which body knows at as a Place. WITHOUT_ENTRIES leaves the kernel out.
#if defined(WITHOUT_ENTRIES)
#define KERNEL(name, bounds, parameters, arguments) \
	struct name##_body { \
		const Place at; \
		__device__ __forceinline__ void operator() parameters const; \
	}; \
	__device__ __forceinline__ void name##_body::operator() parameters const
#else
#define KERNEL(name, bounds, parameters, arguments) \
	struct name##_body { \
		const Place at; \
		__device__ __forceinline__ void operator() parameters const; \
	}; \
	extern "C" __global__ void __launch_bounds__ bounds name parameters \
	{ \
		name##_body{THIS_PLACE} arguments; \
	} \
	__device__ __forceinline__ void name##_body::operator() parameters const
#endif

#if __CUDA_ARCH__ >= 900 && !defined(WITHOUT_ENTRIES)
#define BEGINS_EARLY 1
#endif

// From 9.0 on a kernel may begin while the one before it on the stream still runs. Every
// thread calls after_previous before it touches what other kernels write or read, which
// is all but constants, and before it ends: so a kernel has ended only after all before it.
// Given are the pointers through which it reads tensors and scratch memory. Compilers
// take what a kernel only reads for constant and might load it earlier; of pointers that
// come out of the wait they know nothing.
//
// The next kernel may be brought to the multiprocessors from then on: all blocks of this
// one are there, and it waits where it calls this.
template <typename... P> DEVICE void after_previous([[maybe_unused]] P &...pointers)
{
#if BEGINS_EARLY
	griddepcontrol_wait();
	griddepcontrol_launch_dependents();
	((pointers = unknown_pointer(pointers)), ...);
#endif
}

// The channels of a 32-bit word that are not padding.
static __device__ __forceinline__ uint32_t word_mask(int word, int channels)
{
	const int left = channels - 32 * word;
	return left >= 32 ? 0xffffffffu : left <= 0 ? 0u : (1u << left) - 1u;
}

// The activation of a value of channel c, by comparisons and selections alone. slope
// has the slopes of a PReLU, one per channel, or the two bounds of a clip.
static __device__ __forceinline__ float activate(int activation, float v, const float *slope, int c)
{
	switch (activation) {
	case ACTIVATION_RELU:
		// v < 0, as compilers do not take it for a maximum, which of −0 and 0 is 0.
		return v <= -0x1p-149f ? 0.0f : v;
	case ACTIVATION_PRELU:
		return v < 0.0f ? __fmul_rn(v, slope[c]) : v;
	case ACTIVATION_CLIP:
		v = v < slope[0] ? slope[0] : v;
		return v > slope[1] ? slope[1] : v;
	}
	return v;
}

// activate for neighbouring values, of one channel (STEP 0) or of channels from c on
// (STEP 1). The choice is made once for all of them: with one for each, ptxas spills.
template <int STEP, int N>
static __device__ __forceinline__ void activate_all(int activation, float (&v)[N], const float *slope, int c)
{
	switch (activation) {
	case ACTIVATION_RELU:
#pragma unroll
		for (int i = 0; i < N; i++)
			v[i] = activate(ACTIVATION_RELU, v[i], slope, c);
		break;
	case ACTIVATION_PRELU:
#pragma unroll
		for (int i = 0; i < N; i++)
			v[i] = activate(ACTIVATION_PRELU, v[i], slope, c + STEP * i);
		break;
	case ACTIVATION_CLIP:
#pragma unroll
		for (int i = 0; i < N; i++)
			v[i] = activate(ACTIVATION_CLIP, v[i], slope, c);
		break;
	}
}

// The float32 output of a sum.
static __device__ __forceinline__ float scaled(const Geometry &g, float v, const float *scale, const float *shift,
	const float *slope, int o)
{
	if (g.scaled)
		v = __fmaf_rn(v, scale[o], shift[o]);
	return activate(g.activation, v, slope, o);
}

// What becomes of the float32 output of a sum: it is stored. Whole warps put the values
// of a pixel of the batch, a lane that of channel o if there is such.
struct Store {
	__device__ __forceinline__ void put(const Geometry &g, void *out, size_t pixel, int o, float v) const
	{
		if (o < g.out_c)
			((float *)out)[pixel * g.out_c + o] = v;
	}
};

// The sum of v over the lanes of a whole warp, in every lane.
static __device__ __forceinline__ int warp_sum(int v)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	return __reduce_add_sync(FULL_WARP, v);
#else
	for (int width = 16; width > 0; width >>= 1)
		v += __shfl_xor_sync(FULL_WARP, v, width);
	return v;
#endif
}

#endif
