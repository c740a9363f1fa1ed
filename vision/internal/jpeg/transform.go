package jpeg

// zigzag has the place in a block, row by row, of each coefficient, T.81, figure 5.
var zigzag = [blockSize]byte{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// transformAll transforms the blocks of a progressive file.
func (d *Decoder) transformAll() error {
	stored := d.stored()
	for i := range d.components {
		c := &d.components[i]
		q := &d.quantisation[c.quantisation]
		for y := range c.blocksY {
			if err := d.source.stop(); err != nil {
				return err
			}
			for x := range c.blocksX {
				if !c.scanned {
					break // as in a sequential file, its pixels stay 0
				}
				var block [blockSize]int32
				for k, v := range c.coefficients[(y*c.blocksX+x)*stored:][:min(stored, d.last+1)] {
					block[zigzag[k]] = int32(v) * q[k]
				}
				d.transform(c, x, y, &block)
			}
		}
	}
	return nil
}

// transform writes the pixels of a block: the inverse DCT of n points in each direction of its
// n lowest frequencies, scaled so that means stay (as in libjpeg's scaled decoding).
func (d *Decoder) transform(c *component, x, y int, block *[blockSize]int32) {
	n := d.side
	pix := c.pix[y*n*c.stride+x*n:]
	switch n {
	case 1:
		pix[0] = level(block[0], 3)
	case 2:
		a, b := block[0]+block[8], block[0]-block[8]
		e, f := block[1]+block[9], block[1]-block[9]
		pix[0], pix[1] = level(a+e, 3), level(a-e, 3)
		pix[c.stride], pix[c.stride+1] = level(b+f, 3), level(b-f, 3)
	case 4:
		var rows [4][4]int32 // columns are transformed first
		for u := range 4 {
			v := points4(block[u]<<kept, block[8+u]<<kept, block[16+u]<<kept, block[24+u]<<kept)
			for i, w := range v {
				rows[i][u] = w
			}
		}
		for i, r := range rows {
			v := points4(r[0], r[1], r[2], r[3])
			row := pix[i*c.stride:][:4]
			for j, w := range v {
				row[j] = level(w, 3+kept)
			}
		}
	case 8:
		whole(pix, c.stride, block)
	}
}

// kept is how many bits behind the point are kept between the two directions.
const kept = 4

// points4 returns a + √2·Σ c·cos((2i+1)·k·π/8) over the three other frequencies k.
func points4(a, b, c, d int32) [4]int32 {
	const (
		bits = 12
		cos1 = 5352 // √2·cos(π/8)·2¹²
		cos3 = 2217 // √2·cos(3π/8)·2¹²
		half = 1 << (bits - 1)
	)
	even, odd := a+c, a-c // √2·cos(π/4) is 1
	outer := int32((int64(b)*cos1 + int64(d)*cos3 + half) >> bits)
	inner := int32((int64(b)*cos3 - int64(d)*cos1 + half) >> bits)
	return [4]int32{even + outer, odd + inner, odd - inner, even - outer}
}

// level makes a byte of a value with some bits behind the point, which is around 0.
func level(v int32, bits uint) byte {
	v = (v+1<<(bits-1))>>bits + 128
	return byte(max(0, min(v, 255)))
}
