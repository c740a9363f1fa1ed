// Calls the C library at random, from some threads at once, with what no function may
// take among the arguments: fuzz MODEL SEED CALLS THREADS. A sanitizer tells what is wrong;
// what the calls return does not matter, but that they return, and that a run that
// succeeds had what it needs.

#include <bitcnn.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 6 };

// Numbers of models and sessions, which all threads open, use and close.
static _Atomic uint64_t models[PLACES], sessions[PLACES];
static void *model_file;
static size_t model_bytes;
static int calls;
static _Atomic long succeeded, failed;

typedef struct {
	uint64_t state;
} source;

static uint32_t next(source *s) {
	s->state = s->state * 6364136223846793005u + 1442695040888963407u;
	return s->state >> 33;
}

static int one_in(source *s, int n) { return next(s) % n == 0; }

static uint64_t number(source *s, _Atomic uint64_t *list) {
	switch (next(s) % 12) {
	case 0:
		return 0;
	case 1:
		return (uint64_t)next(s) << 33 | next(s);
	case 2:
		return list[next(s) % PLACES] ^ (UINT64_C(1) << next(s) % 64);
	case 3:
		return (list == models ? sessions : models)[next(s) % PLACES]; // of the other kind
	}
	return list[next(s) % PLACES];
}

static size_t length(source *s) {
	switch (next(s) % 8) {
	case 0:
		return 0;
	case 1:
		return SIZE_MAX - next(s) % 3;
	case 2:
		return (size_t)1 << next(s) % 64;
	}
	return next(s) % 4;
}

static const char *name(source *s) {
	static const char *const names[] = {NULL, "", "digits", "cpu", "auto", "cuda:99", "\xff\xfe", "/dev/zero", "/", "no such file", "avx2", "generic"};
	return names[next(s) % (sizeof names / sizeof *names)];
}

// A tensor has what it says if that is what the session wants: with another length it
// must be refused before it is read.
static bitcnn_tensor tensor(source *s, bitcnn_io *io, int64_t images, void **memory) {
	bitcnn_tensor t = {.dtype = io->dtype};
	size_t want = images > 0 && images <= 4 ? (size_t)images * io->bytes : 8;
	t.bytes = one_in(s, 6) ? length(s) : want;
	*memory = malloc(t.bytes == want ? want : 1);
	t.data = *memory;
	if (t.data && t.bytes == want) {
		memset(t.data, (int)next(s), want);
	}
	if (one_in(s, 12)) {
		t.data = NULL;
	} else if (one_in(s, 12) && io->dtype == BITCNN_FLOAT32) {
		t.data = (char *)t.data + 1; // not aligned
	} else if (one_in(s, 20)) {
		t.data = (void *)(UINTPTR_MAX - next(s) % want); // would go on at address 0
	}
	if (one_in(s, 12)) {
		t.dtype = (int32_t)next(s) % 5;
	}
	t.layout = one_in(s, 4) ? (int32_t)(next(s) % 5) - 1 : 0;
	// Another length that is right by chance, in memory that is too short for it.
	if (t.bytes == io->bytes * (size_t)images && t.data == *memory && t.bytes != want) {
		t.bytes++;
	}
	return t;
}

static void text(source *s, char **to, size_t *size) {
	*size = next(s) % 40;
	*to = one_in(s, 5) ? NULL : malloc(*size);
}

static bitcnn_status call(source *s) {
	uint64_t made = 0;
	bitcnn_status status = BITCNN_OK;
	char *to;
	size_t size, needed;
	int place = (int)(next(s) % PLACES);
	switch (next(s) % 24) {
	case 0: {
		bitcnn_load_options o = BITCNN_INIT(bitcnn_load_options);
		o.size = one_in(s, 4) ? length(s) : sizeof o;
		o.bincnn = name(s);
		o.mean_count = one_in(s, 4) ? length(s) : 0;
		o.scale_count = one_in(s, 4) ? length(s) : 0;
		o.label_count = one_in(s, 4) ? length(s) : 0;
		o.input_dtype = (int32_t)next(s) % 5 - 1;
		o.file_bytes = one_in(s, 3) ? (int64_t)length(s) : 0;
		size_t bytes = one_in(s, 2) ? model_bytes : next(s) % (model_bytes + 1);
		void *copy = malloc(bytes);
		memcpy(copy, model_file, bytes);
		status = bitcnn_read(one_in(s, 12) ? NULL : copy, bytes, one_in(s, 2) ? NULL : &o, one_in(s, 12) ? NULL : &made);
		free(copy);
		if (made) {
			bitcnn_close_model(atomic_exchange(&models[place], made));
		}
		return status;
	}
	case 1:
		status = bitcnn_bundled(name(s), one_in(s, 12) ? NULL : &made);
		if (made) {
			bitcnn_close_model(atomic_exchange(&models[place], made));
		}
		return status;
	case 2:
		status = bitcnn_load(name(s), NULL, &made);
		if (made) {
			bitcnn_close_model(atomic_exchange(&models[place], made));
		}
		return status;
	case 13: {
		uint64_t weights[64] = {0};
		int32_t side = (int32_t)(next(s) % 3), kernel = 1 + (int32_t)(next(s) % 2);
		bitcnn_conv c = {.size = one_in(s, 8) ? length(s) : sizeof c, .height = 2 + side, .width = 5, .channels = 1 + (int32_t)(next(s) % 130), .outputs = 2,
			.kernel_height = kernel, .kernel_width = 2, .pad_value = (int32_t)(next(s) % 4) - 1, .sign_of_zero = one_in(s, 8) ? 0 : 1, .weights = weights};
		c.weight_count = (size_t)(4 * kernel * ((c.channels + 63) / 64));
		int32_t *fields[] = {&c.height, &c.width, &c.channels, &c.outputs, &c.kernel_height, &c.stride_width, &c.dilation_height, &c.pad_left, &c.pad_bottom, &c.groups};
		if (one_in(s, 2)) {
			*fields[next(s) % 10] = (int32_t)length(s);
		}
		if (one_in(s, 8)) {
			c.weight_count = one_in(s, 2) ? SIZE_MAX - next(s) % 3 : next(s) % 65;
		}
		if (one_in(s, 8)) {
			c.weights = NULL;
		}
		status = bitcnn_conv_model(one_in(s, 12) ? NULL : &c, one_in(s, 12) ? NULL : &made);
		if (made) {
			bitcnn_close_model(atomic_exchange(&models[place], made));
		}
		return status;
	}
	case 20: { // a photo of 2 x 1 pixels, and what is left of it
		static const char photo[] = "GIF89a\2\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\2\0\1\0\0\2\2D\n\0;";
		uint8_t pixels[12];
		int32_t height = one_in(s, 4) ? (int32_t)length(s) : 2, width = one_in(s, 4) ? (int32_t)length(s) : 2;
		size_t bytes = one_in(s, 2) ? sizeof photo - 1 : next(s) % sizeof photo;
		return bitcnn_read_image(one_in(s, 12) ? NULL : photo, bytes, height, width, one_in(s, 4) ? (int32_t)next(s) % 5 : 3,
			one_in(s, 4) ? (int32_t)length(s) : 0, one_in(s, 4) ? (uint32_t)next(s) : 0, one_in(s, 12) ? NULL : pixels, one_in(s, 4) ? next(s) % 13 : sizeof pixels);
	}
	case 23: {
		static const char photo[] = "GIF89a\2\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\2\0\1\0\0\2\2D\n\0;";
		static _Thread_local float values[96 * 96 * 3];
		bitcnn_frame frame;
		size_t bytes = one_in(s, 2) ? sizeof photo - 1 : next(s) % sizeof photo;
		return bitcnn_read_photo(number(s, sessions), one_in(s, 12) ? NULL : photo, bytes, one_in(s, 4) ? (uint32_t)next(s) : 0,
			one_in(s, 12) ? NULL : values, one_in(s, 4) ? next(s) % sizeof values : 28 * 28, one_in(s, 4) ? NULL : &frame);
	}
	case 22: { // of models of which none is a detector
		static const char photo[] = "GIF89a\2\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\2\0\1\0\0\2\2D\n\0;";
		bitcnn_box boxes[3];
		size_t bytes = one_in(s, 2) ? sizeof photo - 1 : next(s) % sizeof photo;
		return bitcnn_detect(number(s, sessions), one_in(s, 12) ? NULL : photo, bytes, (float)next(s), (float)next(s), (uint32_t)next(s),
			one_in(s, 12) ? NULL : boxes, one_in(s, 4) ? next(s) % 4 : 3, one_in(s, 12) ? NULL : &needed);
	}
	case 21: {
		float scores[8];
		double probabilities[8];
		size_t indices[8];
		for (size_t i = 0; i < 8; i++) {
			scores[i] = one_in(s, 20) ? NAN : (float)(next(s) % 100);
		}
		size_t count = next(s) % 9, k = one_in(s, 2) ? next(s) % 9 : count;
		if (one_in(s, 2)) {
			return bitcnn_softmax(one_in(s, 12) ? NULL : scores, count, one_in(s, 12) ? NULL : probabilities);
		}
		return bitcnn_top_k(one_in(s, 12) ? NULL : scores, count, one_in(s, 12) ? NULL : indices, one_in(s, 4) ? NULL : probabilities, k);
	}
	case 3:
		return bitcnn_save(number(s, models), one_in(s, 2) ? NULL : "/no such folder/x");
	case 4:
		return bitcnn_close_model(one_in(s, 4) ? number(s, models) : 0);
	case 5:
	case 6: {
		bitcnn_options o = BITCNN_INIT(bitcnn_options);
		o.size = one_in(s, 8) ? length(s) : sizeof o;
		o.device = one_in(s, 4) ? name(s) : "cpu";
		o.isa = one_in(s, 4) ? name(s) : NULL;
		o.max_batch = one_in(s, 4) ? (int64_t)length(s) : 1 + next(s) % 4;
		o.parallel = one_in(s, 8) ? (int32_t)next(s) : 0;
		o.threads = one_in(s, 8) ? (int32_t)next(s) : 1;
		o.batch_delay_ns = one_in(s, 4) ? 100000 : 0;
		o.arena_bytes = one_in(s, 8) ? (int64_t)length(s) : 0;
		// A device without limits would try what is asked for, up to all memory.
		if (o.max_batch > 1000) {
			o.arena_bytes = 1 << 20;
		}
		status = bitcnn_open(number(s, models), &o, one_in(s, 12) ? NULL : &made);
		if (made) {
			bitcnn_close(atomic_exchange(&sessions[place], made));
		}
		return status;
	}
	case 7:
		return bitcnn_close(one_in(s, 4) ? number(s, sessions) : 0);
	case 8: {
		bitcnn_device d = BITCNN_INIT(bitcnn_device);
		d.size = one_in(s, 2) ? length(s) : sizeof d;
		return one_in(s, 2) ? bitcnn_get_device(length(s), &d) : bitcnn_session_device(number(s, sessions), one_in(s, 4) ? NULL : &d);
	}
	case 9: {
		bitcnn_session_info i = BITCNN_INIT(bitcnn_session_info);
		i.size = one_in(s, 2) ? length(s) : sizeof i;
		return bitcnn_info(number(s, sessions), one_in(s, 4) ? NULL : &i);
	}
	case 10:
		text(s, &to, &size);
		status = bitcnn_report(number(s, models), to, size, one_in(s, 2) ? NULL : &needed);
		break;
	case 11:
		text(s, &to, &size);
		status = bitcnn_step(number(s, sessions), length(s), (bitcnn_step_text)(next(s) % 8), to, size, one_in(s, 2) ? NULL : &needed);
		break;
	case 12:
		text(s, &to, &size);
		status = (one_in(s, 2) ? bitcnn_input_name : bitcnn_output_name)(number(s, sessions), length(s), to, size, &needed);
		break;
	case 14:
		text(s, &to, &size);
		status = one_in(s, 2) ? bitcnn_label(number(s, sessions), length(s), to, size, NULL) : bitcnn_bundled_name(length(s), to, size, &needed);
		break;
	default: {
		bitcnn_session session = number(s, sessions);
		bitcnn_io in = BITCNN_INIT(bitcnn_io), out = BITCNN_INIT(bitcnn_io);
		if (bitcnn_input(session, 0, &in) || bitcnn_output(session, 0, &out)) {
			in = out = (bitcnn_io){.dtype = BITCNN_UINT8, .bytes = 8};
		}
		int64_t images = one_in(s, 8) ? (int64_t)length(s) : 1 + next(s) % 4;
		void *memory[2];
		bitcnn_tensor i = tensor(s, &in, images, &memory[0]), o = tensor(s, &out, images, &memory[1]);
		if (one_in(s, 10)) {
			int64_t times[64];
			status = bitcnn_profile(session, images, one_in(s, 8) ? NULL : &i, one_in(s, 8) ? length(s) : 1, (int32_t)(next(s) % 3),
				one_in(s, 2) ? NULL : times, times, one_in(s, 4) ? length(s) : 4);
		} else if (one_in(s, 10)) {
			status = bitcnn_enqueue(session, NULL, images, one_in(s, 8) ? NULL : &i, one_in(s, 8) ? length(s) : 1,
				one_in(s, 8) ? NULL : &o, one_in(s, 8) ? length(s) : 1);
		} else {
			status = bitcnn_run(session, images, one_in(s, 20) ? NULL : &i, one_in(s, 20) ? length(s) : 1, one_in(s, 20) ? NULL : &o, one_in(s, 20) ? length(s) : 1);
			if (status == BITCNN_OK) {
				succeeded++;
			}
		}
		free(memory[0]);
		free(memory[1]);
		return status;
	}
	}
	free(to);
	return status;
}

static void *thread(void *argument) {
	source s = {(uint64_t)(uintptr_t)argument};
	next(&s);
	for (int i = 0; i < calls; i++) {
		if (call(&s) != BITCNN_OK) {
			failed++;
			if (!*bitcnn_last_error()) {
				fprintf(stderr, "an error without a text\n");
				exit(1);
			}
		}
	}
	return NULL;
}

int main(int count, char **arguments) {
	pthread_t threads[64];
	if (count != 5) {
		fprintf(stderr, "fuzz MODEL SEED CALLS THREADS\n");
		return 2;
	}
	FILE *f = fopen(arguments[1], "rb");
	model_file = malloc(1 << 20);
	model_bytes = f ? fread(model_file, 1, 1 << 20, f) : 0;
	if (!model_bytes || fclose(f)) {
		fprintf(stderr, "%s: no model\n", arguments[1]);
		return 2;
	}
	calls = atoi(arguments[3]);
	int n = atoi(arguments[4]);
	for (int i = 0; i < n && i < 64; i++) {
		uintptr_t seed = strtoul(arguments[2], NULL, 10) * 64 + (uintptr_t)i;
		if (pthread_create(&threads[i], NULL, thread, (void *)seed) != 0) {
			return 2;
		}
	}
	for (int i = 0; i < n && i < 64; i++) {
		pthread_join(threads[i], NULL);
	}
	for (int i = 0; i < PLACES; i++) {
		bitcnn_close(sessions[i]);
		bitcnn_close_model(models[i]);
	}
	free(model_file);
	printf("%ld runs succeeded, %ld calls failed\n", succeeded, failed);
	return succeeded > 0 && failed > 0 ? 0 : 1;
}
