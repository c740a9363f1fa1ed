package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// weights is how the weights of a convolution lie in memory.
type weights int

const (
	signs   weights = iota // bits of ±1, which become bytes on the way
	nibbles                // numbers of 4 bits, of values that they become on the way
	bytes                  // int8
)

// result is what a convolution writes, as the job says.
type result int

const (
	packed = result(kern.MatrixBits)   // bits of thresholded sums
	sums   = result(kern.MatrixSums)   // int32
	affine = result(kern.MatrixAffine) // float32: sums times a scale, plus a shift
	added  = result(kern.MatrixAdd)    // float32: that plus others
	floats = result(kern.MatrixFloats) // float32: ended sums and what is added to them
	// Bytes: the numbers of the levels of sums times a scale, plus a shift, of that plus scaled
	// bytes, and of ended sums.
	affineLevels = result(kern.MatrixAffineLevels)
	addLevels    = result(kern.MatrixAddLevels)
	levels       = result(kern.MatrixLevels)
)

var resultNames = [...]string{
	packed: "Bits", sums: "Sums", affine: "Affine", added: "Add", floats: "Floats",
	affineLevels: "AffineLevels", addLevels: "AddLevels", levels: "Levels",
}

func (r result) bytes() bool { return r >= affineLevels }

// any reports whether the epilogue does what the job asks for; others do the same for all jobs.
func (r result) any() bool { return r == floats || r == levels }

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

// Registers that the kernels share with what they call.
var (
	job    = reg.RDI
	panel  = reg.RDX // offset of a step, and then of the next panel
	pixel  = reg.R8  // the rows of sums that are to be ended, of the pixels and the panel before
	dst    = reg.R9
	sumsAt = reg.R10
	table  = reg.R11
	limit  = reg.R13 // pixel behind the rows to be ended now

	temp = [...]reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2}
	mask = reg.K1

	shift              = reg.Z15 // of sums, in bits
	scale, move, slope = reg.Z16, reg.Z17, reg.Z18
	low, high, zero    = reg.Z19, reg.Z20, reg.Z21
	level, levelMove   = reg.Z22, reg.Z23
	rest               = reg.Z24 // of the scales of levels
	least, most, first = reg.Z25, reg.Z26, reg.Z27
	scale2, move2      = reg.Z28, reg.Z29
	low2, high2        = reg.Z30, reg.Z31

	constants = []Op{shift, scale, move, slope, low, high, zero, level, levelMove, rest, least, most, first, scale2, move2, low2, high2}
	places    = []Op{pixel, dst, sumsAt, table}
)

// call calls a function that has no arguments but in registers.
func call(function Op, reads, writes []Op) {
	Instruction(&ir.Instruction{Opcode: "CALL", Operands: []Op{function}, Inputs: append([]Op{job}, reads...), Outputs: writes})
}

func function(name string) Mem { return Mem{Symbol: Symbol{Name: "·" + name}, Base: reg.StaticBase} }

// convolution is the state of a kernel while it is written.
type convolution struct {
	weights
	constants []Op // registers of what it calls

	w        reg.GPVirtual // weights
	from, to reg.GPVirtual // of the ring: what is multiplied, and what is made
	tap      reg.GPVirtual

	masks        [8]reg.VecVirtual // that pick a bit of each byte
	eight        reg.VecVirtual    // weights of eight rows of a tile
	values, low4 reg.VecVirtual    // of numbers, and the bits of one in each byte

	labels
}

// labels counts those of a function.
type labels int

func (l *labels) label(what string) string {
	*l++
	return fmt.Sprint(what, *l)
}

func convs() {
	for _, w := range []weights{signs, nibbles, bytes} {
		conv(w)
	}
	begin()
	for r := range resultNames {
		(&epilogue{result: result(r)}).write()
	}
}

func field(offset int) Mem { return Mem{Base: job, Disp: offset} }

func conv(w weights) {
	c := &convolution{weights: w, constants: constants}
	name := [...]string{"convSigns", "convNibbles", "convBytes"}[w] + "AMX"
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name+" computes, for every pixel p of every block of a MatrixJob and each of its outputs o,",
		"",
		"\tc[o] = Σ over steps s and i < 64 of (src + tile of p + taps[s])[line·row of p + i]·w[s][o][i]",
		"",
		"and the result of the job, one of",
		"",
		"\tbit o of dst[p] = c[o] ≥ table[class[p]][o], XOR flip",
		"\tdst[p][o] = (c[o] << shift) + table[class[p]][o]",
		"\tdst[p][o] = fma(float32((c[o] << shift) + table[class[p]][o]), scale[o], shift[o])",
		"\tdst[p][o] = end of float32((c[o] << shift) + table[class[p]][o]), or then of the sum of that and what is added",
		"\tdst[p][o] = level of the end of float32((c[o] << shift) + table[class[p]][o]), or of the sum of that and a byte, scaled")
	Pragma("noescape")
	Load(Param("job"), job)
	MOVQ(U32(64), reg.RBX)
	MOVQ(field(gen.MatrixLine), reg.RCX)
	LEAQ(field(gen.MatrixConfig), reg.RAX)
	loadConfig()
	if w == bytes { // which needs no vectors, and avo takes none where there are no others
		c.constants = nil
	}
	call(function("beginAMX"), nil, slices.Concat(c.constants, places, []Op{reg.RAX}))
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
	ADDQ(U8(gen.MatrixBlockSize), field(gen.MatrixBlocks))
	DECQ(field(gen.MatrixCount))
	JNE(LabelRef("block"))
	c.drain()
	release()
	VZEROUPPER()
	RET()
}

// start loads what stays in registers, and makes the first weights.
func (c *convolution) start() {
	c.w, c.from, c.to, c.tap = GP64(), GP64(), GP64(), GP64()
	MOVQ(field(gen.MatrixWeights), c.w)
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
		MOVQ(field(gen.MatrixValues), value)
		VMOVDQU8(Mem{Base: value}, c.values)
		MOVQ(U32(0x0f0f0f0f), value)
		VPBROADCASTD(value.As32(), c.low4)
	}
	if c.weights != bytes {
		MOVQ(field(gen.MatrixRing), c.from)
		MOVQ(c.from, c.to)
		for range ahead {
			c.expand(0, 16)
			c.advance()
		}
		MOVQ(field(gen.MatrixRing), c.from)
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
	CMPQ(c.w, field(gen.MatrixWeightsEnd))
	CMOVQEQ(field(gen.MatrixWeights), c.w)
	c.turn(c.to)
}

// turn moves on in the ring.
func (c *convolution) turn(at reg.GPVirtual) {
	ADDQ(U32(tileBytes), at)
	CMPQ(at, field(gen.MatrixRingEnd))
	CMOVQEQ(field(gen.MatrixRing), at)
}

// block gets ready for a block of pixels, and jumps to the code for its number of tiles.
func (c *convolution) block() {
	block, at, count := GP64(), GP64(), GP64()
	MOVQ(field(gen.MatrixBlocks), block)
	for t := range mostTiles {
		MOVL(Mem{Base: block, Disp: 4 * t}, at.As32())
		ADDQ(field(gen.MatrixSrc), at)
		MOVQ(at, field(gen.MatrixTiles+8*t))
	}
	first, pixels := GP64(), GP64()
	MOVL(Mem{Base: block, Disp: gen.MatrixBlockFirst}, first.As32())
	MOVL(Mem{Base: block, Disp: gen.MatrixBlockCount}, pixels.As32())
	MOVQ(field(gen.MatrixPixels), at)
	LEAQ(Mem{Base: at, Index: first, Scale: uint8(gen.MatrixPixelSize)}, at)
	MOVQ(at, field(gen.MatrixBlockFrom))
	LEAQ(Mem{Base: at, Index: pixels, Scale: uint8(gen.MatrixPixelSize)}, at)
	MOVQ(at, field(gen.MatrixBlockEnd))
	IMULQ(field(gen.MatrixDstStep), first)
	ADDQ(field(gen.MatrixDst), first)
	SUBQ(field(gen.MatrixBefore), first)
	MOVQ(first, field(gen.MatrixBlockDst))
	MOVQ(U32(0), field(gen.MatrixPanel))
	if c.weights == bytes {
		MOVQ(field(gen.MatrixWeights), c.w)
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
	next, step := c.label("panel"), c.label("step")
	Label(next)
	for t := range tiles {
		zeroTile(byte(t + mostTiles - tiles))
	}
	MOVQ(field(gen.MatrixTaps), c.tap)
	Label(step)
	MOVL(Mem{Base: c.tap}, panel.As32())
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
		MOVQ(field(gen.MatrixTiles+8*t), reg.RAX)
		ADDQ(panel, reg.RAX)
		pixels, place := byte(pixelsEven+t%2), t+mostTiles-tiles
		if t == tiles-1 {
			pixels = pixelsLast
		}
		loadPixels(pixels)
		products(byte(place), pixels, weightsTile)
		if c.weights != bytes {
			c.expand(16*t/tiles, 16*(t+1)/tiles)
		}
		if t%2 == 1 || t == tiles-1 { // four rows by each call, which takes time of its own
			c.rows(rowsOfTile * (1 + t%2))
		}
	}
	if c.weights != bytes {
		c.advance()
	}
	ADDQ(U8(4), c.tap)
	CMPQ(c.tap, field(gen.MatrixTapsEnd))
	JNE(LabelRef(step))

	c.drain()
	for t := range tiles {
		MOVQ(field(gen.MatrixNow), reg.RAX)
		if t > 0 {
			ADDQ(U32(t*tileBytes), reg.RAX)
		}
		storeTile(byte(t + mostTiles - tiles))
	}
	call(field(gen.MatrixPend), c.constants, slices.Concat(c.constants, places, []Op{panel, reg.RAX}))
	CMPQ(panel, field(gen.MatrixPanelEnd))
	JNE(LabelRef(next))
}

// rows ends the next n rows, or as many as are left.
func (c *convolution) rows(n int) {
	done := c.label("ended")
	MOVQ(field(gen.MatrixPendingEnd), limit)
	CMPQ(pixel, limit)
	JEQ(LabelRef(done))
	LEAQ(Mem{Base: pixel, Disp: n * gen.MatrixPixelSize}, reg.RAX)
	CMPQ(reg.RAX, limit)
	CMOVQCS(reg.RAX, limit)
	c.end()
	Label(done)
}

// drain ends all rows that are left.
func (c *convolution) drain() {
	done := c.label("drained")
	MOVQ(field(gen.MatrixPendingEnd), limit)
	CMPQ(pixel, limit)
	JEQ(LabelRef(done))
	c.end()
	Label(done)
}

func (c *convolution) end() {
	writes := []Op{pixel, dst, reg.RAX, reg.R12}
	if c.constants != nil {
		writes = append(writes, temp[0], temp[1], temp[2])
	}
	call(field(gen.MatrixRows), slices.Concat(c.constants, places, []Op{limit}), writes)
}
