// Binarisation of image bytes.

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
	out[image * (OUT_H * OUT_W * OUT_WORDS) + item] =
		binarized_word(in, thresholds, range_of(ranges, image, g), flip, y, x, block, OUT_C, g);
}
