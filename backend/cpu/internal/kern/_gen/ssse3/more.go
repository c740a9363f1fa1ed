package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// Offsets of the fields of kern.PoolJob.
const (
	poolDst     = 0
	poolSrc     = 8
	poolTaps    = 16
	poolCount   = 24
	poolBytes   = 32
	poolStep    = 40
	poolDstStep = 48
	poolPixels  = 56
)

// dot writes the sums of packed words: four outputs, word by word.
func dot() {
	TEXT("dotBits4SSSE3", NOSPLIT, "func(job *byte)")
	Doc("dotBits4SSSE3 computes k − 2·popcount(patch XOR weights) of four outputs, for", "every pixel of a DotJob.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	x, w, row, n := GP64(), GP64(), GP64(), GP64()
	sums := make([]reg.GPVirtual, 4)
	for i := range sums {
		sums[i] = GP64()
	}
	Label("pixel")
	CMPQ(Mem{Base: job, Disp: gen.TilePixels}, U8(0))
	JEQ(LabelRef("done"))
	MOVQ(Mem{Base: job, Disp: gen.TileSrc}, x)
	MOVQ(Mem{Base: job, Disp: gen.TileWeights}, w)
	MOVQ(Mem{Base: job, Disp: gen.TileRows}, row)
	for _, s := range sums {
		XORQ(s, s)
	}
	Label("row")
	MOVQ(Mem{Base: job, Disp: gen.TileRun}, n)
	Label("word")
	a := GP64()
	MOVQ(Mem{Base: x}, a)
	for i, s := range sums {
		t := GP64()
		MOVQ(Mem{Base: w, Disp: 8 * i}, t)
		XORQ(a, t)
		POPCNTQ(t, t)
		ADDQ(t, s)
	}
	ADDQ(U8(8), x)
	ADDQ(U8(32), w)
	SUBQ(U8(8), n)
	JNE(LabelRef("word"))
	ADDQ(Mem{Base: job, Disp: gen.TileSkip}, x)
	DECQ(row)
	JNE(LabelRef("row"))
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: gen.TileDst}, dst)
	for i, s := range sums {
		k := GP64()
		MOVQ(Mem{Base: job, Disp: gen.DotK}, k)
		SUBQ(s, k)
		SUBQ(s, k)
		MOVL(k.As32(), Mem{Base: dst, Disp: 4 * i})
	}
	ADDQ(Mem{Base: job, Disp: gen.TileDstStep}, dst)
	MOVQ(dst, Mem{Base: job, Disp: gen.TileDst})
	step := GP64()
	MOVQ(Mem{Base: job, Disp: gen.TileStep}, step)
	ADDQ(step, Mem{Base: job, Disp: gen.TileSrc})
	DECQ(Mem{Base: job, Disp: gen.TilePixels})
	JMP(LabelRef("pixel"))
	Label("done")
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

func thresholdBytes() {
	TEXT("thresholdBytesSSSE3", NOSPLIT, "func(dst *uint64, src, t *uint8, words, period int)")
	Doc("thresholdBytesSSSE3 sets, for i < 64·words, words > 0,", "",
		"\tbit i%64 of dst[i/64] = src[i] ≥ t[i mod 64·period]")
	Pragma("noescape")
	dst, src, t := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("t"), GP64())
	n, period := Load(Param("words"), GP64()), Load(Param("period"), GP64())
	bounds, left, word, part := GP64(), GP64(), GP64(), GP64()
	Label("period")
	MOVQ(t, bounds)
	MOVQ(period, left)
	Label("next")
	XORQ(word, word)
	for i := range 4 {
		x, y := XMM(), XMM()
		MOVOU(Mem{Base: src, Disp: 16 * i}, x)
		MOVOU(Mem{Base: bounds, Disp: 16 * i}, y)
		PMAXUB(x, y)
		PCMPEQB(x, y)
		PMOVMSKB(y, part.As32())
		if i > 0 {
			SHLQ(U8(16*i), part)
		}
		ORQ(part, word)
	}
	MOVQ(word, Mem{Base: dst})
	ADDQ(U8(8), dst)
	ADDQ(U8(64), src)
	ADDQ(U8(64), bounds)
	DECQ(n)
	JEQ(LabelRef("done"))
	DECQ(left)
	JNE(LabelRef("next"))
	JMP(LabelRef("period"))
	Label("done")
	RET()
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

// pool writes pooling behind a PoolJob, 16 bytes of a pixel at a time as long
// as there are as many.
func pool(float bool) {
	name, doc, smallest := "orPoolSSSE3", "OR", 8
	if float {
		name, doc, smallest = "maxPoolSSSE3", "maxima", 4
	}
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name + " writes the " + doc + " of the taps of a PoolJob, without its flip.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	dst, src, i, end, tap, left, at := GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: poolDst}, dst)
	MOVQ(Mem{Base: job, Disp: poolSrc}, src)
	MOVQ(Mem{Base: job, Disp: poolBytes}, end)
	Label("pixel")
	XORQ(i, i)
	for _, size := range []int{16, smallest} {
		l := func(name string) string {
			if size == 16 {
				return name + "16"
			}
			return name
		}
		move := func(from, to Op) {
			switch size {
			case 16:
				MOVUPS(from, to)
			case 8:
				MOVQ(from, to)
			default:
				MOVSS(from, to)
			}
		}
		Label(l("part"))
		LEAQ(Mem{Base: i, Disp: size}, at)
		CMPQ(at, end)
		JGT(LabelRef(l("end")))
		MOVQ(Mem{Base: job, Disp: poolTaps}, tap)
		MOVQ(Mem{Base: job, Disp: poolCount}, left)
		sum := XMM()
		MOVQ(Mem{Base: tap}, at)
		ADDQ(i, at)
		move(Mem{Base: src, Index: at, Scale: 1}, sum)
		Label(l("tap"))
		DECQ(left)
		JEQ(LabelRef(l("store")))
		ADDQ(U8(8), tap)
		MOVQ(Mem{Base: tap}, at)
		ADDQ(i, at)
		v := XMM()
		move(Mem{Base: src, Index: at, Scale: 1}, v)
		if float {
			MAXPS(sum, v) // sum where they are equal, or not comparable
			MOVO(v, sum)
		} else {
			POR(v, sum)
		}
		JMP(LabelRef(l("tap")))
		Label(l("store"))
		move(sum, Mem{Base: dst, Index: i, Scale: 1})
		ADDQ(U8(size), i)
		JMP(LabelRef(l("part")))
		Label(l("end"))
	}
	ADDQ(Mem{Base: job, Disp: poolStep}, src)
	ADDQ(Mem{Base: job, Disp: poolDstStep}, dst)
	DECQ(Mem{Base: job, Disp: poolPixels})
	JNE(LabelRef("pixel"))
	RET()
}

// pool4 writes the pooling of windows of 2×2.
func pool4() {
	TEXT("orPool4SSSE3", NOSPLIT, "func(job *byte, flip uint64)")
	Doc("orPool4SSSE3 writes the OR of four taps of one word of a PoolJob, XOR flip.")
	Pragma("noescape")
	job, flip := Load(Param("job"), GP64()), Load(Param("flip"), GP64())
	dst, src, n, v := GP64(), GP64(), GP64(), GP64()
	var taps [4]reg.GPVirtual
	MOVQ(Mem{Base: job, Disp: poolTaps}, v)
	for i := range taps {
		taps[i] = GP64()
		MOVQ(Mem{Base: v, Disp: 8 * i}, taps[i])
	}
	MOVQ(Mem{Base: job, Disp: poolDst}, dst)
	MOVQ(Mem{Base: job, Disp: poolSrc}, src)
	MOVQ(Mem{Base: job, Disp: poolPixels}, n)
	Label("pixel")
	MOVQ(Mem{Base: src, Index: taps[0], Scale: 1}, v)
	for _, t := range taps[1:] {
		ORQ(Mem{Base: src, Index: t, Scale: 1}, v)
	}
	XORQ(flip, v)
	MOVQ(v, Mem{Base: dst})
	ADDQ(Mem{Base: job, Disp: poolStep}, src)
	ADDQ(Mem{Base: job, Disp: poolDstStep}, dst)
	DECQ(n)
	JNE(LabelRef("pixel"))
	RET()
}

func minMax() {
	TEXT("minMaxSSSE3", NOSPLIT, "func(src *uint8, vectors int, low, high *uint8)")
	Doc("minMaxSSSE3 stores the least and the greatest of every 16th byte, for 16·vectors", "bytes, vectors > 0.")
	Pragma("noescape")
	src, n := Load(Param("src"), GP64()), Load(Param("vectors"), GP64())
	low, high := XMM(), XMM()
	MOVOU(Mem{Base: src}, low)
	MOVO(low, high)
	Label("next")
	v := XMM()
	MOVOU(Mem{Base: src}, v)
	PMINUB(v, low)
	PMAXUB(v, high)
	ADDQ(U8(16), src)
	DECQ(n)
	JNE(LabelRef("next"))
	MOVOU(low, Mem{Base: Load(Param("low"), GP64())})
	MOVOU(high, Mem{Base: Load(Param("high"), GP64())})
	RET()
}
