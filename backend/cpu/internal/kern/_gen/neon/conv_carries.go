package main

// convCarries writes the convolutions of bits that add two pieces of a patch before
// they count.
func (a *asm) convCarries() {
	for _, sums := range []bool{false, true} {
		for _, v := range []int{4, 2, 1} {
			(&conv{asm: a, kind: carriesKind, sums: sums, pixels: 2, vectors: v}).write()
		}
	}
}

// With d[i] = x[i] XOR w[i] for pieces of 128 bits, and P[i] the XOR of d[0] to d[i],
// which is that of the x up to there and of the w up to there, the bits of d[i+1] and
// d[i+2] and what P[i] has are a number of two bits: P[i+2] and a carry, which is
//
//	P[i+1] ? NOT P[i+2] : P[i]
//
// since P[i] and d[i+1] are alike where P[i+1] is 0, and else d[i+2] decides. So
//
//	Σ of all bits of d = bits of the last P + 2·Σ of all bits of the carries
//
// and two pieces take five instructions, not six: EOR, EOR, BIT, CNT, and one that
// adds. The parities of the weights lie in memory, those of patches are computed first.
// Every other P[i] is kept inverted, which spares the NOT and inverts every other carry:
// an inverted one counts 128 less its bits.
var carriesKind = kind{
	name: "convCarries", isa: "NEON", outputs: 16,
	piece:   "bytes",
	product: "popcount(x[i] XOR w[i][o])",
	result:  bitsKind.result,
	body:    carriesBody,
	store:   piecesMasks,
	pack:    piecesPack,
	stack: func(pixels, vectors int) int {
		return carriesSums(pixels, vectors) + 16 + pixels*carriesPatch
	},
	inMemory: true,
	pairs:    true,
}

// carriesSums is the size of the sums of 16 bits.
func carriesSums(pixels, vectors int) int { return 32 * pixels * vectors }

const (
	// carriesMost is the number of pieces of the longest patch.
	carriesMost = 73
	// carriesPatch is the size of the parities of a patch, and of what is written behind.
	carriesPatch = 16 * (carriesMost + 2)

	// Two registers more than P of each output and each patch: in a step for two
	// pieces the next P takes the registers that the one before has left.
	carriesP    = 0
	carriesFree = 2
	carriesSum  = 18 // lanes of 16 bits: two patches of four outputs
	carriesEven = 20 // sums of bytes of the carries that are not inverted
	carriesX    = 22 // two pieces of two patches
	carriesW    = 26 // two pieces of an output
	carriesT    = 28 // four

	rX      = "R4" // parities of the first patch, those of the second are in R3
	firstX  = 4
	weights = 5
	rTo     = "R8" // where parities are written
	rTo2    = "R22"
	rSteps  = "R15" // of two pieces
	rOut2   = "R6"  // sums of the second patch
)

// bit sets d to n where m has ones.
func (a *asm) bit(n, m, d int) {
	a.word(0x6ea01c00|uint32(m<<16|n<<5|d), "bit v%d.16b, v%d.16b, v%d.16b", d, n, m)
}

// orn sets d to n OR NOT m.
func (a *asm) orn(n, m, d int) {
	a.word(0x4ee01c00|uint32(m<<16|n<<5|d), "orn v%d.16b, v%d.16b, v%d.16b", d, n, m)
}

// sadalp adds neighbouring signed bytes of n to the 16-bit lanes of d.
func (a *asm) sadalp(n, d int) {
	a.word(0x4e206800|uint32(n<<5|d), "sadalp v%d.8h, v%d.16b", d, n)
}

// ldur loads the vector near where register base points to. Some cores compute the
// address of LDR apart.
func (a *asm) ldur(base, offset, d int) {
	a.word(0x3cc00000|uint32(offset<<12|base<<5|d), "ldur q%d, [x%d, #%d]", d, base, offset)
}

func (c *conv) eor(a, b, to int) { c.op("VEOR V%d.B16, V%d.B16, V%d.B16", b, a, to) }

func (c *conv) cnt(v int) { c.op("VCNT V%d.B16, V%d.B16", v, v) }

func carriesBody(c *conv, _ int, label string) {
	from := carriesSums(c.pixels, c.vectors)
	c.op("MUL %s, %s, %s", rRun, rRows, rT)
	c.op("ADD $15, %s", rT)
	c.op("LSR $4, %s, %s", rT, rTotal)
	carriesParities(c, from+16, label)
	// How many carries are inverted, times the bits of a piece.
	c.op("LSR $1, %s, %s", rTotal, rSteps)
	c.op("ADD $1, %s, %s", rSteps, rLeft)
	c.op("AND $~1, %s", rLeft)
	c.op("LSL $6, %s, %s", rLeft, rT)
	c.op("VDUP %s, V%d.H8", rT, carriesT)
	c.op("FMOVQ F%d, %d(%s)", carriesT, from, rWide)
	c.op("MOVD $%d, %s", c.vectors*16/piecesGroup, rGroups)
	c.op("MOVD %s, %s", rWide, rOut)
	c.op("ADD $%d, %s, %s", c.piecesRow(1), rWide, rOut2)
	c.label(label + "group")
	for p := range c.pixels {
		c.op("ADD $%d, %s, R%d", from+16+p*carriesPatch, rWide, firstX-p)
	}
	c.op("MOVD %s, %s", rLeft, rCount)
	for i := range 2 {
		c.op("FMOVQ %d(%s), F%d", from, rWide, carriesSum+i)
	}
	// Steps end with an odd one, whose P is not inverted, so an odd number of them begins
	// with one.
	c.op("TBNZ $0, %s, %sodd", rSteps, label)
	c.op("TBZ $0, %s, %sevenFirst", rTotal, label)
	carriesFirst(c, carriesFree)
	c.label(label + "even")
	carriesStep(c, true, false)
	c.op("B %ssecond", label)
	c.label(label + "evenFirst")
	carriesStep(c, true, true)
	c.op("B %ssecond", label)
	c.label(label + "odd")
	c.zero(carriesEven, carriesEven+2)
	c.op("TBZ $0, %s, %soddFirst", rTotal, label)
	carriesFirst(c, 0)
	c.label(label + "second")
	carriesStep(c, false, false)
	c.op("SUBS $2, %s", rCount)
	c.op("BNE %seven", label)
	c.op("B %send", label)
	c.label(label + "oddFirst")
	carriesStep(c, false, true)
	c.op("SUBS $2, %s", rCount)
	c.op("BNE %seven", label)
	c.label(label + "end")
	carriesEnd(c)
	c.op("SUBS $1, %s", rGroups)
	c.op("BNE %sgroup", label)
}

// carriesParities computes the parities of both patches, at from.
func carriesParities(c *conv, from int, label string) {
	const carry, x = 0, 2
	both := func(f func(p int)) {
		for p := range c.pixels {
			f(p)
		}
	}
	to := []string{rTo, rTo2}
	start := func() {
		both(func(p int) { c.op("ADD $%d, %s, %s", from+p*carriesPatch, rWide, to[p]) })
	}
	c.zero(carry, carry+c.pixels)
	start()
	c.op("TST $15, %s", rRun)
	c.op("BEQ %swhole", label)

	// Runs that end in a part of a piece are copied, one behind the other.
	c.label(label + "row")
	c.op("MOVD %s, %s", rRun, rLeft)
	c.label(label + "copy")
	copied := func(size int, op string, register func(p int) string) {
		both(func(p int) { c.op("%s.P %d(%s), %s", op, size, patch(p), register(p)) })
		both(func(p int) { c.op("%s.P %s, %d(%s)", op, register(p), size, to[p]) })
	}
	vector := func(p int) string { return []string{"F2", "F3"}[p] }
	scalar := func(p int) string { return []string{rT, rCount}[p] }
	c.op("SUBS $16, %s", rLeft)
	c.op("BLO %seight", label)
	copied(16, "FMOVQ", vector)
	c.op("B %scopy", label)
	c.label(label + "eight")
	c.op("TBZ $3, %s, %sfour", rLeft, label)
	copied(8, "MOVD", scalar)
	c.label(label + "four")
	c.op("TBZ $2, %s, %scopied", rLeft, label)
	copied(4, "MOVWU", scalar)
	c.label(label + "copied")
	both(func(p int) { c.op("ADD %s, %s", rSkip, patch(p)) })
	c.op("SUBS $1, %s", rRows)
	c.op("BNE %srow", label)
	both(func(p int) { c.op("FMOVQ F%d, (%s)", carry, to[p]) })
	start()
	both(func(p int) { c.op("MOVD %s, %s", to[p], patch(p)) })
	c.op("LSL $4, %s, %s", rTotal, rRun)
	c.op("MOVD $1, %s", rRows)

	c.label(label + "whole")
	c.op("MOVD %s, %s", rRun, rLeft)
	c.label(label + "parity")
	both(func(p int) { c.op("VLD1.P 16(%s), [V%d.B16]", patch(p), x+p) })
	both(func(p int) { c.eor(carry+p, x+p, carry+p) })
	both(func(p int) { c.op("VST1.P [V%d.B16], 16(%s)", carry+p, to[p]) })
	c.op("SUBS $16, %s", rLeft)
	c.op("BNE %sparity", label)
	both(func(p int) { c.op("ADD %s, %s", rSkip, patch(p)) })
	c.op("SUBS $1, %s", rRows)
	c.op("BNE %swhole", label)
}

func carriesAt(first, o, p int) int { return carriesP + first + 2*o + p }

// carriesAdvance goes on by so many pieces.
func (c *conv) carriesAdvance(pieces int) {
	for p := range c.pixels {
		c.op("ADD $%d, R%d", 16*pieces, firstX-p)
	}
}

// carriesFirst computes the first P, in registers from that on.
func carriesFirst(c *conv, from int) {
	for p := range c.pixels {
		c.ldur(firstX-p, 0, carriesX+p)
	}
	c.carriesAdvance(1)
	for o := range piecesGroup {
		w := carriesW + o%2
		c.ldur(weights, 16*o, w)
		for p := range c.pixels {
			c.eor(w, carriesX+p, carriesAt(from, o, p))
		}
	}
	c.op("ADD $%d, %s", 16*piecesGroup, rW)
}

// carriesStep adds two pieces. The carries of an even step are not inverted, their sums
// wait for those of the next one, which are subtracted.
//
// The first step of an even number of pieces has nothing before it.
func carriesStep(c *conv, even, first bool) {
	const (
		t   = carriesT
		one = carriesT + 2 // of one output, the other patch beside it
		two = carriesT + 3 // of two outputs
	)
	from, to := carriesFree, 0
	if !even {
		from, to = to, from
	}
	for i := range 2 {
		for p := range c.pixels {
			c.ldur(firstX-p, 16*i, carriesX+2*i+p)
		}
	}
	c.carriesAdvance(2)
	// Neighbours stand in the order of the outputs, whatever is computed first.
	join := func(a, b, to int) {
		if even {
			c.addp(a, b, to)
		} else {
			c.addp(b, a, to)
		}
	}
	for i := range piecesGroup {
		o := i
		if !even {
			o = piecesGroup - 1 - i
		}
		for k := range 2 {
			c.ldur(weights, 16*(piecesGroup*k+o), carriesW+k)
		}
		for p := range c.pixels {
			c.eor(carriesW, carriesX+p, t+p)
		}
		for p := range c.pixels {
			c.eor(carriesW+1, carriesX+2+p, carriesAt(to, o, p))
		}
		for p := range c.pixels {
			carry, next := carriesAt(from, o, p), carriesAt(to, o, p)
			switch {
			case !first:
				c.bit(next, t+p, carry)
			case even:
				c.op("VAND V%d.B16, V%d.B16, V%d.B16", next, t+p, carry)
			default:
				c.orn(next, t+p, carry)
			}
		}
		for p := range c.pixels {
			c.op("VCNT V%d.B16, V%d.B16", carriesAt(from, o, p), t+p)
		}
		switch i % 4 {
		case 0:
			c.addp(t, t+1, one)
		case 1:
			c.addp(t, t+1, t)
			join(one, t, two)
		case 2:
			c.addp(t, t+1, one)
		case 3:
			c.addp(t, t+1, t)
			join(one, t, t)
			half := o / 4
			if even {
				join(two, t, carriesEven+half)
				break
			}
			join(two, t, t)
			c.op("VSUB V%d.B16, V%d.B16, V%d.B16", t, carriesEven+half, t)
			c.sadalp(t, carriesSum+half)
		}
	}
	c.op("ADD $%d, %s", 2*16*piecesGroup, rW)
}

// carriesEnd adds the bits of the last P and stores the sums.
func carriesEnd(c *conv) {
	for i := range 2 * piecesGroup {
		c.cnt(carriesP + carriesFree + i)
	}
	for n := piecesGroup / 2; n > 0; n /= 2 {
		for p := range c.pixels {
			for i := range n {
				c.addp(carriesAt(carriesFree, 2*i, p), carriesAt(carriesFree, 2*i+1, p), carriesAt(carriesFree, i, p))
			}
		}
	}
	for p := range c.pixels {
		c.op("VUZP%d V%d.H8, V%d.H8, V%d.H8", 1+p, carriesSum+1, carriesSum, carriesT+p)
	}
	for p := range c.pixels {
		c.op("VSHL $1, V%d.H8, V%d.H8", carriesT+p, carriesT+p)
	}
	for p := range c.pixels {
		c.uadalp(carriesAt(carriesFree, 0, p), carriesT+p)
	}
	for p := range c.pixels {
		c.op("VST1.P [V%d.B16], 16(%s)", carriesT+p, []string{rOut, rOut2}[p])
	}
}
