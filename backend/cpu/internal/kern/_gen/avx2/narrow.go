package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// narrowThresholds writes the comparison of the values of a part of a word, and of a word
// with three thresholds each.
func narrowThresholds() {
	for _, typ := range []string{"int32", "float32"} {
		name := "thresholdNarrowAVX2"
		if typ == "float32" {
			name = "thresholdFloatNarrowAVX2"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *uint64, values, t *%s, vectors, pixels, step, stride int)", typ))
		Doc(name+" sets, for o < 8·vectors, 0 < vectors ≤ 8, and every pixel, pixels > 0,", "",
			"\tbit o of dst = values[o] ≥ t[o]", "",
			"and other bits to 0. step and stride are the bytes from a pixel to the next one, of dst and",
			"of values.")
		thresholdsOfPart(typ == "float32", 1)
	}
	TEXT("thresholdPlanesAVX2", NOSPLIT, "func(dst *uint64, values, t *float32, vectors, pixels, step, stride, plane, next int)")
	Doc("thresholdPlanesAVX2 counts, for o < 8·vectors, 0 < vectors ≤ 8, and every pixel, pixels > 0,",
		"the thresholds that values[o] reaches of t[o], and those that follow, each next bytes behind",
		"the one before, and sets bit o of dst to whether they are odd, and that of the word plane",
		"bytes behind it to whether the second one is reached. Other bits are 0. step and stride are",
		"the bytes from a pixel to the next one, of dst and of values.")
	thresholdsOfPart(true, 3)
}

// thresholdsOfPart writes the code of such a kernel.
func thresholdsOfPart(float bool, thresholds int) {
	Pragma("noescape")
	dst, values := Load(Param("dst"), GP64()), Load(Param("values"), GP64())
	t := []reg.Register{Load(Param("t"), GP64())}
	vectors, left := Load(Param("vectors"), GP64()), Load(Param("pixels"), GP64())
	var plane reg.Register
	if thresholds > 1 {
		plane = Load(Param("plane"), GP64())
		next := Load(Param("next"), GP64())
		for k := 1; k < thresholds; k++ {
			t = append(t, GP64())
			LEAQ(Mem{Base: t[k-1], Index: next, Scale: 1}, t[k])
		}
	}
	zero, v, place := GP64(), GP64(), GP64()
	XORQ(zero, zero)
	Label("pixel")
	MOVQ(zero, Mem{Base: dst})
	if thresholds > 1 {
		MOVQ(zero, Mem{Base: dst, Index: plane, Scale: 1})
		LEAQ(Mem{Base: dst, Index: plane, Scale: 1}, place)
	}
	XORQ(v, v)
	Label("vector")
	index := GP64()
	MOVQ(v, index)
	SHLQ(U8(5), index)
	x := YMM()
	VMOVUPS(Mem{Base: values, Index: index, Scale: 1}, x)
	reached := make([]reg.VecVirtual, thresholds)
	for k := range reached {
		reached[k] = YMM()
		VMOVUPS(Mem{Base: t[k], Index: index, Scale: 1}, reached[k])
		if float {
			VCMPPS(U8(2), x, reached[k], reached[k])
		} else {
			VPCMPGTD(x, reached[k], reached[k])
		}
	}
	part := GP32()
	if thresholds > 1 {
		VXORPS(reached[1], reached[0], reached[0])
		VXORPS(reached[2], reached[0], reached[0])
		second := GP32()
		VMOVMSKPS(reached[1], second)
		MOVB(second.As8(), Mem{Base: place, Index: v, Scale: 1})
	}
	VMOVMSKPS(reached[0], part)
	if !float {
		NOTL(part)
	}
	MOVB(part.As8(), Mem{Base: dst, Index: v, Scale: 1})
	INCQ(v)
	CMPQ(v, vectors)
	JNE(LabelRef("vector"))
	stride := GP64()
	Load(Param("step"), stride)
	ADDQ(stride, dst)
	Load(Param("stride"), stride)
	ADDQ(stride, values)
	DECQ(left)
	JNE(LabelRef("pixel"))
	VZEROUPPER()
	RET()
}
