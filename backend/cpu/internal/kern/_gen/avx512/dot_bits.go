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
	for _, shape := range [][2]int{{4, 4}, {1, 4}, {4, 1}, {1, 1}} {
		dot(shape[0], shape[1])
	}
}

// dot writes the sums of pixels × vectors of 8 outputs, one 64-bit word of
// every patch at a time.
func dot(pixels, vectors int) {
	name := fmt.Sprintf("dotBits%dx%dAVX512", pixels, 8*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	gen.DotDoc(name, pixels, 8*vectors)
	job := Load(Param("job"), GP64())
	acc := make([]reg.VecVirtual, pixels*vectors)
	gen.Tiles(job, pixels, func(x []reg.GPVirtual) {
		for i := range acc {
			acc[i] = ZMM()
			VPXORQ(acc[i], acc[i], acc[i])
		}
		at, advance := gen.DotWeights(job, vectors)
		gen.Rows(job, func(i, end reg.GPVirtual) {
			Label("word")
			weights := make([]Op, vectors)
			for v := range weights {
				weights[v] = at[v]
				if pixels > 1 {
					r := ZMM()
					VMOVDQU64(at[v], r)
					weights[v] = r
				}
			}
			for p := range pixels {
				b := ZMM()
				VPBROADCASTQ(Mem{Base: x[p], Index: i, Scale: 1}, b)
				for v := range vectors {
					a, t := acc[p*vectors+v], ZMM()
					VPXORQ(weights[v], b, t)
					VPOPCNTQ(t, t)
					VPADDQ(t, a, a)
				}
			}
			advance(64)
			ADDQ(U8(8), i)
			CMPQ(i, end)
			JNE(LabelRef("word"))
		})
	}, func(p int, dst reg.Register) {
		k := YMM()
		VPBROADCASTD(Mem{Base: job, Disp: gen.DotK}, k)
		for v := range vectors {
			s := YMM()
			VPMOVQD(acc[p*vectors+v], s)
			VPADDD(s, s, s)
			VPSUBD(s, k, s)
			VMOVDQU32(s, Mem{Base: dst, Disp: 32 * v})
		}
	})
}
