package gen

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// FMASlide writes FMAEach for rows of so many taps, of which pixels are stride apart: a
// vector of channels that has been loaded is multiplied by the weights of all taps that
// it belongs to, each for another pixel. The outputs are whole
// vectors of one block of weights, so many at a time, or whole blocks of so many bytes.
func FMASlide(isa ISA, pixels, taps, stride, vectors, block int) {
	isa.slide("fma", pixels, taps, stride, vectors, block, EachDoc)
}

// MeanSlide writes the means of such rows.
func MeanSlide(isa ISA, pixels, taps int) { isa.slide("mean", pixels, taps, 1, 1, 0, MeanDoc) }

func (isa ISA) slide(kind string, pixels, taps, stride, vectors, block int, doc []string) {
	mean := kind == "mean"
	name, apart := fmt.Sprintf("%sSlide%d", kind, taps), "a step apart"
	if stride > 1 {
		name, apart = fmt.Sprintf("%sBy%d", name, stride), fmt.Sprintf("1/%d of a step apart", stride)
	}
	job := FMAFunction(name+"_", pixels, vectors, isa.Lanes, vectors == 1, isa.Name,
		append(append([]string(nil), doc...), "", fmt.Sprintf("for rows of %d runs that are %s,", taps, apart))...)
	vector := 4 * isa.Lanes * vectors
	step, src := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: TileStep}, step)
	if stride > 1 { // from a column to the next
		SHRQ(U8(bits.Len(uint(stride))-1), step)
	}
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
		acc = isa.fmaBias(job, pixels, vectors, channel)
	}
	runs, count := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: FMARuns}, runs)
	MOVQ(Mem{Base: job, Disp: FMACount}, count)
	Label("row")
	x := GP64()
	MOVQ(Mem{Base: runs}, x)
	LEAQ(Mem{Base: channel, Index: x, Scale: 4}, x)
	ADDQ(src, x)
	w := make([][]reg.VecVirtual, taps)
	for k := range w {
		if mean {
			break
		}
		at := GP64()
		MOVQ(Mem{Base: runs, Disp: 16*k + 8}, at)
		IMULQ(Mem{Base: job, Disp: FMATap}, at)
		for i := range vectors {
			w[k] = append(w[k], isa.Vec())
			VMOVUPS(Mem{Base: weights, Index: at, Scale: 1, Disp: 4 * isa.Lanes * i}, w[k][i])
		}
	}
	columns := stride*(pixels-1) + taps
	for column := range columns {
		for i := range vectors {
			v := isa.Vec()
			VMOVUPS(Mem{Base: x, Disp: 4 * isa.Lanes * i}, v)
			for k := range taps {
				p := (column - k) / stride
				if column < k || p*stride != column-k || p >= pixels {
					continue
				}
				if mean {
					VADDPS(v, acc[p*vectors+i], acc[p*vectors+i])
				} else {
					VFMADD231PS(w[k][i], v, acc[p*vectors+i])
				}
			}
		}
		if column < columns-1 {
			ADDQ(step, x)
		}
	}
	ADDQ(I32(16*taps), runs)
	SUBQ(U8(taps), count)
	JNE(LabelRef("row"))
	if mean {
		isa.divide(job, acc)
	} else {
		isa.fmaEnd(job, pixels, vectors, acc, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, channel)
	}
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	ADDQ(channel, dst)
	for p := range pixels {
		for i := range vectors {
			VMOVUPS(acc[p*vectors+i], Mem{Base: dst, Disp: 4 * isa.Lanes * i})
		}
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
		for range stride {
			ADDQ(step, src)
		}
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
