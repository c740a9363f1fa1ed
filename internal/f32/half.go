package f32

import "math"

// FromHalf returns the number of an IEEE binary16. Infinities and NaN stay such, with the sign and the
// payload that they have.
func FromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // subnormal: fraction·2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*(1.0/(1<<24))))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// ToHalf returns the IEEE binary16 of a finite number that is one: FromHalf of it is v. Of others
// it is another number.
func ToHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign, exponent, fraction := uint16(b>>16)&0x8000, int(b>>23&0xff)-127, b&0x7fffff
	switch {
	case exponent < -24 || exponent > 15:
		return sign // 0, and what does not fit
	case exponent < -14: // subnormal
		return sign | uint16((fraction|0x800000)>>(-exponent-1))
	}
	return sign | uint16(exponent+15)<<10 | uint16(fraction>>13)
}
