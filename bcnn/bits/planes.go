package bits

// MaxPlanes makes dst the larger of dst and src, of the 64 numbers whose bits of value
// 2^j are the words j·dstStep and j·srcStep, for j < planes.
func MaxPlanes(dst []uint64, dstStep int, src []uint64, srcStep, planes int) {
	var take, decided uint64 // where src is larger, and where they differ
	for j := planes - 1; j >= 0; j-- {
		a, b := dst[j*dstStep], src[j*srcStep]
		differ := (a ^ b) &^ decided
		take |= differ & b
		decided |= differ
	}
	for j := range planes {
		a, b := dst[j*dstStep], src[j*srcStep]
		dst[j*dstStep] = a ^ (a^b)&take
	}
}

// MaxPlanesOfRow makes a row of dst the maximum over so many words of a row of src, whose
// planes follow each other: words are step apart in dst, and planes plane. The last words
// of src may be too few.
func MaxPlanesOfRow(dst []uint64, step, plane int, src []uint64, window, planes int) {
	n := len(src) / planes
	if planes != 2 {
		for x := range n {
			MaxPlanes(dst[x/window*step:], plane, src[x:], n, planes)
		}
		return
	}
	low, high := src[:n], src[n:][:n]
	for at := 0; len(low) > 0; at += step {
		a0, a1 := dst[at], dst[plane+at]
		take := min(window, len(low))
		for x, b0 := range low[:take] {
			b1 := high[x]
			larger := b1&^a1 | b0&^a0&^(a1^b1)
			a0 ^= (a0 ^ b0) & larger
			a1 |= b1
		}
		dst[at], dst[plane+at] = a0, a1
		low, high = low[take:], high[take:]
	}
}
