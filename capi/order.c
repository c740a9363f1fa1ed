//go:build linux || windows && amd64

// Puts the values of images from the order channel, row, column into row, column,
// channel, and back.

#include "order.h"

#include <string.h>

enum { CHANNELS = 4 };

typedef float quad __attribute__((vector_size(16)));

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t places __attribute__((vector_size(16)));
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (places){i, j, k, l})
#endif

// Blocks of pixels by 4 channels. Channels are often a power of two apart, so that those
// of a pixel fall on the same lines of the cache: whole lines are taken, and some in a row
// where all channels of the pixels still fit in the cache of first level.
static size_t block(size_t channels) {
	size_t pixels = 8192 / channels & ~(size_t)15;
	return pixels < 16 ? 16 : pixels > 64 ? 64 : pixels;
}

#define LOAD(p) ({ quad q_; memcpy(&q_, (p), sizeof q_); q_; })
#define STORE(p, q) ({ quad q_ = (q); memcpy((p), &q_, sizeof q_); })
#define TRANSPOSE(a, b, c, d) \
	do { \
		quad t0 = SHUFFLE(a, b, 0, 4, 1, 5), t1 = SHUFFLE(a, b, 2, 6, 3, 7); \
		quad t2 = SHUFFLE(c, d, 0, 4, 1, 5), t3 = SHUFFLE(c, d, 2, 6, 3, 7); \
		a = SHUFFLE(t0, t2, 0, 1, 4, 5); \
		b = SHUFFLE(t0, t2, 2, 3, 6, 7); \
		c = SHUFFLE(t1, t3, 0, 1, 4, 5); \
		d = SHUFFLE(t1, t3, 2, 3, 6, 7); \
	} while (0)

static void floats_to_nhwc(float *to, const float *from, size_t pixels, size_t channels) {
	size_t most = block(channels);
	for (size_t p = 0; p < pixels; p += most) {
		size_t width = pixels - p < most ? pixels - p : most, c = 0;
		for (; c + CHANNELS <= channels; c += CHANNELS) {
			const float *f = from + c * pixels + p;
			float *t = to + p * channels + c;
			size_t i = 0;
			for (; i + 4 <= width; i += 4) {
				quad w = LOAD(f + i), x = LOAD(f + pixels + i), y = LOAD(f + 2 * pixels + i), z = LOAD(f + 3 * pixels + i);
				TRANSPOSE(w, x, y, z);
				STORE(t + (i + 0) * channels, w);
				STORE(t + (i + 1) * channels, x);
				STORE(t + (i + 2) * channels, y);
				STORE(t + (i + 3) * channels, z);
			}
			for (; i < width; i++) {
				for (size_t k = 0; k < CHANNELS; k++) {
					t[i * channels + k] = f[k * pixels + i];
				}
			}
		}
		for (; c < channels; c++) {
			for (size_t i = 0; i < width; i++) {
				to[(p + i) * channels + c] = from[c * pixels + p + i];
			}
		}
	}
}

static void floats_to_nchw(float *to, const float *from, size_t pixels, size_t channels) {
	size_t most = block(channels);
	for (size_t p = 0; p < pixels; p += most) {
		size_t width = pixels - p < most ? pixels - p : most, c = 0;
		for (; c + CHANNELS <= channels; c += CHANNELS) {
			const float *f = from + p * channels + c;
			float *t = to + c * pixels + p;
			size_t i = 0;
			for (; i + 4 <= width; i += 4) {
				quad w = LOAD(f + (i + 0) * channels), x = LOAD(f + (i + 1) * channels);
				quad y = LOAD(f + (i + 2) * channels), z = LOAD(f + (i + 3) * channels);
				TRANSPOSE(w, x, y, z);
				STORE(t + i, w);
				STORE(t + pixels + i, x);
				STORE(t + 2 * pixels + i, y);
				STORE(t + 3 * pixels + i, z);
			}
			for (; i < width; i++) {
				for (size_t k = 0; k < CHANNELS; k++) {
					t[k * pixels + i] = f[i * channels + k];
				}
			}
		}
		for (; c < channels; c++) {
			for (size_t i = 0; i < width; i++) {
				to[c * pixels + p + i] = from[(p + i) * channels + c];
			}
		}
	}
}

void bitcnn_reorder(void *to, const void *from, int64_t images, size_t pixels, size_t channels, int floats, int to_nchw) {
	size_t values = pixels * channels;
	for (int64_t n = 0; n < images; n++) {
		if (floats) {
			float *t = (float *)to + (size_t)n * values;
			const float *f = (const float *)from + (size_t)n * values;
			(to_nchw ? floats_to_nchw : floats_to_nhwc)(t, f, pixels, channels);
			continue;
		}
		uint8_t *t = (uint8_t *)to + (size_t)n * values;
		const uint8_t *f = (const uint8_t *)from + (size_t)n * values;
		size_t rows = to_nchw ? channels : pixels, columns = to_nchw ? pixels : channels;
		for (size_t r = 0; r < rows; r++) {
			for (size_t c = 0; c < columns; c++) {
				t[r * columns + c] = f[c * rows + r];
			}
		}
	}
}
