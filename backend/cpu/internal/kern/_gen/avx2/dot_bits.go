package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// dotBits writes the sums of packed words.
func dotBits() {
	gen.Popcounts(1)
	for _, shape := range [][2]int{{1, 4}, {4, 1}, {1, 1}} {
		dot(shape[0], shape[1])
	}
}

// dot writes the sums of pixels × vectors of 4 outputs, one 64-bit word of
// every patch at a time. Bits are counted by table look-up, in bytes, which are
// added to sums before they overflow.
func dot(pixels, vectors int) {
	const budget = 8 * 31 // bytes of input, 8 for every byte of 31 words
	name := fmt.Sprintf("dotBits%dx%dAVX2", pixels, 4*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	gen.DotDoc(name, pixels, 4*vectors)
	job := Load(Param("job"), GP64())
	counts, low, t := YMM(), YMM(), YMM()
	VBROADCASTI128(NewDataAddr(NewStaticSymbol("popcounts"), 0), counts) // the row of nibble 0
	VPCMPEQB(low, low, low)
	VPSRLW(U8(12), low, low)
	VPSLLW(U8(8), low, t)
	VPOR(t, low, low)
	acc, sum := make([]reg.VecVirtual, pixels*vectors), make([]reg.VecVirtual, pixels*vectors)
	flush := func() {
		zero := YMM()
		VPXOR(zero, zero, zero)
		for k, a := range acc {
			VPSADBW(zero, a, a)
			VPADDQ(a, sum[k], sum[k])
			VPXOR(a, a, a)
		}
	}
	gen.Tiles(job, pixels, func(x []reg.GPVirtual) {
		for i := range acc {
			acc[i], sum[i] = YMM(), YMM()
			VPXOR(acc[i], acc[i], acc[i])
			VPXOR(sum[i], sum[i], sum[i])
		}
		weights, advance := gen.DotWeights(job, vectors)
		stop, left := GP64(), GP64()
		MOVQ(U32(budget), left)
		gen.Rows(job, func(i, end reg.GPVirtual) {
			Label("chunk")
			LEAQ(Mem{Base: i, Index: left, Scale: 1}, stop)
			CMPQ(stop, end)
			CMOVQGT(end, stop)
			ADDQ(i, left)
			SUBQ(stop, left)
			Label("word")
			for p := range pixels {
				b := YMM()
				VPBROADCASTQ(Mem{Base: x[p], Index: i, Scale: 1}, b)
				for v := range vectors {
					a, l, h := acc[p*vectors+v], YMM(), YMM()
					VPXOR(weights[v], b, h)
					VPAND(low, h, l)
					VPSRLW(U8(4), h, h)
					VPAND(low, h, h)
					VPSHUFB(l, counts, l)
					VPSHUFB(h, counts, h)
					VPADDB(l, a, a)
					VPADDB(h, a, a)
				}
			}
			advance(32)
			ADDQ(U8(8), i)
			CMPQ(i, stop)
			JNE(LabelRef("word"))
			CMPQ(left, U8(0))
			JNE(LabelRef("go"))
			flush()
			MOVQ(U32(budget), left)
			Label("go")
			CMPQ(i, end)
			JNE(LabelRef("chunk"))
		})
		flush()
	}, func(p int, dst reg.Register) {
		k := YMM()
		VPBROADCASTQ(Mem{Base: job, Disp: gen.DotK}, k)
		for v := range vectors {
			s, upper := sum[p*vectors+v], XMM()
			VPADDQ(s, s, s)
			VPSUBQ(s, k, s)
			VEXTRACTI128(U8(1), s, upper)
			VSHUFPS(U8(0x88), upper, s.AsX(), upper)
			VMOVUPS(upper, Mem{Base: dst, Disp: 16 * v})
		}
	})
}
