package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// dotBits writes the sums of packed words: four outputs, word by word.
func dotBits() {
	TEXT("dotBits4SSSE3", NOSPLIT, "func(job *byte)")
	Doc("dotBits4SSSE3 computes k − 2·popcount(patch XOR weights) of four outputs, for", "every pixel of a DotJob.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	x, w, row, n := GP64(), GP64(), GP64(), GP64()
	sums := make([]reg.GPVirtual, 4)
	for i := range sums {
		sums[i] = GP64()
	}
	Label("pixel")
	CMPQ(Mem{Base: job, Disp: gen.TilePixels}, U8(0))
	JEQ(LabelRef("done"))
	MOVQ(Mem{Base: job, Disp: gen.TileSrc}, x)
	MOVQ(Mem{Base: job, Disp: gen.TileWeights}, w)
	MOVQ(Mem{Base: job, Disp: gen.TileRows}, row)
	for _, s := range sums {
		XORQ(s, s)
	}
	Label("row")
	MOVQ(Mem{Base: job, Disp: gen.TileRun}, n)
	Label("word")
	a := GP64()
	MOVQ(Mem{Base: x}, a)
	for i, s := range sums {
		t := GP64()
		MOVQ(Mem{Base: w, Disp: 8 * i}, t)
		XORQ(a, t)
		POPCNTQ(t, t)
		ADDQ(t, s)
	}
	ADDQ(U8(8), x)
	ADDQ(U8(32), w)
	SUBQ(U8(8), n)
	JNE(LabelRef("word"))
	ADDQ(Mem{Base: job, Disp: gen.TileSkip}, x)
	DECQ(row)
	JNE(LabelRef("row"))
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: gen.TileDst}, dst)
	for i, s := range sums {
		k := GP64()
		MOVQ(Mem{Base: job, Disp: gen.DotK}, k)
		SUBQ(s, k)
		SUBQ(s, k)
		MOVL(k.As32(), Mem{Base: dst, Disp: 4 * i})
	}
	ADDQ(Mem{Base: job, Disp: gen.TileDstStep}, dst)
	MOVQ(dst, Mem{Base: job, Disp: gen.TileDst})
	step := GP64()
	MOVQ(Mem{Base: job, Disp: gen.TileStep}, step)
	ADDQ(step, Mem{Base: job, Disp: gen.TileSrc})
	DECQ(Mem{Base: job, Disp: gen.TilePixels})
	JMP(LabelRef("pixel"))
	Label("done")
	RET()
}
