package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

// pools writes pooling.
func (a *asm) pools() {
	a.pool("or")
	a.pool("max")
	a.pool("maxBytes")
	a.means()
	a.pool4()
	a.signs()
}

// pool writes pooling behind a PoolJob: a part of a pixel at a time, of 64
// bytes as long as there are as many.
func (a *asm) pool(kind string) {
	sizes, or := []int{64, 16, 8}, kind == "or"
	switch kind {
	case "max":
		sizes = []int{64, 16, 4}
		a.function("maxPoolNEON", "job *uint8", 0, 8, "maxPoolNEON writes the maxima of the taps of a PoolJob.")
	case "maxBytes":
		sizes = []int{64, 16, 8, 1}
		a.function("maxPoolBytesNEON", "job *uint8", 0, 8, "maxPoolBytesNEON is maxPoolNEON of bytes.")
	default:
		a.function("orPoolNEON", "job *uint8, flip uint64", 0, 16, "orPoolNEON writes the OR of the taps of a PoolJob, XOR flip.")
		a.op("MOVD flip+8(FP), R0")
		a.op("VDUP R0, V31.D2")
	}
	a.op("MOVD job+0(FP), R0")
	for i, at := range []int{
		gen.PoolDst, gen.PoolSrc, gen.PoolTaps, gen.PoolCount, gen.PoolBytes, gen.PoolStep, gen.PoolDstStep, gen.PoolPixels,
	} {
		a.op("MOVD %d(R0), R%d", at, 1+i)
	}
	a.label("pixel")
	a.op("MOVD R5, R9") // bytes left
	a.op("MOVD R1, R10")
	a.op("MOVD R2, R11")
	for _, size := range sizes {
		load := func(first int) {
			switch size {
			case 64:
				a.op("VLD1 (R14), %s", list(first, 4, "B16"))
			case 16:
				a.op("VLD1 (R14), %s", list(first, 1, "B16"))
			case 8:
				a.op("FMOVD (R14), F%d", first)
			case 1:
				a.op("VLD1 (R14), V%d.B[0]", first)
			default:
				a.op("FMOVS (R14), F%d", first)
			}
		}
		l := func(name string) string { return name + string(rune('a'+min(size, 25))) }
		a.label(l("part"))
		a.op("CMP $%d, R9", size)
		a.op("BLT %s", l("end"))
		a.op("MOVD R3, R12")
		a.op("SUBS $1, R4, R13")
		a.op("MOVD.P 8(R12), R14")
		a.op("ADD R11, R14")
		load(0)
		a.op("CBZ R13, %s", l("store"))
		a.label(l("tap"))
		a.op("MOVD.P 8(R12), R14")
		a.op("ADD R11, R14")
		load(4)
		for i := range max(1, size/16) {
			switch kind {
			case "max":
				a.fcmgt(4+i, i, 8+i)
				a.op("VBIT V%d.B16, V%d.B16, V%d.B16", 8+i, 4+i, i)
			case "maxBytes":
				a.op("VUMAX V%d.B16, V%d.B16, V%d.B16", 4+i, i, i)
			default:
				a.op("VORR V%d.B16, V%d.B16, V%d.B16", 4+i, i, i)
			}
		}
		a.op("SUBS $1, R13")
		a.op("BNE %s", l("tap"))
		a.label(l("store"))
		if or {
			for i := range max(1, size/16) {
				a.op("VEOR V31.B16, V%d.B16, V%d.B16", i, i)
			}
		}
		switch size {
		case 64:
			a.op("VST1.P %s, 64(R10)", list(0, 4, "B16"))
		case 16:
			a.op("VST1.P %s, 16(R10)", list(0, 1, "B16"))
		case 8:
			a.op("FMOVD.P F0, 8(R10)")
		case 1:
			a.op("VST1.P V0.B[0], 1(R10)")
		default:
			a.op("FMOVS.P F0, 4(R10)")
		}
		a.op("ADD $%d, R11", size)
		a.op("SUB $%d, R9", size)
		a.op("B %s", l("part"))
		a.label(l("end"))
	}
	a.op("ADD R6, R2")
	a.op("ADD R7, R1")
	a.op("SUBS $1, R8")
	a.op("BNE pixel")
	a.op("RET")
}

// pool4 writes the pooling of windows of 2×2.
func (a *asm) pool4() {
	a.function("orPool4NEON", "job *uint8, flip uint64", 0, 16, "orPool4NEON is orPoolNEON for four taps of one word.")
	a.op("MOVD job+0(FP), R0")
	a.op("MOVD flip+8(FP), R9")
	for i, at := range []int{gen.PoolDst, gen.PoolSrc, gen.PoolTaps, gen.PoolStep, gen.PoolDstStep, gen.PoolPixels} {
		a.op("MOVD %d(R0), R%d", at, 1+i)
	}
	for i := range 4 {
		a.op("MOVD %d(R3), R%d", 8*i, 10+i)
	}
	a.label("pixel")
	for i := range 4 {
		a.op("MOVD (R2)(R%d), R%d", 10+i, 19+i)
	}
	a.op("ORR R20, R19")
	a.op("ORR R22, R21")
	a.op("ORR R21, R19")
	a.op("EOR R9, R19")
	a.op("MOVD R19, (R1)")
	a.op("ADD R4, R2")
	a.op("ADD R5, R1")
	a.op("SUBS $1, R6")
	a.op("BNE pixel")
	a.op("RET")
}
