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
	lookUpBytes()
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

// lookUpBytes writes the look-up of bytes, as avx2 has it.
func lookUpBytes() {
	TEXT("lookUpBytesSSSE3", NOSPLIT, "func(dst, src *uint8, blocks int, changes *uint8)")
	Doc("lookUpBytesSSSE3 looks up 32·blocks bytes, blocks > 0.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	blocks, changes := Load(Param("blocks"), GP64()), Load(Param("changes"), GP64())
	sixteen, half := XMM(), XMM()
	for _, c := range []struct {
		value uint64
		to    reg.VecVirtual
	}{{0x1010101010101010, sixteen}, {0x8080808080808080, half}} {
		word := GP64()
		MOVQ(U64(c.value), word)
		MOVQ(word, c.to)
		PUNPCKLQDQ(c.to, c.to)
	}
	x, sum := []reg.VecVirtual{XMM(), XMM()}, []reg.VecVirtual{XMM(), XMM()}
	Label("next")
	for part := range 16 {
		entry := XMM()
		MOVOU(Mem{Base: changes, Disp: 16 * part}, entry)
		for v := range x {
			switch part {
			case 0:
				MOVOU(Mem{Base: src, Disp: 16 * v}, x[v])
				MOVO(entry, sum[v])
				PSHUFB(x[v], sum[v])
				continue
			case 8:
				MOVOU(Mem{Base: src, Disp: 16 * v}, x[v])
				PXOR(half, x[v])
			default:
				PSUBSB(sixteen, x[v])
			}
			found := XMM()
			MOVO(entry, found)
			PSHUFB(x[v], found)
			PXOR(found, sum[v])
		}
	}
	for v := range x {
		MOVOU(sum[v], Mem{Base: dst, Disp: 16 * v})
	}
	ADDQ(U8(32), src)
	ADDQ(U8(32), dst)
	DECQ(blocks)
	JNE(LabelRef("next"))
	RET()
}
