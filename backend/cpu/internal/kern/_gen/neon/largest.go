package main

// largest writes the search for the largest of the channels of pixels: four lanes of channels
// each, two pixels at a time, because each vector waits for the one before.
func (a *asm) largest() {
	a.function("largestNEON", "dst, src *float32, n, pairs int", 0, 32,
		"largestNEON sets dst[p] to the place of the first of the largest of the n values of pixel p of src,",
		"n ≥ 4, for 2·pairs pixels, pairs > 0. A NaN counts as −∞.")
	a.arguments("dst", "src", "n", "pairs")
	const best, index, x, more, number = 0, 2, 4, 6, 16 // two each but for the last
	const from, four, least, none = 28, 29, 30, 31
	a.constants(from, 0|1<<32, 2|3<<32)
	a.constants(four, 4|4<<32, 4|4<<32)
	a.constants(least, 0xff800000ff800000, 0xff800000ff800000) // −∞
	a.constants(none, 1<<64-1, 1<<64-1)
	a.op("LSL $2, R2, R4")
	a.label("pair")
	a.op("MOVD R1, R5")
	a.op("ADD R4, R1, R6")
	a.op("MOVD R2, R7")
	a.op("VMOV V%d.B16, V%d.B16", from, number)
	for p := range 2 {
		a.op("VMOV V%d.B16, V%d.B16", least, best+p)
		a.op("VEOR V%d.B16, V%d.B16, V%d.B16", index+p, index+p, index+p)
	}
	a.label("channels")
	for p := range 2 {
		a.op("VLD1.P 16(R%d), %s", 5+p, list(x+p, 1, "S4"))
	}
	for p := range 2 {
		a.fcmgt(x+p, best+p, more+p)
	}
	for p := range 2 {
		a.op("VBIT V%d.B16, V%d.B16, V%d.B16", more+p, x+p, best+p)
		a.op("VBIT V%d.B16, V%d.B16, V%d.B16", more+p, number, index+p)
	}
	a.op("VADD V%d.S4, V%d.S4, V%d.S4", four, number, number)
	a.op("SUBS $4, R7")
	a.op("BEQ best")
	a.op("CMP $4, R7")
	a.op("BHS channels")
	// The last four overlap with those before, which are no larger than the best.
	a.op("MOVD $4, R8")
	a.op("SUB R7, R8")
	a.op("SUB R8<<2, R5")
	a.op("SUB R8<<2, R6")
	a.op("VDUP R8, V%d.S4", x)
	a.op("VSUB V%d.S4, V%d.S4, V%d.S4", x, number, number)
	a.op("MOVD $4, R7")
	a.op("B channels")
	a.label("best")
	for p := range 2 { // the first of the lanes that have it
		a.word(0x6e30f800|uint32((best+p)<<5|(x+p)), "fmaxv s%d, v%d.4s", x+p, best+p)
	}
	for p := range 2 {
		a.op("VDUP V%d.S[0], V%d.S4", x+p, x+p)
		a.fcmeq(best+p, x+p, more+p)
		a.op("VBSL V%d.B16, V%d.B16, V%d.B16", none, index+p, more+p)
		a.word(0x6eb1a800|uint32((more+p)<<5|(x+p)), "uminv s%d, v%d.4s", x+p, more+p)
		a.scvtf(x+p, x+p)
		a.op("FMOVS F%d, %d(R0)", x+p, 4*p)
	}
	a.op("ADD $8, R0")
	a.op("ADD R4<<1, R1")
	a.op("SUBS $1, R3")
	a.op("BNE pair")
	a.op("RET")
}
