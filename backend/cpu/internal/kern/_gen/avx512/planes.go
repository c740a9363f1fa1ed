package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// thresholdPlanes writes the comparison of the values of a word with three thresholds each.
func thresholdPlanes() {
	const ge = 13
	TEXT("thresholdPlanesAVX512", NOSPLIT, "func(dst *uint64, values, t *float32, n, pixels, step, stride, plane, next int)")
	Doc("thresholdPlanesAVX512 counts, for o < n, 0 < n ≤ 64, and every pixel, pixels > 0, the thresholds",
		"that values[o] reaches of t[o], and those that follow, each next bytes behind the one before,",
		"and sets bit o of dst to whether they are odd, and that of the word plane bytes behind it to",
		"whether the second one is reached. Other bits are 0. step and stride are the bytes from a pixel",
		"to the next one, of dst and of values.")
	Pragma("noescape")
	dst, values, t := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("t"), GP64())
	n, left := Load(Param("n"), GP64()), Load(Param("pixels"), GP64())
	step, stride := Load(Param("step"), GP64()), Load(Param("stride"), GP64())
	plane, next := Load(Param("plane"), GP64()), Load(Param("next"), GP64())
	for vectors := 3; vectors > 0; vectors-- {
		CMPQ(n, U8(16*vectors))
		JGT(LabelRef(fmt.Sprint("vectors", vectors+1)))
	}
	JMP(LabelRef("vectors1"))
	for vectors := 1; vectors <= 4; vectors++ {
		Label(fmt.Sprint("vectors", vectors))
		SUBQ(U8(16*(vectors-1)), n)
		some := K()
		KMOVW(firstLanes(n).As32(), some)
		load := func(m Mem, v int) reg.VecVirtual {
			x := ZMM()
			if v == vectors-1 {
				VMOVUPS_Z(m, some, x)
			} else {
				VMOVUPS(m, x)
			}
			return x
		}
		var bounds [3][]reg.VecVirtual
		for k := range bounds {
			for v := range vectors {
				bounds[k] = append(bounds[k], load(Mem{Base: t, Disp: 64 * v}, v))
			}
			if k < 2 {
				ADDQ(next, t)
			}
		}
		zero := GP64()
		XORQ(zero, zero)
		label := fmt.Sprint("pixel", vectors)
		Label(label)
		if vectors < 4 {
			MOVQ(zero, Mem{Base: dst})
			MOVQ(zero, Mem{Base: dst, Index: plane, Scale: 1})
		}
		for v := range vectors {
			x := load(Mem{Base: values, Disp: 64 * v}, v)
			var reached [3]reg.OpmaskVirtual
			for k := range reached {
				reached[k] = K()
				if v == vectors-1 {
					VCMPPS(U8(ge), bounds[k][v], x, some, reached[k])
				} else {
					VCMPPS(U8(ge), bounds[k][v], x, reached[k])
				}
			}
			odd := K()
			KXORW(reached[0], reached[1], odd)
			KXORW(reached[2], odd, odd)
			KMOVW(odd, Mem{Base: dst, Disp: 2 * v})
			KMOVW(reached[1], Mem{Base: dst, Index: plane, Scale: 1, Disp: 2 * v})
		}
		ADDQ(step, dst)
		ADDQ(stride, values)
		DECQ(left)
		JNE(LabelRef(label))
		VZEROUPPER()
		RET()
	}
}
