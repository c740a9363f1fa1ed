package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elementwise writes what makes an output of every value.
func elementwise() {
	laneMasks()
	thresholds()
	scale()
	add()
	activations()
	mul()
	divide()
	choose()
}

// thresholds writes the comparison and packing of whole words.
func thresholds() {
	for _, float := range []bool{false, true} {
		name, typ := "thresholdAVX2", "int32"
		if float {
			name, typ = "thresholdFloatAVX2", "float32"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *uint64, values, t *%s, words int)", typ))
		Doc(name+" sets, for o < 64·words, words > 0,", "",
			"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]")
		Pragma("noescape")
		dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
		n, part := Load(Param("words"), GP64()), GP64()
		Label("next")
		word := GP64()
		XORQ(word, word)
		for v := range 8 {
			x := YMM()
			if float {
				VMOVUPS(Mem{Base: values, Disp: 32 * v}, x)
				VCMPPS(U8(13), Mem{Base: t, Disp: 32 * v}, x, x)
			} else {
				VMOVDQU(Mem{Base: t, Disp: 32 * v}, x)
				VPCMPGTD(Mem{Base: values, Disp: 32 * v}, x, x)
			}
			VMOVMSKPS(x, part.As32())
			SHLQ(U8(8*v), part)
			ORQ(part, word)
		}
		if !float {
			NOTQ(word)
		}
		MOVQ(word, Mem{Base: dst})
		ADDQ(U8(8), dst)
		ADDQ(U32(256), values)
		ADDQ(U32(256), t)
		DECQ(n)
		JNE(LabelRef("next"))
		VZEROUPPER()
		RET()
	}
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

// everywhere loads a float32 argument into all lanes.
func everywhere(name string) reg.VecVirtual {
	argument, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	all := YMM()
	VBROADCASTSS(argument.Addr, all)
	return all
}

// activations writes PReLU and clips of a row.
func activations() {
	TEXT("preluAVX2", NOSPLIT, "func(x, slope *float32, n int)")
	Doc("preluAVX2 multiplies x[i] by slope[i] where it is less than 0, for i < n, n > 0.")
	Pragma("noescape")
	p := []reg.Register{Load(Param("x"), GP64()), Load(Param("slope"), GP64())}
	n := Load(Param("n"), GP64())
	zero := YMM()
	VXORPS(zero, zero, zero)
	lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		x, y, less := load(0), load(1), YMM()
		VMULPS(x, y, y)
		VCMPPS(U8(17), zero, x, less) // <
		VBLENDVPS(less, y, x, x)
		store(x, 0)
	})

	TEXT("clipAVX2", NOSPLIT, "func(x *float32, n int, low, high float32)")
	Doc("clipAVX2 makes low of x[i] where it is not greater, and then high where that is not less, for i < n, n > 0.")
	Pragma("noescape")
	p = []reg.Register{Load(Param("x"), GP64())}
	n = Load(Param("n"), GP64())
	low, high := everywhere("low"), everywhere("high")
	lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		x := load(0)
		VMAXPS(low, x, x)  // x where it is greater
		VMINPS(high, x, x) // x where it is less
		store(x, 0)
	})
}

// mul writes the product of two rows.
func mul() {
	TEXT("mulAVX2", NOSPLIT, "func(dst, a, b *float32, n int)")
	Doc("mulAVX2 computes dst[i] = a[i]·b[i] for i < n, n > 0.")
	Pragma("noescape")
	p := []reg.Register{Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())}
	lanes(Load(Param("n"), GP64()), p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		x, y := load(1), load(2)
		VMULPS(y, x, x)
		store(x, 0)
	})
}

// divide writes the division of a row by a number of taps.
func divide() {
	TEXT("divideAVX2", NOSPLIT, "func(x *float32, n int, taps, y float32)")
	Doc("divideAVX2 divides x[i] by taps, whose rounded reciprocal is y, for i < n, n > 0:", "",
		"\tq = x[i]·y, r = fma(−taps, q, x[i]), x[i] = fma(r, y, q)")
	Pragma("noescape")
	p := []reg.Register{Load(Param("x"), GP64())}
	n := Load(Param("n"), GP64())
	taps, y := everywhere("taps"), everywhere("y")
	lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		r, q := load(0), YMM()
		VMULPS(y, r, q)
		VFNMADD231PS(taps, q, r)
		VFMADD213PS(q, y, r)
		store(r, 0)
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
