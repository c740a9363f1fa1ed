// Convolutions with packed weights, of packed activations as conv_bits.cl or of image
// bytes (BYTES) as conv_values.cl: a work-item computes 8 output channels of 4 pixels,
// which are neighbours in a row or those of a pooling window (POOLED). For 32 products of
// words it loads a vector of eight words of weights and four words of input, where
// conv_bits.cl loads a weight for each; the 32 sums are vectors, which no compiler keeps
// in memory. A work-group has one block of channels, so that its weights are the same for
// all work-items.

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

// Where sizes are constants, compilers for GPUs unroll loops without bound, and then have too few
// registers for as many work-items as could hide each other's loads.
#if ON_GPU
#define ROLLED __attribute__((opencl_unroll_hint(1)))
#else
#define ROLLED
#endif

#if BYTES
#define VALUE uchar
// A word is four signed bytes: of the input what is 128 above zero, of the weights ±1, and
// 0 behind the last channel of a run.
#define SIGNED 0x80808080u
#define DOT_ARM 1
#define DOT_KHR 2
#if DOT_PRODUCT == DOT_ARM
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_int8 : enable
#define DOT(sum, a, b) ((sum) + arm_dot(as_char4(a), as_char4(b)))
#elif DOT_PRODUCT == DOT_KHR
#define DOT(sum, a, b) ((sum) + dot_4x8packed_ss_int(a, b))
#else
#define DOT(sum, a, b) products(sum, as_char4(a), as_char4(b))
#endif

// What the built-in functions compute, and the sum so far: compilers know a running sum as a dot
// product, and need fewer registers for it than for one of four products.
inline int products(int sum, char4 a, char4 b)
{
	sum += a.x * b.x;
	sum += a.y * b.y;
	sum += a.z * b.z;
	return sum + a.w * b.w;
}

// The taps of a row of the window that lie next to each other: their bytes do, too.
#define RUN (DILATION_W == 1 ? KW : 1)

// Word k of the run of pixel p.
#define WORD(p) word_at(in, iy + DOWN(p) * STRIDE_H, (ix + ACROSS(p) * STRIDE_W) * IN_C + 4 * k, g)

// Four bytes of row y, from the given one on; outside, the bytes that stand for 0.
inline uint word_at(__global const uchar *in, int y, int first, __constant const int *g)
{
	const int row = IN_W * IN_C;
	if (y < 0 || y >= IN_H)
		return (ZERO_POINT * 0x01010101u) ^ SIGNED;
	in += y * row;
	if (first >= 0 && first + 4 <= row)
		return as_uint(vload4(0, in + first)) ^ SIGNED;
	uint word = 0;
	for (int i = 0; i < 4; i++) {
		const int at = first + i;
		word |= (uint)(at >= 0 && at < row ? in[at] : ZERO_POINT) << (8 * i);
	}
	return word ^ SIGNED;
}

inline int8 summed(int8 sum, uint8 w, uint v)
{
	return (int8)(DOT(sum.s0, w.s0, v), DOT(sum.s1, w.s1, v), DOT(sum.s2, w.s2, v), DOT(sum.s3, w.s3, v),
		DOT(sum.s4, w.s4, v), DOT(sum.s5, w.s5, v), DOT(sum.s6, w.s6, v), DOT(sum.s7, w.s7, v));
}
#else
#define VALUE uint
#define RUN 1

// The word k of the input of pixel p, 0 outside.
#define WORD(p) word_at(in, iy + DOWN(p) * STRIDE_H, ix + ACROSS(p) * STRIDE_W, k, g)

inline uint word_at(__global const uint *in, int y, int x, int k, __constant const int *g)
{
	return y >= 0 && y < IN_H && x >= 0 && x < IN_W ? in[(y * IN_W + x) * IN_WORDS + k] : 0;
}

inline int8 summed(int8 sum, uint8 w, uint v)
{
	return sum + as_int8(popcount(v ^ w));
}
#endif

// What thresholds compare, of the sums of a pixel of 8 channels from o on: of bits with
// the correction of its place; of bytes with that of the channels for zero at 128.
inline int8 corrected(int8 sum, int y, int x, int o, __global const int *rows, __global const int *cols,
	__global const int *correction, __constant const int *g)
{
#if BYTES
	return sum + vload8(0, correction + o);
#else
	int8 acc = TAPS - 2 * sum;
	if (BORDER)
		acc += vload8(0, correction + (rows[min(y, CONV_H - 1)] * COLS + cols[min(x, CONV_W - 1)]) * (BLOCKS * 8) + o);
	return acc;
#endif
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

// weights: [block][ky][run][word][8].
__kernel void conv_vectors(__global const VALUE *restrict in, __global RESULT *restrict out,
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
#if BYTES
		in += image * (IN_H * IN_W * IN_C);
#else
		in += image * (IN_H * IN_W * IN_WORDS) + o / GROUP_OUT * WORDS;
#endif
		__global const uint *w = weights + (size_t)block * (KH * (KW / RUN) * WORDS * 8);
		ROLLED for (int ky = 0; ky < KH; ky++)
			ROLLED for (int kx = 0; kx < KW; kx += RUN) {
				const int iy = y * STRIDE_H - PAD_T + ky * DILATION_H, ix = x * STRIDE_W - PAD_L + kx * DILATION_W;
				ROLLED for (int k = 0; k < WORDS; k++, w += 8) {
					const uint8 v = vload8(0, w);
					sum0 = summed(sum0, v, WORD(0));
					sum1 = summed(sum1, v, WORD(1));
					sum2 = summed(sum2, v, WORD(2));
					sum3 = summed(sum3, v, WORD(3));
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
