package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elementwise writes what makes an output of every value.
func elementwise() {
	thresholds()
	scale()
}

// thresholds writes the comparison and packing of rows.
func thresholds() {
	for _, float := range []bool{false, true} {
		name, typ := "thresholdAVX512", "int32"
		if float {
			name, typ = "thresholdFloatAVX512", "float32"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *uint64, values, t *%s, n int)", typ))
		Doc(name+" sets, for o < n, n > 0,", "",
			"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]", "",
			"and the bits of the last word beyond n to 0.")
		Pragma("noescape")
		dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
		n := Load(Param("n"), GP64())
		ge := func(m Mem, v reg.VecVirtual, k reg.OpmaskVirtual) {
			if float {
				VCMPPS(U8(13), m, v, k)
			} else {
				VPCMPD(U8(5), m, v, k)
			}
		}
		word := GP64()
		Label("words")
		CMPQ(n, U8(64))
		JLT(LabelRef("rest"))
		var masks [4]reg.OpmaskVirtual
		for v := range masks {
			masks[v] = K()
			x := ZMM()
			VMOVUPS(Mem{Base: values, Disp: 64 * v}, x)
			ge(Mem{Base: t, Disp: 64 * v}, x, masks[v])
		}
		KUNPCKWD(masks[0], masks[1], masks[0])
		KUNPCKWD(masks[2], masks[3], masks[2])
		KUNPCKDQ(masks[0], masks[2], masks[0])
		KMOVQ(masks[0], word)
		MOVQ(word, Mem{Base: dst})
		ADDQ(U8(8), dst)
		ADDQ(U32(256), values)
		ADDQ(U32(256), t)
		SUBQ(U8(64), n)
		JMP(LabelRef("words"))
		Label("rest")
		TESTQ(n, n)
		JEQ(LabelRef("done"))
		shift := GP64()
		XORQ(word, word)
		XORQ(shift, shift)
		Label("vectors")
		// The lanes that are left: 16, or the last few.
		lanes := firstLanes(n)
		valid := K()
		KMOVW(lanes.As32(), valid)
		x, y := ZMM(), ZMM()
		VMOVUPS_Z(Mem{Base: values}, valid, x)
		VMOVUPS_Z(Mem{Base: t}, valid, y)
		result := K()
		if float {
			VCMPPS(U8(13), y, x, valid, result)
		} else {
			VPCMPD(U8(5), y, x, valid, result)
		}
		part := GP64()
		KMOVW(result, part.As32())
		SHLXQ(shift, part, part)
		ORQ(part, word)
		ADDQ(U8(16), shift)
		ADDQ(U8(64), values)
		ADDQ(U8(64), t)
		SUBQ(U8(16), n)
		JGT(LabelRef("vectors"))
		MOVQ(word, Mem{Base: dst})
		Label("done")
		VZEROUPPER()
		RET()
	}
}

// firstLanes returns a mask of n lanes, at most 16.
func firstLanes(n reg.Register) reg.GPVirtual {
	count, lanes := GP64(), GP64()
	MOVQ(U32(16), count)
	CMPQ(n, count)
	CMOVQLT(n, count) // BZHI looks at 8 bits only
	MOVQ(I32(-1), lanes)
	BZHIQ(count, lanes, lanes)
	return lanes
}

// scale writes the affine map of a row.
func scale() {
	for _, float := range []bool{false, true} {
		name, typ := "scaleAVX512", "int32"
		if float {
			name, typ = "scaleFloatAVX512", "float32"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *float32, values *%s, scale, shift *float32, n int, always uint16)", typ))
		Doc(name+" computes, for o < n, n > 0,", "",
			"\tdst[o] = fma(float32(values[o]), scale[o], shift[o])", "",
			"or 0 where that is not greater than 0 and bit o%16 of always is not set.",
			"dst may be values.")
		Pragma("noescape")
		dst, values := Load(Param("dst"), GP64()), Load(Param("values"), GP64())
		scale, shift := Load(Param("scale"), GP64()), Load(Param("shift"), GP64())
		n := Load(Param("n"), GP64())
		zero, always := ZMM(), K()
		VPXORD(zero, zero, zero)
		KMOVW(Load(Param("always"), GP32()), always)
		Label("next")
		lanes := firstLanes(n)
		k := K()
		KMOVW(lanes.As32(), k)
		x, a, b := ZMM(), ZMM(), ZMM()
		if float {
			VMOVUPS_Z(Mem{Base: values}, k, x)
		} else {
			VCVTDQ2PS_Z(Mem{Base: values}, k, x)
		}
		VMOVUPS_Z(Mem{Base: scale}, k, a)
		VMOVUPS_Z(Mem{Base: shift}, k, b)
		VFMADD213PS(b, a, x)
		keep := K()
		VCMPPS(U8(14), zero, x, keep) // >
		KORW(always, keep, keep)
		VMOVAPS_Z(x, keep, x)
		VMOVUPS(x, k, Mem{Base: dst})
		for _, r := range []reg.GPVirtual{dst.(reg.GPVirtual), values.(reg.GPVirtual), scale.(reg.GPVirtual), shift.(reg.GPVirtual)} {
			ADDQ(U8(64), r)
		}
		SUBQ(U8(16), n)
		JGT(LabelRef("next"))
		VZEROUPPER()
		RET()
	}
}
