// Checks models of one convolution against its definition, with tensors of both orders,
// and what is no convolution.

#include <bitcnn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, bitcnn_last_error()); \
			exit(1); \
		} \
	} while (0)
#define OK(call) CHECK((call) == BITCNN_OK)
#define FAILS(call, status, about) \
	do { \
		CHECK((call) == (status)); \
		CHECK(strstr(bitcnn_last_error(), about)); \
	} while (0)

enum { IMAGES = 3 };

static uint32_t state = 1;
static uint32_t next(void) {
	state = state * 1664525 + 1013904223;
	return state >> 16;
}

static void *get(size_t bytes) {
	void *memory = calloc(1, bytes ? bytes : 1);
	CHECK(memory);
	return memory;
}

static int words(const bitcnn_conv *c) { return (c->channels / c->groups + 63) / 64; }

static int weight(const bitcnn_conv *c, int o, int ky, int kx, int i) {
	const uint64_t *w = c->weights + ((o * c->kernel_height + ky) * c->kernel_width + kx) * words(c);
	return w[i / 64] >> i % 64 & 1 ? 1 : -1;
}

// at is an index into an image.
static size_t at(int nchw, int h, int w, int c, int y, int x, int k) {
	return nchw ? ((size_t)k * h + y) * w + x : ((size_t)y * w + x) * c + k;
}

static void check(bitcnn_conv *c, int batch) {
	c->size = sizeof *c;
	int per_group = c->channels / c->groups, out_per_group = c->outputs / c->groups;
	c->weight_count = (size_t)c->outputs * c->kernel_height * c->kernel_width * words(c);
	uint64_t *weights = get(c->weight_count * 8);
	for (size_t i = 0; i < c->weight_count; i++) {
		int bits = per_group - (int)(i % words(c)) * 64;
		for (int b = 0; b < bits && b < 64; b++) {
			weights[i] |= (uint64_t)(next() & 1) << b;
		}
	}
	c->weights = weights;
	bitcnn_model model;
	OK(bitcnn_conv_model(c, &model));
	bitcnn_options options = BITCNN_INIT(bitcnn_options);
	options.device = "cpu";
	options.max_batch = batch;
	bitcnn_session session;
	OK(bitcnn_open(model, &options, &session));
	OK(bitcnn_close_model(model));
	bitcnn_io in = BITCNN_INIT(bitcnn_io), out = BITCNN_INIT(bitcnn_io);
	OK(bitcnn_input(session, 0, &in));
	OK(bitcnn_output(session, 0, &out));
	CHECK(in.height == c->height && in.width == c->width && in.channels == c->channels && out.channels == c->outputs);
	size_t in_values = in.bytes / 4, out_values = out.bytes / 4;
	for (int order = 0; order < 4; order++) { // of the input and of the output
		float *x = get(IMAGES * in.bytes), *y = get(IMAGES * out.bytes);
		for (size_t i = 0; i < IMAGES * in_values; i++) {
			static const float some[] = {0, -0.0f, 1e-30f, -1e-30f, NAN, 3, -3, INFINITY};
			x[i] = some[next() % 8];
		}
		for (int from = 0; from < IMAGES; from += batch) {
			int n = IMAGES - from < batch ? IMAGES - from : batch;
			bitcnn_tensor i = {x + from * in_values, n * in.bytes, BITCNN_FLOAT32, order & 1 ? BITCNN_NCHW : 0};
			bitcnn_tensor o = {y + from * out_values, n * out.bytes, BITCNN_FLOAT32, order & 2 ? BITCNN_NCHW : BITCNN_NHWC};
			OK(bitcnn_run(session, n, &i, 1, &o, 1));
		}
		for (int n = 0; n < IMAGES; n++) {
			for (int oy = 0; oy < out.height; oy++) {
				for (int ox = 0; ox < out.width; ox++) {
					for (int o = 0; o < c->outputs; o++) {
						int sum = 0;
						for (int ky = 0; ky < c->kernel_height; ky++) {
							for (int kx = 0; kx < c->kernel_width; kx++) {
								int iy = oy * c->stride_height + ky * c->dilation_height - c->pad_top;
								int ix = ox * c->stride_width + kx * c->dilation_width - c->pad_left;
								for (int k = 0; k < per_group; k++) {
									int value = c->pad_value;
									if (iy >= 0 && iy < c->height && ix >= 0 && ix < c->width) {
										float v = x[n * in_values + at(order & 1, c->height, c->width, c->channels, iy, ix, o / out_per_group * per_group + k)];
										value = (c->sign_of_zero > 0 ? v >= 0 : v > 0) ? 1 : -1;
									}
									sum += value * weight(c, o, ky, kx, k);
								}
							}
						}
						CHECK(y[n * out_values + at(order & 2, out.height, out.width, c->outputs, oy, ox, o)] == (float)sum);
					}
				}
			}
		}
		free(x);
		free(y);
	}
	OK(bitcnn_close(session));
	free(weights);
}

static void misuse(void) {
	uint64_t weights[9] = {0};
	const bitcnn_conv good = {.size = sizeof good, .height = 4, .width = 4, .channels = 3, .outputs = 1, .kernel_height = 3, .kernel_width = 3,
		.pad_value = 1, .sign_of_zero = 1, .weights = weights, .weight_count = 9};
	bitcnn_model model;
	bitcnn_conv bad;
	OK(bitcnn_conv_model(&good, &model));
	OK(bitcnn_close_model(model));
	FAILS(bitcnn_conv_model(NULL, &model), BITCNN_INVALID, "no convolution");
	FAILS(bitcnn_conv_model(&good, NULL), BITCNN_INVALID, "no place for a model");
#define BAD(change, status, about) \
	do { \
		bad = good; \
		bad.change; \
		model = 1; \
		FAILS(bitcnn_conv_model(&bad, &model), status, about); \
		CHECK(model == 0); \
	} while (0)
	BAD(size = 4, BITCNN_INVALID, "a structure of 4 bytes");
	BAD(weights = NULL, BITCNN_INVALID, "no weights");
	BAD(weights = (uint64_t *)((char *)weights + 1), BITCNN_INVALID, "not aligned");
	BAD(weight_count = 8, BITCNN_MODEL, "conv");
	BAD(weight_count = SIZE_MAX, BITCNN_INVALID, "too many");
	BAD(sign_of_zero = 0, BITCNN_INVALID, "the sign of zero is 0");
	BAD(pad_value = 2, BITCNN_MODEL, "conv");
	BAD(channels = -1, BITCNN_MODEL, "input");
	BAD(height = 2, BITCNN_MODEL, "conv");
	BAD(groups = 2, BITCNN_MODEL, "conv");
	BAD(stride_width = -1, BITCNN_MODEL, "conv");
	weights[4] = 8; // a bit of a channel that there is not
	BAD(size = sizeof good, BITCNN_MODEL, "conv");
	weights[4] = 0;

	bitcnn_session session;
	OK(bitcnn_conv_model(&good, &model));
	OK(bitcnn_open(model, NULL, &session));
	float x[48] = {0}, y[4];
	bitcnn_tensor in = {x, sizeof x, BITCNN_FLOAT32, 3}, out = {y, sizeof y, BITCNN_FLOAT32, 0};
	FAILS(bitcnn_run(session, 1, &in, 1, &out, 1), BITCNN_INVALID, "invalid layout: 3");
	OK(bitcnn_close(session));
	OK(bitcnn_close_model(model));
}

int main(void) {
	bitcnn_conv cases[] = {
		{.height = 9, .width = 11, .channels = 65, .outputs = 5, .kernel_height = 3, .kernel_width = 3},
		{.height = 6, .width = 9, .channels = 128, .outputs = 64, .kernel_height = 3, .kernel_width = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1},
		{.height = 7, .width = 6, .channels = 6, .outputs = 4, .kernel_height = 2, .kernel_width = 3, .stride_height = 2, .stride_width = 1, .pad_top = 1, .pad_right = 2, .groups = 2},
		{.height = 12, .width = 5, .channels = 3, .outputs = 70, .kernel_height = 3, .kernel_width = 1, .dilation_height = 3, .pad_left = 2, .pad_bottom = 1},
		{.height = 1, .width = 1, .channels = 1000, .outputs = 10, .kernel_height = 1, .kernel_width = 1},
		{.height = 1, .width = 1, .channels = 1, .outputs = 1, .kernel_height = 1, .kernel_width = 1},
		{.height = 3, .width = 33, .channels = 513, .outputs = 9, .kernel_height = 1, .kernel_width = 1},
	};
	int count = sizeof cases / sizeof *cases;
	for (int i = 0; i < count; i++) {
		for (int rules = 0; rules < 6; rules++) {
			bitcnn_conv c = cases[i];
			int32_t *ones[] = {&c.stride_height, &c.stride_width, &c.dilation_height, &c.dilation_width, &c.groups};
			for (int j = 0; j < 5; j++) {
				*ones[j] = *ones[j] ? *ones[j] : 1;
			}
			c.pad_value = rules % 3 - 1;
			c.sign_of_zero = rules < 3 ? 1 : -1;
			check(&c, 1 + rules % 2);
		}
	}
	misuse();
	printf("%d convolutions\n", count * 6);
	return 0;
}
