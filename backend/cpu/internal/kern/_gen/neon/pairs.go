package main

// pairs writes products, minima, maxima and masks, of rows, of rows with a value each and of rows with
// the same values.
func (a *asm) pairs() {
	// Of n vectors from 0 on and their seconds; the results are from out on.
	const first, second, one, last = 0, 4, 8, 9
	type combine func(n int, second func(i int) int) (out int)
	mul := func(n int, second func(i int) int) int {
		for i := range n {
			a.fmul(first+i, second(i), 16+i)
		}
		return 16
	}
	mask := func(n int, second func(i int) int) int {
		for i := range n {
			a.fcmeqZero(second(i), 16+i)
		}
		for i := range n {
			a.bic(first+i, 16+i, 16+i)
		}
		return 16
	}
	extreme := func(beyond func(x, y, to int)) combine {
		return func(n int, second func(i int) int) int {
			const chosen, out = 16, 20
			for i := range n {
				beyond(first+i, second(i), chosen+i)
			}
			for i := range n {
				a.fcmeq(first+i, first+i, out+i)
			}
			for i := range n {
				a.op("VBSL V%d.B16, V%d.B16, V%d.B16", second(i), first+i, chosen+i)
			}
			for i := range n {
				a.op("VBSL V%d.B16, V%d.B16, V%d.B16", first+i, chosen+i, out+i)
			}
			return out
		}
	}
	for _, kind := range []struct {
		name, doc, each, rows string
		combine
	}{
		{"mul", "computes dst[i] = a[i]·b[i]", "computes dst[r·n + i] = a[r·n + i]·b[r]",
			"computes dst[r·n + i] = a[r·n + i]·b[i]", mul},
		{"min", "sets dst[i] to a[i] where a[i] < b[i] or a[i] is a NaN, else to b[i],",
			"sets dst[r·n + i] to a[r·n + i] where that is less than b[r] or a NaN, else to b[r],",
			"sets dst[r·n + i] to a[r·n + i] where that is less than b[i] or a NaN, else to b[i],",
			extreme(func(x, y, to int) { a.fcmgt(y, x, to) })},
		{"max", "sets dst[i] to a[i] where a[i] > b[i] or a[i] is a NaN, else to b[i],",
			"sets dst[r·n + i] to a[r·n + i] where that is greater than b[r] or a NaN, else to b[r],",
			"sets dst[r·n + i] to a[r·n + i] where that is greater than b[i] or a NaN, else to b[i],",
			extreme(func(x, y, to int) { a.fcmgt(x, y, to) })},
		{"mask", "sets dst[i] to a[i] where b[i] is not 0, else to +0,",
			"sets dst[r·n + i] to a[r·n + i] where b[r] is not 0, else to +0,",
			"sets dst[r·n + i] to a[r·n + i] where b[i] is not 0, else to +0,", mask},
	} {
		theirs := func(i int) int { return second + i }
		name := kind.name + "NEON"
		a.function(name, "dst, a, b *float32, vectors int", 0, 32, name+" "+kind.doc, "for i < 4·vectors, vectors > 0.")
		a.arguments("dst", "a", "b", "vectors")
		a.byFours("R3", func(n int) {
			a.load("R1", first, n)
			a.load("R2", second, n)
			a.store("R0", kind.combine(n, theirs), n)
		})

		name = kind.name + "EachNEON"
		its := func(int) int { return one }
		// The last vector of a row overlaps with the one before, which may lie in its place.
		begin := func() {
			a.op("ADD R3<<2, R1, R5")
			a.op("SUB $16, R5")
			a.op("VLD1 (R5), %s", list(first, 1, "S4"))
			a.op("VMOV V%d.B16, V%d.B16", kind.combine(1, its), last)
			a.op("LSR $2, R3, R5")
		}
		end := func() {
			a.op("AND $3, R3, R5")
			a.op("ADD R5<<2, R1")
			a.op("ADD R5<<2, R0")
			a.op("SUB $16, R0, R5")
			a.op("VST1 %s, (R5)", list(last, 1, "S4"))
			a.op("SUBS $1, R4")
			a.op("BNE row")
			a.op("RET")
		}
		a.function(name, "dst, a, b *float32, n, rows int", 0, 40,
			name+" "+kind.each, "for i < n and r < rows, n ≥ 4, rows > 0. dst may be a.")
		a.arguments("dst", "a", "b", "n", "rows")
		a.label("row")
		a.op("VLD1R.P 4(R2), %s", list(one, 1, "S4"))
		begin()
		a.fours("R5", func(n int) {
			a.load("R1", first, n)
			a.store("R0", kind.combine(n, its), n)
		})
		end()

		name = kind.name + "RowsNEON"
		a.function(name, "dst, a, b *float32, n, rows int", 0, 40,
			name+" "+kind.rows, "for i < n and r < rows, n ≥ 4, rows > 0. dst may be a.")
		a.arguments("dst", "a", "b", "n", "rows")
		a.op("ADD R3<<2, R2, R6")
		a.op("SUB $16, R6")
		a.op("VLD1 (R6), %s", list(one, 1, "S4"))
		a.label("row")
		begin()
		a.op("MOVD R2, R6")
		a.fours("R5", func(n int) {
			a.load("R1", first, n)
			a.load("R6", second, n)
			a.store("R0", kind.combine(n, theirs), n)
		})
		end()
	}
}
