// Tells which digit is on a grey image of 28 by 28 pixels, as a binary PGM file:
//
//     cc digit.c $(pkg-config --cflags --libs bitcnn) -o digit && ./digit photo.pgm

#include <bitcnn.h>

#include <stdint.h>
#include <stdio.h>

int main(int count, char **arguments) {
	uint8_t pixels[28 * 28];
	float scores[10];
	FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
	if (!file || fscanf(file, "P5 28 28 255%*c") != 0 || fread(pixels, sizeof pixels, 1, file) != 1) {
		fprintf(stderr, "digit FILE.pgm: a binary PGM file of 28 by 28 pixels\n");
		return 2;
	}
	fclose(file);

	bitcnn_model model;
	bitcnn_session session = 0;
	bitcnn_tensor input = {.data = pixels, .bytes = sizeof pixels, .dtype = BITCNN_UINT8};
	bitcnn_tensor output = {.data = scores, .bytes = sizeof scores, .dtype = BITCNN_FLOAT32};
	size_t best; // the class; a place for its probability may be given, too
	int failed = bitcnn_bundled("digits", &model) || bitcnn_open(model, NULL, &session) ||
		bitcnn_run(session, 1, &input, 1, &output, 1) || bitcnn_top_k(scores, 10, &best, NULL, 1);
	if (failed) {
		fprintf(stderr, "%s\n", bitcnn_last_error());
	} else {
		printf("%d\n", (int)best);
	}
	bitcnn_close(session);
	bitcnn_close_model(model);
	return failed;
}
