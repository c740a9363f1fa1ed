#ifndef BITCNN_MODE_H
#define BITCNN_MODE_H

// The mode of the floating-point unit is the thread's: how it rounds, whether it takes
// subnormal numbers for 0, and which exceptions interrupt the program. A program may have
// set another one than the numeric contract needs, or has it from a library that was
// built with -ffast-math. The Go runtime takes what it finds, and threads inherit it from
// the one that starts them.

#include <stdint.h>

#if defined(__x86_64__)
typedef struct {
	uint32_t mxcsr;
} bitcnn_mode;

static inline bitcnn_mode bitcnn_enter_default(void) {
	const uint32_t usual = 0x1f80;
	bitcnn_mode caller;
	__asm__ volatile("stmxcsr %0" : "=m"(caller.mxcsr) : : "memory");
	if (caller.mxcsr != usual) {
		__asm__ volatile("ldmxcsr %0" : : "m"(usual) : "memory");
	}
	return caller;
}

static inline void bitcnn_leave_default(const bitcnn_mode *caller) {
	__asm__ volatile("ldmxcsr %0" : : "m"(caller->mxcsr) : "memory");
}
#elif defined(__aarch64__)
typedef struct {
	uint64_t fpcr, fpsr;
} bitcnn_mode;

static inline bitcnn_mode bitcnn_enter_default(void) {
	bitcnn_mode caller;
	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(caller.fpcr), "=r"(caller.fpsr) : : "memory");
	if (caller.fpcr) {
		__asm__ volatile("msr fpcr, xzr" : : : "memory");
	}
	return caller;
}

static inline void bitcnn_leave_default(const bitcnn_mode *caller) {
	if (caller->fpcr) {
		__asm__ volatile("msr fpcr, %0" : : "r"(caller->fpcr) : "memory");
	}
	__asm__ volatile("msr fpsr, %0" : : "r"(caller->fpsr) : "memory");
}
#else // the library is for the two above; this builds for tests
typedef struct {
	int none;
} bitcnn_mode;

static inline bitcnn_mode bitcnn_enter_default(void) { return (bitcnn_mode){0}; }
static inline void bitcnn_leave_default(const bitcnn_mode *caller) { (void)caller; }
#endif

// IN_DEFAULT_MODE sets the default mode until the end of the block, where the caller's
// comes back, with the flags of exceptions as they were.
#define IN_DEFAULT_MODE() \
	__attribute__((cleanup(bitcnn_leave_default))) const bitcnn_mode callers_mode = bitcnn_enter_default()

#endif
