package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convPlanes writes the convolutions of bit planes. Patches of the planes of a pixel
// are summed side by side, as those of pixels are, with the same loads of weights; what
// is left is to add up their sums of 16 bits. How many planes there are is in the job, so
// that one kernel of each form does for all.
func (a *asm) convPlanes() {
	flushed := bitsKind
	flushed.body = func(c *conv, pixels int, label string) {
		bitsBody(c, pixels, label)
		for i := range pixels * c.vectors {
			bitsWiden(c, i)
			c.op("FSTPQ (F%d, F%d), %d(%s)", bitsX, bitsX+1, 32*i, rWide)
		}
	}
	for _, k := range []struct {
		kind
		pixels int
	}{{flushed, 4}, {piecesKind, 4}, {carriesKind, 2}} {
		for _, v := range []int{4, 2, 1} {
			(&conv{asm: a, kind: k.kind, pixels: k.pixels, vectors: v}).planes()
		}
	}
}

// Registers of what ends sums of planes, where patches have been.
const (
	rFrom  = "R1" // sums in memory
	rMore  = "R2" // pixels left
	rIn    = "R3"
	rOuts  = "R4"
	rEnd   = "R5" // number of thresholds, plus 1
	rWord0 = "R6"
	rWord1 = "R7"
	rK     = "R8" // threshold, from 1 on

	planesSum   = 0  // 8 vectors
	planesMore  = 8  // 8 vectors: those of the next plane, masks
	planesBound = 16 // 8 vectors
	planesT     = 24 // 4 vectors
)

func (c *conv) planes() {
	f := c.kind
	n := c.vectors * f.outputs
	name := fmt.Sprintf("%sPlanes%d%s", f.name, n, f.isa)
	size := f.stack(c.pixels, c.vectors) + 16 // to align it
	c.function(name, "job *uint8", size, 8,
		fmt.Sprintf("%s computes, for every pixel and each of %d outputs o, with x the", name, n),
		f.piece+" of the patch at src + at[p] of one of its planes,",
		"",
		"\tc[p][o] = Σ over i of "+f.product,
		"\tc[o] = c[p][o] + 2·c[p+1][o]",
		"\tthe planes of the number of thresholds that are not less than c[o], XOR flip,",
		"\tor without planes of the output dst[o] = table[class[p]][o] − 2·c[o]")
	c.op("MOVD job+0(FP), %s", rJob)
	c.op("MOVD $wide-%d(SP), %s", size, rWide)
	c.op("ADD $15, %s", rWide)
	c.op("BIC $15, %s", rWide)
	c.op("MOVD %d(%s), %s", gen.JobDst, rJob, rDst)
	c.op("MOVD %d(%s), %s", gen.JobAt, rJob, rAt)
	c.op("MOVD %d(%s), %s", gen.JobClass, rJob, rClass)
	c.label("wide")
	c.op("MOVD %d(%s), %s", gen.JobPixels, rJob, rT)
	c.op("CBZ %s, done", rT)
	if c.pixels == 4 {
		c.op("CMP $4, %s", rT)
		c.op("BLO narrow")
		c.kind.pairs = false
		c.patches(4, "w")
		c.op("MOVD $4, %s", rMore)
		c.op("B sums")
		c.label("narrow")
	}
	c.kind.pairs = true
	c.patches(2, "n")
	c.op("LSR $2, %s, %s", rSecond, rMore)
	c.op("ADD $1, %s", rMore)
	c.label("sums")
	c.endPlanes()
	c.op("B wide")
	c.label("done")
	c.op("RET")
}

// endPlanes ends the sums of so many patches as rMore has.
func (c *conv) endPlanes() {
	each := func(f func(i int)) {
		for i := range 2 * c.vectors {
			f(i)
		}
	}
	load := func(to int) {
		each(func(i int) { c.op("FMOVQ %d(%s), F%d", 16*i, rFrom, to+i) })
		c.op("ADD $%d, %s", c.piecesRow(1), rFrom)
	}
	c.op("MOVD $0x8040201008040201, %s", rT)
	c.op("VDUP %s, V%d.D2", rT, bitPattern)
	c.op("MOVD %d(%s), %s", gen.JobIn, rJob, rIn)
	c.op("MOVD %d(%s), %s", gen.JobOut, rJob, rOuts)
	c.op("SUB $1, %s, %s", rIn, rT)
	c.op("LSR %s, %s, %s", rT, rMore, rMore)
	c.op("MOVD $1, %s", rEnd)
	c.op("LSL %s, %s, %s", rOuts, rEnd, rEnd)
	c.op("MOVD %s, %s", rWide, rFrom)
	c.label("pixel")
	load(planesSum)
	c.op("CMP $1, %s", rIn)
	c.op("BEQ added")
	load(planesMore)
	each(func(i int) { c.op("VSHL $1, V%d.H8, V%d.H8", planesMore+i, planesMore+i) })
	each(func(i int) { c.op("VADD V%d.H8, V%d.H8, V%d.H8", planesMore+i, planesSum+i, planesSum+i) })
	c.label("added")
	c.op("MOVWU (%s), %s", rClass, rTable)
	c.op("ADD %s<<2, %s", rIn, rClass)
	c.op("MOVD %d(%s), %s", gen.JobTable, rJob, rT)
	c.op("ADD %s, %s", rT, rTable)
	c.op("CBZ %s, int32", rOuts)

	c.op("MOVD $0, %s", rWord0)
	c.op("MOVD $0, %s", rWord1)
	c.op("MOVD $1, %s", rK)
	c.label("threshold")
	for v := range c.vectors {
		for i := range 4 {
			c.op("FMOVQ %d(%s), F%d", 16*(4*v+i), rTable, planesT+i)
		}
		for _, i := range []int{0, 2, 1, 3} {
			c.sqxtn(i%2 == 1, planesT+i, planesBound+2*v+i/2)
		}
	}
	each(func(i int) { c.cmgeH(planesBound+i, planesSum+i, planesMore+i) })
	for v := range c.vectors {
		c.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", planesMore+2*v+1, planesMore+2*v, planesMore+v)
	}
	c.joinMasks(planesMore, c.vectors)
	c.op("EOR %s, %s", rT, rWord0)
	c.op("CMP $2, %s", rK)
	c.op("CSEL EQ, %s, %s, %s", rT, rWord1, rWord1)
	c.op("MOVD %d(%s), %s", gen.JobNext, rJob, rT)
	c.op("ADD %s, %s", rT, rTable)
	c.op("ADD $1, %s", rK)
	c.op("CMP %s, %s", rEnd, rK)
	c.op("BLO threshold")
	c.op("MOVD %d(%s), %s", gen.JobFlip, rJob, rT)
	c.op("EOR %s, %s", rT, rWord0)
	c.op("EOR %s, %s", rT, rWord1)
	c.op("MOVD %s, (%s)", rWord0, rDst)
	c.op("CMP $1, %s", rOuts)
	c.op("BEQ stored")
	c.op("MOVD %d(%s), %s", gen.JobDstPlane, rJob, rT)
	c.op("MOVD %s, (%s)(%s)", rWord1, rDst, rT)
	c.op("B stored")

	c.label("int32")
	c.op("MOVD %s, %s", rDst, rT)
	for v := range c.vectors {
		for i := range 2 {
			c.op("VUSHLL $1, V%d.H4, V%d.S4", planesSum+2*v+i, planesT+2*i)
			c.op("VUSHLL2 $1, V%d.H8, V%d.S4", planesSum+2*v+i, planesT+2*i+1)
		}
		c.op("VLD1.P 64(%s), %s", rTable, list(planesBound, 4, "S4"))
		for i := range 4 {
			c.op("VSUB V%d.S4, V%d.S4, V%d.S4", planesT+i, planesBound+i, planesBound+i)
		}
		c.op("VST1.P %s, 64(%s)", list(planesBound, 4, "S4"), rT)
	}
	c.label("stored")
	c.op("MOVD %d(%s), %s", gen.JobDstStep, rJob, rT)
	c.op("ADD %s, %s", rT, rDst)
	c.op("SUBS $1, %s", rMore)
	c.op("BNE pixel")
}
