package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// FMASlide writes FMAEach for rows of so many taps that are as far apart as the
// pixels: a vector of channels that has been loaded is multiplied by the weights
// of all taps that it belongs to, each for another pixel. The outputs are whole
// vectors of one block of weights, or whole blocks of so many bytes.
func FMASlide(isa ISA, pixels, taps, block int) {
	isa.slide("fma", pixels, taps, block, EachDoc)
}

// MeanSlide writes the means of such rows.
func MeanSlide(isa ISA, pixels, taps int) { isa.slide("mean", pixels, taps, 0, MeanDoc) }

func (isa ISA) slide(kind string, pixels, taps, block int, doc []string) {
	mean := kind == "mean"
	job := FMAFunction(fmt.Sprintf("%sSlide%d_", kind, taps), pixels, 1, isa.Lanes, isa.Name,
		append(append([]string(nil), doc...), "", fmt.Sprintf("for rows of %d runs that are a step apart,", taps))...)
	vector := 4 * isa.Lanes
	step, src := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: TileStep}, step)
	MOVQ(Mem{Base: job, Disp: TileSrc}, src)
	end := GP64()
	MOVQ(Mem{Base: job, Disp: FMAOutputs}, end)
	SHLQ(U8(2), end)
	Label("next")
	CMPQ(Mem{Base: job, Disp: TilePixels}, U8(pixels))
	JLT(LabelRef("done"))
	channel, weights := GP64(), GP64()
	XORQ(channel, channel)
	if !mean {
		MOVQ(Mem{Base: job, Disp: TileWeights}, weights)
	}
	Label("channels")
	var acc []reg.VecVirtual
	if mean {
		acc = isa.zeros(pixels)
	} else {
		acc = isa.fmaBias(job, pixels, 1, channel)
	}
	runs, count := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: FMARuns}, runs)
	MOVQ(Mem{Base: job, Disp: FMACount}, count)
	Label("row")
	x := GP64()
	MOVQ(Mem{Base: runs}, x)
	LEAQ(Mem{Base: channel, Index: x, Scale: 4}, x)
	ADDQ(src, x)
	w := make([]reg.VecVirtual, taps)
	for k := range w {
		if mean {
			break
		}
		at := GP64()
		MOVQ(Mem{Base: runs, Disp: 16*k + 8}, at)
		IMULQ(Mem{Base: job, Disp: FMATap}, at)
		w[k] = isa.Vec()
		VMOVUPS(Mem{Base: weights, Index: at, Scale: 1}, w[k])
	}
	for column := range pixels + taps - 1 {
		v := isa.Vec()
		VMOVUPS(Mem{Base: x}, v)
		if column < pixels+taps-2 {
			ADDQ(step, x)
		}
		for k := range taps {
			if p := column - k; p >= 0 && p < pixels {
				if mean {
					VADDPS(v, acc[p], acc[p])
				} else {
					VFMADD231PS(w[k], v, acc[p])
				}
			}
		}
	}
	ADDQ(I32(16*taps), runs)
	SUBQ(U8(taps), count)
	JNE(LabelRef("row"))
	if mean {
		isa.divide(job, acc)
	} else {
		isa.fmaEnd(job, pixels, 1, acc, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, channel)
	}
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	ADDQ(channel, dst)
	for p := range pixels {
		VMOVUPS(acc[p], Mem{Base: dst})
		if p < pixels-1 {
			ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
		}
	}
	ADDQ(U8(vector), channel)
	if !mean {
		ADDQ(U8(vector), weights)
		TESTQ(U32(block-1), channel)
		JNE(LabelRef("block"))
		ADDQ(Mem{Base: job, Disp: FMABlock}, weights)
		SUBQ(I32(block), weights)
		Label("block")
	}
	CMPQ(channel, end)
	JNE(LabelRef("channels"))
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	for range pixels {
		ADDQ(step, src)
		ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: TileDst})
	MOVQ(src, Mem{Base: job, Disp: TileSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: TilePixels})
	JMP(LabelRef("next"))
	Label("done")
	VZEROUPPER()
	RET()
}
