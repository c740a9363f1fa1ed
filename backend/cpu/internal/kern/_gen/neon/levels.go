package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// levels writes the numbers of levels, as bytes and as floats.
func (a *asm) levels() {
	for _, bytes := range []bool{true, false} {
		name, what, added := "levelFloatsNEON", "low plus the levels", gen.LevelsLow
		if bytes {
			name, what, added = "levelBytesNEON", "the levels", gen.LevelsOffset
		}
		a.function(name, "job *uint8", 0, 8,
			fmt.Sprintf("%s writes %s of the values of a LevelsJob, of which there are 4 at least.", name, what), "dst must not be src.")
		const (
			dst, src, scale, shift, table, row, n = "R1", "R2", "R3", "R4", "R5", "R6", "R7"
			down, rest, truncate                  = "R8", "R9", "R10"
			vectors, left, unusual, back          = "R11", "R12", "R13", "R14"
			lane                                  = 19 // four registers
			least, most, low                      = 24, 25, 26
		)
		a.op("MOVD job+0(FP), R0")
		for i, at := range []int{
			gen.LevelsDst, gen.LevelsSrc, gen.LevelsScale, gen.LevelsShift, gen.LevelsTable, gen.LevelsList, gen.LevelsN,
			gen.LevelsDown, gen.LevelsRest, gen.LevelsTruncate,
		} {
			a.op("MOVD %d(R0), R%d", at, 1+i)
		}
		for i, at := range []int{gen.LevelsLeast, gen.LevelsMost, added} {
			a.op("MOVWU %d(R0), R%d", at, lane)
			a.op("VDUP R%d, V%d.S4", lane, least+i)
		}
		a.op("ORR %s, %s, %s", down, rest, unusual)
		a.op("ORR %s, %s", truncate, unusual)
		a.op("ORR %s, %s", table, unusual)
		a.op("AND $3, %s, %s", n, left)
		a.op("LSR $2, %s, %s", n, vectors)
		a.fours(vectors, func(n int) {
			const x, y, small, by, plus = 0, 4, 8, 16, 20
			label := func(what string) string { return fmt.Sprintf("%s%d", what, n) }
			each := func(f func(i int)) {
				for i := range n {
					f(i)
				}
			}
			either := func(flag, what string, set, not func(i int)) {
				a.op("CBZ %s, %s", flag, label("no"+what))
				each(set)
				a.op("B %s", label(what))
				a.label(label("no" + what))
				each(not)
				a.label(label(what))
			}
			clip := func() {
				each(func(i int) { a.fadd(y+i, plus+i, y+i) })
				each(func(i int) { a.fmaxnm(y+i, least, y+i) }) // least for a NaN
				each(func(i int) { a.fminnm(y+i, most, y+i) })
			}
			nearest := func(i int) { a.fcvtns(y+i, y+i) }
			a.load(src, x, n)
			a.load(scale, by, n)
			a.load(shift, plus, n)
			a.op("CBNZ %s, %s", unusual, label("unusual"))
			each(func(i int) { a.fmul(x+i, by+i, y+i) })
			clip()
			each(nearest)
			a.op("B %s", label("sure"))

			a.label(label("unusual"))
			either(down, "down",
				func(i int) { a.frintm(x+i, y+i) },
				func(i int) { a.op("VMOV V%d.B16, V%d.B16", x+i, y+i) })
			a.op("CBZ %s, %s", rest, label("nomore"))
			a.load(rest, small, n)
			each(func(i int) { a.fmul(y+i, small+i, small+i) })
			each(func(i int) { a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", y+i, by+i, small+i) })
			each(func(i int) { a.op("VMOV V%d.B16, V%d.B16", small+i, y+i) })
			a.op("B %s", label("more"))
			a.label(label("nomore"))
			each(func(i int) { a.fmul(y+i, by+i, y+i) })
			a.label(label("more"))
			clip()
			either(truncate, "whole", func(i int) { a.fcvtzs(y+i, y+i) }, nearest)
			a.op("CBZ %s, %s", table, label("sure"))
			a.load(row, by, n)
			each(func(i int) {
				a.op("VADD V%d.S4, V%d.S4, V%d.S4", y+i, by+i, by+i)
				for l := range 4 {
					a.op("VMOV V%d.S[%d], R%d", by+i, l, lane+l)
				}
				for l := range 4 {
					a.op("MOVWU (%s)(R%d<<2), R%d", table, lane+l, lane+l)
					a.op("VMOV R%d, V%d.S[%d]", lane+l, by+i, l)
				}
				a.fcmge(x+i, by+i, by+i)
				a.op("VSUB V%d.S4, V%d.S4, V%d.S4", by+i, y+i, y+i)
			})

			a.label(label("sure"))
			if !bytes {
				each(func(i int) { a.scvtf(y+i, y+i) })
				each(func(i int) { a.fadd(y+i, low, y+i) })
				a.store(dst, y, n)
				return
			}
			each(func(i int) { a.op("VADD V%d.S4, V%d.S4, V%d.S4", low, y+i, y+i) })
			if n == 1 {
				a.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", y, y, y)
				a.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", y, y, y)
				a.op("FMOVS.P F%d, 4(%s)", y, dst)
				return
			}
			a.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", y+1, y, y)
			a.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", y+3, y+2, y+2)
			a.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", y+2, y, y)
			a.op("VST1.P %s, 16(%s)", list(y, 1, "B16"), dst)
		})
		// The values that are left, with those before that make a vector of them.
		a.op("CBZ %s, end", left)
		a.op("MOVD $4, %s", back)
		a.op("SUB %s, %s", left, back)
		for _, r := range []string{src, scale, shift, row} {
			a.op("SUB %s<<2, %s", back, r)
		}
		a.op("CBZ %s, whole", rest)
		a.op("SUB %s<<2, %s", back, rest)
		a.label("whole")
		if bytes {
			a.op("SUB %s, %s", back, dst)
		} else {
			a.op("SUB %s<<2, %s", back, dst)
		}
		a.op("MOVD $0, %s", left)
		a.op("MOVD $1, %s", vectors)
		a.op("B one")
		a.label("end")
		a.op("RET")
	}
}
