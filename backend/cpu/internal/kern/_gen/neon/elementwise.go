package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// elementwise writes what makes an output of every value.
func (a *asm) elementwise() {
	a.thresholds()
	a.or()
	a.scale()
	a.scaleBytes()
	a.add()
	a.activations()
	a.mul()
	a.extreme("min", "<")
	a.extreme("max", ">")
	a.divide()
	a.choose()
	a.picks()
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

// thresholds writes the comparison and packing of whole words.
func (a *asm) thresholds() {
	for _, float := range []bool{false, true} {
		name, typ, ge := "thresholdNEON", "int32", a.cmgeS
		if float {
			name, typ, ge = "thresholdFloatNEON", "float32", a.fcmge
		}
		a.function(name, "dst *uint64, values, t *"+typ+", words int", 0, 32,
			name+" sets, for o < 64·words, words > 0,", "",
			"\tbit o%64 of dst[o/64] = values[o] ≥ t[o]")
		a.arguments("dst", "values", "t", "words")
		const pattern = 31
		a.op("MOVD $0x8040201008040201, R5")
		a.op("VDUP R5, V%d.D2", pattern)
		a.label("next")
		for v := range 4 { // 16 outputs each
			a.op("VLD1.P 64(R1), %s", list(16, 4, "S4"))
			a.op("VLD1.P 64(R2), %s", list(20, 4, "S4"))
			for i := range 4 {
				ge(16+i, 20+i, 16+i)
			}
			a.op("VUZP1 V17.H8, V16.H8, V16.H8")
			a.op("VUZP1 V19.H8, V18.H8, V18.H8")
			a.op("VUZP1 V18.B16, V16.B16, V%d.B16", v)
			a.op("VAND V%d.B16, V%d.B16, V%d.B16", pattern, v, v)
		}
		a.op("VADDP V1.B16, V0.B16, V0.B16")
		a.op("VADDP V3.B16, V2.B16, V2.B16")
		a.op("VADDP V2.B16, V0.B16, V0.B16")
		a.op("VADDP V0.B16, V0.B16, V0.B16")
		a.op("FMOVD.P F0, 8(R0)")
		a.op("SUBS $1, R3")
		a.op("BNE next")
		a.op("RET")
	}
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

// scale writes the affine step behind sums.
func (a *asm) scale() {
	for _, float := range []bool{false, true} {
		name, typ := "scaleNEON", "int32"
		if float {
			name, typ = "scaleFloatNEON", "float32"
		}
		a.function(name, "dst *float32, values *"+typ+", scale, shift *float32, vectors int, always uint32", 0, 44,
			name+" computes, for o < 4·vectors, vectors > 0,", "",
			"\tdst[o] = fma(float32(values[o]), scale[o], shift[o])", "",
			"or 0 where that is not greater than 0 and always is 0 and not all ones. dst",
			"may be values.")
		a.arguments("dst", "values", "scale", "shift", "vectors")
		a.op("MOVWU always+40(FP), R5")
		a.op("VDUP R5, V5.S4")
		a.label("next")
		a.op("VLD1.P 16(R1), [V0.S4]")
		a.op("VLD1.P 16(R2), [V1.S4]")
		a.op("VLD1.P 16(R3), [V2.S4]")
		if !float {
			a.scvtf(0, 0)
		}
		a.op("VFMLA V1.S4, V0.S4, V2.S4")
		a.fcmgt0(2, 3)
		a.op("VORR V5.B16, V3.B16, V3.B16")
		a.op("VAND V3.B16, V2.B16, V2.B16")
		a.op("VST1.P [V2.S4], 16(R0)")
		a.op("SUBS $1, R4")
		a.op("BNE next")
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

func (a *asm) add() {
	a.function("addNEON", "dst, a, b *float32, vectors int, always uint32", 0, 36,
		"addNEON computes dst[i] = a[i] + b[i] for i < 4·vectors, vectors > 0, or 0 where",
		"that is not greater than 0 and always is 0 and not all ones.")
	a.arguments("dst", "a", "b", "vectors")
	a.op("MOVWU always+32(FP), R4")
	a.op("VDUP R4, V5.S4")
	a.label("next")
	a.op("VLD1.P 16(R1), [V1.S4]")
	a.op("VLD1.P 16(R2), [V2.S4]")
	a.fadd(1, 2, 0)
	a.fcmgt0(0, 3)
	a.op("VORR V5.B16, V3.B16, V3.B16")
	a.op("VAND V3.B16, V0.B16, V0.B16")
	a.op("VST1.P [V0.S4], 16(R0)")
	a.op("SUBS $1, R3")
	a.op("BNE next")
	a.op("RET")
}

// everywhere loads float32 arguments into all lanes of registers.
func (a *asm) everywhere(first, at int, names ...string) {
	for i, name := range names {
		a.op("MOVWU %s+%d(FP), R5", name, at+4*i)
		a.op("VDUP R5, V%d.S4", first+i)
	}
}

// activations writes PReLU and clips of a row.
func (a *asm) activations() {
	a.function("preluNEON", "x, slope *float32, vectors int", 0, 24,
		"preluNEON multiplies x[i] by slope[i] where it is less than 0, for i < 4·vectors,", "vectors > 0.")
	a.arguments("x", "slope", "vectors")
	a.label("next")
	a.op("VLD1 (R0), [V0.S4]")
	a.op("VLD1.P 16(R1), [V1.S4]")
	a.fmul(0, 1, 1)
	a.fcmlt0(0, 2)
	a.op("VBSL V0.B16, V1.B16, V2.B16")
	a.op("VST1.P [V2.S4], 16(R0)")
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")

	a.function("clipNEON", "x *float32, vectors int, low, high float32", 0, 24,
		"clipNEON makes low of x[i] where it is not greater, and then high where that is", "not less, for i < 4·vectors, vectors > 0.")
	a.arguments("x", "vectors")
	a.everywhere(4, 16, "low", "high")
	a.label("next")
	a.op("VLD1 (R0), [V0.S4]")
	a.fcmgt(0, 4, 1)
	a.op("VBSL V4.B16, V0.B16, V1.B16")
	a.fcmgt(5, 1, 2)
	a.op("VBSL V5.B16, V1.B16, V2.B16")
	a.op("VST1.P [V2.S4], 16(R0)")
	a.op("SUBS $1, R1")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) mul() {
	a.function("mulNEON", "dst, a, b *float32, vectors int", 0, 32,
		"mulNEON computes dst[i] = a[i]·b[i] for i < 4·vectors, vectors > 0.")
	a.arguments("dst", "a", "b", "vectors")
	a.label("next")
	a.op("VLD1.P 16(R1), [V1.S4]")
	a.op("VLD1.P 16(R2), [V2.S4]")
	a.fmul(1, 2, 0)
	a.op("VST1.P [V0.S4], 16(R0)")
	a.op("SUBS $1, R3")
	a.op("BNE next")
	a.op("RET")
}

// extreme writes the smaller or the larger of two values.
func (a *asm) extreme(name, sign string) {
	a.function(name+"NEON", "dst, a, b *float32, vectors int", 0, 32,
		name+"NEON sets dst[i] to a[i] where a[i] "+sign+" b[i] or a[i] is a NaN, else to b[i], for", "i < 4·vectors, vectors > 0.")
	a.arguments("dst", "a", "b", "vectors")
	a.label("next")
	a.op("VLD1.P 16(R1), [V1.S4]")
	a.op("VLD1.P 16(R2), [V2.S4]")
	if name == "min" {
		a.fcmgt(2, 1, 3)
	} else {
		a.fcmgt(1, 2, 3)
	}
	a.fcmeq(1, 1, 0)
	a.op("VBSL V2.B16, V1.B16, V3.B16")
	a.op("VBSL V1.B16, V3.B16, V0.B16")
	a.op("VST1.P [V0.S4], 16(R0)")
	a.op("SUBS $1, R3")
	a.op("BNE next")
	a.op("RET")
}

// divide writes the division of a row by a number of taps.
func (a *asm) divide() {
	a.function("divideNEON", "x *float32, vectors int, taps, y float32", 0, 24,
		"divideNEON divides x[i] by taps, whose rounded reciprocal is y, for", "i < 4·vectors, vectors > 0:", "",
		"\tq = x[i]·y, r = fma(−taps, q, x[i]), x[i] = fma(r, y, q)")
	a.arguments("x", "vectors")
	a.everywhere(4, 16, "taps", "y")
	a.label("next")
	a.op("VLD1 (R0), [V0.S4]")
	a.fmul(0, 5, 1)
	a.op("VFMLS V4.S4, V1.S4, V0.S4")
	a.op("VFMLA V5.S4, V0.S4, V1.S4")
	a.op("VST1.P [V1.S4], 16(R0)")
	a.op("SUBS $1, R1")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) choose() {
	a.function("chooseNEON", "dst *float32, src *uint8, one, zero *float32, groups, period int", 0, 48,
		"chooseNEON sets dst[i] to one[i mod 8·period] where bit i of src is set, else to",
		"zero[i mod 8·period], for i < 8·groups, groups > 0.")
	a.arguments("dst", "src", "one", "zero", "groups", "period")
	a.constants(30, 1|2<<32, 4|8<<32, 16|32<<32, 64|128<<32)
	a.label("period")
	a.op("MOVD R2, R6")
	a.op("MOVD R3, R7")
	a.op("MOVD R5, R8")
	a.label("next")
	a.op("VLD1R.P 1(R1), [V0.B16]")
	a.op("VLD1.P 32(R6), %s", list(4, 2, "S4"))
	a.op("VLD1.P 32(R7), %s", list(6, 2, "S4"))
	for i := range 2 {
		a.op("VCMTST V%d.S4, V0.S4, V%d.S4", 30+i, 1+i)
		a.op("VBSL V%d.B16, V%d.B16, V%d.B16", 6+i, 4+i, 1+i)
	}
	a.op("VST1.P %s, 32(R0)", list(1, 2, "S4"))
	a.op("SUBS $1, R4")
	a.op("BEQ done")
	a.op("SUBS $1, R8")
	a.op("BNE next")
	a.op("B period")
	a.label("done")
	a.op("RET")
}
