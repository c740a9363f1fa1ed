// oneDNN: float32 direct and Winograd, and int8 (u8 × s8 → s32). Layouts are
// those that the library prefers; changing to and from them is not timed.
#include <cmath>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "peers.h"

using namespace dnnl;
using tag = memory::format_tag;
using type = memory::data_type;

std::string onednn_version() {
	const dnnl_version_t* v = dnnl_version();
	return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

namespace {

struct State {
	engine eng{engine::kind::cpu, 0};
	stream str{eng};
	primitive prim;
	std::unordered_map<int, memory> args;
	memory::dims out_dims;
	tag out_tag;
	int64_t out_values;
	// Bytes 0 and 1 stand for −1 and +1 in int8; what they stand for is
	// 2·sum − (the sum of the output's weights).
	bool bytes = false;
	std::vector<int32_t> weight_sums;
};

// load makes a memory of the layout wanted and fills it with values.
template <class T>
memory load(State& s, const memory::desc& want, const memory::dims& dims, type t, tag plain, std::vector<T> values) {
	memory from({dims, t, plain}, s.eng, values.data()), to(want, s.eng);
	reorder(from, to).execute(s.str, from, to);
	s.str.wait();
	return to;
}

template <class T>
std::vector<int32_t> store(State& s, type t) {
	std::vector<T> values(s.out_values);
	memory from = s.args.at(DNNL_ARG_DST), to({s.out_dims, t, s.out_tag}, s.eng, values.data());
	reorder(from, to).execute(s.str, from, to);
	s.str.wait();
	std::vector<int32_t> sums;
	for (T v : values) sums.push_back(std::lrint(v)); // Winograd is not exact
	return sums;
}

std::vector<int32_t> result(State& s, type t) {
	if (t == type::f32) return store<float>(s, t);
	auto sums = t == type::u8 ? store<uint8_t>(s, t) : store<int32_t>(s, t);
	for (size_t i = 0; i < sums.size(); i++) sums[i] = 2 * sums[i] - s.weight_sums[i % s.weight_sums.size()];
	return sums;
}

template <class T>
std::vector<T> inputs(const Data& data, bool bytes) {
	std::vector<T> r;
	r.reserve(data.x.size());
	for (int8_t x : data.x) r.push_back(bytes ? x > 0 : x);
	return r;
}

// filters returns the weights as [out][c][k][k], from where the library has a
// way to all of its layouts.
template <class T>
std::vector<T> filters(const Data& data, const Op& op) {
	std::vector<T> r(data.weights.size());
	const int area = op.k * op.k;
	for (size_t i = 0; i < r.size(); i++) {
		const size_t c = i % op.c, tap = i / op.c % area, out = i / op.taps();
		r[(out * op.c + c) * area + tap] = data.weights[i];
	}
	return r;
}

// Versions 2 and 3 differ in how a primitive is described.
template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const engine& eng, Args... args) {
#if DNNL_VERSION_MAJOR >= 3
	return {eng, prop_kind::forward_inference, args...};
#else
	return {typename Primitive::desc(prop_kind::forward_inference, args...), eng};
#endif
}

void build(State& s, Peer& p, const Op& op, const Data& data, algorithm alg, type src, type weights, type dst) {
	memory::dims in{1, op.c, op.h, op.w}, filter{op.out, op.c, op.k, op.k}, out{1, op.out, op.oh(), op.ow()};
	memory::dims strides{op.stride, op.stride}, pad{op.pad, op.pad}, kernel{op.k, op.k}, dilation{0, 0};
	tag in_tag = tag::nhwc, filter_tag = tag::oihw;
	s.out_tag = tag::nhwc;
	if (op.kind == Op::dense) {
		in = {1, op.c}, filter = {op.out, op.c}, out = {1, op.out};
		in_tag = s.out_tag = tag::nc, filter_tag = tag::oi;
	}
	s.out_dims = out;
	s.out_values = int64_t(op.oh()) * op.ow() * op.out;
	s.bytes = src == type::u8;
	memory::desc src_md(in, src, tag::any), weights_md(filter, weights, tag::any), dst_md(out, dst, tag::any);
	const auto source = [&](const memory::desc& want) {
		return s.bytes ? load(s, want, in, type::u8, in_tag, inputs<uint8_t>(data, true))
					   : load(s, want, in, type::f32, in_tag, inputs<float>(data, false));
	};
	const auto kernels = [&](const memory::desc& want) {
		return s.bytes ? load(s, want, filter, type::s8, filter_tag, filters<int8_t>(data, op))
					   : load(s, want, filter, type::f32, filter_tag, filters<float>(data, op));
	};
	const auto finish = [&](const auto& pd) {
		p.detail = pd.impl_info_str();
		s.args.insert({DNNL_ARG_DST, memory(pd.dst_desc(), s.eng)});
	};
	s.weight_sums.assign(op.kind == Op::pool ? 1 : op.out, op.kind == Op::pool ? 1 : 0);
	if (op.kind != Op::pool)
		for (size_t i = 0; i < data.weights.size(); i++) s.weight_sums[i / op.taps()] += data.weights[i];
	switch (op.kind) {
	case Op::conv: {
		auto pd = describe<convolution_forward>(s.eng, alg, src_md, weights_md, dst_md, strides, pad, pad);
		s.args = {{DNNL_ARG_SRC, source(pd.src_desc())}, {DNNL_ARG_WEIGHTS, kernels(pd.weights_desc())}};
		finish(pd);
		s.prim = convolution_forward(pd);
		break;
	}
	case Op::dense: {
		auto pd = describe<inner_product_forward>(s.eng, src_md, weights_md, dst_md);
		s.args = {{DNNL_ARG_SRC, source(pd.src_desc())}, {DNNL_ARG_WEIGHTS, kernels(pd.weights_desc())}};
		finish(pd);
		s.prim = inner_product_forward(pd);
		break;
	}
	case Op::pool: {
		memory::desc plain(in, src, tag::nhwc); // of a pool the source may not be "any"
#if DNNL_VERSION_MAJOR >= 3
		auto pd = describe<pooling_forward>(s.eng, algorithm::pooling_max, plain, dst_md, strides, kernel, dilation, pad, pad);
#else
		auto pd = describe<pooling_forward>(s.eng, algorithm::pooling_max, plain, dst_md, strides, kernel, pad, pad);
#endif
		s.args = {{DNNL_ARG_SRC, source(pd.src_desc())}};
		finish(pd);
		s.prim = pooling_forward(pd);
		break;
	}
	}
}

}  // namespace

void onednn(std::vector<Peer>& peers, const Op& op, const Data& data) {
	struct Mode {
		const char* name;
		algorithm alg;
		type src, weights, dst;
	};
	for (const Mode& m : {
			 Mode{"onednn_fp32_direct", algorithm::convolution_direct, type::f32, type::f32, type::f32},
			 Mode{"onednn_fp32_winograd", algorithm::convolution_winograd, type::f32, type::f32, type::f32},
			 Mode{"onednn_int8", algorithm::convolution_direct, type::u8, type::s8, op.kind == Op::pool ? type::u8 : type::s32},
		 }) {
		if (m.alg == algorithm::convolution_winograd && op.kind != Op::conv) continue;
		auto s = std::make_shared<State>();
		// A padded byte is 0, which stands for −1.
		Peer p{m.name, "", m.src == type::u8 ? -1 : 0, nullptr, nullptr, ""};
		try {
			build(*s, p, op, data, m.alg, m.src, m.weights, m.dst);
			p.run = [=] {
				s->prim.execute(s->str, s->args);
				s->str.wait();
			};
			p.result = [=] { return result(*s, m.dst); };
		} catch (const dnnl::error& e) {
			p.error = e.what();
		}
		peers.push_back(p);
	}
}
