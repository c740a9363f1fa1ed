// Products of Hopper's warpgroups, which read shared memory and write registers while
// their threads do something else: what is not waited for is wrong here, too.
#include "engine.h"

#include <algorithm>
#include <cstring>

namespace emulation {

namespace {

// All lanes of the warp must come, with the same operands.
void all_lanes(const char *operation, uint64_t a, uint64_t b, const char *file, int line)
{
	const uint64_t operands[2] = {a, b};
	Exchange *e = exchange(~0u, operands, sizeof operands, operation, file, line);
	if (e->arrived != ~0u)
		fail(Fault::failed, "%s:%d: divergent barrier: %s without the lanes %#x", file, line, operation, ~e->arrived);
	if (memcmp(e->values[0], operands, sizeof operands) != 0)
		fail(Fault::failed, "%s:%d: the lanes of a warp have different operands of %s", file, line, operation);
	finish(e);
	Thread &t = *current;
	if (t.block->threads.size() % 128 != 0)
		fail(Fault::failed, "%s:%d: %s in a block of %zu threads", file, line, operation, t.block->threads.size());
}

// A matrix in shared memory. Fields of a description that are not those of a matrix without
// swizzling are not known here.
struct Matrix {
	uint64_t begin, halves, groups; // and bytes from one half of a row to the other, from 8 rows to the next
	Matrix(uint64_t description, const char *file, int line)
		: begin((description & 0x3fff) << 4), halves((description >> 16 & 0x3fff) << 4), groups((description >> 32 & 0x3fff) << 4)
	{
		if (description & ~0x3fff3fff3fffull)
			fail(Fault::failed, "%s:%d: matrix description %#zx is not known", file, line, (size_t)description);
	}
	// The 4 words of half a row.
	void words(uint32_t (&w)[4], unsigned row, unsigned half, const char *file, int line) const
	{
		const uint64_t at = begin + row / 8 * groups + row % 8 * 16 + half * halves - shared_base;
		if (at > shared_size() || shared_size() - at < 16)
			fail(Fault::illegal_address, "%s:%d: illegal address: 16 bytes at %lld are outside of the %zu bytes of shared memory", file,
				line, (long long)at, shared_size());
		if (const unsigned who = current->block->unfenced[at / 16])
			fail(Fault::failed, "%s:%d: a product reads what thread %u copied and did not make visible by fence.proxy.async", file, line,
				who - 1);
		memcpy(w, shared_memory() + at, sizeof w);
	}
};

const unsigned columns_of_lane = 2, rows_of_lane = 2, halves = 2;

// What a lane needs of the matrices: words[0 … rows_of_lane) of a, the others of b.
struct Rows {
	std::vector<uint32_t> words; // [row][half][4]
	uint64_t sum = 14695981039346656037ull;
	Rows(uint64_t a, uint64_t b, unsigned columns, bool seen, const char *file, int line)
	{
		const unsigned warp = current->linear / 32 % 4, g = current->lane / 4, t = current->lane % 4;
		const Matrix of_a(a, file, line), of_b(b, file, line);
		words.reserve((rows_of_lane + columns / 4) * halves * 4);
		for (unsigned r = 0; r < rows_of_lane; r++)
			add(of_a, 16 * warp + 8 * r + g, true, seen, file, line);
		for (unsigned j = 0; j < columns / 8; j++) // the lanes with the same columns are 8
			for (unsigned e = 0; e < columns_of_lane; e++)
				add(of_b, 8 * j + 2 * t + e, j % 8 == g, seen, file, line);
	}
	void add(const Matrix &m, unsigned row, bool mine, bool seen, const char *file, int line)
	{
		for (unsigned half = 0; half < halves; half++) {
			uint32_t w[4];
			m.words(w, row, half, file, line);
			if (mine && seen)
				access(shared_memory() + m.begin + row / 8 * m.groups + row % 8 * 16 + half * m.halves - shared_base, 16, Access::read, line);
			for (uint32_t word : w) {
				words.push_back(word);
				sum = (sum ^ word) * 1099511628211ull;
			}
		}
	}
	// The product of row r of a and column c of b, of words that multiply as given.
	template <class Word> uint32_t product(unsigned r, unsigned c, Word multiply) const
	{
		const uint32_t *x = &words[r * halves * 4], *y = &words[(rows_of_lane + c) * halves * 4];
		uint32_t n = 0;
		for (unsigned i = 0; i < halves * 4; i++)
			n += multiply(x[i], y[i]);
		return n;
	}
};

// The bits that two words have in common.
uint32_t common(uint32_t x, uint32_t y) { return __builtin_popcount(x & y); }

// Unsigned bytes by signed ones.
uint32_t bytes(uint32_t x, uint32_t y)
{
	uint32_t n = 0;
	for (unsigned i = 0; i < 32; i += 8)
		n += (uint8_t)(x >> i) * (int8_t)(y >> i);
	return n;
}


// Starts a product of matrices, of which words multiply as given.
void multiply(std::initializer_list<uint32_t *> d, uint64_t a, uint64_t b, bool add, uint32_t words(uint32_t, uint32_t), const char *file, int line)
{
	all_lanes("wgmma.mma_async", a, b, file, line);
	Thread &t = *current;
	const std::vector<uint32_t *> registers(d);
	const unsigned columns = registers.size() * 2;
	const Rows rows(a, b, columns, true, file, line);
	if (t.lane == 0)
		t.warp->products = (t.warp->products + (a ^ b * 31) + columns + add) * 1099511628211ull;
	auto p = std::find_if(t.products.begin(), t.products.end(), [&](const Product &p) {
		return std::find_first_of(p.registers.begin(), p.registers.end(), registers.begin(), registers.end()) != p.registers.end();
	});
	if (p == t.products.end()) {
		if (!t.fenced)
			fail(Fault::failed, "%s:%d: wgmma.mma_async into registers without a wgmma.fence before it", file, line);
		p = t.products.insert(p, Product{});
		p->registers = registers;
		for (uint32_t *r : registers)
			p->results.push_back(*r);
	} else if (p->registers != registers) {
		fail(Fault::failed, "%s:%d: wgmma.mma_async into some of the registers of another that is under way", file, line);
	}
	p->group = t.product_groups;
	p->operands.push_back({a, b, rows.sum, file, line});
	for (unsigned i = 0; i < registers.size(); i++) {
		const uint32_t n = rows.product(i / 2 % rows_of_lane, i / 4 * columns_of_lane + i % 2, words);
		p->results[i] = (add ? p->results[i] : 0) + n;
		*registers[i] = 0xbad0bad0; // until they are waited for
	}
}

} // namespace

void fence_proxy_async()
{
	Thread &t = *current;
	for (uint32_t at : t.unfenced)
		if (t.block->unfenced[at] == t.linear + 1)
			t.block->unfenced[at] = 0;
	t.unfenced.clear();
}

void wgmma_fence(const char *file, int line)
{
	all_lanes("wgmma.fence", 0, 0, file, line);
	current->fenced = true;
}

void wgmma_and(std::initializer_list<uint32_t *> d, uint64_t a, uint64_t b, bool add, const char *file, int line)
{
	multiply(d, a, b, add, common, file, line);
}

void wgmma_u8s8(std::initializer_list<uint32_t *> d, uint64_t a, uint64_t b, bool add, const char *file, int line)
{
	multiply(d, a, b, add, bytes, file, line);
}

void wgmma_commit(const char *file, int line)
{
	all_lanes("wgmma.commit_group", 0, 0, file, line);
	current->product_groups++;
}

void wgmma_wait(unsigned newest, const char *file, int line)
{
	all_lanes("wgmma.wait_group", newest, 0, file, line);
	Thread &t = *current;
	t.fenced = false; // registers may be touched from now on
	for (size_t i = 0; i < t.products.size();) {
		Product &p = t.products[i];
		if (p.group >= t.product_groups || t.product_groups - p.group <= newest) {
			i++;
			continue;
		}
		for (const Product::Operands &o : p.operands)
			if (Rows(o.a, o.b, p.registers.size() * 2, false, o.file, o.line).sum != o.sum)
				fail(Fault::failed, "%s:%d: shared memory was written while a product read it", o.file, o.line);
		for (size_t k = 0; k < p.registers.size(); k++)
			*p.registers[k] = p.results[k];
		t.products.erase(t.products.begin() + i);
	}
}

void check_products(const Thread &t)
{
	if (!t.products.empty())
		fail(Fault::failed, "%s:%d: a product that nobody waits for", t.products[0].operands[0].file, t.products[0].operands[0].line);
}

bool same_products(const Block &b)
{
	for (size_t i = 0; i < b.warps.size(); i++)
		if (b.warps[i].products != b.warps[i / 4 * 4].products)
			return false;
	return true;
}

} // namespace emulation
