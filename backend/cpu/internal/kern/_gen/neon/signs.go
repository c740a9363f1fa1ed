package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// Registers of the kernels of means of ±1.
const (
	signDst, signSrc, signTaps, signCount, signStep, signDstStep, signPixels = 1, 2, 3, 4, 5, 6, 7
	signLeft, signOut, signAt, signTap, signTapsLeft, signWord, signFrame    = 8, 9, 10, 11, 12, 13, 14
	signWord2, signMore                                                      = 15, 16
	signEach                                                                 = 19 // four pointers

	// Vectors. Of a word, bit r of byte i is counted in byte i of vector r, and bit r + 4 in
	// byte i + 8.
	signPlanes, signX, signT, signCounts = 0, 6, 6, 16
	signReciprocal, signRest             = 20, 21
	signBase, signSubtract               = 22, 23
	signFloats, signTable, signBits      = 16, 24, 28
	signMask                             = 15
)

// maxSigns is the number of taps that the planes of bits of a count have room for, and
// fewSigns that for which means are looked up.
const maxSigns, fewSigns = 1<<6 - 1, 1<<4 - 1

// signKernel is one of the kernels of means of ±1: of four taps and the divisor 4, of any, or
// of sums.
type signKernel struct {
	*asm
	four, sum bool
}

// signs writes the means of ±1 values.
func (a *asm) signs() {
	signKernel{asm: a, four: true}.write("meanSigns4NEON",
		"meanSigns4NEON stores, for the bits of every pixel of a job of four taps and the divisor 4, the",
		"mean over the taps of +1 where the bit is set, else −1.")
	less := fmt.Sprintf("less than %d taps,", maxSigns+1)
	signKernel{asm: a}.write("meanSignsNEON",
		"meanSignsNEON stores, for the bits of every pixel of a job of "+less,
		"the mean over the taps of +1 where the bit is set, else −1.")
	signKernel{asm: a, sum: true}.write("addSignsNEON",
		"addSignsNEON adds, for the bits of every pixel of a job of "+less,
		"the sum over the taps of +1 where the bit is set, else −1.")
}

func (k signKernel) write(name string, doc ...string) {
	const frame = 64
	k.function(name, "job *uint8", frame, 8, doc...)
	k.op("MOVD job+0(FP), R0")
	for _, f := range [][2]int{
		{gen.PoolDst, signDst}, {gen.PoolSrc, signSrc}, {gen.PoolTaps, signTaps}, {gen.PoolCount, signCount},
		{gen.PoolStep, signStep}, {gen.PoolDstStep, signDstStep}, {gen.PoolPixels, signPixels},
	} {
		k.op("MOVD %d(R0), R%d", f[0], f[1])
	}
	k.op("MOVD $frame-%d(SP), R%d", frame, signFrame)
	for r := range 4 {
		k.constants(signBits+r, 0x0101010101010101<<r, 0x1010101010101010<<r)
	}
	if k.four {
		k.beginFour()
	} else {
		k.begin()
	}
	k.label("pixel")
	k.op("LSR $2, R%d, R%d", signDstStep, signLeft)
	k.op("MOVD R%d, R%d", signDst, signOut)
	if k.four {
		k.wordOfFour()
	} else {
		k.op("MOVD R%d, R%d", signSrc, signAt)
		k.words()
	}
	// What is less than 16 values, by way of memory.
	k.label("tail")
	k.op("FMOVS.P 4(R%d), F%d", signFrame, signT)
	if k.sum {
		k.op("FMOVS (R%d), F%d", signOut, signT+1)
		k.op("FADDS F%d, F%d, F%d", signT+1, signT, signT)
	}
	k.op("FMOVS.P F%d, 4(R%d)", signT, signOut)
	k.op("SUBS $1, R%d", signLeft)
	k.op("BNE tail")
	k.op("MOVD $frame-%d(SP), R%d", frame, signFrame)
	k.label("next")
	if k.four {
		for t := range 4 {
			k.op("ADD R%d, R%d", signStep, signEach+t)
		}
	} else {
		k.op("ADD R%d, R%d", signStep, signSrc)
	}
	k.op("ADD R%d, R%d", signDstStep, signDst)
	k.op("SUBS $1, R%d", signPixels)
	k.op("BNE pixel")
	k.op("RET")
}

// beginFour loads the bytes of the means and pointers to the taps, which go on by themselves to
// the end of a pixel.
func (k signKernel) beginFour() {
	// The upper bytes of −1, −½, 0, ½ and 1; the lower ones are 0.
	k.constants(signTable+2, 0x8000000080, 0)
	k.constants(signTable+3, 0x3f3f00bfbf, 0)
	k.clear(k.means(), 2)
	for t := range 4 {
		k.op("MOVD %d(R%d), R%d", 8*t, signTaps, signEach+t)
		k.op("ADD R%d<<3, R%d, R%d", signEach+t, signSrc, signEach+t)
	}
	k.op("ADD $255, R%d, R%d", signDstStep, signWord)
	k.op("LSR $8, R%d", signWord)
	k.op("SUB R%d<<3, R%d", signWord, signStep)
}

// wordOfFour stores the means of a word of four taps.
func (k signKernel) wordOfFour() {
	k.label("word")
	for t := range 4 {
		k.op("VLD1R.P 8(R%d), %s", signEach+t, list(signPlanes+t, 1, "D2"))
	}
	for t := range 4 {
		k.test(signPlanes+t, signT)
		for r := range 4 {
			from := signCounts + r
			if t == 0 {
				from = k.means() // 0
			}
			k.op("VSUB V%d.B16, V%d.B16, V%d.B16", signT+r, from, signCounts+r)
		}
	}
	k.inOrder()
	k.store("few", "word")
}

// begin loads what means are computed by, and the bytes of those of few taps.
func (k signKernel) begin() {
	k.op("MOVD $0x4b000000, R%d", signWord) // 2²³, whose last bit is one
	k.op("VDUP R%d, V%d.S4", signWord, signBase)
	k.op("ADD R%d, R%d", signCount, signWord)
	k.op("VDUP R%d, V%d.S4", signWord, signSubtract)
	if k.sum {
		k.op("VMOVI $%d, V%d.B16", maxSigns, signMask)
		return
	}
	const divisor, rest = signT, signT + 1
	k.op("MOVWU %d(R0), R%d", gen.PoolDivisor, signWord)
	k.op("VDUP R%d, V%d.S4", signWord, divisor)
	k.op("MOVWU %d(R0), R%d", gen.PoolReciprocal, signWord)
	k.op("VDUP R%d, V%d.S4", signWord, signReciprocal)
	k.op("MOVD $0x3f800000, R%d", signWord) // 1
	k.op("VDUP R%d, V%d.S4", signWord, rest)
	k.op("VFMLS V%d.S4, V%d.S4, V%d.S4", divisor, signReciprocal, rest)
	k.fmul(rest, signReciprocal, signRest)
	k.op("VMOVI $%d, V%d.B16", maxSigns, signMask)
	k.op("CMP $%d, R%d", fewSigns, signCount)
	k.op("BHI pixel")
	k.op("VMOVI $%d, V%d.B16", fewSigns, signMask)
	k.constants(signT, 0x0706050403020100, 0x0f0e0d0c0b0a0908)
	k.op("VST1 %s, (R%d)", list(k.floats(signT), 4, "S4"), signFrame)
	k.op("VLD4 (R%d), %s", signFrame, list(signTable, 4, "B16"))
}

// words stores the means of two words at a time, or of the last one. Counts of the taps are
// planes of bits first: a plane has one bit of each.
func (k signKernel) words() {
	k.label("words")
	k.clear(signPlanes, 6)
	k.op("MOVD R%d, R%d", signTaps, signTap)
	k.op("CMP $64, R%d", signLeft)
	k.op("CSET HI, R%d", signMore)
	k.op("BLS single")
	k.count("two", func(tap, to int) {
		k.op("ADD R%d<<3, R%d, R%d", tap, signAt, tap)
		k.op("VLD1 (R%d), %s", tap, list(to, 1, "B16"))
	})
	k.op("B counted")
	k.label("single")
	k.count("one", func(tap, to int) { k.op("FMOVD (R%d)(R%d<<3), F%d", signAt, tap, to) })
	k.label("counted")
	if !k.sum {
		k.op("CMP $%d, R%d", fewSigns, signCount)
		k.op("BHI many")
		k.label("halffew")
		k.expand(4)
		k.inOrder()
		k.store("few", "words")
	}
	k.label("many")
	k.label("halfmany")
	k.expand(6)
	k.inOrder()
	k.store("many", "words")
}

// count adds the words of all taps to the planes: eight at a time, then four, then one.
func (k signKernel) count(name string, load func(tap, to int)) {
	const x = signX
	pair := func(to int) {
		k.op("LDP.P 16(R%d), (R%d, R%d)", signTap, signWord, signWord2)
		load(signWord, to)
		load(signWord2, to+1)
	}
	// add makes of three vectors of ones one of twos, in x, and one of ones, in the plane.
	add := func(x, y, plane int) {
		z := signPlanes + plane
		k.op("VEOR V%d.B16, V%d.B16, V%d.B16", x, y, y)
		k.op("VBIT V%d.B16, V%d.B16, V%d.B16", y, z, x)
		k.op("VEOR V%d.B16, V%d.B16, V%d.B16", y, z, z)
	}
	// carry adds x to the planes from one on.
	carry := func(x, plane int) {
		for ; plane < 5; plane++ {
			z, t := signPlanes+plane, x^1
			k.op("VAND V%d.B16, V%d.B16, V%d.B16", z, x, t)
			k.op("VEOR V%d.B16, V%d.B16, V%d.B16", z, x, z)
			x = t
		}
		k.op("VEOR V%d.B16, V%d.B16, V%d.B16", signPlanes+plane, x, signPlanes+plane)
	}
	l := func(what string) string { return name + what }
	k.op("SUBS $8, R%d, R%d", signCount, signTapsLeft)
	k.op("BLO %s", l("four"))
	k.label(l("eights"))
	for i := 0; i < 8; i += 2 {
		pair(x + i)
	}
	for i := 0; i < 8; i += 4 {
		add(x+i, x+i+1, 0)
		add(x+i+2, x+i+3, 0)
		add(x+i, x+i+2, 1)
	}
	add(x, x+4, 2)
	carry(x, 3)
	k.op("SUBS $8, R%d", signTapsLeft)
	k.op("BHS %s", l("eights"))
	k.label(l("four"))
	k.op("TBZ $2, R%d, %s", signTapsLeft, l("few")) // of the taps less 8
	pair(x)
	pair(x + 2)
	add(x, x+1, 0)
	add(x+2, x+3, 0)
	add(x, x+2, 1)
	carry(x, 2)
	k.label(l("few"))
	k.op("ANDS $3, R%d", signTapsLeft)
	k.op("BEQ %s", l("end"))
	k.label(l("tap"))
	k.op("MOVD.P 8(R%d), R%d", signTap, signWord)
	load(signWord, x)
	carry(x, 0)
	k.op("SUBS $1, R%d", signTapsLeft)
	k.op("BNE %s", l("tap"))
	k.label(l("end"))
}

// expand makes bytes of the planes of the lower half.
func (k signKernel) expand(planes int) {
	for p := range planes {
		x := signT + 4 + p%2
		k.op("VDUP V%d.D[0], V%d.D2", signPlanes+p, x)
		if p == 0 {
			k.test(x, signCounts)
			continue
		}
		k.test(x, signT)
		for r := range 4 {
			k.op("VSLI $%d, V%d.B16, V%d.B16", p, signT+r, signCounts+r)
		}
	}
	for r := range 4 {
		k.op("VAND V%d.B16, V%d.B16, V%d.B16", signMask, signCounts+r, signCounts+r)
	}
}

// test sets bytes of four vectors to all ones where the bits of x are set, a word in both
// halves.
func (k signKernel) test(x, to int) {
	for r := range 4 {
		k.op("VCMTST V%d.B16, V%d.B16, V%d.B16", signBits+r, x, to+r)
	}
}

// inOrder lays the counts out as the channels are, 16 in a vector: eight times eight bytes are
// transposed.
func (k signKernel) inOrder() {
	const c, t = signCounts, signT
	for r := range 2 { // bits 0 and 1, 2 and 3
		k.op("VTRN1 V%d.B16, V%d.B16, V%d.B16", c+2*r+1, c+2*r, t+2*r)
		k.op("VTRN2 V%d.B16, V%d.B16, V%d.B16", c+2*r+1, c+2*r, t+2*r+1)
	}
	for i := range 2 { // of bytes i and i + 2
		k.op("VTRN1 V%d.H8, V%d.H8, V%d.H8", t+2+i, t+i, c+i)
		k.op("VTRN2 V%d.H8, V%d.H8, V%d.H8", t+2+i, t+i, c+2+i)
	}
	for i := range 2 {
		k.op("VUZP1 V%d.S4, V%d.S4, V%d.S4", c+2*i+1, c+2*i, t+i)
		k.op("VUZP2 V%d.S4, V%d.S4, V%d.S4", c+2*i+1, c+2*i, t+2+i)
	}
}

// floats makes means, or sums, of 16 counts, in four vectors from the one it returns. They are
// the last bits of numbers from 2²³ on, of which 2²³ and the taps are subtracted. The reciprocal
// of the divisor has two parts, so a mean is 2⁻⁴⁶ of it off before it is rounded. The exact one
// is at least 2⁻²⁵ of it, divided by the divisor, from where rounding changes.
func (k signKernel) floats(counts int) int {
	const pairs, mean, x = signT + 4, signTable, signFloats
	k.word(0x2e200000|uint32(counts<<16|counts<<5|pairs), "uaddl v%d.8h, v%d.8b, v%d.8b", pairs, counts, counts)
	k.word(0x6e200000|uint32(counts<<16|counts<<5|(pairs+1)), "uaddl2 v%d.8h, v%d.16b, v%d.16b", pairs+1, counts, counts)
	for i := range 2 {
		k.op("VUADDW V%d.H4, V%d.S4, V%d.S4", pairs+i, signBase, x+2*i)
		k.op("VUADDW2 V%d.H8, V%d.S4, V%d.S4", pairs+i, signBase, x+2*i+1)
	}
	for i := range 4 {
		k.fsub(x+i, signSubtract, x+i)
	}
	if k.sum {
		return x
	}
	for i := range 4 {
		k.fmul(x+i, signRest, mean+i)
	}
	for i := range 4 {
		k.op("VFMLA V%d.S4, V%d.S4, V%d.S4", signReciprocal, x+i, mean+i)
	}
	return mean
}

// means is the first of the vectors of bytes of means.
func (k signKernel) means() int {
	if k.four {
		return signReciprocal // and what follows, which look-ups do without
	}
	return signFloats
}

// lookUp makes the bytes of means of 16 counts, for a store that takes turns.
func (k signKernel) lookUp(counts int) int {
	first := 0
	if k.four {
		first = 2
	}
	for b := first; b < 4; b++ {
		k.op("VTBL V%d.B16, [V%d.B16], V%d.B16", counts, signTable+b, k.means()+b)
	}
	return k.means()
}

// store stores what few or many counts make, for the channels that are left of a word, and
// goes on with the upper half of the planes or at next.
func (k signKernel) store(name, next string) {
	store, lanes, make := "VST4", "B16", k.lookUp
	if name == "many" {
		store, lanes, make = "VST1", "S4", k.floats
	}
	last := func(g int) string { return fmt.Sprintf("%s%d", name, g) }
	for g := range 4 {
		k.op("CMP $16, R%d", signLeft)
		k.op("BLO %s", last(g))
		means := make(signT + g)
		if k.sum {
			k.op("VLD1 (R%d), %s", signOut, list(signTable, 4, "S4"))
			for i := range 4 {
				k.fadd(means+i, signTable+i, means+i)
			}
		}
		k.op("%s.P %s, 64(R%d)", store, list(means, 4, lanes), signOut)
		k.op("SUB $16, R%d", signLeft)
	}
	if k.four {
		k.op("CBNZ R%d, %s", signLeft, next)
		k.op("B next")
	} else {
		k.op("CBZ R%d, next", signLeft)
		k.op("CBZ R%d, %s", signMore, name+"more")
		k.op("MOVD ZR, R%d", signMore)
		for p := range 6 {
			k.op("VDUP V%d.D[1], V%d.D2", signPlanes+p, signPlanes+p)
		}
		k.op("B half%s", name)
		k.label(name + "more")
		k.op("ADD $16, R%d", signAt)
		k.op("B %s", next)
	}
	for g := range 4 {
		k.label(last(g))
		k.op("CBZ R%d, next", signLeft)
		k.op("%s %s, (R%d)", store, list(make(signT+g), 4, lanes), signFrame)
		k.op("B tail")
	}
}

func (k signKernel) clear(first, n int) {
	for i := range n {
		k.zero(first + i)
	}
}
