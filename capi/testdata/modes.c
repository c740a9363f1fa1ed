// Sets a mode of the floating-point unit around calls of the C library:
//
//	modes MODE WHEN MODEL...
//
// prints a checksum of the outputs of each model, which must not depend on MODE and WHEN,
// and ends with a failure where a call has changed the mode, or the flags, of its thread.
// MODE is a number, or "as-is" for the mode that the program has from its start.

#include <bitcnn.h>

#include <pthread.h>
#include <stdint.h>
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

// The mode, with the flags of exceptions in the lowest bits as on x86.
#if defined(__x86_64__)
enum { FLAGS = 0x3f };
static uint64_t get(void) {
	uint32_t m;
	__asm__ volatile("stmxcsr %0" : "=m"(m) : : "memory");
	return m;
}
static void set(uint64_t mode) {
	uint32_t m = (uint32_t)mode;
	__asm__ volatile("ldmxcsr %0" : : "m"(m) : "memory");
}
static const uint64_t usual = 0x1f80;
#else
enum { FLAGS = 0x1f };
static uint64_t get(void) {
	uint64_t control, flags;
	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(flags) : : "memory");
	return control | (flags & FLAGS);
}
static void set(uint64_t mode) {
	__asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(mode & ~(uint64_t)FLAGS), "r"(mode & FLAGS) : "memory");
}
static const uint64_t usual = 0;
#endif

static uint64_t mode;
static const char *when;
static int as_is;

// on says whether a moment is one at which the mode is to be set.
static int on(const char *moment) {
	return as_is || strcmp(when, "always") == 0 || strcmp(when, "thread") == 0 || strcmp(when, moment) == 0;
}

// IN makes a call in the mode, if it is set at the moment, with some flags or none.
#define IN(moment, call) \
	do { \
		static const uint64_t flags[] = {0, FLAGS, 0x15 & FLAGS, 0x0a}; \
		static _Atomic unsigned next; \
		uint64_t during = (on(moment) ? mode : usual) | flags[next++ % 4]; \
		set(during); \
		during = get(); /* processors leave out what they do not have */ \
		int good = (call); \
		uint64_t after = get(); \
		set(usual); \
		if (after != during) { \
			fprintf(stderr, "%s:%d: %s: mode %#llx before and %#llx after\n", __FILE__, __LINE__, #call, \
				(unsigned long long)during, (unsigned long long)after); \
			exit(1); \
		} \
		CHECK(good); \
	} while (0)

static uint64_t run(bitcnn_session session, int profile) {
	bitcnn_io in = BITCNN_INIT(bitcnn_io), out = BITCNN_INIT(bitcnn_io);
	IN("other", bitcnn_input(session, 0, &in) == 0);
	IN("other", bitcnn_output(session, 0, &out) == 0);
	enum { IMAGES = 4 };
	uint8_t *from = malloc(in.bytes * IMAGES), *to = calloc(IMAGES, out.bytes);
	CHECK(from && to);
	uint32_t x = 1;
	for (size_t i = 0; i < in.bytes * IMAGES / (in.dtype == BITCNN_FLOAT32 ? 4 : 1); i++) {
		x = x * 1664525 + 1013904223;
		if (in.dtype == BITCNN_FLOAT32) {
			uint32_t bits = x & 0x807fffff; // subnormal
			memcpy(from + 4 * i, &bits, 4);
		} else {
			from[i] = x >> 24;
		}
	}
	bitcnn_tensor input = {.data = from, .bytes = in.bytes * IMAGES, .dtype = in.dtype};
	bitcnn_tensor output = {.data = to, .bytes = out.bytes * IMAGES, .dtype = out.dtype};
	IN("run", bitcnn_run(session, IMAGES, &input, 1, &output, 1) == 0);
	if (profile) {
		IN("run", bitcnn_profile(session, IMAGES, &input, 1, 1, NULL, NULL, (size_t)profile) == 0);
	}
	uint64_t sum = 14695981039346656037u;
	for (size_t i = 0; i < out.bytes * IMAGES; i++) {
		sum = (sum ^ to[i]) * 1099511628211u;
	}
	free(from);
	free(to);
	return sum;
}

static char **models;

static void *compute(void *unused) {
	char text[4096];
	bitcnn_model model;
	bitcnn_session session;
	bitcnn_device device = BITCNN_INIT(bitcnn_device);
	if (strcmp(when, "thread") == 0) {
		set(mode); // what the thread has when it ends
	}
	IN("other", bitcnn_version() != NULL);
	IN("other", bitcnn_bundled_name(0, text, sizeof text, NULL) == 0);
	IN("other", bitcnn_get_device(0, &device) == 0);
	IN("other", bitcnn_load("no such file", NULL, &model) == BITCNN_NOT_FOUND);
	for (char **name = models; *name; name++) {
		if (strchr(*name, '/')) {
			IN("load", bitcnn_load(*name, NULL, &model) == 0);
		} else {
			IN("load", bitcnn_bundled(*name, &model) == 0);
		}
		IN("other", bitcnn_report(model, text, sizeof text, NULL) == 0);
		bitcnn_options options = BITCNN_INIT(bitcnn_options);
		options.device = "cpu";
		options.max_batch = 4;
		options.threads = 4;
		IN("open", bitcnn_open(model, &options, &session) == 0);
		bitcnn_session_info info = BITCNN_INIT(bitcnn_session_info);
		IN("other", bitcnn_info(session, &info) == 0);
		IN("other", bitcnn_session_device(session, &device) == 0);
		IN("other", bitcnn_input_name(session, 0, text, sizeof text, NULL) == 0);
		IN("other", bitcnn_output_name(session, 0, text, sizeof text, NULL) == 0);
		IN("other", info.labels == 0 || bitcnn_label(session, 0, text, sizeof text, NULL) == 0);
		IN("other", bitcnn_step(session, 0, BITCNN_STEP_NAME, text, sizeof text, NULL) == 0);
		IN("other", bitcnn_enqueue(session, NULL, 1, NULL, 0, NULL, 0) != 0);
		uint64_t first = run(session, (int)info.steps);
		for (int again = 0; again < 10; again++) {
			uint64_t next = run(session, 0);
			if (next != first) {
				printf("%s: other outputs in run %d: %016llx\n", *name, again + 2, (unsigned long long)next);
			}
		}
		printf("%s %016llx\n", strrchr(*name, '/') ? strrchr(*name, '/') + 1 : *name, (unsigned long long)first);
		IN("other", bitcnn_save(model, "/no such folder/x.bcnn") == BITCNN_NOT_FOUND);
		IN("other", bitcnn_close(session) == 0);
		IN("other", bitcnn_close_model(model) == 0);
	}
	if (strcmp(when, "thread") == 0) {
		set(mode);
	}
	return unused;
}

static void *start(void *unused) {
	IN("start", bitcnn_version() != NULL);
	if (strcmp(when, "start") == 0) {
		set(mode);
	}
	return unused;
}

static void in_thread(void *(*f)(void *)) {
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, f, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv) {
	CHECK(argc > 3);
	as_is = strcmp(argv[1], "as-is") == 0;
	mode = as_is ? get() & ~(uint64_t)FLAGS : strtoull(argv[1], NULL, 0);
	when = argv[2];
	models = argv + 3;
	if (as_is && mode == usual) {
		fprintf(stderr, "the program was started in the default mode\n");
		return 1;
	}
	if (strcmp(when, "start") == 0) {
		in_thread(start);
	}
	if (strcmp(when, "thread") == 0) {
		in_thread(compute);
	} else {
		compute(NULL);
	}
	return 0;
}
