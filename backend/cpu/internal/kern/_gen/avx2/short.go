package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// short writes a pooled convolution of patches whose counts fit into bytes: no
// sums in memory, and 32 outputs are compared at once.
func short(vectors int) {
	const pixels = 4
	k := &kernel{pixels: pixels, vectors: vectors, temp: GP64()}
	name := fmt.Sprintf("convBitsPooledShort%dAVX2", 32*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, 32*vectors),
		"nibbles of the patch at src + at[p], at most 63,",
		"",
		"\tc[o] = Σ over i of popcount(x[i] XOR w[i][o])",
		"\tbit o of dst[p/4] = c[o] ≤ table[class[0]][o] of any of four pixels, XOR flip")
	Pragma("noescape")
	k.job = Load(Param("job"), GP64())
	k.counts = GP64()
	LEAQ(NewDataAddr(NewStaticSymbol("popcounts"), 0), k.counts)

	// What counts must be less than, as bytes: thresholds and 1, saturated.
	table, one := GP64(), YMM()
	MOVQ(Mem{Base: k.job, Disp: gen.JobClass}, table)
	MOVL(Mem{Base: table}, table.As32())
	ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, table)
	VPCMPEQW(one, one, one)
	VPSRLW(U8(15), one, one)
	less := make([]reg.VecVirtual, vectors)
	for v := range less {
		low, high := bounds(table, v, 0), bounds(table, v, 1)
		VPADDSW(one, low, low)
		VPADDSW(one, high, high)
		VPACKUSWB(high, low, low)
		less[v] = low
	}

	Label("tile")
	CMPQ(Mem{Base: k.job, Disp: gen.JobPixels}, U8(0))
	JEQ(LabelRef("done"))
	at := GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: k.job, Disp: gen.JobSrc}, x[p])
	}
	ADDQ(U8(4*pixels), at)
	MOVQ(at, Mem{Base: k.job, Disp: gen.JobAt})
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	w, i, row, end := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: k.job, Disp: gen.JobRows}, row)
	Label("row")
	MOVQ(Mem{Base: k.job, Disp: gen.JobRunBytes}, end)
	ADDQ(i, end)
	several := GP64()
	Label("pieces")
	LEAQ(Mem{Base: i, Disp: unroll}, several)
	CMPQ(several, end)
	JGT(LabelRef("rest"))
	for u := range unroll {
		k.step(x, acc, w, i, u)
	}
	ADDQ(U32(uint32(unroll*32*vectors)), w)
	MOVQ(several, i)
	JMP(LabelRef("pieces"))
	Label("rest")
	CMPQ(i, end)
	JEQ(LabelRef("full"))
	Label("piece")
	k.step(x, acc, w, i, 0)
	ADDQ(U32(uint32(32*vectors)), w)
	INCQ(i)
	CMPQ(i, end)
	JNE(LabelRef("piece"))
	Label("full")
	ADDQ(Mem{Base: k.job, Disp: gen.JobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))

	word, part, dst := GP64(), k.temp, GP64()
	for v := range vectors {
		least := acc[v]
		for p := 1; p < pixels; p++ {
			VPMINUB(acc[p*vectors+v], least, least)
		}
		most := YMM()
		VPMAXUB(less[v], least, most)
		VPCMPEQB(most, least, least) // not less
		VPMOVMSKB(least, part.As32())
		NOTL(part.As32())
		if v == 0 {
			MOVQ(part, word)
		} else {
			SHLQ(U8(32), part)
			ORQ(part, word)
		}
	}
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(Mem{Base: k.job, Disp: gen.JobDst}, dst)
	MOVQ(word, Mem{Base: dst})
	ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
	MOVQ(dst, Mem{Base: k.job, Disp: gen.JobDst})
	SUBQ(U8(pixels), Mem{Base: k.job, Disp: gen.JobPixels})
	JMP(LabelRef("tile"))
	Label("done")
	VZEROUPPER()
	RET()
}
