// Checks of the C library, as a program that uses it: check MODE [ARGUMENTS]. What it
// prints on success is compared by library_test.go; a check that fails ends it.

#include <bitcnn.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, bitcnn_last_error()); \
			exit(1); \
		} \
	} while (0)
#define OK(call) CHECK((call) == BITCNN_OK)
// FAILS checks the status of a call and that its text is about something.
#define FAILS(call, status, about) \
	do { \
		CHECK((call) == (status)); \
		CHECK(strstr(bitcnn_last_error(), about)); \
	} while (0)

static bitcnn_model load(const char *name) {
	bitcnn_model model;
	if (bitcnn_bundled(name, &model) == BITCNN_NOT_FOUND) {
		OK(bitcnn_load(name, NULL, &model));
	}
	return model;
}

static bitcnn_session open_cpu(bitcnn_model model, int64_t batch, int32_t threads) {
	bitcnn_options options = BITCNN_INIT(bitcnn_options);
	options.device = "cpu";
	options.max_batch = batch;
	options.threads = threads;
	bitcnn_session session;
	OK(bitcnn_open(model, &options, &session));
	return session;
}

// A batch is the memory of a run, whose inputs are a fixed sequence.
typedef struct {
	int64_t images;
	bitcnn_tensor in, out;
} batch;

static batch new_batch(bitcnn_session session, int64_t images) {
	bitcnn_io in = BITCNN_INIT(bitcnn_io), out = BITCNN_INIT(bitcnn_io);
	OK(bitcnn_input(session, 0, &in));
	OK(bitcnn_output(session, 0, &out));
	batch b = {.images = images, .in = {.bytes = in.bytes * images, .dtype = in.dtype}, .out = {.bytes = out.bytes * images, .dtype = out.dtype}};
	b.in.data = malloc(b.in.bytes);
	b.out.data = calloc(1, b.out.bytes);
	CHECK(b.in.data && b.out.data);
	uint32_t x = 1;
	for (size_t i = 0; i < b.in.bytes / (in.dtype == BITCNN_FLOAT32 ? 4 : 1); i++) {
		x = x * 1664525 + 1013904223;
		if (in.dtype == BITCNN_FLOAT32) {
			((float *)b.in.data)[i] = (float)(x >> 24) / 64 - 2;
		} else {
			((uint8_t *)b.in.data)[i] = x >> 24;
		}
	}
	return b;
}

static void free_batch(batch *b) {
	free(b->in.data);
	free(b->out.data);
}

static bitcnn_status run(bitcnn_session session, batch *b) {
	return bitcnn_run(session, b->images, &b->in, 1, &b->out, 1);
}

// run_model prints the outputs of a model.
static void run_model(const char *name, int images) {
	bitcnn_model model = load(name);
	bitcnn_session session = open_cpu(model, images, 0);
	OK(bitcnn_close_model(model));
	bitcnn_session_info info = BITCNN_INIT(bitcnn_session_info);
	OK(bitcnn_info(session, &info));
	batch b = new_batch(session, images);
	bitcnn_tensor *out = calloc(info.outputs, sizeof *out);
	CHECK(out);
	for (size_t k = 0; k < info.outputs; k++) {
		bitcnn_io io = BITCNN_INIT(bitcnn_io);
		OK(bitcnn_output(session, k, &io));
		out[k] = (bitcnn_tensor){.data = calloc(images, io.bytes), .bytes = io.bytes * images, .dtype = io.dtype};
		CHECK(out[k].data);
	}
	OK(bitcnn_run(session, images, &b.in, 1, out, info.outputs));
	for (size_t k = 0; k < info.outputs; k++) {
		for (size_t i = 0; i < out[k].bytes / 4; i++) {
			printf("%a\n", ((float *)out[k].data)[i]);
		}
		free(out[k].data);
	}
	free(out);
	free_batch(&b);
	OK(bitcnn_close(session));
}

// describe prints what a session says of itself.
static void describe(const char *name) {
	char text[4096];
	size_t length;
	bitcnn_device device = BITCNN_INIT(bitcnn_device);
	OK(bitcnn_get_device(0, &device));
	FAILS(bitcnn_get_device(1000, &device), BITCNN_NOT_FOUND, "device 1000: there are ");

	bitcnn_model model = load(name);
	OK(bitcnn_report(model, NULL, 0, &length));
	char *report = malloc(length + 1);
	CHECK(report);
	OK(bitcnn_report(model, report, length + 1, NULL));
	CHECK(strlen(report) == length);
	printf("report %s\n", report);
	free(report);
	bitcnn_session session = open_cpu(model, 2, 1);
	OK(bitcnn_close_model(model));
	OK(bitcnn_session_device(session, &device));
	printf("device %s\n", device.id);
	bitcnn_session_info info = BITCNN_INIT(bitcnn_session_info);
	OK(bitcnn_info(session, &info));
	CHECK(info.box_classes == 0);
	printf("%zu inputs, %zu outputs, %zu labels, %zu steps, batches of %lld\n", info.inputs, info.outputs, info.labels, info.steps, (long long)info.max_batch);
	for (int output = 0; output < 2; output++) {
		bitcnn_io io = BITCNN_INIT(bitcnn_io);
		OK((output ? bitcnn_output : bitcnn_input)(session, 0, &io));
		OK((output ? bitcnn_output_name : bitcnn_input_name)(session, 0, text, sizeof text, NULL));
		CHECK(io.layout == BITCNN_NHWC);
		printf("%s %d %d×%d×%d %zu %d\n", text, io.dtype, io.height, io.width, io.channels, io.bytes, io.resize);
	}
	for (size_t i = 0; i < info.labels; i++) {
		OK(bitcnn_label(session, i, text, sizeof text, &length));
		CHECK(strlen(text) == length);
		printf("label %s\n", text);
	}
	FAILS(bitcnn_label(session, info.labels, text, sizeof text, NULL), BITCNN_NOT_FOUND, "label");
	batch b = new_batch(session, 2);
	int64_t median[64], shortest[64];
	CHECK(info.steps <= 64);
	OK(bitcnn_profile(session, 2, &b.in, 1, 3, median, shortest, info.steps));
	OK(bitcnn_profile(session, 2, &b.in, 1, 1, NULL, NULL, info.steps));
	for (size_t i = 0; i < info.steps; i++) {
		CHECK(shortest[i] > 0 && median[i] >= shortest[i]);
		printf("step");
		for (int what = BITCNN_STEP_NAME; what <= BITCNN_STEP_WHY; what++) {
			OK(bitcnn_step(session, i, (bitcnn_step_text)what, text, sizeof text, NULL));
			printf("|%s", text);
		}
		printf("\n");
	}
	free_batch(&b);
	OK(bitcnn_close(session));
	for (size_t i = 0; bitcnn_bundled_name(i, text, sizeof text, NULL) == BITCNN_OK; i++) {
		printf("bundled %s\n", text);
	}
	CHECK(bitcnn_version_number() == BITCNN_VERSION);
	printf("version %s\n", bitcnn_version());
}

// files reads a model from a file and from memory, and writes it.
static void files(const char *in, const char *out) {
	bitcnn_model digits = load("digits"), again, memory;
	OK(bitcnn_save(digits, out));
	OK(bitcnn_load(out, NULL, &again));
	FILE *f = fopen(out, "rb");
	CHECK(f);
	static char data[1 << 20];
	size_t bytes = fread(data, 1, sizeof data, f);
	fclose(f);
	OK(bitcnn_read(data, bytes, NULL, &memory));
	OK(bitcnn_close_model(again));
	OK(bitcnn_close_model(memory));
	FAILS(bitcnn_read(data, bytes - 1, NULL, &memory), BITCNN_MODEL, "");
	CHECK(memory == 0);
	FAILS(bitcnn_read("", 0, NULL, &memory), BITCNN_MODEL, "an empty file");
	FAILS(bitcnn_load("no such file", NULL, &memory), BITCNN_NOT_FOUND, "no such file");
	FAILS(bitcnn_load("/dev/null/x", NULL, &memory), BITCNN_IO, "not a directory");
	FAILS(bitcnn_save(digits, "/no such folder/x.bcnn"), BITCNN_NOT_FOUND, "no such folder");
	FAILS(bitcnn_bundled("digit", &memory), BITCNN_NOT_FOUND, "no bundled model \"digit\"; available: ");

	// An ONNX file with what is left open.
	bitcnn_load_options options = BITCNN_INIT(bitcnn_load_options);
	float mean[] = {1, 2}, scale = 2;
	const char *labels[] = {"a", "b"};
	options.name = "given";
	options.input_dtype = BITCNN_UINT8;
	options.mean = mean;
	options.mean_count = 2;
	options.scale = &scale;
	options.scale_count = 1;
	options.sign_of_zero = -1;
	(void)labels;
	OK(bitcnn_load(in, &options, &memory));
	char text[4096];
	OK(bitcnn_report(memory, text, sizeof text, NULL));
	CHECK(strstr(text, "\"name\":\"given\",\"inputs\":[{\"name\":\"x\",\"dtype\":\"uint8\",\"height\":3,\"width\":4,\"channels\":2"));
	bitcnn_session session = open_cpu(memory, 1, 1);
	bitcnn_io io = BITCNN_INIT(bitcnn_io);
	OK(bitcnn_input(session, 0, &io));
	CHECK(io.source_layout == BITCNN_NCHW && io.source_rank == 3 && io.source_dims[0] == 2 && io.source_dims[1] == 3 && io.source_dims[2] == 4);
	OK(bitcnn_close(session));
	OK(bitcnn_close_model(memory));
	options.file_bytes = 7;
	FAILS(bitcnn_load(in, &options, &memory), BITCNN_MODEL, "7");
	options = (bitcnn_load_options)BITCNN_INIT(bitcnn_load_options);
	options.sign_of_zero = 2;
	FAILS(bitcnn_load(in, &options, &memory), BITCNN_INVALID, "the sign of zero is 2");
	options.sign_of_zero = 0;
	options.input_dtype = 2;
	FAILS(bitcnn_load(in, &options, &memory), BITCNN_INVALID, "invalid input type: 2");
	options.input_dtype = 0;
	options.mean_count = 1;
	FAILS(bitcnn_load(in, &options, &memory), BITCNN_INVALID, "no mean");
	OK(bitcnn_close_model(digits));
}

// misuse passes what no function may take.
static void misuse(void) {
	bitcnn_model model, other;
	bitcnn_session session, second;
	CHECK(strcmp(bitcnn_last_error(), "") == 0);
	FAILS(bitcnn_load(NULL, NULL, &model), BITCNN_INVALID, "no path");
	FAILS(bitcnn_load("x", NULL, NULL), BITCNN_INVALID, "no place for a model");
	FAILS(bitcnn_open(0, NULL, &session), BITCNN_INVALID, "not a model");
	FAILS(bitcnn_close(0), BITCNN_INVALID, "not a session");
	model = load("digits");
	FAILS(bitcnn_close(model), BITCNN_INVALID, "is not a session");
	FAILS(bitcnn_run(model, 1, NULL, 0, NULL, 0), BITCNN_INVALID, "is not a session");
	bitcnn_options options = BITCNN_INIT(bitcnn_options);
	options.device = "gpu:9";
	CHECK(bitcnn_open(model, &options, &session) != BITCNN_OK && session == 0);
	options.device = "cpu";
	options.isa = "mmx";
	FAILS(bitcnn_open(model, &options, &session), BITCNN_UNSUPPORTED, "mmx");
	options.isa = NULL;
	options.max_batch = INT64_MAX;
	FAILS(bitcnn_open(model, &options, &session), BITCNN_INVALID, "too large");
	options.max_batch = 2;
	options.size = 3;
	FAILS(bitcnn_open(model, &options, &session), BITCNN_INVALID, "a structure of 3 bytes");
	options.size = offsetof(bitcnn_options, device) + sizeof(options.device) / 2; // half a pointer
	FAILS(bitcnn_open(model, &options, &session), BITCNN_INVALID, "a structure of 12 bytes");
	options.size = sizeof options + 8;
	FAILS(bitcnn_open(model, &options, &session), BITCNN_INVALID, "by another version");
	options.size = offsetof(bitcnn_options, parallel); // an earlier version
	OK(bitcnn_open(model, &options, &session));

	batch b = new_batch(session, 2);
	bitcnn_tensor good = b.in;
	OK(run(session, &b));
	FAILS(bitcnn_run(session, 2, NULL, 1, &b.out, 1), BITCNN_INVALID, "no inputs");
	FAILS(bitcnn_run(session, 2, &b.in, 1, NULL, 1), BITCNN_INVALID, "no outputs");
	FAILS(bitcnn_run(session, 2, &b.in, 1, &b.out, 0), BITCNN_SHAPE, "inputs: got 1, want 1; outputs: got 0, want 1");
	FAILS(bitcnn_run(session, 2, &b.in, SIZE_MAX, &b.out, 1), BITCNN_SHAPE, "want 1; outputs: got 1, want 1");
	FAILS(bitcnn_run(session, 0, &b.in, 1, &b.out, 1), BITCNN_SHAPE, "batch size 0, want at least 1");
	FAILS(bitcnn_run(session, INT64_MIN, &b.in, 1, &b.out, 1), BITCNN_SHAPE, "want at least 1");
	FAILS(bitcnn_run(session, 3, &b.in, 1, &b.out, 1), BITCNN_SHAPE, "batch of 3 images exceeds MaxBatch (2)");
	FAILS(bitcnn_run(session, 1, &b.in, 1, &b.out, 1), BITCNN_SHAPE, "bytes, want ");
	FAILS(bitcnn_enqueue(session, NULL, 2, &b.in, 1, &b.out, 1), BITCNN_UNSUPPORTED, "does not take tensors in its own memory");
	FAILS(bitcnn_enqueue(session, NULL, 2, NULL, 1, &b.out, 1), BITCNN_INVALID, "no inputs");
	FAILS(bitcnn_enqueue(session, NULL, 2, &b.in, 1, &b.out, 2), BITCNN_SHAPE, "outputs: got 2, want 1");
	FAILS(bitcnn_enqueue(session, NULL, 1, &b.in, 1, &b.out, 1), BITCNN_SHAPE, "bytes, want ");
	FAILS(bitcnn_enqueue(session, NULL, 0, &b.in, 1, &b.out, 1), BITCNN_SHAPE, "batch size 0, want at least 1");
	b.in.data = NULL;
	FAILS(run(session, &b), BITCNN_SHAPE, "the pointer is NULL");
	b.in = good;
	b.in.bytes--;
	FAILS(run(session, &b), BITCNN_SHAPE, "bytes, want ");
	b.in.bytes = SIZE_MAX;
	FAILS(run(session, &b), BITCNN_SHAPE, "bytes, want ");
	b.in = good;
	b.in.dtype = BITCNN_FLOAT32;
	FAILS(run(session, &b), BITCNN_SHAPE, "tensor is float32, want uint8");
	b.in.dtype = 257; // 1 if it were cut to a byte
	FAILS(run(session, &b), BITCNN_SHAPE, "tensor is of invalid type (257), want uint8");
	b.in = good;
	b.out.data = (char *)b.out.data + 1;
	FAILS(run(session, &b), BITCNN_SHAPE, "is not aligned to 4 bytes");
	b.out.data = (char *)b.out.data - 1;
	b.in.data = (void *)(UINTPTR_MAX - 16);
	FAILS(run(session, &b), BITCNN_INVALID, "exceeds the address space");
	b.in = good;
	// The first and the last byte that both have.
	void *out_data = b.out.data;
	b.out.data = (char *)good.data + (good.bytes - 1) / 4 * 4;
	FAILS(run(session, &b), BITCNN_INVALID, "overlaps that of input");
	b.out.data = out_data;
	b.in.data = (char *)out_data + b.out.bytes - 1;
	FAILS(run(session, &b), BITCNN_INVALID, "overlaps that of input");
	FAILS(bitcnn_enqueue(session, NULL, 2, &b.in, 1, &b.out, 1), BITCNN_INVALID, "overlaps that of input");
	b.in = good;
	int64_t times[64];
	FAILS(bitcnn_profile(session, 2, &b.in, 1, 1, times, NULL, 1), BITCNN_INVALID, "times of 1 steps, the network has ");
	FAILS(bitcnn_step(session, SIZE_MAX, BITCNN_STEP_NAME, NULL, 0, NULL), BITCNN_NOT_FOUND, "step 18446744073709551615");
	FAILS(bitcnn_step(session, 0, (bitcnn_step_text)7, NULL, 0, NULL), BITCNN_INVALID, "invalid step text: 7");
	FAILS(bitcnn_input_name(session, 0, NULL, 5, NULL), BITCNN_INVALID, "no place for text");
	char text[4] = "???";
	size_t length;
	OK(bitcnn_step(session, 0, BITCNN_STEP_KIND, text, 3, &length));
	CHECK(strlen(text) == 2 && length > 3 && text[3] == 0);
	FAILS(bitcnn_step(session, 0, BITCNN_STEP_KIND, text, SIZE_MAX, NULL), BITCNN_INVALID, "exceeds the address space");

	// What is closed is told apart from what takes its place.
	OK(bitcnn_open(model, NULL, &second));
	CHECK(second != session);
	OK(bitcnn_close(session));
	FAILS(bitcnn_close(session), BITCNN_CLOSED, "the session is closed");
	FAILS(run(session, &b), BITCNN_CLOSED, "the session is closed");
	bitcnn_session third = open_cpu(model, 1, 1);
	CHECK(third != session);
	FAILS(run(session, &b), BITCNN_CLOSED, "the session is closed");
	FAILS(run(third + (UINT64_C(1) << 32), &b), BITCNN_INVALID, "is not a session");
	OK(bitcnn_close_model(model));
	FAILS(bitcnn_close_model(model), BITCNN_CLOSED, "the model is closed");
	FAILS(bitcnn_open(model, NULL, &session), BITCNN_CLOSED, "the model is closed");
	other = load("digits");
	FAILS(bitcnn_report(model, NULL, 0, &length), BITCNN_CLOSED, "the model is closed");
	OK(bitcnn_close_model(other));
	OK(bitcnn_close(second));
	OK(bitcnn_close(third));
	free_batch(&b);
}

// Threads run one session, and a model each; one closes the session meanwhile.
static bitcnn_session shared;
static bitcnn_model shared_model;
static batch expected;

static void *thread(void *argument) {
	batch b = new_batch(shared, 2);
	CHECK(strcmp(bitcnn_last_error(), "") == 0); // of this thread
	for (int i = 0; i < 300; i++) {
		memset(b.out.data, 0, b.out.bytes);
		OK(run(shared, &b));
		CHECK(memcmp(b.out.data, expected.out.data, b.out.bytes) == 0);
		if (i % 100 == 0) {
			bitcnn_session own = open_cpu(shared_model, 2, 1);
			OK(run(own, &b));
			OK(bitcnn_close(own));
			char want[32];
			snprintf(want, sizeof want, "no-%d", (int)(intptr_t)argument);
			bitcnn_model model;
			FAILS(bitcnn_bundled(want, &model), BITCNN_NOT_FOUND, want);
		}
	}
	free_batch(&b);
	return NULL;
}

static void *until_closed(void *argument) {
	batch b = expected; // the session may be closed before this thread has begun
	b.out.data = malloc(b.out.bytes);
	CHECK(b.out.data);
	bitcnn_status status;
	(void)argument;
	while ((status = run(shared, &b)) == BITCNN_OK) {
	}
	CHECK(status == BITCNN_CLOSED);
	free(b.out.data);
	return NULL;
}

static void all_threads(void *(*f)(void *), int pause_ms) {
	pthread_t threads[8];
	for (int i = 0; i < 8; i++) {
		CHECK(pthread_create(&threads[i], NULL, f, (void *)(intptr_t)i) == 0);
	}
	if (pause_ms) {
		usleep(1000 * pause_ms);
		OK(bitcnn_close(shared));
	}
	for (int i = 0; i < 8; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
	}
}

static void start_threads(void) {
	shared_model = load("digits");
	shared = open_cpu(shared_model, 2, 0);
	expected = new_batch(shared, 2);
	OK(run(shared, &expected));
}

static void threads(void) {
	start_threads();
	all_threads(thread, 0);
	all_threads(until_closed, 50);
	free_batch(&expected);
	OK(bitcnn_close_model(shared_model));
}

// small_stack gives the thread a stack for signals that has no room for tiles of Intel AMX. Once a
// process may use those, the system refuses it.
static void small_stack(void) {
	static char memory[8192];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
	CHECK(sigaltstack(&stack, NULL) == 0 || errno == ENOMEM);
}

// stacks prints on what a model runs, and its outputs, with a small stack from before the first call on,
// from after a run on, or never.
static void stacks(const char *when, const char *name) {
	if (strcmp(when, "before") == 0) {
		small_stack();
	}
	bitcnn_model model = load(name);
	bitcnn_session session = open_cpu(model, 1, 2);
	batch b = new_batch(session, 1);
	OK(run(session, &b));
	if (strcmp(when, "after") == 0) {
		small_stack();
		OK(bitcnn_close(session));
		session = open_cpu(model, 1, 2);
		memset(b.out.data, 0, b.out.bytes);
		OK(run(session, &b));
	}
	bitcnn_device device = BITCNN_INIT(bitcnn_device);
	OK(bitcnn_session_device(session, &device));
	printf("%s\n", device.detail);
	for (size_t i = 0; i < b.out.bytes / 4; i++) {
		printf("%a\n", ((float *)b.out.data)[i]);
	}
	free_batch(&b);
	OK(bitcnn_close(session));
	OK(bitcnn_close_model(model));
}

// A fork before the first call is no matter, one after it gives an error in the child.
static void forks(void) {
	char text[64];
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			if (i < 2) { // nothing has been called in the parent
				misuse();
				exit(0);
			}
			FAILS(bitcnn_bundled_name(0, text, sizeof text, NULL), BITCNN_FORKED, "the process was forked after bitcnn had been used");
			FAILS(bitcnn_close(shared), BITCNN_FORKED, "forked");
			CHECK(bitcnn_version() == NULL);
			_exit(0); // the parent's memory is not this one's to look for leaks in
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		if (i == 1) {
			start_threads();
		}
	}
	OK(run(shared, &expected)); // the parent goes on
	OK(bitcnn_close(shared));
	OK(bitcnn_close_model(shared_model));
	free_batch(&expected);
}

// Where nothing may be written.
static volatile int *volatile address = (volatile int *)16;

// The handlers of the program stay its own.
static sigjmp_buf after_signal;
static volatile sig_atomic_t alarms, pipes, on_other_thread;
static pthread_t main_thread;

static void on_segv(int number) { siglongjmp(after_signal, number); }
static void on_alarm(int number) {
	(void)number;
	alarms++;
}
static void on_pipe(int number) {
	(void)number;
	pipes++;
	on_other_thread |= !pthread_equal(pthread_self(), main_thread);
}

static void handle(int number, void (*f)(int), int flags) {
	struct sigaction action = {.sa_handler = f, .sa_flags = flags};
	CHECK(sigaction(number, &action, NULL) == 0);
}

static int broken_pipe(void) {
	int ends[2];
	CHECK(pipe(ends) == 0);
	close(ends[0]);
	errno = 0;
	ssize_t n = write(ends[1], "x", 1);
	close(ends[1]);
	return n == -1 && errno == EPIPE;
}

static void signals(void) {
	main_thread = pthread_self();
	struct sigaction before[65], now;
	handle(SIGSEGV, on_segv, 0);
	handle(SIGPIPE, on_pipe, 0);
	handle(SIGALRM, on_alarm, SA_RESTART); // the library sees to the stack of handlers that are there
	for (int i = 1; i < 65; i++) {
		sigaction(i, NULL, &before[i]);
	}
	start_threads();
	for (int i = 1; i < 65; i++) {
		if (i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGPIPE || i == SIGURG || sigaction(i, NULL, &now)) {
			continue; // those that the runtime needs and passes on
		}
		CHECK(now.sa_handler == before[i].sa_handler);
		CHECK((now.sa_flags & ~SA_ONSTACK) == (before[i].sa_flags & ~SA_ONSTACK));
	}
	// A fault of the program goes to its handler.
	int volatile faults = 0;
	if (sigsetjmp(after_signal, 1) == 0) {
		*address = 1;
		CHECK(!"no fault");
	} else {
		faults++;
	}
	CHECK(faults == 1);
	CHECK(broken_pipe() && pipes == 1 && !on_other_thread);
	// Signals in the midst of runs, on eight threads.
	struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	all_threads(thread, 0);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(alarms > 0);
	OK(run(shared, &expected));
	OK(bitcnn_close(shared));
	OK(bitcnn_close_model(shared_model));
	free_batch(&expected);
}

// image prints the pixels of a photo, as two networks read them.
static void image(const char *path) {
	static char data[1 << 20];
	FILE *f = fopen(path, "rb");
	CHECK(f);
	size_t bytes = fread(data, 1, sizeof data, f);
	fclose(f);
	uint8_t pixels[5 * 7 * 3];
	OK(bitcnn_read_image(data, bytes, 5, 7, 3, 0, 0, pixels, sizeof pixels));
	for (size_t i = 0; i < sizeof pixels; i++) {
		printf("%d ", pixels[i]);
	}
	OK(bitcnn_read_image(data, bytes, 6, 6, 1, 9, 0, pixels, 36));
	for (size_t i = 0; i < 36; i++) {
		printf("%d ", pixels[i]);
	}
	static const char clear[] = "GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\4\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
	OK(bitcnn_read_image(clear, sizeof clear - 1, 1, 1, 3, 0, 0xfe0102, pixels, 3));
	CHECK(pixels[0] == 0xfe && pixels[1] == 1 && pixels[2] == 2);
	FAILS(bitcnn_read_image(clear, sizeof clear - 1, 1, 1, 3, 0, 0x1000000, pixels, 3), BITCNN_INVALID, "background is 0x1000000");
	FAILS(bitcnn_read_image(data, bytes / 2, 6, 6, 2, 0, 0, pixels, 108), BITCNN_INVALID, "not an image");
	FAILS(bitcnn_read_image(data, bytes / 2, 5, 7, 3, 0, 0, pixels, 105), BITCNN_IO, "broken image");
	FAILS(bitcnn_read_image("no image", 8, 5, 7, 3, 0, 0, pixels, 105), BITCNN_IO, "unsupported image format (supported: JPEG, PNG, GIF, BMP, WebP)");
	FAILS(bitcnn_read_image(NULL, 0, 5, 7, 3, 0, 0, pixels, 105), BITCNN_IO, "unsupported image format");
	FAILS(bitcnn_read_image(NULL, 1, 5, 7, 3, 0, 0, pixels, 105), BITCNN_INVALID, "no data");
	FAILS(bitcnn_read_image(data, bytes, 5, 7, 3, 0, 0, NULL, 105), BITCNN_INVALID, "no place for pixels");
	FAILS(bitcnn_read_image(data, bytes, 5, 7, 3, 0, 0, pixels, 104), BITCNN_SHAPE, "buffer of 104 bytes, an image of 5×7×3 needs 105");
	FAILS(bitcnn_read_image(data, bytes, 0, 7, 3, 0, 0, pixels, 0), BITCNN_INVALID, "an input of 0×7×3");
	FAILS(bitcnn_read_image(data, bytes, 5, 7, 3, -1, 0, pixels, 105), BITCNN_INVALID, "images resized to -1");
}

// detect prints the boxes that a detector finds on a photo.
static void detect(const char *file, const char *path) {
	static char data[1 << 20];
	FILE *f = fopen(path, "rb");
	CHECK(f);
	size_t bytes = fread(data, 1, sizeof data, f), count = 99;
	fclose(f);
	bitcnn_model model;
	bitcnn_session session;
	bitcnn_options options = BITCNN_INIT(bitcnn_options);
	options.device = "cpu";
	OK(bitcnn_load(file, NULL, &model));
	OK(bitcnn_open(model, &options, &session));
	bitcnn_session_info info = BITCNN_INIT(bitcnn_session_info);
	OK(bitcnn_info(session, &info));
	CHECK(info.box_classes == 2);
	bitcnn_box boxes[9];
	OK(bitcnn_detect(session, data, bytes, 0, 0, 0, boxes, 9, &count));
	for (size_t i = 0; i < count; i++) {
		printf("%d %g %g %g %g %g\n", boxes[i].index, boxes[i].score, boxes[i].left, boxes[i].top, boxes[i].right, boxes[i].bottom);
	}
	float values[8 * 8];
	bitcnn_frame frame;
	OK(bitcnn_read_photo(session, data, bytes, 0, values, sizeof values, &frame));
	CHECK(values[6] == 1 && values[0] == 0);
	CHECK(frame.x == 0 && frame.y == 0 && frame.width == 8 && frame.height == 8 && frame.photo_width == 8 && frame.photo_height == 8);
	OK(bitcnn_read_photo(session, data, bytes, 0, values, sizeof values, NULL));
	FAILS(bitcnn_read_photo(session, data, bytes, 0, values, sizeof values - 1, NULL), BITCNN_SHAPE, "buffer of 255 bytes, the input needs 256");
	FAILS(bitcnn_read_photo(session, data, bytes, 0, NULL, sizeof values, NULL), BITCNN_INVALID, "no place for values");
	FAILS(bitcnn_read_photo(session, NULL, 1, 0, values, sizeof values, NULL), BITCNN_INVALID, "no data");
	FAILS(bitcnn_read_photo(session, data, bytes, 0x1000000, values, sizeof values, NULL), BITCNN_INVALID, "background is 0x1000000");
	FAILS(bitcnn_read_photo(session, "no image", 8, 0, values, sizeof values, NULL), BITCNN_IO, "unsupported image format");
	OK(bitcnn_detect(session, data, bytes, 0, 0, 0xffffff, boxes, 1, &count));
	CHECK(count == 1);
	OK(bitcnn_detect(session, data, bytes, 1, 0.5f, 0, boxes, 9, &count));
	CHECK(count == 0);
	FAILS(bitcnn_detect(session, data, bytes, 2, 0, 0, boxes, 9, &count), BITCNN_INVALID, "a threshold of 2");
	FAILS(bitcnn_detect(session, data, bytes, 0, 0, 0x1000000, boxes, 9, &count), BITCNN_INVALID, "background is 0x1000000");
	FAILS(bitcnn_detect(session, data, bytes, 0, 0, 0, NULL, 9, &count), BITCNN_INVALID, "no place for boxes");
	FAILS(bitcnn_detect(session, data, bytes, 0, 0, 0, boxes, 0, &count), BITCNN_INVALID, "no memory for boxes");
	FAILS(bitcnn_detect(session, data, bytes, 0, 0, 0, boxes, 9, NULL), BITCNN_INVALID, "no place for their number");
	FAILS(bitcnn_detect(session, NULL, 1, 0, 0, 0, boxes, 9, &count), BITCNN_INVALID, "no data");
	FAILS(bitcnn_detect(session, "no image", 8, 0, 0, 0, boxes, 9, &count), BITCNN_IO, "unsupported image format");
	OK(bitcnn_close(session));
	FAILS(bitcnn_detect(session, data, bytes, 0, 0, 0, boxes, 9, &count), BITCNN_CLOSED, "the session is closed");
	FAILS(bitcnn_read_photo(session, data, bytes, 0, values, sizeof values, NULL), BITCNN_CLOSED, "the session is closed");
	OK(bitcnn_close_model(model));
	OK(bitcnn_bundled("digits", &model));
	OK(bitcnn_open(model, &options, &session));
	FAILS(bitcnn_detect(session, data, bytes, 0, 0, 0, boxes, 9, &count), BITCNN_INVALID, "does not describe how its outputs become boxes");
}

// classes checks what is made of the outputs of a classifier, and prints it.
static void classes(void) {
	const float scores[] = {0.5f, 3, -1, 3, 90};
	double probabilities[5], likely[3];
	size_t indices[5];
	OK(bitcnn_softmax(scores, 4, probabilities));
	OK(bitcnn_top_k(scores, 4, indices, likely, 3));
	CHECK(indices[0] == 1 && indices[1] == 3 && indices[2] == 0);
	CHECK(likely[0] == probabilities[1] && likely[1] == probabilities[3] && likely[2] == probabilities[0]);
	for (size_t i = 0; i < 4; i++) {
		printf("%.17g ", probabilities[i]);
	}
	OK(bitcnn_top_k(scores, 5, indices, NULL, 5));
	CHECK(indices[0] == 4 && indices[4] == 2);
	OK(bitcnn_softmax(NULL, 0, NULL));
	OK(bitcnn_top_k(NULL, 0, NULL, NULL, 0));
	const float endless[] = {0, HUGE_VALF, NAN};
	FAILS(bitcnn_softmax(endless, 2, probabilities), BITCNN_INVALID, "score 1 is +Inf, want a finite number");
	FAILS(bitcnn_top_k(endless + 2, 1, indices, likely, 1), BITCNN_INVALID, "score 0 is NaN");
	FAILS(bitcnn_softmax(NULL, 1, probabilities), BITCNN_INVALID, "no scores");
	FAILS(bitcnn_softmax(scores, SIZE_MAX, probabilities), BITCNN_INVALID, "too many scores");
	FAILS(bitcnn_softmax(scores, 1, NULL), BITCNN_INVALID, "no probabilities");
	FAILS(bitcnn_top_k(scores, 4, NULL, likely, 3), BITCNN_INVALID, "no indices");
	FAILS(bitcnn_top_k(scores, 4, indices, likely, 5), BITCNN_INVALID, "5 classes of 4");
}

// default_signals dies of a signal that nobody handles, as if there were no library.
static void default_signals(const char *which) {
	start_threads();
	if (strcmp(which, "pipe") == 0) {
		broken_pipe();
	} else {
		*address = 1;
	}
}

// leak runs, opens and closes, and looks at the memory.
static long resident(void) {
	long pages = 0, all;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%ld %ld", &all, &pages) == 2);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void leak(int runs, int opens) {
	start_threads();
	long before = 0;
	for (int round = 0; round < 2; round++) { // the first one fills what is kept
		before = resident();
		for (int i = 0; i < runs; i++) {
			OK(run(shared, &expected));
			CHECK(bitcnn_close(7) == BITCNN_INVALID);
		}
		for (int i = 0; i < opens; i++) {
			bitcnn_model model = load("digits");
			bitcnn_session session = open_cpu(model, 1, 1);
			OK(bitcnn_close(session));
			OK(bitcnn_close_model(model));
		}
	}
	printf("%ld bytes more\n", resident() - before);
	OK(bitcnn_close(shared));
	OK(bitcnn_close_model(shared_model));
	free_batch(&expected);
}

// bench prints the nanoseconds of a run, the best of some rounds.
static void bench(const char *name, int runs, int rounds, int threads_) {
	bitcnn_model model = load(name);
	bitcnn_session session = open_cpu(model, 1, threads_);
	batch b = new_batch(session, 1);
	double best = 1e30;
	for (int round = 0; round < rounds; round++) {
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (int i = 0; i < runs; i++) {
			OK(run(session, &b));
		}
		clock_gettime(CLOCK_MONOTONIC, &to);
		double took = ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / runs;
		best = took < best ? took : best;
	}
	printf("%.1f\n", best);
	free_batch(&b);
	OK(bitcnn_close(session));
	OK(bitcnn_close_model(model));
}

int main(int count, char **arguments) {
	const char *mode = count > 1 ? arguments[1] : "";
#define MODE(name, arguments_) (count == 2 + (arguments_) && strcmp(mode, name) == 0)
	if (MODE("run", 2)) {
		run_model(arguments[2], atoi(arguments[3]));
	} else if (MODE("describe", 1)) {
		describe(arguments[2]);
	} else if (MODE("files", 2)) {
		files(arguments[2], arguments[3]);
	} else if (MODE("classes", 0)) {
		classes();
	} else if (MODE("detect", 2)) {
		detect(arguments[2], arguments[3]);
	} else if (MODE("image", 1)) {
		image(arguments[2]);
	} else if (MODE("misuse", 0)) {
		misuse();
	} else if (MODE("threads", 0)) {
		threads();
	} else if (MODE("forks", 0)) {
		forks();
	} else if (MODE("stacks", 2)) {
		stacks(arguments[2], arguments[3]);
	} else if (MODE("signals", 0)) {
		signals();
	} else if (MODE("default-signals", 1)) {
		default_signals(arguments[2]);
	} else if (MODE("leak", 2)) {
		leak(atoi(arguments[2]), atoi(arguments[3]));
	} else if (MODE("bench", 4)) {
		bench(arguments[2], atoi(arguments[3]), atoi(arguments[4]), atoi(arguments[5]));
	} else {
		fprintf(stderr, "no such check\n");
		return 2;
	}
	return 0;
}
