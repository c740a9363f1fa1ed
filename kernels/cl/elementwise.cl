// Pooling, and steps that treat every value by itself.

// One work-item makes 32 channels of a pixel: the OR over the window.
__kernel void max_pool_bits(__global const uint *restrict in, __global uint *restrict out,
	__global const uint *restrict flip, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int pixel = item / OUT_WORDS;
	const int k = item - pixel * OUT_WORDS;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	in += image * (IN_H * IN_W * IN_WORDS);
	uint word = 0;
	for (int ky = 0; ky < KH; ky++)
		for (int kx = 0; kx < KW; kx++) {
			const int iy = y * STRIDE_H - PAD_T + ky, ix = x * STRIDE_W - PAD_L + kx;
			if (iy >= 0 && iy < IN_H && ix >= 0 && ix < IN_W)
				word |= in[(iy * IN_W + ix) * IN_WORDS + k];
		}
	out[image * (OUT_H * OUT_W * OUT_WORDS) + item] = FLIP ? word ^ flip[k] : word;
}

// Of equal values the first in the order (ky, kx) stays, and so does what cannot
// be compared with what follows.
__kernel void max_pool_float(__global const float *restrict in, __global float *restrict out,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	in += image * (IN_H * IN_W * IN_C);
	float best = 0.0f;
	bool first = true;
	for (int ky = 0; ky < KH; ky++)
		for (int kx = 0; kx < KW; kx++) {
			const int iy = y * STRIDE_H - PAD_T + ky, ix = x * STRIDE_W - PAD_L + kx;
			if (iy < 0 || iy >= IN_H || ix < 0 || ix >= IN_W)
				continue;
			const float v = in[(iy * IN_W + ix) * IN_C + c];
			if (first || v > best)
				best = v;
			first = false;
		}
	out[image * (OUT_H * OUT_W * OUT_C) + item] = best;
}

#if SOURCE == 1
#define VALUE uchar
#elif SOURCE == 2
#define VALUE uint
#else
#define VALUE float
#endif

// Float32 of bytes (SOURCE 1), bits (2) or floats (3).
__kernel void affine(__global const VALUE *restrict in, __global float *restrict out,
	__global const float *restrict scale, __global const float *restrict shift,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
#if SOURCE == 2
	const uint word = in[(image * (OUT_H * OUT_W) + pixel) * IN_WORDS + c / 32];
	float v = (word >> (c % 32) & 1) ? 1.0f : -1.0f;
#else
	float v = (float)in[image * (OUT_H * OUT_W * OUT_C) + item];
#endif
	if (SCALED)
		v = fma(v, scale[c], shift[c]);
	out[image * (OUT_H * OUT_W * OUT_C) + item] = RECTIFY(v);
}

__kernel void sign_bits(__global const float *restrict in, __global uint *restrict out,
	__global const float *restrict thresholds, __global const uint *restrict flip,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int pixel = item / OUT_WORDS;
	const int block = item - pixel * OUT_WORDS;
	in += (image * (OUT_H * OUT_W) + pixel) * OUT_C + block * 32;
	uint word = 0;
	for (int l = 0; l < 32 && block * 32 + l < OUT_C; l++)
		word |= (uint)(in[l] >= thresholds[block * 32 + l]) << l;
	out[image * (OUT_H * OUT_W * OUT_WORDS) + item] = FLIP ? word ^ flip[block] : word;
}

__kernel void add(__global const float *restrict a, __global const float *restrict b,
	__global float *restrict out, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const size_t i = image * (OUT_H * OUT_W * OUT_C) + item;
	const float v = a[i] + b[i];
	out[i] = RECTIFY(v);
}

// Closes the gaps that padding bits leave between pixels. OUT_H and OUT_W are 1.
__kernel void flatten_bits(__global const uint *restrict in, __global uint *restrict out,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_WORDS)
		return;
	in += image * (IN_H * IN_W * IN_WORDS);
	uint word = 0;
	for (int l = 0; l < 32; l++) {
		const int i = item * 32 + l;
		if (i >= OUT_C)
			break;
		const int pixel = i / IN_C;
		const int c = i - pixel * IN_C;
		word |= (in[pixel * IN_WORDS + c / 32] >> (c % 32) & 1) << l;
	}
	out[image * OUT_WORDS + item] = word;
}

__kernel void flatten_float(__global const float *restrict in, __global float *restrict out,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item < OUT_C)
		out[image * OUT_C + item] = in[image * OUT_C + item];
}
