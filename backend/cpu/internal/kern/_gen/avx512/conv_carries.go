package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convCarries writes the convolutions of bits that add two pieces of a patch before they
// count, and what makes parities of rows and of patches.
//
// With d[i] = x[i] XOR w[i] for pieces of 32 bits, and P[i] the XOR of d[0] to d[i], which
// is that of the x up to there and of the w up to there, the bits of d[i+1] and d[i+2] and
// what P[i] has are a number of two bits: P[i+2] and a carry, which is
//
//	P[i+1] ? NOT P[i+2] : P[i]
//
// since P[i] and d[i+1] are alike where P[i+1] is 0, and else d[i+2] decides. So
//
//	Σ of all bits of d = bits of the last P + 2·Σ of all bits of the carries
//
// and two pieces take five instructions, not six: two XOR, VPTERNLOG, VPOPCNT, and one
// that adds.
func convCarries() {
	parities()
	patches()
	for _, out := range []result{packed, sums, floats} {
		conv(carriesKind, out, 3, 4)
	}
	for _, out := range []result{pooled, pooledAlike} {
		conv(carriesKind, out, 4, 4)
	}
	for _, p := range [][2]int{{1, 2}, {2, 1}, {2, 2}, {2, 0}} {
		out := planes
		if p[1] == 0 {
			out = planeSums
		}
		convPlanes(carriesKind, out, 2, 4, p[0], p[1])
	}
}

// parities writes the parities of all that is in memory up to each piece.
func parities() {
	const name = "paritiesAVX512"
	TEXT(name, NOSPLIT, "func(dst *uint32, n int)")
	Doc(name + " computes dst[i] XOR= dst[i−1] for i from 1 to n − 1, one after the other; n > 0.")
	Pragma("noescape")
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	zero, last, before, lanes := ZMM(), ZMM(), ZMM(), K()
	VPXORD(zero, zero, zero)
	fifteen := GP32()
	MOVL(U32(15), fifteen)
	VPBROADCASTD(fifteen, last)
	VPXORD(before, before, before)
	scan := func() reg.VecVirtual {
		x := ZMM()
		VMOVDQU32_Z(Mem{Base: dst}, lanes, x)
		for _, by := range []int{1, 2, 4, 8} {
			t := ZMM()
			VALIGND(U8(16-by), zero, x, t)
			VPXORD(t, x, x)
		}
		VPXORD(before, x, x)
		VMOVDQU32(x, lanes, Mem{Base: dst})
		return x
	}
	KXNORW(lanes, lanes, lanes)
	Label("next")
	CMPQ(n, U8(16))
	JLT(LabelRef("rest"))
	VPERMD(scan(), last, before)
	ADDQ(U8(64), dst)
	SUBQ(U8(16), n)
	JMP(LabelRef("next"))
	Label("rest")
	TESTQ(n, n)
	JEQ(LabelRef("done"))
	mask := GP32()
	MOVL(I32(-1), mask)
	BZHIL(n.(reg.GP).As32(), mask, mask)
	KMOVW(mask, lanes)
	scan()
	Label("done")
	VZEROUPPER()
	RET()
}

// patches writes the parities of patches.
func patches() {
	const name = "patchesAVX512"
	TEXT(name, NOSPLIT, "func(dst, src *byte, at *uint32, pixels, odd, rows, run, skip int)")
	Doc(name+" writes, for every pixel p, the parities of its patch, one behind the other, of",
		"rows runs of run bytes, skip bytes from each to the next, whose parities are at",
		"src + at[p]. odd is 4 if there is a 0 before each, else 0. It writes up to 60 bytes",
		"behind the last one.")
	Pragma("noescape")
	dst, from, at := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("at"), GP64())
	pixels, run, skip := Load(Param("pixels"), GP64()), Load(Param("run"), GP64()), Load(Param("skip"), GP64())
	// A run ends in a vector of which the first pieces are its own.
	mask, shift, lanes := GP32(), GP64(), K()
	MOVQ(run, shift)
	SHRQ(U8(2), shift)
	DECQ(shift)
	ANDQ(U8(15), shift)
	MOVL(U32(2), mask)
	SHLXL(shift.As32(), mask, mask)
	DECL(mask)
	KMOVW(mask, lanes)
	Label("patch")
	src, parity, row := GP64(), GP32(), GP64()
	MOVL(Mem{Base: at}, src.As32())
	ADDQ(from, src)
	ADDQ(U8(4), at)
	MOVL(U32(0), Mem{Base: dst})
	odd := GP64()
	Load(Param("odd"), odd)
	ADDQ(odd, dst)
	XORL(parity, parity)
	Load(Param("rows"), row)
	// The rows have the parities of a run but for those of what was before it, there and
	// in the patch.
	Label("run")
	before, fix, bytes := GP32(), ZMM(), GP64()
	XORL(Mem{Base: src, Disp: -4}, parity)
	MOVL(parity, before)
	VPBROADCASTD(before, fix)
	XORL(Mem{Base: src, Index: run, Scale: 1, Disp: -4}, parity)
	MOVQ(run, bytes)
	x := ZMM()
	Label("vector")
	CMPQ(bytes, U8(64))
	JLE(LabelRef("tail"))
	VPXORD(Mem{Base: src}, fix, x)
	VMOVDQU32(x, Mem{Base: dst})
	ADDQ(U8(64), src)
	ADDQ(U8(64), dst)
	SUBQ(U8(64), bytes)
	JMP(LabelRef("vector"))
	Label("tail")
	VMOVDQU32_Z(Mem{Base: src}, lanes, x)
	VPXORD(fix, x, x)
	VMOVDQU32(x, Mem{Base: dst})
	ADDQ(bytes, dst)
	ADDQ(bytes, src)
	ADDQ(skip, src)
	DECQ(row)
	JNE(LabelRef("run"))
	DECQ(pixels)
	JNE(LabelRef("patch"))
	VZEROUPPER()
	RET()
}

// carriesVectors is the number of vectors of the outputs of a block.
const carriesVectors = 4

// carriesTile computes some pixels.
func carriesTile(out result, job reg.Register, x []reg.GPVirtual, in, outPlanes int, label string) {
	if out != pooled && out != pooledAlike {
		acc := carriesSums(job, x, label)
		finish(carriesKind, out, job, acc, len(x), carriesVectors, in, outPlanes, label)
		return
	}
	// Of four pixels, which decide together, two at a time.
	const n = carriesVectors
	two := func(first int) []reg.VecVirtual {
		acc := carriesSums(job, x[first:][:2], fmt.Sprint(label, first))
		if differences(carriesKind, out) {
			table := tables(job)
			for p := range 2 {
				t := table(first + p)
				for v, a := range acc[n*p:][:n] {
					bound := ZMM()
					VMOVDQU32(Mem{Base: t, Disp: 64 * v}, bound)
					VPSUBD(a, bound, a)
				}
			}
		}
		extremes(out, acc[:n], acc[n:])
		return acc[n:]
	}
	a, b := two(0), two(2)
	extremes(out, a, b)
	dst, table := GP64(), tables(job)
	MOVQ(Mem{Base: job, Disp: gen.JobDst}, dst)
	storeMasks(job, dst, compare(carriesKind, out, func() reg.Register { return table(0) }, b))
	ADDQ(Mem{Base: job, Disp: gen.JobDstStep}, dst)
	MOVQ(dst, Mem{Base: job, Disp: gen.JobDst})
	ADDQ(U8(4*4), Mem{Base: job, Disp: gen.JobClass})
}

// carriesSums returns the counts of some pixels.
func carriesSums(job reg.Register, x []reg.GPVirtual, label string) []reg.VecVirtual {
	const n = carriesVectors
	acc, parity := make([]reg.VecVirtual, len(x)*n), make([]reg.VecVirtual, len(x)*n)
	for i := range acc {
		acc[i], parity[i] = ZMM(), ZMM()
		zmm.Zero(acc[i])
		zmm.Zero(parity[i])
	}
	w, i, end := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobWeights}, w)
	MOVQ(Mem{Base: job, Disp: gen.JobRunBytes}, end)
	XORQ(i, i)
	Label(label + "pieces")
	first := make([]reg.VecVirtual, len(x))
	for p := range x {
		first[p] = ZMM()
		VPBROADCASTD(Mem{Base: x[p], Index: i, Scale: 1}, first[p])
	}
	for v := range n {
		one, two := ZMM(), ZMM()
		VMOVDQU32(Mem{Base: w, Disp: 64 * v}, one)
		VMOVDQU32(Mem{Base: w, Disp: 64 * (n + v)}, two)
		for p := range x {
			addPair(func(t reg.VecVirtual) { VPXORD(first[p], one, t) },
				func(t reg.VecVirtual) { VPXORD_BCST(Mem{Base: x[p], Index: i, Scale: 1, Disp: 4}, two, t) },
				parity[p*n+v], acc[p*n+v])
		}
	}
	ADDQ(U8(8), i)
	ADDQ(U32(2*64*n), w)
	CMPQ(i, end)
	JNE(LabelRef(label + "pieces"))
	for i, a := range acc {
		VPOPCNTD(parity[i], parity[i])
		VPADDD(a, a, a)
		VPADDD(parity[i], a, a)
	}
	return acc
}

// addPair adds the bits of two pieces to those of a parity, which becomes the second of
// the next two, and counts the carries.
func addPair(one, two func(to reg.VecVirtual), parity, acc reg.VecVirtual) {
	const carry = 0x5c // of bits of t, parity and next: t ? NOT next : parity
	t, next := ZMM(), ZMM()
	one(t)
	two(next)
	VPTERNLOGD(U8(carry), next, parity, t)
	VMOVDQA64(next, parity) // takes a name, no operation
	VPOPCNTD(t, t)
	VPADDD(t, acc, acc)
}
