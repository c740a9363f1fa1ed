//go:build amd64 && linux && cgo && amxemulated

// The instructions of AVX-512 and GFNI that the kernels on tiles have besides those on tiles, for
// processors without: on whole registers of 512 bits, which lie in memory of the thread here. Intel,
// Software Developer's Manual, volume 2, under the names of the instructions.
#define _GNU_SOURCE
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "emulator.h"

union vector {
	uint8_t b[64];
	uint16_t w[32];
	int32_t i[16];
	uint32_t u[16];
	uint64_t q[8];
	float f[16];
};

static __thread union vector vectors[32];
static __thread uint64_t masks[8];

// evex is an instruction in EVEX form without its memory operand.
struct evex {
	int map, prefix, wide, opcode;
	int reg, source, rm;      // numbers of registers
	int mask, zeroing, broadcast;
	uint8_t *memory;          // NULL for a register
	const uint8_t *immediate; // behind the operands
	int length;               // without an immediate
};

// readEVEX decodes an instruction on 512 bits. unit is the number of bytes that a displacement of a byte
// counts.
static int readEVEX(struct evex *e, const uint8_t *code, const greg_t *regs, int (*unitOf)(const struct evex *)) {
	if (code[0] != 0x62 || (code[3] >> 5 & 3) != 2)
		return 0;
	int r = ~code[1] >> 7 & 1, x = ~code[1] >> 6 & 1, b = ~code[1] >> 5 & 1, r2 = ~code[1] >> 4 & 1;
	const uint8_t *modrm = code + 5;
	*e = (struct evex){
		.map = code[1] & 7, .prefix = code[2] & 3, .wide = code[2] >> 7, .opcode = code[4],
		.reg = (modrm[0] >> 3 & 7) | r << 3 | r2 << 4,
		.source = (~code[2] >> 3 & 15) | (~code[3] >> 3 & 1) << 4,
		.mask = code[3] & 7, .zeroing = code[3] >> 7, .broadcast = code[3] >> 4 & 1,
	};
	if (modrm[0] >> 6 == 3) {
		e->rm = (modrm[0] & 7) | b << 3 | x << 4;
		e->length = 6;
	} else {
		int unit = unitOf(e);
		if (unit == 0)
			return 0;
		struct operand o = decodeOperand(modrm, regs, x, b, unit);
		e->memory = o.base + o.stride;
		e->length = 5 + o.length;
	}
	e->immediate = code + e->length;
	return 1;
}

enum { NONE, X66, XF3, XF2 };                // prefixes
enum { MAP0F = 1, MAP0F38 = 2, MAP0F3A = 3 }; // maps of opcodes

#define OP(map, prefix, opcode) ((map) << 16 | (prefix) << 8 | (opcode))

static int key(const struct evex *e) { return OP(e->map, e->prefix, e->opcode); }

// unit is what displacements of a byte count: the bytes that the instruction reads or writes.
static int unit(const struct evex *e) {
	switch (key(e)) {
	case OP(MAP0F38, X66, 0x18): // VBROADCASTSS
	case OP(MAP0F38, X66, 0x58): // VPBROADCASTD
		return 4;
	case OP(MAP0F38, X66, 0x78): // VPBROADCASTB
		return 1;
	case OP(MAP0F38, XF3, 0x31): // VPMOVDB
	case OP(MAP0F38, X66, 0x31): // VPMOVZXBD
		return 16;
	}
	return !e->broadcast ? 64 : e->wide ? 8 : 4;
}

// operand3 returns the operand that may be memory.
static union vector operand3(const struct evex *e) {
	union vector v;
	if (e->memory == NULL)
		return vectors[e->rm];
	if (!e->broadcast) {
		memcpy(&v, e->memory, sizeof v);
		return v;
	}
	int size = e->wide ? 8 : 4;
	for (int i = 0; i < 64; i += size)
		memcpy(v.b + i, e->memory, size);
	return v;
}

// set writes a register where the mask says so, by elements of so many bytes.
static void set(const struct evex *e, const union vector *v, int size) {
	union vector *to = &vectors[e->reg];
	for (int i = 0; !leftOut && i < 64 / size; i++) {
		if (e->mask == 0 || masks[e->mask] >> i & 1)
			memcpy(to->b + i * size, v->b + i * size, size);
		else if (e->zeroing)
			memset(to->b + i * size, 0, size);
	}
}

// move is a load or a store of elements of so many bytes, or between registers. Those in memory that the
// mask leaves out are not accessed.
static void move(struct evex *e, int store, int size) {
	if (e->memory == NULL) {
		union vector v = vectors[store ? e->reg : e->rm];
		if (store)
			e->reg = e->rm;
		set(e, &v, size);
		return;
	}
	union vector v = vectors[e->reg];
	for (int i = 0; i < 64 / size; i++) {
		if (e->mask != 0 && !(masks[e->mask] >> i & 1))
			continue;
		if (!store)
			memcpy(v.b + i * size, e->memory + i * size, size);
		else if (!leftOut)
			memcpy(e->memory + i * size, v.b + i * size, size);
	}
	if (!store)
		set(e, &v, size);
}

static int less(int predicate, int32_t a, int32_t b) { // of VPCMPD
	const int three[8] = {a == b, a < b, a <= b, 0, a != b, a >= b, a > b, 1};
	return three[predicate & 7];
}

static uint8_t affine(uint64_t matrix, uint8_t x, uint8_t add) {
	uint8_t out = 0;
	for (int i = 0; i < 8; i++)
		out |= (__builtin_parity((uint8_t)(matrix >> 8 * (7 - i)) & x) ^ (add >> i & 1)) << i;
	return out;
}

// lanes computes 16 values of 32 bits of a, the first operand, and b; d is the destination. It reports
// whether it knows the instruction.
static int lanes(const struct evex *e, union vector *to, const union vector *d, const union vector *a, const union vector *b) {
	for (int i = 0; i < 16; i++) {
		float x = a->f[i], y = b->f[i];
		switch (key(e)) {
		case OP(MAP0F, X66, 0xfe):
			is("VPADDD");
			to->u[i] = a->u[i] + b->u[i];
			break;
		case OP(MAP0F, X66, 0xdb):
			is("VPANDD");
			to->u[i] = a->u[i] & b->u[i];
			break;
		case OP(MAP0F, X66, 0xef):
			is("VPXORD");
			to->u[i] = a->u[i] ^ b->u[i];
			break;
		case OP(MAP0F38, X66, 0x47):
			is("VPSLLVD");
			to->u[i] = b->u[i] < 32 ? a->u[i] << b->u[i] : 0;
			break;
		case OP(MAP0F, NONE, 0x58):
			is("VADDPS");
			to->f[i] = x + y;
			break;
		case OP(MAP0F, NONE, 0x59):
			is("VMULPS");
			to->f[i] = x * y;
			break;
		case OP(MAP0F, NONE, 0x5d):
			is("VMINPS");
			to->f[i] = x < y ? x : y;
			break;
		case OP(MAP0F, NONE, 0x5f):
			is("VMAXPS");
			to->f[i] = x > y ? x : y;
			break;
		case OP(MAP0F38, X66, 0xa8):
			is("VFMADD213PS");
			to->f[i] = fmaf(x, d->f[i], y);
			break;
		case OP(MAP0F, NONE, 0x5b):
			is("VCVTDQ2PS");
			to->f[i] = (float)b->i[i];
			break;
		case OP(MAP0F, X66, 0x5b):
			is("VCVTPS2DQ");
			to->i[i] = _mm_cvtss_si32(_mm_set_ss(y));
			break;
		default:
			return 0;
		}
	}
	return 1;
}

// compare writes a mask.
static void compare(const struct evex *e, int floats) {
	union vector a = vectors[e->source], b = operand3(e);
	uint64_t mask = 0;
	for (int i = 0; i < 16; i++) {
		int holds = floats ? a.f[i] < b.f[i] : less(*e->immediate, a.i[i], b.i[i]);
		if (holds && (e->mask == 0 || masks[e->mask] >> i & 1))
			mask |= 1ull << i;
	}
	if (!leftOut)
		masks[e->reg & 7] = mask;
}

// broadcast fills a register.
static void broadcast(const struct evex *e, const void *value, int size) {
	union vector v;
	for (int i = 0; i < 64; i += size)
		memcpy(v.b + i, value, size);
	set(e, &v, size);
}

static int executeEVEX(const uint8_t *code, const greg_t *regs) {
	struct evex e;
	if (!readEVEX(&e, code, regs, unit))
		return 0;
	union vector v, b;
	switch (key(&e)) {
	case OP(MAP0F, XF2, 0x6f):
	case OP(MAP0F, XF2, 0x7f):
		is(e.opcode == 0x7f ? "VMOVDQU8 store" : "VMOVDQU8");
		move(&e, e.opcode == 0x7f, 1);
		return e.length;
	case OP(MAP0F, XF3, 0x6f):
	case OP(MAP0F, XF3, 0x7f):
		if (e.wide)
			return 0;
		is(e.opcode == 0x7f ? "VMOVDQU32 store" : "VMOVDQU32");
		move(&e, e.opcode == 0x7f, 4);
		return e.length;
	case OP(MAP0F, NONE, 0x10):
		is("VMOVUPS");
		move(&e, 0, 4);
		return e.length;
	case OP(MAP0F3A, X66, 0xce):
		is("VGF2P8AFFINEQB");
		b = operand3(&e);
		for (int i = 0; i < 64; i++)
			v.b[i] = affine(b.q[i / 8], vectors[e.source].b[i], *e.immediate);
		set(&e, &v, 1);
		return e.length + 1;
	case OP(MAP0F, X66, 0xfc):
		is("VPADDB");
		b = operand3(&e);
		for (int i = 0; i < 64; i++)
			v.b[i] = vectors[e.source].b[i] + b.b[i];
		set(&e, &v, 1);
		return e.length;
	case OP(MAP0F38, X66, 0x00):
		is("VPSHUFB");
		b = operand3(&e);
		for (int i = 0; i < 64; i++)
			v.b[i] = b.b[i] & 0x80 ? 0 : vectors[e.source].b[(i & ~15) | (b.b[i] & 15)];
		set(&e, &v, 1);
		return e.length;
	case OP(MAP0F, X66, 0x71): // by an immediate
		if ((e.reg & 7) != 2)
			return 0;
		is("VPSRLW");
		b = operand3(&e);
		for (int i = 0; i < 32; i++)
			v.w[i] = *e.immediate < 16 ? b.w[i] >> *e.immediate : 0;
		e.reg = e.source;
		set(&e, &v, 2);
		return e.length + 1;
	case OP(MAP0F3A, X66, 0x1f):
		is("VPCMPD");
		compare(&e, 0);
		return e.length + 1;
	case OP(MAP0F, NONE, 0xc2):
		if (*e.immediate != 1 && *e.immediate != 17)
			return 0;
		is("VCMPPS"); // less
		compare(&e, 1);
		return e.length + 1;
	case OP(MAP0F38, XF3, 0x31):
		if (e.memory == NULL)
			return 0;
		is("VPMOVDB");
		for (int i = 0; !leftOut && i < 16; i++)
			if (e.mask == 0 || masks[e.mask] >> i & 1)
				e.memory[i] = vectors[e.reg].u[i];
		return e.length;
	case OP(MAP0F38, X66, 0x31):
		is("VPMOVZXBD");
		for (int i = 0; i < 16; i++)
			v.u[i] = (e.memory ? e.memory : vectors[e.rm].b)[i];
		set(&e, &v, 4);
		return e.length;
	case OP(MAP0F38, X66, 0x18):
	case OP(MAP0F38, X66, 0x58):
		is(e.opcode == 0x18 ? "VBROADCASTSS" : "VPBROADCASTD");
		broadcast(&e, e.memory ? e.memory : vectors[e.rm].b, 4);
		return e.length;
	case OP(MAP0F38, X66, 0x78):
		is("VPBROADCASTB");
		broadcast(&e, e.memory ? e.memory : vectors[e.rm].b, 1);
		return e.length;
	case OP(MAP0F38, X66, 0x7c): // of a general register
		if (e.memory != NULL)
			return 0;
		is(e.wide ? "VPBROADCASTQ general" : "VPBROADCASTD general");
		broadcast(&e, &regs[registers[e.rm & 15]], e.wide ? 8 : 4);
		return e.length;
	}
	b = operand3(&e);
	if (!lanes(&e, &v, &vectors[e.reg], &vectors[e.source], &b))
		return 0;
	set(&e, &v, 4);
	return e.length;
}

// executeMask executes KMOVW to a general register and KMOVQ from memory.
static int executeMask(const uint8_t *code, greg_t *regs) {
	int r, x = 0, b = 0, wide = 0, prefix, length;
	if (code[0] == 0xc5) {
		r = ~code[1] >> 7 & 1, prefix = code[1] & 3, length = 2;
	} else if (code[0] == 0xc4 && (code[1] & 31) == MAP0F) {
		r = ~code[1] >> 7 & 1, x = ~code[1] >> 6 & 1, b = ~code[1] >> 5 & 1;
		wide = code[2] >> 7, prefix = code[2] & 3, length = 3;
	} else {
		return 0;
	}
	int opcode = code[length++];
	const uint8_t *modrm = code + length;
	int reg = (modrm[0] >> 3 & 7) | r << 3, memory = modrm[0] >> 6 != 3;
	if (prefix != NONE)
		return 0;
	if (opcode == 0x90 && memory && wide) {
		struct operand o = decodeOperand(modrm, regs, x, b, 1);
		if (is("KMOVQ"))
			memcpy(&masks[reg & 7], o.base + o.stride, 8);
		return length + o.length;
	}
	if (opcode == 0x93 && !memory && !wide) {
		if (is("KMOVW"))
			regs[registers[reg]] = (greg_t)(masks[modrm[0] & 7] & 0xffff);
		return length + 1;
	}
	return 0;
}

int executeVector(const uint8_t *code, greg_t *regs) {
	int length = executeEVEX(code, regs);
	return length ? length : executeMask(code, regs);
}
