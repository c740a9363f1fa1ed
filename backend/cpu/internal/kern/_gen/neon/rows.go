package main

import "fmt"

// dot writes the sums of packed words: blocks of four outputs, word by word.
func (a *asm) dot() {
	for _, pixels := range []int{2, 1} {
		name := fmt.Sprintf("dotBits%dNEON", pixels)
		params, doc := "dst, dst1 *int32, a, b *uint64, rows, n, skip int, w *uint64, k int", "and of the patches at a and at b,"
		if pixels == 1 {
			params, doc = "dst *int32, a *uint64, rows, n, skip int, w *uint64, k int", "and of the patch at a,"
		}
		at := 0
		arg := func(name, reg string) {
			a.op("MOVD %s+%d(FP), %s", name, at, reg)
			at += 8
		}
		a.function(name, params, 0, 8*(5+2*pixels),
			name+" computes k − 2·popcount(patch XOR weights) of four outputs", doc,
			"which are rows runs of n words, skip bytes apart. The weights come word by",
			"word, those of the four outputs side by side.")
		arg("dst", "R0")
		if pixels == 2 {
			arg("dst1", "R1")
		}
		arg("a", "R2")
		if pixels == 2 {
			arg("b", "R3")
		}
		arg("rows", "R6")
		arg("n", "R7")
		arg("skip", "R8")
		arg("w", "R5")
		arg("k", "R9")
		const narrow, wide, w, x, t = 0, 4, 16, 20, 24
		clear := func(first int) {
			for i := range 2 * pixels {
				a.op("VEOR V%d.B16, V%d.B16, V%d.B16", first+i, first+i, first+i)
			}
		}
		widen := func() {
			for i := range 2 * pixels {
				a.uadalpH(narrow+i, wide+i)
			}
		}
		clear(wide)
		a.label("row")
		a.op("MOVD R7, R10")
		a.label("chunk")
		a.op("MOVD $4095, R11") // 16 for every word, in sums of 16 bits
		a.op("CMP R11, R10")
		a.op("CSEL LO, R10, R11, R11")
		a.op("SUB R11, R10")
		clear(narrow)
		a.label("word")
		a.op("VLD1.P 32(R5), %s", list(w, 2, "D2"))
		for p := range pixels {
			a.op("VLD1R.P 8(R%d), %s", 2+p, list(x+p, 1, "D2"))
		}
		for p := range pixels {
			for i := range 2 {
				a.op("VEOR V%d.B16, V%d.B16, V%d.B16", x+p, w+i, t+2*p+i)
			}
		}
		for i := range 2 * pixels {
			a.op("VCNT V%d.B16, V%d.B16", t+i, t+i)
		}
		for i := range 2 * pixels {
			a.uadalp(t+i, narrow+i)
		}
		a.op("SUBS $1, R11")
		a.op("BNE word")
		widen()
		a.op("CBNZ R10, chunk")
		for p := range pixels {
			a.op("ADD R8, R%d", 2+p)
		}
		a.op("SUBS $1, R6")
		a.op("BNE row")
		a.op("VDUP R9, V%d.S4", t)
		for p := range pixels {
			v := wide + 2*p
			a.op("VADDP V%d.S4, V%d.S4, V%d.S4", v+1, v, v)
			a.op("VSHL $1, V%d.S4, V%d.S4", v, v)
			a.op("VSUB V%d.S4, V%d.S4, V%d.S4", v, t, v)
			a.op("VST1 %s, (R%d)", list(v, 1, "S4"), p)
		}
		a.op("RET")
	}
}

// fma writes the sums of real weights.
func (a *asm) fma() {
	for _, vectors := range []int{16, 4, 1} {
		name := fmt.Sprintf("fma%dNEON", 4*vectors)
		a.function(name, "acc, x *float32, n int, w *float32, stride int", 0, 40,
			fmt.Sprintf("%s computes, for i < n in order, n > 0, and for o < %d,", name, 4*vectors), "",
			"\tacc[o] = fma(x[i], w[i·stride+o], acc[o])", "",
			"stride counts bytes.")
		a.fmaArguments()
		const x, w = 16, 20
		each := func(do func(first, n int)) {
			for v := 0; v < vectors; v += 4 {
				do(v, min(vectors-v, 4))
			}
		}
		a.op("MOVD R0, R5")
		each(func(v, n int) { a.op("VLD1.P %d(R5), %s", 16*n, list(v, n, "S4")) })
		a.label("next")
		a.op("VLD1R.P 4(R1), %s", list(x, 1, "S4"))
		a.op("MOVD R3, R5")
		each(func(v, n int) {
			set := w + v/4%2*4
			a.op("VLD1.P %d(R5), %s", 16*n, list(set, n, "S4"))
			for i := range n {
				a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", x, set+i, v+i)
			}
		})
		a.op("ADD R4, R3")
		a.op("SUBS $1, R2")
		a.op("BNE next")
		each(func(v, n int) { a.op("VST1.P %s, %d(R0)", list(v, n, "S4"), 16*n) })
		a.op("RET")
	}
	a.function("fma1NEON", "acc, x *float32, n int, w *float32, stride int", 0, 40, "fma1NEON is fma4NEON for one output.")
	a.fmaArguments()
	a.op("FMOVS (R0), F0")
	a.label("next")
	a.op("FMOVS.P 4(R1), F1")
	a.op("FMOVS (R3), F2")
	a.op("FMADDS F1, F0, F2, F0")
	a.op("ADD R4, R3")
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("FMOVS F0, (R0)")
	a.op("RET")
}

func (a *asm) fmaArguments() {
	for i, name := range []string{"acc", "x", "n", "w", "stride"} {
		a.op("MOVD %s+%d(FP), R%d", name, 8*i, i)
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
		for i, name := range []string{"dst", "values", "t", "words"} {
			a.op("MOVD %s+%d(FP), R%d", name, 8*i, i)
		}
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
		for i, name := range []string{"dst", "values", "scale", "shift", "vectors"} {
			a.op("MOVD %s+%d(FP), R%d", name, 8*i, i)
		}
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

func (a *asm) or() {
	a.function("orNEON", "dst, src *uint64, blocks int", 0, 24, "orNEON computes dst[i] |= src[i] for i < 8·blocks, blocks > 0.")
	for i, name := range []string{"dst", "src", "blocks"} {
		a.op("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
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

// peak writes the innermost instructions of convBits on registers only.
func (a *asm) peak() {
	a.function("peakNEON", "rounds int", 0, 8, "peakNEON does 16 vectors of xor, popcount and add, 128 products each, rounds", "times.")
	a.op("MOVD rounds+0(FP), R0")
	for i := range 32 {
		a.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	a.label("next")
	for p := range 4 {
		for v := range 4 {
			a.op("VEOR V%d.B16, V%d.B16, V%d.B16", 20+p, 16+v, temp+v)
		}
		for v := range 4 {
			a.op("VCNT V%d.B16, V%d.B16", temp+v, temp+v)
		}
		for v := range 4 {
			a.op("VADD V%d.B16, V%d.B16, V%d.B16", temp+v, 4*p+v, 4*p+v)
		}
	}
	a.op("SUBS $1, R0")
	a.op("BNE next")
	a.op("RET")
}
