// bitcnn in C++11: models and sessions that close themselves, and errors as exceptions.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef BITCNN_HPP
#define BITCNN_HPP

#include "bitcnn.h"

#include <stdexcept>
#include <string>
#include <utility>

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

// owner closes a number when it goes.
template <bitcnn_status (*close)(uint64_t)>
class owner {
public:
	owner(owner &&other) noexcept : number_(other.number_) { other.number_ = 0; }
	owner &operator=(owner &&other) noexcept {
		std::swap(number_, other.number_);
		return *this;
	}
	~owner() {
		if (number_) {
			close(number_);
		}
	}
	uint64_t get() const noexcept { return number_; }

protected:
	owner() = default;
	uint64_t number_ = 0;
};

class model : public owner<bitcnn_close_model> {
public:
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
};

class session : public owner<bitcnn_close> {
public:
	explicit session(const model &m, const bitcnn_options &options = BITCNN_INIT(bitcnn_options)) {
		check(bitcnn_open(m.get(), &options, &number_));
	}
	bitcnn_io input(size_t index = 0) const { return io(bitcnn_input, index); }
	bitcnn_io output(size_t index = 0) const { return io(bitcnn_output, index); }
	std::string label(size_t index) const {
		size_t length;
		check(bitcnn_label(number_, index, nullptr, 0, &length));
		std::string text(length + 1, '\0');
		check(bitcnn_label(number_, index, &text[0], text.size(), nullptr));
		text.resize(length);
		return text;
	}
	// run is for models with one input and one output.
	void run(int64_t images, const bitcnn_tensor &in, const bitcnn_tensor &out) const {
		check(bitcnn_run(number_, images, &in, 1, &out, 1));
	}

private:
	bitcnn_io io(bitcnn_status (*describe)(bitcnn_session, size_t, bitcnn_io *), size_t index) const {
		bitcnn_io d = BITCNN_INIT(bitcnn_io);
		check(describe(number_, index, &d));
		return d;
	}
};

} // namespace bitcnn

#endif
