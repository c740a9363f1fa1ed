// Runs a network of PyTorch on values in PyTorch's order: layout MODEL < VALUES > ANSWERS, both
// float32 as they lie in memory, of 3 images.

#include <bitcnn.h>

#include <stdio.h>

enum { images = 3, most = 4096 };

int main(int count, char **arguments) {
	static float x[most], y[most];
	bitcnn_model model;
	bitcnn_session session;
	bitcnn_io in = BITCNN_INIT(bitcnn_io), out = BITCNN_INIT(bitcnn_io);
	bitcnn_options options = BITCNN_INIT(bitcnn_options);
	options.device = "cpu";
	options.max_batch = images;
	if (count != 2 || bitcnn_load(arguments[1], NULL, &model) || bitcnn_open(model, &options, &session) ||
	    bitcnn_input(session, 0, &in) || bitcnn_output(session, 0, &out)) {
		fprintf(stderr, "%s\n", bitcnn_last_error());
		return 1;
	}
	size_t size = images * in.bytes;
	if (in.source_layout != BITCNN_NCHW || size > sizeof x || images * out.bytes > sizeof y || fread(x, 1, size, stdin) != size || getchar() != EOF) {
		fprintf(stderr, "the input has layout %d and %zu bytes\n", in.source_layout, size);
		return 1;
	}
	bitcnn_tensor input = {x, size, BITCNN_FLOAT32, in.source_layout};
	bitcnn_tensor output = {y, images * out.bytes, BITCNN_FLOAT32, out.source_layout};
	if (bitcnn_run(session, images, &input, 1, &output, 1) || bitcnn_close(session) || bitcnn_close_model(model)) {
		fprintf(stderr, "%s\n", bitcnn_last_error());
		return 1;
	}
	return fwrite(y, 1, output.bytes, stdout) != output.bytes;
}
