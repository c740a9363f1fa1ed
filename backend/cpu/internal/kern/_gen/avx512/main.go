// Command avx512 writes the kernels of the instruction set avx512vpopcnt.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.Job.
const (
	jobDstStep  = 8
	jobSrc      = 16
	jobTable    = 40
	jobWeights  = 48
	jobRows     = 56
	jobRunBytes = 64
	jobRowSkip  = 72
	jobPixels   = 80
	jobFlip     = 88
	jobScratch  = 96
	jobDst      = 104
	jobAt       = 112
	jobClass    = 120
)

// kind is what a convolution multiplies.
type kind int

const (
	bitsKind  kind = iota // ±1 and ±1: counts the bits that differ
	bytesKind             // uint8 and ±1
)

// conv writes a convolution of pixels × vectors of 16 output channels: one
// 32-bit piece of every patch meets one vector of weights at a time.
func conv(k kind, sums bool, pixels, vectors int) {
	name := [...]string{"convBits", "convBytes"}[k]
	result := "bit o of dst[p] = c[o] ≤ table[class[p]][o], XOR flip"
	if k == bytesKind {
		result = "bit o of dst[p] = c[o] ≥ table[class[p]][o], XOR flip"
	}
	if sums {
		name += "Sums"
		result = "dst[p][o] = table[class[p]][o] − 2·c[o]"
		if k == bytesKind {
			result = "dst[p][o] = table[class[p]][o] + c[o]"
		}
	}
	name += fmt.Sprintf("%dAVX512", 16*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	product := "popcount(x[i] XOR w[i][o])"
	if k == bytesKind {
		product = "Σ of 4 bytes of x[i]·w[i][o]"
	}
	Doc(name+" computes, for every pixel p and each of "+fmt.Sprint(16*vectors)+" outputs o, with x the 32-bit",
		"pieces of the patch at src + at[p],",
		"",
		"\tc[o] = Σ over i of "+product,
		"\t"+result)
	Pragma("noescape")
	job := Load(Param("job"), GP64())

	Label("wide")
	CMPQ(Mem{Base: job, Disp: jobPixels}, U8(pixels))
	JLT(LabelRef("narrow"))
	tile(k, sums, job, pixels, vectors, "w")
	JMP(LabelRef("wide"))
	Label("narrow")
	CMPQ(Mem{Base: job, Disp: jobPixels}, U8(0))
	JEQ(LabelRef("done"))
	tile(k, sums, job, 1, vectors, "n")
	JMP(LabelRef("narrow"))
	Label("done")
	VZEROUPPER()
	RET()
}

// tile computes some pixels and takes them off the job.
func tile(k kind, sums bool, job reg.Register, pixels, vectors int, label string) {
	at := GP64()
	MOVQ(Mem{Base: job, Disp: jobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: job, Disp: jobSrc}, x[p])
	}
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = ZMM()
		VPXORD(acc[i], acc[i], acc[i])
	}
	w, i, row, end := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: jobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: jobRows}, row)
	Label(label + "row")
	MOVQ(Mem{Base: job, Disp: jobRunBytes}, end)
	ADDQ(i, end)
	Label(label + "piece")
	weights := make([]reg.VecVirtual, vectors)
	for v := range weights {
		weights[v] = ZMM()
		VMOVDQU32(Mem{Base: w, Disp: 64 * v}, weights[v])
	}
	for p := range pixels {
		piece := Mem{Base: x[p], Index: i, Scale: 1}
		if k == bitsKind && vectors == 1 {
			t := ZMM()
			VPXORD_BCST(piece, weights[0], t)
			VPOPCNTD(t, t)
			VPADDD(t, acc[p], acc[p])
			continue
		}
		b := ZMM()
		VPBROADCASTD(piece, b)
		for v := range vectors {
			a := acc[p*vectors+v]
			if k == bytesKind {
				VPDPBUSD(weights[v], b, a)
				continue
			}
			t := b
			if v < vectors-1 {
				t = ZMM()
			}
			VPXORD(b, weights[v], t)
			VPOPCNTD(t, t)
			VPADDD(t, a, a)
		}
	}
	ADDQ(U32(uint32(64*vectors)), w)
	ADDQ(U8(4), i)
	CMPQ(i, end)
	JNE(LabelRef(label + "piece"))
	ADDQ(Mem{Base: job, Disp: jobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef(label + "row"))

	dst, class := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: jobDst}, dst)
	MOVQ(Mem{Base: job, Disp: jobClass}, class)
	for p := range pixels {
		table := GP64()
		MOVL(Mem{Base: class, Disp: 4 * p}, table.As32())
		ADDQ(Mem{Base: job, Disp: jobTable}, table)
		if sums {
			storeSums(k, dst, table, acc[p*vectors:][:vectors])
		} else {
			storeBits(k, job, dst, table, acc[p*vectors:][:vectors])
		}
		ADDQ(Mem{Base: job, Disp: jobDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: jobDst})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: jobAt})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: jobClass})
	SUBQ(U8(pixels), Mem{Base: job, Disp: jobPixels})
}

func storeSums(k kind, dst, table reg.Register, acc []reg.VecVirtual) {
	for v, a := range acc {
		if k == bytesKind {
			VPADDD(Mem{Base: table, Disp: 64 * v}, a, a)
		} else {
			t := ZMM()
			VMOVDQU32(Mem{Base: table, Disp: 64 * v}, t)
			VPADDD(a, a, a)
			VPSUBD(a, t, a)
		}
		VMOVDQU32(a, Mem{Base: dst, Disp: 64 * v})
	}
}

func storeBits(k kind, job, dst, table reg.Register, acc []reg.VecVirtual) {
	predicate := U8(2) // ≤
	if k == bytesKind {
		predicate = U8(5) // ≥
	}
	masks := make([]reg.OpmaskVirtual, len(acc))
	for v, a := range acc {
		masks[v] = K()
		VPCMPD(predicate, Mem{Base: table, Disp: 64 * v}, a, masks[v])
	}
	word := GP64()
	if len(masks) > 1 {
		KUNPCKWD(masks[0], masks[1], masks[0])
	}
	switch len(masks) {
	case 3:
		KUNPCKDQ(masks[0], masks[2], masks[0])
	case 4:
		KUNPCKWD(masks[2], masks[3], masks[2])
		KUNPCKDQ(masks[0], masks[2], masks[0])
	}
	if len(masks) == 1 {
		KMOVW(masks[0], word.As32())
	} else {
		KMOVQ(masks[0], word)
	}
	XORQ(Mem{Base: job, Disp: jobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}

func main() {
	ConstraintExpr("amd64,!purego")
	for _, k := range []kind{bitsKind, bytesKind} {
		for _, sums := range []bool{false, true} {
			conv(k, sums, 4, 4)
			conv(k, sums, 5, 3)
			conv(k, sums, 6, 2)
			conv(k, sums, 6, 1)
		}
	}
	for _, shape := range [][2]int{{4, 4}, {1, 4}, {4, 1}, {1, 1}} {
		dotBits(shape[0], shape[1])
	}
	fma()
	thresholds()
	scale()
	peak()
	Generate()
}
