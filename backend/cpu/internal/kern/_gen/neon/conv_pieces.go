package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

// convPieces writes the convolutions of bits that read 128 bits of a patch at a
// time.
func (a *asm) convPieces() {
	for _, sums := range []bool{false, true} {
		for _, v := range []int{4, 2, 1} {
			(&conv{asm: a, kind: piecesKind, sums: sums, pixels: 4, vectors: v}).write()
		}
	}
}

// 128 bits of a patch meet those of eight outputs: EOR, CNT, a tree of ADDP and
// UADALP, 24 instructions for 1024 products, as many as those of bitsKind, but
// nothing is broadcast, and sums have 16 bits from the start. They go to memory
// once for a patch, from where bitsStore takes them.
var piecesKind = kind{
	name: "convPieces", isa: "NEON", outputs: 16,
	piece:    "bytes",
	product:  "popcount(x[i] XOR w[i][o])",
	result:   bitsKind.result,
	body:     piecesBody,
	store:    piecesMasks,
	pack:     piecesPack,
	stack:    bitsKind.stack,
	inMemory: true,
}

const (
	piecesGroup = 8 // outputs

	piecesW   = 0  // weights, a vector for every output of a group
	piecesX   = 8  // 128 bits of every patch
	piecesSum = 24 // of a patch, a lane of 16 bits for every output of a group

	rPieces  = "R8"  // of a row
	rTotal   = "R9"  // pieces of a patch but the first and the last
	rJump    = "R14" // to the next piece in the next row
	rIndex   = "R15" // of the piece, from the begin of the patch
	index    = 15
	rSixteen = "R22" // 16, to the next piece of the row
	rCount   = "R23" // pieces left of rTotal
	rGroups  = "R24" // left
	rOut     = "R25"
)

// counts are the two sets of registers for the counts of a patch, which patches
// take turns at.
var counts = [2][8]int{{12, 13, 14, 15, 16, 17, 18, 19}, {20, 21, 22, 23, 28, 29, 30, 31}}

// piecesPart is a piece's place in a patch.
type piecesPart int

const (
	firstPiece piecesPart = iota
	middlePiece
	lastPiece
)

func (c *conv) piecesRow(p int) int { return 32 * c.vectors * p }

func (c *conv) piecesWeight(o int) {
	c.op("FMOVQ %d(%s), F%d", 16*o, rW, piecesW+o)
}

func (c *conv) piecesInput(p int) { c.ldrq(1+p, index, piecesX+p) }

func (c *conv) piecesXor(p, o, to int) {
	c.op("VEOR V%d.B16, V%d.B16, V%d.B16", piecesX+p, piecesW+o, to)
}

func (c *conv) addp(a, b, to int) { c.op("VADDP V%d.B16, V%d.B16, V%d.B16", b, a, to) }

func (c *conv) piecesStore(p, back int) {
	c.op("FMOVQ F%d, %d(%s)", piecesSum+p, c.piecesRow(p)-back, rOut)
}

func piecesBody(c *conv, pixels int, label string) {
	c.op("MOVD $%d, %s", c.vectors*16/piecesGroup, rGroups)
	c.op("MOVD %s, %s", rWide, rOut)
	if pixels == c.pixels {
		// Runs of whole pieces, of which there are two or more.
		c.op("LSR $4, %s, %s", rRun, rPieces)
		c.op("MUL %s, %s, %s", rPieces, rRows, rTotal)
		c.op("TST $15, %s", rRun)
		c.op("BNE %sany", label)
		c.op("SUBS $2, %s", rTotal)
		c.op("BLO %sany", label)
		piecesWhole(c, label)
		c.op("B %sstore", label)
		c.label(label + "any")
	}
	piecesAny(c, pixels, label)
	if pixels == c.pixels {
		c.label(label + "store")
	}
}

// piecesWhole sums patches whose runs are whole pieces. Instructions of a kind
// stand together, for two patches at a time, and what is loaded is for the next
// piece, also from a group of outputs to the next: so no instruction waits for the
// one before it, which matters to processors that keep the order of the program.
func piecesWhole(c *conv, label string) {
	c.op("ADD $16, %s", rJump)
	c.op("MOVD $16, %s", rSixteen)
	c.op("MOVD $0, %s", rIndex)
	c.op("SUBS $1, %s, %s", rPieces, rLeft)
	for o := range piecesGroup {
		c.piecesWeight(o)
	}
	c.op("ADD $%d, %s", 16*piecesGroup, rW)
	for p := range c.pixels {
		c.piecesInput(p)
	}
	piecesXors(c, 0, piecesGroup/2, piecesGroup)
	c.piecesNext()
	c.op("ADD %s, %s", rT, rIndex)
	c.op("SUBS $1, %s", rLeft)
	c.label(label + "group")
	piecesStep(c, firstPiece)
	c.op("MOVD %s, %s", rTotal, rCount)
	c.op("CBZ %s, %slast", rCount, label)
	c.label(label + "piece")
	piecesStep(c, middlePiece)
	c.op("CBNZ %s, %spiece", rCount, label)
	c.label(label + "last")
	c.op("MOVD $0, %s", rIndex)
	c.op("SUBS $1, %s, %s", rPieces, rLeft)
	piecesStep(c, lastPiece)
	c.op("ADD $16, %s", rOut)
	c.op("SUB $1, %s", rGroups)
	c.op("CBNZ %s, %sgroup", rGroups, label)
	c.piecesStore(2, 16)
	c.piecesStore(3, 16)
}

// piecesNext computes how far it is to the next piece, and takes it off the row,
// or begins the next one; the flags are those of the subtraction.
func (c *conv) piecesNext() {
	c.op("CSEL EQ, %s, %s, %s", rJump, rSixteen, rT)
	c.op("CSEL EQ, %s, %s, %s", rPieces, rLeft, rLeft)
}

// piecesXors XORs two patches with some outputs of a group.
func piecesXors(c *conv, first, from, to int) {
	for i, t := range counts {
		for o := from; o < to; o++ {
			c.piecesXor(first+i, o, t[o])
		}
	}
}

// piecesStep counts a piece of four patches for a group of outputs, and loads the
// next one. Half of the XORs of two patches are made with the two before, in
// registers that those leave free.
func piecesStep(c *conv, part piecesPart) {
	for first := 0; first < c.pixels; first += 2 {
		both := func(f func(p int, t *[8]int)) {
			f(first, &counts[0])
			f(first+1, &counts[1])
		}
		tree := func(n int, after func(i int)) {
			both(func(p int, t *[8]int) {
				for i := range n {
					c.addp(t[2*i], t[2*i+1], t[i])
					after((p-first)*n + i)
				}
			})
		}
		none := func(int) {}
		inputs := func() { both(func(p int, _ *[8]int) { c.piecesInput(p) }) }
		piecesXors(c, first, 0, piecesGroup/2)
		both(func(_ int, t *[8]int) {
			for o := range piecesGroup {
				c.op("VCNT V%d.B16, V%d.B16", t[o], t[o])
			}
		})
		// In-order cores load beside additions.
		tree(4, func(i int) {
			if first > 0 && i%2 == 1 {
				c.piecesWeight(piecesGroup/2 + i/2)
			}
		})
		if first == 0 {
			inputs()
			if part == firstPiece {
				// The sums of the group before.
				c.piecesStore(2, 16)
				c.piecesStore(3, 16)
			}
		} else if part == lastPiece {
			c.piecesStore(0, 0)
			c.piecesStore(1, 0)
		}
		tree(2, none)
		piecesXors(c, (first+2)%c.pixels, piecesGroup/2, piecesGroup)
		tree(1, none)
		if first == 0 {
			c.piecesNext()
		} else {
			c.op("SUBS $1, %s", rLeft)
			for o := range piecesGroup / 2 {
				c.piecesWeight(o)
			}
			c.piecesInput(first + 1)
			c.op("ADD $%d, %s", 16*piecesGroup, rW)
			c.piecesInput(first)
			c.op("ADD %s, %s", rT, rIndex)
			if part == middlePiece {
				c.op("SUB $1, %s", rCount)
			}
		}
		both(func(p int, t *[8]int) {
			if part == firstPiece {
				c.uaddlp(t[0], piecesSum+p)
			} else {
				c.uadalp(t[0], piecesSum+p)
			}
		})
	}
}

// piecesAny sums patches whose runs are any number of 32 bits: pieces of 128, then
// of 64 and of 32 bits.
func piecesAny(c *conv, pixels int, label string) {
	c.label(label + "anygroup")
	c.op("MOVD $0, %s", rIndex)
	c.op("MOVD %s, %s", rRows, rCount)
	c.zero(piecesSum, piecesSum+pixels)
	c.label(label + "row")
	c.op("MOVD %s, %s", rRun, rLeft)
	c.label(label + "next")
	load := func(size int, op string) {
		for p := range pixels {
			if size == 16 {
				c.piecesInput(p)
				continue
			}
			c.op("%s (%s)(%s), F%d", op, patch(p), rIndex, piecesX+p)
		}
		c.op("ADD $%d, %s", size, rIndex)
		c.op("SUB $%d, %s", size, rLeft)
	}
	c.op("CMP $16, %s", rLeft)
	c.op("BLO %seight", label)
	load(16, "FMOVQ")
	c.op("B %sloaded", label)
	c.label(label + "eight")
	c.op("TBZ $3, %s, %sfour", rLeft, label)
	load(8, "FMOVD")
	c.op("B %sloaded", label)
	c.label(label + "four")
	load(4, "FMOVS")
	c.label(label + "loaded")
	for o := range piecesGroup {
		c.piecesWeight(o)
	}
	c.op("ADD $%d, %s", 16*piecesGroup, rW)
	for p := range pixels {
		t := counts[p%2]
		for o := range piecesGroup {
			c.piecesXor(p, o, t[o])
		}
		for o := range piecesGroup {
			c.op("VCNT V%d.B16, V%d.B16", t[o], t[o])
		}
		for n := 4; n > 0; n /= 2 {
			for i := range n {
				c.addp(t[2*i], t[2*i+1], t[i])
			}
		}
		c.uadalp(t[0], piecesSum+p)
	}
	c.op("CBNZ %s, %snext", rLeft, label)
	c.op("ADD %s, %s", rSkip, rIndex)
	c.op("SUBS $1, %s", rCount)
	c.op("BNE %srow", label)
	for p := range pixels {
		c.piecesStore(p, 0)
	}
	c.op("ADD $16, %s", rOut)
	c.op("SUBS $1, %s", rGroups)
	c.op("BNE %sanygroup", label)
}

// piecesMasks compares the sums of a pixel with their thresholds, for piecesPack.
func piecesMasks(c *conv, p int, same string) {
	if c.sums {
		bitsStore(c, p, same)
		return
	}
	const high = bitsNarrow // four vectors
	bitsBounds(c, same)
	for v := range c.vectors {
		c.op("FMOVQ %d(%s), F%d", c.piecesRow(p)+32*v, rWide, c.acc(p, v))
		c.op("FMOVQ %d(%s), F%d", c.piecesRow(p)+32*v+16, rWide, high+v)
	}
	for v := range c.vectors {
		c.cmgeH(bitsBound+2*v, c.acc(p, v), c.acc(p, v))
		c.cmgeH(bitsBound+2*v+1, high+v, high+v)
	}
	for v := range c.vectors {
		c.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", high+v, c.acc(p, v), c.acc(p, v))
	}
	for v := range c.vectors {
		c.op("VAND V%d.B16, V%d.B16, V%d.B16", bitPattern, c.acc(p, v), c.acc(p, v))
	}
}

// piecesPack makes one bit of every byte of the masks of all pixels, and stores a
// word for each pixel.
func piecesPack(c *conv, pixels int) {
	masks := pixels * c.vectors
	for range 3 {
		n := max(masks/2, 1)
		for i := range n {
			c.addp(2*i%masks, (2*i+1)%masks, i)
		}
		masks = n
	}
	lane, bytes := map[int]string{4: "D", 2: "S", 1: "H"}[c.vectors], 2*c.vectors
	for p := range pixels {
		c.op("VMOV V%d.%s[%d], %s", p*bytes/16, lane, p*bytes%16/bytes, patch(p))
	}
	c.op("MOVD %d(%s), %s", gen.JobFlip, rJob, rMain)
	c.dstStep()
	for p := range pixels {
		c.op("EOR %s, %s", rMain, patch(p))
	}
	for p := range pixels {
		c.op("MOVD %s, (%s)", patch(p), rDst)
		c.op("ADD %s, %s", rT, rDst)
	}
}
