package main

import "fmt"

// dotBits writes the sums of packed words: blocks of four outputs, word by word.
func (a *asm) dotBits() {
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
