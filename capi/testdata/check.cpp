// Uses all of bitcnn.hpp: check MODEL, an ONNX file with one node, Relu, of a float input of
// 1 x 2 x 3 x 4, and a file to write.

#include <bitcnn.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>
#include <vector>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			std::cerr << __FILE__ << ":" << __LINE__ << ": " #condition "\n"; \
			std::exit(1); \
		} \
	} while (0)

template <class F>
static void fails(bitcnn_status status, const char *text, F f) {
	try {
		f();
	} catch (const bitcnn::error &e) {
		CHECK(e.status() == status);
		CHECK(std::strstr(e.what(), text));
		return;
	}
	CHECK(!"an error");
}

// A member that is opened later.
struct classifier {
	bitcnn::session session;
	void open() { session = bitcnn::session(bitcnn::model::bundled("digits")); }
};

static void check_digits() {
	classifier c;
	static_assert(noexcept(classifier()), "a session without a model throws nothing");
	CHECK(!c.session);
	c.session.close();
	fails(BITCNN_INVALID, "not a session", [&] { c.session.info(); });
	c.open();
	CHECK(c.session);
	const bitcnn_session_info info = c.session.info();
	CHECK(info.inputs == 1 && info.outputs == 1 && info.labels == 10 && c.session.labels().size() == 10);
	CHECK(c.session.label(7) == "7" && c.session.labels()[3] == "3");
	CHECK(c.session.input_name() == "input" && c.session.output_name() == "output");
	fails(BITCNN_NOT_FOUND, "label 10", [&] { c.session.label(10); });
	CHECK(std::strlen(c.session.device().id) > 0);

	const std::vector<uint8_t> image(c.session.input().bytes, 9);
	std::vector<float> scores(10), again(10);
	c.session.run(1, bitcnn::tensor(image), bitcnn::tensor(scores));
	c.session.run(1, std::vector<bitcnn::tensor>{image}, {again});
	CHECK(scores == again && scores != std::vector<float>(10));
	fails(BITCNN_SHAPE, "inputs: got 2, want 1", [&] { c.session.run(1, {image, image}, {again}); });
	fails(BITCNN_SHAPE, "tensor is float32", [&] { c.session.run(1, {scores}, {again}); });
	const std::vector<bitcnn::step_time> times = c.session.profile(1, {image}, 3);
	CHECK(times.size() == info.steps);
	for (size_t i = 0; i < times.size(); i++) {
		CHECK(0 < times[i].shortest && times[i].shortest <= times[i].median);
		CHECK(!c.session.step(i).empty() && !c.session.step(i, BITCNN_STEP_KERNEL).empty());
	}

	bitcnn::session moved(std::move(c.session));
	CHECK(moved && !c.session);
	const uint64_t number = moved.get();
	moved.close();
	CHECK(!moved);
	fails(BITCNN_CLOSED, "closed", [&] { bitcnn::check(bitcnn_close(number)); });
}

static void check_relu(const char *path, const char *saved) {
	bitcnn::model model = bitcnn::model::load(path);
	model.save(saved);
	std::ifstream file(saved, std::ios::binary);
	const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
	model = bitcnn::model::read(bytes.data(), bytes.size());
	CHECK(model.report().find("\"inputs\"") != std::string::npos);
	bitcnn_options options = BITCNN_INIT(bitcnn_options);
	options.device = "cpu";
	options.max_batch = 2;
	const bitcnn::session session(model, options);
	model.close();
	const bitcnn_io in = session.input();
	CHECK(in.height == 3 && in.width == 4 && in.channels == 2 && in.source_layout == BITCNN_NCHW);
	std::vector<float> x(2 * 24), y(2 * 24), nhwc(2 * 24);
	for (size_t i = 0; i < x.size(); i++) {
		x[i] = static_cast<float>(i) - 20;
	}
	session.run(2, bitcnn::tensor(x, BITCNN_NCHW), bitcnn::tensor(y, BITCNN_NCHW));
	session.run(2, bitcnn::tensor(x), bitcnn::tensor(nhwc));
	for (size_t i = 0; i < x.size(); i++) {
		CHECK(y[i] == (x[i] > 0 ? x[i] : 0) && nhwc[i] == y[i]);
	}
	fails(BITCNN_INVALID, "overlaps", [&] { session.run(2, bitcnn::tensor(x), bitcnn::tensor(x)); });
	fails(BITCNN_UNSUPPORTED, "does not take tensors", [&] { session.enqueue(nullptr, 2, {x}, {y}); });
	fails(BITCNN_NOT_FOUND, "no-such-file", [] { bitcnn::model::load("no-such-file"); });
}

static void check_conv() {
	bitcnn_conv conv = BITCNN_INIT(bitcnn_conv);
	conv.height = conv.width = 1;
	conv.channels = 3;
	conv.outputs = conv.kernel_height = conv.kernel_width = conv.sign_of_zero = 1;
	const uint64_t weights = 5; // +1, -1, +1
	conv.weights = &weights;
	conv.weight_count = 1;
	const bitcnn::session session(bitcnn::model::conv(conv));
	const std::vector<float> x{2, -3, -1};
	std::vector<float> y(1);
	session.run(1, bitcnn::tensor(x), bitcnn::tensor(y));
	CHECK(y[0] == 1);
}

static void check_image() {
	const std::string grey("GIF89a\2\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\2\0\1\0\0\2\2D\n\0;", 35);
	const std::vector<uint8_t> pixels = bitcnn::read_image(grey.data(), grey.size(), 1, 2);
	CHECK((pixels == std::vector<uint8_t>{0, 0, 0, 255, 255, 255}));
	fails(BITCNN_IO, "broken image", [&] { bitcnn::read_image(grey.data(), 20, 1, 2); });
	fails(BITCNN_INVALID, "an input of", [&] { bitcnn::read_image(grey.data(), 20, -1, 2); });
	const bitcnn::session digits(bitcnn::model::bundled("digits"));
	bitcnn_frame frame{};
	CHECK(digits.read_photo(grey.data(), grey.size(), 0, &frame).size() == digits.input().bytes);
	CHECK(frame.photo_width == 2 && frame.photo_height == 1);
	fails(BITCNN_IO, "broken image", [&] { digits.read_photo(grey.data(), 20); });
}

static void check_classes() {
	const auto classes = bitcnn::top_k({0, 5, 1}, 2);
	CHECK(classes.size() == 2 && classes[0].index == 1 && classes[1].index == 2);
	CHECK(classes[0].probability > 0.9 && classes[0].probability < 1);
	CHECK(bitcnn::top_k({1}, 7).size() == 1);
	CHECK(bitcnn::softmax({0, 5, 1}).at(1) == classes[0].probability);
	fails(BITCNN_INVALID, "finite", [] { bitcnn::top_k({NAN}); });
}

int main(int count, char **arguments) try {
	CHECK(count == 3);
	CHECK(bitcnn::version().compare(0, 1, "v") == 0);
	const std::vector<bitcnn_device> devices = bitcnn::devices();
	CHECK(!devices.empty());
	const std::vector<std::string> names = bitcnn::bundled_names();
	CHECK(std::find(names.begin(), names.end(), "digits") != names.end());
	check_digits();
	check_relu(arguments[1], arguments[2]);
	check_conv();
	check_image();
	check_classes();
	return 0;
} catch (const std::exception &e) {
	std::cerr << e.what() << "\n";
	return 1;
}
