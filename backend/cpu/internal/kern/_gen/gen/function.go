package gen

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// functionBlock is how many values a kernel of functions takes at a time. The rows of
// their intervals are found first: a row is not loaded from an offset that has just been
// stored, which takes long.
const functionBlock = 128

// Functions writes a kernel of functions. begin returns locate, which makes of values x
// offsets of rows and distances u, both in vectors, and columns, which returns hi, lo, c1,
// …, c6 of the rows at offsets.
func Functions(isa ISA, begin func(f reg.Register) (locate func(x reg.VecVirtual) (offsets, u reg.VecVirtual), columns func(row func(lane, disp int) Mem) []reg.VecVirtual)) {
	name := "function" + isa.Name
	TEXT(name, NOSPLIT, "func(dst, src *float32, n int, f *byte)")
	Doc(name + " computes dst[i] = f(src[i]) for i < n, n > 0, with f a Function. dst may be src.")
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	f, rows := Load(Param("f"), GP64()), GP64()
	MOVQ(Mem{Base: f, Disp: FunctionRows}, rows)
	offsets := AllocLocal(4 * functionBlock)
	locate, columns := begin(f)
	i, left, block := GP64(), GP64(), GP64()
	each := func(label string, body func(load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem))) {
		XORQ(i, i)
		MOVQ(block, left)
		Label(label)
		CMPQ(left, U8(isa.Lanes))
		JLT(LabelRef(label + "rest"))
		body(func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
		ADDQ(U8(4*isa.Lanes), i)
		SUBQ(U8(isa.Lanes), left)
		JMP(LabelRef(label))
		Label(label + "rest")
		TESTQ(left, left)
		JEQ(LabelRef(label + "done"))
		body(isa.FirstLanes(left))
		Label(label + "done")
	}
	at := func(r reg.Register) Mem { return Mem{Base: r, Index: i, Scale: 1} }
	Label("block")
	MOVQ(U32(functionBlock), block)
	CMPQ(n, block)
	CMOVQLT(n, block)
	each("locate", func(load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
		x := isa.Vec()
		load(at(src), x)
		row, u := locate(x)
		VMOVUPS(row, offsets.Idx(i, 1))
		store(u, at(dst))
	})
	each("values", func(load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
		c := columns(func(lane, disp int) Mem {
			offset := GP64()
			MOVL(offsets.Offset(4*lane).Idx(i, 1), offset.As32())
			return Mem{Base: rows, Index: offset, Scale: 1, Disp: disp}
		})
		u := isa.Vec()
		load(at(dst), u)
		p := c[len(c)-1]
		for k := len(c) - 2; k > 0; k-- {
			VMULPS(u, p, p)
			VADDPS(c[k], p, p)
		}
		VADDPS(c[0], p, p)
		store(p, at(dst))
	})
	LEAQ(Mem{Base: dst, Index: block, Scale: 4}, dst)
	LEAQ(Mem{Base: src, Index: block, Scale: 4}, src)
	SUBQ(block, n)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// Transpose makes of four rows of four values, in every 16 bytes, their columns.
func (isa ISA) Transpose(r [4]reg.VecVirtual) [4]reg.VecVirtual {
	var half, t [4]reg.VecVirtual
	for i := range half {
		half[i], t[i] = isa.Vec(), isa.Vec()
	}
	for i := range 2 {
		VUNPCKLPS(r[2*i+1], r[2*i], half[2*i])
		VUNPCKHPS(r[2*i+1], r[2*i], half[2*i+1])
	}
	for i := range 2 {
		VUNPCKLPD(half[2+i], half[i], t[2*i])
		VUNPCKHPD(half[2+i], half[i], t[2*i+1])
	}
	return t
}
