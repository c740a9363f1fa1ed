package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// depthwise writes depthwise convolutions of 3×3 on bytes, four pixels at a time, the last of which may include some
// for the second time. A column of three rows becomes quads of bytes once for all windows that it is in.
func depthwise(stride int) {
	const pixels, quarters, taps = 4, 4, 3
	name := fmt.Sprintf("depthwise%dAVX512", stride)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s does a DepthwiseJob with a stride of %d.", name, stride))
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := gen.Fields(job)
	column, row, table, weights := at(gen.DepthwiseColumn), at(gen.DepthwiseRow), at(gen.JobTable), at(gen.JobWeights)
	mask, zero := K(), ZMM()
	KMOVQ(Mem{Base: job, Disp: gen.DepthwiseMask}, mask)
	VPXORD(zero, zero, zero)
	now, last := GP64(), at(gen.JobPixels) // the first of the pixels in hand, and of the last four
	XORQ(now, now)
	SUBQ(U8(pixels), last)
	Label("pixels")
	top := GP64()
	MOVQ(now, top)
	IMULQ(column, top)
	if stride > 1 {
		IMUL3Q(U8(stride), top, top)
	}
	ADDQ(Mem{Base: job, Disp: gen.JobSrc}, top)
	acc := make([]reg.VecVirtual, pixels*quarters)
	for i := range acc {
		acc[i] = ZMM()
		VMOVDQU64(Mem{Base: table, Disp: 64 * (i % quarters)}, acc[i])
	}
	for c := range (pixels-1)*stride + taps {
		quads := interleaved(top, row, mask, zero)
		for p := range pixels {
			if x := c - stride*p; x >= 0 && x < taps {
				for q, quad := range quads {
					VPDPBUSD(Mem{Base: weights, Disp: 64 * (x*quarters + q)}, quad, acc[p*quarters+q])
				}
			}
		}
		ADDQ(column, top)
	}
	zmm.EndFloats(job, acc, quarters, "")
	zmm.EndLevels(job, acc, quarters, "")
	dst := GP64()
	MOVQ(now, dst)
	IMULQ(Mem{Base: job, Disp: gen.JobDstStep}, dst)
	ADDQ(Mem{Base: job}, dst)
	for p := range pixels {
		x := acc[p*quarters:]
		VPACKSSDW(x[1], x[0], x[0])
		VPACKSSDW(x[3], x[2], x[2])
		VPACKUSWB(x[2], x[0], x[0])
		VMOVDQU8(x[0], mask, Mem{Base: dst})
		ADDQ(Mem{Base: job, Disp: gen.JobDstStep}, dst)
	}
	CMPQ(now, last)
	JEQ(LabelRef("done"))
	ADDQ(U8(pixels), now)
	CMPQ(now, last)
	CMOVQGT(last, now)
	JMP(LabelRef("pixels"))
	Label("done")
	VZEROUPPER()
	RET()
}

// interleaved returns quads of the bytes of a column of three rows and a 0, in the order of kern.InDepthwiseOrder.
func interleaved(top, row reg.Register, mask, zero reg.Register) [4]reg.VecVirtual {
	var rows [3]reg.VecVirtual
	for y, at := range []Mem{{Base: top}, {Base: top, Index: row, Scale: 1}, {Base: top, Index: row, Scale: 2}} {
		rows[y] = ZMM()
		VMOVDQU8_Z(at, mask, rows[y])
	}
	var pairs, ends [2]reg.VecVirtual
	for i := range pairs {
		pairs[i], ends[i] = ZMM(), ZMM()
	}
	VPUNPCKLBW(rows[1], rows[0], pairs[0])
	VPUNPCKHBW(rows[1], rows[0], pairs[1])
	VPUNPCKLBW(zero, rows[2], ends[0])
	VPUNPCKHBW(zero, rows[2], ends[1])
	var quads [4]reg.VecVirtual
	for q := range quads {
		quads[q] = ZMM()
		if q%2 == 0 {
			VPUNPCKLWD(ends[q/2], pairs[q/2], quads[q])
		} else {
			VPUNPCKHWD(ends[q/2], pairs[q/2], quads[q])
		}
	}
	return quads
}
