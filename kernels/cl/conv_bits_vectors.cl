// Convolutions of packed activations with packed weights, as conv_bits.cl: a
// work-item computes 8 output channels of 4 pixels, which are neighbours in a row or
// those of a pooling window (POOLED). For 32 products it loads a vector of eight
// weights and four words of input, where conv_bits.cl loads a weight for each; the 32
// sums are vectors, which no compiler keeps in memory. A work-group has one block of
// channels, so that its weights are the same for all work-items.

#if TO_BITS
#define RESULT uchar
#else
#define RESULT float
#endif

// Pixel p of the four, from the first.
#if POOLED
#define DOWN(p) ((p) / 2)
#define ACROSS(p) ((p) % 2)
#else
#define DOWN(p) 0
#define ACROSS(p) (p)
#endif

// The word k of the input of pixel p, 0 outside.
#define WORD(p) word_at(in, iy + DOWN(p) * STRIDE_H, ix + ACROSS(p) * STRIDE_W, k, g)

inline uint word_at(__global const uint *in, int y, int x, int k, __constant const int *g)
{
	return y >= 0 && y < IN_H && x >= 0 && x < IN_W ? in[(y * IN_W + x) * IN_WORDS + k] : 0;
}

// The sums of a pixel of 8 channels from o on, with the correction of its place.
inline int8 corrected(int8 sum, int y, int x, int o, __global const int *rows, __global const int *cols,
	__global const int *correction, __constant const int *g)
{
	int8 acc = TAPS - 2 * sum;
	if (BORDER)
		acc += vload8(0, correction + (rows[min(y, CONV_H - 1)] * COLS + cols[min(x, CONV_W - 1)]) * (BLOCKS * 8) + o);
	return acc;
}

#if TO_BITS
// All bits of the channels that reach their thresholds.
inline int8 reached(int8 acc, int8 thresholds)
{
	return (acc >= thresholds) & (int8)(1, 2, 4, 8, 16, 32, 64, 128);
}

inline uchar byte_of(int8 bits)
{
	const int4 four = bits.lo | bits.hi;
	const int2 two = four.lo | four.hi;
	return (uchar)(two.x | two.y);
}
#endif

// weights: [block][ky][kx][word][8].
__kernel void conv_bits_vectors(__global const uint *restrict in, __global RESULT *restrict out,
	__global const uint *restrict weights, __global const int *restrict thresholds,
	__global const float *restrict scale, __global const float *restrict shift,
	__global const float *restrict slope, __global const uint *restrict flip,
	__global const int *restrict rows, __global const int *restrict cols,
	__global const int *restrict correction, __constant const int *g)
{
	const int across = POOLED ? OUT_W : (OUT_W + 3) / 4;
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	const int block = get_group_id(2), o = block * 8;
	if (item >= OUT_H * across)
		return;
	const int oy = item / across, ox = (item - oy * across) * (POOLED ? 1 : 4);
	const int y = POOLED ? 2 * oy : oy, x = POOLED ? 2 * ox : ox; // before pooling
	const size_t pixel = image * (OUT_H * OUT_W) + oy * OUT_W + ox;
	int8 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
	if (o < OUT_C) {
		in += image * (IN_H * IN_W * IN_WORDS) + o / GROUP_OUT * WORDS;
		__global const uint *w = weights + (size_t)block * (KH * KW * WORDS * 8);
		for (int ky = 0; ky < KH; ky++)
			for (int kx = 0; kx < KW; kx++) {
				const int iy = y * STRIDE_H - PAD_T + ky * DILATION_H, ix = x * STRIDE_W - PAD_L + kx * DILATION_W;
				for (int k = 0; k < WORDS; k++, w += 8) {
					const uint8 v = vload8(0, w);
					sum0 += as_int8(popcount(v ^ WORD(0)));
					sum1 += as_int8(popcount(v ^ WORD(1)));
					sum2 += as_int8(popcount(v ^ WORD(2)));
					sum3 += as_int8(popcount(v ^ WORD(3)));
				}
			}
	}
#define SUM(p) corrected(sum##p, y + DOWN(p), x + ACROSS(p), o, rows, cols, correction, g)
#if TO_BITS
	// Bytes of words of padding are written, too.
	const int8 limits = vload8(block, thresholds);
	const uchar mask = FLIP ? (uchar)(flip[block / 4] >> (8 * (block % 4))) : (uchar)0;
	out += pixel * (OUT_WORDS * 4) + block;
#if POOLED
	*out = o < OUT_C ? byte_of(reached(SUM(0), limits) | reached(SUM(1), limits) | reached(SUM(2), limits) | reached(SUM(3), limits)) ^ mask : 0;
#else
#define STORE(p) \
	if (ox + p < OUT_W) \
		out[p * (OUT_WORDS * 4)] = o < OUT_C ? byte_of(reached(SUM(p), limits)) ^ mask : 0;
#endif
#else
#define STORE(p) \
	if (ox + p < OUT_W) { \
		int acc[8]; \
		vstore8(SUM(p), 0, acc); \
		for (int l = 0; l < 8; l++) \
			if (o + l < OUT_C) { \
				float v = (float)acc[l]; \
				if (SCALED) \
					v = fma(v, scale[o + l], shift[o + l]); \
				out[(pixel + p) * OUT_C + o + l] = activate(v, slope, o + l, g); \
			} \
	}
#endif
#if !POOLED || !TO_BITS
	STORE(0)
	STORE(1)
	STORE(2)
	STORE(3)
#endif
}
