package main

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// float writes the ordered sums of float32 values.
func (a *asm) float() {
	a.fmaPixels(1, 16, 4) // four vectors are too few for the latency
	for _, vectors := range []int{4, 1} {
		for pixels := 4; pixels > 0; pixels-- {
			a.fmaPixels(pixels, vectors, 1)
		}
	}
	for _, vectors := range []int{4, 1} {
		for pixels := 3; pixels > 0; pixels-- {
			a.fmaEach(pixels, vectors)
		}
	}
	a.fmaEach(1, 0)
	for _, taps := range []int{3, 5} {
		for stride := range 2 {
			for pixels := 8; pixels > 2; pixels-- {
				a.fmaSlide(pixels, taps, stride+1)
			}
		}
	}
	a.blend()
	a.blendRows()
}

// Registers of the kernels: the job, its runs, and for every pixel its patch and
// the values in hand.
const (
	fmaDst, fmaRuns, fmaCount, fmaOut  = 1, 2, 3, 4 // fmaOut: where sums are stored
	fmaPatch, fmaValue                 = 5, 9       // four each
	fmaLeft, fmaWeights, fmaTap, fmaT0 = 13, 14, 15, 16
	fmaBlocks                          = 19 // four pointers
	fmaSrc                             = 23
	fmaNext, fmaNextStep               = 20, 21
	fmaChannel, fmaBlock               = 24, 25 // bytes from the first channel; weights of the block
)

// fmaJob writes a kernel behind an FMAJob for pixels × vectors of outputs, 0
// vectors being one output: body adds what belongs to a run. The outputs of sums of each
// channel, and of means, are blocks of so many vectors, one after the other.
func (a *asm) fmaJob(kind string, pixels, vectors int, what []string, body func()) {
	outputs, mean := max(4*vectors, 1), kind == "mean"
	blocks := vectors >= 4 && kind != "fmaPixels"
	name := fmt.Sprintf("%s%dx%dNEON", kind, pixels, outputs)
	text := fmt.Sprint(outputs)
	switch {
	case blocks:
		text = "a multiple of " + text
	case vectors == 1 && kind != "fmaEach":
		text = "at most 4"
	}
	end := "and takes the pixels off the job."
	if !mean && vectors > 0 {
		end = "and the end of that, which is for all 4 outputs, " + end
		if vectors > 1 {
			end = "and the end of that, and takes the pixels off the job."
		}
	}
	doc := []string{fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %s outputs o,", name, pixels, text)}
	a.function(name, "job *uint8", 0, 8, append(append(doc, what...), "", end)...)
	a.op("MOVD job+0(FP), R0")
	a.op("MOVD %d(R0), R%d", gen.FMATap, fmaTap)
	a.op("MOVD %d(R0), R%d", gen.TileDst, fmaDst)
	a.op("MOVD %d(R0), R%d", gen.TileSrc, fmaSrc)
	a.label("next")
	a.op("MOVD %d(R0), R%d", gen.TilePixels, fmaT0)
	a.op("SUBS $%d, R%d", pixels, fmaT0)
	a.op("BLT done")
	a.op("MOVD R%d, %d(R0)", fmaT0, gen.TilePixels)
	a.op("MOVD %d(R0), R%d", gen.TileStep, fmaT0)
	for p := range pixels {
		a.op("MOVD R%d, R%d", fmaSrc, fmaPatch+p)
		a.op("ADD R%d, R%d", fmaT0, fmaSrc)
	}
	if kind == "fmaPixels" && vectors == 4 {
		a.fmaAhead(pixels)
	}
	if blocks {
		a.op("MOVD ZR, R%d", fmaChannel)
		if !mean {
			a.op("MOVD %d(R0), R%d", gen.TileWeights, fmaBlock)
		}
		a.label("channels")
	}
	if mean {
		for v := range max(pixels*vectors, 1) {
			a.zero(v)
		}
	} else {
		a.op("MOVD %d(R0), R%d", gen.FMABias, fmaT0)
		if blocks {
			a.op("ADD R%d, R%d", fmaChannel, fmaT0)
		}
		a.fmaBias(pixels, vectors)
	}
	a.op("MOVD %d(R0), R%d", gen.FMARuns, fmaRuns)
	a.op("MOVD %d(R0), R%d", gen.FMACount, fmaCount)
	a.op("CBZ R%d, store", fmaCount)
	a.label("run")
	a.op("LDP.P 16(R%d), (R%d, R%d)", fmaRuns, fmaT0, fmaWeights)
	for p := range pixels {
		a.op("ADD R%d<<2, R%d, R%d", fmaT0, fmaPatch+p, fmaValue+p)
	}
	if vectors == 4 {
		a.fmaNext(pixels, kind == "fmaPixels", blocks)
	}
	switch {
	case blocks && !mean:
		a.op("MADD R%d, R%d, R%d, R%d", fmaTap, fmaBlock, fmaWeights, fmaWeights)
	case !mean:
		a.op("MOVD %d(R0), R%d", gen.TileWeights, fmaT0)
		a.op("MADD R%d, R%d, R%d, R%d", fmaTap, fmaT0, fmaWeights, fmaWeights)
	}
	body()
	a.op("SUBS $1, R%d", fmaCount)
	a.op("BNE run")
	a.label("store")
	switch {
	case mean:
		a.meanEnd(max(pixels*vectors, 1))
	case blocks:
		a.fmaEnd(pixels, vectors, fmaChannel, fmaT0, fmaWeights)
	case vectors > 0:
		a.fmaEnd(pixels, vectors, -1, fmaT0, fmaWeights)
	}
	a.op("MOVD %d(R0), R%d", gen.TileDstStep, fmaT0)
	if blocks {
		a.op("ADD R%d, R%d, R%d", fmaChannel, fmaDst, fmaOut)
	} else {
		a.op("MOVD R%d, R%d", fmaDst, fmaOut)
	}
	if vectors == 1 {
		a.op("MOVD %d(R0), R%d", gen.FMAOutputs, fmaLeft)
	}
	for p := range pixels {
		switch vectors {
		case 0:
			a.op("FMOVS F0, (R%d)", fmaOut)
		case 1:
			a.storeFirst(p)
		default:
			a.op("MOVD R%d, R%d", fmaOut, fmaValue)
			for v := 0; v < vectors; v += 4 {
				a.op("VST1.P %s, 64(R%d)", list(p*vectors+v, 4, "S4"), fmaValue)
			}
		}
		a.op("ADD R%d, R%d", fmaT0, fmaOut)
	}
	if blocks {
		a.op("MOVD %d(R0), R%d", gen.FMAOutputs, fmaT0)
		a.op("ADD $%d, R%d", 16*vectors, fmaChannel)
		for p := range pixels {
			a.op("ADD $%d, R%d", 16*vectors, fmaPatch+p)
		}
		if !mean {
			a.op("MOVD %d(R0), R%d", gen.FMABlock, fmaWeights)
			a.op("ADD R%d, R%d", fmaWeights, fmaBlock)
		}
		a.op("CMP R%d<<2, R%d", fmaT0, fmaChannel)
		a.op("BLT channels")
		a.op("SUB R%d, R%d", fmaChannel, fmaOut)
		a.op("ADD $%d, R%d", 16*vectors, fmaOut)
	}
	a.op("MOVD R%d, R%d", fmaOut, fmaDst)
	a.op("B next")
	a.label("done")
	a.op("MOVD R%d, %d(R0)", fmaDst, gen.TileDst)
	a.op("MOVD R%d, %d(R0)", fmaSrc, gen.TileSrc)
	a.op("RET")
}

// fmaNext asks for the values of a run of the next pixels, which may be far from those in
// hand: for the first ones, or the last of each, where windows overlap; from fmaChannel on
// where there are blocks of channels.
func (a *asm) fmaNext(pixels int, last, blocks bool) {
	a.op("ADD R%d<<2, R%d, R%d", fmaT0, fmaSrc, fmaNext)
	if blocks {
		a.op("ADD R%d, R%d", fmaChannel, fmaNext)
	}
	if last {
		a.op("MOVD %d(R0), R%d", gen.FMARun, fmaNextStep)
		a.op("ADD R%d<<2, R%d", fmaNextStep, fmaNext)
		a.op("SUB $4, R%d", fmaNext)
	}
	a.op("MOVD %d(R0), R%d", gen.TileStep, fmaNextStep)
	for range pixels {
		a.op("PRFM (R%d), PLDL1KEEP", fmaNext)
		a.op("ADD R%d, R%d", fmaNextStep, fmaNext)
	}
}

// fmaAhead asks for the lines that the sums go to where those of pixels are far from each
// other.
func (a *asm) fmaAhead(pixels int) {
	a.op("MOVD %d(R0), R%d", gen.TileDstStep, fmaT0)
	a.op("CMP $%d, R%d", lineReach, fmaT0)
	a.op("BLS near")
	at := fmaDst
	for p := range pixels {
		if p > 0 {
			a.op("ADD R%d, R%d, R%d", fmaT0, at, fmaValue)
			at = fmaValue
		}
		a.op("PRFM (R%d), PSTL1KEEP", at)
	}
	a.label("near")
}

// lineReach is the distance in bytes up to which processors find the next line themselves.
const lineReach = 4 * 64

// fmaBias starts sums from the biases that fmaT0 points to.
func (a *asm) fmaBias(pixels, vectors int) {
	if vectors == 0 {
		a.op("FMOVS (R%d), F0", fmaT0)
	}
	for v := 0; v < vectors; v += 4 {
		a.op("VLD1.P %d(R%d), %s", 16*min(vectors, 4), fmaT0, list(v, min(vectors, 4), "S4"))
	}
	for v := vectors; v < pixels*vectors; v++ {
		a.op("VMOV V%d.B16, V%d.B16", v%vectors, v)
	}
}

// fmaEnd writes the end of sums, pixel by pixel, in the registers from 0 on: scale, shift,
// slopes and bounds are those of the job, of the channels from so many bytes on in a
// register, if that is not −1. t and t2 are registers for addresses.
func (a *asm) fmaEnd(pixels, vectors, channel, t, t2 int) {
	const factor, term, value, mask, low, high = 16, 20, 24, 28, 24, 25
	each := min(vectors, 4)
	some := func(disp int, what string, body func()) {
		a.op("MOVD %d(R0), R%d", disp, t)
		a.op("CBZ R%d, %s", t, what)
		body()
		a.label(what)
	}
	at := func(t int) {
		if channel >= 0 {
			a.op("ADD R%d, R%d", channel, t)
		}
	}
	// sums are those of the pixels whose channels the vectors from first on are.
	sums := func(first int, do func(i, acc int)) {
		for p := range pixels {
			for i := range each {
				do(i, p*vectors+first+i)
			}
		}
	}
	some(gen.FMAScale, "scaled", func() {
		a.op("MOVD %d(R0), R%d", gen.FMAShift, t2)
		at(t)
		at(t2)
		for first := 0; first < vectors; first += each {
			a.op("VLD1.P %d(R%d), %s", 16*each, t, list(factor, each, "S4"))
			a.op("VLD1.P %d(R%d), %s", 16*each, t2, list(term, each, "S4"))
			n := 0
			sums(first, func(i, acc int) {
				to := value + n%8
				n++
				a.op("VMOV V%d.B16, V%d.B16", term+i, to)
				a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", factor+i, acc, to)
				a.op("VMOV V%d.B16, V%d.B16", to, acc)
			})
		}
	})
	some(gen.FMASlope, "sloped", func() {
		at(t)
		for first := 0; first < vectors; first += each {
			a.op("VLD1.P %d(R%d), %s", 16*each, t, list(factor, each, "S4"))
			sums(first, func(i, acc int) {
				a.fmul(acc, factor+i, value+i)
				a.fcmlt0(acc, mask+i)
				a.op("VBIT V%d.B16, V%d.B16, V%d.B16", mask+i, value+i, acc)
			})
		}
	})
	some(gen.FMAClip, "clipped", func() {
		for i, disp := range []int{gen.FMALow, gen.FMAHigh} {
			a.op("MOVWU %d(R0), R%d", disp, t)
			a.op("VDUP R%d, V%d.S4", t, low+i)
		}
		n := 0
		for acc := range pixels * vectors {
			m := mask + n%4
			n++
			a.fcmgt(low, acc, m)
			a.op("VBIT V%d.B16, V%d.B16, V%d.B16", m, low, acc)
			a.fcmgt(acc, high, m)
			a.op("VBIT V%d.B16, V%d.B16, V%d.B16", m, high, acc)
		}
	})
}

// meanEnd divides sums by the number of taps.
func (a *asm) meanEnd(sums int) {
	const taps, y, q = 28, 29, 30
	a.op("MOVWU %d(R0), R%d", gen.MeanTaps, fmaT0)
	a.op("VDUP R%d, V%d.S4", fmaT0, taps)
	a.op("MOVWU %d(R0), R%d", gen.MeanReciprocal, fmaT0)
	a.op("VDUP R%d, V%d.S4", fmaT0, y)
	for v := range sums {
		a.fmul(v, y, q)
		a.op("VFMLS V%d.S4, V%d.S4, V%d.S4", taps, q, v)
		a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", y, v, q)
		a.op("VMOV V%d.B16, V%d.B16", q, v)
	}
}

// means writes the means of windows, for pixels × vectors of channels, or one
// channel.
func (a *asm) means() {
	for _, vectors := range []int{4, 1} {
		for pixels := 3; pixels > 0; pixels-- {
			a.mean(pixels, vectors)
		}
	}
	a.mean(1, 0)
	a.mean(1, 16) // four vectors are too few for the latency
}

func (a *asm) mean(pixels, vectors int) {
	a.fmaJob("mean", pixels, vectors, gen.MeanDoc, func() {
		const x = 12
		if vectors == 0 {
			a.op("FMOVS (R%d), F%d", fmaValue, x)
			a.fadd(0, x, 0)
			return
		}
		if vectors == 16 {
			for v := 0; v < vectors; v += 4 {
				a.op("VLD1.P 64(R%d), %s", fmaValue, list(16+v, 4, "S4"))
			}
			for v := range vectors {
				a.fadd(v, 16+v, v)
			}
			return
		}
		for p := range pixels {
			a.op("VLD1 (R%d), %s", fmaValue+p, list(x+p*vectors, vectors, "S4"))
		}
		for v := range pixels * vectors {
			a.fadd(v, x+v, v)
		}
	})
}

// storeFirst stores as many lanes of vector v as the job has outputs.
func (a *asm) storeFirst(v int) {
	l := func(name string) string { return fmt.Sprintf("%s%d", name, v) }
	a.op("TBZ $2, R%d, %s", fmaLeft, l("part"))
	a.op("VST1 %s, (R%d)", list(v, 1, "S4"), fmaOut)
	a.op("B %s", l("stored"))
	a.label(l("part"))
	a.op("TBZ $1, R%d, %s", fmaLeft, l("one"))
	a.op("FMOVD F%d, (R%d)", v, fmaOut)
	a.op("TBZ $0, R%d, %s", fmaLeft, l("stored"))
	a.op("VMOV V%d.S[2], R%d", v, fmaValue)
	a.op("MOVW R%d, 8(R%d)", fmaValue, fmaOut)
	a.op("B %s", l("stored"))
	a.label(l("one"))
	a.op("FMOVS F%d, (R%d)", v, fmaOut)
	a.label(l("stored"))
}

// fmaPixels writes the sums of pixels × vectors of outputs. The vectors are in
// one block of weights, or in four.
func (a *asm) fmaPixels(pixels, vectors, blocks int) {
	const x, w = 20, 24
	a.fmaJob("fmaPixels", pixels, vectors, gen.PixelsDoc, func() {
		a.op("MOVD %d(R0), R%d", gen.FMARun, fmaLeft)
		if blocks > 1 {
			a.op("MOVD %d(R0), R%d", gen.FMABlock, fmaT0)
			a.op("MOVD R%d, R%d", fmaWeights, fmaBlocks)
			for b := 1; b < blocks; b++ {
				a.op("ADD R%d, R%d, R%d", fmaT0, fmaBlocks+b-1, fmaBlocks+b)
			}
		}
		weights := func(b, set int) {
			from := fmaWeights
			if blocks > 1 {
				from = fmaBlocks + b
			}
			a.op("VLD1.P (R%d)(R%d), %s", from, fmaTap, list(set, vectors/blocks, "S4"))
		}
		each := vectors / blocks
		// Four taps at a time: a load that spreads a value over a vector would take a slot
		// of a unit that multiplies.
		a.op("SUBS $4, R%d", fmaLeft)
		a.op("BLT few")
		a.label("fours")
		for p := range pixels {
			a.op("VLD1.P 16(R%d), %s", fmaValue+p, list(x+p, 1, "S4"))
		}
		weights(0, w)
		for i := range 4 * blocks {
			set := w + i%2*4
			for p := range pixels {
				for v := range each {
					a.fmlaLane(x+p, i/blocks, set+v, p*vectors+i%blocks*each+v)
					if p+v == 0 && i+1 < 4*blocks { // early, for cores that wait for loads
						weights((i+1)%blocks, w+w+4-set)
					}
				}
			}
		}
		a.op("SUBS $4, R%d", fmaLeft)
		a.op("BGE fours")
		a.label("few")
		a.op("ADDS $4, R%d", fmaLeft)
		a.op("BEQ summed")
		a.label("tap")
		for p := range pixels {
			a.op("VLD1R.P 4(R%d), %s", fmaValue+p, list(x+p, 1, "S4"))
		}
		for b := range blocks {
			set := w + b%2*4
			weights(b, set)
			for p := range pixels {
				for v := range each {
					a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", x+p, set+v, p*vectors+b*each+v)
				}
			}
		}
		a.op("SUBS $1, R%d", fmaLeft)
		a.op("BNE tap")
		a.label("summed")
	})
}

// fmaEach writes the sums of depthwise convolutions, for pixels × vectors of
// channels, or one channel.
func (a *asm) fmaEach(pixels, vectors int) {
	a.fmaJob("fmaEach", pixels, vectors, gen.EachDoc, func() {
		if vectors == 0 {
			a.op("FMOVS (R%d), F1", fmaValue)
			a.op("FMOVS (R%d), F2", fmaWeights)
			a.op("FMADDS F1, F0, F2, F0")
			return
		}
		const w, x = 12, 16
		a.op("VLD1 (R%d), %s", fmaWeights, list(w, vectors, "S4"))
		for p := range pixels {
			a.op("VLD1 (R%d), %s", fmaValue+p, list(x+p*vectors, vectors, "S4"))
		}
		for p := range pixels {
			for v := range vectors {
				a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", x+p*vectors+v, w+v, p*vectors+v)
			}
		}
	})
}

// fmaSlide writes the sums of depthwise convolutions with rows of so many taps, of which
// as many as the stride are as far apart as the pixels, for pixels × 8 channels, one after
// the other: what has been loaded is multiplied by the weights of all taps that it belongs
// to.
func (a *asm) fmaSlide(pixels, taps, stride int) {
	const (
		dst, runs, count, x, step, src, pixelsLeft = 1, 2, 3, 4, 5, 6, 7
		tap, weights, dstStep, t0, channel, column = 8, 9, 10, 11, 12, 13
		out, t1, outputs                           = 14, 15, 16
		w                                          = 16 // vectors
	)
	values := w + 2*taps // pairs
	pairs := (32 - values) / 2
	name := fmt.Sprintf("fmaSlide%d_%dx8NEON", taps, pixels)
	if stride > 1 {
		name = fmt.Sprintf("fmaSlide%ds%d_%dx8NEON", taps, stride, pixels)
	}
	doc := []string{fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of a multiple of 8 outputs o,", name, pixels)}
	apart := "a step apart"
	if stride > 1 {
		apart = "half a step apart"
	}
	a.function(name, "job *uint8", 0, 8, append(append(doc, gen.EachDoc...), "",
		fmt.Sprintf("for rows of %d runs that are %s and of consecutive taps, and the end of", taps, apart),
		"that, and takes the pixels off the job.")...)
	a.op("MOVD job+0(FP), R0")
	for _, f := range [][2]int{
		{gen.TileDst, dst}, {gen.TileStep, step}, {gen.TileSrc, src}, {gen.TilePixels, pixelsLeft},
		{gen.FMATap, tap}, {gen.TileDstStep, dstStep}, {gen.FMAOutputs, outputs},
	} {
		a.op("MOVD %d(R0), R%d", f[0], f[1])
	}
	a.op("LSL $2, R%d", outputs)
	if stride == 1 {
		a.op("MOVD R%d, R%d", step, column)
	} else {
		a.op("LSR $1, R%d, R%d", step, column)
	}
	a.label("next")
	a.op("CMP $%d, R%d", pixels, pixelsLeft)
	a.op("BLT done")
	a.op("SUB $%d, R%d", pixels, pixelsLeft)
	a.op("MOVD %d(R0), R%d", gen.TileWeights, weights)
	a.op("MOVD ZR, R%d", channel)
	a.label("channels")
	a.op("MOVD %d(R0), R%d", gen.FMABias, t0)
	a.op("ADD R%d, R%d", channel, t0)
	a.op("VLD1 (R%d), %s", t0, list(0, 2, "S4"))
	for v := 2; v < 2*pixels; v++ {
		a.op("VMOV V%d.B16, V%d.B16", v%2, v)
	}
	a.op("MOVD %d(R0), R%d", gen.FMARuns, runs)
	a.op("MOVD %d(R0), R%d", gen.FMACount, count)
	a.label("row")
	a.op("LDP (R%d), (R%d, R%d)", runs, x, t0)
	a.op("ADD R%d<<2, R%d, R%d", x, channel, x)
	a.op("ADD R%d, R%d", src, x)
	a.op("MADD R%d, R%d, R%d, R%d", t0, weights, tap, t0)
	columns := (pixels-1)*stride + taps
	load := func(j int) {
		a.op("VLD1.P (R%d)(R%d), %s", x, column, list(values+j%pairs*2, 2, "S4"))
	}
	const ahead = 2 // columns, for cores that wait for loads
	for k := range taps {
		a.op("VLD1.P (R%d)(R%d), %s", t0, tap, list(w+2*k, 2, "S4"))
		if k < ahead {
			load(k)
		}
	}
	for j := range columns {
		if j+ahead < columns {
			load(j + ahead)
		}
		for k := range taps {
			if p := (j - k) / stride; j >= k && (j-k)%stride == 0 && p < pixels {
				for v := range 2 {
					a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", values+j%pairs*2+v, w+2*k+v, 2*p+v)
				}
			}
		}
	}
	a.op("ADD $%d, R%d", 16*taps, runs)
	a.op("SUBS $%d, R%d", taps, count)
	a.op("BNE row")
	a.fmaEnd(pixels, 2, channel, t0, t1)
	a.op("ADD R%d, R%d, R%d", channel, dst, out)
	for p := range pixels {
		a.op("VST1.P %s, (R%d)(R%d)", list(2*p, 2, "S4"), out, dstStep)
	}
	a.op("ADD $32, R%d", channel)
	a.op("ADD $32, R%d", weights)
	a.op("TST $63, R%d", channel)
	a.op("BNE block")
	a.op("MOVD %d(R0), R%d", gen.FMABlock, t0)
	a.op("SUB $64, R%d", weights)
	a.op("ADD R%d, R%d", t0, weights)
	a.label("block")
	a.op("CMP R%d, R%d", outputs, channel)
	a.op("BLT channels")
	a.op("SUB R%d, R%d, R%d", channel, out, dst)
	a.op("ADD $32, R%d", dst)
	a.op("MOVD $%d, R%d", pixels, t0)
	a.op("MADD R%d, R%d, R%d, R%d", t0, src, step, src)
	a.op("B next")
	a.label("done")
	a.op("MOVD R%d, %d(R0)", dst, gen.TileDst)
	a.op("MOVD R%d, %d(R0)", src, gen.TileSrc)
	a.op("MOVD R%d, %d(R0)", pixelsLeft, gen.TilePixels)
	a.op("RET")
}

// blend writes the kernel of weighted sums of pixels.
func (a *asm) blend() {
	const (
		dst, src, rows, rowCount, cols, colBytes, pixels, left = 1, 2, 3, 4, 5, 6, 7, 8
		row, rowLeft, base, col, colEnd, at                    = 9, 10, 11, 12, 13, 14
		x, rowWeight, weight                                   = 16, 28, 29 // vectors
	)
	a.function("blendNEON", "job *uint8", 0, 8, "blendNEON writes the pixels of a BlendJob.")
	a.op("MOVD job+0(FP), R0")
	for _, f := range [][2]int{
		{gen.BlendDst, dst}, {gen.BlendSrc, src}, {gen.BlendRows, rows}, {gen.BlendRowCount, rowCount},
		{gen.BlendCols, cols}, {gen.BlendColBytes, colBytes}, {gen.BlendPixels, pixels},
	} {
		a.op("MOVD %d(R0), R%d", f[0], f[1])
	}
	a.label("pixel")
	a.op("MOVD %d(R0), R%d", gen.BlendBytes, left)
	a.op("ADD R%d, R%d, R%d", colBytes, cols, colEnd)
	for _, vectors := range []int{8, 4, 1, 0} { // 0: one value
		l := func(name string) string { return fmt.Sprintf("%s%d", name, vectors) }
		bytes := max(16*vectors, 4)
		a.label(l("some"))
		a.op("CMP $%d, R%d", bytes, left)
		a.op("BLT %s", l("done"))
		for v := range max(vectors, 1) {
			a.zero(v)
		}
		a.op("MOVD R%d, R%d", rows, row)
		a.op("MOVD R%d, R%d", rowCount, rowLeft)
		a.label(l("row"))
		a.op("MOVD %d(R%d), R%d", gen.BlendTapOffset, row, base)
		a.op("FMOVS %d(R%d), F%d", gen.BlendTapWeight, row, rowWeight)
		a.op("ADD $%d, R%d", gen.BlendTapSize, row)
		a.op("ADD R%d, R%d", src, base)
		a.op("MOVD R%d, R%d", cols, col)
		a.label(l("col"))
		a.op("MOVD %d(R%d), R%d", gen.BlendTapOffset, col, at)
		a.op("FMOVS %d(R%d), F%d", gen.BlendTapWeight, col, weight)
		a.op("ADD $%d, R%d", gen.BlendTapSize, col)
		a.op("FMULS F%d, F%d, F%d", rowWeight, weight, weight)
		a.op("ADD R%d, R%d", base, at)
		if vectors == 0 {
			a.op("FMOVS (R%d), F%d", at, x)
			a.op("FMADDS F%d, F0, F%d, F0", x, weight)
		} else {
			a.op("VDUP V%d.S[0], V%d.S4", weight, weight)
			for v := 0; v < vectors; v += 4 {
				each := min(vectors, 4)
				a.op("VLD1.P %d(R%d), %s", 16*each, at, list(x+v, each, "S4"))
			}
			for v := range vectors {
				a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", weight, x+v, v)
			}
		}
		a.op("CMP R%d, R%d", colEnd, col)
		a.op("BNE %s", l("col"))
		a.op("SUBS $1, R%d", rowLeft)
		a.op("BNE %s", l("row"))
		if vectors == 0 {
			a.op("FMOVS.P F0, 4(R%d)", dst)
		}
		for v := 0; v < vectors; v += 4 {
			each := min(vectors, 4)
			a.op("VST1.P %s, %d(R%d)", list(v, each, "S4"), 16*each, dst)
		}
		a.op("ADD $%d, R%d", bytes, src)
		a.op("SUB $%d, R%d", bytes, left)
		a.op("B %s", l("some"))
		a.label(l("done"))
	}
	a.op("MOVD %d(R0), R%d", gen.BlendBytes, left)
	a.op("SUB R%d, R%d", left, src)
	a.op("MOVD R%d, R%d", colEnd, cols)
	a.op("SUBS $1, R%d", pixels)
	a.op("BNE pixel")
	a.op("RET")
}
