//go:build linux || windows && amd64

// The functions of bitcnn.h: they start the Go runtime when it is needed first, look
// at what is passed, and keep the text of errors by thread. What they do is in Go.

#include "_cgo_export.h"
#include "mode.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <signal.h>

extern char **environ;
#endif

enum { IDLE, RUNNING, FORKED };
static atomic_int state;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The text of the last error of a thread, from malloc.
static pthread_key_t error_key;
static int has_key;
static pthread_once_t error_once = PTHREAD_ONCE_INIT;

static void make_error_key(void) { has_key = pthread_key_create(&error_key, free) == 0; }

static bitcnn_status fail_with(bitcnn_status status, char *text) {
	pthread_once(&error_once, make_error_key);
	if (has_key) {
		free(pthread_getspecific(error_key));
		if (pthread_setspecific(error_key, text) != 0) {
			free(text);
		}
	} else {
		free(text);
	}
	return status;
}

#if defined(_WIN32)
__attribute__((format(gnu_printf, 2, 3)))
#else
__attribute__((format(printf, 2, 3)))
#endif
static bitcnn_status fail(bitcnn_status status, const char *format, ...) {
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return fail_with(status, strdup(text));
}

const char *bitcnn_last_error(void) {
	pthread_once(&error_once, make_error_key);
	const char *text = has_key ? pthread_getspecific(error_key) : NULL;
	return text ? text : "";
}

#if !defined(_WIN32)
// The child of a fork has one thread: those of the Go runtime are gone, and whoever
// waits for them would wait for good.
static void after_fork(void) { atomic_store(&state, FORKED); }
#endif

#if defined(BITCNN_DEFERRED)
// What the Go linker would have run as the library is loaded. scripts/lib gives the
// section another name.
typedef void initializer(int argc, char **argv, char **envp);
extern initializer *const __start_bitcnn_start[];
extern initializer *const __stop_bitcnn_start[];

// start_runtime starts the Go runtime with the environment as it is now. The runtime
// reads what a kernel puts on the stack of a program, and keeps pointers to it: one
// argument, the environment, and an auxiliary vector, which it looks for in /proc if it
// is empty, as here.
static int start_runtime(void) {
	static char name[] = "bitcnn";
	size_t count = 0;
	while (environ && environ[count]) {
		count++;
	}
	char **block = calloc(count + 5, sizeof *block);
	if (!block) {
		return 0;
	}
	block[0] = name;
	for (size_t i = 0; i < count; i++) {
		if (!(block[2 + i] = strdup(environ[i]))) {
			return 0;
		}
	}
	// Threads inherit the mask of the one that starts them. Those of the runtime take
	// no signal that is meant for the program.
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (initializer *const *f = __start_bitcnn_start; f < __stop_bitcnn_start; f++) {
		(*f)(1, block, block + 2);
	}
	bitcnnGoReady(); // returns when the runtime has started
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return 1;
}
#else
// It is that of the program, in tests; on Windows, where nothing forks, it begins to start as
// the library is loaded, and calls wait for it.
static int start_runtime(void) { return 1; }
#endif

static void start(void) {
#if defined(_WIN32)
	int forks_are_told = 1;
#else
	int forks_are_told = pthread_atfork(NULL, NULL, after_fork) == 0;
#endif
	if (forks_are_told && start_runtime()) {
		int idle = IDLE;
		atomic_compare_exchange_strong(&state, &idle, RUNNING);
	}
}

static bitcnn_status start_or_fail(void) {
	if (atomic_load(&state) == IDLE) {
		pthread_once(&once, start);
	}
	switch (atomic_load(&state)) {
	case RUNNING:
		return BITCNN_OK;
	case FORKED:
		return fail(BITCNN_FORKED, "the process was forked after bitcnn had been used in it: its threads are in the parent only; "
			"use it in the child first, or start the child by exec");
	}
	return fail(BITCNN_INTERNAL, "there is no memory to start with");
}

// ENTER begins every function that goes on in Go: from there to its return the thread is
// in the default mode of the floating-point unit, and so are the threads that the runtime
// starts.
#define ENTER() \
	IN_DEFAULT_MODE(); \
	do { \
		if (__builtin_expect(atomic_load_explicit(&state, memory_order_acquire) != RUNNING, 0)) { \
			bitcnn_status status = start_or_fail(); \
			if (status) { \
				return status; \
			} \
		} \
	} while (0)

// DONE ends it: the text of an error is from malloc, NULL if there was no memory.
#define DONE(call) \
	do { \
		char *text = NULL; \
		bitcnn_status status = (bitcnn_status)(call); \
		return __builtin_expect(status == BITCNN_OK, 1) ? BITCNN_OK : fail_with(status, text); \
	} while (0)

#define NOT_NULL(pointer, what) \
	do { \
		if (!(pointer)) { \
			return fail(BITCNN_INVALID, "no %s: a pointer is NULL", what); \
		} \
	} while (0)

// TAKE makes to a complete copy of a structure of the caller's, whose size may be that
// of an earlier version: a whole number of what it is aligned to, or half a pointer would be
// taken.
#define TAKE(to, from) \
	do { \
		if ((from)->size < sizeof(size_t) || (from)->size > sizeof(to) || (from)->size % _Alignof(__typeof__(to))) { \
			return fail(BITCNN_INVALID, "a structure of %zu bytes, want %zu: its field size is not set, or by another version", \
				(from)->size, sizeof(to)); \
		} \
		memset(&(to), 0, sizeof(to)); \
		memcpy(&(to), (from), (from)->size); \
	} while (0)

// GIVE copies it back.
#define GIVE(to, from) \
	do { \
		(from).size = (to)->size; \
		memcpy((to), &(from), (to)->size); \
	} while (0)

static char *version;
static pthread_once_t version_once = PTHREAD_ONCE_INIT;

static void make_version(void) { version = bitcnnGoVersion(); }

const char *bitcnn_version(void) {
	IN_DEFAULT_MODE();
	if (atomic_load(&state) != RUNNING && start_or_fail()) {
		return NULL;
	}
	pthread_once(&version_once, make_version);
	return version;
}

int32_t bitcnn_version_number(void) { return BITCNN_VERSION; }

bitcnn_status bitcnn_load(const char *path, const bitcnn_load_options *options, bitcnn_model *model) {
	NOT_NULL(model, "place for a model");
	*model = 0;
	NOT_NULL(path, "path");
	bitcnn_load_options all = BITCNN_INIT(bitcnn_load_options);
	if (options) {
		TAKE(all, options);
	}
	ENTER();
	DONE(bitcnnGoLoad((char *)path, &all, model, &text));
}

bitcnn_status bitcnn_read(const void *data, size_t bytes, const bitcnn_load_options *options, bitcnn_model *model) {
	NOT_NULL(model, "place for a model");
	*model = 0;
	if (bytes) {
		NOT_NULL(data, "data");
	}
	bitcnn_load_options all = BITCNN_INIT(bitcnn_load_options);
	if (options) {
		TAKE(all, options);
	}
	ENTER();
	DONE(bitcnnGoRead((void *)data, bytes, &all, model, &text));
}

bitcnn_status bitcnn_bundled(const char *name, bitcnn_model *model) {
	NOT_NULL(model, "place for a model");
	*model = 0;
	NOT_NULL(name, "name");
	ENTER();
	DONE(bitcnnGoBundled((char *)name, model, &text));
}

bitcnn_status bitcnn_save(bitcnn_model model, const char *path) {
	NOT_NULL(path, "path");
	ENTER();
	DONE(bitcnnGoSave(model, (char *)path, &text));
}

bitcnn_status bitcnn_conv_model(const bitcnn_conv *conv, bitcnn_model *model) {
	NOT_NULL(model, "place for a model");
	*model = 0;
	NOT_NULL(conv, "convolution");
	bitcnn_conv all;
	TAKE(all, conv);
	ENTER();
	DONE(bitcnnGoConvModel(&all, model, &text));
}

bitcnn_status bitcnn_close_model(bitcnn_model model) {
	ENTER();
	DONE(bitcnnGoCloseModel(model, &text));
}

bitcnn_status bitcnn_read_image(const void *data, size_t bytes, int32_t height, int32_t width, int32_t channels,
                                int32_t resize, uint32_t background, uint8_t *pixels, size_t pixel_bytes) {
	if (bytes) {
		NOT_NULL(data, "data");
	}
	NOT_NULL(pixels, "place for pixels");
	ENTER();
	DONE(bitcnnGoReadImage((void *)data, bytes, height, width, channels, resize, background, pixels, pixel_bytes, &text));
}

bitcnn_status bitcnn_read_photo(bitcnn_session session, const void *data, size_t bytes, uint32_t background,
                                void *values, size_t value_bytes, bitcnn_frame *frame) {
	if (bytes) {
		NOT_NULL(data, "data");
	}
	NOT_NULL(values, "place for values");
	ENTER();
	DONE(bitcnnGoReadPhoto(session, (void *)data, bytes, background, values, value_bytes, frame, &text));
}

bitcnn_status bitcnn_detect(bitcnn_session session, const void *data, size_t bytes, float threshold, float overlap,
                            uint32_t background, bitcnn_box *boxes, size_t capacity, size_t *count) {
	if (bytes) {
		NOT_NULL(data, "data");
	}
	NOT_NULL(boxes, "place for boxes");
	NOT_NULL(count, "place for their number");
	ENTER();
	DONE(bitcnnGoDetect(session, (void *)data, bytes, threshold, overlap, background, boxes, capacity, count, &text));
}

bitcnn_status bitcnn_softmax(const float *scores, size_t count, double *probabilities) {
	ENTER();
	DONE(bitcnnGoSoftmax((float *)scores, count, probabilities, &text));
}

bitcnn_status bitcnn_top_k(const float *scores, size_t count, size_t *indices, double *probabilities, size_t k) {
	ENTER();
	DONE(bitcnnGoTopK((float *)scores, count, indices, probabilities, k, &text));
}

// PLACE looks at where text goes.
#define PLACE(to, size) \
	do { \
		if (size) { \
			NOT_NULL(to, "place for text"); \
		} \
	} while (0)

bitcnn_status bitcnn_bundled_name(size_t index, char *to, size_t size, size_t *length) {
	PLACE(to, size);
	ENTER();
	DONE(bitcnnGoBundledName(index, to, size, length, &text));
}

bitcnn_status bitcnn_report(bitcnn_model model, char *to, size_t size, size_t *length) {
	PLACE(to, size);
	ENTER();
	DONE(bitcnnGoReport(model, to, size, length, &text));
}

bitcnn_status bitcnn_get_device(size_t index, bitcnn_device *device) {
	NOT_NULL(device, "place for a device");
	bitcnn_device all;
	TAKE(all, device);
	ENTER();
	char *text = NULL;
	bitcnn_status status = (bitcnn_status)bitcnnGoDevice(index, &all, &text);
	if (status) {
		return fail_with(status, text);
	}
	GIVE(device, all);
	return BITCNN_OK;
}

bitcnn_status bitcnn_open(bitcnn_model model, const bitcnn_options *options, bitcnn_session *session) {
	NOT_NULL(session, "place for a session");
	*session = 0;
	bitcnn_options all = BITCNN_INIT(bitcnn_options);
	if (options) {
		TAKE(all, options);
	}
	ENTER();
	DONE(bitcnnGoOpen(model, &all, session, &text));
}

bitcnn_status bitcnn_close(bitcnn_session session) {
	ENTER();
	DONE(bitcnnGoClose(session, &text));
}

bitcnn_status bitcnn_info(bitcnn_session session, bitcnn_session_info *info) {
	NOT_NULL(info, "place for the description of a session");
	bitcnn_session_info all;
	TAKE(all, info);
	ENTER();
	char *text = NULL;
	bitcnn_status status = (bitcnn_status)bitcnnGoInfo(session, &all, &text);
	if (status) {
		return fail_with(status, text);
	}
	GIVE(info, all);
	return BITCNN_OK;
}

bitcnn_status bitcnn_session_device(bitcnn_session session, bitcnn_device *device) {
	NOT_NULL(device, "place for a device");
	bitcnn_device all;
	TAKE(all, device);
	ENTER();
	char *text = NULL;
	bitcnn_status status = (bitcnn_status)bitcnnGoSessionDevice(session, &all, &text);
	if (status) {
		return fail_with(status, text);
	}
	GIVE(device, all);
	return BITCNN_OK;
}

static bitcnn_status describe(bitcnn_session session, int output, size_t index, bitcnn_io *io) {
	NOT_NULL(io, "place for the description of a tensor");
	bitcnn_io all;
	TAKE(all, io);
	ENTER();
	char *text = NULL;
	bitcnn_status status = (bitcnn_status)bitcnnGoIO(session, output, index, &all, &text);
	if (status) {
		return fail_with(status, text);
	}
	GIVE(io, all);
	return BITCNN_OK;
}

bitcnn_status bitcnn_input(bitcnn_session session, size_t index, bitcnn_io *io) {
	return describe(session, 0, index, io);
}

bitcnn_status bitcnn_output(bitcnn_session session, size_t index, bitcnn_io *io) {
	return describe(session, 1, index, io);
}

bitcnn_status bitcnn_input_name(bitcnn_session session, size_t index, char *to, size_t size, size_t *length) {
	PLACE(to, size);
	ENTER();
	DONE(bitcnnGoIOName(session, 0, index, to, size, length, &text));
}

bitcnn_status bitcnn_output_name(bitcnn_session session, size_t index, char *to, size_t size, size_t *length) {
	PLACE(to, size);
	ENTER();
	DONE(bitcnnGoIOName(session, 1, index, to, size, length, &text));
}

bitcnn_status bitcnn_label(bitcnn_session session, size_t index, char *to, size_t size, size_t *length) {
	PLACE(to, size);
	ENTER();
	DONE(bitcnnGoLabel(session, index, to, size, length, &text));
}

bitcnn_status bitcnn_step(bitcnn_session session, size_t index, bitcnn_step_text what, char *to, size_t size, size_t *length) {
	PLACE(to, size);
	ENTER();
	DONE(bitcnnGoStep(session, index, (int)what, to, size, length, &text));
}

bitcnn_status bitcnn_run(bitcnn_session session, int64_t images,
	const bitcnn_tensor *inputs, size_t input_count, const bitcnn_tensor *outputs, size_t output_count) {
	if (input_count) {
		NOT_NULL(inputs, "inputs");
	}
	if (output_count) {
		NOT_NULL(outputs, "outputs");
	}
	ENTER();
	DONE(bitcnnGoRun(session, images, (bitcnn_tensor *)inputs, input_count, (bitcnn_tensor *)outputs, output_count, &text));
}

bitcnn_status bitcnn_enqueue(bitcnn_session session, void *stream, int64_t images,
	const bitcnn_tensor *inputs, size_t input_count, const bitcnn_tensor *outputs, size_t output_count) {
	if (input_count) {
		NOT_NULL(inputs, "inputs");
	}
	if (output_count) {
		NOT_NULL(outputs, "outputs");
	}
	ENTER();
	DONE(bitcnnGoEnqueue(session, (uintptr_t)stream, images, (bitcnn_tensor *)inputs, input_count, (bitcnn_tensor *)outputs, output_count, &text));
}

bitcnn_status bitcnn_profile(bitcnn_session session, int64_t images, const bitcnn_tensor *inputs, size_t input_count,
	int32_t runs, int64_t *median, int64_t *shortest, size_t step_count) {
	if (input_count) {
		NOT_NULL(inputs, "inputs");
	}
	ENTER();
	DONE(bitcnnGoProfile(session, images, (bitcnn_tensor *)inputs, input_count, runs, median, shortest, step_count, &text));
}
