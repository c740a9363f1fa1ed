package gen

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// FMANarrow writes FMAPixels for one or two vectors of outputs, the last of which may be filled in
// part, and more pixels, as the latency takes where there are few vectors of each.
func FMANarrow(isa ISA, pixels, vectors int) {
	job, load, store := isa.fmaFirst("fmaPixels", pixels, vectors, PixelsDoc...)
	step := GP64()
	MOVQ(Mem{Base: job, Disp: TileStep}, step)
	times := map[int]reg.GPVirtual{1: step} // odd multiples
	for odd := 3; odd < pixels; odd += 2 {
		times[odd] = GP64()
		if odd == 3 {
			LEAQ(Mem{Base: step, Index: step, Scale: 2}, times[odd])
		} else {
			LEAQ(Mem{Base: times[odd-2], Index: step, Scale: 2}, times[odd])
		}
	}
	tap := GP64()
	MOVQ(Mem{Base: job, Disp: FMATap}, tap)
	of := func(p int, m Mem) Mem { // the same of pixel p
		if p > 0 {
			zeros := bits.TrailingZeros(uint(p))
			m.Index, m.Scale = times[p>>zeros], 1<<zeros
		}
		return m
	}
	Label("next")
	CMPQ(Mem{Base: job, Disp: TilePixels}, U8(pixels))
	JLT(LabelRef("done"))
	acc := isa.fmaBias(job, pixels, vectors, nil)
	FMARunLoop(job, nil, func(x, w reg.GPVirtual) {
		SHLQ(U8(2), x)
		ADDQ(Mem{Base: job, Disp: TileSrc}, x)
		end := GP64()
		MOVQ(Mem{Base: job, Disp: FMARun}, end)
		LEAQ(Mem{Base: x, Index: end, Scale: 4}, end)
		Label("tap")
		weights := make([]reg.VecVirtual, vectors)
		for v := range weights {
			weights[v] = isa.Vec()
			VMOVUPS(Mem{Base: w, Disp: 4 * isa.Lanes * v}, weights[v])
		}
		for p := range pixels {
			value := of(p, Mem{Base: x})
			if vectors == 1 {
				isa.FMABroadcast(value, weights[0], acc[p])
				continue
			}
			b := isa.Vec()
			VBROADCASTSS(value, b)
			for v, w := range weights {
				VFMADD231PS(w, b, acc[p*vectors+v])
			}
		}
		ADDQ(tap, w)
		ADDQ(U8(4), x)
		CMPQ(x, end)
		JNE(LabelRef("tap"))
	})
	isa.fmaEnd(job, pixels, vectors, acc, load, nil)
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	each := func(store func(reg.VecVirtual, Mem)) {
		for p := range pixels {
			for v := range vectors {
				store(acc[p*vectors+v], Mem{Base: dst, Disp: 4 * isa.Lanes * v})
			}
			ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
		}
	}
	CMPQ(Mem{Base: job, Disp: FMAOutputs}, U8(vectors*isa.Lanes))
	JNE(LabelRef("fewer"))
	each(func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) }) // sooner than by a mask
	JMP(LabelRef("stored"))
	Label("fewer")
	each(store)
	Label("stored")
	MOVQ(dst, Mem{Base: job, Disp: TileDst})
	src := GP64()
	IMUL3Q(U8(pixels), step, src)
	ADDQ(src, Mem{Base: job, Disp: TileSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: TilePixels})
	JMP(LabelRef("next"))
	Label("done")
	VZEROUPPER()
	RET()
}
