// What the peers have in common: operators, and ways to compute them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Op is one operator on one image. A dense layer has height and width 1.
struct Op {
	enum Kind { conv, dense, pool } kind;
	int h, w, c;              // input
	int out;                  // output channels
	int k, stride, pad;       // square window; a dense layer has 1, 1, 0
	int oh() const { return (h + 2 * pad - k) / stride + 1; }
	int ow() const { return (w + 2 * pad - k) / stride + 1; }
	int taps() const { return k * k * c; }
};

// Data holds ±1 values: x as [h][w][c], weights as [out][k][k][c].
struct Data {
	std::vector<int8_t> x, weights;
};

// Peer is one way to compute an operator. Whatever can be done once, such as
// laying out the weights, has been done.
struct Peer {
	std::string name;
	std::string detail;                      // the implementation that a library chose
	int pad;                                 // value of padded taps, −1 or 0
	std::function<void()> run;
	std::function<std::vector<int32_t>()> result; // of the last run, [oh][ow][out]
	std::string error;                       // why there is no such peer
};

// Each appends its peers for the operator.
void openblas(std::vector<Peer>& peers, const Op& op, const Data& data);
void onednn(std::vector<Peer>& peers, const Op& op, const Data& data);
void xnor(std::vector<Peer>& peers, const Op& op, const Data& data);

std::string openblas_version();
std::string onednn_version();
