//go:build amd64 && linux && cgo && amxemulated

// The instructions on tiles raise SIGILL where the processor does not have them, and all but LDTILECFG,
// STTILECFG and TILERELEASE where the process has no permission to use them; those of AVX-512 do where the
// processor has none. A handler executes them on
// memory of the thread: Intel, Software Developer's Manual, volume 2, under the names of the
// instructions.
//
// The environment's AMX_FAULT names an instruction that does nothing, or a fault that wrong knows:
// scripts/amx-check shows that the tests find it.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "emulator.h"

enum { TILES = 8, ROWS = 16, LINE = 64 };

struct config {
	uint8_t palette, start, reserved[14];
	uint16_t line[16]; // bytes of a row
	uint8_t rows[16];
} __attribute__((packed));

static __thread struct config config;
static __thread uint8_t tile[TILES][ROWS][LINE];
static struct sigaction before;
static atomic_long count;
static const char *fault; // of the environment
__thread int leftOut;

long executed(void) { return atomic_load(&count); }

int wrong(const char *what) { return fault != NULL && strcmp(fault, what) == 0; }

int is(const char *name) { return !(leftOut = wrong(name)); }

const int registers[16] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

struct operand decodeOperand(const uint8_t *code, const greg_t *regs, int x, int b, int unit) {
	int mod = code[0] >> 6, rm = code[0] & 7, length = 1;
	struct operand o = {0};
	if (rm == 4) {
		uint8_t sib = code[length++];
		int index = (sib >> 3 & 7) | x << 3, base = (sib & 7) | b << 3;
		if (mod != 0 || (base & 7) != 5)
			o.base = (uint8_t *)regs[registers[base]];
		if (index != 4)
			o.stride = (int64_t)regs[registers[index]] << (sib >> 6);
		if (mod == 0 && (base & 7) == 5)
			mod = 2;
	} else {
		o.base = (uint8_t *)regs[registers[rm | b << 3]];
	}
	int32_t wide;
	switch (mod) {
	case 1:
		o.base += (int8_t)code[length++] * unit;
		break;
	case 2:
		memcpy(&wide, code + length, 4);
		o.base += wide;
		length += 4;
	}
	o.length = length;
	return o;
}

static void load(int t, struct operand o) {
	memset(tile[t], 0, sizeof tile[t]);
	int rows = config.rows[t];
	if (rows > 1 && wrong("a row less is loaded"))
		rows--;
	for (int r = 0; r < rows; r++)
		memcpy(tile[t][r], o.base + r * o.stride, config.line[t]);
}

static void store(int t, struct operand o) {
	if (wrong("another tile is stored"))
		t ^= 1;
	for (int r = 0; r < config.rows[t]; r++)
		memcpy(o.base + r * o.stride, tile[t][r], config.line[t]);
}

// multiply adds the products of the bytes of a, without signs, and b, with signs, to sums.
static void multiply(int sums, int a, int b) {
	int groups = config.line[a] / 4, outputs = config.line[sums] / 4;
	int bytes = wrong("three products of four are added") ? 3 : 4;
	int sign = wrong("signs of weights are not read") ? 0 : 0x80;
	for (int m = 0; m < config.rows[sums]; m++) {
		int32_t *to = (int32_t *)tile[sums][m];
		for (int k = 0; k < groups; k++)
			for (int n = 0; n < outputs; n++)
				for (int i = 0; i < bytes; i++) {
					uint8_t x = tile[a][m][4 * k + i], y = tile[b][k][4 * n + i];
					to[n] += x * (y - 2 * (y & sign));
				}
	}
	for (int m = config.rows[sums]; m < ROWS; m++)
		memset(tile[sums][m], 0, LINE);
}

// execute executes the instruction at code and returns its length, 0 if it is another one.
static int execute(const uint8_t *code, const greg_t *regs) {
	if (code[0] != 0xc4 || (code[1] & 31) != 2 || code[2] & 0x84)
		return 0;
	int r = !(code[1] & 0x80), x = !(code[1] & 0x40), b = !(code[1] & 0x20);
	int prefix = code[2] & 3, source = ~(code[2] >> 3) & 15;
	const uint8_t *modrm = code + 4;
	int reg = modrm[0] >> 3 & 7, memory = modrm[0] >> 6 != 3;
	if (r || (source > 7))
		return 0;
	switch (code[3]) {
	case 0x49:
		if (prefix == 0 && memory) {
			struct operand o = decodeOperand(modrm, regs, x, b, 1);
			if (is("LDTILECFG")) {
				memcpy(&config, o.base, sizeof config);
				memset(tile, 0, sizeof tile);
			}
			return 4 + o.length;
		}
		if (prefix == 1 && memory) {
			struct operand o = decodeOperand(modrm, regs, x, b, 1);
			if (is("STTILECFG"))
				memcpy(o.base, &config, sizeof config);
			return 4 + o.length;
		}
		if (prefix == 0 && modrm[0] == 0xc0) {
			if (is("TILERELEASE")) {
				memset(&config, 0, sizeof config);
				memset(tile, 0, sizeof tile);
			}
			return 5;
		}
		if (prefix == 3 && !memory) {
			if (is("TILEZERO"))
				memset(tile[reg], 0, sizeof tile[reg]);
			return 5;
		}
		return 0;
	case 0x4b:
		if (!memory || (modrm[0] & 7) != 4 || (prefix != 2 && prefix != 3))
			return 0;
		struct operand o = decodeOperand(modrm, regs, x, b, 1);
		if (prefix == 3 && is("TILELOADD"))
			load(reg, o);
		if (prefix == 2 && is("TILESTORED"))
			store(reg, o);
		return 4 + o.length;
	case 0x5e:
		if (memory || prefix != 1)
			return 0;
		if (is("TDPBUSD"))
			multiply(reg, modrm[0] & 7, source);
		return 5;
	}
	return 0;
}

static void cpuid(uint32_t leaf, uint32_t part, uint32_t out[4]) {
	__asm__("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(part));
}

// Component 17 of the state of a thread is what LDTILECFG sets. Its place in that state is 0 where the
// processor does not have it.
enum { COMPONENT = 17 };
static uint32_t configOffset;

// take takes what LDTILECFG has set in a processor that executes that itself, from the frame of the
// signal.
static void take(const ucontext_t *u) {
	enum { HEADER = 512 };
	if (configOffset == 0)
		return;
	const uint8_t *state = (const uint8_t *)u->uc_mcontext.fpregs;
	struct config now = {0};
	uint64_t there;
	memcpy(&there, state + HEADER, sizeof there);
	if (there >> COMPONENT & 1)
		memcpy(&now, state + configOffset, sizeof now);
	if (memcmp(&now, &config, sizeof now) != 0) {
		config = now;
		memset(tile, 0, sizeof tile);
	}
}

// QEMU does not align the stack as functions expect it.
__attribute__((force_align_arg_pointer)) static void handle(int signal, siginfo_t *info, void *context) {
	ucontext_t *u = context;
	greg_t *regs = u->uc_mcontext.gregs;
	take(u);
	int length = execute((const uint8_t *)regs[REG_RIP], regs);
	if (length == 0)
		length = executeVector((const uint8_t *)regs[REG_RIP], regs);
	if (length > 0) {
		regs[REG_RIP] += length;
		atomic_fetch_add(&count, 1);
		return;
	}
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signal, info, context);
}

int released(void) {
	struct config now;
	__asm__ volatile(".byte 0xc4, 0xe2, 0x79, 0x49, 0x00" : : "a"(&now) : "memory"); // STTILECFG (AX)
	return now.palette == 0;
}

int install(void) {
	fault = getenv("AMX_FAULT");
	uint32_t features[4], component[4];
	cpuid(7, 0, features);
	cpuid(13, COMPONENT, component);
	if (features[3] >> 24 & 1) // AMX-TILE
		configOffset = component[1];
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	sigemptyset(&action.sa_mask);
	return sigaction(SIGILL, &action, &before) == 0 ? 0 : errno;
}
