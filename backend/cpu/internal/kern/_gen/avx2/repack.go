package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// repack writes changes of layout.
func repack() {
	narrow()
	join("join32AVX2", 4)
	join("join8AVX2", 1)
	expand()
	expandBytes()
	lookUpBytes()
}

// narrow writes the conversion of words to halves.
func narrow() {
	TEXT("narrowAVX2", NOSPLIT, "func(dst *uint32, src *uint64, n int)")
	Doc("narrowAVX2 computes dst[i] = uint32(src[i]) for i < n, n ≥ 8.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	SHLQ(U8(2), n)
	blocks(n, constant(32), func(i reg.GPVirtual) {
		a, b := YMM(), YMM()
		VMOVUPS(Mem{Base: src, Index: i, Scale: 2}, a)
		VMOVUPS(Mem{Base: src, Index: i, Scale: 2, Disp: 32}, b)
		VSHUFPS(U8(0x88), b, a, a)
		VPERMQ(U8(0xd8), a, a)
		VMOVDQU(a, Mem{Base: dst, Index: i, Scale: 1})
	})
	VZEROUPPER()
	RET()
}

// join writes the packing of neighbours into one word.
func join(name string, vectors int) {
	TEXT(name, NOSPLIT, "func(dst, src *uint32, n, taps, step, shift int)")
	Doc(name+" computes, for i < n,", "",
		"\tdst[i] = OR over t < taps of src[i+t·step] << t·shift", "",
		"step counts bytes. n is at least the number of values that are computed at a time.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	taps, step := Load(Param("taps"), GP64()), Load(Param("step"), GP64())
	by := XMM()
	VMOVQ(Load(Param("shift"), GP64()), by)
	SHLQ(U8(2), n)
	p, t := GP64(), GP64()
	blocks(n, constant(32*vectors), func(i reg.GPVirtual) {
		count := XMM()
		VPXOR(count, count, count)
		acc := make([]reg.VecVirtual, vectors)
		LEAQ(Mem{Base: src, Index: i, Scale: 1}, p)
		for v := range acc {
			acc[v] = YMM()
			VMOVDQU(Mem{Base: p, Disp: 32 * v}, acc[v])
		}
		MOVQ(taps, t)
		JMP(LabelRef("first"))
		Label("tap")
		ADDQ(step, p)
		VPADDQ(by, count, count)
		for v := range acc {
			x := YMM()
			VMOVDQU(Mem{Base: p, Disp: 32 * v}, x)
			VPSLLD(count, x, x)
			VPOR(x, acc[v], acc[v])
		}
		Label("first")
		DECQ(t)
		JNE(LabelRef("tap"))
		for v := range acc {
			VMOVDQU(acc[v], Mem{Base: dst, Index: i, Scale: 1, Disp: 32 * v})
		}
	})
	VZEROUPPER()
	RET()
}

// expand writes the distribution of nibbles to bytes.
func expand() {
	masks := table("nibbleMasks", words(0x00f000f000f000f0, 0xf000f000f000f000))
	TEXT("expandAVX2", NOSPLIT, "func(dst *uint8, src *uint32, n int)")
	Doc("expandAVX2 is expandNibbles of n values, n ≥ 4.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	SHLQ(U8(2), n)
	even, odd := YMM(), YMM()
	VPBROADCASTQ(masks, even)
	VPBROADCASTQ(masks.Offset(8), odd)
	blocks(n, constant(16), func(i reg.GPVirtual) {
		x, y := YMM(), YMM()
		VPMOVZXBW(Mem{Base: src, Index: i, Scale: 1}, x)
		VPSLLW(U8(8), x, y)
		VPSLLW(U8(4), x, x)
		VPAND(odd, y, y)
		VPAND(even, x, x)
		VPOR(y, x, x)
		VMOVDQU(x, Mem{Base: dst, Index: i, Scale: 2})
	})
	VZEROUPPER()
	RET()
}

// expandBytes writes the distribution of bytes to offsets in a table of 32 bytes each.
func expandBytes() {
	TEXT("expandBytesAVX2", NOSPLIT, "func(dst *uint8, src *uint32, n int)")
	Doc("expandBytesAVX2 is ExpandBytes of n values, n ≥ 4.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	SHLQ(U8(2), n)
	blocks(n, constant(16), func(i reg.GPVirtual) {
		x := YMM()
		VPMOVZXBW(Mem{Base: src, Index: i, Scale: 1}, x)
		VPSLLW(U8(5), x, x)
		VMOVDQU(x, Mem{Base: dst, Index: i, Scale: 2})
	})
	VZEROUPPER()
	RET()
}

// lookUpBytes writes the look-up of bytes: each of 16 entries is XORed to the bytes of its
// half that reach it. Less 16 for each, those of the half stay below 128 until they do
// not; what is negative, the other half among it, gives 0.
func lookUpBytes() {
	for _, vectors := range []int{4, 1} {
		name := fmt.Sprintf("lookUpBytes%dAVX2", 32*vectors)
		TEXT(name, NOSPLIT, "func(dst, src *uint8, n int, changes *uint8)")
		Doc(fmt.Sprintf("%s looks up the bytes of src, n ≥ %d.", name, 32*vectors))
		Pragma("noescape")
		dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
		n, changes := Load(Param("n"), GP64()).(reg.GPVirtual), Load(Param("changes"), GP64())
		sixteen, half := YMM(), YMM()
		for _, c := range []struct {
			value uint64
			to    reg.VecVirtual
		}{{0x1010101010101010, sixteen}, {0x8080808080808080, half}} {
			word, low := GP64(), XMM()
			MOVQ(U64(c.value), word)
			MOVQ(word, low)
			VPBROADCASTQ(low, c.to)
		}
		entry := YMM()
		x, sum := make([]reg.VecVirtual, vectors), make([]reg.VecVirtual, vectors)
		for v := range x {
			x[v], sum[v] = YMM(), YMM()
		}
		blocks(n, constant(32*vectors), func(i reg.GPVirtual) {
			for part := range 16 {
				VBROADCASTI128(Mem{Base: changes, Disp: 16 * part}, entry)
				for v := range x {
					at := Mem{Base: src, Index: i, Scale: 1, Disp: 32 * v}
					switch part {
					case 0:
						VMOVDQU(at, x[v])
						VPSHUFB(x[v], entry, sum[v])
						continue
					case 8:
						VPXOR(at, half, x[v])
					default:
						VPSUBSB(sixteen, x[v], x[v])
					}
					found := YMM()
					VPSHUFB(x[v], entry, found)
					VPXOR(found, sum[v], sum[v])
				}
			}
			for v := range x {
				VMOVDQU(sum[v], Mem{Base: dst, Index: i, Scale: 1, Disp: 32 * v})
			}
		})
		VZEROUPPER()
		RET()
	}
}
