package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fma writes the sums of real weights, 64, 16 or fewer output channels at a
// time.
func fma() {
	for _, vectors := range []int{4, 1} {
		name := fmt.Sprintf("fma%dAVX512", 16*vectors)
		params := "func(acc, x *float32, n int, w *float32, stride int)"
		if vectors == 1 {
			params = "func(acc, x *float32, n int, w *float32, stride int, mask uint16)"
		}
		TEXT(name, NOSPLIT, params)
		outputs := fmt.Sprintf("o < %d", 16*vectors)
		if vectors == 1 {
			outputs = "o in mask"
		}
		Doc(name+" computes, for i < n in order, and for "+outputs+",", "",
			"\tacc[o] = fma(x[i], w[i·stride+o], acc[o])", "",
			"stride counts bytes.")
		Pragma("noescape")
		acc, x, n := Load(Param("acc"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
		w, stride := Load(Param("w"), GP64()), Load(Param("stride"), GP64())
		var k reg.OpmaskVirtual
		if vectors == 1 {
			mask := Load(Param("mask"), GP32())
			k = K()
			KMOVW(mask, k)
		}
		sums := make([]reg.VecVirtual, vectors)
		for v := range sums {
			sums[v] = ZMM()
			m := Mem{Base: acc, Disp: 64 * v}
			if vectors == 1 {
				VMOVUPS_Z(m, k, sums[v])
			} else {
				VMOVUPS(m, sums[v])
			}
		}
		Label("next")
		b := ZMM()
		VBROADCASTSS(Mem{Base: x}, b)
		for v := range sums {
			m := Mem{Base: w, Disp: 64 * v}
			if vectors == 1 {
				VFMADD231PS(m, b, k, sums[v])
			} else {
				VFMADD231PS(m, b, sums[v])
			}
		}
		ADDQ(U8(4), x)
		ADDQ(stride, w)
		DECQ(n)
		JNE(LabelRef("next"))
		for v := range sums {
			m := Mem{Base: acc, Disp: 64 * v}
			if vectors == 1 {
				VMOVUPS(sums[v], k, m)
			} else {
				VMOVUPS(sums[v], m)
			}
		}
		VZEROUPPER()
		RET()
	}
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

// peak writes the innermost instructions of convBits on registers only.
const peakTimes = 8 // so that the loop itself costs nothing

func peak() {
	TEXT("peakAVX512", NOSPLIT, "func(rounds int)")
	Doc("peakAVX512 does 8 × 16 vectors of xor, popcount and add, 512 products each,", "rounds times.")
	n := Load(Param("rounds"), GP64())
	x := ZMM()
	VPXORD(x, x, x)
	acc := make([]reg.VecVirtual, 16)
	for i := range acc {
		acc[i] = ZMM()
		VPXORD(acc[i], acc[i], acc[i])
	}
	Label("next")
	for range peakTimes {
		for _, a := range acc {
			t := ZMM()
			VPXORD(a, x, t)
			VPOPCNTD(t, t)
			VPADDD(t, a, a)
		}
	}
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
