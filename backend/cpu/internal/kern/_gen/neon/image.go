package main

// image writes what reads the bytes of images.
func (a *asm) image() {
	a.thresholdBytes()
	a.spread()
	a.luma()
	a.lbp()
	a.minMax()
	a.floats()
}

func (a *asm) floats() {
	a.function("floatsNEON", "dst *float32, src *uint8, groups int", 0, 24,
		"floatsNEON computes dst[i] = float32(src[i]) for i < 16·groups, groups > 0.")
	a.arguments("dst", "src", "groups")
	a.label("next")
	a.op("VLD1.P 16(R1), [V0.B16]")
	a.op("VUXTL V0.B8, V4.H8")
	a.op("VUXTL2 V0.B16, V5.H8")
	for i := range 2 {
		a.op("VUXTL V%d.H4, V%d.S4", 4+i, 2*i)
		a.op("VUXTL2 V%d.H8, V%d.S4", 4+i, 2*i+1)
	}
	for i := range 4 {
		a.scvtf(i, i)
	}
	a.op("VST1.P %s, 64(R0)", list(0, 4, "S4"))
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) thresholdBytes() {
	a.function("thresholdBytesNEON", "dst *uint64, src, t *uint8, words, period int", 0, 40,
		"thresholdBytesNEON sets, for i < 64·words, words > 0,", "",
		"\tbit i%64 of dst[i/64] = src[i] ≥ t[i mod 64·period]")
	a.arguments("dst", "src", "t", "words", "period")
	a.constants(31, 0x8040201008040201, 0x8040201008040201)
	a.label("period")
	a.op("MOVD R2, R5")
	a.op("MOVD R4, R6")
	a.label("next")
	a.op("VLD1.P 64(R1), %s", list(0, 4, "B16"))
	a.op("VLD1.P 64(R5), %s", list(4, 4, "B16"))
	for i := range 4 {
		a.cmhs(i, 4+i, i)
		a.op("VAND V31.B16, V%d.B16, V%d.B16", i, i)
	}
	a.op("VADDP V1.B16, V0.B16, V0.B16")
	a.op("VADDP V3.B16, V2.B16, V2.B16")
	a.op("VADDP V2.B16, V0.B16, V0.B16")
	a.op("VADDP V0.B16, V0.B16, V0.B16")
	a.op("FMOVD.P F0, 8(R0)")
	a.op("SUBS $1, R3")
	a.op("BEQ done")
	a.op("SUBS $1, R6")
	a.op("BNE next")
	a.op("B period")
	a.label("done")
	a.op("RET")
}

func (a *asm) spread() {
	a.function("spreadNEON", "dst *uint64, src *uint8, groups, n int, mask, flip uint64", 0, 48,
		"spreadNEON computes dst[p] = bits p·n … p·n+n−1 of src, XOR flip, for", "p < 8·groups, groups > 0. mask has n bits.")
	a.arguments("dst", "src", "groups", "n", "mask", "flip")
	a.op("VDUP R4, V30.D2")
	a.op("VDUP R5, V31.D2")
	a.op("MOVD $0, R6")
	for i := range 8 {
		a.op("VMOV R6, V%d.D[%d]", 24+i/2, i%2)
		a.op("SUB R3, R6")
	}
	a.label("next")
	a.op("VLD1R (R1), [V4.D2]")
	a.op("ADD R3, R1")
	for i := range 4 {
		a.ushlD(4, 24+i, i)
		a.op("VAND V30.B16, V%d.B16, V%d.B16", i, i)
		a.op("VEOR V31.B16, V%d.B16, V%d.B16", i, i)
	}
	a.op("VST1.P %s, 64(R0)", list(0, 4, "D2"))
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) luma() {
	a.function("lumaNEON", "dst, rgb *uint8, groups int", 0, 24,
		"lumaNEON computes dst[p] = (77·r + 150·g + 29·b) >> 8 of the bytes of pixel p, for", "p < 8·groups, groups > 0.")
	a.arguments("dst", "rgb", "groups")
	for i, c := range []int{77, 150, 29} {
		a.op("VMOVI $%d, V%d.B16", c, 4+i)
	}
	a.label("next")
	a.op("VLD3.P 24(R1), [V0.B8, V1.B8, V2.B8]")
	a.umull(0, 4, 3)
	a.umlal(1, 5, 3)
	a.umlal(2, 6, 3)
	a.shrn8(3, 3)
	a.op("VST1.P [V3.B8], 8(R0)")
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) lbp() {
	a.function("lbpNEON", "dst *uint64, above, row, below *uint8, groups int", 0, 40,
		"lbpNEON computes, for x < 8·groups, groups > 0, with c = row[x+1],", "",
		"\tdst[x] = above[x] > c | (row[x+2] > c)<<1 | (below[x] > c)<<2")
	a.arguments("dst", "above", "row", "below", "groups")
	for i := range 3 {
		a.op("VMOVI $%d, V%d.B16", 1<<i, 28+i)
	}
	a.op("ADD $1, R2, R5")
	a.op("ADD $2, R2")
	a.label("next")
	a.op("VLD1.P 8(R5), [V3.B8]")
	for i, r := range []int{1, 2, 3} {
		a.op("VLD1.P 8(R%d), [V%d.B8]", r, i)
		a.cmhi(i, 3, i)
		a.op("VAND V%d.B16, V%d.B16, V%d.B16", 28+i, i, i)
	}
	a.op("VORR V1.B16, V0.B16, V0.B16")
	a.op("VORR V2.B16, V0.B16, V0.B16")
	a.op("VUXTL V0.B8, V0.H8")
	a.op("VUXTL2 V0.H8, V6.S4")
	a.op("VUXTL V0.H4, V4.S4")
	a.op("VUXTL2 V6.S4, V3.D2")
	a.op("VUXTL V6.S2, V2.D2")
	a.op("VUXTL2 V4.S4, V1.D2")
	a.op("VUXTL V4.S2, V0.D2")
	a.op("VST1.P %s, 64(R0)", list(0, 4, "D2"))
	a.op("SUBS $1, R4")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) minMax() {
	a.function("minMaxNEON", "src *uint8, vectors int, low, high *uint8", 0, 32,
		"minMaxNEON stores the least and the greatest of every 16th byte, for 16·vectors", "bytes, vectors > 0.")
	a.arguments("src", "vectors", "low", "high")
	a.op("VLD1 (R0), [V0.B16]")
	a.op("VMOV V0.B16, V1.B16")
	a.label("next")
	a.op("VLD1.P 16(R0), [V2.B16]")
	a.op("VUMIN V2.B16, V0.B16, V0.B16")
	a.op("VUMAX V2.B16, V1.B16, V1.B16")
	a.op("SUBS $1, R1")
	a.op("BNE next")
	a.op("VST1 [V0.B16], (R2)")
	a.op("VST1 [V1.B16], (R3)")
	a.op("RET")
}
