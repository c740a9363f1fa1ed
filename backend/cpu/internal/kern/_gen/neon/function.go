package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

// functions writes the functions of tables. The rows of 4 intervals are loaded one by one
// and transposed.
func (a *asm) functions() {
	const (
		dst, src, n, f, rows, directory = 0, 1, 2, 3, 4, 5
		lane                            = 6 // four registers
		magnitudes, mantissas, infinity = 16, 17, 18
		one, shifts, zero, from, to     = 19, 20, 21, 22, 24 // two of each bound, of negative numbers the second
	)
	a.function("functionNEON", "dst, src *float32, n int, f *uint8", 0, 32,
		"functionNEON computes dst[i] = f(src[i]) for i < n, a multiple of 4, n > 0, with f a", "Function. dst may be src.")
	a.arguments("dst", "src", "n", "f")
	a.op("MOVD %d(R%d), R%d", gen.FunctionRows, f, rows)
	a.op("ADD $%d, R%d, R%d", gen.FunctionDirectory, f, directory)
	for i, v := range []uint64{1<<31 - 1, 1<<23 - 1, 0x7f800000, 1, 31, 0} {
		v |= v << 32
		a.constants(magnitudes+i, v, v)
	}
	for sign := range 2 {
		a.op("MOVWU %d(R%d), R%d", gen.FunctionFrom+4*sign, f, lane)
		a.op("VDUP R%d, V%d.S4", lane, from+sign)
		a.op("MOVWU %d(R%d), R%d", gen.FunctionTo+4*sign, f, lane)
		a.op("VDUP R%d, V%d.S4", lane, to+sign)
	}
	and := func(n, m, d int) { a.op("VAND V%d.B16, V%d.B16, V%d.B16", m, n, d) }
	sub := func(n, m, d int) { a.op("VSUB V%d.S4, V%d.S4, V%d.S4", m, n, d) }
	a.label("next")
	const b, place, shift, back, row, m, magnitude, negative, start, end = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	a.op("VLD1.P 16(R%d), %s", src, list(b, 1, "S4"))
	a.op("VUSHR $23, V%d.S4, V%d.S4", b, place)
	for i := range 4 {
		a.op("VMOV V%d.S[%d], R%d", place, i, lane+i)
	}
	for i := range 4 {
		a.op("MOVWU (R%d)(R%d<<2), R%d", directory, lane+i, lane+i)
		a.op("VMOV R%d, V%d.S[%d]", lane+i, place, i)
	}
	// The row: the first of the exponent, and what is left of the mantissa.
	and(place, shifts, shift)
	sub(place, shift, place)
	sub(zero, shift, back)
	and(b, mantissas, row)
	a.ushlS(row, back, row)
	a.op("VSHL $5, V%d.S4, V%d.S4", row, row)
	a.op("VADD V%d.S4, V%d.S4, V%d.S4", place, row, row)
	for i := range 4 {
		a.op("VMOV V%d.S[%d], R%d", row, i, lane+i)
		a.op("ADD R%d, R%d", rows, lane+i)
	}
	// The middle: the bits that tell intervals apart, and one behind them.
	sub(shift, one, shift)
	sub(zero, shift, back)
	a.ushlS(b, back, m)
	a.op("VORR V%d.B16, V%d.B16, V%d.B16", one, m, m)
	a.ushlS(m, shift, m)
	and(b, magnitudes, magnitude)
	a.sshr31(b, negative)
	for _, bound := range [][2]int{{from, start}, {to, end}} {
		a.op("VMOV V%d.B16, V%d.B16", negative, bound[1])
		a.op("VBSL V%d.B16, V%d.B16, V%d.B16", bound[0], bound[0]+1, bound[1])
	}
	a.cmgeS(magnitude, start, start)
	a.cmgtS(end, magnitude, end)
	and(start, end, start)
	and(start, m, m)
	a.op("VCMEQ V%d.S4, V%d.S4, V%d.S4", infinity, magnitude, magnitude)
	a.op("VADD V%d.S4, V%d.S4, V%d.S4", magnitude, b, b)
	a.fsub(b, m, b)
	// hi, lo, c1, c2 and c3, …, c6 of a row are neighbours.
	const halves, t = 1, 9
	for i := range 4 {
		a.op("VLD1 (R%d), %s", lane+i, list(halves+2*i, 2, "S4"))
	}
	for half := range 2 {
		r := halves + half
		for i := range 2 {
			a.op("VTRN1 V%d.S4, V%d.S4, V%d.S4", r+4*i+2, r+4*i, t+2*i)
			a.op("VTRN2 V%d.S4, V%d.S4, V%d.S4", r+4*i+2, r+4*i, t+2*i+1)
		}
		for i := range 2 {
			a.op("VZIP1 V%d.D2, V%d.D2, V%d.D2", t+2+i, t+i, r+2*i)
			a.op("VZIP2 V%d.D2, V%d.D2, V%d.D2", t+2+i, t+i, r+2*i+4)
		}
	}
	const p = halves + 7 // c6
	for _, c := range []int{6, 4, 2, 7, 5, 3} {
		a.fmul(p, b, p)
		a.fadd(p, c, p)
	}
	a.fadd(p, halves, p)
	a.op("VST1.P %s, 16(R%d)", list(p, 1, "S4"), dst)
	a.op("SUBS $4, R%d", n)
	a.op("BNE next")
	a.op("RET")
}
