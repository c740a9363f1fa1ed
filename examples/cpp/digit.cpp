// digit.c in C++, with any classifier of bytes: digit-cpp MODEL PHOTO, where the photo
// is a binary PGM or PPM file of the size that the model takes.

#include <bitcnn.hpp>

#include <fstream>
#include <iostream>
#include <vector>

int main(int count, char **arguments) try {
	if (count != 3) {
		std::cerr << "digit-cpp MODEL PHOTO\n";
		return 2;
	}
	const bitcnn::session session(bitcnn::model::load(arguments[1]));
	const bitcnn_io in = session.input(), out = session.output();

	std::ifstream file(arguments[2], std::ios::binary);
	std::string format;
	int width = 0, height = 0, most = 0;
	file >> format >> width >> height >> most;
	file.get();
	std::vector<char> pixels(in.bytes);
	if (format != (in.channels == 1 ? "P5" : "P6") || width != in.width || height != in.height || in.dtype != BITCNN_UINT8 ||
		!file.read(pixels.data(), static_cast<std::streamsize>(pixels.size()))) {
		std::cerr << arguments[2] << ": want an image of " << in.width << " by " << in.height << " pixels\n";
		return 1;
	}
	std::vector<float> scores(out.bytes / sizeof(float));
	session.run(1, {pixels.data(), pixels.size(), BITCNN_UINT8, 0}, {scores.data(), out.bytes, BITCNN_FLOAT32, 0});
	std::cout << session.label(bitcnn::top_k(scores).at(0).index) << "\n";
	return 0;
} catch (const bitcnn::error &e) {
	std::cerr << e.what() << "\n";
	return 1;
}
