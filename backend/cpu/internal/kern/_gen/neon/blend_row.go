package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// blendRows writes the kernels of rows of weighted pixels of few channels.
func (a *asm) blendRows() {
	for _, taps := range []int{2, 4} {
		a.blendRow(taps, 1, false)
		a.blendRow(taps, 2, false)
		a.blendRow(taps, 2, true)
	}
}

// blendRow writes the kernel of weighted sums of as many rows as columns: a vector of the
// output takes its lanes from one of the input for each tap. It makes one row of the output, or
// two of the same rows of the input. Of two mirrored ones the second has the weights of the
// first in turned order, so that products of weights serve both.
func (a *asm) blendRow(taps, outputs int, mirrored bool) {
	const (
		rows, table, places, left, dst, dstStep, t = 1, 2, 3, 4, 5, 6, 7
		row, offset, to                            = 8, 12, 16 // one of each for each tap
		// Vectors: rowWeight and sum of each output, weight and index of each tap.
		rowWeight, sum, weight, index, x, product = 0, 2, 4, 8, 12, 16
	)
	name := fmt.Sprintf("blendRow%dx%dNEON", taps, outputs)
	if mirrored {
		name = fmt.Sprintf("blendRow%dMirroredNEON", taps)
	}
	a.function(name, "job *uint8", 0, 8,
		fmt.Sprintf("%s writes the rows of a BlendRowJob, %d, of %d rows and columns for each pixel.", name, outputs, taps))
	a.op("MOVD job+0(FP), R0")
	for _, f := range [][2]int{
		{gen.BlendRowRows, rows}, {gen.BlendRowTable, table}, {gen.BlendRowPlaces, places},
		{gen.BlendRowVectors, left}, {gen.BlendRowDst, dst}, {gen.BlendRowDstStep, dstStep},
	} {
		a.op("MOVD %d(R0), R%d", f[0], f[1])
	}
	for i := range taps {
		a.op("MOVD %d(R0), R%d", gen.BlendRowSrc, row+i)
		a.op("MOVD %d(R%d), R%d", gen.BlendTapSize*i+gen.BlendTapOffset, rows, t)
		a.op("ADD R%d, R%d", t, row+i)
		for o := range outputs {
			a.op("MOVWU %d(R%d), R%d", gen.BlendTapSize*(taps*o+i)+gen.BlendTapWeight, rows, t)
			a.op("VMOV R%d, V%d.S[%d]", t, rowWeight+o, i)
		}
	}
	a.label("vector")
	// Addresses that loads move come late from them on some cores.
	a.op("ADD $%d, R%d, R%d", 16*taps, table, t)
	a.op("VLD1 (R%d), %s", table, list(weight, taps, "S4"))
	a.op("VLD1 (R%d), %s", t, list(index, taps, "S4"))
	a.op("ADD $%d, R%d", 2*16*taps, table)
	for k := 0; k < taps; k += 2 {
		a.op("LDP %d(R%d), (R%d, R%d)", 8*k, places, offset+k, offset+k+1)
	}
	a.op("MOVD %d(R%d), R%d", 8*taps, places, to)
	a.op("ADD $%d, R%d", 8*(taps+1), places)
	a.op("ADD R%d, R%d", dst, to)
	for o := range outputs {
		a.zero(sum + o)
	}
	// The products of the weights of rows and columns, all of those that serve twice.
	multiply := func(r, o, k, to int) { a.fmulLane(weight+k, rowWeight+o, r, to) }
	for r := 0; mirrored && r < taps; r++ {
		for k := range taps {
			multiply(r, 0, k, product+taps*r+k)
		}
	}
	for r := range taps {
		for k := range taps {
			a.ldrq(row+r, offset+k, x+k)
			a.op("VTBL V%d.B16, [V%d.B16], V%d.B16", index+k, x+k, x+k)
			for o := 0; !mirrored && o < outputs; o++ {
				multiply(r, o, k, product+taps*o+k)
			}
		}
		for k := range taps {
			for o := range outputs {
				w := product + taps*o + k
				if mirrored {
					w = product + taps*r + k
					if o > 0 {
						w = product + taps*(taps-1-r) + k
					}
				}
				a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", w, x+k, sum+o)
			}
		}
	}
	for o := range outputs {
		if o > 0 {
			a.op("ADD R%d, R%d", dstStep, to)
		}
		a.op("VST1 %s, (R%d)", list(sum+o, 1, "S4"), to)
	}
	a.op("SUBS $1, R%d", left)
	a.op("BNE vector")
	a.op("RET")
}
