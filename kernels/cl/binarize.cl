// Binarisation of image bytes.

#define SCHEME_THRESHOLD 0
#define SCHEME_GREY 1
#define SCHEME_LBP 2
#define SCHEME_MINMAX 3

// The smallest and largest byte of PARTS parts of every image:
// ranges[image][part][2].
__kernel void image_ranges(__global const uchar *restrict in, __global int *restrict ranges,
	__constant const int *g)
{
	const int part = get_global_id(0);
	const size_t image = get_global_id(1);
	if (part >= PARTS)
		return;
	in += image * (IN_H * IN_W * IN_C);
	int lo = in[0], hi = in[0];
	for (int i = part; i < IN_H * IN_W * IN_C; i += PARTS) {
		lo = min(lo, (int)in[i]);
		hi = max(hi, (int)in[i]);
	}
	ranges[(image * PARTS + part) * 2] = lo;
	ranges[(image * PARTS + part) * 2 + 1] = hi;
}

// The luma of the pixel of the image that is nearest to (y, x).
inline int luma(__global const uchar *in, __constant const int *g, int y, int x)
{
	y = clamp(y, 0, IN_H - 1);
	x = clamp(x, 0, IN_W - 1);
	const __global uchar *p = in + (y * IN_W + x) * IN_C;
	return IN_C == 1 ? p[0] : (77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8;
}

// One work-item makes 32 channels of a pixel.
__kernel void binarize(__global const uchar *restrict in, __global uint *restrict out,
	__global const int *restrict thresholds, __global const int *restrict ranges,
	__global const uint *restrict flip, __constant const int *g)
{
	const int item = get_global_id(0);
	const size_t image = get_global_id(1);
	if (item >= OUT_H * OUT_W * OUT_WORDS)
		return;
	const int pixel = item / OUT_WORDS;
	const int block = item - pixel * OUT_WORDS;
	const int y = pixel / IN_W, x = pixel - y * IN_W;
	in += image * (IN_H * IN_W * IN_C);
	int lo = 255, hi = 0;
	if (SCHEME == SCHEME_MINMAX) {
		for (int i = 0; i < PARTS; i++) {
			lo = min(lo, ranges[(image * PARTS + i) * 2]);
			hi = max(hi, ranges[(image * PARTS + i) * 2 + 1]);
		}
	}
	uint word = 0;
	for (int l = 0; l < 32; l++) {
		const int c = block * 32 + l;
		if (c >= OUT_C)
			break;
		bool plus;
		if (SCHEME == SCHEME_THRESHOLD) {
			plus = (int)in[pixel * IN_C + c] >= thresholds[c];
		} else if (SCHEME == SCHEME_GREY) {
			plus = luma(in, g, y, x) >= thresholds[0];
		} else if (SCHEME == SCHEME_LBP) { // top left, right, bottom left
			plus = luma(in, g, y + c - 1, x + (c == 1 ? 1 : -1)) > luma(in, g, y, x);
		} else {
			plus = 2 * ((int)in[pixel * IN_C + c] - lo) > hi - lo;
		}
		word |= (uint)plus << l;
	}
	out[image * (OUT_H * OUT_W * OUT_WORDS) + item] = FLIP ? word ^ flip[block] : word;
}
