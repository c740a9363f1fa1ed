// Calls a function with 14 arguments through a trampoline, in other modes of the
// floating-point unit than the default one, which it leaves in yet another.

#include "../trampoline.h"

#include <stdint.h>
#include <stdio.h>

#if defined(__x86_64__)
static const uint32_t usual = 0x1f80, callers = 0xfff1, drivers = 0x9fd5;
static uint32_t get(void) {
	uint32_t m;
	__asm__ volatile("stmxcsr %0" : "=m"(m) : : "memory");
	return m;
}
static void set(uint32_t m) { __asm__ volatile("ldmxcsr %0" : : "m"(m) : "memory"); }
#else
static const uint32_t usual = 0, callers = 0x1c00011, drivers = 0x2400005; // with FPSR's lowest bits
static uint32_t get(void) {
	uint64_t control, flags;
	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(flags) : : "memory");
	return (uint32_t)control | (uint32_t)(flags & 0x1f);
}
static void set(uint32_t m) {
	uint64_t control = m & ~0x1fu, flags = m & 0x1f;
	__asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(control), "r"(flags) : "memory");
}
#endif

static uint32_t during;
static uint64_t sum;

#define PARAMETERS uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, \
	uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m, uint64_t n

static uint64_t driver(PARAMETERS) {
	during = get();
	set(drivers);
	sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n;
	_Alignas(16) char place[16];
	return (uintptr_t)place % 16 ? 0 : 0x123456789abcdef0;
}

static uint64_t other(void) { return 7; }

uint64_t call(PARAMETERS);
TRAMPOLINE(call, other)

int main(void) {
	set(callers);
	uint64_t before = call(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
	bitcnn_slot_call = (void *)driver;
	uint64_t got = call(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
	uint32_t after = get();
	set(usual);
	if (before != 7 || got != 0x123456789abcdef0 || sum != 1015 || (during & ~0x3fu) != usual || after != callers) {
		printf("%#llx, %#llx, sum %llu, mode %#x, later %#x\n", (unsigned long long)before, (unsigned long long)got,
			(unsigned long long)sum, during, after);
		return 1;
	}
	return 0;
}
