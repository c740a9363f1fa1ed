package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

// convBytes writes the convolutions of bytes.
func (a *asm) convBytes() {
	for _, sums := range []bool{false, true} {
		(&conv{asm: a, kind: bytesKind, sums: sums, pixels: 2, vectors: 8}).write()
		(&conv{asm: a, kind: bytesKind, sums: sums, pixels: 4, vectors: 4}).write()
		(&conv{asm: a, kind: bytesKind, sums: sums, pixels: 4, vectors: 2}).write()
	}
}

// Two bytes of the input meet two masks of 8 outputs at a time, which keep
// those of weight +1: AND and UADALP for 16 products. With S the sum of what
// they keep and X the sum of all bytes, Σ x·w = 2·S − X.
var bytesKind = kind{
	name: "convBytes", isa: "NEON", outputs: 8,
	piece:   "pairs of bytes",
	product: "Σ of 2 bytes of x[i]·w[i][o]",
	result:  [2]string{"bit o of dst[p] = c[o] ≥ table[class[p]][o], XOR flip", "dst[p][o] = table[class[p]][o] + c[o]"},
	body:    bytesBody,
	store:   bytesStore,
	// A vector of X for every pixel comes after the sums, rounded up to pairs.
	stack: func(pixels, vectors int) int { return 32*pixels*vectors + 16*(pixels+pixels%2) },
}

const (
	// bytesBudget is the number of pairs that a sum of 16 bits can take.
	bytesBudget = 65535 / (2 * 255)
	bytesGroup  = 2

	bytesTotal = 16 // X, one vector for every pixel
	bytesW     = 20 // weights, 4 vectors
	bytesX     = 24 // pairs of bytes of the input, one for every pixel
)

// bytesStep sums one pair of every patch. Of the last pair of a row only the
// bytes of the job's tail count.
func bytesStep(c *conv, pixels int, last bool) {
	for p := range pixels {
		c.op("VLD1R.P 2(%s), %s", patch(p), list(bytesX+p, 1, "H8"))
	}
	if last {
		c.op("MOVD %d(%s), %s", gen.JobTail, rJob, rT)
		c.op("VDUP %s, V%d.H8", rT, temp)
		for p := range pixels {
			c.op("VAND V%d.B16, V%d.B16, V%d.B16", temp, bytesX+p, bytesX+p)
		}
	}
	const most = 4
	for first := 0; first < c.vectors; first += most {
		n := min(c.vectors-first, most)
		c.op("VLD1.P %d(%s), %s", 16*n, rW, list(bytesW, n, "B16"))
		for p := range pixels {
			for v := range n {
				c.op("VAND V%d.B16, V%d.B16, V%d.B16", bytesX+p, bytesW+v, temp+v)
			}
			if first == 0 {
				c.uadalp(bytesX+p, bytesTotal+p)
			}
			for v := range n {
				c.uadalp(temp+v, c.acc(p, first+v))
			}
		}
	}
}

// bytesTotals is where the totals of the pixels are in memory.
func (c *conv) bytesTotals(p int) int { return 32*c.pixels*c.vectors + 16*p }

func bytesBody(c *conv, pixels int, label string) {
	accs := pixels * c.vectors
	c.zero(0, accs)
	c.zero(bytesTotal, bytesTotal+pixels)
	c.op("LSR $1, %s", rRun)
	// Sums of short patches stay in the accumulators.
	c.op("MUL %s, %s, %s", rRun, rRows, rShort)
	c.op("CMP $%d, %s", bytesBudget, rShort)
	c.op("CSET LO, %s", rShort)
	c.op("CBNZ %s, %sshort", rShort, label)
	c.clearSums(2 * accs)
	for p := range pixels {
		c.op("FMOVQ F%d, %d(%s)", temp, c.bytesTotals(p), rWide)
	}
	c.label(label + "short")
	c.op("MOVD $%d, %s", bytesBudget, rBudget)
	c.label(label + "row")
	c.op("MOVD %s, %s", rRun, rLeft)
	c.label(label + "chunk")
	c.nextChunk()
	c.op("CBNZ %s, %smain", rLeft, label)
	c.op("SUB $1, %s", rChunk) // the last pair
	c.label(label + "main")
	c.op("LSR $1, %s, %s", rChunk, rT)
	c.op("CBZ %s, %ssingle", rT, label)
	c.label(label + "group")
	for range bytesGroup {
		bytesStep(c, pixels, false)
	}
	c.op("SUBS $1, %s", rT)
	c.op("BNE %sgroup", label)
	c.label(label + "single")
	c.op("TBZ $0, %s, %slast", rChunk, label)
	bytesStep(c, pixels, false)
	c.label(label + "last")
	c.op("CBNZ %s, %sfull", rLeft, label)
	bytesStep(c, pixels, true)
	c.label(label + "full")
	c.op("CBNZ %s, %snotfull", rBudget, label)
	for i := range accs {
		bytesWiden(c, i)
		c.op("FSTPQ (F%d, F%d), %d(%s)", bytesX, bytesX+1, 32*i, rWide)
	}
	for p := range pixels {
		c.bytesTotal(p)
		c.op("FMOVQ F%d, %d(%s)", bytesX, c.bytesTotals(p), rWide)
	}
	c.zero(0, accs)
	c.zero(bytesTotal, bytesTotal+pixels)
	c.op("MOVD $%d, %s", bytesBudget, rBudget)
	c.label(label + "notfull")
	c.op("CBNZ %s, %schunk", rLeft, label)
	c.advance(pixels, label)
}

// bytesWiden adds an accumulator to its sums in memory, into bytesX and
// bytesX+1.
func bytesWiden(c *conv, acc int) {
	c.op("FLDPQ %d(%s), (F%d, F%d)", 32*acc, rWide, bytesX, bytesX+1)
	c.op("VUADDW V%d.H4, V%d.S4, V%d.S4", acc, bytesX, bytesX)
	c.op("VUADDW2 V%d.H8, V%d.S4, V%d.S4", acc, bytesX+1, bytesX+1)
}

// bytesTotal adds the total of a pixel, which is in all lanes, to what is in
// memory, into bytesX.
func (c *conv) bytesTotal(p int) {
	c.op("FMOVQ %d(%s), F%d", c.bytesTotals(p), rWide, bytesX)
	c.op("VUADDW V%d.H4, V%d.S4, V%d.S4", bytesTotal+p, bytesX, bytesX)
}

func bytesStore(c *conv, p int, label string) {
	c.op("CBZ %s, %slong", rShort, label)
	bytesResults(c, p, true)
	c.op("B %sstored", label)
	c.label(label + "long")
	bytesResults(c, p, false)
	c.label(label + "stored")
}

// bytesResults writes the results of a pixel, whose sums are in the accumulators
// alone if it is short.
func bytesResults(c *conv, p int, short bool) {
	const total, bound, high = 20, 28, 26
	if short {
		c.op("VUXTL V%d.H4, V%d.S4", bytesTotal+p, total)
	} else {
		c.bytesTotal(p)
		c.op("VMOV V%d.B16, V%d.B16", bytesX, total)
	}
	if c.sums {
		c.op("MOVD %s, %s", rDst, rT)
	}
	for v := range c.vectors {
		acc := c.acc(p, v)
		if short {
			c.op("VUSHLL $1, V%d.H4, V%d.S4", acc, bytesX)
			c.op("VUSHLL2 $1, V%d.H8, V%d.S4", acc, bytesX+1)
		} else {
			bytesWiden(c, acc)
		}
		c.op("VLD1.P 32(%s), %s", rTable, list(bound, 2, "S4"))
		for i := range 2 {
			x := bytesX + i
			if !short {
				c.op("VSHL $1, V%d.S4, V%d.S4", x, x)
			}
			c.op("VSUB V%d.S4, V%d.S4, V%d.S4", total, x, x)
			if c.sums {
				c.op("VADD V%d.S4, V%d.S4, V%d.S4", bound+i, x, x)
			} else {
				c.cmgeS(x, bound+i, x)
			}
		}
		if c.sums {
			c.op("VST1.P %s, 32(%s)", list(bytesX, 2, "S4"), rT)
			continue
		}
		// Two vectors make 16 bytes, in the register of the first.
		first := c.acc(p, v/2*2)
		to := first
		if v%2 == 1 {
			to = high
		}
		c.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", bytesX+1, bytesX, to)
		if v%2 == 1 {
			c.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", high, first, c.acc(p, 0)+v/2)
		}
	}
	if !c.sums {
		c.pack(c.acc(p, 0), c.vectors/2)
	}
}
