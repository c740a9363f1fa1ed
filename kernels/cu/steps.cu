// A whole network in one cooperative launch, whatever its steps are: a table of them, with
// a barrier of the grid after each. A block does what blocks of the steps' own kernels
// do, one after the other. Where a convolution makes floats, the sum with a shortcut, the
// activation and the sign that follow it are made of them in registers: a block of a
// residual network is one step between two barriers.
//
// (network.cu has the faster form for small networks of convolutions and dense layers.)

#define WITHOUT_ENTRIES
#include "mma.cuh"
#include "steps.h"

#include "binarize.cu"
#include "conv_bits.cu"
#include "conv_values.cu"
#include "dense.cu"
#include "elementwise.cu"
#include "matmul.cu"
#include "planes.cu"

#if __CUDA_ARCH__ >= 600 // has cooperative launches

// An argument of a step: memory of the device, of whatever type the kernel says.
struct Argument {
	const void *p;

	template <typename T> __device__ __forceinline__ operator T *() const
	{
#if defined(__clang__)
		return (T *)(__attribute__((address_space(1))) T *)(size_t)p;
#else
		return (T *)p;
#endif
	}
};

struct Arguments {
	const Step &s;
	__device__ __forceinline__ Argument operator[](int i) const { return Argument{s.args[i]}; }
};

// Store of a step with a tail.
struct Tail {
	const Step *step;

	__device__ __forceinline__ void put(const Geometry &g, void *out, size_t pixel, int o, float v) const
	{
		const int lane = threadIdx.x % LANES, block = o / LANES;
		const bool valid = o < g.out_c;
		const size_t i = pixel * g.out_c + o;
		if (step->stored && valid)
			((float *)out)[i] = v;
#pragma unroll 1
		for (int k = 1; k <= step->tail; k++) {
			const Step &s = step[k];
			const Arguments a = {s};
			if (s.kind == STEP_SIGN_BITS) {
				const float *thresholds = a[2];
				const uint32_t word = __ballot_sync(FULL_WARP, valid && v >= thresholds[o]);
				uint32_t *to = a[1];
				const uint32_t *flip = a[3];
				to += pixel * s.g.out_words + block;
				if (lane == 0)
					*to = s.g.flip ? word ^ flip[block] : word;
				if (lane == 1 && block % 2 == 0 && block + 1 == g.blocks) // the upper half of a 64-bit word
					to[1] = 0;
				continue;
			}
			if (!valid)
				continue;
			float *to = a[s.kind == STEP_ADD ? 2 : 1];
			if (s.kind == STEP_ADD) {
				const float *other = a[s.second ? 0 : 1];
				v = activate(s.g.activation, s.second ? __fadd_rn(other[i], v) : __fadd_rn(v, other[i]), a[3], o);
			} else {
				v = scaled(s.g, v, a[2], a[3], a[4], o);
				if (s.g.activation == ACTIVATION_FUNCTION)
					v = tabulated(v, a[4]);
			}
			if (s.stored)
				to[i] = v;
		}
	}
};

// What a block of the step's kernel does.
DEVICE void run_step(const Step &s, const Place at, int images)
{
	Geometry g = s.g;
	g.images = images;
	const Arguments a = {s};
	const Tail tail = {&s};
#define STEP(KIND, body) \
	case STEP_##KIND: \
		body; \
		break
#define CONV_BITS_ARGS g, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]
#define CONV_VALUES_ARGS g, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]
	switch (s.kind) {
	case STEP_IMAGE_RANGES:
		find_ranges(at, g, a[0], a[1]);
		__syncthreads(); // before the next ones take the shared memory
		break;
	STEP(BINARIZE, binarize_body{at}(g, a[0], a[1], a[2], a[3], a[4]));
	STEP(CONV_BITS_P1, (conv_bits_direct<false, 1>(at, tail, CONV_BITS_ARGS)));
	STEP(CONV_BITS_P4, (conv_bits_direct<false, 4>(at, tail, CONV_BITS_ARGS)));
	STEP(CONV_BITS_MIXED, (conv_bits_direct<true, 1>(at, tail, CONV_BITS_ARGS)));
	STEP(CONV_VALUES_BYTES, (conv_values<1, uint8_t, int>(at, tail, CONV_VALUES_ARGS)));
	STEP(CONV_VALUES_FLOAT_P1, (conv_values<1, float, float>(at, tail, CONV_VALUES_ARGS)));
	STEP(CONV_VALUES_FLOAT_P4, (conv_values<4, float, float>(at, tail, CONV_VALUES_ARGS)));
	STEP(CONV_PLANES_P1, (conv_planes<false, 1>(at, CONV_BITS_ARGS)));
	STEP(CONV_PLANES_MIXED, (conv_planes<true, 1>(at, CONV_BITS_ARGS)));
	STEP(MAX_POOL_PLANES, max_pool_planes_body{at}(g, a[0], a[1], a[2]));
	STEP(DENSE_WARP_I1, dense_warp<1>(at, g, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]));
	STEP(MAX_POOL_BITS, max_pool_bits_body{at}(g, a[0], a[1], a[2]));
	STEP(DENSE_BYTES_I1, dense_bytes<1>(at, CONV_VALUES_ARGS));
	STEP(MAX_POOL_BYTES, max_pool_bytes_body{at}(g, a[0], a[1]));
	STEP(MAX_POOL_FLOAT, max_pool_float_body{at}(g, a[0], a[1]));
	STEP(AVG_POOL_BITS, avg_pool_bits_body{at}(g, a[0], a[1], a[2]));
	STEP(AVG_POOL_FLOAT, avg_pool_float_body{at}(g, a[0], a[1], a[2]));
	STEP(AFFINE_BYTES, affine_bytes_body{at}(g, a[0], a[1], a[2], a[3], a[4]));
	STEP(AFFINE_BITS, affine_bits_body{at}(g, a[0], a[1], a[2], a[3], a[4]));
	STEP(AFFINE_FLOAT, affine_float_body{at}(g, a[0], a[1], a[2], a[3], a[4]));
	STEP(TABLE_FLOAT, table_float_body{at}(g, a[0], a[1], a[2]));
	STEP(TABLE_BYTES, table_bytes_body{at}(g, a[0], a[1], a[2]));
	STEP(TABLE_BITS, table_bits_body{at}(g, a[0], a[1], a[2]));
	STEP(SIGN_BITS, sign_bits_body{at}(g, a[0], a[1], a[2], a[3]));
	STEP(QUANTIZE, quantize_body{at}(g, a[0], a[1], a[2]));
	STEP(QUANTIZE_BYTES, quantize_bytes_body{at}(g, a[0], a[1], a[2]));
	STEP(ADD, add_body{at}(g, a[0], a[1], a[2], a[3]));
	STEP(PAIR, pair_body{at}(g, a[0], a[1], a[2]));
	STEP(GATHER_FLOAT, gather_float_body{at}(g, a[0], a[1], a[2]));
	STEP(GATHER_BITS, gather_bits_body{at}(g, a[0], a[1], a[2]));
	STEP(PIXELS_FLOAT, pixels_float_body{at}(g, a[0], a[1], a[2]));
	STEP(PIXELS_BITS, pixels_bits_body{at}(g, a[0], a[1], a[2]));
	STEP(RESAMPLE, resample_body{at}(g, a[0], a[1], a[2], a[3]));
	STEP(TOP_K, top_k_body{at}(g, a[0], a[1]));
	STEP(FLATTEN_BITS, flatten_bits_body{at}(g, a[0], a[1]));
	STEP(FLATTEN_FLOAT, flatten_float_body{at}(g, a[0], a[1]));
	STEP(MATMUL_BITS, matmul_bits_body{at}(g, a[0], a[1], a[2]));
	STEP(MATMUL_FLOAT, matmul_float_body{at}(g, a[0], a[1], a[2]));
	STEP(TRANSPOSE_BITS, transpose_bits_body{at}(g, a[0], a[1]));
	STEP(TRANSPOSE_FLOAT, transpose_float_body{at}(g, a[0], a[1]));
	}
}

// g has the images, and in parts the number of steps of the table. Steps come to shared
// memory while those before them are executed.
extern "C" __global__ void __launch_bounds__(STEPS_THREADS, 1)
steps(const Geometry g, const uint32_t *table, uint32_t *barrier)
{
	const int WORDS = sizeof(Step) / 4, GROUP = STEPS_GROUP * WORDS / 4;
	static_assert(sizeof(Step) % 16 == 0 && GROUP <= STEPS_THREADS, "a thread copies four words");
	__shared__ uint4 groups[2][GROUP];
	const auto fetch = [&](int turn, int step) {
		if (threadIdx.x < GROUP)
			copy_words<4>((uint32_t *)&groups[turn][threadIdx.x], table + (size_t)step * WORDS + 4 * threadIdx.x, true);
		copies_close();
	};
	fetch(0, 0);
	copies_done<0>();
	__syncthreads();
	for (int i = 0, turn = 0; i < g.parts; turn ^= 1) {
		const Step *const step = (const Step *)groups[turn];
		i += 1 + step->tail;
		if (i < g.parts)
			fetch(turn ^ 1, i);
		const int blocks = step->blocks;
		for (int b = blockIdx.x; b < blocks * g.images; b += gridDim.x) {
			const int image = b / blocks;
			run_step(*step, Place{b - image * blocks, (size_t)image}, g.images);
		}
		if (i < g.parts) {
			copies_done<0>();
			grid_sync(barrier);
		}
	}
}
#endif
