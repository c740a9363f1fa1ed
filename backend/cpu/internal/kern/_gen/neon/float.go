package main

import "fmt"

// float writes the ordered sums of float32 values.
func (a *asm) float() {
	a.fma()
	a.fmaEach()
}

// fma writes the sums of real weights.
func (a *asm) fma() {
	for _, vectors := range []int{16, 4, 1} {
		name := fmt.Sprintf("fma%dNEON", 4*vectors)
		a.function(name, "acc, x *float32, n int, w *float32, stride int", 0, 40,
			fmt.Sprintf("%s computes, for i < n in order, n > 0, and for o < %d,", name, 4*vectors), "",
			"\tacc[o] = fma(x[i], w[i·stride+o], acc[o])", "",
			"stride counts bytes.")
		a.arguments("acc", "x", "n", "w", "stride")
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
	a.arguments("acc", "x", "n", "w", "stride")
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

func (a *asm) fmaEach() {
	a.function("fmaEachNEON", "acc, x, w *float32, vectors int", 0, 32,
		"fmaEachNEON computes acc[i] = fma(x[i], w[i], acc[i]) for i < 4·vectors, vectors > 0.")
	a.arguments("acc", "x", "w", "vectors")
	a.label("next")
	a.op("VLD1.P 16(R1), [V1.S4]")
	a.op("VLD1.P 16(R2), [V2.S4]")
	a.op("VLD1 (R0), [V0.S4]")
	a.op("VFMLA V2.S4, V1.S4, V0.S4")
	a.op("VST1.P [V0.S4], 16(R0)")
	a.op("SUBS $1, R3")
	a.op("BNE next")
	a.op("RET")
}
