package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// weights is how the weights of a convolution lie in memory.
type weights int

const (
	signs   weights = iota // bits of ±1, which become bytes on the way
	nibbles                // numbers of 4 bits, of values that they become on the way
	bytes                  // int8
)

// result is what a convolution writes.
type result int

const (
	packed result = iota // bits of thresholded sums
	sums                 // int32
	affine               // float32: sums times a scale, plus a shift
	floats               // float32: ended sums and what is added to them
	levels               // bytes: the numbers of the levels of ended sums
)

const (
	tileBytes = 1024
	// mostTiles is the number of tiles of pixels that are multiplied by one of weights.
	mostTiles = 4
	// ring is the number of tiles of weights that lie ready as bytes, and ahead how many of
	// them are made before they are multiplied: a load of a tile waits until what was stored
	// there has left the store buffer, and that is in order.
	ring, ahead = 4, 3
	// rowsOfTile is the number of rows of sums that are ended behind each product of a tile.
	rowsOfTile = 2
)

// Tiles by use: 0 to 3 have sums. The last tile of pixels may have fewer rows than others.
const pixelsEven, pixelsOdd, pixelsLast, weightsTile = 4, 5, 6, 7

// convolution is the state of a kernel while it is written.
type convolution struct {
	weights
	result
	job reg.Register

	w           reg.GPVirtual // weights
	from, to    reg.GPVirtual // of the ring: what is multiplied, and what is made
	tap, offset reg.GPVirtual

	// The rows of sums that are to be ended, of the pixels and the panel before.
	pixel, dst, sums, table reg.GPVirtual

	masks              [8]reg.VecVirtual // that pick a bit of each byte
	eight              reg.VecVirtual    // weights of eight rows of a tile
	values, low4       reg.VecVirtual    // of numbers, and the bits of one in each byte
	shift              reg.VecVirtual    // of sums, in bits
	scale, move, slope reg.VecVirtual
	low, high, zero    reg.VecVirtual
	level, levelMove   reg.VecVirtual
	rest               reg.VecVirtual // of the scales of levels
	least, most, first reg.VecVirtual
	scale2, move2      reg.VecVirtual
	low2, high2        reg.VecVirtual

	labels int
}

func convs() {
	for _, w := range []weights{signs, nibbles, bytes} {
		for _, r := range []result{packed, sums, affine, floats, levels} {
			conv(w, r)
		}
	}
}

func (c *convolution) field(offset int) Mem { return Mem{Base: c.job, Disp: offset} }

func (c *convolution) label(what string) string {
	c.labels++
	return fmt.Sprint(what, c.labels)
}

// copyField copies a field through a register.
func (c *convolution) copyField(to, from int) {
	r := GP64()
	MOVQ(c.field(from), r)
	MOVQ(r, c.field(to))
}

func conv(w weights, r result) {
	c := &convolution{weights: w, result: r}
	name := [...]string{"convSigns", "convNibbles", "convBytes"}[w] + [...]string{"Bits", "Sums", "Affine", "Floats", "Levels"}[r] + "AMX"
	TEXT(name, NOSPLIT, "func(job *byte)")
	what := [...]string{
		"bit o of dst[p] = c[o] ≥ table[class[p]][o], XOR flip",
		"dst[p][o] = (c[o] << shift) + table[class[p]][o]",
		"dst[p][o] = fma(float32((c[o] << shift) + table[class[p]][o]), scale[o], shift[o])",
		"dst[p][o] = end of float32((c[o] << shift) + table[class[p]][o]), or then of the sum of that and what is added",
		"dst[p][o] = level of the end of float32((c[o] << shift) + table[class[p]][o]), or of the sum of that and a byte, scaled",
	}[r]
	Doc(name+" computes, for every pixel p of every block of a MatrixJob and each of its outputs o,",
		"",
		"\tc[o] = Σ over steps s and i < 64 of (src + tile of p + taps[s])[line·row of p + i]·w[s][o][i]",
		"\t"+what)
	Pragma("noescape")
	c.job = Load(Param("job"), GP64())
	MOVQ(U32(64), reg.RBX)
	MOVQ(c.field(gen.MatrixLine), reg.RCX)
	LEAQ(c.field(gen.MatrixConfig), reg.RAX)
	loadConfig()
	c.start()

	Label("block")
	c.block()
	for tiles := 1; tiles <= mostTiles; tiles++ {
		Label(fmt.Sprint("tiles", tiles))
		c.panels(tiles)
		if tiles < mostTiles {
			JMP(LabelRef("next"))
		}
	}
	Label("next")
	ADDQ(U8(gen.MatrixBlockSize), c.field(gen.MatrixBlocks))
	DECQ(c.field(gen.MatrixCount))
	JNE(LabelRef("block"))
	c.drain()
	release()
	VZEROUPPER()
	RET()
}

// start loads what stays in registers, and makes the first weights.
func (c *convolution) start() {
	c.w, c.from, c.to, c.tap, c.offset = GP64(), GP64(), GP64(), GP64(), GP64()
	for _, r := range []*reg.GPVirtual{&c.pixel, &c.dst, &c.sums, &c.table} {
		*r = GP64()
		XORQ(*r, *r)
	}
	MOVQ(c.pixel, c.field(gen.MatrixPendingEnd))
	MOVQ(c.field(gen.MatrixWeights), c.w)
	switch c.weights {
	case signs:
		value := GP64()
		for j := range c.masks {
			// Bits 1 to 7 of a product are bit j, and bit 0 is none: with all of them inverted
			// that is 1 where bit j is set, else −1.
			MOVQ(U64(0x0001010101010101<<j), value)
			c.masks[j] = ZMM()
			VPBROADCASTQ(value, c.masks[j])
		}
		c.eight = ZMM()
	case nibbles:
		value := GP64()
		c.values, c.low4 = ZMM(), ZMM()
		MOVQ(c.field(gen.MatrixValues), value)
		VMOVDQU8(Mem{Base: value}, c.values)
		MOVQ(U32(0x0f0f0f0f), value)
		VPBROADCASTD(value.As32(), c.low4)
	}
	if c.weights != bytes {
		MOVQ(c.field(gen.MatrixRing), c.from)
		MOVQ(c.from, c.to)
		for range ahead {
			c.expand(0, 16)
			c.advance()
		}
		MOVQ(c.field(gen.MatrixRing), c.from)
	}
	if c.result != packed {
		c.shift = ZMM()
		VPBROADCASTD(c.field(gen.MatrixSumShift), c.shift)
	}
	if c.result >= affine {
		for _, v := range []*reg.VecVirtual{&c.scale, &c.move, &c.slope, &c.low, &c.high, &c.zero} {
			*v = ZMM()
			VPXORD(*v, *v, *v)
		}
		VBROADCASTSS(c.field(gen.MatrixLow), c.low)
		VBROADCASTSS(c.field(gen.MatrixHigh), c.high)
	}
	if c.result == floats || c.result == levels {
		for _, v := range []*reg.VecVirtual{&c.scale2, &c.move2, &c.low2, &c.high2} {
			*v = ZMM()
			VPXORD(*v, *v, *v)
		}
		VBROADCASTSS(c.field(gen.MatrixLow2), c.low2)
		VBROADCASTSS(c.field(gen.MatrixHigh2), c.high2)
	}
	if c.result == levels {
		for _, v := range []*reg.VecVirtual{&c.level, &c.levelMove, &c.rest, &c.least, &c.most, &c.first} {
			*v = ZMM()
			VPXORD(*v, *v, *v)
		}
		VBROADCASTSS(c.field(gen.MatrixLeast), c.least)
		VBROADCASTSS(c.field(gen.MatrixMost), c.most)
		VPBROADCASTD(c.field(gen.MatrixOffset), c.first)
	}
}

// expand makes bytes of some rows of the next tile of weights.
func (c *convolution) expand(from, to int) {
	for row := from; row < to; row++ {
		if c.weights == nibbles {
			b, eight := ZMM(), Mem{Base: c.w, Disp: 64 * (row % 8)}
			if row < 8 {
				VPANDD(eight, c.low4, b)
			} else {
				VPSRLW(U8(4), eight, b)
				VPANDD(b, c.low4, b)
			}
			VPSHUFB(b, c.values, b)
			VMOVDQU8(b, Mem{Base: c.to, Disp: 64 * row})
			continue
		}
		if row%8 == 0 {
			VMOVDQU8(Mem{Base: c.w, Disp: 64 * (row / 8)}, c.eight)
		}
		b := ZMM()
		VGF2P8AFFINEQB(U8(0xff), c.masks[row%8], c.eight, b)
		VMOVDQU8(b, Mem{Base: c.to, Disp: 64 * row})
	}
}

// advance goes on behind a tile of weights that was made. Behind the last one of all panels
// comes the first one, for the next block.
func (c *convolution) advance() {
	ADDQ(U32(tileBytes/map[weights]int{signs: 8, nibbles: 2}[c.weights]), c.w)
	CMPQ(c.w, c.field(gen.MatrixWeightsEnd))
	CMOVQEQ(c.field(gen.MatrixWeights), c.w)
	c.turn(c.to)
}

// turn moves on in the ring.
func (c *convolution) turn(at reg.GPVirtual) {
	ADDQ(U32(tileBytes), at)
	CMPQ(at, c.field(gen.MatrixRingEnd))
	CMOVQEQ(c.field(gen.MatrixRing), at)
}

// block gets ready for a block of pixels, and jumps to the code for its number of tiles.
func (c *convolution) block() {
	block, at, count := GP64(), GP64(), GP64()
	MOVQ(c.field(gen.MatrixBlocks), block)
	for t := range mostTiles {
		MOVL(Mem{Base: block, Disp: 4 * t}, at.As32())
		ADDQ(c.field(gen.MatrixSrc), at)
		MOVQ(at, c.field(gen.MatrixTiles+8*t))
	}
	first, pixels := GP64(), GP64()
	MOVL(Mem{Base: block, Disp: gen.MatrixBlockFirst}, first.As32())
	MOVL(Mem{Base: block, Disp: gen.MatrixBlockCount}, pixels.As32())
	MOVQ(c.field(gen.MatrixPixels), at)
	LEAQ(Mem{Base: at, Index: first, Scale: uint8(gen.MatrixPixelSize)}, at)
	MOVQ(at, c.field(gen.MatrixBlockFrom))
	LEAQ(Mem{Base: at, Index: pixels, Scale: uint8(gen.MatrixPixelSize)}, at)
	MOVQ(at, c.field(gen.MatrixBlockEnd))
	IMULQ(c.field(gen.MatrixDstStep), first)
	ADDQ(c.field(gen.MatrixDst), first)
	SUBQ(c.field(gen.MatrixBefore), first)
	MOVQ(first, c.field(gen.MatrixBlockDst))
	MOVQ(U32(0), c.field(gen.MatrixPanel))
	if c.weights == bytes {
		MOVQ(c.field(gen.MatrixWeights), c.w)
	}
	MOVL(Mem{Base: block, Disp: gen.MatrixBlockTiles}, count.As32())
	for tiles := 1; tiles < mostTiles; tiles++ {
		CMPQ(count, U8(tiles))
		JEQ(LabelRef(fmt.Sprint("tiles", tiles)))
	}
	JMP(LabelRef(fmt.Sprint("tiles", mostTiles)))
}

// panels multiplies a block of so many tiles by all panels of weights.
func (c *convolution) panels(tiles int) {
	panel, step := c.label("panel"), c.label("step")
	Label(panel)
	for t := range tiles {
		zeroTile(byte(t + mostTiles - tiles))
	}
	MOVQ(c.field(gen.MatrixTaps), c.tap)
	Label(step)
	MOVL(Mem{Base: c.tap}, c.offset.As32())
	if c.weights != bytes {
		MOVQ(c.from, reg.RAX)
		loadTile(weightsTile)
		c.turn(c.from)
	} else {
		MOVQ(c.w, reg.RAX)
		loadTile(weightsTile)
		ADDQ(U32(tileBytes), c.w)
	}
	for t := range tiles {
		MOVQ(c.field(gen.MatrixTiles+8*t), reg.RAX)
		ADDQ(c.offset, reg.RAX)
		pixels, place := byte(pixelsEven+t%2), t+mostTiles-tiles
		if t == tiles-1 {
			pixels = pixelsLast
		}
		loadPixels(pixels)
		products(byte(place), pixels, weightsTile)
		if c.weights != bytes {
			c.expand(16*t/tiles, 16*(t+1)/tiles)
		}
		c.rows(rowsOfTile)
	}
	if c.weights != bytes {
		c.advance()
	}
	ADDQ(U8(4), c.tap)
	CMPQ(c.tap, c.field(gen.MatrixTapsEnd))
	JNE(LabelRef(step))

	c.drain()
	for t := range tiles {
		MOVQ(c.field(gen.MatrixNow), reg.RAX)
		if t > 0 {
			ADDQ(U32(t*tileBytes), reg.RAX)
		}
		storeTile(byte(t + mostTiles - tiles))
	}
	c.pend()
	CMPQ(c.offset, c.field(gen.MatrixPanelEnd))
	JNE(LabelRef(panel))
}

// pend makes the rows that were stored those to be ended. The offset is that of the next
// panel then.
func (c *convolution) pend() {
	at, panel := GP64(), c.offset
	MOVQ(c.field(gen.MatrixPanel), panel)
	MOVQ(c.field(gen.MatrixBlockFrom), c.pixel)
	c.copyField(gen.MatrixPendingEnd, gen.MatrixBlockEnd)
	MOVQ(c.field(gen.MatrixTable), c.table)
	ADDQ(panel, c.table)
	MOVQ(c.field(gen.MatrixBlockDst), c.dst)
	MOVQ(c.field(gen.MatrixNow), c.sums)
	MOVQ(c.sums, at)
	XORQ(U32(mostTiles*tileBytes), at)
	MOVQ(at, c.field(gen.MatrixNow))
	switch c.result {
	case packed:
		MOVQ(panel, at)
		SHRQ(U8(5), at) // 2 bytes for 64 of the table
		ADDQ(at, c.dst)
		ADDQ(c.field(gen.MatrixFlip), at)
		MOVWLZX(Mem{Base: at}, at.As32())
		MOVQ(at, c.field(gen.MatrixPendingFlip))
	case sums:
		ADDQ(panel, c.dst)
	case affine, floats, levels:
		MOVQ(panel, at)
		if c.result == levels {
			SHRQ(U8(2), at) // 16 bytes for 64 of the table
		}
		ADDQ(at, c.dst)
		if c.result == levels {
			MOVQ(panel, c.field(gen.MatrixPending))
		}
		type row struct {
			offset int
			v      reg.VecVirtual
		}
		rows := []row{{gen.MatrixScale, c.scale}, {gen.MatrixShift, c.move}, {gen.MatrixSlope, c.slope}}
		if c.result == floats || c.result == levels {
			rows = append(rows, row{gen.MatrixScale2, c.scale2}, row{gen.MatrixShift2, c.move2})
		}
		if c.result == levels {
			rows = append(rows, row{gen.MatrixLevel, c.level}, row{gen.MatrixRest, c.rest}, row{gen.MatrixMove, c.levelMove})
		}
		for _, row := range rows {
			there := c.label("there")
			MOVQ(c.field(row.offset), at)
			TESTQ(at, at)
			JEQ(LabelRef(there))
			VMOVUPS(Mem{Base: at, Index: panel, Scale: 1}, row.v)
			Label(there)
		}
	}
	ADDQ(U8(64), panel)
	MOVQ(panel, c.field(gen.MatrixPanel))
}

// rows ends at most n rows.
func (c *convolution) rows(n int) {
	done := c.label("rows")
	for range n {
		CMPQ(c.pixel, c.field(gen.MatrixPendingEnd))
		JEQ(LabelRef(done))
		c.row()
	}
	Label(done)
}

// drain ends all rows that are left.
func (c *convolution) drain() {
	next, done := c.label("drain"), c.label("drained")
	Label(next)
	CMPQ(c.pixel, c.field(gen.MatrixPendingEnd))
	JEQ(LabelRef(done))
	c.row()
	JMP(LabelRef(next))
	Label(done)
}

// row ends a row of 16 sums.
func (c *convolution) row() {
	at, x := GP64(), ZMM()
	MOVL(Mem{Base: c.pixel}, at.As32())
	VMOVDQU32(Mem{Base: c.sums, Index: at, Scale: 1}, x)
	MOVL(Mem{Base: c.pixel, Disp: 4}, at.As32())
	entry := Mem{Base: c.table, Index: at, Scale: 1}
	if c.result == packed {
		const notLess = 5
		reached := K()
		VPCMPD(U8(notLess), entry, x, reached)
		KMOVW(reached, at.As32())
		XORL(c.field(gen.MatrixPendingFlip), at.As32())
		MOVW(at.As16(), Mem{Base: c.dst})
	} else {
		VPSLLVD(c.shift, x, x)
		VPADDD(entry, x, x)
		if c.result >= affine {
			c.end(x)
		}
		if c.result == levels {
			c.number(x, gen.MatrixRest, c.level, func() reg.VecVirtual { return c.rest })
			VADDPS(c.levelMove, x, x)
			VMAXPS(c.least, x, x) // x where it is greater
			VMINPS(c.most, x, x)  // x where it is less
			VCVTPS2DQ(x, x)
			VPADDD(c.first, x, x)
			VPMOVDB(x, Mem{Base: c.dst})
		} else {
			VMOVDQU32(x, Mem{Base: c.dst})
		}
	}
	ADDQ(c.field(gen.MatrixDstStep), c.dst)
	ADDQ(U8(gen.MatrixPixelSize), c.pixel)
}

// end makes float32 outputs of sums.
func (c *convolution) end(x reg.VecVirtual) {
	unless := func(offset int, do func(at reg.GPVirtual)) {
		skip, at := c.label("skip"), GP64()
		MOVQ(c.field(offset), at)
		TESTQ(at, at)
		JEQ(LabelRef(skip))
		do(at)
		Label(skip)
	}
	VCVTDQ2PS(x, x)
	if c.result == affine {
		VFMADD213PS(c.move, c.scale, x)
		return
	}
	unless(gen.MatrixScale, func(reg.GPVirtual) { VFMADD213PS(c.move, c.scale, x) })
	if c.result == levels { // most have nothing else
		unless(gen.MatrixMore, func(reg.GPVirtual) { c.more(x, unless) })
		return
	}
	c.more(x, unless)
}

// more is what end does behind the scale.
func (c *convolution) more(x reg.VecVirtual, unless func(offset int, do func(at reg.GPVirtual))) {
	unless(gen.MatrixSlope, func(reg.GPVirtual) {
		less := K()
		VCMPPS(U8(17), c.zero, x, less)
		VMULPS(c.slope, x, less, x)
	})
	unless(gen.MatrixClip, func(reg.GPVirtual) {
		VMAXPS(x, c.low, x)  // low where it is greater
		VMINPS(x, c.high, x) // high where it is less
	})
	if c.result == levels {
		unless(gen.MatrixFakeLevel, func(level reg.GPVirtual) { c.fakeQuantize(x, level) })
	}
	unless(gen.MatrixAdded, func(added reg.GPVirtual) {
		there := Mem{Base: c.dst, Index: added, Scale: 1, Disp: -1}
		scaled := func(x reg.VecVirtual) {
			unless(gen.MatrixScale2, func(reg.GPVirtual) { VFMADD213PS(c.move2, c.scale2, x) })
		}
		if c.result == levels {
			value := ZMM()
			VPMOVZXBD(there, value)
			VCVTDQ2PS(value, value)
			scaled(value)
			VADDPS(value, x, x)
		} else {
			scaled(x)
			VADDPS(there, x, x)
		}
		unless(gen.MatrixClip2, func(reg.GPVirtual) {
			VMAXPS(x, c.low2, x)  // low2 where it is greater
			VMINPS(x, c.high2, x) // high2 where it is less
		})
	})
}

// number multiplies x by the scale of levels, and by its rest, if field has any.
func (c *convolution) number(x reg.VecVirtual, field int, scale reg.VecVirtual, rest func() reg.VecVirtual) {
	whole, scaled := c.label("whole"), c.label("scaled")
	CMPQ(c.field(field), U8(0))
	JEQ(LabelRef(whole))
	small := ZMM()
	VMULPS(rest(), x, small)
	VFMADD213PS(small, scale, x)
	JMP(LabelRef(scaled))
	Label(whole)
	VMULPS(scale, x, x)
	Label(scaled)
}

// fakeQuantize makes x the values of its levels, whose scales are at level.
func (c *convolution) fakeQuantize(x reg.VecVirtual, level reg.GPVirtual) {
	panel, at, v := GP64(), GP64(), ZMM()
	MOVQ(c.field(gen.MatrixPending), panel)
	row := func(field int, v reg.VecVirtual) reg.VecVirtual {
		MOVQ(c.field(field), at)
		VMOVUPS(Mem{Base: at, Index: panel, Scale: 1}, v)
		return v
	}
	VMOVUPS(Mem{Base: level, Index: panel, Scale: 1}, v)
	c.number(x, gen.MatrixFakeRest, v, func() reg.VecVirtual { return row(gen.MatrixFakeRest, ZMM()) })
	VADDPS(row(gen.MatrixFakeMove, v), x, x)
	VBROADCASTSS(c.field(gen.MatrixFakeLeast), v)
	VMAXPS(v, x, x) // x where it is greater
	VBROADCASTSS(c.field(gen.MatrixFakeMost), v)
	VMINPS(v, x, x) // x where it is less
	VCVTPS2DQ(x, x)
	VCVTDQ2PS(x, x)
	VBROADCASTSS(c.field(gen.MatrixFakeLow), v)
	VADDPS(v, x, x)
	row(gen.MatrixFakeScale, v)
	VFMADD213PS(row(gen.MatrixFakeShift, ZMM()), v, x)
}
