package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

// convBytesDot writes the convolutions of bytes with their dot product.
func (a *asm) convBytesDot() {
	for _, sums := range []bool{false, true} {
		(&conv{asm: a, kind: dotKind, sums: sums, pixels: 1, vectors: 16}).write()
		(&conv{asm: a, kind: dotKind, sums: sums, pixels: 2, vectors: 8}).write()
		(&conv{asm: a, kind: dotKind, sums: sums, pixels: 4, vectors: 4}).write()
	}
}

// Four bytes of the input meet four bytes of 4 outputs at a time, which are 2
// where the weight is +1 and else 0: one UDOT for 16 products. With S the sum
// of that and X the sum of all bytes, Σ x·w = S − X.
var dotKind = kind{
	name: "convBytes", isa: "NEONDot", outputs: 4,
	piece:   "fours of bytes",
	product: "Σ of 4 bytes of x[i]·w[i][o]",
	result:  bytesKind.result,
	body:    dotBody,
	store:   dotStore,
	stack:   func(int, int) int { return 0 },
}

const (
	dotTotal = 16 // X, one vector for every pixel
	dotW     = 20 // weights, 4 vectors
	dotX     = 24 // fours of bytes of the input, one for every pixel
	dotOnes  = 30
	dotTail  = 31
)

// dotStep sums one four of every patch. Of the last four of a row only the
// bytes of the job's tail count.
func dotStep(c *conv, pixels int, last bool) {
	for p := range pixels {
		c.op("FMOVS.P 4(%s), F%d", patch(p), dotX+p)
	}
	if last {
		for p := range pixels {
			c.op("VAND V%d.B16, V%d.B16, V%d.B16", dotTail, dotX+p, dotX+p)
		}
	}
	for v := 0; v < c.vectors; v += 4 {
		c.op("VLD1.P 64(%s), %s", rW, list(dotW, 4, "B16"))
		for p := range pixels {
			for i := range 4 {
				c.udot(dotW+i, dotX+p, c.acc(p, v+i))
			}
			if v == 0 {
				c.udot(dotOnes, dotX+p, dotTotal+p)
			}
		}
	}
}

func dotBody(c *conv, pixels int, label string) {
	c.zero(0, pixels*c.vectors)
	c.zero(dotTotal, dotTotal+pixels)
	c.op("VMOVI $1, V%d.B16", dotOnes)
	c.op("MOVD %d(%s), %s", gen.JobTail, rJob, rT)
	c.op("VDUP %s, V%d.S4", rT, dotTail)
	c.op("LSR $2, %s", rRun)
	c.label(label + "row")
	c.op("SUBS $1, %s, %s", rRun, rLeft)
	c.op("BEQ %slast", label)
	c.label(label + "four")
	dotStep(c, pixels, false)
	c.op("SUBS $1, %s", rLeft)
	c.op("BNE %sfour", label)
	c.label(label + "last")
	dotStep(c, pixels, true)
	c.advance(pixels, label)
}

func dotStore(c *conv, p int, _ string) {
	const bound = 20
	if c.sums {
		c.op("MOVD %s, %s", rDst, rT)
	}
	for v := 0; v < c.vectors; v += 4 {
		x := c.acc(p, v)
		c.op("VLD1.P 64(%s), %s", rTable, list(bound, 4, "S4"))
		for i := range 4 {
			c.op("VSUB V%d.S4, V%d.S4, V%d.S4", dotTotal+p, x+i, x+i)
			if c.sums {
				c.op("VADD V%d.S4, V%d.S4, V%d.S4", bound+i, x+i, x+i)
			} else {
				c.cmgeS(x+i, bound+i, x+i)
			}
		}
		if c.sums {
			c.op("VST1.P %s, 64(%s)", list(x, 4, "S4"), rT)
			continue
		}
		c.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", x+1, x, x)
		c.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", x+3, x+2, x+2)
		c.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", x+2, x, c.acc(p, 0)+v/4)
	}
	if !c.sums {
		c.pack(c.acc(p, 0), c.vectors/4)
	}
}
