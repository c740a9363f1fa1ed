package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// largest writes the search for the largest of the channels of pixels, of which there are as
// many as few says, or four and more. The pixels are lanes. Two vectors of them take turns,
// because each channel waits for the one before.
func largest(few int) {
	const vectors = 2
	name, n := "largestAVX2", "n ≥ 4"
	if few > 0 {
		name, n = fmt.Sprintf("largest%dAVX2", few), fmt.Sprintf("n = %d, and four values from each pixel on are read", few)
	}
	TEXT(name, NOSPLIT, "func(dst, src *float32, n, groups int)")
	Doc(name+" sets dst[p] to the place of the first of the largest of the n values of pixel p of src,",
		fmt.Sprintf("%s, for %d·groups pixels, groups > 0. A NaN counts as −∞.", n, 8*vectors))
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n64, groups := Load(Param("n"), GP64()), Load(Param("groups"), GP64())
	step, step3, channel := GP64(), GP64(), GP64()
	MOVQ(n64, step)
	SHLQ(U8(2), step)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	type lanes struct {
		low, high   reg.GPVirtual // the first and the fifth pixel
		best, index reg.VecVirtual
	}
	var all [vectors]lanes
	for i := range all {
		all[i] = lanes{GP64(), GP64(), YMM(), YMM()}
	}
	// The next four channels: a vector of the pixels for each.
	block := func(l *lanes) {
		var a, t [4]reg.VecVirtual
		for k := range a {
			a[k], t[k] = YMM(), YMM()
			at := func(base reg.Register) Mem {
				return [...]Mem{{Base: base}, {Base: base, Index: step, Scale: 1}, {Base: base, Index: step, Scale: 2}, {Base: base, Index: step3, Scale: 1}}[k]
			}
			VMOVUPS(at(l.low), a[k].(reg.Vec).AsX())
			VINSERTF128(U8(1), at(l.high), a[k], a[k])
		}
		VUNPCKLPS(a[1], a[0], t[0])
		VUNPCKHPS(a[1], a[0], t[1])
		VUNPCKLPS(a[3], a[2], t[2])
		VUNPCKHPS(a[3], a[2], t[3])
		VUNPCKLPD(t[2], t[0], a[0])
		VUNPCKHPD(t[2], t[0], a[1])
		VUNPCKLPD(t[3], t[1], a[2])
		VUNPCKHPD(t[3], t[1], a[3])
		number := YMM()
		VMOVD(channel.As32(), number.AsX())
		VPBROADCASTD(number.AsX(), number)
		for k, x := range a {
			if few > 0 && k >= few {
				break
			}
			more, c := YMM(), number
			if k > 0 {
				c = YMM()
				VPADDD(NewDataAddr(NewStaticSymbol("channels"), 32*k), number, c)
			}
			VCMPPS(U8(30), l.best, x, more) // >
			VMAXPS(l.best, x, l.best)       // x where it is greater
			VBLENDVPS(more, c, l.index, l.index)
		}
	}
	Label("group")
	for i := range all {
		l := &all[i]
		if i == 0 {
			MOVQ(src, l.low)
		} else {
			LEAQ(Mem{Base: all[i-1].high, Index: step, Scale: 4}, l.low)
		}
		LEAQ(Mem{Base: l.low, Index: step, Scale: 4}, l.high)
		VPCMPEQD(l.best, l.best, l.best)
		VPSLLD(U8(23), l.best, l.best) // −∞
		VPXOR(l.index, l.index, l.index)
	}
	blocks := func() {
		for i := range all {
			block(&all[i])
		}
	}
	XORQ(channel, channel)
	if few > 0 {
		blocks()
	} else {
		last := GP64()
		MOVQ(n64, last)
		SUBQ(U8(4), last)
		Label("block")
		blocks()
		CMPQ(channel, last)
		JEQ(LabelRef("done"))
		// The last four may overlap with those before, which are no larger than the best.
		next := GP64()
		LEAQ(Mem{Base: channel, Disp: 4}, next)
		CMPQ(next, last)
		CMOVQGT(last, next)
		SUBQ(next, channel)
		NEGQ(channel)
		for _, l := range all {
			LEAQ(Mem{Base: l.low, Index: channel, Scale: 4}, l.low)
			LEAQ(Mem{Base: l.high, Index: channel, Scale: 4}, l.high)
		}
		MOVQ(next, channel)
		JMP(LabelRef("block"))
		Label("done")
	}
	for i, l := range all {
		VCVTDQ2PS(l.index, l.index)
		VMOVUPS(l.index, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(U8(32*vectors), dst)
	for range vectors {
		LEAQ(Mem{Base: src, Index: step, Scale: 8}, src)
	}
	DECQ(groups)
	JNE(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// channelNumbers are those of four channels in all lanes.
func channelNumbers() {
	const two = 1 | 1<<32
	table("channels", words(0, 0, 0, 0, two, two, two, two, 2*two, 2*two, 2*two, 2*two, 3*two, 3*two, 3*two, 3*two))
}
