package main

// convBytes writes the convolutions of bytes. Pooled pixels are alike.
func convBytes() {
	for _, out := range []result{packed, sums} {
		conv(bytesKind, out, 4, 4)
		conv(bytesKind, out, 5, 3)
		conv(bytesKind, out, 6, 2)
		conv(bytesKind, out, 6, 1)
	}
	conv(bytesKind, floats, 4, 4)
	conv(bytesKind, levels, 4, 4)
	conv(bytesKind, pooled, 4, 4)
	conv(bytesKind, pooled, 4, 3)
	conv(bytesKind, pooled, 8, 2)
	conv(bytesKind, pooled, 8, 1)
}
