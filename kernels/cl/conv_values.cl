// Convolutions of bytes with weights of ±1 or of 8 or 16 bits (INT8), in exact integers, and of
// floats with real weights, in the order of the numeric contract. The division
// of work is that of conv_bits.cl.

// PoCL makes vectors of the lanes only where their loops are unrolled. In
// conv_bits.cl it makes vectors of the work-items, which unrolling would prevent.
#define UNROLL __attribute__((opencl_unroll_hint(LANES)))

#if TO_BITS
#define RESULT uint
#else
#define RESULT float
#endif
#if BYTES
#define VALUE uchar
#define SUM int
#define WEIGHT int
#else
#define VALUE float
#define SUM float
#define WEIGHT float
#endif

#if INT8
#define TIMES(sum, v, w) mad24(v, w, sum)
#else
#define TIMES(sum, v, w) ((sum) + ((v) ^ (w)))
#endif

// weights: [block][ky][kx][channel of the group][lane]. Those of ±1 for bytes are 0 for
// +1 and all ones for −1, since −v is ~v + 1: the exclusive or of value and weight
// is the product but for that 1, and bias brings the sum of them.
__kernel void conv_values(__global const VALUE *restrict in, __global RESULT *restrict out,
	__global const WEIGHT *restrict weights, __global const SUM *restrict bias,
	__global const SUM *restrict thresholds, __global const float *restrict scale,
	__global const float *restrict shift, __global const float *restrict slope,
	__global const uint *restrict flip, __constant const int *g)
{
	BLOCK_AND_PIXEL
	const size_t image = get_global_id(1);
#if TO_BITS
	out += (image * (OUT_H * OUT_W) + pixel) * OUT_WORDS + block;
	if (block * 32 >= OUT_C) { // the upper half of a 64-bit word
		*out = 0;
		return;
	}
	uint word = 0;
#endif
	const int oy = pixel / OUT_W, ox = pixel - oy * OUT_W;
	in += image * (IN_H * IN_W * IN_C);
#if !MIXED
	in += (block * LANES) / GROUP_OUT * GROUP_IN;
#endif
	for (int py = 0; py < POOL_H; py++)
		for (int px = 0; px < POOL_W; px++) {
			const int y = oy * POOL_H + py, x = ox * POOL_W + px;
			__global const WEIGHT *w = weights + (size_t)block * (KH * KW * GROUP_IN * LANES);
			SUM acc[LANES];
			UNROLL
			for (int l = 0; l < LANES; l++)
				acc[l] = bias[block * LANES + l];
			for (int ky = 0; ky < KH; ky++) {
				const int iy = y * STRIDE_H - PAD_T + ky * DILATION_H;
				for (int kx = 0; kx < KW; kx++) {
					const int ix = x * STRIDE_W - PAD_L + kx * DILATION_W;
					const bool inside = iy >= 0 && iy < IN_H && ix >= 0 && ix < IN_W;
#if !BYTES
					if (!inside) {
						w += GROUP_IN * LANES;
						continue;
					}
#endif
					__global const VALUE *p = in + (iy * IN_W + ix) * IN_C;
					for (int c = 0; c < GROUP_IN; c++) {
#if !MIXED && BYTES
						const int v = inside ? p[c] - ZERO_POINT : 0;
#elif !MIXED
						const float v = p[c];
#endif
						UNROLL
						for (int l = 0; l < LANES; l++) {
#if MIXED
							const int at = min(block * LANES + l, OUT_C - 1) / GROUP_OUT * GROUP_IN + c;
#if BYTES
							const int v = inside ? p[at] - ZERO_POINT : 0;
#else
							const float v = p[at];
#endif
#endif
#if BYTES
							acc[l] = TIMES(acc[l], v, w[l]);
#else
							acc[l] = fma(v, w[l], acc[l]);
#endif
						}
						w += LANES;
					}
				}
			}
			UNROLL
			for (int l = 0; l < LANES; l++) {
				const int o = block * LANES + l;
#if TO_BITS
				word |= (uint)(acc[l] >= thresholds[o]) << l;
#else
				if (o < OUT_C) {
					float v = (float)acc[l];
					if (SCALED)
						v = fma(v, scale[o], shift[o]);
					out[(image * (OUT_H * OUT_W) + pixel) * OUT_C + o] = activate(v, slope, o, g);
				}
#endif
			}
		}
#if TO_BITS
	word &= WORD_MASK(block, OUT_C);
	*out = FLIP ? word ^ flip[block] : word;
#endif
}
