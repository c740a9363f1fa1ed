package main

// convWords writes the convolutions of bytes and weights of 16 bits.
func convWords() {
	conv(wordsKind, sums, 4, 4)
	conv(wordsKind, sums, 5, 3)
	conv(wordsKind, sums, 6, 2)
	conv(wordsKind, sums, 6, 1)
	conv(wordsKind, floats, 4, 4)
}
