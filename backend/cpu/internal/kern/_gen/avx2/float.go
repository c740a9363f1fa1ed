package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is a loop over n float32 values, n > 0, in vectors of 8, the last one
// by a mask. body gets functions that load and store the values at a pointer.
func lanes(n reg.Register, pointers []reg.Register, body func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int))) {
	Label("whole")
	CMPQ(n, U8(8))
	JLT(LabelRef("rest"))
	body(func(i int) reg.VecVirtual {
		v := YMM()
		VMOVUPS(Mem{Base: pointers[i]}, v)
		return v
	}, func(v reg.VecVirtual, i int) { VMOVUPS(v, Mem{Base: pointers[i]}) })
	for _, p := range pointers {
		ADDQ(U8(32), p)
	}
	SUBQ(U8(8), n)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(n, n)
	JEQ(LabelRef("done"))
	mask := laneMask(n)
	body(func(i int) reg.VecVirtual {
		v := YMM()
		VMASKMOVPS(Mem{Base: pointers[i]}, mask, v)
		return v
	}, func(v reg.VecVirtual, i int) { VMASKMOVPS(v, mask, Mem{Base: pointers[i]}) })
	Label("done")
	VZEROUPPER()
	RET()
}

// laneMask returns a mask of the first n lanes. It changes n.
func laneMask(n reg.Register) reg.VecVirtual {
	// The last n of 8 set lanes, then clear ones.
	mask, base := YMM(), GP64()
	LEAQ(NewDataAddr(NewStaticSymbol("laneMasks"), 32), base)
	SHLQ(U8(2), n)
	SUBQ(n, base)
	VMOVUPS(Mem{Base: base}, mask)
	return mask
}

func laneMasks() {
	const all = 1<<64 - 1
	table("laneMasks", words(all, all, all, all, 0, 0, 0, 0))
}

// rectified clears what is not greater than 0, but for the lanes of always.
func rectified(x, zero, always reg.VecVirtual) {
	keep := YMM()
	VCMPPS(U8(14), zero, x, keep) // >
	VORPS(always, keep, keep)
	VANDPS(keep, x, x)
}

func rectifier() (zero, always reg.VecVirtual) {
	zero, always = YMM(), YMM()
	VXORPS(zero, zero, zero)
	x := XMM()
	VMOVD(Load(Param("always"), GP32()), x)
	VPBROADCASTD(x, always)
	return zero, always
}

// scale writes the affine map of a row.
func scale() {
	for _, float := range []bool{false, true} {
		name, typ := "scaleAVX2", "int32"
		if float {
			name, typ = "scaleFloatAVX2", "float32"
		}
		TEXT(name, NOSPLIT, "func(dst *float32, values *"+typ+", scale, shift *float32, n int, always uint32)")
		Doc(name+" computes, for o < n, n > 0,", "",
			"\tdst[o] = fma(float32(values[o]), scale[o], shift[o])", "",
			"or 0 where that is not greater than 0 and always is 0, else all ones.",
			"dst may be values.")
		Pragma("noescape")
		p := []reg.Register{
			Load(Param("dst"), GP64()), Load(Param("values"), GP64()),
			Load(Param("scale"), GP64()), Load(Param("shift"), GP64()),
		}
		n := Load(Param("n"), GP64())
		zero, always := rectifier()
		lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
			x, a, b := load(1), load(2), load(3)
			if !float {
				VCVTDQ2PS(x, x)
			}
			VFMADD213PS(b, a, x)
			rectified(x, zero, always)
			store(x, 0)
		})
	}
}

// add writes the sum of two rows.
func add() {
	TEXT("addAVX2", NOSPLIT, "func(dst, a, b *float32, n int, always uint32)")
	Doc("addAVX2 computes dst[i] = a[i] + b[i] for i < n, n > 0,",
		"or 0 where that is not greater than 0 and always is 0, else all ones.")
	Pragma("noescape")
	p := []reg.Register{Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())}
	n := Load(Param("n"), GP64())
	zero, always := rectifier()
	lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		x, y := load(1), load(2)
		VADDPS(y, x, x)
		rectified(x, zero, always)
		store(x, 0)
	})
}

// fmaEach writes the ordered sums of depthwise convolutions.
func fmaEach() {
	TEXT("fmaEachAVX2", NOSPLIT, "func(acc, x, w *float32, n int)")
	Doc("fmaEachAVX2 computes acc[i] = fma(x[i], w[i], acc[i]) for i < n, n > 0.")
	Pragma("noescape")
	p := []reg.Register{Load(Param("acc"), GP64()), Load(Param("x"), GP64()), Load(Param("w"), GP64())}
	lanes(Load(Param("n"), GP64()), p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		acc, x, w := load(0), load(1), load(2)
		VFMADD231PS(w, x, acc)
		store(acc, 0)
	})
}

// choose writes the conversion of bits to one of two values.
func choose() {
	bitsAt := table("byteBits", words(1|2<<32, 4|8<<32, 16|32<<32, 64|128<<32))
	TEXT("chooseAVX2", NOSPLIT, "func(dst *float32, src *uint8, one, zero *float32, n int)")
	Doc("chooseAVX2 sets dst[i] to one[i] where bit i of src is set, else to zero[i],",
		"for i < n, n > 0.")
	Pragma("noescape")
	src := Load(Param("src"), GP64())
	p := []reg.Register{Load(Param("dst"), GP64()), Load(Param("one"), GP64()), Load(Param("zero"), GP64())}
	bit := YMM()
	VMOVDQU(bitsAt, bit)
	part := GP32()
	lanes(Load(Param("n"), GP64()), p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		x, mask := XMM(), YMM()
		MOVBLZX(Mem{Base: src}, part)
		INCQ(src)
		VMOVD(part, x)
		VPBROADCASTD(x, mask)
		VPAND(bit, mask, mask)
		VPCMPEQD(bit, mask, mask)
		one, zero := load(1), load(2)
		VBLENDVPS(mask, one, zero, zero)
		store(zero, 0)
	})
}
