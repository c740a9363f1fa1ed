package main

// lookUp writes the look-up of bytes in tables of float32. Eight bytes are loaded at a time,
// and results stored in pairs; TBL would take 16 instructions for 16 values, each of four
// registers, and those that put the bytes of a value together.
func (a *asm) lookUp() {
	a.function("lookUpNEON", "dst *float32, src *uint8, a, b, c *float32, groups int", 0, 48,
		"lookUpNEON sets dst[i] to a[src[i]], dst[i+1] to b[src[i+1]], dst[i+2] to c[src[i+2]], for",
		"every third i < 24·groups, groups > 0.")
	a.arguments("dst", "src", "a", "b", "c", "groups")
	const dst, src, table, groups, bytes, value = 0, 1, 2, 5, 6, 8
	a.label("next")
	for i := range 24 {
		if i%8 == 0 {
			a.op("MOVD.P 8(R%d), R%d", src, bytes)
		}
		to := value + i%8
		a.op("UBFX $%d, R%d, $8, R%d", i%8*8, bytes, to)
		a.op("MOVWU (R%d)(R%d<<2), R%d", table+i%3, to, to)
		if i%2 == 1 {
			a.op("STPW.P (R%d, R%d), 8(R%d)", to-1, to, dst)
		}
	}
	a.op("SUBS $1, R%d", groups)
	a.op("BNE next")
	a.op("RET")
}
