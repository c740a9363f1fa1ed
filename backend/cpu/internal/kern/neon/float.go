//go:build arm64 && !purego

package neon

func fma(acc, x, w []float32, stride int) {
	if len(x) == 0 {
		return
	}
	o := 0
	for ; o+64 <= len(acc); o += 64 {
		fma64NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+16 <= len(acc); o += 16 {
		fma16NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o+4 <= len(acc); o += 4 {
		fma4NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
	for ; o < len(acc); o++ {
		fma1NEON(&acc[o], &x[0], len(x), &w[o], 4*stride)
	}
}

func fmaEach(acc, x, w []float32) {
	whole := len(acc) &^ 3
	if whole > 0 {
		fmaEachNEON(&acc[0], &x[0], &w[0], whole/4)
	}
	for i := whole; i < len(acc); i++ {
		fma1NEON(&acc[i], &x[i], 1, &w[i], 0)
	}
}
