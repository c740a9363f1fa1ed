package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convWords writes the convolutions of bytes and weights of 8 bits, whose pairs of products
// do not fit into 16 bits: both become words.
func convWords() {
	order := levelOrder()
	for _, out := range []string{"Sums", "Floats", "Levels"} {
		convWordsOf(3, 4, out, order)
		if out != "Levels" { // which come in whole blocks
			convWordsOf(6, 2, out, order)
		}
	}
}

// convWordsOf writes the kernel of pixels × vectors of 8 output channels.
func convWordsOf(pixels, vectors int, out string, order Mem) {
	name, result := "convWords"+out, "dst[p][o] = table[class[p]][o] + c[o]"
	switch out {
	case "Floats":
		result = "dst[p][o] = end of float32(table[class[p]][o] + c[o]), plus what is added"
	case "Levels":
		result = "dst[p][o] = level of the end of float32(table[class[p]][o] + c[o])"
	}
	name += fmt.Sprintf("%dAVX2", 8*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, 8*vectors),
		"pieces of 4 bytes of the patch at src + at[p],",
		"",
		"\tc[o] = Σ over i of Σ of 4 bytes of x[i]·w[i][o]",
		"\t"+result)
	Pragma("noescape")
	job, mask := Load(Param("job"), GP64()), YMM()
	VPCMPEQW(mask, mask, mask)
	VPSRLW(U8(8), mask, mask)
	Label("wide")
	CMPQ(Mem{Base: job, Disp: gen.JobPixels}, U8(pixels))
	JLT(LabelRef("narrow"))
	wordsTile(job, mask, pixels, vectors, out, order, "w")
	JMP(LabelRef("wide"))
	Label("narrow")
	CMPQ(Mem{Base: job, Disp: gen.JobPixels}, U8(0))
	JEQ(LabelRef("done"))
	wordsTile(job, mask, 1, vectors, out, order, "n")
	JMP(LabelRef("narrow"))
	Label("done")
	VZEROUPPER()
	RET()
}

// wordsTile computes some pixels and takes them off the job.
func wordsTile(job reg.Register, mask reg.VecVirtual, pixels, vectors int, out string, order Mem, label string) {
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
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
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
		odd, even := YMM(), YMM()
		VPBROADCASTD(Mem{Base: x[p], Index: i, Scale: 1}, odd)
		VPAND(mask, odd, even)
		VPSRLW(U8(8), odd, odd)
		for half, b := range []reg.VecVirtual{even, odd} {
			for v := range vectors {
				t := b
				if v < vectors-1 {
					t = YMM()
				}
				VPMADDWD(Mem{Base: w, Disp: 32 * (half*vectors + v)}, b, t)
				VPADDD(t, acc[p*vectors+v], acc[p*vectors+v])
			}
		}
	}
	ADDQ(U32(uint32(64*vectors)), w)
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
		for v := range vectors {
			VPADDD(Mem{Base: table, Disp: 32 * v}, acc[p*vectors+v], acc[p*vectors+v])
		}
	}
	for p := range pixels {
		values := acc[p*vectors:][:vectors]
		label := fmt.Sprint(label, p)
		switch out {
		case "Floats":
			ymm.EndFloats(job, values, vectors, label)
			ymm.StoreFloats(job, dst, values, label)
		case "Levels":
			ymm.EndFloats(job, values, vectors, label)
			ymm.EndLevels(job, values, vectors, label)
			storeLevels(values, order, Mem{Base: dst})
		default:
			for v, a := range values {
				VMOVDQU(a, Mem{Base: dst, Disp: 32 * v})
			}
		}
		ADDQ(Mem{Base: job, Disp: gen.JobDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: gen.JobDst})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: gen.JobAt})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: gen.JobClass})
	SUBQ(U8(pixels), Mem{Base: job, Disp: gen.JobPixels})
}
