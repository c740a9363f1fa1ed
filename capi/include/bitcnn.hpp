// bitcnn.h in C++11: models and sessions that close themselves, errors as exceptions, text as
// strings, and memory of vectors. What bitcnn.h says of a function holds here, too.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef BITCNN_HPP
#define BITCNN_HPP

#include "bitcnn.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bitcnn {

class error : public std::runtime_error {
public:
	explicit error(bitcnn_status status) : std::runtime_error(bitcnn_last_error()), status_(status) {}
	bitcnn_status status() const noexcept { return status_; }

private:
	bitcnn_status status_;
};

inline void check(bitcnn_status status) {
	if (status != BITCNN_OK) {
		throw error(status);
	}
}

// text returns what a function writes that is given memory, its size, and a place for the
// length of what there is.
template <class F>
std::string text(F write) {
	size_t length = 0;
	check(write(nullptr, size_t(0), &length));
	std::string s(length + 1, '\0');
	check(write(&s[0], s.size(), &length));
	s.resize(length);
	return s;
}

inline std::string version() {
	const char *v = bitcnn_version();
	if (!v) {
		throw std::runtime_error(bitcnn_last_error());
	}
	return v;
}

// The devices of this machine.
inline std::vector<bitcnn_device> devices() {
	std::vector<bitcnn_device> all;
	for (;;) {
		bitcnn_device d = BITCNN_INIT(bitcnn_device);
		const bitcnn_status status = bitcnn_get_device(all.size(), &d);
		if (status == BITCNN_NOT_FOUND) {
			return all;
		}
		check(status);
		all.push_back(d);
	}
}

// The names of the models that are part of the library.
inline std::vector<std::string> bundled_names() {
	std::vector<std::string> all;
	for (;;) {
		size_t length = 0;
		const bitcnn_status status = bitcnn_bundled_name(all.size(), nullptr, 0, &length);
		if (status == BITCNN_NOT_FOUND) {
			return all;
		}
		check(status);
		all.push_back(text([&](char *to, size_t size, size_t *n) { return bitcnn_bundled_name(all.size(), to, size, n); }));
	}
}

// A tensor is the memory of a batch. Nothing of it is copied: a vector must stay where it is
// for as long as it is used.
struct tensor : bitcnn_tensor {
	tensor(void *memory, size_t size, bitcnn_dtype type, bitcnn_layout order = BITCNN_NHWC) : bitcnn_tensor() {
		data = memory;
		bytes = size;
		dtype = type;
		layout = order;
	}
	tensor(std::vector<float> &v, bitcnn_layout order = BITCNN_NHWC)
		: tensor(v.data(), v.size() * sizeof(float), BITCNN_FLOAT32, order) {}
	tensor(std::vector<uint8_t> &v, bitcnn_layout order = BITCNN_NHWC) : tensor(v.data(), v.size(), BITCNN_UINT8, order) {}
	// Inputs are not written to.
	tensor(const std::vector<float> &v, bitcnn_layout order = BITCNN_NHWC) : tensor(const_cast<std::vector<float> &>(v), order) {}
	tensor(const std::vector<uint8_t> &v, bitcnn_layout order = BITCNN_NHWC) : tensor(const_cast<std::vector<uint8_t> &>(v), order) {}
};
static_assert(sizeof(tensor) == sizeof(bitcnn_tensor), "a list of tensors is one of bitcnn_tensor");

// An owner closes what it has when it goes. Without anything it is false.
template <bitcnn_status (*close_number)(uint64_t)>
class owner {
public:
	owner() noexcept = default;
	owner(owner &&other) noexcept : number_(other.number_) { other.number_ = 0; }
	owner &operator=(owner &&other) noexcept {
		std::swap(number_, other.number_);
		return *this;
	}
	~owner() {
		if (number_) {
			close_number(number_);
		}
	}
	explicit operator bool() const noexcept { return number_ != 0; }
	uint64_t get() const noexcept { return number_; }
	// Closes it now, and throws what is wrong. Without anything it does nothing.
	void close() {
		if (number_) {
			const uint64_t number = number_;
			number_ = 0;
			check(close_number(number));
		}
	}

protected:
	uint64_t number_ = 0;
};

class model : public owner<bitcnn_close_model> {
public:
	model() noexcept = default;
	static model load(const std::string &path, const bitcnn_load_options *options = nullptr) {
		model m;
		check(bitcnn_load(path.c_str(), options, &m.number_));
		return m;
	}
	static model read(const void *data, size_t bytes, const bitcnn_load_options *options = nullptr) {
		model m;
		check(bitcnn_read(data, bytes, options, &m.number_));
		return m;
	}
	static model bundled(const std::string &name) {
		model m;
		check(bitcnn_bundled(name.c_str(), &m.number_));
		return m;
	}
	static model conv(const bitcnn_conv &conv) {
		model m;
		check(bitcnn_conv_model(&conv, &m.number_));
		return m;
	}
	void save(const std::string &path) const { check(bitcnn_save(number_, path.c_str())); }
	// What became of the layers, as JSON.
	std::string report() const {
		return text([this](char *to, size_t size, size_t *n) { return bitcnn_report(number_, to, size, n); });
	}
};

// The pixels of a photo as a network reads them, NHWC: see bitcnn_read_image.
inline std::vector<uint8_t> read_image(const void *data, size_t bytes, int32_t height, int32_t width, int32_t channels = 3,
                                       int32_t resize = 0, uint32_t background = 0) {
	const bool sides = height > 0 && width > 0 && channels > 0;
	std::vector<uint8_t> pixels(sides ? size_t(height) * size_t(width) * size_t(channels) : 1);
	check(bitcnn_read_image(data, bytes, height, width, channels, resize, background, pixels.data(), pixels.size()));
	return pixels;
}

// How likely each class is, by the outputs of a classifier: see bitcnn_softmax.
inline std::vector<double> softmax(const std::vector<float> &scores) {
	std::vector<double> probabilities(scores.size());
	check(bitcnn_softmax(scores.data(), scores.size(), probabilities.data()));
	return probabilities;
}

// A class of a classifier, and how likely it is.
struct likely_class {
	size_t index;
	double probability;
};

// The k likeliest classes of the outputs of a classifier, or all if there are fewer: see
// bitcnn_top_k.
inline std::vector<likely_class> top_k(const std::vector<float> &scores, size_t k = 1) {
	k = k < scores.size() ? k : scores.size();
	std::vector<size_t> indices(k);
	std::vector<double> probabilities(k);
	check(bitcnn_top_k(scores.data(), scores.size(), indices.data(), probabilities.data(), k));
	std::vector<likely_class> classes(k);
	for (size_t i = 0; i < k; i++) {
		classes[i] = {indices[i], probabilities[i]};
	}
	return classes;
}

// The median and the shortest time of a step, in nanoseconds.
struct step_time {
	int64_t median, shortest;
};

class session : public owner<bitcnn_close> {
public:
	session() noexcept = default;
	explicit session(const model &m, const bitcnn_options &options = BITCNN_INIT(bitcnn_options)) {
		check(bitcnn_open(m.get(), &options, &number_));
	}
	bitcnn_session_info info() const {
		bitcnn_session_info i = BITCNN_INIT(bitcnn_session_info);
		check(bitcnn_info(number_, &i));
		return i;
	}
	bitcnn_device device() const {
		bitcnn_device d = BITCNN_INIT(bitcnn_device);
		check(bitcnn_session_device(number_, &d));
		return d;
	}
	bitcnn_io input(size_t index = 0) const { return io(bitcnn_input, index); }
	bitcnn_io output(size_t index = 0) const { return io(bitcnn_output, index); }
	std::string input_name(size_t index = 0) const { return indexed(bitcnn_input_name, index); }
	std::string output_name(size_t index = 0) const { return indexed(bitcnn_output_name, index); }
	std::string label(size_t index) const { return indexed(bitcnn_label, index); }
	std::vector<std::string> labels() const {
		std::vector<std::string> all(info().labels);
		for (size_t i = 0; i < all.size(); i++) {
			all[i] = label(i);
		}
		return all;
	}
	// A text of a step, of which there are info().steps.
	std::string step(size_t index, bitcnn_step_text what = BITCNN_STEP_NAME) const {
		return text([&](char *to, size_t size, size_t *n) { return bitcnn_step(number_, index, what, to, size, n); });
	}

	// Of models with one input and one output, and of any.
	void run(int64_t images, const bitcnn_tensor &in, const bitcnn_tensor &out) const {
		check(bitcnn_run(number_, images, &in, 1, &out, 1));
	}
	void run(int64_t images, const std::vector<tensor> &in, const std::vector<tensor> &out) const {
		check(bitcnn_run(number_, images, in.data(), in.size(), out.data(), out.size()));
	}
	// The bytes of the only input, made of a photo as the model says: see bitcnn_read_photo.
	std::vector<uint8_t> read_photo(const void *data, size_t bytes, uint32_t background = 0, bitcnn_frame *frame = nullptr) const {
		std::vector<uint8_t> values(input().bytes);
		check(bitcnn_read_photo(number_, data, bytes, background, values.data(), values.size(), frame));
		return values;
	}
	// The objects on a photo, most of them at the most: see bitcnn_detect.
	std::vector<bitcnn_box> detect(const void *data, size_t bytes, float threshold = 0, float overlap = 0, size_t most = 100,
	                               uint32_t background = 0) const {
		std::vector<bitcnn_box> boxes(most);
		size_t count = 0;
		check(bitcnn_detect(number_, data, bytes, threshold, overlap, background, boxes.data(), most, &count));
		boxes.resize(count);
		return boxes;
	}
	// On a stream of CUDA; tensors are in memory of the device.
	void enqueue(void *stream, int64_t images, const std::vector<tensor> &in, const std::vector<tensor> &out) const {
		check(bitcnn_enqueue(number_, stream, images, in.data(), in.size(), out.data(), out.size()));
	}
	// The times of the steps in so many runs.
	std::vector<step_time> profile(int64_t images, const std::vector<tensor> &in, int32_t runs) const {
		const size_t steps = info().steps;
		std::vector<int64_t> median(steps), shortest(steps);
		check(bitcnn_profile(number_, images, in.data(), in.size(), runs, median.data(), shortest.data(), steps));
		std::vector<step_time> times(steps);
		for (size_t i = 0; i < steps; i++) {
			times[i] = step_time{median[i], shortest[i]};
		}
		return times;
	}

private:
	bitcnn_io io(bitcnn_status (*describe)(bitcnn_session, size_t, bitcnn_io *), size_t index) const {
		bitcnn_io d = BITCNN_INIT(bitcnn_io);
		check(describe(number_, index, &d));
		return d;
	}
	std::string indexed(bitcnn_status (*write)(bitcnn_session, size_t, char *, size_t, size_t *), size_t index) const {
		return text([&](char *to, size_t size, size_t *n) { return write(number_, index, to, size, n); });
	}
};

} // namespace bitcnn

#endif
