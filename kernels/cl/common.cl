// Shared by every program. All geometry is named by macros: in a program that
// is specialised for a step they are numbers, in the general one they read the
// table g (see Geometry in backend/internal/gpu). The numeric contract forbids
// contraction, so every fused multiply-add is written as fma().
#pragma OPENCL FP_CONTRACT OFF

// ACTIVATION, what a step ends in.
#define ACTIVATION_RELU 1
#define ACTIVATION_PRELU 2
#define ACTIVATION_CLIP 3
#define ACTIVATION_FUNCTION 4

// The function at the end of a step, of a value of channel c. slope has the slopes
// of the channels, or the two bounds of a clip.
inline float activate(float v, __global const float *slope, int c, __constant const int *g)
{
	if (ACTIVATION == ACTIVATION_RELU)
		// v < 0, as compilers do not take it for a maximum, which of −0 and 0 is 0.
		return v <= -0x1p-149f ? 0.0f : v;
	if (ACTIVATION == ACTIVATION_PRELU)
		return v < 0.0f ? v * slope[c] : v;
	if (ACTIVATION == ACTIVATION_CLIP) {
		v = v < slope[0] ? slope[0] : v;
		return v > slope[1] ? slope[1] : v;
	}
	return v;
}

#define MAX_PLANES 4 // bits of a value

// The block of output channels of a work-item and its pixel. If UNIFORM, a work-group has
// one block, by a third dimension of the launch: its weights are the same for all
// work-items, and the compiler knows. Elsewhere the pixels of all blocks follow each other,
// so that few of them fill work-groups, too.
#define BLOCK_AND_PIXEL \
	const int item = get_global_id(0); \
	if (item >= OUT_H * OUT_W * (UNIFORM ? 1 : BLOCKS)) \
		return; \
	const int block = UNIFORM ? (int)get_group_id(2) : item / (OUT_H * OUT_W); \
	const int pixel = UNIFORM ? item : item - block * (OUT_H * OUT_W);

// On a GPU sums are in registers only where every loop over them is unrolled. PoCL makes
// vectors of the work-items, which that would prevent.
#if ON_GPU
#define UNROLL_ON_GPU __attribute__((opencl_unroll_hint(LANES)))
#else
#define UNROLL_ON_GPU
#endif

// The channels of a 32-bit word that are not padding.
#define WORD_MASK(word, channels) \
	((channels) - 32 * (word) >= 32 ? 0xffffffffu : (1u << ((channels) - 32 * (word))) - 1u)

// SCHEME, how the bytes of an image become bits.
#define SCHEME_THRESHOLD 0
#define SCHEME_GREY 1
#define SCHEME_LBP 2
#define SCHEME_MINMAX 3

// SCHEME, what becomes of two values.
#define PAIR_MUL 0
#define PAIR_MIN 1
#define PAIR_MAX 2
#define PAIR_MASK 3

// The luma of the pixel of the image that is nearest to (y, x).
inline int luma(__global const uchar *in, __constant const int *g, int y, int x)
{
	y = clamp(y, 0, IN_H - 1);
	x = clamp(x, 0, IN_W - 1);
	const __global uchar *p = in + (y * IN_W + x) * IN_C;
	return IN_C == 1 ? p[0] : (77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8;
}

// The smallest and the largest byte of an image, where the scheme is to be told.
inline int2 range_of(__global const int *ranges, size_t image, __constant const int *g)
{
	int lo = 255, hi = 0;
	if (SCHEME == SCHEME_MINMAX) {
		for (int i = 0; i < PARTS; i++) {
			lo = min(lo, ranges[(image * PARTS + i) * 2]);
			hi = max(hi, ranges[(image * PARTS + i) * 2 + 1]);
		}
	}
	return (int2)(lo, hi);
}

// Word block of the bits, of so many channels, of the pixel (y, x) of an image.
inline uint binarized_word(__global const uchar *in, __global const int *thresholds, int2 range,
	__global const uint *flip, int y, int x, int block, int channels, __constant const int *g)
{
	uint word = 0;
	for (int l = 0; l < 32; l++) {
		const int c = block * 32 + l;
		if (c >= channels)
			break;
		bool plus;
		if (SCHEME == SCHEME_THRESHOLD) {
			plus = (int)in[(y * IN_W + x) * IN_C + c] >= thresholds[c];
		} else if (SCHEME == SCHEME_GREY) {
			plus = luma(in, g, y, x) >= thresholds[0];
		} else if (SCHEME == SCHEME_LBP) { // top left, right, bottom left
			plus = luma(in, g, y + c - 1, x + (c == 1 ? 1 : -1)) > luma(in, g, y, x);
		} else {
			plus = 2 * ((int)in[(y * IN_W + x) * IN_C + c] - range.x) > range.y - range.x;
		}
		word |= (uint)plus << l;
	}
	return FLIP ? word ^ flip[block] : word;
}
