package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convWords writes the convolution of bytes and weights of 8 bits, whose pairs of products
// do not fit into 16 bits: both become words. It computes 3 pixels × 4 vectors of 4 output
// channels.
func convWords() {
	const pixels, vectors = 3, 4
	name := fmt.Sprintf("convWordsSums%dSSSE3", 4*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, 4*vectors),
		"pieces of 4 bytes of the patch at src + at[p],",
		"",
		"\tc[o] = Σ over i of Σ of 4 bytes of x[i]·w[i][o]",
		"\tdst[p][o] = table[class[p]][o] + c[o]")
	Pragma("noescape")
	job, mask := Load(Param("job"), GP64()), XMM()
	PCMPEQW(mask, mask)
	PSRLW(U8(8), mask)
	Label("wide")
	CMPQ(Mem{Base: job, Disp: gen.JobPixels}, U8(pixels))
	JLT(LabelRef("narrow"))
	wordsTile(job, mask, pixels, vectors, "w")
	JMP(LabelRef("wide"))
	Label("narrow")
	CMPQ(Mem{Base: job, Disp: gen.JobPixels}, U8(0))
	JEQ(LabelRef("done"))
	wordsTile(job, mask, 1, vectors, "n")
	JMP(LabelRef("narrow"))
	Label("done")
	RET()
}

// wordsTile computes some pixels and takes them off the job.
func wordsTile(job reg.Register, mask reg.VecVirtual, pixels, vectors int, label string) {
	at := GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: job, Disp: gen.JobSrc}, x[p])
	}
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = XMM()
		PXOR(acc[i], acc[i])
	}
	w, i, row, end := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: gen.JobRows}, row)
	Label(label + "row")
	MOVQ(Mem{Base: job, Disp: gen.JobRunBytes}, end)
	ADDQ(i, end)
	Label(label + "piece")
	for p := range x {
		odd, even := XMM(), XMM()
		MOVSS(Mem{Base: x[p], Index: i, Scale: 1}, odd)
		PSHUFD(U8(0), odd, odd)
		MOVO(odd, even)
		PAND(mask, even)
		PSRLW(U8(8), odd)
		for half, b := range []reg.VecVirtual{even, odd} {
			for v := range vectors {
				t := b
				if v < vectors-1 {
					t = XMM()
					MOVO(b, t)
				}
				PMADDWL(Mem{Base: w, Disp: 16 * (half*vectors + v)}, t)
				PADDL(t, acc[p*vectors+v])
			}
		}
	}
	ADDQ(U32(uint32(32*vectors)), w)
	ADDQ(U8(4), i)
	CMPQ(i, end)
	JNE(LabelRef(label + "piece"))
	ADDQ(Mem{Base: job, Disp: gen.JobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef(label + "row"))

	dst, class, table := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobDst}, dst)
	MOVQ(Mem{Base: job, Disp: gen.JobClass}, class)
	for p := range pixels {
		MOVL(Mem{Base: class, Disp: 4 * p}, table.As32())
		ADDQ(Mem{Base: job, Disp: gen.JobTable}, table)
		for v, a := range acc[p*vectors:][:vectors] {
			t := XMM()
			MOVOU(Mem{Base: table, Disp: 16 * v}, t)
			PADDL(t, a)
			MOVOU(a, Mem{Base: dst, Disp: 16 * v})
		}
		ADDQ(Mem{Base: job, Disp: gen.JobDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: gen.JobDst})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: gen.JobAt})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: gen.JobClass})
	SUBQ(U8(pixels), Mem{Base: job, Disp: gen.JobPixels})
}
