// Convolutions and pools of bit planes: a value has IN_PLANES bits, and those of a row of
// the image lie in as many rows of the tensor. IN_H and OUT_H count rows of images.

#if TO_BITS
#define RESULT uint
#else
#define RESULT float
#endif

// One work-item computes LANES output channels of one output pixel, of all pixels of its
// pooling window if there is one: a weight meets all planes. Outside the image all bits
// are 0; correction makes that right for other padding values.
//
// weights: [block][ky][kx][word][lane]; thresholds: [threshold][BLOCKS * LANES].
__kernel void conv_planes(__global const uint *restrict in, __global RESULT *restrict out,
	__global const uint *restrict weights, __global const uint *restrict masks,
	__global const int *restrict thresholds, __global const float *restrict scale,
	__global const float *restrict shift, __global const float *restrict slope,
	__global const uint *restrict flip, __global const int *restrict rows,
	__global const int *restrict cols, __global const int *restrict correction,
	__constant const int *g)
{
	BLOCK_AND_PIXEL
	const size_t image = get_global_id(1);
	const int oy = pixel / OUT_W, ox = pixel - oy * OUT_W;
	const int plane = IN_W * IN_WORDS; // words of a row
#if TO_BITS
	out += ((image * OUT_H + oy) * OUT_PLANES * OUT_W + ox) * OUT_WORDS + block;
	if (block * 32 >= OUT_C) { // the upper half of a 64-bit word
		for (int j = 0; j < OUT_PLANES; j++)
			out[j * (OUT_W * OUT_WORDS)] = 0;
		return;
	}
#endif
	in += image * (IN_H * IN_PLANES * plane);
#if !MIXED
	in += (block * LANES) / GROUP_OUT * WORDS;
#endif
	int most[LANES];
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
					__global const uint *p = in + iy * IN_PLANES * plane + ix * IN_WORDS;
					for (int k = 0; k < WORDS; k++) {
						for (int j = 0; j < IN_PLANES; j++) {
#if MIXED
							// As in conv_bits.
							UNROLL_ON_GPU
							for (int l = 0; l < LANES; l++) {
								const int o = min(block * LANES + l, OUT_C - 1);
								const int at = min(o / GROUP_OUT * GROUP_IN / 32 + k, IN_WORDS - 1);
								const uint v = inside ? p[j * plane + at] : 0;
								sum[l] += (int)popcount((v ^ w[l]) & masks[(block * WORDS + k) * LANES + l]) << j;
							}
#else
							const uint v = inside ? p[j * plane + k] : 0;
							UNROLL_ON_GPU
							for (int l = 0; l < LANES; l++)
								sum[l] += (int)popcount(v ^ w[l]) << j;
#endif
						}
						w += LANES;
					}
				}
			}
			const int border = BORDER ? (rows[y] * COLS + cols[x]) * (BLOCKS * LANES) + block * LANES : 0;
			UNROLL_ON_GPU
			for (int l = 0; l < LANES; l++) {
				const int acc = TAPS * ((1 << IN_PLANES) - 1) - 2 * sum[l] + (BORDER ? correction[border + l] : 0);
				most[l] = py + px == 0 ? acc : max(most[l], acc);
			}
		}
#if TO_BITS
	for (int j = 0; j < OUT_PLANES; j++) {
		uint word = 0;
		UNROLL_ON_GPU
		for (int l = 0; l < LANES; l++) {
			int reached = 0;
			for (int k = 0; k < (1 << OUT_PLANES) - 1; k++)
				reached += most[l] >= thresholds[k * (BLOCKS * LANES) + block * LANES + l];
			word |= (uint)(reached >> j & 1) << l;
		}
		word &= WORD_MASK(block, OUT_C);
		out[j * (OUT_W * OUT_WORDS)] = FLIP ? word ^ flip[block] : word;
	}
#else
	UNROLL_ON_GPU
	for (int l = 0; l < LANES; l++) {
		const int o = block * LANES + l;
		if (o < OUT_C) {
			float v = (float)most[l];
			if (SCALED)
				v = fma(v, scale[o], shift[o]);
			out[(image * (OUT_H * OUT_W) + pixel) * OUT_C + o] = activate(v, slope, o, g);
		}
	}
#endif
}

// A work-item makes a word of all planes: 32 numbers, the largest of the window.
__kernel void max_pool_planes(__global const uint *restrict in, __global uint *restrict out,
	__global const uint *restrict flip, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int pixel = item / OUT_WORDS;
	const int k = item - pixel * OUT_WORDS;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	const int plane = IN_W * IN_WORDS;
	in += image * (IN_H * IN_PLANES * plane) + k;
	uint most[MAX_PLANES];
	for (int j = 0; j < MAX_PLANES; j++)
		most[j] = 0;
	for (int ky = 0; ky < KH; ky++)
		for (int kx = 0; kx < KW; kx++) {
			const int iy = y * STRIDE_H - PAD_T + ky, ix = x * STRIDE_W - PAD_L + kx;
			if (iy < 0 || iy >= IN_H || ix < 0 || ix >= IN_W)
				continue;
			__global const uint *p = in + iy * IN_PLANES * plane + ix * IN_WORDS;
			uint take = 0, decided = 0; // where it is larger, and where they differ
			for (int j = IN_PLANES - 1; j >= 0; j--) {
				const uint v = p[j * plane], differ = (most[j] ^ v) & ~decided;
				take |= differ & v;
				decided |= differ;
			}
			for (int j = 0; j < IN_PLANES; j++)
				most[j] ^= (most[j] ^ p[j * plane]) & take;
		}
	out += ((image * OUT_H + y) * IN_PLANES * OUT_W + x) * OUT_WORDS + k;
	for (int j = 0; j < IN_PLANES; j++)
		out[j * (OUT_W * OUT_WORDS)] = FLIP ? most[j] ^ flip[k] : most[j];
}
