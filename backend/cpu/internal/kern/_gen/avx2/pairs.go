package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs writes products, minima, maxima and masks, of rows and of rows with a value each.
func pairs() {
	// The smaller or the larger of two values, by an instruction that gives the second one
	// where either is a NaN or both are 0.
	extreme := func(instruction func(ops ...Op)) func(x, y, to reg.VecVirtual) {
		return func(x, y, to reg.VecVirtual) {
			nan := YMM()
			VCMPPS(U8(3), x, x, nan)
			instruction(y, x, to)
			VBLENDVPS(nan, x, to, to)
		}
	}
	for _, kind := range []struct {
		name, doc, each string
		combine         func(x, y, to reg.VecVirtual)
	}{
		{"mul", "computes dst[i] = a[i]·b[i]", "computes dst[r·n + i] = a[r·n + i]·b[r]",
			func(x, y, to reg.VecVirtual) { VMULPS(y, x, to) }},
		{"min", "sets dst[i] to a[i] where a[i] < b[i] or a[i] is a NaN, else to b[i],",
			"sets dst[r·n + i] to a[r·n + i] where that is less than b[r] or a NaN, else to b[r],", extreme(VMINPS)},
		{"max", "sets dst[i] to a[i] where a[i] > b[i] or a[i] is a NaN, else to b[i],",
			"sets dst[r·n + i] to a[r·n + i] where that is greater than b[r] or a NaN, else to b[r],", extreme(VMAXPS)},
		{"mask", "sets dst[i] to a[i] where b[i] is not 0, else to +0,",
			"sets dst[r·n + i] to a[r·n + i] where b[r] is not 0, else to +0,", func(x, y, to reg.VecVirtual) {
				zero := YMM()
				VXORPS(zero, zero, zero)
				VCMPPS(U8(4), zero, y, to) // not equal, or a NaN
				VANDPS(x, to, to)
			}},
	} {
		TEXT(kind.name+"AVX2", NOSPLIT, "func(dst, a, b *float32, n int)")
		Doc(kind.name+"AVX2 "+kind.doc, "for i < n, n > 0.")
		Pragma("noescape")
		p := []reg.Register{Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())}
		lanes(Load(Param("n"), GP64()), p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
			x, y := load(1), load(2)
			kind.combine(x, y, y)
			store(y, 0)
		})
		pairEach(kind.name+"EachAVX2", kind.each, kind.combine)
	}
}

// pairEach writes a kernel for rows with a value each.
func pairEach(name, doc string, combine func(x, y, to reg.VecVirtual)) {
	TEXT(name, NOSPLIT, "func(dst, a, b *float32, n, rows int)")
	Doc(name+" "+doc, "for i < n and r < rows, n ≥ 8, rows > 0. dst may be a.")
	Pragma("noescape")
	dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	n, rows := Load(Param("n"), GP64()), Load(Param("rows"), GP64())
	left := GP64()
	Label("row")
	y := YMM()
	VBROADCASTSS(Mem{Base: b}, y)
	// The last vector of a row overlaps with the one before, which may lie in its place.
	x, last := YMM(), YMM()
	VMOVUPS(Mem{Base: a, Index: n, Scale: 4, Disp: -32}, x)
	combine(x, y, last)
	MOVQ(n, left)
	for _, vectors := range []int{4, 1} {
		label := map[int]string{4: "four", 1: "one"}[vectors]
		Label(label)
		CMPQ(left, U8(8*vectors))
		JLT(LabelRef(label + "end"))
		for v := range vectors {
			x, z := YMM(), YMM()
			VMOVUPS(Mem{Base: a, Disp: 32 * v}, x)
			combine(x, y, z)
			VMOVUPS(z, Mem{Base: dst, Disp: 32 * v})
		}
		ADDQ(I32(32*vectors), a)
		ADDQ(I32(32*vectors), dst)
		SUBQ(U8(8*vectors), left)
		JMP(LabelRef(label))
		Label(label + "end")
	}
	LEAQ(Mem{Base: a, Index: left, Scale: 4}, a)
	LEAQ(Mem{Base: dst, Index: left, Scale: 4}, dst)
	VMOVUPS(last, Mem{Base: dst, Disp: -32})
	ADDQ(U8(4), b)
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}
