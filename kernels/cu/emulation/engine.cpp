// Fibers, blocks and warps.
#include "engine.h"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(EMULATION_ADDRESS)
#include <sanitizer/asan_interface.h>
#endif

#include "races.h"

namespace emulation {

Thread *current;
dim3 block_size, grid_size;

namespace {

const Launch *running;
bool ahead; // of the launch before the one that runs, whose blocks begin
bool polled; // the thread that ran last asked for others to run
bool moved;  // a thread did something else
Fault fault;
Block *active; // the block whose shared memory is in place
void *scheduler_stack;
std::vector<char *> stacks, free_stacks;
std::minstd_rand random_numbers;
enum { forward, reverse, shuffled } order;

#if defined(EMULATION_ADDRESS)
const size_t stack_size = 256 << 10; // red zones between variables
#else
const size_t stack_size = 64 << 10;
#endif
const size_t page = 4096;

// switch_stack saves the registers that a call preserves, puts the stack pointer in
// *save and goes on where `to` was saved.
extern "C" EMULATION void bitcnn_switch_stack(void **save, void *to);
#if defined(__x86_64__)
__asm__(R"(
	.text
	.globl bitcnn_switch_stack
	.hidden bitcnn_switch_stack
	.type bitcnn_switch_stack, @function
bitcnn_switch_stack:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size bitcnn_switch_stack, .-bitcnn_switch_stack
)");
void *first_frame(char *top, void (*entry)())
{
	void **p = reinterpret_cast<void **>(top);
	*--p = nullptr; // where entry would return to
	*--p = reinterpret_cast<void *>(entry);
	return p - 6;
}
#elif defined(__aarch64__)
__asm__(R"(
	.text
	.globl bitcnn_switch_stack
	.hidden bitcnn_switch_stack
	.type bitcnn_switch_stack, %function
bitcnn_switch_stack:
	sub sp, sp, #160
	stp x19, x20, [sp]
	stp x21, x22, [sp, #16]
	stp x23, x24, [sp, #32]
	stp x25, x26, [sp, #48]
	stp x27, x28, [sp, #64]
	stp x29, x30, [sp, #80]
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mov x9, sp
	str x9, [x0]
	mov sp, x1
	ldp x19, x20, [sp]
	ldp x21, x22, [sp, #16]
	ldp x23, x24, [sp, #32]
	ldp x25, x26, [sp, #48]
	ldp x27, x28, [sp, #64]
	ldp x29, x30, [sp, #80]
	ldp d8, d9, [sp, #96]
	ldp d10, d11, [sp, #112]
	ldp d12, d13, [sp, #128]
	ldp d14, d15, [sp, #144]
	add sp, sp, #160
	ret
	.size bitcnn_switch_stack, .-bitcnn_switch_stack
)");
void *first_frame(char *top, void (*entry)())
{
	void **p = reinterpret_cast<void **>(top) - 20;
	memset(p, 0, 160);
	p[11] = reinterpret_cast<void *>(entry);
	return p;
}
#else
#error "the emulated driver runs on amd64 and arm64 only"
#endif

void to_scheduler() { bitcnn_switch_stack(&current->stack_pointer, scheduler_stack); }

char *take_stack()
{
	if (free_stacks.empty()) {
		void *p = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED || mprotect(p, page, PROT_NONE)) {
			perror("emulated driver: no memory for the stack of a thread");
			abort();
		}
		stacks.push_back(static_cast<char *>(p));
		return stacks.back();
	}
	char *s = free_stacks.back();
	free_stacks.pop_back();
	return s;
}

void complete(Warp &w);

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
		t.stack = take_stack();
#if defined(EMULATION_ADDRESS)
		__asan_unpoison_memory_region(t.stack + page, stack_size - page); // frames of others
#endif
		// Stacks that begin at the same place of a page compete for the cache.
		char *top = t.stack + stack_size - t.linear % 31 * 64 - 64;
		t.stack_pointer = first_frame(top, fiber);
	}
	current = &t;
	bitcnn_switch_stack(&scheduler_stack, t.stack_pointer);
	// Not t if it ended and its fiber took up others.
	if (current->state == Thread::exited) {
		free_stacks.push_back(current->stack);
		current->stack = nullptr;
	}
}

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
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

void complete_one(Warp &w, size_t i)
{
	Exchange *e = w.open[i];
	e->readers = __builtin_popcount(e->arrived);
	w.open.erase(w.open.begin() + i);
	Thread *first = &active->threads[32 * (&w - active->warps.data())];
	for (unsigned lane = 0; lane < 32; lane++)
		if (e->arrived >> lane & 1)
			first[lane].state = Thread::ready;
	races::warp_barrier(*first, e->arrived);
}

// A thread that has ended may be what others of its warp wait for.
void complete(Warp &w)
{
	for (size_t i = w.open.size(); i-- > 0;) {
		const Exchange *e = w.open[i];
		const unsigned need = e->mask & w.present & ~w.exited;
		if ((e->arrived & need) == need)
			complete_one(w, i);
	}
}

// No thread can go on, and not all have ended: says why.
void report_stuck(const Block &b)
{
	std::map<std::string, unsigned> places;
	for (const Thread &t : b.threads) {
		std::string p = "ended";
		if (t.state != Thread::exited) {
			const char *what = t.state == Thread::at_barrier ? "at __syncthreads" :
				t.state == Thread::at_grid_barrier ? "at grid_sync" :
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

// Whether all threads wait in the same line of the source.
bool together(const Block &b)
{
	const Thread &first = b.threads[0];
	return std::all_of(b.threads.begin(), b.threads.end(),
		[&](const Thread &t) { return t.line == first.line && t.file == first.file; });
}

void start(Block &b, const Launch &l, uint64_t linear)
{
	const unsigned n = l.block.count();
	b.linear = linear;
	b.index = dim3(linear % l.grid.x, linear / l.grid.x % l.grid.y, linear / l.grid.x / l.grid.y);
	b.waiting = b.waiting_for_grid = b.waiting_for_previous = b.exited = 0;
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
	b.unfenced.assign((l.kernel->own_shared + l.dynamic_shared + 15) / 16, 0);
	std::iota(b.order.begin(), b.order.end(), 0u);
	if (order == reverse)
		std::reverse(b.order.begin(), b.order.end());
	races::start(b);
}

// Runs the block until it ends, all its threads wait for the grid, some for the launch
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
		} else if (b.waiting_for_grid == n && together(b)) {
			return;
		} else if (!progress || b.waiting == n || b.waiting_for_grid == n) {
			report_stuck(b);
			fault = Fault::failed;
		}
	}
}

// Shared memory holds garbage when a block starts.
__attribute__((no_sanitize("address"))) void fill(char *p, size_t n, unsigned char v)
{
	for (volatile char *q = p; n > 0; n--)
		*q++ = (char)v;
}

__attribute__((no_sanitize("address"))) void copy(char *to, const char *from, size_t n)
{
	volatile char *t = to;
	for (const volatile char *f = from; n > 0; n--)
		*t++ = *f++;
}

// The dynamic shared memory of a block ends where memory that cannot be touched
// begins.
struct Dynamic {
	char *begin = nullptr, *map = nullptr;
	size_t mapped = 0;
	explicit Dynamic(size_t n)
	{
		if (n == 0)
			return;
#if defined(EMULATION_ADDRESS)
		void *p = nullptr;
		if (posix_memalign(&p, 16, n)) // red zones begin right behind it
			abort();
		begin = static_cast<char *>(p);
#else
		const size_t size = (n + 15) / 16 * 16;
		mapped = (size + page - 1) / page * page + page;
		void *p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || mprotect(static_cast<char *>(p) + mapped - page, page, PROT_NONE)) {
			perror("emulated driver: no memory for shared memory");
			abort();
		}
		map = static_cast<char *>(p);
		begin = map + mapped - page - size;
#endif
	}
	~Dynamic()
	{
#if defined(EMULATION_ADDRESS)
		free(begin);
#else
		if (map)
			munmap(map, mapped);
#endif
	}
	Dynamic(const Dynamic &) = delete;
};

void set_order()
{
	const char *s = getenv("BCNN_EMULATOR_ORDER");
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

size_t static_bytes(const Launch &l) { return l.kernel->shared_end - l.kernel->shared_begin; }
size_t dynamic_bytes(const Launch &l) { return l.kernel->own_shared + l.dynamic_shared; }

// Runs a block that has the static shared memory of its file.
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

unsigned generation; // of stacks: after a fault all are free

} // namespace

// Blocks of a dependent launch that have begun.
struct Early {
	std::vector<uint64_t> order; // of all blocks: these are the first
	std::vector<Block> blocks;
	std::vector<std::unique_ptr<Dynamic>> dynamics;
	unsigned stacks_of = generation;
	~Early()
	{
		for (Block &b : blocks) {
			for (Thread &t : b.threads)
				if (t.stack && t.state != Thread::exited && t.state != Thread::fresh && stacks_of == generation)
					free_stacks.push_back(t.stack);
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
		e->dynamics.push_back(std::make_unique<Dynamic>(dynamic_bytes(l)));
		b.dynamic = e->dynamics.back()->begin;
		fill(l.kernel->shared_begin, static_bytes(l), 0xa5);
		fill(b.dynamic, dynamic_bytes(l), 0xa5);
		run(b);
		b.shared.resize(static_bytes(l));
		copy(reinterpret_cast<char *>(b.shared.data()), l.kernel->shared_begin, static_bytes(l));
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
		copy(l.kernel->shared_begin, reinterpret_cast<char *>(begun.shared.data()), static_bytes(l));
		for (Thread &t : begun.threads)
			if (t.state == Thread::at_previous)
				t.state = Thread::ready;
		begun.waiting_for_previous = 0;
		run_to_end(begun);
		if (fault != Fault::none)
			return;
	}
	Dynamic dynamic(dynamic_bytes(l));
	b.dynamic = dynamic.begin;
	const std::vector<uint64_t> order = early ? early->order : block_order(l.grid.count());
	for (size_t i = early ? early->blocks.size() : 0; i < order.size(); i++) {
		start(b, l, order[i]);
		fill(l.kernel->shared_begin, static_bytes(l), 0xa5);
		fill(dynamic.begin, dynamic_bytes(l), 0xa5);
		run_to_end(b);
		if (fault != Fault::none)
			return;
	}
}

// All blocks of a cooperative launch are there at once; their static shared memory
// takes turns in the one place that it has.
void run_cooperative(const Launch &l)
{
	std::vector<Block> blocks(l.grid.count());
	std::vector<Dynamic *> dynamics;
	const size_t shared = l.kernel->shared_end - l.kernel->shared_begin, dynamic = l.kernel->own_shared + l.dynamic_shared;
	for (uint64_t i = 0; i < blocks.size(); i++) {
		start(blocks[i], l, i);
		blocks[i].shared.assign(shared, 0xa5);
		dynamics.push_back(new Dynamic(dynamic));
		blocks[i].dynamic = dynamics.back()->begin;
		fill(blocks[i].dynamic, dynamic, 0xa5);
	}
	const auto has_ended = [](const Block &b) { return b.exited == b.threads.size(); };
	const auto waits = [](const Block &b) { return b.waiting_for_grid == b.threads.size(); };
	unsigned rounds = 0;
	for (bool done = false; !done && fault == Fault::none;) {
		for (uint64_t i : block_order(blocks.size())) {
			Block &b = blocks[i];
			if (has_ended(b) || waits(b))
				continue;
			copy(l.kernel->shared_begin, reinterpret_cast<char *>(b.shared.data()), shared);
			run(b);
			if (fault != Fault::none)
				break;
			copy(reinterpret_cast<char *>(b.shared.data()), l.kernel->shared_begin, shared);
		}
		const size_t ended = std::count_if(blocks.begin(), blocks.end(), has_ended);
		const size_t waiting = std::count_if(blocks.begin(), blocks.end(), waits);
		done = ended == blocks.size();
		if (fault != Fault::none || done)
			continue;
		if (ended + waiting < blocks.size()) {
			idle(rounds, *std::find_if(blocks.begin(), blocks.end(), [&](const Block &b) { return !has_ended(b) && !waits(b); }));
		} else if (ended > 0) {
			report("divergent barrier: %zu of %zu blocks ended while others wait at grid_sync", ended, blocks.size());
			fault = Fault::failed;
		} else {
			for (Block &b : blocks) {
				b.waiting_for_grid = 0;
				for (Thread &t : b.threads)
					t.state = Thread::ready;
				races::block_barrier(b);
			}
			races::grid_barrier();
		}
	}
	for (Dynamic *d : dynamics)
		delete d;
	for (Block &b : blocks)
		for (Warp &w : b.warps)
			for (Exchange *e : w.spare)
				delete e;
}

// A thread that touches what it must not: the launch fails, the process goes on.
#if defined(EMULATION_ADDRESS)
void catch_faults() {} // AddressSanitizer does
bool in_kernel;
unsigned long kernel_thread;
#else
struct sigaction previous_segv, previous_bus;
alignas(16) char landing_stack[32 << 10];
volatile uintptr_t fault_address;
bool in_kernel;
unsigned long kernel_thread;

void landing()
{
	report("thread (%u,%u,%u): illegal address %#zx", current->index.x, current->index.y, current->index.z,
		(size_t)fault_address);
	fault = Fault::illegal_address;
	to_scheduler();
	abort();
}

void on_fault(int signal, siginfo_t *info, void *context)
{
	if (in_kernel && (unsigned long)gettid() == kernel_thread) {
		fault_address = reinterpret_cast<uintptr_t>(info->si_addr);
		auto *c = static_cast<ucontext_t *>(context);
		char *top = landing_stack + sizeof landing_stack - 64;
#if defined(__x86_64__)
		c->uc_mcontext.gregs[REG_RSP] = reinterpret_cast<greg_t>(top - 8);
		c->uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(landing);
#else
		c->uc_mcontext.sp = reinterpret_cast<uintptr_t>(top);
		c->uc_mcontext.pc = reinterpret_cast<uintptr_t>(landing);
#endif
		return;
	}
	const struct sigaction &old = signal == SIGBUS ? previous_bus : previous_segv;
	if (old.sa_flags & SA_SIGINFO) {
		old.sa_sigaction(signal, info, context);
	} else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
		old.sa_handler(signal);
	} else {
		sigaction(signal, &old, nullptr); // it comes again
	}
}

void catch_faults()
{
	static bool done;
	if (done)
		return;
	done = true;
	struct sigaction a = {};
	a.sa_sigaction = on_fault;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigaction(SIGSEGV, &a, &previous_segv);
	sigaction(SIGBUS, &a, &previous_bus);
}
#endif

} // namespace

void fail(Fault f, const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	report("thread (%u,%u,%u): %s", current->index.x, current->index.y, current->index.z, text);
	fault = f;
	to_scheduler();
	abort();
}

void wait_for_block(const char *file, int line)
{
	Thread &t = *current;
	t.state = Thread::at_barrier;
	t.file = file;
	t.line = line;
	active->waiting++;
	to_scheduler();
}

void wait_for_warpgroup(unsigned barrier, unsigned threads, const char *file, int line)
{
	Thread &t = *current;
	const unsigned group = t.linear / 128, size = 128;
	if (barrier != group + 1 || threads != size || (group + 1) * size > active->threads.size())
		fail(Fault::failed, "%s:%d: barrier %u of %u threads, by one of warpgroup %u", file, line, barrier, threads, group);
	t.file = file;
	t.line = line;
	t.state = Thread::at_warpgroup_barrier;
	if (++active->at_warpgroup_barrier[group] < size) {
		to_scheduler();
		return;
	}
	active->at_warpgroup_barrier[group] = 0;
	for (unsigned i = group * size; i < (group + 1) * size; i++) {
		const Thread &other = active->threads[i];
		if (other.line != line || other.file != file)
			fail(Fault::failed, "%s:%d: divergent barrier: others of the warpgroup are at line %d", file, line, other.line);
		active->threads[i].state = Thread::ready;
	}
	races::warpgroup_barrier(*active, group);
}

void wait_for_grid(unsigned *barrier, const char *file, int line)
{
	if (!running->cooperative)
		fail(Fault::failed, "%s:%d: grid_sync in a launch that is not cooperative", file, line);
	atomic_access(barrier, sizeof *barrier);
	Thread &t = *current;
	t.state = Thread::at_grid_barrier;
	t.file = file;
	t.line = line;
	active->waiting_for_grid++;
	to_scheduler();
}

void wait_for_previous(const char *file, int line)
{
	Thread &t = *current;
	t.waited = true;
	if (!ahead)
		return;
	t.state = Thread::at_previous;
	t.file = file;
	t.line = line;
	active->waiting_for_previous++;
	to_scheduler();
}

Exchange *exchange(unsigned mask, const void *value, size_t size, const char *operation, const char *file, int line)
{
	Thread &t = *current;
	Warp &w = *t.warp;
	const unsigned me = 1u << t.lane;
	if (!(mask & me))
		fail(Fault::failed, "%s:%d: %s by lane %u, which is not in its mask %#x", file, line, operation, t.lane, mask);
	size_t i = 0;
	while (i < w.open.size() && !(w.open[i]->mask == mask && w.open[i]->line == line && w.open[i]->file == file &&
		strcmp(w.open[i]->operation, operation) == 0))
		i++;
	Exchange *e;
	if (i < w.open.size()) {
		e = w.open[i];
	} else {
		if (w.spare.empty())
			w.spare.push_back(new Exchange);
		e = w.spare.back();
		w.spare.pop_back();
		e->mask = mask;
		e->arrived = 0;
		e->operation = operation;
		e->file = file;
		e->line = line;
		w.open.push_back(e);
	}
	e->arrived |= me;
	memcpy(e->values[t.lane], value, size);
	const unsigned need = mask & w.present & ~w.exited;
	t.file = file;
	t.line = line;
	t.state = Thread::in_exchange;
	if ((e->arrived & need) == need)
		complete_one(w, i);
	else
		to_scheduler();
	return e;
}

void finish(Exchange *e)
{
	if (--e->readers == 0)
		current->warp->spare.push_back(e);
}

void start_copy(void *to, const void *from, unsigned bytes, unsigned read)
{
	Thread &t = *current;
	t.copies.push_back({to, from, bytes, read, t.groups});
}

void close_group() { current->groups++; }

// Products must not read what a copy left before the thread that made it has fenced it.
static void note_copy(Thread &t, const Copy &c)
{
	const size_t at = (static_cast<char *>(c.to) - t.block->dynamic) / 16;
	if (!t.block->dynamic || c.to < t.block->dynamic || at >= t.block->unfenced.size())
		return;
	const auto mark = (uint16_t)(t.linear + 1);
	if (t.block->unfenced[at] != mark)
		t.unfenced.push_back((uint32_t)at);
	t.block->unfenced[at] = mark;
}

void wait_for_groups(unsigned newest)
{
	Thread &t = *current;
	size_t kept = 0;
	for (const Copy &c : t.copies) {
		if (c.group < t.groups && t.groups - c.group > newest) {
			plain_access(c.to, c.bytes, true);
			if (c.read) {
				plain_access(c.from, c.read, false);
				memcpy(c.to, c.from, c.read);
			}
			memset(static_cast<char *>(c.to) + c.read, 0, c.bytes - c.read);
			note_copy(t, c);
		} else {
			t.copies[kept++] = c;
		}
	}
	t.copies.resize(kept);
}

char *dynamic_shared() { return active->dynamic; }
size_t shared_size() { return running->kernel->own_shared + running->dynamic_shared; }

void poll(const char *file, int line)
{
	Thread &t = *current;
	const bool again = t.file == file && t.line == line;
	t.file = file;
	t.line = line;
	if (!again) // a thread that does not wait must not find what others would have done meanwhile
		return;
	t.state = Thread::ready;
	polled = true;
	to_scheduler();
}

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
	kernel_thread = gettid();
	in_kernel = true;
#if !defined(EMULATION_RACES) // whose clocks are those of one launch
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
	in_kernel = false;
	if (fault != Fault::none) { // threads that will never end leave their stacks
		generation++;
		free_stacks = stacks;
	}
	const Fault f = races::found() && fault == Fault::none ? Fault::failed : fault;
	running = nullptr;
	return f;
}

} // namespace emulation
