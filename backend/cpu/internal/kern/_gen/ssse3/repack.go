package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// repack writes changes of layout.
func repack() {
	narrow()
	joinRows()
	expand()
}

func narrow() {
	TEXT("narrowSSSE3", NOSPLIT, "func(dst *uint32, src *uint64, groups int)")
	Doc("narrowSSSE3 computes dst[i] = uint32(src[i]) for i < 4·groups, groups > 0.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("groups"), GP64())
	Label("next")
	x, y := XMM(), XMM()
	MOVUPS(Mem{Base: src}, x)
	MOVUPS(Mem{Base: src, Disp: 16}, y)
	SHUFPS(U8(0x88), y, x)
	MOVUPS(x, Mem{Base: dst})
	ADDQ(U8(32), src)
	ADDQ(U8(16), dst)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}

func joinRows() {
	TEXT("joinSSSE3", NOSPLIT, "func(dst, src *uint32, groups, taps, step, shift int)")
	Doc("joinSSSE3 computes, for i < 8·groups, groups > 0, taps > 0,", "",
		"\tdst[i] = OR over t < taps of src[i + t·step] << (t·shift)", "",
		"step counts bytes.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("groups"), GP64())
	taps, step, shift := Load(Param("taps"), GP64()), Load(Param("step"), GP64()), XMM()
	s := Load(Param("shift"), GP64())
	MOVQ(s, shift)
	x, left := GP64(), GP64()
	Label("next")
	a, b, by := XMM(), XMM(), XMM()
	MOVOU(Mem{Base: src}, a)
	MOVOU(Mem{Base: src, Disp: 16}, b)
	PXOR(by, by)
	MOVQ(src, x)
	MOVQ(taps, left)
	Label("tap")
	DECQ(left)
	JEQ(LabelRef("store"))
	ADDQ(step, x)
	PADDQ(shift, by)
	for i, sum := range []reg.VecVirtual{a, b} {
		v := XMM()
		MOVOU(Mem{Base: x, Disp: 16 * i}, v)
		PSLLL(by, v)
		POR(v, sum)
	}
	JMP(LabelRef("tap"))
	Label("store")
	MOVOU(a, Mem{Base: dst})
	MOVOU(b, Mem{Base: dst, Disp: 16})
	ADDQ(U8(32), src)
	ADDQ(U8(32), dst)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}

func expand() {
	TEXT("expandSSSE3", NOSPLIT, "func(dst *uint8, src *uint32, groups int)")
	Doc("expandSSSE3 stores the nibbles of src[i], the lowest first, in the high halves of",
		"bytes, for i < 4·groups, groups > 0.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("groups"), GP64())
	mask := XMM()
	PCMPEQW(mask, mask)
	PSLLW(U8(12), mask) // the upper nibbles of odd bytes
	t := XMM()
	MOVO(mask, t)
	PSRLW(U8(8), t)
	POR(t, mask)
	Label("next")
	high, low, second := XMM(), XMM(), XMM()
	MOVOU(Mem{Base: src}, high)
	MOVO(high, low)
	PSLLW(U8(4), low)
	PAND(mask, low)
	PAND(mask, high)
	MOVO(low, second)
	PUNPCKLBW(high, low)
	PUNPCKHBW(high, second)
	MOVOU(low, Mem{Base: dst})
	MOVOU(second, Mem{Base: dst, Disp: 16})
	ADDQ(U8(16), src)
	ADDQ(U8(32), dst)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}
