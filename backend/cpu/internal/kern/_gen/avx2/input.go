package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blocks writes a loop over the offsets 0, size, 2·size … below total, the last
// one moved back so that a whole block ends at total: total is at least size,
// and what is written twice must be the same both times.
func blocks(total, size reg.GPVirtual, body func(offset reg.GPVirtual)) {
	i, last := GP64(), GP64()
	XORQ(i, i)
	MOVQ(total, last)
	SUBQ(size, last)
	Label("block")
	body(i)
	CMPQ(i, last)
	JEQ(LabelRef("end"))
	ADDQ(size, i)
	CMPQ(i, last)
	CMOVQGT(last, i)
	JMP(LabelRef("block"))
	Label("end")
}

func constant(n int) reg.GPVirtual {
	r := GP64()
	MOVQ(U32(uint32(n)), r)
	return r
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

// thresholdBytes writes the comparison and packing of the bytes of an image.
func thresholdBytes() {
	TEXT("thresholdBytesAVX2", NOSPLIT, "func(dst *uint64, src, t *uint8, words, period int)")
	Doc("thresholdBytesAVX2 sets, for i < 64·words, words > 0,", "",
		"\tbit i%64 of dst[i/64] = src[i] ≥ t[i mod 64·period]")
	Pragma("noescape")
	dst, src, t := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("t"), GP64())
	words, period := Load(Param("words"), GP64()), Load(Param("period"), GP64())
	at, left := GP64(), GP64()
	Label("period")
	MOVQ(t, at)
	MOVQ(period, left)
	Label("word")
	var half [2]reg.GPVirtual
	for v := range half {
		x, y := YMM(), YMM()
		VMOVDQU(Mem{Base: src, Disp: 32 * v}, x)
		VPMAXUB(Mem{Base: at, Disp: 32 * v}, x, y)
		VPCMPEQB(x, y, y)
		half[v] = GP64()
		VPMOVMSKB(y, half[v].As32())
	}
	SHLQ(U8(32), half[1])
	ORQ(half[1], half[0])
	MOVQ(half[0], Mem{Base: dst})
	ADDQ(U8(8), dst)
	ADDQ(U8(64), src)
	ADDQ(U8(64), at)
	DECQ(words)
	JEQ(LabelRef("done"))
	DECQ(left)
	JNE(LabelRef("word"))
	JMP(LabelRef("period"))
	Label("done")
	VZEROUPPER()
	RET()
}

// table returns the address of constant bytes.
func table(name string, values []uint8) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := 0; i < len(values); i += 8 {
		var w uint64
		for j := range 8 {
			w |= uint64(values[i+j]) << (8 * j)
		}
		DATA(i, U64(w))
	}
	return m
}

// words returns the bytes of little-endian words.
func words(values ...uint64) []uint8 {
	var b []uint8
	for _, v := range values {
		for i := range 8 {
			b = append(b, uint8(v>>(8*i)))
		}
	}
	return b
}

// spread writes the distribution of dense bits to words.
func spread() {
	numbers := table("numbers", words(0, 1, 2, 3, 4, 5, 6, 7))
	TEXT("spreadAVX2", NOSPLIT, "func(dst *uint64, src *uint8, groups, n int, mask, flip uint64)")
	Doc("spreadAVX2 computes, for p < 8·groups, groups > 0, with n ≤ 8 and mask = 1<<n − 1,", "",
		"\tdst[p] = bits p·n … p·n+n−1 of src, XOR flip", "",
		"It reads 8 bytes at once.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	groups, n := Load(Param("groups"), GP64()), Load(Param("n"), GP64())
	low, high, mask, flip := YMM(), YMM(), YMM(), YMM()
	x := XMM()
	VMOVQ(n, x)
	VPBROADCASTQ(x, low)
	VPMULUDQ(numbers.Offset(32), low, high)
	VPMULUDQ(numbers, low, low)
	VPBROADCASTQ(NewParamAddr("mask", 32), mask)
	VPBROADCASTQ(NewParamAddr("flip", 40), flip)
	Label("next")
	b, c := YMM(), YMM()
	VPBROADCASTQ(Mem{Base: src}, b)
	VPSRLVQ(low, b, c)
	VPSRLVQ(high, b, b)
	VPAND(mask, c, c)
	VPAND(mask, b, b)
	VPXOR(flip, c, c)
	VPXOR(flip, b, b)
	VMOVDQU(c, Mem{Base: dst})
	VMOVDQU(b, Mem{Base: dst, Disp: 32})
	ADDQ(n, src)
	ADDQ(U8(64), dst)
	DECQ(groups)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// luma writes the conversion of colours to grey.
func luma() {
	const none = 0x80
	var order, weights, sums, pick []uint8
	for lane := range 2 {
		for p := range 4 {
			at := uint8(3*p + 4*lane) // the second lane starts 4 bytes before its first pixel
			order = append(order, at, at+2, at+1, none)
			weights = append(weights, 77, 29, 75, 0)
			sums = append(sums, 1, 0, 2, 0) // green counts twice: 150 does not fit
		}
		pick = append(pick, 1, 5, 9, 13)
		for range 12 {
			pick = append(pick, none)
		}
	}
	orderAt, weightsAt := table("lumaOrder", order), table("lumaWeights", weights)
	sumsAt, pickAt := table("lumaSums", sums), table("lumaPick", pick)
	TEXT("lumaAVX2", NOSPLIT, "func(dst, rgb *uint8, groups int)")
	Doc("lumaAVX2 computes, for p < 8·groups, groups > 0, with the bytes r, g, b of pixel p,", "",
		"\tdst[p] = (77·r + 150·g + 29·b) >> 8")
	Pragma("noescape")
	dst, rgb, groups := Load(Param("dst"), GP64()), Load(Param("rgb"), GP64()), Load(Param("groups"), GP64())
	o, w, s, k := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(orderAt, o)
	VMOVDQU(weightsAt, w)
	VMOVDQU(sumsAt, s)
	VMOVDQU(pickAt, k)
	Label("next")
	x, upper := YMM(), XMM()
	VMOVDQU(Mem{Base: rgb}, x.AsX())
	VINSERTI128(U8(1), Mem{Base: rgb, Disp: 8}, x, x)
	VPSHUFB(o, x, x)
	VPMADDUBSW(w, x, x)
	VPMADDWD(s, x, x)
	VPSHUFB(k, x, x)
	VEXTRACTI128(U8(1), x, upper)
	VPUNPCKLDQ(upper, x.AsX(), x.AsX())
	VMOVQ(x.AsX(), Mem{Base: dst})
	ADDQ(U8(24), rgb)
	ADDQ(U8(8), dst)
	DECQ(groups)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// lbp writes the comparison of pixels with their neighbours.
func lbp() {
	bitsAt := table("lbpBits", words(0x0101010101010101, 0x0202020202020202, 0x0404040404040404, 0))
	TEXT("lbpAVX2", NOSPLIT, "func(dst *uint64, above, row, below *uint8, n int)")
	Doc("lbpAVX2 computes, for x < n, n ≥ 8, with c = row[x+1],", "",
		"\tdst[x] = above[x] > c | (row[x+2] > c)<<1 | (below[x] > c)<<2")
	Pragma("noescape")
	dst, above := Load(Param("dst"), GP64()), Load(Param("above"), GP64())
	row, below := Load(Param("row"), GP64()), Load(Param("below"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	var bit [3]reg.VecVirtual
	for i := range bit {
		bit[i] = XMM()
		VPBROADCASTQ(bitsAt.Offset(8*i), bit[i])
	}
	blocks(n, constant(8), func(i reg.GPVirtual) {
		centre, sum := XMM(), XMM()
		VMOVQ(Mem{Base: row, Index: i, Scale: 1, Disp: 1}, centre)
		for k, m := range []Mem{
			{Base: above, Index: i, Scale: 1}, {Base: row, Index: i, Scale: 1, Disp: 2}, {Base: below, Index: i, Scale: 1},
		} {
			x := XMM()
			VMOVQ(m, x)
			VPMAXUB(centre, x, x)
			VPCMPEQB(centre, x, x) // not greater
			VPANDN(bit[k], x, x)
			if k == 0 {
				sum = x
			} else {
				VPOR(x, sum, sum)
			}
		}
		low, high := YMM(), YMM()
		VPMOVZXBQ(sum, low)
		VPSRLDQ(U8(4), sum, sum)
		VPMOVZXBQ(sum, high)
		VMOVDQU(low, Mem{Base: dst, Index: i, Scale: 8})
		VMOVDQU(high, Mem{Base: dst, Index: i, Scale: 8, Disp: 32})
	})
	VZEROUPPER()
	RET()
}

// minMax writes the search for the extremes of bytes.
func minMax() {
	TEXT("minMaxAVX2", NOSPLIT, "func(src *uint8, n int, lowest, highest *uint8)")
	Doc("minMaxAVX2 stores 32 bytes at lowest, whose least is the least of n bytes, n ≥ 32,",
		"and 32 at highest.")
	Pragma("noescape")
	src := Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	low, high := YMM(), YMM()
	VMOVDQU(Mem{Base: src}, low)
	VMOVDQU(Mem{Base: src}, high)
	blocks(n, constant(32), func(i reg.GPVirtual) {
		x := YMM()
		VMOVDQU(Mem{Base: src, Index: i, Scale: 1}, x)
		VPMINUB(x, low, low)
		VPMAXUB(x, high, high)
	})
	VMOVDQU(low, Mem{Base: Load(Param("lowest"), GP64())})
	VMOVDQU(high, Mem{Base: Load(Param("highest"), GP64())})
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
