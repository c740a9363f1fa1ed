// A plain binary matrix product on 64-bit words: the way of engines that turn a
// binary convolution into a GEMM. Floats come in, as such engines have them
// between layers: im2col, then signs packed into words, then xnor and popcount.
#include <cstring>
#include <memory>

#include "peers.h"

namespace {

struct State {
	Op op;
	int pixels, words;
	std::vector<float> x, columns, y;       // x as [c][h][w], columns as [c][k][k][pixels]
	std::vector<uint64_t> weights, packed;  // [out][words], [words][pixels]
};

// im2col spreads the image to one row per tap. Padded taps are −1.
void im2col(State& s) {
	const Op& op = s.op;
	float* to = s.columns.data();
	for (int c = 0; c < op.c; c++)
		for (int ky = 0; ky < op.k; ky++)
			for (int kx = 0; kx < op.k; kx++)
				for (int oy = 0; oy < op.oh(); oy++) {
					int y = oy * op.stride + ky - op.pad;
					const float* row = &s.x[(size_t(c) * op.h + (y < 0 || y >= op.h ? 0 : y)) * op.w];
					for (int ox = 0; ox < op.ow(); ox++) {
						int x = ox * op.stride + kx - op.pad;
						*to++ = y < 0 || y >= op.h || x < 0 || x >= op.w ? -1 : row[x];
					}
				}
}

// pack makes a word of the signs of 64 rows, for every column.
void pack(State& s, const float* columns) {
	memset(s.packed.data(), 0, s.packed.size() * sizeof s.packed[0]);
	for (int k = 0; k < s.op.taps(); k++) {
		uint64_t* to = &s.packed[size_t(k / 64) * s.pixels];
		const float* row = columns + size_t(k) * s.pixels;
		for (int n = 0; n < s.pixels; n++) to[n] |= uint64_t(row[n] > 0) << (k % 64);
	}
}

// gemm counts the equal signs of every row of weights and every column.
void gemm(State& s) {
	memset(s.y.data(), 0, s.y.size() * sizeof s.y[0]);
	for (int m = 0; m < s.op.out; m++) {
		float* y = &s.y[size_t(m) * s.pixels];
		for (int k = 0; k < s.words; k++) {
			const uint64_t w = s.weights[size_t(m) * s.words + k];
			const uint64_t* x = &s.packed[size_t(k) * s.pixels];
			for (int n = 0; n < s.pixels; n++) y[n] += __builtin_popcountll(~(w ^ x[n]));
		}
	}
}

// gemv is gemm for one column: along the words, which lie side by side.
void gemv(State& s) {
	for (int m = 0; m < s.op.out; m++) {
		const uint64_t* w = &s.weights[size_t(m) * s.words];
		int64_t equal = 0;
		for (int k = 0; k < s.words; k++) equal += __builtin_popcountll(~(w[k] ^ s.packed[k]));
		s.y[m] = equal;
	}
}

std::vector<int32_t> result(const State& s) {
	// The bits that fill up the last word are equal in both.
	const int taps = s.op.taps(), fill = s.words * 64 - taps;
	std::vector<int32_t> sums(s.y.size());
	for (int n = 0; n < s.pixels; n++)
		for (int m = 0; m < s.op.out; m++)
			sums[size_t(n) * s.op.out + m] = 2 * (int32_t(s.y[size_t(m) * s.pixels + n]) - fill) - taps;
	return sums;
}

}  // namespace

void xnor(std::vector<Peer>& peers, const Op& op, const Data& data) {
	if (op.kind == Op::pool) return;
	auto s = std::make_shared<State>();
	s->op = op;
	s->pixels = op.oh() * op.ow();
	s->words = (op.taps() + 63) / 64;
	s->x.resize(data.x.size());
	for (size_t i = 0; i < data.x.size(); i++) // from [h][w][c]
		s->x[i % op.c * op.h * op.w + i / op.c] = data.x[i];
	s->weights.resize(size_t(op.out) * s->words);
	for (int m = 0; m < op.out; m++)
		for (int tap = 0; tap < op.k * op.k; tap++)
			for (int c = 0; c < op.c; c++) {
				const int k = c * op.k * op.k + tap;
				if (data.weights[(size_t(m) * op.k * op.k + tap) * op.c + c] > 0)
					s->weights[size_t(m) * s->words + k / 64] |= uint64_t(1) << (k % 64);
			}
	s->packed.resize(size_t(s->words) * s->pixels);
	s->y.resize(size_t(op.out) * s->pixels);
	const auto product = [=] { s->pixels == 1 ? gemv(*s) : gemm(*s); };
	Peer all{"xnor_gemm", "im2col, packing and GEMM", -1, nullptr, [=] { return result(*s); }, ""};
	if (op.kind == Op::conv) {
		s->columns.resize(size_t(op.taps()) * s->pixels);
		all.run = [=] {
			im2col(*s);
			pack(*s, s->columns.data());
			product();
		};
	} else {
		all.detail = "packing and GEMM";
		all.run = [=] {
			pack(*s, s->x.data());
			product();
		};
	}
	peers.push_back(all);
	all.run(); // so that there is something to multiply
	peers.push_back({"xnor_gemm_only", "packed before", -1, product, all.result, ""});
}
