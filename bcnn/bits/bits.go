// Package bits is the written specification of the packed layout that every
// backend stores ±1 values in, with the reference routines to pack and unpack.
//
// A packed tensor is NHWC. The C channels of one pixel occupy Words(C)
// consecutive 64-bit words. Channel c is bit c%64 (counted from the least
// significant bit) of word c/64. Bit 1 is the value +1, bit 0 is −1. Bits of
// the last word beyond channel C−1 are padding and always 0, in activations
// and in weights alike, so that they cancel in x XOR w.
//
// In memory the words are little-endian, so the same bytes may be read as
// pairs of 32-bit words: channel c is bit c%32 of 32-bit word c/32.
//
// The dot product of two rows of K true values is K − 2·popcount(x XOR w).
package bits

import "fmt"

// WordBits is the number of channels in a word.
const WordBits = 64

// Words returns the number of 64-bit words that hold n channels.
func Words(n int) int { return (n + WordBits - 1) / WordBits }

// TailMask returns the mask of the channels in use in the last word of a row
// of n channels. It is all ones when n is a positive multiple of 64.
func TailMask(n int) uint64 {
	return ^uint64(0) >> (uint(-n) % WordBits)
}

// Number is an element type that Pack accepts and Unpack produces.
type Number interface {
	~int8 | ~int32 | ~float32
}

// Pack packs rows of n values: bit 1 where the value is greater than 0.
// len(src) must be a multiple of n; dst needs Words(n) words for each row and
// is overwritten, padding included.
func Pack[T Number](dst []uint64, src []T, n int) {
	words := Words(n)
	for row := 0; row*n < len(src); row++ {
		values := src[row*n : row*n+n]
		out := dst[row*words : row*words+words]
		clear(out)
		for c, v := range values {
			if v > 0 {
				out[c/WordBits] |= 1 << (c % WordBits)
			}
		}
	}
}

// Unpack writes rows of n values +1 or −1; the inverse of Pack.
// len(dst) must be a multiple of n.
func Unpack[T Number](dst []T, src []uint64, n int) {
	words := Words(n)
	for row := 0; row*n < len(dst); row++ {
		in := src[row*words : row*words+words]
		values := dst[row*n : row*n+n]
		for c := range values {
			values[c] = T(2*int8(in[c/WordBits]>>(c%WordBits)&1) - 1)
		}
	}
}

// At returns channel c of a packed row as +1 or −1.
func At(row []uint64, c int) int {
	return 2*int(row[c/WordBits]>>(c%WordBits)&1) - 1
}

// Append copies n bits of src, which starts at bit 0 and has zero padding, to
// bit position at of dst. The bits of dst from position at on must be 0.
func Append(dst []uint64, at int, src []uint64, n int) {
	word, shift := at/WordBits, uint(at%WordBits)
	for i := range Words(n) {
		dst[word+i] |= src[i] << shift
		// The bits that do not fit go to the next word, which need not exist
		// when nothing is left over.
		if shift != 0 {
			if high := src[i] >> (WordBits - shift); high != 0 {
				dst[word+i+1] |= high
			}
		}
	}
}

// Slice copies n bits of src, from bit position at on, to the start of dst and
// clears the padding of the last word.
func Slice(dst, src []uint64, at, n int) {
	if n == 0 {
		return
	}
	words := Words(n)
	word, shift := at/WordBits, uint(at%WordBits)
	for i := range words {
		v := src[word+i] >> shift
		if shift != 0 && word+i+1 < len(src) {
			v |= src[word+i+1] << (WordBits - shift)
		}
		dst[i] = v
	}
	dst[words-1] &= TailMask(n)
}

// CheckPadding returns an error that names the first row of n channels whose
// padding bits are not 0.
func CheckPadding(rows []uint64, n int) error {
	words := Words(n)
	if words == 0 || n%WordBits == 0 {
		return nil
	}
	outside := ^TailMask(n)
	for i := words - 1; i < len(rows); i += words {
		if rows[i]&outside != 0 {
			return fmt.Errorf("row %d: padding bits beyond channel %d are not 0", i/words, n-1)
		}
	}
	return nil
}
