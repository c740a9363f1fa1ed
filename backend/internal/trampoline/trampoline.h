// TRAMPOLINE defines a function that calls whatever is in bitcnn_slot_name, at first
// another function, with the arguments that it gets: 14 at most, of 64 bits at most.
//
// Drivers and their compilers are called in the default mode of the floating-point unit,
// whatever the one of the thread is, and that comes back when they return, with the flags
// of exceptions: libraries that were built with -ffast-math set another one as they are
// loaded, and any call may. A goroutine that came upon such a thread would compute other
// bits.
//
// Functions are hidden: other libraries of the process must find the driver's. On Windows
// nothing is seen that is not exported, and assemblers cannot go back to the section before.
#if defined(_WIN32)
#define BITCNN_HIDDEN
#define TRAMPOLINE(name, first) \
	void *bitcnn_slot_##name = (void *)first; \
	__attribute__((naked)) void bitcnn_to_##name(void) __asm__(#name); \
	void bitcnn_to_##name(void) { __asm__(BITCNN_TAKE(name)); }
#else
#define BITCNN_HIDDEN __attribute__((visibility("hidden")))
#define TRAMPOLINE(name, first) \
	BITCNN_HIDDEN void *bitcnn_slot_##name = (void *)first; \
	__asm__(".pushsection .text\n.globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name ":\n" \
		BITCNN_TAKE(name) ".size " #name ",.-" #name "\n.popsection\n");
#endif

#if defined(__x86_64__) && defined(_WIN32)
#define BITCNN_TAKE(name) \
	"\tmovq bitcnn_slot_" #name "(%rip), %rax\n" \
	"\tjmp bitcnn_call\n"

// Four arguments are in registers, for which the caller leaves room on the stack. See
// "x64 calling convention" and "x64 exception handling" of Microsoft. It stands before all
// variables, which a compiler that does not optimise would put into .text behind it.
__asm__("\t.text\n.def bitcnn_call\n.scl 3\n.type 32\n.endef\n.seh_proc bitcnn_call\nbitcnn_call:\n"
	"\tpushq %rbp\n"
	"\t.seh_pushreg %rbp\n"
	"\tmovq %rsp, %rbp\n"
	"\t.seh_setframe %rbp, 0\n"
	"\tsubq $128, %rsp\n"
	"\t.seh_stackalloc 128\n"
	"\t.seh_endprologue\n"
	"\tstmxcsr -4(%rbp)\n"
	"\tmovl $0x1f80, -8(%rbp)\n"
	"\tldmxcsr -8(%rbp)\n"
	"\tmovq 48(%rbp), %r10\n\tmovq %r10, 32(%rsp)\n"
	"\tmovq 56(%rbp), %r10\n\tmovq %r10, 40(%rsp)\n"
	"\tmovq 64(%rbp), %r10\n\tmovq %r10, 48(%rsp)\n"
	"\tmovq 72(%rbp), %r10\n\tmovq %r10, 56(%rsp)\n"
	"\tmovq 80(%rbp), %r10\n\tmovq %r10, 64(%rsp)\n"
	"\tmovq 88(%rbp), %r10\n\tmovq %r10, 72(%rsp)\n"
	"\tmovq 96(%rbp), %r10\n\tmovq %r10, 80(%rsp)\n"
	"\tmovq 104(%rbp), %r10\n\tmovq %r10, 88(%rsp)\n"
	"\tmovq 112(%rbp), %r10\n\tmovq %r10, 96(%rsp)\n"
	"\tmovq 120(%rbp), %r10\n\tmovq %r10, 104(%rsp)\n"
	"\tcall *%rax\n"
	"\tldmxcsr -4(%rbp)\n"
	"\tleaq 0(%rbp), %rsp\n"
	"\tpopq %rbp\n"
	"\tret\n"
	".seh_endproc\n");
#elif defined(__x86_64__)
#define BITCNN_TAKE(name) \
	"\tmovq bitcnn_slot_" #name "(%rip), %rax\n" \
	"\tjmp bitcnn_call\n"

// Six arguments are in registers. What is copied beyond the last one is the caller's, and
// of no matter.
__asm__(".pushsection .text\n.type bitcnn_call,@function\nbitcnn_call:\n"
	"\t.cfi_startproc\n"
	"\tpushq %rbp\n"
	"\t.cfi_def_cfa_offset 16\n"
	"\t.cfi_offset %rbp, -16\n"
	"\tmovq %rsp, %rbp\n"
	"\t.cfi_def_cfa_register %rbp\n"
	"\tsubq $16, %rsp\n"
	"\tstmxcsr -4(%rbp)\n"
	"\tmovl $0x1f80, -8(%rbp)\n"
	"\tldmxcsr -8(%rbp)\n"
	"\tpushq 72(%rbp)\n"
	"\tpushq 64(%rbp)\n"
	"\tpushq 56(%rbp)\n"
	"\tpushq 48(%rbp)\n"
	"\tpushq 40(%rbp)\n"
	"\tpushq 32(%rbp)\n"
	"\tpushq 24(%rbp)\n"
	"\tpushq 16(%rbp)\n"
	"\tcall *%rax\n"
	"\tldmxcsr -4(%rbp)\n"
	"\tleave\n"
	"\t.cfi_def_cfa %rsp, 8\n"
	"\tret\n"
	"\t.cfi_endproc\n"
	".size bitcnn_call,.-bitcnn_call\n.popsection\n");
#elif defined(__aarch64__)
#define BITCNN_TAKE(name) \
	"\tadrp x16, bitcnn_slot_" #name "\n" \
	"\tldr x16, [x16, #:lo12:bitcnn_slot_" #name "]\n" \
	"\tb bitcnn_call\n"

// Eight arguments are in registers.
__asm__(".pushsection .text\n.type bitcnn_call,@function\nbitcnn_call:\n"
	"\t.cfi_startproc\n"
	"\tsub sp, sp, #96\n"
	"\t.cfi_def_cfa_offset 96\n"
	"\tstp x29, x30, [sp, #80]\n"
	"\t.cfi_offset 29, -16\n"
	"\t.cfi_offset 30, -8\n"
	"\tadd x29, sp, #80\n"
	"\tmrs x9, fpcr\n"
	"\tmrs x10, fpsr\n"
	"\tstp x9, x10, [sp, #64]\n"
	"\tmsr fpcr, xzr\n"
	"\tldp x9, x10, [sp, #96]\n"
	"\tstp x9, x10, [sp]\n"
	"\tldp x9, x10, [sp, #112]\n"
	"\tstp x9, x10, [sp, #16]\n"
	"\tldp x9, x10, [sp, #128]\n"
	"\tstp x9, x10, [sp, #32]\n"
	"\tblr x16\n"
	"\tldp x9, x10, [sp, #64]\n"
	"\tmsr fpcr, x9\n"
	"\tmsr fpsr, x10\n"
	"\tldp x29, x30, [sp, #80]\n"
	"\tadd sp, sp, #96\n"
	"\t.cfi_restore 29\n"
	"\t.cfi_restore 30\n"
	"\t.cfi_def_cfa_offset 0\n"
	"\tret\n"
	"\t.cfi_endproc\n"
	".size bitcnn_call,.-bitcnn_call\n.popsection\n");
#else
#error "no trampoline for this processor"
#endif
