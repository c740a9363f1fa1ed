package main

// convWords writes the convolutions of bytes and weights of 16 bits.
func convWords() {
	for _, out := range []result{sums, floats} {
		conv(wordsKind, out, 4, 4)
		conv(wordsKind, out, 5, 3)
		conv(wordsKind, out, 6, 2)
		conv(wordsKind, out, 6, 1)
	}
}
