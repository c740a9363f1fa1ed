package jpeg

// The inverse DCT of 8 points is that of Loeffler, Ligtenberg and Moschytz (ICASSP 1989), in whole
// numbers of 32 bits, which wrap. Where it drops bits is as in image/jpeg of Go 1.26: so the inputs
// that networks have got of small photos stay the same bits.

// Cosines and sines of multiples of π/16 and 1/√2, ·2¹² if no name says other bits. Those of 6π/16
// are divided by √2.
const (
	cos1, sin1       = 4017, 799
	cos3, sin3       = 3406, 2276
	cos6, sin6       = 1108, 2676
	cos6b18, sin6b18 = 70936, 171254
	halfB8, halfB14  = 181, 11585
)

// whole writes the 64 pixels of a block, which it overwrites.
func whole(pix []byte, stride int, block *[blockSize]int32) {
	const meanBits = 17 // of a row, behind the point
	for y := range 8 {
		r := block[8*y : 8*y+8 : 8*y+8]
		if r[1]|r[2]|r[3]|r[4]|r[5]|r[6]|r[7] == 0 {
			mean := r[0] << meanBits
			r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7] = mean, mean, mean, mean, mean, mean, mean, mean
			continue
		}
		sum, diff := (r[0]+r[4])<<meanBits, (r[0]-r[4])<<meanBits
		inner, outer := r[2]*cos6b18-r[6]*sin6b18, r[2]*sin6b18+r[6]*cos6b18
		e0, e1, e2, e3 := sum+outer, diff+inner, diff-inner, sum-outer

		a, b := (r[1]+r[7])<<7, (r[1]-r[7])<<7
		c, d := r[3]*halfB8, r[5]*halfB8
		a, c = (a+c)>>2, (a-c)>>2
		b, d = (b+d)>>2, (b-d)>>2
		o0, o3 := b*sin3+a*cos3, b*cos3-a*sin3
		o1, o2 := c*sin1+d*cos1, c*cos1-d*sin1

		r[0], r[1], r[2], r[3] = e0+o0, e1+o1, e2+o2, e3+o3
		r[4], r[5], r[6], r[7] = e3-o3, e2-o2, e1-o1, e0-o0
	}
	var rows [8]*[8]byte
	for y := range rows {
		rows[y] = (*[8]byte)(pix[y*stride:])
	}
	for x := range 8 {
		v := block[x] + 1<<19 // to round
		sum, diff := (v+block[32+x])>>2, (v-block[32+x])>>2
		v2, v6 := block[16+x]>>13, block[48+x]>>13
		inner, outer := v2*cos6-v6*sin6, v2*sin6+v6*cos6
		e0, e1, e2, e3 := sum+outer, diff+inner, diff-inner, sum-outer

		a, b := block[8+x]+block[56+x], block[8+x]-block[56+x]
		c, d := (block[24+x]>>13)*halfB14, (block[40+x]>>13)*halfB14
		a, c = (a+c)>>14, (a-c)>>14
		b, d = (b+d)>>14, (b-d)>>14
		o0, o3 := b*sin3+a*cos3, b*cos3-a*sin3
		o1, o2 := c*sin1+d*cos1, c*cos1-d*sin1

		rows[0][x], rows[7][x] = pixel(e0+o0), pixel(e0-o0)
		rows[1][x], rows[6][x] = pixel(e1+o1), pixel(e1-o1)
		rows[2][x], rows[5][x] = pixel(e2+o2), pixel(e2-o2)
		rows[3][x], rows[4][x] = pixel(e3+o3), pixel(e3-o3)
	}
}

// pixel makes a byte of a value around 0 with 18 bits behind the point.
func pixel(v int32) byte {
	v = v>>18 + 128
	if uint32(v) > 255 {
		return ^byte(v >> 31) // 0 below, 255 above
	}
	return byte(v)
}
