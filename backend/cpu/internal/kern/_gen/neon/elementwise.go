package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// elementwise writes what makes an output of every value.
func (a *asm) elementwise() {
	a.thresholds()
	a.or()
	a.ends()
	a.scaleBytes()
	a.clips()
	a.pairs()
	a.largest()
	a.divide()
	a.choose()
	a.picks()
	a.functions()
}

// picks writes the choice of channels: an index beyond the table makes 0 of a byte
// in the first piece, and leaves it as it is in the others.
func (a *asm) picks() {
	for pieces := range gen.MaxPieces {
		pieces++
		name := fmt.Sprintf("pick%dNEON", pieces)
		a.function(name, "job *uint8", 0, 8, fmt.Sprintf("%s writes the vectors of the output of every pixel of a PickJob, of %d pieces each.", name, pieces))
		a.op("MOVD job+0(FP), R0")
		for i, at := range []int{gen.PickDst, gen.PickSrc, gen.PickPieces, gen.PickDstStep, gen.PickSrcStep, gen.PickVectors} {
			a.op("MOVD %d(R0), R%d", at, 1+i)
		}
		a.label("vector")
		for i := range pieces {
			a.op("MOVD %d(R3), R%d", gen.PieceSize*i+gen.PieceOffset, 8+i)
			a.op("ADD $%d, R3, R12", gen.PieceSize*i+gen.PieceBytes)
			a.op("VLD1 (R12), [V%d.B16]", 16+i)
		}
		a.op("MOVD R1, R13")
		a.op("MOVD R2, R14")
		a.op("MOVD %d(R0), R15", gen.PickPixels)
		a.label("pixel")
		for i := range pieces {
			a.ldrq(14, 8+i, 1+i)
		}
		for i := range pieces {
			op := "VTBX"
			if i == 0 {
				op = "VTBL"
			}
			a.op("%s V%d.B16, [V%d.B16], V0.B16", op, 16+i, 1+i)
		}
		a.op("VST1 [V0.B16], (R13)")
		a.op("ADD R4, R13")
		a.op("ADD R5, R14")
		a.op("SUBS $1, R15")
		a.op("BNE pixel")
		a.op("ADD $16, R1")
		a.op("ADD $%d, R3", gen.PieceSize*pieces)
		a.op("SUBS $1, R6")
		a.op("BNE vector")
		a.op("RET")
	}
}

// thresholds writes the comparison and packing of whole words. The thresholds of a word
// stay in registers for all pixels.
func (a *asm) thresholds() {
	for _, float := range []bool{false, true} {
		name, typ, ge := "thresholdNEON", "int32", a.cmgeS
		if float {
			name, typ, ge = "thresholdFloatNEON", "float32", a.fcmge
		}
		a.function(name, "dst *uint64, values, t *"+typ+", pixels, step, stride int", 0, 48,
			name+" sets, for p < pixels, pixels > 0, and o < 64,", "",
			"\tbit o of dst[p·step] = values[p·stride + o] ≥ t[o]")
		a.arguments("dst", "values", "t", "pixels", "step", "stride")
		const value, mask, pattern, bound = 0, 4, 8, 16
		a.op("LSL $3, R4")
		a.op("LSL $2, R5")
		a.op("MOVD R5, R7")
		a.op("SUB $256, R5")
		a.op("MOVD $0x8040201008040201, R6")
		a.op("VDUP R6, V%d.D2", pattern)
		for v := range 4 {
			a.op("VLD1.P 64(R2), %s", list(bound+4*v, 4, "S4"))
		}
		a.label("next")
		// The values of the next pixel are far where it has more than these.
		a.op("CMP $1, R3")
		a.op("CSEL EQ, ZR, R7, R8")
		a.op("ADD R1, R8")
		for line := range 4 {
			a.op("PRFM %d(R8), PLDL1KEEP", 64*line)
		}
		for v := range 4 { // 16 outputs each
			a.op("VLD1.P 64(R1), %s", list(value, 4, "S4"))
			for i := range 4 {
				ge(value+i, bound+4*v+i, value+i)
			}
			a.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", value+1, value, value)
			a.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", value+3, value+2, value+2)
			a.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", value+2, value, mask+v)
			a.op("VAND V%d.B16, V%d.B16, V%d.B16", pattern, mask+v, mask+v)
		}
		a.op("VADDP V%d.B16, V%d.B16, V%d.B16", mask+1, mask, mask)
		a.op("VADDP V%d.B16, V%d.B16, V%d.B16", mask+3, mask+2, mask+2)
		a.op("VADDP V%d.B16, V%d.B16, V%d.B16", mask+2, mask, mask)
		a.op("VADDP V%d.B16, V%d.B16, V%d.B16", mask, mask, mask)
		a.op("FMOVD F%d, (R0)", mask)
		a.op("ADD R4, R0")
		a.op("ADD R5, R1")
		a.op("SUBS $1, R3")
		a.op("BNE next")
		a.op("RET")
	}
}

// byFours writes a loop over so many vectors, four at a time and then one, and the
// return: body does n of them.
func (a *asm) byFours(vectors string, body func(n int)) {
	a.fours(vectors, body)
	a.op("RET")
}

// fours is byFours without the return.
func (a *asm) fours(vectors string, body func(n int)) {
	a.op("SUBS $4, %s", vectors)
	a.op("BLO few")
	a.label("fours")
	body(4)
	a.op("SUBS $4, %s", vectors)
	a.op("BHS fours")
	a.label("few")
	a.op("ADDS $4, %s", vectors)
	a.op("BEQ done")
	a.label("one")
	body(1)
	a.op("SUBS $1, %s", vectors)
	a.op("BNE one")
	a.label("done")
}

// load and store move n vectors of float32 from or to where a register points.
func (a *asm) load(from string, first, n int) {
	a.op("VLD1.P %d(%s), %s", 16*n, from, list(first, n, "S4"))
}

func (a *asm) store(to string, first, n int) {
	a.op("VST1.P %s, %d(%s)", list(first, n, "S4"), 16*n, to)
}

func (a *asm) or() {
	a.function("orNEON", "dst, src *uint64, blocks int", 0, 24, "orNEON computes dst[i] |= src[i] for i < 8·blocks, blocks > 0.")
	a.arguments("dst", "src", "blocks")
	a.label("next")
	a.op("VLD1 (R0), %s", list(0, 4, "B16"))
	a.op("VLD1.P 64(R1), %s", list(4, 4, "B16"))
	for i := range 4 {
		a.op("VORR V%d.B16, V%d.B16, V%d.B16", 4+i, i, i)
	}
	a.op("VST1.P %s, 64(R0)", list(0, 4, "B16"))
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}

// ends writes what makes outputs of sums, for rows of an EndJob: an affine step, PReLU
// and a clip, each of which may be missing, and for one kernel another affine step, which
// may be missing, the sum with other values, and a clip. Sums of two values have no affine
// step.
func (a *asm) ends() {
	for _, k := range []struct {
		name            string
		float, add, sum bool
		what            []string
	}{
		{"scaleNEON", false, false, false, []string{"\tdst[o] = end of float32(src[o])", "", "dst may be src."}},
		{"scaleFloatNEON", true, false, false, []string{"\tdst[o] = end of src[o]", "", "dst may be src."}},
		{"addNEON", true, false, true, []string{"\tdst[o] = end of src[o] + src2[o]", "", "dst may be src or src2."}},
		{"scaleAddNEON", false, true, false, []string{"\tdst[o] = what then comes of the end of float32(src[o]) and of src2[o]", "", "dst may be src2."}},
	} {
		a.function(k.name, "job *uint8", 0, 8,
			append([]string{k.name + " computes the rows of an EndJob, of n values each, a multiple of four, n > 0,", ""}, k.what...)...)
		const (
			dst, src, scale, shift, slope = "R8", "R9", "R10", "R11", "R12"
			left                          = "R13"
			src2, scale2, shift2          = "R22", "R23", "R24"
			value, factor, x, mask        = 0, 4, 16, 20
			low2, high2, low, high        = 28, 29, 30, 31
		)
		a.op("MOVD job+0(FP), R0")
		for i, at := range []int{gen.EndDst, gen.EndSrc, gen.EndScale, gen.EndShift, gen.EndSlope, gen.EndN, gen.EndRows} {
			a.op("MOVD %d(R0), R%d", at, 1+i)
		}
		a.op("LSR $2, R6")
		a.op("MOVD %d(R0), R14", gen.EndClip)
		a.op("MOVD %d(R0), R15", gen.EndDstStep)
		a.op("MOVD %d(R0), R19", gen.EndSrcStep)
		everywhere := func(at, v int) {
			a.op("MOVWU %d(R0), R20", at)
			a.op("VDUP R20, V%d.S4", v)
		}
		everywhere(gen.EndLow, low)
		everywhere(gen.EndHigh, high)
		if k.add {
			everywhere(gen.EndLow2, low2)
			everywhere(gen.EndHigh2, high2)
			a.op("MOVD %d(R0), R16", gen.EndSrc2)
			a.op("MOVD %d(R0), R17", gen.EndScale2)
			a.op("MOVD %d(R0), R20", gen.EndShift2)
			a.op("MOVD %d(R0), R21", gen.EndClip2)
		}
		if k.sum {
			a.op("MOVD %d(R0), R16", gen.EndSrc2)
		}
		body := func(n int) {
			label := func(what string) string { return fmt.Sprintf("%s%d", what, n) }
			each := func(f func(i int)) {
				for i := range n {
					f(i)
				}
			}
			to := func(v int) {
				a.load(src, v, n)
				if !k.float {
					each(func(i int) { a.scvtf(v+i, v+i) })
				}
			}
			clip := func(flag, without string, low, high int) {
				a.op("CBZ %s, %s", flag, label(without))
				each(func(i int) { a.fcmgt(low, x+i, mask+i) })
				each(func(i int) { a.op("VBIT V%d.B16, V%d.B16, V%d.B16", mask+i, low, x+i) })
				each(func(i int) { a.fcmgt(x+i, high, mask+i) })
				each(func(i int) { a.op("VBIT V%d.B16, V%d.B16, V%d.B16", mask+i, high, x+i) })
				a.label(label(without))
			}
			if k.sum {
				to(value)
				a.load(src2, factor, n)
				each(func(i int) { a.fadd(value+i, factor+i, x+i) })
			} else {
				a.op("CBZ R3, %s", label("unscaled"))
				to(value)
				a.load(scale, factor, n)
				a.load(shift, x, n)
				each(func(i int) { a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", factor+i, value+i, x+i) })
				a.op("B %s", label("scaled"))
				a.label(label("unscaled"))
				to(x)
				a.label(label("scaled"))
			}
			a.op("CBZ R5, %s", label("straight"))
			a.load(slope, factor, n)
			each(func(i int) { a.fmul(x+i, factor+i, factor+i) })
			each(func(i int) { a.fcmlt0(x+i, mask+i) })
			each(func(i int) { a.op("VBIT V%d.B16, V%d.B16, V%d.B16", mask+i, factor+i, x+i) })
			a.label(label("straight"))
			clip("R14", "unclipped", low, high)
			if k.add {
				a.load(src2, mask, n)
				a.op("CBZ R17, %s", label("plain"))
				a.load(scale2, factor, n)
				a.load(shift2, value, n)
				each(func(i int) { a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", factor+i, x+i, value+i) })
				each(func(i int) { a.fadd(value+i, mask+i, x+i) })
				a.op("B %s", label("added"))
				a.label(label("plain"))
				each(func(i int) { a.fadd(x+i, mask+i, x+i) })
				a.label(label("added"))
				clip("R21", "open", low2, high2)
			}
			a.store(dst, x, n)
		}
		a.label("row")
		for i, to := range []string{dst, src, scale, shift, slope, left} {
			a.op("MOVD R%d, %s", 1+i, to)
		}
		if k.sum {
			a.op("MOVD R16, %s", src2)
		}
		if k.add {
			a.op("MOVD R16, %s", src2)
			a.op("MOVD R17, %s", scale2)
			a.op("MOVD R20, %s", shift2)
		}
		// Rows are far from each other where pixels have more channels than these. Not all
		// of a row of more than 64 values is asked for.
		next, kind := "R1", "PSTL1KEEP"
		if k.add {
			next, kind = "R16", "PLDL1KEEP"
		}
		a.op("CMP $2, R7")
		a.op("BLS last")
		a.op("ADD R15<<1, %s, R25", next)
		for line := range 4 {
			a.op("PRFM %d(R25), %s", 64*line, kind)
		}
		a.label("last")
		a.fours(left, body)
		a.op("ADD R15, R1")
		a.op("ADD R19, R2")
		if k.add {
			a.op("ADD R15, R16")
		}
		a.op("SUBS $1, R7")
		a.op("BNE row")
		a.op("RET")
	}
}

// scaleBytes writes the affine step behind bytes; scale and shift of a period are in
// registers.
func (a *asm) scaleBytes() {
	a.function("scaleBytesNEON", "dst *float32, src *uint8, scale, shift *float32, periods int", 0, 40,
		"scaleBytesNEON computes, for i < 24·periods, periods > 0,", "",
		"\tdst[i] = fma(float32(src[i]), scale[i mod 24], shift[i mod 24])")
	a.arguments("dst", "src", "scale", "shift", "periods")
	const scale, shift, bytes, x, sum = 0, 6, 12, 16, 20
	for i := 0; i < 6; i += 2 {
		a.op("VLD1.P 32(R2), %s", list(scale+i, 2, "S4"))
		a.op("VLD1.P 32(R3), %s", list(shift+i, 2, "S4"))
	}
	a.label("next")
	a.op("VLD1.P 24(R1), %s", list(bytes, 3, "B8"))
	for i := range 3 {
		a.op("VUXTL V%d.B8, V%d.H8", bytes+i, bytes+i)
		a.op("VUXTL V%d.H4, V%d.S4", bytes+i, x)
		a.op("VUXTL2 V%d.H8, V%d.S4", bytes+i, x+1)
		for h := range 2 {
			a.scvtf(x+h, x+h)
			a.op("VMOV V%d.B16, V%d.B16", shift+2*i+h, sum+h)
			a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", scale+2*i+h, x+h, sum+h)
		}
		a.op("VST1.P %s, 32(R0)", list(sum, 2, "S4"))
	}
	a.op("SUBS $1, R4")
	a.op("BNE next")
	a.op("RET")
}

// mul writes the product of two rows.
// everywhere loads float32 arguments into all lanes of registers.
func (a *asm) everywhere(first, at int, names ...string) {
	for i, name := range names {
		a.op("MOVWU %s+%d(FP), R5", name, at+4*i)
		a.op("VDUP R5, V%d.S4", first+i)
	}
}

// clips writes the clip of a row.
func (a *asm) clips() {
	a.function("clipNEON", "x *float32, vectors int, low, high float32", 0, 24,
		"clipNEON makes low of x[i] where it is less, and then high where that is greater,", "for i < 4·vectors, vectors > 0.")
	a.arguments("x", "vectors")
	const low, high = 30, 31
	a.everywhere(low, 16, "low", "high")
	a.byFours("R1", func(n int) {
		const x, mask = 0, 4
		a.op("VLD1 (R0), %s", list(x, n, "S4"))
		for i := range n {
			a.fcmgt(low, x+i, mask+i)
		}
		for i := range n {
			a.op("VBIT V%d.B16, V%d.B16, V%d.B16", mask+i, low, x+i)
		}
		for i := range n {
			a.fcmgt(x+i, high, mask+i)
		}
		for i := range n {
			a.op("VBIT V%d.B16, V%d.B16, V%d.B16", mask+i, high, x+i)
		}
		a.store("R0", x, n)
	})
}

// divide writes the division of a row by a number of taps.
func (a *asm) divide() {
	a.function("divideNEON", "x *float32, vectors int, taps, y float32", 0, 24,
		"divideNEON divides x[i] by taps, whose rounded reciprocal is y, for", "i < 4·vectors, vectors > 0:", "",
		"\tq = x[i]·y, r = fma(−taps, q, x[i]), x[i] = fma(r, y, q)")
	a.arguments("x", "vectors")
	const taps, y = 30, 31
	a.everywhere(taps, 16, "taps", "y")
	a.byFours("R1", func(n int) {
		const x, q = 0, 4
		a.op("VLD1 (R0), %s", list(x, n, "S4"))
		for i := range n {
			a.fmul(x+i, y, q+i)
		}
		for i := range n {
			a.op("VFMLS V%d.S4, V%d.S4, V%d.S4", taps, q+i, x+i)
		}
		for i := range n {
			a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", y, x+i, q+i)
		}
		a.store("R0", q, n)
	})
}

func (a *asm) choose() {
	a.function("chooseNEON", "dst *float32, src *uint16, one, zero *float32, groups, period int", 0, 48,
		"chooseNEON sets dst[i] to one[i mod 16·period] where bit i of src is set, else to",
		"zero[i mod 16·period], for i < 16·groups, groups > 0.")
	a.arguments("dst", "src", "one", "zero", "groups", "period")
	const bits, mask, one, zero, bit = 0, 1, 16, 20, 28 // four vectors each but for the bits
	for i := range 8 {
		a.op("MOVD $%#x, R26", uint64(1)<<(2*i)|uint64(2)<<(2*i)<<32)
		a.op("VMOV R26, V%d.D[%d]", bit+i/2, i%2)
	}
	a.label("period")
	a.op("MOVD R2, R6")
	a.op("MOVD R3, R7")
	a.op("MOVD R5, R8")
	a.label("next")
	a.op("VLD1R.P 2(R1), [V%d.H8]", bits)
	a.load("R6", one, 4)
	a.load("R7", zero, 4)
	for i := range 4 {
		a.op("VCMTST V%d.S4, V%d.S4, V%d.S4", bit+i, bits, mask+i)
	}
	for i := range 4 {
		a.op("VBSL V%d.B16, V%d.B16, V%d.B16", zero+i, one+i, mask+i)
	}
	a.store("R0", mask, 4)
	a.op("SUBS $1, R4")
	a.op("BEQ done")
	a.op("SUBS $1, R8")
	a.op("BNE next")
	a.op("B period")
	a.label("done")
	a.op("RET")
}
