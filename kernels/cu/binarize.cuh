// What the schemes of binarisation make of a pixel of bytes.
#ifndef BCNN_BINARIZE_CUH
#define BCNN_BINARIZE_CUH

#include "common.cuh"

#define SCHEME_THRESHOLD 0
#define SCHEME_GREY 1
#define SCHEME_LBP 2
#define SCHEME_MINMAX 3

// The luma of the pixel of the image that is nearest to (y, x).
DEVICE int luma(const Geometry &g, const uint8_t *in, int y, int x)
{
	y = min(max(y, 0), g.in_h - 1);
	x = min(max(x, 0), g.in_w - 1);
	const uint8_t *p = in + (y * g.in_w + x) * g.in_c;
	return g.in_c == 1 ? p[0] : (77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8;
}

// Channel c of pixel (y, x), for the schemes that look at no more than a pixel's
// neighbours.
DEVICE bool binarized(const Geometry &g, int scheme, const uint8_t *in, const int *thresholds, int y, int x, int c)
{
	if (scheme == SCHEME_THRESHOLD)
		return (int)in[(y * g.in_w + x) * g.in_c + c] >= thresholds[c];
	if (scheme == SCHEME_GREY)
		return luma(g, in, y, x) >= thresholds[0];
	// LBP: top left, right, bottom left
	return luma(g, in, y + c - 1, x + (c == 1 ? 1 : -1)) > luma(g, in, y, x);
}

#endif
