/*
 * bitcnn: binary convolutional neural networks, in C.
 *
 *     bitcnn_model model;
 *     bitcnn_session session;
 *     bitcnn_options options = BITCNN_INIT(bitcnn_options);
 *     if (bitcnn_load("model.onnx", NULL, &model) ||
 *         bitcnn_open(model, &options, &session) ||
 *         bitcnn_run(session, 1, &input, 1, &output, 1))
 *             fprintf(stderr, "%s\n", bitcnn_last_error());
 *
 * All functions may be called from any thread, at the same time, also on the same
 * session. The caller keeps ownership of the memory that it passes in; none is retained. Nothing is
 * started before the first call that does something: until then a program may fork and
 * install signal handlers as it likes. docs/c.md tells more.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BITCNN_H
#define BITCNN_H

#include <stddef.h>
#include <stdint.h>

#define BITCNN_VERSION_MAJOR 0
#define BITCNN_VERSION_MINOR 1
#define BITCNN_VERSION_PATCH 0

#if defined(_WIN32)
#define BITCNN_API /* bitcnn.def names what the DLL exports */
#elif defined(__GNUC__)
#define BITCNN_API __attribute__((visibility("default")))
#else
#define BITCNN_API
#endif

#ifdef __cplusplus
template <class T> inline T bitcnn_sized() {
	T value = T();
	value.size = sizeof value;
	return value;
}

extern "C" {
#endif

/* What a function returns: 0, or what sort of error there was. */
typedef enum bitcnn_status {
	BITCNN_OK = 0,
	BITCNN_INVALID = 1,     /* an argument that makes no sense, such as NULL */
	BITCNN_SHAPE = 2,       /* a tensor does not fit the model */
	BITCNN_CLOSED = 3,      /* the model or the session has been closed */
	BITCNN_NOT_FOUND = 4,   /* there is no such file, or no bundled model of that name */
	BITCNN_IO = 5,          /* a file or an image cannot be read, or a file not written */
	BITCNN_MODEL = 6,       /* a file is no model, or one that cannot be represented */
	BITCNN_UNAVAILABLE = 7, /* a device is not there */
	BITCNN_TOO_LARGE = 8,   /* a model needs more memory than there is */
	BITCNN_UNSUPPORTED = 9, /* a device cannot honour a step or an option */
	BITCNN_FORKED = 10,     /* the process was forked after the library had been used */
	BITCNN_INTERNAL = 11    /* a mistake in the library, or memory has run out */
} bitcnn_status;

/* The last error on this thread as text, "" if there was none. It names the file or
 * the tensor and the cause, in UTF-8, and is valid until the next error on this thread. */
BITCNN_API const char *bitcnn_last_error(void);

/* The version of the library: "v0.1.0", or before the release "v0.1.0-dev+efcb69e" with the
 * commit. It is valid for good. NULL if there was an error. */
BITCNN_API const char *bitcnn_version(void);

/* The version of the library as a number, to compare with that of this header. */
#define BITCNN_VERSION (BITCNN_VERSION_MAJOR * 1000000 + BITCNN_VERSION_MINOR * 1000 + BITCNN_VERSION_PATCH)
BITCNN_API int32_t bitcnn_version_number(void);

/* Models and sessions are numbers, 0 for none. One that was closed, or never was, is
 * told apart from all others and gives an error. */
typedef uint64_t bitcnn_model;
typedef uint64_t bitcnn_session;

typedef enum bitcnn_dtype {
	BITCNN_UINT8 = 1,
	BITCNN_FLOAT32 = 3 /* IEEE binary32 */
} bitcnn_dtype;

typedef enum bitcnn_layout {
	BITCNN_NHWC = 1, /* image by image, row by row, pixel by pixel, channels side by side */
	BITCNN_NCHW = 2  /* image by image, channel by channel, row by row */
} bitcnn_layout;

/*
 * Structures begin with their size in bytes, so that later versions may add fields at
 * the end: bitcnn_options o = BITCNN_INIT(bitcnn_options); sets it, and all else to 0,
 * which is the default of everything. Text is in UTF-8.
 */
#ifdef __cplusplus
#define BITCNN_INIT(type) bitcnn_sized<type>()
#else
#define BITCNN_INIT(type) { .size = sizeof(type) }
#endif

/* How a model is loaded. */
typedef struct bitcnn_load_options {
	size_t size;
	/* What a folder of weights of BinCNN leaves open: "thresh", "norm" or "int". */
	const char *bincnn;

	/* Of models of other programs: Sign is of ONNX alone, and the shape not of TensorFlow Lite
	 * and Darknet. The name of the network; the bitcnn_dtype and the shape that it is fed with, where the file leaves that open; (x - mean) * scale that is put
	 * before it, one value each or one per channel. */
	const char *name;
	int32_t input_dtype, input_height, input_width, input_channels;
	const float *mean;
	size_t mean_count;
	const float *scale;
	size_t scale_count;
	/* What a Sign makes of 0: 1 or -1, 0 for no rule; and whether it holds where its
	 * input often is 0, which changes what the network computes. */
	int32_t sign_of_zero, override_zeros;
	/* Weights that differ from +-a by at most this fraction of a are taken as +-a: 0 means
	 * 1e-6, what rounding to float leaves, and less than 0 that they must be equal. */
	double weight_tolerance;
	const char *const *labels;
	size_t label_count;
	int32_t resize; /* pixels of the shorter side of a photo before it is cropped */

	/* Limits for files from strangers. */
	int32_t layers;
	int64_t file_bytes, tensor_bytes;
} bitcnn_load_options;

/* Reads a model: a .bcnn, ONNX or TensorFlow Lite file, or a folder of weights of BinCNN. The
 * format is recognised by content. options may be NULL. */
BITCNN_API bitcnn_status bitcnn_load(const char *path, const bitcnn_load_options *options, bitcnn_model *model);

/* Reads a model from memory: the bytes of a file that refers to no others. */
BITCNN_API bitcnn_status bitcnn_read(const void *data, size_t bytes, const bitcnn_load_options *options, bitcnn_model *model);

/* Takes one of the trained models that are part of the library: "digits", "vehiclenet". */
BITCNN_API bitcnn_status bitcnn_bundled(const char *name, bitcnn_model *model);

/* Writes a model to a .bcnn file, completely or not at all; a file of that name is
 * replaced. */
BITCNN_API bitcnn_status bitcnn_save(bitcnn_model model, const char *path);

/* A binary convolution of one input of floats, whose signs are taken first. A dense layer
 * is one with a kernel of 1 x 1 on an input of 1 x 1. */
typedef struct bitcnn_conv {
	size_t size;
	int32_t height, width, channels; /* of the input */
	int32_t outputs, kernel_height, kernel_width;
	int32_t stride_height, stride_width, dilation_height, dilation_width; /* 0 means 1 */
	int32_t pad_top, pad_left, pad_bottom, pad_right;
	int32_t pad_value;    /* of padded taps: 1, -1 or 0 */
	int32_t groups;       /* 0 means 1 */
	int32_t sign_of_zero; /* of the input: 1 or -1 */
	/* One bit per weight, 1 for +1, [output][row][column][word]: input channel c of a
	 * group is bit c % 64 of word c / 64, and bits behind the last channel are 0. */
	const uint64_t *weights;
	size_t weight_count; /* in words */
} bitcnn_conv;

/* Makes a model of one layer. Its output are floats, the sums of the convolution. */
BITCNN_API bitcnn_status bitcnn_conv_model(const bitcnn_conv *conv, bitcnn_model *model);

BITCNN_API bitcnn_status bitcnn_close_model(bitcnn_model model);

/* Makes of a photo (the bytes of a JPEG, PNG, GIF, BMP or WebP file) what networks for
 * images read: height x width pixels of channels bytes, R, G and B (3) or the luma (1). One
 * that has this size is taken as it is. Any other is resized so that its shorter side has
 * resize pixels, or just fits if that is 0, and its centre is cropped: bitcnn_io tells of an
 * input which resize it wants. Transparent pixels are laid over background, 0xRRGGBB: 0 is
 * black. pixel_bytes is height * width * channels. */
BITCNN_API bitcnn_status bitcnn_read_image(const void *data, size_t bytes, int32_t height, int32_t width, int32_t channels,
                                           int32_t resize, uint32_t background, uint8_t *pixels,
                                           size_t pixel_bytes);

/* What an input shows of a photo: the rectangle from (x, y), in pixels of the photo, which has photo_width x
 * photo_height of them. Beyond the photo are the borders around one that keeps its proportions. */
typedef struct bitcnn_frame {
	double x, y, width, height;
	int32_t photo_width, photo_height;
} bitcnn_frame;

/* Makes of a photo (the bytes of a file, as for bitcnn_read_image) the only input of a session, as its model says
 * and bitcnn_detect does: value_bytes bytes of its type, NHWC, as bitcnn_input tells. frame may be NULL. */
BITCNN_API bitcnn_status bitcnn_read_photo(bitcnn_session session, const void *data, size_t bytes, uint32_t background,
                                           void *values, size_t value_bytes, bitcnn_frame *frame);

/* An object on a photo: its edges in pixels, its score, and the index of its class, which
 * bitcnn_label takes. */
typedef struct bitcnn_box {
	float left, top, right, bottom;
	float score;
	int32_t index;
} bitcnn_box;

/* Finds objects on a photo (the bytes of a file, as for bitcnn_read_image), by a session of a model that is
 * a detector and says how photos become its input. Scores exceed threshold; 0 means 0.5, or that of the
 * model where it is higher. Of two boxes of a class whose intersection over union is more than overlap,
 * the one with the lower score is dropped; 0 means as the model says. The capacity boxes with the highest
 * scores at the most are written, the highest first, and count is their number. */
BITCNN_API bitcnn_status bitcnn_detect(bitcnn_session session, const void *data, size_t bytes, float threshold,
                                       float overlap, uint32_t background, bitcnn_box *boxes, size_t capacity,
                                       size_t *count);

/* What the outputs of a classifier mean. The softmax of scores, in double: how likely each
 * class is, by the network. Scores are finite. */
BITCNN_API bitcnn_status bitcnn_softmax(const float *scores, size_t count, double *probabilities);

/* The k likeliest of count classes, the likeliest first and the first of equals first: their
 * indices, which bitcnn_label takes, and their softmax, unless probabilities is NULL. */
BITCNN_API bitcnn_status bitcnn_top_k(const float *scores, size_t count, size_t *indices, double *probabilities, size_t k);

/*
 * Functions that return text write it to memory of size bytes, cut if it does not fit,
 * with a 0 at the end if size is not 0. length is its length without that 0 and uncut;
 * it may be NULL.
 */

/* The name of the bundled model of an index from 0; BITCNN_NOT_FOUND behind the last. */
BITCNN_API bitcnn_status bitcnn_bundled_name(size_t index, char *text, size_t size, size_t *length);

/* What became of the layers of a model, as JSON: an object with name, inputs, labels,
 * layers that multiply (name, kind, bits and precision, params, float_bytes, stored_bytes,
 * macs, why_float); macs, binary_macs, macs_by_bits and, in words, multiplications of all of
 * them; float_bytes, stored_bytes, table_bytes, metadata_bytes and file_bytes; and a warning
 * if little is computed with integers. bits are those of the wider factor of a product:
 * precision is "binary" for 1, "float32" for 32, else "2-bit" and so on. */
BITCNN_API bitcnn_status bitcnn_report(bitcnn_model model, char *text, size_t size, size_t *length);

typedef enum bitcnn_kind {
	BITCNN_DISCRETE_GPU = 0,
	BITCNN_INTEGRATED_GPU = 1,
	BITCNN_CPU = 2,
	BITCNN_EMULATED = 3
} bitcnn_kind;

/* A device. Text is cut to the room that it has here. */
typedef struct bitcnn_device {
	size_t size;
	char id[32];        /* as bitcnn_options.device takes it: "cpu", "cuda:0" */
	char name[128];     /* the product's name */
	char detail[128];   /* "avx2, 8 threads" */
	int32_t kind;       /* a bitcnn_kind */
	int32_t max_threads; /* 0 where threads are no choice */
	int64_t max_batch;  /* images that a run can count */
	int64_t memory;     /* bytes, 0 if unknown */
} bitcnn_device;

/* The device of an index from 0; BITCNN_NOT_FOUND behind the last. */
BITCNN_API bitcnn_status bitcnn_get_device(size_t index, bitcnn_device *device);

/* How a model is opened. */
typedef struct bitcnn_options {
	size_t size;
	/* "auto" for the best there is, "cuda", "opencl" or "cpu" for the first one of a
	 * backend, "cuda:1" for a certain one; NULL for what the environment variable
	 * BCNN_DEVICE says, else "auto". */
	const char *device;
	/* Instruction set of the processor and kernels of a GPU, for measurements. */
	const char *isa, *kernels;
	int64_t max_batch;      /* images in a run at the most; 0 means 1 */
	int32_t parallel;       /* runs at the same time at the most; further ones wait */
	int32_t threads;        /* of the processor, for all runs together; 0 means all */
	int64_t batch_delay_ns; /* makes batches of runs at the same time, which wait for others no longer, if not 0 */
	int64_t arena_bytes;    /* limit of the memory for tensors */
} bitcnn_options;

/* Compiles a model for a device. The session does not need the model any more: either
 * may be closed first. options may be NULL. */
BITCNN_API bitcnn_status bitcnn_open(bitcnn_model model, const bitcnn_options *options, bitcnn_session *session);

/* Waits for the runs in progress and frees everything. Later runs return BITCNN_CLOSED,
 * and so does a second close. */
BITCNN_API bitcnn_status bitcnn_close(bitcnn_session session);

typedef struct bitcnn_session_info {
	size_t size;
	size_t inputs, outputs, labels, steps; /* how many there are */
	int64_t max_batch;
	size_t box_classes; /* of a detector, the background included: see bitcnn_detect; 0 of other models */
} bitcnn_session_info;

BITCNN_API bitcnn_status bitcnn_info(bitcnn_session session, bitcnn_session_info *info);

/* The device of a session. */
BITCNN_API bitcnn_status bitcnn_session_device(bitcnn_session session, bitcnn_device *device);

/* An input or an output. */
typedef struct bitcnn_io {
	size_t size;
	int32_t dtype;  /* a bitcnn_dtype */
	int32_t layout; /* of the memory of a run: BITCNN_NHWC */
	int32_t height, width, channels; /* of one image; a vector of n values is 1, 1, n */
	int32_t resize; /* see bitcnn_load_options; 0 means that the crop just fits */
	size_t bytes;   /* of one image */
	/* The arrays of the model that this one was imported from: their layout, and their
	 * dimensions behind the batch. */
	int32_t source_layout, source_rank;
	int64_t source_dims[31];
} bitcnn_io;

BITCNN_API bitcnn_status bitcnn_input(bitcnn_session session, size_t index, bitcnn_io *io);
BITCNN_API bitcnn_status bitcnn_output(bitcnn_session session, size_t index, bitcnn_io *io);
BITCNN_API bitcnn_status bitcnn_input_name(bitcnn_session session, size_t index, char *text, size_t size, size_t *length);
BITCNN_API bitcnn_status bitcnn_output_name(bitcnn_session session, size_t index, char *text, size_t size, size_t *length);

/* The name of a class of a classifier. */
BITCNN_API bitcnn_status bitcnn_label(bitcnn_session session, size_t index, char *text, size_t size, size_t *length);

/* Memory of the caller's with a batch of images, aligned for its type. */
typedef struct bitcnn_tensor {
	void *data;
	size_t bytes;  /* images times bitcnn_io.bytes */
	int32_t dtype; /* a bitcnn_dtype */
	/* A bitcnn_layout, 0 for BITCNN_NHWC. The values of the other one are put into order
	 * in memory of the session, as much as the tensor has for each run at the same time. */
	int32_t layout;
} bitcnn_tensor;

/*
 * Computes the outputs of a batch of images: as many tensors as the session has inputs
 * and outputs, in their order. Outputs that overlap inputs or each other are BITCNN_INVALID.
 * Nothing of the caller's is kept when it returns.
 */
BITCNN_API bitcnn_status bitcnn_run(bitcnn_session session, int64_t images,
	const bitcnn_tensor *inputs, size_t input_count, const bitcnn_tensor *outputs, size_t output_count);

/*
 * bitcnn_run for a session on a CUDA device, and tensors in its memory, NHWC: puts the run
 * on a stream and returns. The stream is a CUstream, or a cudaStream_t, of the primary
 * context of the device, which that of the CUDA runtime is; NULL is its default stream. It
 * waits for what is on it before, and for earlier runs of the session on other streams, and
 * nothing else waits. Tensors and stream must be there until the run has been done.
 * Addresses that are not in memory of the device are BITCNN_SHAPE; another device than a
 * CUDA one is BITCNN_UNSUPPORTED.
 */
BITCNN_API bitcnn_status bitcnn_enqueue(bitcnn_session session, void *stream, int64_t images,
	const bitcnn_tensor *inputs, size_t input_count, const bitcnn_tensor *outputs, size_t output_count);

/* What a step of the network is, and what the device has chosen for it. */
typedef enum bitcnn_step_text {
	BITCNN_STEP_NAME = 0,   /* the names of its layers */
	BITCNN_STEP_KIND = 1,   /* "conv" */
	BITCNN_STEP_KERNEL = 2, /* "wide bits, joined rows" */
	BITCNN_STEP_TILE = 3,   /* "24 rows x 64 channels, 4 tiles"; may be empty */
	BITCNN_STEP_WHY = 4     /* why the device has chosen that */
} bitcnn_step_text;

BITCNN_API bitcnn_status bitcnn_step(bitcnn_session session, size_t index, bitcnn_step_text what, char *text, size_t size, size_t *length);

/*
 * Measures the time of each step: the median and the shortest of a number of runs, in
 * nanoseconds; either may be NULL. Both have step_count elements, as many as
 * bitcnn_session_info.steps. Steps are waited for one by one, so that their sum may
 * exceed the time of a run.
 */
BITCNN_API bitcnn_status bitcnn_profile(bitcnn_session session, int64_t images, const bitcnn_tensor *inputs, size_t input_count,
	int32_t runs, int64_t *median, int64_t *shortest, size_t step_count);

#ifdef __cplusplus
}
#endif

#endif
