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

// The largest bytes of VECTOR channels.
__kernel void max_pool_bytes(__global const uchar *restrict in, __global uchar *restrict out,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	const int words = OUT_C / VECTOR;
	if (item >= OUT_H * OUT_W * words)
		return;
	const int pixel = item / words;
	const int k = item - pixel * words;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	in += image * (IN_H * IN_W * IN_C) + k * VECTOR;
	out += (image * (OUT_H * OUT_W) + pixel) * OUT_C + k * VECTOR;
	uchar4 best = 0;
	for (int ky = 0; ky < KH; ky++)
		for (int kx = 0; kx < KW; kx++) {
			const int iy = y * STRIDE_H - PAD_T + ky, ix = x * STRIDE_W - PAD_L + kx;
			if (iy < 0 || iy >= IN_H || ix < 0 || ix >= IN_W)
				continue;
			__global const uchar *from = in + (iy * IN_W + ix) * IN_C;
			best = max(best, VECTOR == 1 ? (uchar4)from[0] : vload4(0, from));
		}
	if (VECTOR == 1)
		out[0] = best.x;
	else
		vstore4(best, 0, out);
}

// The bit of channel c of a pixel.
#define BIT(words, c) ((words)[(c) / 32] >> ((c) % 32) & 1)

#if SOURCE == 1
#define VALUE uchar
#elif SOURCE == 2
#define VALUE uint
#else
#define VALUE float
#endif

// A function by a table of polynomials of the distance from the middle of an interval (see
// internal/f32): for each sign and exponent the first of its rows, times 32, and how far
// the mantissa is shifted to be the number of the row among them; then rows of the middle
// and eight coefficients. An infinite number is near the largest finite one.
inline float tabulated(float v, __global const float *table)
{
	uint b = as_uint(v);
	const uint place = as_uint(table[b >> 23]);
	__global const float *row = table + 512 + 9 * ((place >> 5) + ((b & 0x7fffffu) >> (place & 31)));
	if ((b & 0x7fffffffu) == 0x7f800000u)
		b--;
	const float u = as_float(b) - row[0];
	float p = row[8];
	for (int i = 7; i > 1; i--)
		p = p * u + row[i];
	return row[1] + p;
}

// Float32 of bytes (SOURCE 1), bits (2) or floats (3).
__kernel void affine(__global const VALUE *restrict in, __global float *restrict out,
	__global const float *restrict scale, __global const float *restrict shift,
	__global const float *restrict slope, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
#if SOURCE == 2
	in += (image * (OUT_H * OUT_W) + pixel) * IN_WORDS;
	float v = BIT(in, c) ? 1.0f : -1.0f;
#else
	float v = (float)in[image * (OUT_H * OUT_W * OUT_C) + item];
#endif
	if (SCALED)
		v = fma(v, scale[c], shift[c]);
	v = activate(v, slope, c, g);
	if (ACTIVATION == ACTIVATION_FUNCTION)
		v = tabulated(v, slope);
	out[image * (OUT_H * OUT_W * OUT_C) + item] = v;
}

// The mean of n taps that add up to sum, by the sequence of the numeric contract.
// divisors[pixel][2] are n and 1 divided by it.
inline float mean(float sum, __global const float *divisors, int pixel)
{
	const float n = divisors[2 * pixel], reciprocal = divisors[2 * pixel + 1];
	const float quotient = sum * reciprocal;
	return fma(fma(-n, quotient, sum), reciprocal, quotient);
}

__kernel void avg_pool_bits(__global const uint *restrict in, __global float *restrict out,
	__global const float *restrict divisors, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	const int y0 = y * STRIDE_H - PAD_T, x0 = x * STRIDE_W - PAD_L;
	in += image * (IN_H * IN_W * IN_WORDS);
	int sum = 0;
	for (int iy = max(y0, 0); iy < min(y0 + KH, IN_H); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + KW, IN_W); ix++)
			sum += BIT(in + (iy * IN_W + ix) * IN_WORDS, c) ? 1 : -1;
	out[image * (OUT_H * OUT_W * OUT_C) + item] = mean((float)sum, divisors, pixel);
}

__kernel void avg_pool_float(__global const float *restrict in, __global float *restrict out,
	__global const float *restrict divisors, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	const int y0 = y * STRIDE_H - PAD_T, x0 = x * STRIDE_W - PAD_L;
	in += image * (IN_H * IN_W * IN_C);
	float sum = 0.0f;
	for (int iy = max(y0, 0); iy < min(y0 + KH, IN_H); iy++)
		for (int ix = max(x0, 0); ix < min(x0 + KW, IN_W); ix++)
			sum += in[(iy * IN_W + ix) * IN_C + c];
	out[image * (OUT_H * OUT_W * OUT_C) + item] = mean(sum, divisors, pixel);
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
	in += (image * (OUT_H * OUT_W) + pixel) * IN_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	for (int j = 0; j < OUT_PLANES; j++) {
		uint word = 0;
		for (int l = 0, c = block * 32; l < 32 && c < OUT_C; l++, c++) {
			int reached = 0;
			for (int k = 0; k < (1 << OUT_PLANES) - 1; k++)
				reached += in[c] >= thresholds[k * OUT_C + c];
			word |= (uint)(reached >> j & 1) << l;
		}
		out[(((image * OUT_H + y) * OUT_PLANES + j) * OUT_W + x) * OUT_WORDS + block] = FLIP ? word ^ flip[block] : word;
	}
}

// Float32 of bytes, by a table of 256 for all channels or for each of OTHER_C.
__kernel void table_float(__global const uchar *restrict in, __global float *restrict out,
	__global const float *restrict table, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const size_t i = image * (OUT_H * OUT_W * OUT_C) + item;
	out[i] = table[(OTHER_C == 1 ? 0 : item % OUT_C * 256) + in[i]];
}

// Bytes of bytes, one or four.
__kernel void table_bytes(__global const uchar *restrict in, __global uchar *restrict out,
	__global const float *restrict table, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C / VECTOR)
		return;
	const size_t first = image * (OUT_H * OUT_W * OUT_C) + item * VECTOR;
	for (int i = 0; i < VECTOR; i++)
		out[first + i] = (uchar)table[(OTHER_C == 1 ? 0 : (item * VECTOR + i) % OUT_C * 256) + in[first + i]];
}

// The same of numbers, of which plane j has bit j. A work-item makes a word of each.
__kernel void table_bits(__global const uchar *restrict in, __global uint *restrict out,
	__global const float *restrict table, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int pixel = item / OUT_WORDS;
	const int block = item - pixel * OUT_WORDS;
	in += (image * (OUT_H * OUT_W) + pixel) * OUT_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	for (int j = 0; j < OUT_PLANES; j++) {
		uint word = 0;
		for (int l = 0, c = block * 32; l < 32 && c < OUT_C; l++, c++)
			word |= (uint)((int)table[(OTHER_C == 1 ? 0 : c * 256) + in[c]] >> j & 1) << l;
		out[(((image * OUT_H + y) * OUT_PLANES + j) * OUT_W + x) * OUT_WORDS + block] = word;
	}
}

// The number of thresholds that a value of channel c reaches, END - FIRST of them for all
// channels or for each of OTHER_C.
inline int level(float v, __global const float *thresholds, int c, __constant const int *g)
{
	const int n = END - FIRST;
	thresholds += OTHER_C == 1 ? 0 : c * n;
	int reached = 0;
	for (int rest = n; rest > 0; rest /= 2) { // reached to reached + rest of them are
		const int mid = (rest + 1) / 2;
		reached += v >= thresholds[reached + mid - 1] ? mid : 0;
	}
	return reached;
}

// FIRST plus the level.
__kernel void quantize(__global const float *restrict in, __global float *restrict out,
	__global const float *restrict thresholds, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const size_t i = image * (OUT_H * OUT_W * OUT_C) + item;
	out[i] = (float)(FIRST + level(in[i], thresholds, item % OUT_C, g));
}

// The levels alone, of VECTOR values.
__kernel void quantize_bytes(__global const float *restrict in, __global uchar *restrict out,
	__global const float *restrict thresholds, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C / VECTOR)
		return;
	const size_t first = image * (OUT_H * OUT_W * OUT_C) + item * VECTOR;
	for (int i = 0; i < VECTOR; i++)
		out[first + i] = (uchar)level(in[first + i], thresholds, (item * VECTOR + i) % OUT_C, g);
}

__kernel void add(__global const float *restrict a, __global const float *restrict b,
	__global float *restrict out, __global const float *restrict slope,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const size_t i = image * (OUT_H * OUT_W * OUT_C) + item;
	// Nothing else needs the channel, and the division takes longer than the rest.
	const int c = ACTIVATION == ACTIVATION_PRELU ? item % OUT_C : 0;
	out[i] = activate(a[i] + b[i], slope, c, g);
}

// b has values for all pixels or for one, and for all channels or for one. In a minimum or
// maximum a NaN wins, and b where both are equal.
__kernel void pair(__global const float *restrict a, __global const float *restrict b,
	__global float *restrict out, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
	b += image * (OTHER_PIXELS * OTHER_C) + (OTHER_PIXELS == 1 ? 0 : pixel * OTHER_C);
	const size_t i = image * (OUT_H * OUT_W * OUT_C) + item;
	const float x = a[i], y = b[OTHER_C == 1 ? 0 : c];
	if (SCHEME == PAIR_MUL)
		out[i] = x * y;
	else if (SCHEME == PAIR_MASK)
		out[i] = y != 0.0f ? x : 0.0f; // also where y is a NaN
	else
		out[i] = (SCHEME == PAIR_MIN ? x < y : x > y) || x != x ? x : y;
}

// Makes channels FIRST to END of the output: channel c is channel index[c - FIRST]
// of the input, or 0 where that is -1.
__kernel void gather_float(__global const float *restrict in, __global float *restrict out,
	__global const int *restrict index, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	const int channels = max(END - FIRST, 1); // 0 in programs for other steps, and compilers warn
	if (item >= OUT_H * OUT_W * channels)
		return;
	const int pixel = item / channels;
	const int c = item - pixel * channels;
	const int from = index[c];
	in += (image * (OUT_H * OUT_W) + pixel) * IN_C;
	out[(image * (OUT_H * OUT_W) + pixel) * OUT_C + FIRST + c] = from < 0 ? 0.0f : in[from];
}

// One work-item makes a word, of those that the channels touch. What is in it below
// FIRST, the launch before has made.
__kernel void gather_bits(__global const uint *restrict in, __global uint *restrict out,
	__global const int *restrict index, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	const int words = max((END == OUT_C ? OUT_WORDS : (END + 31) / 32) - FIRST / 32, 1); // as above
	if (item >= OUT_H * OUT_W * words)
		return;
	const int pixel = item / words;
	const int k = FIRST / 32 + item - pixel * words;
	in += (image * (OUT_H * OUT_W) + pixel) * IN_WORDS;
	out += (image * (OUT_H * OUT_W) + pixel) * OUT_WORDS + k;
	uint word = k * 32 < FIRST ? *out : 0;
	for (int c = max(k * 32, FIRST); c < min(k * 32 + 32, END); c++)
		word |= BIT(in, index[c - FIRST]) << (c % 32);
	*out = word;
}

// The pixel of row y and column x of the output is the one of row index[y] and column
// index[OUT_H + x], or filled with index[OUT_H + OUT_W] where either is -1. A pixel of
// the input holds KH rows and KW columns, one after the other.
__kernel void pixels_float(__global const float *restrict in, __global float *restrict out,
	__global const int *restrict index, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	const int row = index[y], col = index[OUT_H + x];
	float v = as_float(index[OUT_H + OUT_W]);
	if (row >= 0 && col >= 0) {
		const int iy = row / max(KH, 1), ix = col / max(KW, 1); // 0 in programs for other steps, and compilers warn
		const int block = (row - iy * KH) * KW + col - ix * KW;
		v = in[((image * IN_H + iy) * IN_W + ix) * IN_C + block * OUT_C + c];
	}
	out[image * (OUT_H * OUT_W * OUT_C) + item] = v;
}

// A work-item makes a word, of two of the input where their borders differ.
__kernel void pixels_bits(__global const uint *restrict in, __global uint *restrict out,
	__global const int *restrict index, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int pixel = item / OUT_WORDS;
	const int k = item - pixel * OUT_WORDS;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	const int row = index[y], col = index[OUT_H + x];
	uint word = as_float(index[OUT_H + OUT_W]) > 0.0f ? 0xffffffffu : 0;
	if (k * 32 >= OUT_C)
		word = 0;
	else if (row >= 0 && col >= 0) {
		const int iy = row / max(KH, 1), ix = col / max(KW, 1); // as above
		const int first = ((row - iy * KH) * KW + col - ix * KW) * OUT_C + k * 32;
		in += ((image * IN_H + iy) * IN_W + ix) * IN_WORDS + first / 32;
		word = in[0] >> (first % 32);
		if (first % 32 != 0 && first / 32 + 1 < IN_WORDS)
			word |= in[1] << (32 - first % 32);
	}
	if (k * 32 < OUT_C)
		word &= WORD_MASK(k, OUT_C);
	out[image * (OUT_H * OUT_W * OUT_WORDS) + item] = word;
}

// Adds up KH x KW weighted pixels: rows index[y * KH + ky], columns behind all rows.
__kernel void resample(__global const float *restrict in, __global float *restrict out,
	__global const int *restrict index, __global const float *restrict weights, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_C)
		return;
	const int pixel = item / OUT_C;
	const int c = item - pixel * OUT_C;
	const int y = pixel / OUT_W, x = pixel - y * OUT_W;
	in += image * (IN_H * IN_W * IN_C) + c;
	float sum = 0.0f;
	for (int ky = y * KH; ky < (y + 1) * KH; ky++)
		for (int kx = OUT_H * KH + x * KW; kx < OUT_H * KH + (x + 1) * KW; kx++)
			sum = fma(in[(index[ky] * IN_W + index[kx]) * IN_C], weights[ky] * weights[kx], sum);
	out[image * (OUT_H * OUT_W * OUT_C) + item] = sum;
}

// A work-item finds the OUT_C largest values of a pixel: the next one is the largest of
// those that come behind the one before. A NaN counts as the smallest.
__kernel void top_k(__global const float *restrict in, __global float *restrict out,
	__constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W)
		return;
	in += (image * (OUT_H * OUT_W) + item) * IN_C;
	out += (image * (OUT_H * OUT_W) + item) * OUT_C;
	int last = -1;
	float before = INFINITY;
	for (int k = 0; k < OUT_C; k++) {
		int best = -1;
		float most = 0.0f;
		for (int c = 0; c < IN_C; c++) {
			float v = in[c];
			v = v == v ? v : -INFINITY;
			if ((v < before || (v == before && c > last)) && (best < 0 || v > most)) {
				best = c;
				most = v;
			}
		}
		last = best;
		before = most;
		out[k] = FLIP ? in[best] : (float)best;
	}
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
		word |= BIT(in + pixel * IN_WORDS, c) << l;
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
