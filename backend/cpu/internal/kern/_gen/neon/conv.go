package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// Registers that all convolutions use alike. R1 to R4 point to the patches.
const (
	rJob    = "R0"
	rW      = "R5"  // weights
	rRows   = "R6"  // rows left
	rLeft   = "R7"  // pieces left in the row
	rChunk  = "R8"  // pieces until the row ends or the narrow sums are full
	rBudget = "R9"  // pieces until the narrow sums are full
	rWide   = "R10" // sums in memory
	rT      = "R11"
	rTable  = "R12"
	rRun    = "R13" // pieces of a row
	rSkip   = "R14"
	rPrev   = "R15" // thresholds that are in registers
	rDst    = "R19"
	rAt     = "R20"
	rClass  = "R21"
	rMain   = "R22"
	rShort  = "R23"
	rSecond = "R26" // from the place of a pixel to that of the next one, 0 if there is none
)

const (
	bitPattern = 31 // bit i%8 in byte i
	temp       = 28 // the first of four
)

// conv is a convolution of pixels × vectors of output channels.
type conv struct {
	*asm
	kind            kind
	sums            bool
	pixels, vectors int
}

// kind is what convolutions of one kind of input differ in.
type kind struct {
	name     string
	isa      string
	outputs  int // of a vector
	product  string
	piece    string
	result   [2]string
	inMemory bool                                    // body leaves sums of 16 bits in memory
	pairs    bool                                    // two pixels at a time, a last single one twice
	pack     func(c *conv, pixels int)               // bits of all pixels, where store leaves masks of bytes
	body     func(c *conv, pixels int, label string) // sums of a tile, narrow ones in the accumulators
	store    func(c *conv, p int, label string)      // results of a pixel
	stack    func(pixels, vectors int) int
}

func (c *conv) write() {
	f := c.kind
	n := c.vectors * f.outputs
	name, result := f.name, f.result[0]
	if c.sums {
		name, result = name+"Sums", f.result[1]
	}
	name += fmt.Sprintf("%d%s", n, f.isa)
	size := f.stack(c.pixels, c.vectors)
	if size > 0 {
		size += 16 // to align it
	}
	c.function(name, "job *uint8", size, 8,
		fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, n),
		f.piece+" of the patch at src + at[p],",
		"",
		"\tc[o] = Σ over i of "+f.product,
		"\t"+result)
	c.op("MOVD job+0(FP), %s", rJob)
	if size > 0 {
		c.op("MOVD $wide-%d(SP), %s", size, rWide)
		c.op("ADD $15, %s", rWide)
		c.op("BIC $15, %s", rWide)
	}
	c.op("MOVD %d(%s), %s", gen.JobDst, rJob, rDst)
	c.op("MOVD %d(%s), %s", gen.JobAt, rJob, rAt)
	c.op("MOVD %d(%s), %s", gen.JobClass, rJob, rClass)
	c.label("wide")
	c.op("MOVD %d(%s), %s", gen.JobPixels, rJob, rT)
	if f.pairs {
		c.op("CBZ %s, done", rT)
		c.tile(c.pixels, "w")
		c.op("B wide")
		c.label("done")
		c.op("RET")
		return
	}
	c.op("CMP $%d, %s", c.pixels, rT)
	c.op("BLO narrow")
	c.tile(c.pixels, "w")
	c.op("B wide")
	c.label("narrow")
	if c.pixels > 1 {
		c.op("CBZ %s, done", rT)
		c.tile(1, "n")
		c.op("MOVD %d(%s), %s", gen.JobPixels, rJob, rT)
		c.op("B narrow")
		c.label("done")
	}
	c.op("RET")
}

// patches sums some patches, rT being the number of those left, and takes them off the
// job.
func (c *conv) patches(pixels int, label string) {
	if c.kind.pairs {
		c.op("SUBS $1, %s", rT)
		c.op("CSET NE, %s", rSecond)
		c.op("SUB %s, %s", rSecond, rT)
		c.op("LSL $2, %s", rSecond)
	} else {
		c.op("SUB $%d, %s", pixels, rT)
	}
	c.op("MOVD %s, %d(%s)", rT, gen.JobPixels, rJob)
	c.op("MOVD %d(%s), %s", gen.JobSrc, rJob, rT)
	for p := range pixels {
		c.ofPixel(p, rAt, patch(p))
		c.op("ADD %s, %s", rT, patch(p))
	}
	c.op("ADD $%d, %s", 4*pixels, rAt)
	c.op("MOVD %d(%s), %s", gen.JobWeights, rJob, rW)
	c.op("MOVD %d(%s), %s", gen.JobRows, rJob, rRows)
	c.op("MOVD %d(%s), %s", gen.JobRunBytes, rJob, rRun)
	c.op("MOVD %d(%s), %s", gen.JobRowSkip, rJob, rSkip)
	c.kind.body(c, pixels, label)
}

// tile computes some pixels, as patches does.
func (c *conv) tile(pixels int, label string) {
	c.patches(pixels, label)
	if !c.sums {
		c.op("MOVD $0x8040201008040201, %s", rT)
		c.op("VDUP %s, V%d.D2", rT, bitPattern)
		c.op("MOVD $0, %s", rPrev)
	}
	for p := range pixels {
		c.ofPixel(p, rClass, rTable)
		c.op("MOVD %d(%s), %s", gen.JobTable, rJob, rT)
		c.op("ADD %s, %s", rT, rTable)
		c.kind.store(c, p, fmt.Sprintf("%ssame%d", label, p))
		if c.kind.pack != nil && !c.sums {
			continue
		}
		c.dstStep()
		c.op("ADD %s, %s", rT, rDst)
	}
	if c.kind.pack != nil && !c.sums {
		c.kind.pack(c, pixels)
	}
	c.op("ADD $%d, %s", 4*pixels, rClass)
}

// ofPixel loads what a list has for a pixel.
func (c *conv) ofPixel(p int, list, to string) {
	if c.kind.pairs && p == 1 {
		c.op("MOVWU (%s)(%s), %s", list, rSecond, to)
		return
	}
	c.op("MOVWU %d(%s), %s", 4*p, list, to)
}

// dstStep loads into rT how far it is to the results of the next pixel.
func (c *conv) dstStep() {
	c.op("MOVD %d(%s), %s", gen.JobDstStep, rJob, rT)
	if c.kind.pairs {
		c.op("CMP $0, %s", rSecond)
		c.op("CSEL EQ, ZR, %s, %s", rT, rT)
	}
}

func patch(p int) string { return fmt.Sprintf("R%d", 1+p) }

func (c *conv) acc(p, v int) int { return p*c.vectors + v }

// advance goes to the next row of the patches, or on where there is none.
func (c *conv) advance(pixels int, label string) {
	for p := range pixels {
		c.op("ADD %s, %s", rSkip, patch(p))
	}
	c.op("SUBS $1, %s", rRows)
	c.op("BNE %srow", label)
}

// nextChunk computes how many pieces to go, and takes them off the row and off
// the budget.
func (c *conv) nextChunk() {
	c.op("CMP %s, %s", rBudget, rLeft)
	c.op("CSEL LO, %s, %s, %s", rLeft, rBudget, rChunk)
	c.op("SUB %s, %s", rChunk, rLeft)
	c.op("SUB %s, %s", rChunk, rBudget)
}

// zero clears registers.
func (c *conv) zero(from, to int) {
	for i := from; i < to; i++ {
		c.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
}

// clearSums clears n vectors of sums in memory, an even number.
func (c *conv) clearSums(n int) {
	c.zero(temp, temp+1)
	for i := range n / 2 {
		c.op("FSTPQ (F%d, F%d), %d(%s)", temp, temp, 32*i, rWide)
	}
}

// joinMasks makes one bit of every byte of masks, which are the registers from first
// on, in rT.
func (c *conv) joinMasks(first, masks int) {
	v := func(i int) string { return fmt.Sprintf("V%d.B16", first+i) }
	for i := range masks {
		c.op("VAND V%d.B16, %s, %s", bitPattern, v(i), v(i))
	}
	switch masks {
	case 4:
		c.op("VADDP %s, %s, %s", v(1), v(0), v(0))
		c.op("VADDP %s, %s, %s", v(3), v(2), v(2))
		c.op("VADDP %s, %s, %s", v(2), v(0), v(0))
		c.op("VADDP %s, %s, %s", v(0), v(0), v(0))
		c.op("VMOV V%d.D[0], %s", first, rT)
	case 2:
		c.op("VADDP %s, %s, %s", v(1), v(0), v(0))
		c.op("VADDP %s, %s, %s", v(0), v(0), v(0))
		c.op("VADDP %s, %s, %s", v(0), v(0), v(0))
		c.op("VMOV V%d.S[0], %s", first, rT)
	default:
		for range 3 {
			c.op("VADDP %s, %s, %s", v(0), v(0), v(0))
		}
		c.op("VMOV V%d.H[0], %s", first, rT)
	}
}

// pack stores masks as a word.
func (c *conv) pack(first, masks int) {
	c.joinMasks(first, masks)
	c.op("MOVD %d(%s), %s", gen.JobFlip, rJob, rMain)
	c.op("EOR %s, %s", rMain, rT)
	c.op("MOVD %s, (%s)", rT, rDst)
}
