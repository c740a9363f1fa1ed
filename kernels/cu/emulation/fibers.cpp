// Fibers, the memory of blocks, and what happens when a thread touches other memory.
#include "machine.h"
#include "system.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(_WIN32)
#include <windows.h>
#else
#include <ucontext.h>
#include <unistd.h>
#endif

namespace emulation {

namespace {

void *scheduler_stack;
std::vector<char *> stacks, free_stacks;

const size_t stack_size = 64 << 10;

// switch_stack saves the registers that a call preserves, puts the stack pointer in
// *save and goes on where `to` was saved.
extern "C" EMULATION void bitcnn_switch_stack(void **save, void *to);
#if defined(__x86_64__) && defined(_WIN32)
// The bounds of the stack, which the system looks at, are in the thread's block: its end,
// where it begins now, and where all of it does.
__asm__(R"(
	.text
	.globl bitcnn_switch_stack
bitcnn_switch_stack:
	pushq %rbp
	pushq %rbx
	pushq %rdi
	pushq %rsi
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	subq $160, %rsp
	movups %xmm6, (%rsp)
	movups %xmm7, 16(%rsp)
	movups %xmm8, 32(%rsp)
	movups %xmm9, 48(%rsp)
	movups %xmm10, 64(%rsp)
	movups %xmm11, 80(%rsp)
	movups %xmm12, 96(%rsp)
	movups %xmm13, 112(%rsp)
	movups %xmm14, 128(%rsp)
	movups %xmm15, 144(%rsp)
	pushq %gs:0x8
	pushq %gs:0x10
	pushq %gs:0x1478
	movq %rsp, (%rcx)
	movq %rdx, %rsp
	popq %gs:0x1478
	popq %gs:0x10
	popq %gs:0x8
	movups (%rsp), %xmm6
	movups 16(%rsp), %xmm7
	movups 32(%rsp), %xmm8
	movups 48(%rsp), %xmm9
	movups 64(%rsp), %xmm10
	movups 80(%rsp), %xmm11
	movups 96(%rsp), %xmm12
	movups 112(%rsp), %xmm13
	movups 128(%rsp), %xmm14
	movups 144(%rsp), %xmm15
	addq $160, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rsi
	popq %rdi
	popq %rbx
	popq %rbp
	ret
)");
void *first_frame(char *stack, char *top, void (*entry)())
{
	void **p = reinterpret_cast<void **>(top - 40); // room for registers, and where entry would return to
	*p = nullptr;
	*--p = reinterpret_cast<void *>(entry);
	p -= 8 + 20;
	*--p = stack + stack_size;
	*--p = stack + page;
	*--p = stack;
	return p;
}
#elif defined(__x86_64__)
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
void *first_frame(char *, char *top, void (*entry)())
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
void *first_frame(char *, char *top, void (*entry)())
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
		char *p = map_pages(stack_size);
		if (!p || !guard_page(p)) {
			perror("emulated driver: no memory for the stack of a thread");
			abort();
		}
		stacks.push_back(p);
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
	// Stacks that begin at the same place of a page compete for the cache.
	char *top = t.stack + stack_size - t.linear % 31 * 64 - 64;
	t.stack_pointer = first_frame(t.stack, top, entry);
}

void switch_to(Thread &t)
{
	current = &t;
	bitcnn_switch_stack(&scheduler_stack, t.stack_pointer);
}

void release_stack(char *stack) { free_stacks.push_back(stack); }
void release_all_stacks() { free_stacks = stacks; }

Shared::Shared(size_t n)
{
	if (n == 0)
		return;
	const size_t size = (n + 15) / 16 * 16;
	mapped = (size + page - 1) / page * page + page;
	map = map_pages(mapped);
	if (!map || !guard_page(map + mapped - page)) {
		perror("emulated driver: no memory for shared memory");
		abort();
	}
	begin = map + mapped - page - size;
}

Shared::~Shared()
{
	if (map)
		unmap_pages(map, mapped);
}

// A thread that touches what it must not: the launch fails, the process goes on.
namespace {

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

#if defined(_WIN32)
LONG CALLBACK on_fault(EXCEPTION_POINTERS *e)
{
	if (!in_kernel || GetCurrentThreadId() != kernel_thread || e->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION)
		return EXCEPTION_CONTINUE_SEARCH;
	fault_address = e->ExceptionRecord->ExceptionInformation[1];
	__asm__ volatile("movq %0, %%gs:0x8\n\tmovq %1, %%gs:0x10\n\tmovq %1, %%gs:0x1478"
		: : "r"(landing_stack + sizeof landing_stack), "r"(landing_stack) : "memory");
	e->ContextRecord->Rsp = reinterpret_cast<uintptr_t>(landing_stack + sizeof landing_stack - 64 - 8);
	e->ContextRecord->Rip = reinterpret_cast<uintptr_t>(landing);
	return EXCEPTION_CONTINUE_EXECUTION;
}

unsigned long this_thread() { return GetCurrentThreadId(); }
void install() { AddVectoredExceptionHandler(1, on_fault); }
#else
struct sigaction previous_segv, previous_bus;

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

unsigned long this_thread() { return gettid(); }

void install()
{
	struct sigaction a = {};
	a.sa_sigaction = on_fault;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigaction(SIGSEGV, &a, &previous_segv);
	sigaction(SIGBUS, &a, &previous_bus);
}
#endif

} // namespace

void catch_faults()
{
	static bool done;
	if (!done)
		install();
	done = true;
}

void begin_kernel()
{
	kernel_thread = this_thread();
	in_kernel = true;
}

void end_kernel() { in_kernel = false; }

} // namespace emulation
