package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// elementwise writes what makes an output of every value.
func elementwise() {
	thresholds()
	gen.Ends(zmm)
	choose()
}

// thresholds writes the comparison and packing of rows.
func thresholds() {
	for _, float := range []bool{false, true} {
		name, typ := "thresholdAVX512", "int32"
		if float {
			name, typ = "thresholdFloatAVX512", "float32"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *uint64, values, t *%s, n, pixels, step, stride int)", typ))
		Doc(name+" sets, for o < n and every pixel, n > 0, pixels > 0,", "",
			"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]", "",
			"and the bits of the last word beyond n to 0. step and stride are the bytes",
			"from a pixel to the next one, of dst and of values.")
		Pragma("noescape")
		dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
		n, pixels := GP64(), Load(Param("pixels"), GP64())
		ge := func(m Mem, v reg.VecVirtual, k reg.OpmaskVirtual) {
			if float {
				VCMPPS(U8(13), m, v, k)
			} else {
				VPCMPD(U8(5), m, v, k)
			}
		}
		word, nextDst, nextValues := GP64(), GP64(), GP64()
		Label("pixel")
		MOVQ(dst, nextDst)
		ADDQ(NewParamAddr("step", 40), nextDst)
		MOVQ(values, nextValues)
		ADDQ(NewParamAddr("stride", 48), nextValues)
		Load(Param("n"), n)
		Load(Param("t"), t)
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
		MOVQ(nextDst, dst)
		MOVQ(nextValues, values)
		DECQ(pixels)
		JNE(LabelRef("pixel"))
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

// choose writes the conversion of bits to one of two values.
func choose() {
	TEXT("chooseAVX512", NOSPLIT, "func(dst *float32, src *uint64, one, zero *float32, words int)")
	Doc("chooseAVX512 sets dst[i] to one[i] where bit i of src is set, else to zero[i],",
		"for i < 64·words, words > 0.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	one, zero := Load(Param("one"), GP64()), Load(Param("zero"), GP64())
	n := Load(Param("words"), GP64())
	Label("next")
	for v := range 4 {
		k, x := K(), ZMM()
		KMOVW(Mem{Base: src, Disp: 2 * v}, k)
		VMOVUPS(Mem{Base: zero, Disp: 64 * v}, x)
		VMOVUPS(Mem{Base: one, Disp: 64 * v}, k, x)
		VMOVUPS(x, Mem{Base: dst, Disp: 64 * v})
	}
	ADDQ(U8(8), src)
	for _, r := range []reg.Register{dst, one, zero} {
		ADDQ(U32(256), r)
	}
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
