package main

// convBits writes the convolutions of bits.
func (a *asm) convBits() {
	for _, sums := range []bool{false, true} {
		for _, v := range []int{4, 2, 1} {
			(&conv{asm: a, kind: bitsKind, sums: sums, pixels: 4, vectors: v}).write()
		}
	}
}

// The bits of 16 outputs meet one byte of the input at a time: EOR, CNT, ADD,
// three instructions for 128 products. The sums of bytes are added to sums of
// 16 bits in memory before they overflow.
var bitsKind = kind{
	name: "convBits", isa: "NEON", outputs: 16,
	piece:   "bytes",
	product: "popcount(x[i] XOR w[i][o])",
	result:  [2]string{"bit o of dst[p] = c[o] ≤ table[class[p]][o], XOR flip", "dst[p][o] = table[class[p]][o] − 2·c[o]"},
	body:    bitsBody,
	store:   bitsStore,
	stack:   func(pixels, vectors int) int { return 32 * pixels * vectors },
}

const (
	// bitsBudget is the number of steps of 8 bits that a sum of 8 bits can take,
	// in whole groups.
	bitsBudget = 255 / 8 / bitsGroup * bitsGroup
	bitsGroup  = 4

	bitsBound  = 22 // thresholds of 16 bits, 8 vectors
	bitsNarrow = 16 // of 32 bits, 4 vectors

	bitsW = 16 // weights, 4 vectors
	bitsX = 20 // bytes of the input, two for every pixel
)

// bitsSteps sums n bytes of every patch, one or an even number. The accumulators
// start with the first one if first is set.
func bitsSteps(c *conv, pixels, n int, first bool) {
	weights := func() { c.op("VLD1.P %d(%s), %s", 16*c.vectors, rW, list(bitsW, c.vectors, "B16")) }
	load := func(p int) {
		if n == 1 {
			c.op("VLD1R.P 1(%s), %s", patch(p), list(bitsX+2*p, 1, "B16"))
			return
		}
		c.op("VLD2R.P 2(%s), %s", patch(p), list(bitsX+2*p, 2, "B16"))
	}
	weights()
	for p := range pixels {
		load(p)
	}
	for i := range n {
		for p := range pixels {
			for v := range c.vectors {
				c.op("VEOR V%d.B16, V%d.B16, V%d.B16", bitsX+2*p+i%2, bitsW+v, temp+v)
			}
			// What comes next is loaded as soon as there is room for it.
			if i%2 == 1 && i+1 < n {
				load(p)
			}
			if p == pixels-1 && i+1 < n {
				weights()
			}
			for v := range c.vectors {
				to := temp + v
				if first && i == 0 {
					to = c.acc(p, v)
				}
				c.op("VCNT V%d.B16, V%d.B16", temp+v, to)
			}
			for v := range c.vectors {
				if !first || i > 0 {
					c.op("VADD V%d.B16, V%d.B16, V%d.B16", temp+v, c.acc(p, v), c.acc(p, v))
				}
			}
		}
	}
}

func bitsBody(c *conv, pixels int, label string) {
	accs := pixels * c.vectors
	c.clearSums(2 * accs)
	c.op("MOVD $%d, %s", bitsBudget, rBudget)
	c.label(label + "row")
	c.op("MOVD %s, %s", rRun, rLeft)
	c.label(label + "chunk")
	c.op("MOVD %s, %s", rBudget, rMain)
	c.nextChunk()
	c.op("CMP $%d, %s", bitsBudget, rMain)
	c.op("BNE %sgo", label)
	c.op("CMP $%d, %s", bitsGroup, rChunk)
	c.op("BLO %szero", label)
	bitsSteps(c, pixels, bitsGroup, true)
	c.op("SUB $%d, %s", bitsGroup, rChunk)
	c.op("B %sgo", label)
	c.label(label + "zero")
	c.zero(0, accs)
	c.label(label + "go")
	c.op("LSR $2, %s, %s", rChunk, rT)
	c.op("CBZ %s, %ssingles", rT, label)
	c.label(label + "group")
	bitsSteps(c, pixels, bitsGroup, false)
	c.op("SUBS $1, %s", rT)
	c.op("BNE %sgroup", label)
	c.label(label + "singles")
	c.op("ANDS $%d, %s", bitsGroup-1, rChunk)
	c.op("BEQ %sfull", label)
	c.label(label + "single")
	bitsSteps(c, pixels, 1, false)
	c.op("SUBS $1, %s", rChunk)
	c.op("BNE %ssingle", label)
	c.label(label + "full")
	c.op("CBNZ %s, %snotfull", rBudget, label)
	for i := range accs {
		bitsWiden(c, i)
		c.op("FSTPQ (F%d, F%d), %d(%s)", bitsX, bitsX+1, 32*i, rWide)
	}
	c.op("MOVD $%d, %s", bitsBudget, rBudget)
	c.label(label + "notfull")
	c.op("CBNZ %s, %schunk", rLeft, label)
	c.advance(pixels, label)
	c.op("CMP $%d, %s", bitsBudget, rBudget)
	c.op("BNE %sstore", label)
	c.zero(0, accs) // they are in memory already
	c.label(label + "store")
}

// bitsWiden adds the bytes of an accumulator to its sums in memory, into bitsX
// and bitsX+1. Where they are all in memory they are only loaded.
func bitsWiden(c *conv, acc int) {
	c.op("FLDPQ %d(%s), (F%d, F%d)", 32*acc, rWide, bitsX, bitsX+1)
	if c.kind.inMemory {
		return
	}
	c.op("VUADDW V%d.B8, V%d.H8, V%d.H8", acc, bitsX, bitsX)
	c.op("VUADDW2 V%d.B16, V%d.H8, V%d.H8", acc, bitsX+1, bitsX+1)
}

func bitsStore(c *conv, p int, same string) {
	if c.sums {
		c.op("MOVD %s, %s", rDst, rT)
		for v := range c.vectors {
			bitsWiden(c, c.acc(p, v))
			for i, half := range []int{bitsX, bitsX + 1} {
				c.op("VUSHLL $1, V%d.H4, V%d.S4", half, 24+2*i)
				c.op("VUSHLL2 $1, V%d.H8, V%d.S4", half, 25+2*i)
			}
			c.op("VLD1.P 64(%s), %s", rTable, list(bitsNarrow, 4, "S4"))
			for i := range 4 {
				c.op("VSUB V%d.S4, V%d.S4, V%d.S4", 24+i, bitsNarrow+i, bitsNarrow+i)
			}
			c.op("VST1.P %s, 64(%s)", list(bitsNarrow, 4, "S4"), rT)
		}
		return
	}
	bitsBounds(c, same)
	for v := range c.vectors {
		acc := c.acc(p, v)
		bitsWiden(c, acc)
		c.cmgeH(bitsBound+2*v, bitsX, bitsX)
		c.cmgeH(bitsBound+2*v+1, bitsX+1, bitsX+1)
		c.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", bitsX+1, bitsX, acc)
	}
	c.pack(c.acc(p, 0), c.vectors)
}

// bitsBounds loads the thresholds of a pixel. Neighbours often share theirs.
// Saturated to 16 bits they mean the same.
func bitsBounds(c *conv, same string) {
	c.op("CMP %s, %s", rTable, rPrev)
	c.op("BEQ %s", same)
	c.op("MOVD %s, %s", rTable, rPrev)
	for v := range c.vectors {
		for i := range 4 {
			c.op("FMOVQ %d(%s), F%d", 16*(4*v+i), rTable, bitsNarrow+i)
		}
		for _, i := range []int{0, 2, 1, 3} {
			c.sqxtn(i%2 == 1, bitsNarrow+i, bitsBound+2*v+i/2)
		}
	}
	c.label(same)
}
