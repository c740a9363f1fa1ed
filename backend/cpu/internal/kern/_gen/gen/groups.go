package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// FMAGroups writes the sums of groups of few inputs, for rows of three taps a step apart: what a vector of
// outputs reads of a pixel is loaded once. For each input of a group, it is permuted to the outputs that
// read it, and multiplied by the weights of all taps that it belongs to, each for another pixel. Two
// vectors of outputs hide the latency of each other's sums.
func FMAGroups(isa ISA, inputs, pixels int) {
	const taps, vectors = 3, 2
	job := FMAFunction(fmt.Sprintf("fmaGroups%d_", inputs), pixels, vectors, isa.Lanes, vectors == 1, isa.Name,
		fmt.Sprintf("with x[r] the %d values of the group of o from that of run r on,", inputs), "",
		fmt.Sprintf("\tdst[p][o] = bias[o], then fma(x[r][i], w[tap of r + i][o], dst[p][o]) for each r and i < %d", inputs), "",
		fmt.Sprintf("for rows of %d runs that are a step apart, of a GroupsJob,", taps))
	at := Fields(job)
	step, each, src, tap, end := at(TileStep), at(GroupsEach), at(TileSrc), at(FMATap), at(FMAOutputs)
	SHLQ(U8(2), end)
	next := GP64() // from the weights of a tap to those of the same input of the next
	MOVQ(tap, next)
	for n := inputs; n > 1; n /= 2 {
		SHLQ(U8(1), next)
	}
	index, mask := at(GroupsIndex), K()
	KMOVW(Mem{Base: job, Disp: GroupsMask}, mask)
	lanes := make([]reg.VecVirtual, inputs)
	for i := range lanes {
		lanes[i] = isa.Vec()
		VMOVUPS(Mem{Base: index, Disp: 4 * isa.Lanes * i}, lanes[i])
	}
	Label("next")
	CMPQ(Mem{Base: job, Disp: TilePixels}, U8(pixels))
	JLT(LabelRef("done"))
	channel, from, weights := GP64(), GP64(), at(TileWeights)
	XORQ(channel, channel)
	MOVQ(src, from)
	Label("channels")
	acc := isa.fmaBias(job, pixels, vectors, channel)
	runs, count := at(FMARuns), at(FMACount)
	Label("row")
	x, w := GP64(), GP64()
	MOVQ(Mem{Base: runs}, x)
	LEAQ(Mem{Base: from, Index: x, Scale: 4}, x)
	MOVQ(Mem{Base: runs, Disp: 8}, w)
	IMULQ(tap, w)
	ADDQ(weights, w)
	for column := range pixels - 1 + taps {
		var v [vectors]reg.VecVirtual
		for i := range v {
			v[i] = isa.Vec()
			m := Mem{Base: x}
			if i > 0 {
				m.Index, m.Scale = each, 1
			}
			VMOVUPS_Z(m, mask, v[i])
		}
		of := GP64()
		MOVQ(w, of)
		for i := range inputs {
			for j := range vectors {
				y := isa.Vec()
				VPERMPS(v[j], lanes[i], y)
				for k := range taps {
					p := column - k
					if p < 0 || p >= pixels {
						continue
					}
					m := Mem{Base: of, Disp: 4 * isa.Lanes * j}
					if k > 0 {
						m.Index, m.Scale = next, uint8(k)
					}
					VFMADD231PS(m, y, acc[p*vectors+j])
				}
			}
			if i < inputs-1 {
				ADDQ(tap, of)
			}
		}
		if column < pixels-2+taps {
			ADDQ(step, x)
		}
	}
	ADDQ(I32(16*taps), runs)
	SUBQ(U8(taps), count)
	JNE(LabelRef("row"))
	isa.fmaEnd(job, pixels, vectors, acc, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, channel)
	dst := at(TileDst)
	ADDQ(channel, dst)
	for p := range pixels {
		for i := range vectors {
			VMOVUPS(acc[p*vectors+i], Mem{Base: dst, Disp: 4 * isa.Lanes * i})
		}
		if p < pixels-1 {
			ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
		}
	}
	const block = 256 // bytes of the weights of a tap in a block
	ADDQ(U32(4*isa.Lanes*vectors), channel)
	ADDQ(U32(4*isa.Lanes*vectors), weights)
	LEAQ(Mem{Base: from, Index: each, Scale: vectors}, from)
	TESTQ(U32(block-1), channel)
	JNE(LabelRef("block"))
	ADDQ(Mem{Base: job, Disp: FMABlock}, weights)
	SUBQ(I32(block), weights)
	Label("block")
	CMPQ(channel, end)
	JNE(LabelRef("channels"))
	to := at(TileDst)
	for range pixels {
		ADDQ(step, src)
		ADDQ(Mem{Base: job, Disp: TileDstStep}, to)
	}
	MOVQ(to, Mem{Base: job, Disp: TileDst})
	MOVQ(src, Mem{Base: job, Disp: TileSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: TilePixels})
	JMP(LabelRef("next"))
	Label("done")
	VZEROUPPER()
	RET()
}
