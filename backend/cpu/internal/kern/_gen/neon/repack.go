package main

// repack writes changes of layout.
func (a *asm) repack() {
	a.narrow()
	a.join()
	a.lookUpBytes()
}

func (a *asm) narrow() {
	a.function("narrowNEON", "dst *uint32, src *uint64, groups int", 0, 24,
		"narrowNEON computes dst[i] = uint32(src[i]) for i < 8·groups, groups > 0.")
	a.arguments("dst", "src", "groups")
	a.label("next")
	a.op("VLD1.P 64(R1), %s", list(0, 4, "S4"))
	a.op("VUZP1 V1.S4, V0.S4, V4.S4")
	a.op("VUZP1 V3.S4, V2.S4, V5.S4")
	a.op("VST1.P %s, 32(R0)", list(4, 2, "S4"))
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}

func (a *asm) join() {
	a.function("joinNEON", "dst, src *uint32, groups, taps, step, shift int", 0, 48,
		"joinNEON computes, for i < 8·groups, groups > 0, taps > 0,", "",
		"\tdst[i] = OR over t < taps of src[i + t·step] << (t·shift)", "",
		"step counts bytes.")
	a.arguments("dst", "src", "groups", "taps", "step", "shift")
	a.op("VDUP R5, V7.S4")
	a.label("next")
	a.op("VLD1 (R1), %s", list(0, 2, "S4"))
	a.op("VEOR V6.B16, V6.B16, V6.B16")
	a.op("ADD R1, R4, R6")
	a.op("SUBS $1, R3, R7")
	a.op("BEQ store")
	a.label("tap")
	a.op("VADD V7.S4, V6.S4, V6.S4")
	a.op("VLD1 (R6), %s", list(2, 2, "S4"))
	a.op("ADD R4, R6")
	for i := range 2 {
		a.ushlS(2+i, 6, 2+i)
		a.op("VORR V%d.B16, V%d.B16, V%d.B16", 2+i, i, i)
	}
	a.op("SUBS $1, R7")
	a.op("BNE tap")
	a.label("store")
	a.op("VST1.P %s, 32(R0)", list(0, 2, "S4"))
	a.op("ADD $32, R1")
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}

// lookUpBytes writes the look-up of bytes in four tables of 64: a byte beyond one of them
// leaves what is there.
func (a *asm) lookUpBytes() {
	a.function("lookUpBytesNEON", "dst, src *uint8, blocks int, table *uint8", 0, 32, "lookUpBytesNEON looks up 32·blocks bytes, blocks > 0.")
	a.arguments("dst", "src", "blocks", "table")
	for i := range 4 {
		a.op("VLD1.P 64(R3), %s", list(16+4*i, 4, "B16"))
	}
	a.op("VMOVI $64, V4.B16")
	a.label("next")
	a.op("VLD1.P 32(R1), %s", list(0, 2, "B16"))
	for i := range 4 {
		for v := range 2 {
			op := "VTBX"
			if i == 0 {
				op = "VTBL"
			} else {
				a.op("VSUB V4.B16, V%d.B16, V%d.B16", v, v)
			}
			a.op("%s V%d.B16, %s, V%d.B16", op, v, list(16+4*i, 4, "B16"), 2+v)
		}
	}
	a.op("VST1.P %s, 32(R0)", list(2, 2, "B16"))
	a.op("SUBS $1, R2")
	a.op("BNE next")
	a.op("RET")
}
