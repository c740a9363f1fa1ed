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
		for i := range out {
			channels := values[i*WordBits : min(i*WordBits+WordBits, n)]
			word := uint64(0) // from the top, without a branch that signs decide
			for _, v := range channels {
				bit := uint64(0)
				if v > 0 {
					bit = 1
				}
				word = word>>1 | bit<<(WordBits-1)
			}
			out[i] = word >> uint(WordBits-len(channels))
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

// Copy copies n bits of src, from bit position from on, to bit position at of
// dst. The other bits of dst stay as they are. dst and src must not overlap.
func Copy(dst []uint64, at int, src []uint64, from, n int) {
	word, shift := at/WordBits, uint(at%WordBits)
	if n > WordBits {
		if shift != 0 { // to the end of the word
			head := WordBits - int(shift)
			dst[word] = dst[word]&(1<<shift-1) | slice(src, from, head)<<shift
			word, shift, from, n = word+1, 0, from+head, n-head
		}
		whole := dst[word : word+n/WordBits]
		in, shift := src[from/WordBits:], uint(from%WordBits)
		if shift == 0 {
			copy(whole, in)
		} else {
			last := in[0]
			for i, next := range in[1 : len(whole)+1] {
				whole[i] = last>>shift | next<<(WordBits-shift)
				last = next
			}
		}
		word, from, n = word+len(whole), from+len(whole)*WordBits, n%WordBits
	}
	if n <= 0 {
		return
	}
	mask := TailMask(n)
	v := slice(src, from, n) & mask
	dst[word] = dst[word]&^(mask<<shift) | v<<shift
	if int(shift)+n > WordBits {
		dst[word+1] = dst[word+1]&^(mask>>(WordBits-shift)) | v>>(WordBits-shift)
	}
}

// slice returns n bits of src from a position on, and any bits above them.
func slice(src []uint64, from, n int) uint64 {
	word, shift := from/WordBits, uint(from%WordBits)
	v := src[word] >> shift
	if int(shift)+n > WordBits {
		v |= src[word+1] << (WordBits - shift)
	}
	return v
}

// Join packs rows of n bits, each of which starts a word of src, without gaps from
// bit position at of dst on. The bits of dst from there to the end of the word in
// which the last row ends must be 0 before.
func Join(dst []uint64, at int, src []uint64, rows, n int) {
	words := Words(n)
	if words > 1 {
		for r := range rows {
			Copy(dst, at+r*n, src[r*words:][:words], 0, n)
		}
		return
	}
	if rows == 0 {
		return
	}
	word, used := at/WordBits, at%WordBits
	acc := dst[word]
	for _, v := range src[:rows] {
		acc |= v << (used & 63)
		if used += n; used >= WordBits {
			dst[word] = acc
			word++
			used -= WordBits
			acc = v >> ((n - used) & 63)
			if used == 0 {
				acc = 0
			}
		}
	}
	if used > 0 {
		dst[word] = acc
	}
}

// Split is the inverse of Join: it cuts total bits of src into rows of n bits, each
// of which starts a word of dst; the last row has what is left. The padding of the
// rows becomes 0.
func Split(dst, src []uint64, total, n int) {
	words := Words(n)
	for at := 0; at < total; at += n {
		row := dst[:words]
		clear(row)
		Copy(row, 0, src, at, min(n, total-at))
		dst = dst[words:]
	}
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
