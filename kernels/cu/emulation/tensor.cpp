// Products of tensor cores of one warp.
#include "ptx_machine.h"

namespace ptx {

// Lanes show each other their fragments; each computes its own results from the rows and
// columns that they hold.
template <int results, int words, class Word>
static void multiply(int32_t (&d)[results], const Fragments &mine, Word product, AT)
{
	emulation::Exchange *e = exchange(~0u, &mine, sizeof mine, "mma", file, line);
	const auto fragments = [&](unsigned lane) {
		Fragments f;
		memcpy(&f, e->values[lane], sizeof f);
		return f;
	};
	const int lane = emulation::current->lane, g = lane / 4, t = lane % 4;
	constexpr int halves = results / 2;
	for (int i = 0; i < results; i++) {
		const int half = i / 2, column = 2 * t + i % 2;
		uint32_t sum = (uint32_t)d[i];
		for (int k = 0; k < 4; k++) {
			const Fragments row = fragments(4 * g + k), col = fragments(4 * column + k);
			for (int w = 0; w < words; w++)
				sum += product(row.a[halves * w + half], col.b[w]);
		}
		d[i] = (int32_t)sum;
	}
	emulation::finish(e);
}

template <int results, int words> void mma(int32_t (&d)[results], const Fragments &mine, Product product, AT)
{
	using W = uint32_t;
	switch (product) {
	case and_popc: return multiply<results, words>(d, mine, [](W x, W y) { return (W)__builtin_popcount(x & y); }, file, line);
	case xor_popc: return multiply<results, words>(d, mine, [](W x, W y) { return (W)__builtin_popcount(x ^ y); }, file, line);
	case s8_s8: return multiply<results, words>(d, mine, [](W x, W y) { return dp4a_ss(x, y, 0); }, file, line);
	case s8_u8: return multiply<results, words>(d, mine, [](W x, W y) { return dp4a_us(y, x, 0); }, file, line);
	case u8_s8: return multiply<results, words>(d, mine, [](W x, W y) { return dp4a_us(x, y, 0); }, file, line);
	}
}
template void mma<2, 1>(int32_t (&)[2], const Fragments &, Product, AT);
template void mma<4, 2>(int32_t (&)[4], const Fragments &, Product, AT);

} // namespace ptx
