// Launches a kernel of a translated PTX file, for the tests of kernels/internal/ptxcpp:
//
//   ptx_run FILE.ptx KERNEL BLOCKS THREADS DYNAMIC COOPERATIVE OUTPUT <input >output
//
// Its parameters are two pointers: to what standard input holds, and to OUTPUT bytes of
// zeros, which are written to standard output at the end. Exits 1 where the launch failed.
#include "../races.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace emulation;

// Memory that ends where a page begins that cannot be touched would be the driver's;
// this is aligned as that is, and known to what checks accesses.
static char *buffer(const std::string &content)
{
	auto *p = static_cast<char *>(aligned_alloc(256, (content.size() + 256) / 256 * 256));
	memcpy(p, content.data(), content.size());
	races::allocated(reinterpret_cast<uintptr_t>(p), content.size());
	races::written(reinterpret_cast<uintptr_t>(p), content.size());
	return p;
}

int main(int argc, char **argv)
{
	if (argc != 8)
		return 2;
	std::ifstream file(argv[1], std::ios::binary);
	const std::string ptx{std::istreambuf_iterator<char>(file), {}};
	const Kernel *k = find_translations(ptx.c_str())[argv[2]];
	if (!k || k->sizes != std::vector<size_t>{8, 8}) {
		fprintf(stderr, "there is no kernel %s of two pointers\n", argv[2]);
		return 2;
	}
	std::string input;
	char some[4096];
	for (size_t n; (n = fread(some, 1, sizeof some, stdin)) > 0;)
		input.append(some, n);
	const size_t size = atoi(argv[7]);
	// Where the driver places them: on multiples of 16 bytes.
	alignas(16) char *values[4] = {buffer(input), nullptr, buffer(std::string(size, 0)), nullptr};
	void *parameters[2] = {&values[0], &values[2]};
	Launch l = {k, parameters, dim3(atoi(argv[3])), dim3(atoi(argv[4])), (size_t)atoi(argv[5]), atoi(argv[6]) != 0, false};
	const Fault f = launch(l, nullptr);
	if (f != Fault::none)
		return 1;
	return fwrite(values[2], 1, size, stdout) == size ? 0 : 2;
}
