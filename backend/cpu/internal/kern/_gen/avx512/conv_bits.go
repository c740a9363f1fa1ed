package main

// convBits writes the convolutions of bits.
func convBits() {
	for _, out := range []result{packed, sums, floats} {
		conv(bitsKind, out, 4, 4)
		conv(bitsKind, out, 5, 3)
		conv(bitsKind, out, 6, 2)
		conv(bitsKind, out, 8, 1)
	}
	for _, p := range [][2]int{{1, 2}, {2, 1}, {2, 2}, {2, 0}} {
		out := planes
		if p[1] == 0 {
			out = planeSums
		}
		convPlanes(bitsKind, out, 4, 4, p[0], p[1])
		convPlanes(bitsKind, out, 4, 3, p[0], p[1])
		convPlanes(bitsKind, out, 6, 2, p[0], p[1])
		convPlanes(bitsKind, out, 6, 1, p[0], p[1])
	}
	for _, out := range []result{pooled, pooledAlike} {
		conv(bitsKind, out, 4, 4)
		conv(bitsKind, out, 4, 3)
		conv(bitsKind, out, 8, 2)
		conv(bitsKind, out, 8, 1)
	}
}
