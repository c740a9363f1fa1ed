package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convOuter writes the convolutions of bits by outer products.
func (a *asm) convOuter() {
	a.function("streamingBytesSME2", "", 0, 8, "streamingBytesSME2 returns the bytes of a vector of the streaming mode.")
	a.word(0x04bf5820, "rdsvl x0, #1")
	a.op("MOVD R0, ret+0(FP)")
	a.op("RET")
	a.outer(false)
	a.outer(true)
}

const (
	// outerWords is the number of words of 32 bits of the longest patch.
	outerWords = 288
	// Those of 16 pixels, and as many as four columns too many.
	outerStack = 64*outerWords + 256
)

// outer writes a kernel for 64 outputs: 16 pixels meet 16 outputs in each of the four
// tiles of ZA. BMOPA adds the number of bits in which the words of a pixel and an output
// are alike, and as the weights are inverted, that is in which they differ.
//
// All between SMSTART and SMSTOP must be instructions of the streaming mode or of the
// integer registers.
func (a *asm) outer(sums bool) {
	const (
		at, class, dst, pixels      = 10, 11, 19, 24 // those of all pixels left
		group, buffer               = 1, 9           // pixels in hand, and their words
		t0, t1, weights, word, left = 2, 3, 5, 6, 7
		chunk, slice                = 8, 12 // words at a time; four registers that can name slices
		rows, run, src, row         = 20, 21, 22, 23
	)
	name, result := "convOuter64SME2", "bit o of dst[p] = c[o] ≤ table[class[p]][o], XOR flip"
	if sums {
		name, result = "convOuterSums64SME2", "dst[p][o] = table[class[p]][o] − 2·c[o]"
	}
	a.function(name, "job *uint8", outerStack, 8,
		name+" computes, for every pixel p and each of 64 outputs o, with x the", "words of 32 bits of the patch at src + at[p], of which there are at most", fmt.Sprintf("%d,", outerWords), "",
		"\tc[o] = Σ over i of popcount(x[i] XOR w[i][o])", "\t"+result)
	a.op("MOVD job+0(FP), R0")
	a.op("MOVD $words-%d(SP), R%d", outerStack, buffer)
	for _, f := range [][2]int{{gen.JobDst, dst}, {gen.JobAt, at}, {gen.JobClass, class}, {gen.JobPixels, pixels}} {
		a.op("MOVD %d(R0), R%d", f[0], f[1])
	}
	a.op("CBZ R%d, none", pixels)
	a.word(0xd503477f, "smstart")
	a.word(0x2598e3e0, "ptrue p0.s")
	a.word(0x2518e3e7, "ptrue p7.b")
	a.word(0x25a07810, "ptrue pn8.s")
	a.op("ADD $%d, R0, R%d", gen.JobFlip, t0)
	a.word(0x85800006|t0<<5, "ldr p6, [x%d]", t0)

	// Words of 16 pixels go side by side: a pixel is a row of a tile, and a column is
	// stored.
	a.label("group")
	a.op("MOVD $16, R%d", group)
	a.op("CMP R%d, R%d", group, pixels)
	a.op("CSEL LO, R%d, R%d, R%d", pixels, group, group)
	a.op("MOVD R%d, R%d", buffer, word)
	a.op("MOVD %d(R0), R%d", gen.JobRows, rows)
	a.op("MOVD %d(R0), R%d", gen.JobSrc, row)
	a.label("row")
	a.op("MOVD R%d, R%d", row, src)
	a.op("MOVD %d(R0), R%d", gen.JobRunBytes, run)
	a.op("ADD R%d, R%d", run, row)
	a.op("LSR $2, R%d", run)
	a.label("chunk")
	a.word(0x25a01fe1|run<<16, "whilelo p1.s, xzr, x%d", run)
	a.op("MOVD R%d, R%d", at, t1)
	load := func(register, i int) {
		a.op("MOVWU.P 4(R%d), R%d", t1, t0)
		a.op("ADD R%d, R%d", src, t0)
		a.word(0xe09f0400|uint32((register-slice)<<13|t0<<5|i), "ld1w {za0h.s[w%d, %d]}, p1/z, [x%d]", register, i, t0)
	}
	a.op("MOVD $0, R%d", slice)
	a.op("CMP $16, R%d", group)
	a.op("BNE fewer")
	for i := range 3 {
		a.op("MOVD $%d, R%d", 4*(i+1), slice+1+i)
	}
	for i := range 16 {
		load(slice+i/4, i%4)
	}
	a.op("B loaded")
	a.label("fewer")
	a.op("MOVD R%d, R%d", group, left)
	a.label("pixel")
	load(slice, 0)
	a.op("ADD $1, R%d", slice)
	a.op("SUBS $1, R%d", left)
	a.op("BNE pixel")
	a.label("loaded")
	a.op("MOVD $16, R%d", chunk)
	a.op("CMP R%d, R%d", chunk, run)
	a.op("CSEL LO, R%d, R%d, R%d", run, chunk, chunk)
	a.op("ADD R%d<<6, R%d, R%d", chunk, word, t1)
	a.op("MOVD R%d, R%d", chunk, left)
	a.op("MOVD $0, R%d", slice)
	a.label("columns")
	a.word(0xc0868400, "mova {z0.s-z3.s}, za0v.s[w12, 0:3]")
	a.word(0xa060c000|word<<5, "st1w {z0.s-z3.s}, pn8, [x%d]", word)
	a.op("ADD $256, R%d", word)
	a.op("ADD $4, R%d", slice)
	a.op("SUBS $4, R%d", left)
	a.op("BGT columns")
	a.op("MOVD R%d, R%d", t1, word)
	a.op("ADD $64, R%d", src)
	a.op("SUBS R%d, R%d", chunk, run)
	a.op("BNE chunk")
	a.op("MOVD %d(R0), R%d", gen.JobRowSkip, t0)
	a.op("ADD R%d, R%d", t0, row)
	a.op("SUBS $1, R%d", rows)
	a.op("BNE row")

	const w, x = 0, 16 // vectors of weights and of pixels, of four words
	products := func(i int) {
		for t := range 4 {
			n, m := x+i, w+4*i+t
			a.word(0x80800008|uint32(m<<16|n<<5|t), "bmopa za%d.s, p0/m, p0/m, z%d.s, z%d.s", t, n, m)
		}
	}
	a.op("SUB R%d, R%d, R%d", buffer, word, left)
	a.op("LSR $6, R%d", left)
	a.op("MOVD R%d, R%d", buffer, word)
	a.op("MOVD %d(R0), R%d", gen.JobWeights, weights)
	a.word(0xc00800ff, "zero {za}")
	a.op("SUBS $4, R%d", left)
	a.op("BLT few")
	a.label("fours")
	a.loadFour(word, x, 0)
	for i := range 4 {
		a.loadFour(weights, w+4*i, 4*i)
	}
	for i := range 4 {
		products(i)
	}
	a.op("ADD $256, R%d", word)
	a.op("ADD $1024, R%d", weights)
	a.op("SUBS $4, R%d", left)
	a.op("BGE fours")
	a.label("few")
	a.op("ADDS $4, R%d", left)
	a.op("BEQ results")
	a.label("one")
	a.word(0xa540a000|word<<5|x, "ld1w {z%d.s}, p0/z, [x%d]", x, word)
	a.loadFour(weights, w, 0)
	products(0)
	a.op("ADD $64, R%d", word)
	a.op("ADD $256, R%d", weights)
	a.op("SUBS $1, R%d", left)
	a.op("BNE one")

	a.label("results")
	const sum, table = 0, 4 // four vectors each
	a.op("MOVD R%d, R%d", group, left)
	a.op("MOVD $0, R%d", slice)
	a.op("MOVD %d(R0), R%d", gen.JobTable, src)
	a.op("MOVD %d(R0), R%d", gen.JobDstStep, run)
	a.label("result")
	a.op("MOVWU.P 4(R%d), R%d", class, t0)
	a.op("ADD R%d, R%d", src, t0)
	a.loadFour(t0, table, 0)
	for t := range 4 {
		a.word(0xc0820000|uint32(t<<7|sum+t), "mova z%d.s, p0/m, za%dh.s[w12, 0]", sum+t, t)
	}
	if sums {
		for i := range 8 {
			a.word(0x04a00400|uint32((sum+i%4)<<16|(table+i%4)<<5|table+i%4), "sub z%d.s, z%d.s, z%d.s", table+i%4, table+i%4, sum+i%4)
		}
		a.word(0xa060c000|dst<<5|table, "st1w {z%d.s-z%d.s}, pn8, [x%d]", table, table+3, dst)
	} else {
		for t := range 4 {
			a.word(0x24808000|uint32((sum+t)<<16|(table+t)<<5|1+t), "cmpge p%d.s, p0/z, z%d.s, z%d.s", 1+t, table+t, sum+t)
		}
		// A predicate has a bit for every byte, so 64 in all.
		a.word(0x05624821, "uzp1 p1.h, p1.h, p2.h")
		a.word(0x05644863, "uzp1 p3.h, p3.h, p4.h")
		a.word(0x05234821, "uzp1 p1.b, p1.b, p3.b")
		a.word(0x25065e21, "eor p1.b, p7/z, p1.b, p6.b")
		a.word(0xe5800001|dst<<5, "str p1, [x%d]", dst)
	}
	a.op("ADD R%d, R%d", run, dst)
	a.op("ADD $1, R%d", slice)
	a.op("SUBS $1, R%d", left)
	a.op("BNE result")
	a.op("ADD R%d<<2, R%d", group, at)
	a.op("SUBS R%d, R%d", group, pixels)
	a.op("BNE group")
	a.word(0xd503467f, "smstop")
	a.label("none")
	a.op("RET")
}

// loadFour loads four vectors of 32-bit lanes, the first of which is a number of vectors
// from where a register points, a multiple of four.
func (a *asm) loadFour(from, first, vectors int) {
	offset := ""
	if vectors > 0 {
		offset = fmt.Sprintf(", #%d, mul vl", vectors)
	}
	a.word(0xa040c000|uint32(vectors/4<<16|from<<5|first), "ld1w {z%d.s-z%d.s}, pn8/z, [x%d%s]", first, first+3, from, offset)
}
