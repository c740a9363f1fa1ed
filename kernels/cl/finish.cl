// Makes the result of a convolution or dense layer of the popcounts
// sums[image][segment][pixel][output]: threshold, pooling and packing, or scale
// and shift. One work-item makes LANES outputs of a pixel.

#if TO_BITS
#define RESULT uint
#else
#define RESULT float
#endif

__kernel void finish(__global const int *restrict sums, __global RESULT *restrict out,
	__global const int *restrict thresholds, __global const float *restrict scale,
	__global const float *restrict shift, __global const float *restrict slope,
	__global const uint *restrict flip, __global const int *restrict rows,
	__global const int *restrict cols, __global const int *restrict correction,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * BLOCKS)
		return;
	const int pixel = item / BLOCKS;
	const int block = item - pixel * BLOCKS;
	const int oy = pixel / OUT_W, ox = pixel - oy * OUT_W;
	sums += image * (SEGMENTS * CONV_H * CONV_W * OUT_C);
#if TO_BITS
	uint word = 0;
#endif
	for (int py = 0; py < POOL_H; py++)
		for (int px = 0; px < POOL_W; px++) {
			const int y = oy * POOL_H + py, x = ox * POOL_W + px;
			const int border = BORDER ? (rows[y] * COLS + cols[x]) * (BLOCKS * LANES) : 0;
			for (int l = 0; l < LANES; l++) {
				const int o = block * LANES + l;
				if (o >= OUT_C)
					break;
				int sum = 0;
				for (int s = 0; s < SEGMENTS; s++)
					sum += sums[((s * CONV_H + y) * CONV_W + x) * OUT_C + o];
				const int acc = TAPS - 2 * sum + (BORDER ? correction[border + o] : 0);
#if TO_BITS
				word |= (uint)(acc >= thresholds[o]) << l;
#else
				float v = (float)acc;
				if (SCALED)
					v = fma(v, scale[o], shift[o]);
				out[(image * (OUT_H * OUT_W) + pixel) * OUT_C + o] = activate(v, slope, o, g);
#endif
			}
		}
#if TO_BITS
	out[(image * (OUT_H * OUT_W) + pixel) * OUT_WORDS + block] = FLIP ? word ^ flip[block] : word;
#endif
}
