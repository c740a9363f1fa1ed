package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// BlendRow writes the kernel of weighted sums of as many rows as columns, of pixels of few
// channels: a vector of the output takes its lanes from one of the input for each tap. It
// makes one row of the output, or two of the same rows of the input. Of two mirrored ones the
// second has the weights of the first in turned order, so that products of weights serve both.
func BlendRow(isa ISA, taps, outputs int, mirrored bool) {
	name := fmt.Sprintf("blendRow%dx%d%s", taps, outputs, isa.Name)
	if mirrored {
		name = fmt.Sprintf("blendRow%dMirrored%s", taps, isa.Name)
	}
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s writes the rows of a BlendRowJob, %d, of %d rows and columns for each pixel.", name, outputs, taps))
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := Fields(job)
	rows := at(BlendRowRows)
	row := make([]reg.GPVirtual, taps)
	rowWeight := make([][]reg.VecVirtual, taps)
	for i := range taps {
		row[i] = at(BlendRowSrc)
		ADDQ(Mem{Base: rows, Disp: BlendTapSize*i + BlendTapOffset}, row[i])
		for o := range outputs {
			if mirrored && o > 0 {
				continue
			}
			w := isa.Vec()
			VBROADCASTSS(Mem{Base: rows, Disp: BlendTapSize*(taps*o+i) + BlendTapWeight}, w)
			rowWeight[i] = append(rowWeight[i], w)
		}
	}
	table, places, left := at(BlendRowTable), at(BlendRowPlaces), at(BlendRowVectors)
	dst := at(BlendRowDst)
	bytes := 4 * isa.Lanes
	Label("vector")
	var sums, index, weight []reg.VecVirtual
	for range outputs {
		sum := isa.Vec()
		isa.Zero(sum)
		sums = append(sums, sum)
	}
	for k := range taps {
		i, w := isa.Vec(), isa.Vec()
		VMOVUPS(Mem{Base: table, Disp: bytes * k}, w)
		VMOVUPS(Mem{Base: table, Disp: bytes * (taps + k)}, i)
		index, weight = append(index, i), append(weight, w)
	}
	product := func(r, o, k int) reg.VecVirtual {
		w := isa.Vec()
		VMULPS(rowWeight[r][o], weight[k], w)
		return w
	}
	products := make([][]reg.VecVirtual, taps)
	for r := range taps {
		for k := 0; mirrored && k < taps; k++ {
			products[r] = append(products[r], product(r, 0, k))
		}
	}
	for r := range taps {
		for k := range taps {
			x, offset := isa.Vec(), GP64()
			MOVQ(Mem{Base: places, Disp: 8 * k}, offset)
			VPERMPS(Mem{Base: row[r], Index: offset, Scale: 1}, index[k], x)
			for o, sum := range sums {
				switch {
				case !mirrored:
					VFMADD231PS(x, product(r, o, k), sum)
				case o == 0:
					VFMADD231PS(x, products[r][k], sum)
				default:
					VFMADD231PS(x, products[taps-1-r][k], sum)
				}
			}
		}
	}
	to := GP64()
	MOVQ(Mem{Base: places, Disp: 8 * taps}, to)
	ADDQ(dst, to)
	for o, sum := range sums {
		if o > 0 {
			ADDQ(Mem{Base: job, Disp: BlendRowDstStep}, to)
		}
		VMOVUPS(sum, Mem{Base: to})
	}
	ADDQ(I32(2*taps*bytes), table)
	ADDQ(U8(8*(taps+1)), places)
	DECQ(left)
	JNE(LabelRef("vector"))
	VZEROUPPER()
	RET()
}
