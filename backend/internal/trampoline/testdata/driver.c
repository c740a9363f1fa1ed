// A library of a driver that does nothing but set another mode of the floating-point unit,
// as it is loaded and in each of its functions: toward 0, and without subnormal numbers.

static void spoil(void) {
#if defined(__x86_64__)
	unsigned mode = 0xffc0;
	__asm__ volatile("ldmxcsr %0" : : "m"(mode));
#else
	unsigned long mode = 0x1c00000;
	__asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

__attribute__((constructor)) static void start(void) { spoil(); }

#define SYMBOL(name) int name(void) { spoil(); return 999; }
#include "symbols.h"
