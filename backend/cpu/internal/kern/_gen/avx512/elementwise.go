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
	thresholdPlanes()
	gen.Ends(zmm)
	gen.EndBytes(zmm, 3)
	choose()
	picks()
	function()
	lookUpBytes()
}

// picks writes the choice of channels.
func picks() {
	gen.Picks(zmm, func(at func(int) Mem, first bool) func(Mem, reg.VecVirtual) {
		index, mask, k := ZMM(), GP32(), K()
		VMOVDQU32(at(gen.PieceIndex), index)
		MOVL(at(gen.PieceMask), mask)
		KMOVW(mask, k)
		return func(m Mem, v reg.VecVirtual) {
			if first {
				VPERMPS_Z(m, index, k, v)
			} else {
				VPERMPS(m, index, k, v)
			}
		}
	})
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
		le := func(m Mem, v reg.VecVirtual, k reg.OpmaskVirtual) {
			if float {
				VCMPPS(U8(2), m, v, k)
			} else {
				VPCMPD(U8(2), m, v, k)
			}
		}
		dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
		n, step, stride := Load(Param("n"), GP64()), Load(Param("step"), GP64()), Load(Param("stride"), GP64())
		// A word of all pixels after the other: its thresholds stay in registers.
		left, out, in := GP64(), GP64(), GP64()
		begin := func() {
			Load(Param("pixels"), left)
			MOVQ(dst, out)
			MOVQ(values, in)
		}
		next := func(label string) {
			ADDQ(step, out)
			ADDQ(stride, in)
			DECQ(left)
			JNE(LabelRef(label))
		}
		Label("words")
		CMPQ(n, U8(64))
		JLT(LabelRef("rest"))
		var bounds [4]reg.VecVirtual
		for v := range bounds {
			bounds[v] = ZMM()
			VMOVUPS(Mem{Base: t, Disp: 64 * v}, bounds[v])
		}
		begin()
		Label("pixel")
		for v, bound := range bounds {
			k := K()
			le(Mem{Base: in, Disp: 64 * v}, bound, k)
			KMOVW(k, Mem{Base: out, Disp: 2 * v})
		}
		next("pixel")
		ADDQ(U8(8), dst)
		ADDQ(U32(256), values)
		ADDQ(U32(256), t)
		SUBQ(U8(64), n)
		JMP(LabelRef("words"))
		Label("rest")
		TESTQ(n, n)
		JEQ(LabelRef("done"))
		begin()
		Label("restpixel")
		word, shift, at, some := GP64(), GP64(), GP64(), GP64()
		XORQ(word, word)
		XORQ(shift, shift)
		XORQ(at, at)
		MOVQ(n, some)
		Label("vectors")
		// The lanes that are left: 16, or the last few.
		lanes := firstLanes(some)
		valid := K()
		KMOVW(lanes.As32(), valid)
		x, y := ZMM(), ZMM()
		VMOVUPS_Z(Mem{Base: in, Index: at, Scale: 1}, valid, x)
		VMOVUPS_Z(Mem{Base: t, Index: at, Scale: 1}, valid, y)
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
		ADDQ(U8(64), at)
		SUBQ(U8(16), some)
		JGT(LabelRef("vectors"))
		MOVQ(word, Mem{Base: out})
		next("restpixel")
		Label("done")
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
	TEXT("chooseAVX512", NOSPLIT, "func(dst *float32, src *uint64, one, zero *float32, words, period int)")
	Doc("chooseAVX512 sets dst[i] to one[i mod 64·period] where bit i of src is set, else to",
		"zero[i mod 64·period], for i < 64·words, words > 0.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n, one, zero, left := Load(Param("words"), GP64()), GP64(), GP64(), GP64()
	Label("period")
	Load(Param("one"), one)
	Load(Param("zero"), zero)
	Load(Param("period"), left)
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
	JEQ(LabelRef("done"))
	DECQ(left)
	JNE(LabelRef("next"))
	JMP(LabelRef("period"))
	Label("done")
	VZEROUPPER()
	RET()
}

// lookUpBytes writes the look-up of bytes in both halves of a table, of which the highest bit
// of a byte takes one.
func lookUpBytes() {
	TEXT("lookUpBytesAVX512", NOSPLIT, "func(dst, src *uint8, n int, table *uint8)")
	Doc("lookUpBytesAVX512 looks up n bytes, n > 0.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	from := Load(Param("table"), GP64())
	table := make([]reg.VecVirtual, 4)
	for i := range table {
		table[i] = ZMM()
		VMOVDQU8(Mem{Base: from, Disp: 64 * i}, table[i])
	}
	body := func(x reg.VecVirtual) reg.VecVirtual {
		upper, high := K(), ZMM()
		VPMOVB2M(x, upper)
		VMOVDQA64(x, high)
		VPERMI2B(table[1], table[0], x)
		VPERMI2B(table[3], table[2], high)
		VPBLENDMB(high, x, upper, x)
		return x
	}
	Label("whole")
	CMPQ(n, U8(64))
	JLT(LabelRef("rest"))
	x := ZMM()
	VMOVDQU8(Mem{Base: src}, x)
	VMOVDQU8(body(x), Mem{Base: dst})
	ADDQ(U8(64), src)
	ADDQ(U8(64), dst)
	SUBQ(U8(64), n)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(n, n)
	JEQ(LabelRef("done"))
	bits, mask, last := GP64(), K(), ZMM()
	MOVQ(I32(-1), bits)
	BZHIQ(n, bits, bits)
	KMOVQ(bits, mask)
	VMOVDQU8_Z(Mem{Base: src}, mask, last)
	VMOVDQU8(body(last), mask, Mem{Base: dst})
	Label("done")
	VZEROUPPER()
	RET()
}
