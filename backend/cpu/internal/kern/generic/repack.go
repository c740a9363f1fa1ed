package generic

import "encoding/binary"

// Narrow is that of kern.Set.
func Narrow(dst []uint32, src []uint64) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = uint32(v)
	}
}

// Join is that of kern.Set.
func Join(dst, src []uint32, taps, step, shift int) {
	copy(dst, src)
	for t := 1; t < taps; t++ {
		s, by := src[t*step:][:len(dst)], t*shift
		for i, v := range s {
			dst[i] |= v << (by & 31)
		}
	}
}

// Expand is that of kern.Wide.
func Expand(dst []uint8, src []uint32) {
	dst = dst[:8*len(src)]
	for i, v := range src {
		x := uint64(v)
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
		x <<= 4
		d := (*[8]uint8)(dst[8*i:])
		d[0], d[1], d[2], d[3] = uint8(x), uint8(x>>8), uint8(x>>16), uint8(x>>24)
		d[4], d[5], d[6], d[7] = uint8(x>>32), uint8(x>>40), uint8(x>>48), uint8(x>>56)
	}
}

// ExpandBytes is that of kern.Wide.
func ExpandBytes(dst []uint8, src []uint32) {
	dst = dst[:8*len(src)]
	for i, v := range src {
		for n := range 4 {
			binary.LittleEndian.PutUint16(dst[8*i+2*n:], uint16(v>>(8*n)&255)<<5)
		}
	}
}
