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
	laneMasks()
	thresholds()
	narrowThresholds()
	gen.Ends(ymm)
	gen.EndBytes(ymm, 3)
	pairs()
	channelNumbers()
	for _, few := range []int{0, 2, 3} {
		largest(few)
	}
	divide()
	choose()
	picks()
	function()
}

// picks writes the choice of channels.
func picks() {
	gen.Picks(ymm, func(at func(int) Mem, first bool) func(Mem, reg.VecVirtual) {
		index, mask := YMM(), YMM()
		VMOVDQU(at(gen.PieceIndex), index)
		VMOVDQU(at(gen.PieceLanes), mask)
		return func(m Mem, v reg.VecVirtual) {
			if first {
				VPERMPS(m, index, v)
				VPAND(mask, v, v)
				return
			}
			x := YMM()
			VPERMPS(m, index, x)
			VBLENDVPS(mask, x, v, v)
		}
	})
}

// thresholds writes the comparison and packing of whole words.
func thresholds() {
	// Packing puts the vectors of a lane of 16 bytes side by side.
	inOrder := table("inOrder", words(0|4<<32, 1|5<<32, 2|6<<32, 3|7<<32))
	for _, float := range []bool{false, true} {
		name, typ := "thresholdAVX2", "int32"
		if float {
			name, typ = "thresholdFloatAVX2", "float32"
		}
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *uint64, values, t *%s, words, pixels, step, stride int)", typ))
		Doc(name+" sets, for o < 64·words and every pixel, words > 0, pixels > 0,", "",
			"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]", "",
			"step and stride are the bytes from a pixel to the next one, of dst and of",
			"values.")
		Pragma("noescape")
		dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
		n := Load(Param("words"), GP64())
		step, stride := Load(Param("step"), GP64()), Load(Param("stride"), GP64())
		left, out, in := GP64(), GP64(), GP64()
		order := YMM()
		VMOVDQU(inOrder, order)
		// A word of all pixels after the other: its thresholds stay in registers.
		Label("next")
		var bounds [8]reg.VecVirtual
		for v := range bounds {
			bounds[v] = YMM()
			VMOVUPS(Mem{Base: t, Disp: 32 * v}, bounds[v])
		}
		Load(Param("pixels"), left)
		MOVQ(dst, out)
		MOVQ(values, in)
		Label("pixel")
		for half := range 2 {
			var x [4]reg.VecVirtual
			for v := range x {
				x[v] = YMM()
				m := Mem{Base: in, Disp: 128*half + 32*v}
				if float {
					VCMPPS(U8(2), m, bounds[4*half+v], x[v])
				} else {
					VPCMPGTD(m, bounds[4*half+v], x[v])
				}
			}
			VPACKSSDW(x[1], x[0], x[0])
			VPACKSSDW(x[3], x[2], x[2])
			VPACKSSWB(x[2], x[0], x[0])
			VPERMD(x[0], order, x[0])
			part := GP32()
			VPMOVMSKB(x[0], part)
			if !float {
				NOTL(part)
			}
			MOVL(part, Mem{Base: out, Disp: 4 * half})
		}
		ADDQ(step, out)
		ADDQ(stride, in)
		DECQ(left)
		JNE(LabelRef("pixel"))
		ADDQ(U8(8), dst)
		ADDQ(U32(256), values)
		ADDQ(U32(256), t)
		DECQ(n)
		JNE(LabelRef("next"))
		VZEROUPPER()
		RET()
	}
}

// everywhere loads a float32 argument into all lanes.
func everywhere(name string) reg.VecVirtual {
	argument, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	all := YMM()
	VBROADCASTSS(argument.Addr, all)
	return all
}

// divide writes the division of a row by a number of taps.
func divide() {
	TEXT("divideAVX2", NOSPLIT, "func(x *float32, n int, taps, y float32)")
	Doc("divideAVX2 divides x[i] by taps, whose rounded reciprocal is y, for i < n, n > 0:", "",
		"\tq = x[i]·y, r = fma(−taps, q, x[i]), x[i] = fma(r, y, q)")
	Pragma("noescape")
	p := []reg.Register{Load(Param("x"), GP64())}
	n := Load(Param("n"), GP64())
	taps, y := everywhere("taps"), everywhere("y")
	lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		r, q := load(0), YMM()
		VMULPS(y, r, q)
		VFNMADD231PS(taps, q, r)
		VFMADD213PS(q, y, r)
		store(r, 0)
	})
}

// choose writes the conversion of bits to one of two values.
func choose() {
	toSign := table("toSign", words(31|30<<32, 29|28<<32, 27|26<<32, 25|24<<32))
	TEXT("chooseAVX2", NOSPLIT, "func(dst *float32, src *uint8, one, zero *float32, n, period int)")
	Doc("chooseAVX2 sets dst[i] to one[i mod period] where bit i of src is set, else to",
		"zero[i mod period], for i < n, n > 0. period is a multiple of 64, or n at least.")
	Pragma("noescape")
	src := Load(Param("src"), GP64())
	p := []reg.Register{Load(Param("dst"), GP64()), Load(Param("one"), GP64()), Load(Param("zero"), GP64())}
	n, left := Load(Param("n"), GP64()), Load(Param("period"), GP64())
	// 64 values at a time: the bit of each is shifted to where its sign would be.
	var shifts [4]reg.VecVirtual
	for v := range shifts {
		shifts[v] = YMM()
		if v == 0 {
			VMOVDQU(toSign, shifts[v])
		} else {
			eight := YMM()
			VPCMPEQD(eight, eight, eight)
			VPSRLD(U8(31), eight, eight)
			VPSLLD(U8(3), eight, eight)
			VPSUBD(eight, shifts[v-1], shifts[v])
		}
	}
	Label("many")
	CMPQ(n, U8(64))
	JLT(LabelRef("few"))
	TESTQ(left, left)
	JNE(LabelRef("inside"))
	Load(Param("one"), p[1])
	Load(Param("zero"), p[2])
	Load(Param("period"), left)
	Label("inside")
	for half := range 2 {
		all := YMM()
		VPBROADCASTD(Mem{Base: src, Disp: 4 * half}, all)
		for v, shift := range shifts {
			mask, x, at := YMM(), YMM(), 128*half+32*v
			VPSLLVD(shift, all, mask)
			VMOVUPS(Mem{Base: p[2], Disp: at}, x)
			VBLENDVPS(mask, Mem{Base: p[1], Disp: at}, x, x)
			VMOVUPS(x, Mem{Base: p[0], Disp: at})
		}
	}
	ADDQ(U8(8), src)
	for _, r := range p {
		ADDQ(U32(256), r)
	}
	SUBQ(U8(64), left)
	SUBQ(U8(64), n)
	JMP(LabelRef("many"))
	Label("few")
	TESTQ(left, left)
	JNE(LabelRef("last"))
	Load(Param("one"), p[1])
	Load(Param("zero"), p[2])
	Label("last")
	part := GP32()
	lanes(n, p, func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int)) {
		x, mask := XMM(), YMM()
		MOVBLZX(Mem{Base: src}, part)
		INCQ(src)
		VMOVD(part, x)
		VPBROADCASTD(x, mask)
		VPSLLVD(shifts[0], mask, mask)
		one, zero := load(1), load(2)
		VBLENDVPS(mask, one, zero, zero)
		store(zero, 0)
	})
}
