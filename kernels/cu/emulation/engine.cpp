// Blocks and the launches that they are of.
#include "machine.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "races.h"
#include "system.h"

namespace emulation {

Thread *current;
dim3 block_size, grid_size;

const Launch *running;
Block *active;
bool ahead, polled;
Fault fault;

void report(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "emulated driver: kernel %s, block (%u,%u,%u): %s\n", running->kernel->name,
		active->index.x, active->index.y, active->index.z, text);
}

namespace {

bool moved; // a thread did something but poll
std::minstd_rand random_numbers;
enum { forward, reverse, shuffled } order;
unsigned generation; // of stacks: after a fault all are free

// The body of every fiber: threads that start, one after the other in the block's
// order, until one waits; it keeps the stack, and the others go on with another.
size_t position; // in active->order
void fiber()
{
	char *stack = current->stack;
	for (;;) {
		running->kernel->call(running->parameters);
		Thread &t = *current;
		if (!t.copies.empty())
			wait_for_groups(0);
		check_products(t);
		if (running->dependent && !t.waited) // then the next launch would not wait for the one before
			fail(Fault::failed, "ends, and has not waited for the kernel before");
		t.state = Thread::exited;
		active->exited++;
		t.warp->exited |= 1u << t.lane;
		if (!t.warp->open.empty())
			complete(*t.warp);
		if (position + 1 >= active->order.size())
			break;
		Thread &next = active->threads[active->order[position + 1]];
		if (next.state != Thread::fresh)
			break;
		position++;
		t.stack = nullptr;
		next.stack = stack;
		next.state = Thread::ready;
		current = &next;
	}
	to_scheduler();
	abort();
}

void resume(Thread &t)
{
	if (t.state == Thread::fresh) {
		t.state = Thread::ready;
		prepare(t, fiber);
	}
	switch_to(t);
	// Not t if it ended and its fiber took up others.
	if (current->state == Thread::exited) {
		release_stack(current->stack);
		current->stack = nullptr;
	}
}

// No thread can go on, and not all have ended: says why.
void report_stuck(const Block &b)
{
	std::map<std::string, unsigned> places;
	for (const Thread &t : b.threads) {
		std::string p = "ended";
		if (t.state != Thread::exited) {
			const char *what = t.state == Thread::at_barrier ? "at bar.sync" :
				t.state == Thread::at_warpgroup_barrier ? "at a barrier of the warpgroup" : "at a warp operation";
			const char *file = strrchr(t.file, '/');
			p = std::string(what) + " (" + (file ? file + 1 : t.file) + ":" + std::to_string(t.line) + ")";
		}
		places[p]++;
	}
	std::string list;
	for (const auto &[place, count] : places)
		list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + place;
	report("divergent barrier: of %zu threads %s", b.threads.size(), list.c_str());
}

// Whether all threads wait in the same line.
bool together(const Block &b)
{
	const Thread &first = b.threads[0];
	return std::all_of(b.threads.begin(), b.threads.end(),
		[&](const Thread &t) { return t.line == first.line && t.file == first.file; });
}

size_t shared_bytes(const Launch &l) { return l.kernel->own_shared + l.dynamic_shared; }

void start(Block &b, const Launch &l, uint64_t linear)
{
	const unsigned n = l.block.count();
	b.linear = linear;
	b.index = dim3(linear % l.grid.x, linear / l.grid.x % l.grid.y, linear / l.grid.x / l.grid.y);
	b.waiting = b.waiting_for_previous = b.exited = 0;
	if (b.threads.size() != n) {
		b.threads.resize(n);
		b.warps.resize((n + 31) / 32);
		b.order.resize(n);
	}
	for (Warp &w : b.warps) {
		w.present = w.exited = 0;
		w.products = 0;
		w.spare.insert(w.spare.end(), w.open.begin(), w.open.end()); // of a launch that failed
		w.open.clear();
	}
	for (unsigned i = 0; i < n; i++) {
		Thread &t = b.threads[i];
		t.index = dim3(i % l.block.x, i / l.block.x % l.block.y, i / l.block.x / l.block.y);
		t.linear = i;
		t.lane = i % 32;
		t.state = Thread::fresh;
		t.waited = false;
		t.block = &b;
		t.warp = &b.warps[i / 32];
		t.warp->present |= 1u << t.lane;
		t.file = nullptr;
		t.copies.clear();
		t.groups = 0;
		t.products.clear();
		t.product_groups = 0;
		t.fenced = false;
		t.unfenced.clear();
	}
	b.at_warpgroup_barrier.assign((n + 127) / 128, 0);
	b.unfenced.assign((shared_bytes(l) + 15) / 16, 0);
	std::iota(b.order.begin(), b.order.end(), 0u);
	if (order == reverse)
		std::reverse(b.order.begin(), b.order.end());
	races::start(b);
}

// Runs the block until it ends, some of its threads wait for the launch
// before while the others cannot go on, or one has polled and the others cannot go on
// without it.
void run(Block &b)
{
	active = &b;
	const unsigned n = b.threads.size();
	while (fault == Fault::none) {
		if (order == shuffled)
			std::shuffle(b.order.begin(), b.order.end(), random_numbers);
		bool progress = false, polling = false;
		for (position = 0; position < n; position++) {
			Thread &t = b.threads[b.order[position]];
			if (t.state == Thread::fresh || t.state == Thread::ready) {
				progress = true;
				resume(t);
				if (fault != Fault::none)
					return;
				moved |= !polled;
				polling |= polled;
				polled = false;
			}
		}
		if (b.exited == n && !same_products(b)) {
			report("the warps of a warpgroup started different products");
			fault = Fault::failed;
		}
		if (b.exited == n || polling || (b.waiting_for_previous > 0 && !progress))
			return;
		if (b.waiting == n && together(b)) {
			b.waiting = 0;
			for (Thread &t : b.threads)
				t.state = Thread::ready;
			races::block_barrier(b);
		} else if (!progress || b.waiting == n) {
			report_stuck(b);
			fault = Fault::failed;
		}
	}
}

// Shared memory holds garbage when a block starts.
void fill(Block &b, const Launch &l) { memset(b.shared, 0xa5, shared_bytes(l)); }

void set_order()
{
	const char *s = environment("BCNN_EMULATOR_ORDER");
	order = forward;
	if (s && strcmp(s, "reverse") == 0)
		order = reverse;
	else if (s && strncmp(s, "random", 6) == 0) {
		order = shuffled;
		static bool seeded;
		if (!seeded)
			random_numbers.seed(s[6] == ':' ? atoi(s + 7) : 1);
		seeded = true;
	} else if (s && *s && strcmp(s, "forward") != 0) {
		static bool told;
		if (!told)
			fprintf(stderr, "emulated driver: BCNN_EMULATOR_ORDER is %s: want forward, reverse, random or random:SEED\n", s);
		told = true;
	}
}

// Blocks in the chosen order.
std::vector<uint64_t> block_order(uint64_t n)
{
	std::vector<uint64_t> o(n);
	std::iota(o.begin(), o.end(), 0);
	if (order == reverse)
		std::reverse(o.begin(), o.end());
	else if (order == shuffled)
		std::shuffle(o.begin(), o.end(), random_numbers);
	return o;
}

// Notes a round in which nobody did anything but poll. After many of them, which leave
// room for loops that count, nobody ever will.
void idle(unsigned &rounds, const Block &b)
{
	rounds = moved ? 0 : rounds + 1;
	moved = false;
	if (rounds < 1000)
		return;
	const auto t = std::find_if(b.threads.begin(), b.threads.end(), [](const Thread &t) { return t.state == Thread::ready; });
	report("divergent barrier: waits for ever for what nobody writes (%s:%d)", t->file, t->line);
	fault = Fault::failed;
}

void run_to_end(Block &b)
{
	for (unsigned rounds = 0; b.exited < b.threads.size();) {
		run(b);
		if (fault == Fault::none && b.exited < b.threads.size())
			idle(rounds, b);
		if (fault != Fault::none)
			return;
	}
}

} // namespace

// Blocks of a dependent launch that have begun.
struct Early {
	std::vector<uint64_t> order; // of all blocks: these are the first
	std::vector<Block> blocks;
	std::vector<std::unique_ptr<Shared>> memories;
	unsigned stacks_of = generation;
	~Early()
	{
		for (Block &b : blocks) {
			for (Thread &t : b.threads)
				if (t.stack && t.state != Thread::exited && t.state != Thread::fresh && stacks_of == generation)
					release_stack(t.stack);
			for (Warp &w : b.warps) {
				for (Exchange *e : w.spare)
					delete e;
				for (Exchange *e : w.open)
					delete e;
			}
		}
	}
};

namespace {

// Two blocks begin, which show what a kernel does without waiting.
[[maybe_unused]] void begin(Launch &l)
{
	forget(l);
	Early *const e = l.early = new Early;
	e->order = block_order(l.grid.count());
	e->blocks.resize(std::min<size_t>(e->order.size(), 2));
	ahead = true;
	for (size_t i = 0; i < e->blocks.size() && fault == Fault::none; i++) {
		Block &b = e->blocks[i];
		start(b, l, e->order[i]);
		e->memories.push_back(std::make_unique<Shared>(shared_bytes(l)));
		b.shared = e->memories.back()->begin;
		fill(b, l);
		run(b);
	}
	ahead = false;
}

void run_blocks(Launch &l)
{
	static Block b; // keeps its vectors
	const std::unique_ptr<Early> early(l.early);
	l.early = nullptr;
	for (size_t i = 0; early && i < early->blocks.size(); i++) {
		Block &begun = early->blocks[i];
		for (Thread &t : begun.threads)
			if (t.state == Thread::at_previous)
				t.state = Thread::ready;
		begun.waiting_for_previous = 0;
		run_to_end(begun);
		if (fault != Fault::none)
			return;
	}
	const Shared memory(shared_bytes(l));
	b.shared = memory.begin;
	const std::vector<uint64_t> order = early ? early->order : block_order(l.grid.count());
	for (size_t i = early ? early->blocks.size() : 0; i < order.size(); i++) {
		start(b, l, order[i]);
		fill(b, l);
		run_to_end(b);
		if (fault != Fault::none)
			return;
	}
}

// All blocks of a cooperative launch are there at once.
void run_cooperative(const Launch &l)
{
	std::vector<Block> blocks(l.grid.count());
	std::vector<std::unique_ptr<Shared>> memories;
	for (uint64_t i = 0; i < blocks.size(); i++) {
		start(blocks[i], l, i);
		memories.push_back(std::make_unique<Shared>(shared_bytes(l)));
		blocks[i].shared = memories.back()->begin;
		fill(blocks[i], l);
	}
	const auto has_ended = [](const Block &b) { return b.exited == b.threads.size(); };
	unsigned rounds = 0;
	while (fault == Fault::none) {
		for (uint64_t i : block_order(blocks.size())) {
			if (!has_ended(blocks[i]))
				run(blocks[i]);
			if (fault != Fault::none)
				break;
		}
		const auto waits = std::find_if_not(blocks.begin(), blocks.end(), has_ended);
		if (waits == blocks.end())
			break;
		if (fault == Fault::none)
			idle(rounds, *waits);
	}
	for (Block &b : blocks)
		for (Warp &w : b.warps)
			for (Exchange *e : w.spare)
				delete e;
}

} // namespace

void forget(Launch &l)
{
	delete l.early;
	l.early = nullptr;
}

static void enter(const Launch &l)
{
	running = &l;
	block_size = l.block;
	grid_size = l.grid;
}

Fault launch(Launch &l, [[maybe_unused]] Launch *next)
{
	catch_faults();
	set_order();
	fault = Fault::none;
	polled = moved = false;
	begin_kernel();
#if !defined(EMULATION_CHECKED) // whose clocks are those of one launch
	if (next) {
		enter(*next);
		begin(*next);
	}
#endif
	enter(l);
	if (fault == Fault::none) {
		races::start_launch(l);
		if (l.cooperative)
			run_cooperative(l);
		else
			run_blocks(l);
	}
	end_kernel();
	if (fault != Fault::none) { // threads that will never end leave their stacks
		generation++;
		release_all_stacks();
	}
	const Fault f = races::found() && fault == Fault::none ? Fault::failed : fault;
	running = nullptr;
	return f;
}

} // namespace emulation
