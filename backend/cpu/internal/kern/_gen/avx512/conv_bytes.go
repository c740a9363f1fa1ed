package main

// convBytes writes the convolutions of bytes. Pooled pixels are alike.
func convBytes() {
	for _, out := range []result{packed, sums, floats, levels} {
		conv(bytesKind, out, 4, 4)
		conv(bytesKind, out, 5, 3)
		conv(bytesKind, out, 6, 2)
		conv(bytesKind, out, 8, 1)
	}
	conv(bytesKind, pooled, 4, 4)
	conv(bytesKind, pooled, 4, 3)
	conv(bytesKind, pooled, 8, 2)
	conv(bytesKind, pooled, 8, 1)
}
