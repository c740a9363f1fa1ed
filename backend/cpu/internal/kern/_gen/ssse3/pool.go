package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// pools writes max-pooling.
func pools() {
	pool("orPoolSSSE3", "OR", []int{16, 8})
	pool("maxPoolSSSE3", "maxima", []int{16, 4})
	pool("maxPoolBytesSSSE3", "maxima of bytes", []int{16, 8, 1})
	pool4()
}

// pool writes pooling behind a PoolJob, so many bytes of a pixel at a time as long as there
// are as many.
func pool(name, doc string, sizes []int) {
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name + " writes the " + doc + " of the taps of a PoolJob, without its flip.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	dst, src, i, end, tap, left, at := GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: gen.PoolDst}, dst)
	MOVQ(Mem{Base: job, Disp: gen.PoolSrc}, src)
	MOVQ(Mem{Base: job, Disp: gen.PoolBytes}, end)
	Label("pixel")
	XORQ(i, i)
	for _, size := range sizes {
		l := func(name string) string {
			if size == sizes[len(sizes)-1] {
				return name
			}
			return fmt.Sprint(name, size)
		}
		move := func(from, to Op) {
			switch size {
			case 16:
				MOVUPS(from, to)
			case 8:
				MOVQ(from, to)
			default:
				MOVSS(from, to)
			}
		}
		Label(l("part"))
		LEAQ(Mem{Base: i, Disp: size}, at)
		CMPQ(at, end)
		JGT(LabelRef(l("end")))
		MOVQ(Mem{Base: job, Disp: gen.PoolTaps}, tap)
		MOVQ(Mem{Base: job, Disp: gen.PoolCount}, left)
		sum, byteSum := XMM(), GP32()
		MOVQ(Mem{Base: tap}, at)
		ADDQ(i, at)
		if size == 1 {
			MOVBLZX(Mem{Base: src, Index: at, Scale: 1}, byteSum)
		} else {
			move(Mem{Base: src, Index: at, Scale: 1}, sum)
		}
		Label(l("tap"))
		DECQ(left)
		JEQ(LabelRef(l("store")))
		ADDQ(U8(8), tap)
		MOVQ(Mem{Base: tap}, at)
		ADDQ(i, at)
		v, value := XMM(), GP32()
		if size > 1 {
			move(Mem{Base: src, Index: at, Scale: 1}, v)
		}
		switch {
		case size == 1:
			MOVBLZX(Mem{Base: src, Index: at, Scale: 1}, value)
			CMPL(value, byteSum)
			CMOVLGT(value, byteSum)
		case doc == "maxima of bytes":
			PMAXUB(v, sum)
		case doc == "maxima":
			MAXPS(sum, v) // sum where they are equal, or not comparable
			MOVO(v, sum)
		default:
			POR(v, sum)
		}
		JMP(LabelRef(l("tap")))
		Label(l("store"))
		if size == 1 {
			MOVB(byteSum.As8(), Mem{Base: dst, Index: i, Scale: 1})
		} else {
			move(sum, Mem{Base: dst, Index: i, Scale: 1})
		}
		ADDQ(U8(size), i)
		JMP(LabelRef(l("part")))
		Label(l("end"))
	}
	ADDQ(Mem{Base: job, Disp: gen.PoolStep}, src)
	ADDQ(Mem{Base: job, Disp: gen.PoolDstStep}, dst)
	DECQ(Mem{Base: job, Disp: gen.PoolPixels})
	JNE(LabelRef("pixel"))
	RET()
}

// pool4 writes the pooling of windows of 2×2.
func pool4() {
	TEXT("orPool4SSSE3", NOSPLIT, "func(job *byte, flip uint64)")
	Doc("orPool4SSSE3 writes the OR of four taps of one word of a PoolJob, XOR flip.")
	Pragma("noescape")
	job, flip := Load(Param("job"), GP64()), Load(Param("flip"), GP64())
	dst, src, n, v := GP64(), GP64(), GP64(), GP64()
	var taps [4]reg.GPVirtual
	MOVQ(Mem{Base: job, Disp: gen.PoolTaps}, v)
	for i := range taps {
		taps[i] = GP64()
		MOVQ(Mem{Base: v, Disp: 8 * i}, taps[i])
	}
	MOVQ(Mem{Base: job, Disp: gen.PoolDst}, dst)
	MOVQ(Mem{Base: job, Disp: gen.PoolSrc}, src)
	MOVQ(Mem{Base: job, Disp: gen.PoolPixels}, n)
	Label("pixel")
	MOVQ(Mem{Base: src, Index: taps[0], Scale: 1}, v)
	for _, t := range taps[1:] {
		ORQ(Mem{Base: src, Index: t, Scale: 1}, v)
	}
	XORQ(flip, v)
	MOVQ(v, Mem{Base: dst})
	ADDQ(Mem{Base: job, Disp: gen.PoolStep}, src)
	ADDQ(Mem{Base: job, Disp: gen.PoolDstStep}, dst)
	DECQ(n)
	JNE(LabelRef("pixel"))
	RET()
}
