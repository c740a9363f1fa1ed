package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lookUp writes the look-up of bytes. Each byte of the floats has a table of 256 bytes of its
// own, of which an instruction looks up 64 values in one half.
func lookUp() {
	for _, tables := range []int{1, 3} {
		name := fmt.Sprintf("lookUp%dAVX512", tables)
		TEXT(name, NOSPLIT, "func(dst *float32, src, tables *uint8, blocks int)")
		Doc(fmt.Sprintf("%s looks up %d·blocks bytes, blocks > 0, in the tables of a kern.FloatTables.", name, 64*tables))
		Pragma("noescape")
		dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
		table, blocks := Load(Param("tables"), GP64()), Load(Param("blocks"), GP64())
		order, index := ZMM(), make([]uint8, 64)
		for lane := range 4 {
			for part := range 4 {
				index[16*lane+4*part] = uint8(4*part + lane)
			}
		}
		m := GLOBL(fmt.Sprintf("lookUpOrder%d", tables), RODATA|NOPTR)
		for i := 0; i < 64; i += 4 {
			DATA(i, U32(uint32(index[i])))
		}
		VMOVDQU64(m, order)
		// Of byte i of a vector v, the table is (i + v) mod 3; which of the vectors has what
		// a table wants differs from byte to byte.
		var third [3]reg.OpmaskVirtual
		for i, bits := range []uint64{0x9249249249249249, 0x2492492492492492, 0x4924924924924924} {
			if tables == 3 {
				word := GP64()
				third[i] = K()
				MOVQ(U64(bits), word)
				KMOVQ(word, third[i])
			}
		}
		shuffle := func(x [3]reg.VecVirtual, sign int) (y [3]reg.VecVirtual) {
			if tables == 1 {
				return x
			}
			for to := range y {
				y[to] = ZMM()
				VMOVDQA64(x[0], y[to])
				for from := 1; from < 3; from++ {
					VMOVDQU8(x[from], third[(sign*(to-from)+3)%3], y[to])
				}
			}
			return y
		}
		Label("block")
		var in [3]reg.VecVirtual
		for v := range tables {
			in[v] = ZMM()
			VPERMD(Mem{Base: src, Disp: 64 * v}, order, in[v])
		}
		in = shuffle(in, 1)
		var planes [4][3]reg.VecVirtual
		for t := range tables {
			high := K()
			VPMOVB2M(in[t], high)
			for j := range planes {
				at := table
				disp := 1024*t + 256*j
				low, up := ZMM(), ZMM()
				VMOVDQU64(Mem{Base: at, Disp: disp}, low)
				VMOVDQU64(Mem{Base: at, Disp: disp + 128}, up)
				VPERMT2B(Mem{Base: at, Disp: disp + 64}, in[t], low)
				VPERMT2B(Mem{Base: at, Disp: disp + 192}, in[t], up)
				VMOVDQU8(up, high, low)
				planes[j][t] = low
			}
		}
		for j := range planes {
			planes[j] = shuffle(planes[j], -1)
		}
		for v := range tables {
			var words [2][2]reg.VecVirtual // bytes 0 and 1, or 2 and 3, of the first 8 of 16 values, or the others
			for j := range words {
				for half := range words[j] {
					words[j][half] = ZMM()
				}
				VPUNPCKLBW(planes[2*j+1][v], planes[2*j][v], words[j][0])
				VPUNPCKHBW(planes[2*j+1][v], planes[2*j][v], words[j][1])
			}
			for half := range 2 {
				low, high := ZMM(), ZMM()
				VPUNPCKLWD(words[1][half], words[0][half], low)
				VPUNPCKHWD(words[1][half], words[0][half], high)
				VMOVDQU64(low, Mem{Base: dst, Disp: 256*v + 128*half})
				VMOVDQU64(high, Mem{Base: dst, Disp: 256*v + 128*half + 64})
			}
		}
		ADDQ(I32(64*tables), src)
		ADDQ(I32(256*tables), dst)
		DECQ(blocks)
		JNE(LabelRef("block"))
		VZEROUPPER()
		RET()
	}
}
