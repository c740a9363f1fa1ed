// Products of the rows of two tensors, and the swap of columns and channels.

#define MATMUL_PART 4 // pixels of a work-item

// The output and the first pixel of a work-item, whose items of a row follow each other.
#define MATMUL_ITEM \
	const int parts = (OUT_W + MATMUL_PART - 1) / MATMUL_PART; \
	const int item = get_global_id(0); \
	if (item >= OUT_H * parts * OUT_C) \
		return; \
	const int line = item / OUT_C, output = item - line * OUT_C; \
	const size_t row = get_global_id(1) * OUT_H + line / parts; \
	const int pixel = line % parts * MATMUL_PART, pixels = min(MATMUL_PART, OUT_W - pixel);

__kernel void matmul_bits(__global const uint *restrict a, __global const uint *restrict b, __global float *restrict out,
	__constant const int *g)
{
	MATMUL_ITEM
	a += (row * OUT_W + pixel) * IN_WORDS;
	b += (row * OUT_C + output) * IN_WORDS;
	int sums[MATMUL_PART] = {0, 0, 0, 0};
	for (int k = 0; k < IN_WORDS; k++) {
		const uint y = b[k];
		for (int p = 0; p < pixels; p++)
			sums[p] += popcount(a[p * IN_WORDS + k] ^ y);
	}
	for (int p = 0; p < pixels; p++)
		out[(row * OUT_W + pixel + p) * OUT_C + output] = (float)(IN_C - 2 * sums[p]);
}

__kernel void matmul_float(__global const float *restrict a, __global const float *restrict b, __global float *restrict out,
	__constant const int *g)
{
	MATMUL_ITEM
	a += (row * OUT_W + pixel) * IN_C;
	b += (row * OUT_C + output) * IN_C;
	float sums[MATMUL_PART] = {0.0f, 0.0f, 0.0f, 0.0f};
	for (int k = 0; k < IN_C; k++) {
		const float y = b[k];
		for (int p = 0; p < pixels; p++)
			sums[p] = fma(a[p * IN_C + k], y, sums[p]);
	}
	for (int p = 0; p < pixels; p++)
		out[(row * OUT_W + pixel + p) * OUT_C + output] = sums[p];
}

__kernel void transpose_float(__global const float *restrict in, __global float *restrict out, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int line = item / OUT_C, x = item - line * OUT_C;
	const int row = line / OUT_W, c = line - row * OUT_W;
	out[image * (OUT_H * OUT_W * OUT_C) + item] = in[((image * IN_H + row) * IN_W + x) * IN_C + c];
}

__kernel void transpose_bits(__global const uint *restrict in, __global uint *restrict out, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int line = item / OUT_WORDS, k = item - line * OUT_WORDS;
	const int row = line / OUT_W, c = line - row * OUT_W;
	in += ((image * IN_H + row) * IN_W + k * 32) * IN_WORDS + c / 32;
	uint word = 0;
	for (int l = 0; l < min(32, OUT_C - k * 32); l++)
		word |= (in[l * IN_WORDS] >> (c % 32) & 1) << l;
	out[image * (OUT_H * OUT_W * OUT_WORDS) + item] = word;
}
