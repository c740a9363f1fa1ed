// Times or checks an operator in the ways that other engines compute it, on one
// thread. Command bench of this repository runs it; see docs/performance.md.
//
//   peers versions
//   peers time SECONDS KIND H W C OUT K STRIDE PAD
//   peers check KIND H W C OUT K STRIDE PAD < x and weights, one byte each, ±1
//
// One JSON object per line. KIND is conv, dense or pool.
#include <omp.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "peers.h"

namespace {

[[noreturn]] void fail(const std::string& why) {
	fprintf(stderr, "peers: %s\n", why.c_str());
	exit(1);
}

int number(const char* s) {
	char* end;
	long n = strtol(s, &end, 10);
	if (*end || end == s || n < 0 || n > 1 << 20) fail(std::string("not a size: ") + s);
	return n;
}

Op parse(int argc, char** argv) {
	if (argc != 8) fail("want KIND H W C OUT K STRIDE PAD");
	const std::string kind = argv[0];
	Op op{};
	if (kind == "conv") op.kind = Op::conv;
	else if (kind == "dense") op.kind = Op::dense;
	else if (kind == "pool") op.kind = Op::pool;
	else fail("no such kind: " + kind);
	int* fields[] = {&op.h, &op.w, &op.c, &op.out, &op.k, &op.stride, &op.pad};
	for (int i = 0; i < 7; i++) *fields[i] = number(argv[i + 1]);
	if (!op.h || !op.w || !op.c || !op.out || !op.k || !op.stride || op.h + 2 * op.pad < op.k || op.w + 2 * op.pad < op.k)
		fail("an empty operator");
	return op;
}

std::vector<Peer> peers_of(const Op& op, const Data& data) {
	std::vector<Peer> peers;
	openblas(peers, op, data);
	onednn(peers, op, data);
	xnor(peers, op, data);
	return peers;
}

size_t weights_of(const Op& op) { return op.kind == Op::pool ? 0 : size_t(op.out) * op.taps(); }

std::string quote(const std::string& s) {
	std::string r = "\"";
	for (char c : s) {
		if (c == '"' || c == '\\') r += '\\';
		r += c < ' ' ? ' ' : c;
	}
	return r + "\"";
}

// processor_ms is the processor time of all threads of this process: the time
// slices of other programs do not count.
double processor_ms() {
	timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

void time_all(double seconds, const Op& op) {
	using clock = std::chrono::steady_clock;
	std::mt19937 random(1);
	Data data;
	for (size_t i = 0; i < size_t(op.h) * op.w * op.c; i++) data.x.push_back(random() % 2 ? 1 : -1);
	for (size_t i = 0; i < weights_of(op); i++) data.weights.push_back(random() % 2 ? 1 : -1);
	for (const Peer& p : peers_of(op, data)) {
		printf("{\"peer\":%s,\"detail\":%s", quote(p.name).c_str(), quote(p.detail).c_str());
		if (!p.error.empty()) {
			printf(",\"error\":%s}\n", quote(p.error).c_str());
			continue;
		}
		p.run();
		// So many runs at a time that reading the clock costs nothing.
		double start = processor_ms();
		p.run();
		const int runs = 1 + 0.1 / std::max(processor_ms() - start, 1e-4);
		std::vector<double> ms;
		for (const auto end = clock::now() + std::chrono::duration<double>(seconds); ms.size() < 3 || clock::now() < end;) {
			start = processor_ms();
			for (int i = 0; i < runs; i++) p.run();
			ms.push_back((processor_ms() - start) / runs);
		}
		std::sort(ms.begin(), ms.end());
		printf(",\"runs\":%zu,\"ms\":%.6f,\"min_ms\":%.6f}\n", ms.size() * runs, ms[ms.size() / 2], ms[0]);
		fflush(stdout);
	}
}

void read_signs(std::vector<int8_t>& v, size_t n) {
	v.resize(n);
	if (fread(v.data(), 1, n, stdin) != n) fail("standard input is too short");
	for (int8_t x : v)
		if (x != 1 && x != -1) fail("standard input: a value that is not 1 or -1");
}

void check_all(const Op& op) {
	Data data;
	read_signs(data.x, size_t(op.h) * op.w * op.c);
	read_signs(data.weights, weights_of(op));
	for (const Peer& p : peers_of(op, data)) {
		printf("{\"peer\":%s,\"pad\":%d", quote(p.name).c_str(), p.pad);
		if (!p.error.empty()) {
			printf(",\"error\":%s}\n", quote(p.error).c_str());
			continue;
		}
		p.run();
		printf(",\"sums\":[");
		const char* separator = "";
		for (int32_t v : p.result()) {
			printf("%s%d", separator, v);
			separator = ",";
		}
		printf("]}\n");
	}
}

}  // namespace

int main(int argc, char** argv) {
	omp_set_num_threads(1);
	const std::string command = argc > 1 ? argv[1] : "";
	if (command == "versions") {
		printf("{\"openblas\":%s,\"onednn\":%s,\"compiler\":%s}\n", quote(openblas_version()).c_str(),
			quote(onednn_version()).c_str(), quote(__VERSION__).c_str());
	} else if (command == "time" && argc > 2) {
		time_all(atof(argv[2]), parse(argc - 3, argv + 3));
	} else if (command == "check") {
		check_all(parse(argc - 2, argv + 2));
	} else {
		fail("want versions, time or check");
	}
}
