// Fibers, the memory of blocks, and what happens when a thread touches other memory.
#include "machine.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(EMULATION_ADDRESS)
#include <sanitizer/asan_interface.h>
#endif

namespace emulation {

namespace {

void *scheduler_stack;
std::vector<char *> stacks, free_stacks;

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

} // namespace

void to_scheduler() { bitcnn_switch_stack(&current->stack_pointer, scheduler_stack); }

void prepare(Thread &t, void (*entry)())
{
	t.stack = take_stack();
#if defined(EMULATION_ADDRESS)
	__asan_unpoison_memory_region(t.stack + page, stack_size - page); // frames of others
#endif
	// Stacks that begin at the same place of a page compete for the cache.
	char *top = t.stack + stack_size - t.linear % 31 * 64 - 64;
	t.stack_pointer = first_frame(top, entry);
}

void switch_to(Thread &t)
{
	current = &t;
	bitcnn_switch_stack(&scheduler_stack, t.stack_pointer);
}

void release_stack(char *stack) { free_stacks.push_back(stack); }
void release_all_stacks() { free_stacks = stacks; }

Dynamic::Dynamic(size_t n)
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

Dynamic::~Dynamic()
{
#if defined(EMULATION_ADDRESS)
	free(begin);
#else
	if (map)
		munmap(map, mapped);
#endif
}

// A thread that touches what it must not: the launch fails, the process goes on.
#if defined(EMULATION_ADDRESS)
void catch_faults() {} // AddressSanitizer does
void begin_kernel() {}
void end_kernel() {}
#else
namespace {

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

} // namespace

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

void begin_kernel()
{
	kernel_thread = gettid();
	in_kernel = true;
}

void end_kernel() { in_kernel = false; }
#endif

} // namespace emulation
