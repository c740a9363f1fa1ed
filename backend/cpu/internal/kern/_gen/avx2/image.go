package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// image writes what reads the bytes of images.
func image() {
	thresholdBytes()
	floats()
	spread()
	luma()
	lbp()
	minMax()
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

// floats writes the conversion of bytes.
func floats() {
	TEXT("floatsAVX2", NOSPLIT, "func(dst *float32, src *uint8, vectors int)")
	Doc("floatsAVX2 computes dst[i] = float32(src[i]) for i < 8·vectors, vectors > 0.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("vectors"), GP64())
	Label("next")
	x := YMM()
	VPMOVZXBD(Mem{Base: src}, x)
	VCVTDQ2PS(x, x)
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(U8(8), src)
	ADDQ(U8(32), dst)
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
