package main

// more writes the kernels of rows of values.
func (a *asm) more() {
	a.fmaEach()
	a.add()
	a.choose()
	a.pool(false)
	a.pool(true)
	a.pool4()
	a.narrow()
	a.join()
	a.thresholdBytes()
	a.spread()
	a.luma()
	a.lbp()
	a.minMax()
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

func (a *asm) choose() {
	a.function("chooseNEON", "dst *float32, src *uint8, one, zero *float32, groups int", 0, 40,
		"chooseNEON sets dst[i] to one[i] where bit i of src is set, else to zero[i], for",
		"i < 8·groups, groups > 0.")
	a.arguments("dst", "src", "one", "zero", "groups")
	a.constants(30, 1|2<<32, 4|8<<32, 16|32<<32, 64|128<<32)
	a.label("next")
	a.op("VLD1R.P 1(R1), [V0.B16]")
	a.op("VLD1.P 32(R2), %s", list(4, 2, "S4"))
	a.op("VLD1.P 32(R3), %s", list(6, 2, "S4"))
	for i := range 2 {
		a.op("VCMTST V%d.S4, V0.S4, V%d.S4", 30+i, 1+i)
		a.op("VBSL V%d.B16, V%d.B16, V%d.B16", 6+i, 4+i, 1+i)
	}
	a.op("VST1.P %s, 32(R0)", list(1, 2, "S4"))
	a.op("SUBS $1, R4")
	a.op("BNE next")
	a.op("RET")
}

// pool writes pooling behind a PoolJob: a part of a pixel at a time, of 64
// bytes as long as there are as many.
func (a *asm) pool(float bool) {
	smallest := 8
	if float {
		smallest = 4
		a.function("maxPoolNEON", "job *uint8", 0, 8, "maxPoolNEON writes the maxima of the taps of a PoolJob.")
	} else {
		a.function("orPoolNEON", "job *uint8, flip uint64", 0, 16, "orPoolNEON writes the OR of the taps of a PoolJob, XOR flip.")
		a.op("MOVD flip+8(FP), R0")
		a.op("VDUP R0, V31.D2")
	}
	a.op("MOVD job+0(FP), R0")
	for i, at := range []int{0, 8, 16, 24, 32, 40, 48, 56} { // dst, src, taps, count, bytes, step, dstStep, pixels
		a.op("MOVD %d(R0), R%d", at, 1+i)
	}
	a.label("pixel")
	a.op("MOVD R5, R9") // bytes left
	a.op("MOVD R1, R10")
	a.op("MOVD R2, R11")
	for _, size := range []int{64, 16, smallest} {
		load := func(first int) {
			switch size {
			case 64:
				a.op("VLD1 (R14), %s", list(first, 4, "B16"))
			case 16:
				a.op("VLD1 (R14), %s", list(first, 1, "B16"))
			case 8:
				a.op("FMOVD (R14), F%d", first)
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
			if float {
				a.fcmgt(4+i, i, 8+i)
				a.op("VBIT V%d.B16, V%d.B16, V%d.B16", 8+i, 4+i, i)
			} else {
				a.op("VORR V%d.B16, V%d.B16, V%d.B16", 4+i, i, i)
			}
		}
		a.op("SUBS $1, R13")
		a.op("BNE %s", l("tap"))
		a.label(l("store"))
		if !float {
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
	for i, at := range []int{0, 8, 16, 40, 48, 56} { // dst, src, taps, step, dstStep, pixels
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
