// The checks of accesses: every access of a thread to shared and global memory is compared
// with those of other threads to the same byte. Two accesses, one of them a write,
// must be ordered by a barrier of the block or of the warp, or by a fence and
// an atomic operation that another block sees. What nobody has written must not be
// read, and nothing outside of allocations and arrays be touched.
#if defined(EMULATION_CHECKED)

#include "races.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <unordered_map>

namespace emulation {
namespace races {
namespace {

// An access: by which thread, and when. Block barriers count epochs, those of a warpgroup
// its rounds, and every exchange in a warp counts the clocks of its lanes.
struct Access {
	uint64_t serial = 0; // of the launch; of the block, for shared memory
	uint64_t block = 0;
	uint32_t epoch = 0, round = 0, clock = 0;
	uint16_t thread = 0;
	bool atomic = false;
	int line = 0; // of the PTX file
};

struct Cell {
	Access write, reads[2];
	bool written = false;
};

// Cells of a piece of memory: one for every word, and for every byte once one is
// touched alone.
struct Cells {
	size_t grain = 4;
	std::vector<Cell> cells;
	void resize(size_t bytes) { cells.resize((bytes + grain - 1) / grain); }
	void split()
	{
		std::vector<Cell> bytes;
		for (const Cell &c : cells)
			bytes.insert(bytes.end(), grain, c);
		cells = std::move(bytes);
		grain = 1;
	}
	// f(cell, offset) for the cells of n bytes at an offset, until it returns false.
	template <class F> void each(size_t offset, size_t n, F f)
	{
		if ((offset | n) % grain)
			split();
		for (size_t end = offset + n; offset < end; offset += grain)
			if (!f(cells[offset / grain], offset))
				return;
	}
};

// What is known of another block's past: all epochs before one, and a thread's
// clocks of one.
struct Known {
	uint32_t epoch = 0;
	std::map<uint16_t, uint32_t> clocks;
	void add(const Known &k)
	{
		epoch = std::max(epoch, k.epoch);
		for (const auto &[thread, clock] : k.clocks)
			clocks[thread] = std::max(clocks[thread], clock);
	}
};
using Knowledge = std::map<uint64_t, Known>;
void add(Knowledge &to, const Knowledge &from)
{
	for (const auto &[block, known] : from)
		to[block].add(known);
}

struct BlockState {
	uint64_t serial;
	uint32_t epoch;
	std::vector<uint32_t> rounds; // of warpgroups
	std::vector<uint32_t> clocks; // [thread][lane of its warp]
	Knowledge known;              // by all its threads
	std::map<uint16_t, Knowledge> learned, fenced; // by a thread since the last barrier; at its last fence
	Cells shared;
	uint32_t &clock(unsigned thread, unsigned lane) { return clocks[thread * 32 + lane]; }
};

struct Allocation {
	size_t size;
	Cells cells;
};

const Launch *running;
uint64_t launches, serials;
bool bad;
int reports;
std::unordered_map<const Block *, std::unique_ptr<BlockState>> states;
std::map<uintptr_t, Allocation> allocations;
std::map<uintptr_t, Knowledge> released; // by atomic operations on an address

BlockState &state(const Block &b) { return *states[&b]; }

struct Where {
	const char *memory;
	uintptr_t offset;
};

void report(const char *what, Where w, const Access &mine, const Access *other)
{
	bad = true;
	if (++reports > 3)
		return;
	std::string with;
	if (other) {
		char text[200];
		snprintf(text, sizeof text, " with thread %u of block %zu at line %d", other->thread, (size_t)other->block,
			other->line);
		with = text;
	}
	fprintf(stderr, "emulated driver: kernel %s: %s in %s memory, byte %zu, by thread %u of block %zu at line %d of %s%s\n",
		running->kernel->name, what, w.memory, (size_t)w.offset, mine.thread, (size_t)mine.block, mine.line,
		running->kernel->file, with.c_str());
}

bool covers(const Knowledge &k, const Access &a)
{
	const auto known = k.find(a.block);
	if (known == k.end())
		return false;
	if (a.epoch < known->second.epoch)
		return true;
	const auto clock = known->second.clocks.find(a.thread);
	return clock != known->second.clocks.end() && a.clock <= clock->second;
}

// Whether an earlier access is ordered before what the running thread does now.
bool ordered(const Access &a, BlockState &s, const Thread &t)
{
	if (a.block == t.block->linear) {
		if (a.thread == t.linear || a.epoch < s.epoch)
			return true;
		if (a.thread / 128 == t.linear / 128 && a.round < s.rounds[t.linear / 128])
			return true;
		return a.thread / 32 == t.linear / 32 && a.clock <= s.clock(t.linear, a.thread % 32);
	}
	if (!s.known.empty() && covers(s.known, a))
		return true;
	if (s.learned.empty())
		return false;
	const auto learned = s.learned.find(t.linear);
	return learned != s.learned.end() && covers(learned->second, a);
}

// check compares an access with those before it, and remembers it; false if wrong.
bool check(Cell &c, Where w, const Access &mine, bool write, BlockState &s, const Thread &t)
{
	const auto conflict = [&](const Access &a) {
		return a.serial == mine.serial && !(a.atomic && mine.atomic) && !ordered(a, s, t);
	};
	const bool before = bad;
	bad = false;
	if (conflict(c.write))
		report(write ? "a race of two writes" : "a race of a read with a write", w, mine, &c.write);
	if (write) {
		for (const Access &r : c.reads)
			if (conflict(r))
				report("a race of a write with a read", w, mine, &r);
		c.write = mine;
		c.written = true;
		if (!mine.atomic)
			c.reads[0].serial = c.reads[1].serial = 0;
	} else {
		if (!c.written)
			report("a read of what was never written", w, mine, nullptr);
		c.written = true; // told once
		Access &first = c.reads[0], &second = c.reads[1];
		if (first.serial != mine.serial || ordered(first, s, t))
			first = mine;
		else if (second.serial != mine.serial || ordered(second, s, t) || second.thread / 32 == first.thread / 32)
			second = mine;
	}
	const bool ok = !bad;
	bad |= before;
	return ok;
}

// Whether bytes of shared memory are within an array of the kernel's own or the dynamic one.
bool in_array(const Kernel &k, size_t offset, size_t n)
{
	if (offset >= k.own_shared)
		return offset + n <= k.own_shared + running->dynamic_shared;
	for (const auto &[begin, end] : k.arrays)
		if (offset >= begin && offset + n <= end)
			return true;
	return false;
}

void seen(const void *p, size_t n, emulation::Access how, int line)
{
	if (!running || !current)
		return;
	const Thread &t = *current;
	const Kernel &k = *running->kernel;
	BlockState &s = state(*t.block);
	const bool write = how == emulation::Access::write || how == emulation::Access::atomic;
	const auto address = reinterpret_cast<uintptr_t>(p), begin = reinterpret_cast<uintptr_t>(t.block->shared);
	const size_t shared = k.own_shared + running->dynamic_shared;
	Access a;
	a.block = t.block->linear;
	a.epoch = s.epoch;
	a.round = s.rounds[t.linear / 128];
	a.clock = s.clock(t.linear, t.lane);
	a.thread = t.linear;
	a.atomic = how == emulation::Access::atomic || how == emulation::Access::acquire;
	a.line = line;
	if (shared && address >= begin && address < begin + shared) {
		const size_t offset = address - begin;
		if (!in_array(k, offset, n)) {
			fail(Fault::illegal_address, "%s:%d: illegal address: %zu bytes at %zu of shared memory are in no array", k.file, line, n,
				offset);
		}
		a.serial = s.serial;
		if (s.shared.cells.empty())
			s.shared.resize(shared);
		s.shared.each(offset, n, [&](Cell &c, size_t at) {
			if (c.write.serial != a.serial)
				c.written = c.written && c.reads[0].serial == a.serial; // of a block before
			return check(c, {"shared", at}, a, write, s, t);
		});
		return;
	}
	auto it = allocations.upper_bound(address);
	if (it == allocations.begin())
		fail(Fault::illegal_address, "%s:%d: illegal address %#zx is before all allocations", k.file, line, (size_t)address);
	--it;
	Allocation &allocation = it->second;
	const uintptr_t offset = address - it->first;
	if (offset + n > allocation.size)
		fail(Fault::illegal_address, "%s:%d: illegal address: %zu bytes at %zu of an allocation of %zu", k.file, line, n,
			(size_t)offset, allocation.size);
	a.serial = launches;
	allocation.cells.each(offset, n, [&](Cell &c, size_t at) { return check(c, {"global", at}, a, write, s, t); });
}

} // namespace

void start_launch(const Launch &l)
{
	running = &l;
	launches++;
	bad = false;
	reports = 0;
	states.clear();
	released.clear();
}

void start(const Block &b)
{
	auto &s = states[&b];
	if (!s)
		s = std::make_unique<BlockState>();
	s->serial = ++serials;
	s->epoch = 0;
	s->rounds.assign((b.threads.size() + 127) / 128, 0);
	s->clocks.assign(b.threads.size() * 32, 0);
	for (unsigned i = 0; i < b.threads.size(); i++)
		s->clock(i, i % 32) = 1;
	s->known.clear();
	s->learned.clear();
	s->fenced.clear();
}

void block_barrier(const Block &b)
{
	BlockState &s = state(b);
	s.epoch++;
	for (const auto &[thread, knowledge] : s.learned)
		add(s.known, knowledge);
	s.learned.clear();
}

void warp_barrier(const Thread &first, unsigned lanes)
{
	BlockState &s = state(*first.block);
	uint32_t joined[32] = {};
	for (unsigned l = 0; l < 32; l++)
		if (lanes >> l & 1)
			for (unsigned k = 0; k < 32; k++)
				joined[k] = std::max(joined[k], s.clock(first.linear + l, k));
	for (unsigned l = 0; l < 32; l++)
		if (lanes >> l & 1) {
			for (unsigned k = 0; k < 32; k++)
				s.clock(first.linear + l, k) = joined[k];
			s.clock(first.linear + l, l)++;
		}
}

void warpgroup_barrier(const Block &b, unsigned group) { state(b).rounds[group]++; }

bool found()
{
	running = nullptr;
	return bad;
}

void allocated(uintptr_t p, size_t n)
{
	Allocation &a = allocations[p];
	a.size = n;
	a.cells = {};
	a.cells.resize(n);
}

void freed(uintptr_t p) { allocations.erase(p); }

void written(uintptr_t p, size_t n)
{
	auto it = allocations.upper_bound(p);
	if (it == allocations.begin())
		return;
	--it;
	const size_t offset = p - it->first;
	if (offset < it->second.size)
		it->second.cells.each(offset, std::min(n, it->second.size - offset), [](Cell &c, size_t) { return c.written = true; });
}

} // namespace races

void fence()
{
	if (!races::running)
		return;
	const Thread &t = *current;
	races::BlockState &s = races::state(*t.block);
	races::Knowledge &k = s.fenced[t.linear];
	k = s.known;
	const auto learned = s.learned.find(t.linear);
	if (learned != s.learned.end())
		add(k, learned->second);
	races::Known &own = k[t.block->linear];
	own.epoch = s.epoch;
	own.clocks[t.linear] = s.clock(t.linear, t.lane)++;
}

void access(const void *p, size_t n, Access how, int line)
{
	races::seen(p, n, how, line);
	if (!races::running || (how != Access::atomic && how != Access::acquire))
		return;
	const Thread &t = *current;
	races::BlockState &s = races::state(*t.block);
	races::Knowledge &k = races::released[reinterpret_cast<uintptr_t>(p)];
	add(s.learned[t.linear], k);
	const auto fenced = s.fenced.find(t.linear);
	if (how == Access::atomic && fenced != s.fenced.end())
		add(k, fenced->second);
}

} // namespace emulation
#endif
