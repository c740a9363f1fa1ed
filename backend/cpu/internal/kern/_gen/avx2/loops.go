package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is a loop over n float32 values, n > 0, in vectors of 8, the last one
// by a mask. body gets functions that load and store the values at a pointer.
func lanes(n reg.Register, pointers []reg.Register, body func(load func(int) reg.VecVirtual, store func(reg.VecVirtual, int))) {
	Label("whole")
	CMPQ(n, U8(8))
	JLT(LabelRef("rest"))
	body(func(i int) reg.VecVirtual {
		v := YMM()
		VMOVUPS(Mem{Base: pointers[i]}, v)
		return v
	}, func(v reg.VecVirtual, i int) { VMOVUPS(v, Mem{Base: pointers[i]}) })
	for _, p := range pointers {
		ADDQ(U8(32), p)
	}
	SUBQ(U8(8), n)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(n, n)
	JEQ(LabelRef("done"))
	mask := laneMask(n)
	body(func(i int) reg.VecVirtual {
		v := YMM()
		VMASKMOVPS(Mem{Base: pointers[i]}, mask, v)
		return v
	}, func(v reg.VecVirtual, i int) { VMASKMOVPS(v, mask, Mem{Base: pointers[i]}) })
	Label("done")
	VZEROUPPER()
	RET()
}

// laneMask returns a mask of the first n lanes. It changes n.
func laneMask(n reg.Register) reg.VecVirtual {
	// The last n of 8 set lanes, then clear ones.
	mask, base := YMM(), GP64()
	LEAQ(NewDataAddr(NewStaticSymbol("laneMasks"), 32), base)
	SHLQ(U8(2), n)
	SUBQ(n, base)
	VMOVUPS(Mem{Base: base}, mask)
	return mask
}

func laneMasks() {
	const all = 1<<64 - 1
	table("laneMasks", words(all, all, all, all, 0, 0, 0, 0))
}

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
