// TRAMPOLINE defines a function that calls whatever is in bitcnn_slot_name, at first
// another function, with the arguments that it gets: 14 at most, of 64 bits at most.
//
// Drivers and their compilers are called in the default mode of the floating-point unit,
// whatever the one of the thread is, and that comes back when they return, with the flags
// of exceptions: libraries that were built with -ffast-math set another one as they are
// loaded, and any call may. A goroutine that came upon such a thread would compute other
// bits.
//
// Functions are hidden: other libraries of the process must find the driver's.
#define TRAMPOLINE(name, first) \
	__attribute__((visibility("hidden"))) void *bitcnn_slot_##name = (void *)first; \
	__asm__(".pushsection .text\n.globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name ":\n" \
		BITCNN_TAKE(name) ".size " #name ",.-" #name "\n.popsection\n");

#if defined(__x86_64__)
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
