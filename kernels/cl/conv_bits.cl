// Convolutions of packed activations with packed weights: an implicit GEMM. One
// work-item computes LANES output channels of one output pixel, of all pixels of
// its pooling window if there is one. Work-items of a group share the weights.
//
// Outside the image all bits are 0; correction makes that right for other
// padding values.

#if TO_BITS
#define RESULT uint
#else
#define RESULT float
#endif

// weights: [block][ky][kx][word][lane].
__kernel void conv_bits(__global const uint *restrict in, __global RESULT *restrict out,
	__global const uint *restrict weights, __global const uint *restrict masks,
	__global const int *restrict thresholds, __global const float *restrict scale,
	__global const float *restrict shift, __global const float *restrict slope,
	__global const uint *restrict flip, __global const int *restrict rows,
	__global const int *restrict cols, __global const int *restrict correction,
	__constant const int *g)
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
	in += image * (IN_H * IN_W * IN_WORDS);
#if !MIXED
	in += (block * LANES) / GROUP_OUT * WORDS;
#endif
	for (int py = 0; py < POOL_H; py++)
		for (int px = 0; px < POOL_W; px++) {
			const int y = oy * POOL_H + py, x = ox * POOL_W + px;
			__global const uint *w = weights + (size_t)block * (KH * KW * WORDS * LANES);
			int sum[LANES];
			UNROLL_ON_GPU
			for (int l = 0; l < LANES; l++)
				sum[l] = 0;
			for (int ky = 0; ky < KH; ky++) {
				const int iy = y * STRIDE_H - PAD_T + ky * DILATION_H;
				for (int kx = 0; kx < KW; kx++) {
					const int ix = x * STRIDE_W - PAD_L + kx * DILATION_W;
					const bool inside = iy >= 0 && iy < IN_H && ix >= 0 && ix < IN_W;
					__global const uint *p = in + (iy * IN_W + ix) * IN_WORDS;
					for (int k = 0; k < WORDS; k++) {
#if MIXED
						// The lanes belong to groups that do not fill words:
						// each looks at its own words through a mask.
						UNROLL_ON_GPU
						for (int l = 0; l < LANES; l++) {
							const int o = min(block * LANES + l, OUT_C - 1);
							const int at = min(o / GROUP_OUT * GROUP_IN / 32 + k, IN_WORDS - 1);
							const uint v = inside ? p[at] : 0;
							sum[l] += popcount((v ^ w[l]) & masks[(block * WORDS + k) * LANES + l]);
						}
#else
						const uint v = inside ? p[k] : 0;
						UNROLL_ON_GPU
						for (int l = 0; l < LANES; l++)
							sum[l] += popcount(v ^ w[l]);
#endif
						w += LANES;
					}
				}
			}
			const int border = BORDER ? (rows[y] * COLS + cols[x]) * (BLOCKS * LANES) + block * LANES : 0;
			UNROLL_ON_GPU
			for (int l = 0; l < LANES; l++) {
				const int o = block * LANES + l;
				const int acc = TAPS - 2 * sum[l] + (BORDER ? correction[border + l] : 0);
#if TO_BITS
				word |= (uint)(acc >= thresholds[o]) << l;
#else
				if (o < OUT_C) {
					float v = (float)acc;
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
