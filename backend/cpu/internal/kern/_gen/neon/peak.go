package main

// peak writes the innermost instructions of convBits on registers only.
func (a *asm) peak() {
	a.peakFMA()
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

// peakFMA writes the innermost instruction of fmaPixels on registers only.
func (a *asm) peakFMA() {
	a.function("peakFMANEON", "rounds int", 0, 8, "peakFMANEON does 16 vectors of fused products and sums, 4 each, rounds times.")
	a.op("MOVD rounds+0(FP), R0")
	for i := range 20 {
		a.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	a.label("next")
	for v := range 16 {
		a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", 16+v/4, 16+v%4, v)
	}
	a.op("SUBS $1, R0")
	a.op("BNE next")
	a.op("RET")
}
