// float32: im2col and sgemm for convolutions, sgemv for dense layers.
#include <cblas.h>

#include <cstring>
#include <memory>

#include "peers.h"

std::string openblas_version() {
	openblas_set_num_threads(1);
	return std::string(openblas_get_config()) + " (" + openblas_get_corename() + ")";
}

namespace {

struct State {
	Op op;
	std::vector<float> x, weights, columns, y;
};

// im2col copies the taps of every output pixel side by side; x is NHWC, so a
// tap is one run of channels. Padded taps are 0.
void im2col(State& s) {
	const Op& op = s.op;
	float* to = s.columns.data();
	for (int oy = 0; oy < op.oh(); oy++)
		for (int ox = 0; ox < op.ow(); ox++)
			for (int ky = 0; ky < op.k; ky++)
				for (int kx = 0; kx < op.k; kx++, to += op.c) {
					int y = oy * op.stride + ky - op.pad, x = ox * op.stride + kx - op.pad;
					if (y < 0 || y >= op.h || x < 0 || x >= op.w)
						memset(to, 0, op.c * sizeof *to);
					else
						memcpy(to, &s.x[(size_t(y) * op.w + x) * op.c], op.c * sizeof *to);
				}
}

}  // namespace

void openblas(std::vector<Peer>& peers, const Op& op, const Data& data) {
	if (op.kind == Op::pool) return;
	openblas_set_num_threads(1);
	auto s = std::make_shared<State>();
	s->op = op;
	s->x.assign(data.x.begin(), data.x.end());
	s->weights.assign(data.weights.begin(), data.weights.end());
	const int pixels = op.oh() * op.ow(), taps = op.taps();
	s->y.resize(size_t(pixels) * op.out);
	Peer p{"openblas_fp32", "", 0, nullptr, nullptr, ""};
	if (op.kind == Op::dense) {
		p.detail = "sgemv";
		p.run = [=] {
			cblas_sgemv(CblasRowMajor, CblasNoTrans, op.out, taps, 1, s->weights.data(), taps, s->x.data(), 1, 0, s->y.data(), 1);
		};
	} else {
		p.detail = "im2col and sgemm";
		s->columns.resize(size_t(pixels) * taps);
		p.run = [=] {
			im2col(*s);
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, pixels, op.out, taps, 1, s->columns.data(), taps,
				s->weights.data(), taps, 0, s->y.data(), op.out);
		};
	}
	p.result = [=] { return std::vector<int32_t>(s->y.begin(), s->y.end()); };
	peers.push_back(p);
}
