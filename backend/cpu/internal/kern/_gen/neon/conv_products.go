package main

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"

// convProducts writes the convolutions of bytes and weights of 8 bits.
func (a *asm) convProducts() {
	for _, k := range []products{longProducts, dotProducts, matrixProducts} {
		for _, sums := range []bool{false, true} {
			if k.isa == "NEON" && !sums {
				continue // weights of one bit have convBytes…NEON, which is faster
			}
			for vectors := 1; vectors <= 4; vectors++ {
				c := &conv{asm: a, sums: sums, pixels: k.pixels, vectors: vectors}
				c.kind = kind{
					name: "convProducts", isa: k.isa, outputs: 16,
					piece:   "bytes",
					product: "x[i]·w[i][o] − what the filter's Fix has of it",
					result:  bytesKind.result,
					body:    k.body,
					store:   productsStore,
					stack:   func(int, int) int { return 0 },
				}
				if !sums {
					c.kind.stack = func(pixels, vectors int) int { return 16 * pixels * vectors }
				}
				c.write()
			}
		}
	}
}

// products is what the convolutions of bytes and weights of 8 bits differ in. They read
// 16 bytes of each patch at a time, for a group of outputs after the other.
//
// Instructions of a kind stand together, and what is loaded is for the next 16 bytes,
// also from a row to the next and from a group of outputs to the next: so no instruction
// waits for the one before it, which matters to processors that keep the order of the
// program.
type products struct {
	isa     string
	pixels  int
	group   int // outputs
	pieces  int // of 16 bytes, as weights lie
	weights int // that are loaded ahead, vectors
	w       int // the first of them
	// chunk adds the products of some pieces of 16 bytes of each patch, and loads the next
	// ones. Where those are not all of the pieces, label is that of the last thing, of
	// which rShort is the number.
	chunk func(c *conv, pixels int, some bool, label string)
	// load makes what chunk needs of the first 16 bytes.
	load func(c *conv, p, pixels int)
	// end returns where the sums of a pixel are, 4 in each vector, and vectors that are
	// free.
	end  func(c *conv, p int) []int
	free []int
	// signed are the words that make numbers of bytes, if they are made.
	signed []uint64
}

const (
	productsX = 16 // 16 bytes of every patch
	productsZ = 31 // what bytes are XORed with
)

func (k products) body(c *conv, pixels int, label string) {
	const (
		rWhole = rRun    // of a row, 16 bytes each
		rTail  = rShort  // pieces of the last 16 bytes if those are not all
		rBack  = rChunk  // from the end of a patch to its begin
		rCount = rBudget // rows left
		rTo    = "R24"   // results of the group
		rBound = "R25"   // bytes of the table up to the group
		rNext  = rSecond // from the last 16 bytes of a row to those of the next one
	)
	c.op("ADD %s, %s, %s", rRun, rSkip, rBack)
	c.op("MUL %s, %s, %s", rRows, rBack, rBack)
	c.op("LSR $4, %s", rWhole)
	c.op("MOVD %d(%s), %s", gen.JobTail, rJob, rTail)
	if k.signed != nil {
		c.constants(productsZ, k.signed...)
	}
	c.op("ADD $16, %s, %s", rSkip, rNext)
	c.op("MOVD $0, %s", rBound)
	c.op("MOVD %s, %s", map[bool]string{true: rDst, false: rWide}[c.sums], rTo)
	for p := range pixels {
		c.op("FMOVQ (%s), F%d", patch(p), productsX+p)
	}
	for v := range k.weights {
		c.op("FMOVQ %d(%s), F%d", 16*v, rW, k.w+v)
	}
	c.op("ADD $%d, %s", 16*k.weights, rW)
	for p := range pixels {
		k.load(c, p, pixels)
	}
	c.label(label + "group")
	c.zero(0, max(16*pixels/k.pixels, 8))
	c.op("MOVD %s, %s", rRows, rCount)
	c.label(label + "row")
	c.op("MOVD %s, %s", rWhole, rLeft)
	c.label(label + "next")
	c.op("MOVD $16, %s", rT)
	c.op("SUBS $1, %s", rLeft)
	c.op("BNE %splace", label)
	c.op("MOVD %s, %s", rNext, rT)
	c.op("SUBS $1, %s", rCount)
	c.op("BNE %splace", label)
	c.op("SUB %s, %s", rBack, rT) // for the next group
	c.label(label + "place")
	for p := range pixels {
		c.op("ADD %s, %s", rT, patch(p))
	}
	if k.pieces > 1 {
		c.op("CBNZ %s, %swhole", rLeft, label)
		c.op("CBNZ %s, %ssome", rTail, label)
		c.label(label + "whole")
	}
	k.chunk(c, pixels, false, "")
	c.op("CBNZ %s, %snext", rLeft, label)
	c.op("CBNZ %s, %srow", rCount, label)
	if k.pieces > 1 {
		c.op("B %send", label)
		c.label(label + "some")
		k.chunk(c, pixels, true, label)
		c.op("CBNZ %s, %srow", rCount, label)
		c.label(label + "end")
	}

	c.op("MOVD %s, %s", rTo, rMain)
	for p := range pixels {
		c.ofPixel(p, rClass, rTable)
		c.op("MOVD %d(%s), %s", gen.JobTable, rJob, rT)
		c.op("ADD %s, %s", rT, rTable)
		c.op("ADD %s, %s", rBound, rTable)
		of := k.end(c, p)
		for i := 0; i < len(of); i += 2 {
			c.op("FLDPQ %d(%s), (F%d, F%d)", 16*i, rTable, k.free[i], k.free[i+1])
		}
		for i, x := range of {
			if c.sums {
				c.op("VADD V%d.S4, V%d.S4, V%d.S4", k.free[i], x, x)
			} else {
				c.cmgeS(x, k.free[i], x)
			}
		}
		if c.sums {
			for i := 0; i < len(of); i += 2 {
				c.op("FSTPQ (F%d, F%d), %d(%s)", of[i], of[i+1], 16*i, rMain)
			}
			if p+1 < pixels {
				c.op("MOVD %d(%s), %s", gen.JobDstStep, rJob, rT)
				c.op("ADD %s, %s", rT, rMain)
			}
			continue
		}
		for _, i := range []int{0, 2} {
			c.op("VUZP1 V%d.H8, V%d.H8, V%d.H8", of[i+1], of[i], of[i])
		}
		c.op("VUZP1 V%d.B16, V%d.B16, V%d.B16", of[2], of[0], of[0])
		c.op("FMOVQ F%d, %d(%s)", of[0], 16*c.vectors*p, rTo)
	}
	size := 16
	if c.sums {
		size = 4 * k.group
	}
	c.op("ADD $%d, %s", size, rTo)
	c.op("ADD $%d, %s", 4*k.group, rBound)
	c.op("CMP $%d, %s", 4*16*c.vectors, rBound)
	c.op("BNE %sgroup", label)
}

// productsStore packs the masks of a pixel.
func productsStore(c *conv, p int, _ string) {
	if c.sums {
		return
	}
	masks := c.vectors
	for v := range masks {
		c.op("FMOVQ %d(%s), F%d", 16*(c.vectors*p+v), rWide, v)
	}
	if masks == 3 {
		c.zero(3, 4)
		masks = 4
	}
	c.pack(0, masks)
}

// among writes instructions with others among them, evenly.
func among(all, others []func()) {
	done := 0
	for i, write := range all {
		write()
		for ; done < len(others)*(i+1)/len(all); done++ {
			others[done]()
		}
	}
}

// signedX makes numbers from −128 to 127 of the bytes of a patch.
func signedX(from int) func(c *conv, p, _ int) {
	return func(c *conv, p, _ int) {
		from := from
		if from < 0 {
			from = productsX + p
		}
		c.op("VEOR V%d.B16, V%d.B16, V%d.B16", productsZ, from, productsX+p)
	}
}

// Long products: 16 bytes of a patch meet those of 8 outputs. Bytes are made numbers from
// −128 to 127, as weights are; then two products can be 2¹⁵, which 16 bits do not hold.
// So those of the second half are subtracted, for which the bits of their bytes are
// inverted, −1−y for y: x·w − (−1−y)·v is between −32,640 and 32,640.
var longProducts = products{
	isa: "NEON", pixels: 2, group: 8, pieces: 1, weights: 8, w: 18,
	chunk: longChunk, load: signedX(-1), end: longEnd, free: []int{26, 27},
	signed: []uint64{0x8080808080808080, 0x7f7f7f7f7f7f7f7f},
}

func longChunk(c *conv, pixels int, _ bool, _ string) {
	const w, temp, next, half = 18, 26, 30, 4
	for first := 0; first < 2*half; first += half {
		for p := range pixels {
			last, end := p == pixels-1, first > 0
			if end {
				c.op("FMOVQ (%s), F%d", patch(p), next)
			}
			for o := range half {
				c.smull(w+first+o, productsX+p, temp+o)
			}
			for o := range half {
				c.smlsl2(w+first+o, productsX+p, temp+o)
			}
			for o := range half {
				if last {
					c.op("FMOVQ %d(%s), F%d", 16*(first+o), rW, w+first+o)
				}
				c.sadalpH(temp+o, 8*p+first+o)
			}
			if end {
				signedX(next)(c, p, pixels)
			}
		}
	}
	c.op("ADD $%d, %s", 16*2*half, rW)
}

func longEnd(c *conv, p int) []int {
	x := 8 * p
	for n := 4; n > 1; n /= 2 {
		for i := range n {
			c.op("VADDP V%d.S4, V%d.S4, V%d.S4", x+2*i+1, x+2*i, x+i)
		}
	}
	return []int{x, x + 1}
}

// Dot products: four bytes of a patch meet those of 16 outputs.
var dotProducts = products{
	isa: "NEONDot", pixels: 4, group: 16, pieces: 4, weights: 4, w: 20,
	chunk: dotChunk, load: signedX(-1),
	end:  func(_ *conv, p int) []int { return []int{4 * p, 4*p + 1, 4*p + 2, 4*p + 3} },
	free: []int{24, 25, 26, 27}, signed: []uint64{0x8080808080808080, 0x8080808080808080},
}

func dotChunk(c *conv, pixels int, some bool, label string) {
	const w, pieces = 20, 4
	next := [4]int{28, 29, 30, w} // the weights there are loaded when it is done
	weight := func(piece, v, to int) func() {
		return func() { c.op("FMOVQ %d(%s), F%d", 64*piece+16*v, rW, to) }
	}
	input := func(p int) func() {
		return func() { c.op("FMOVQ (%s), F%d", patch(p), next[p]) }
	}
	products := func(w, p, lane int) (all []func()) {
		for v := range 4 {
			all = append(all, func() { c.sdot(w+v, productsX+p, lane, 4*p+v) })
		}
		return all
	}
	if some {
		for i := range pieces - 1 {
			if i > 0 {
				c.op("CMP $%d, %s", i, rShort)
				c.op("BEQ %slast", label)
			}
			for p := range pixels {
				among(products(w, p, i), nil)
			}
			for v := range 4 {
				weight(0, v, w+v)()
			}
			c.op("ADD $64, %s", rW)
		}
		c.label(label + "last")
		for p := range pixels {
			c.op("FMOVQ (%s), F%d", patch(p), productsX+p)
		}
		for p := range pixels {
			signedX(-1)(c, p, pixels)
		}
		return
	}
	for i := range pieces {
		this, other := w+i%2*4, w+(i+1)%2*4
		var loads []func()
		for v := range 4 {
			loads = append(loads, weight(i, v, other+v))
		}
		var all []func()
		for p := range pixels {
			all = append(all, products(this, p, i)...)
			if i == pieces-2 && p < 3 {
				loads = append(loads, input(p))
			}
		}
		if i == pieces-1 {
			loads = loads[1:]
			if pixels > 3 {
				loads = append([]func(){input(3)}, loads...)
			}
		}
		among(all, loads)
	}
	for p := range pixels {
		signedX(next[p])(c, p, pixels)
	}
	weight(pieces-1, 0, w)()
	c.op("ADD $%d, %s", 64*pieces, rW)
}

// Products of matrices: eight bytes of two patches meet those of two outputs.
var matrixProducts = products{
	isa: "NEONMatrix", pixels: 4, group: 16, pieces: 2, weights: 8, w: 24,
	chunk: matrixChunk,
	load: func(c *conv, p, pixels int) {
		matrixPair(c, p, pixels, 0)
		matrixPair(c, p, pixels, 1)
	},
	end: matrixEnd, free: []int{17, 18, 19, 6},
}

// matrixPair makes a pair of the first or the second halves of two patches.
func matrixPair(c *conv, p, pixels, half int) {
	if p%2 == 0 {
		x, y := productsX+p, productsX+min(p+1, pixels-1)
		c.op("VZIP%d V%d.D2, V%d.D2, V%d.D2", 1+half, y, x, productsX+4+p+half)
	}
}

func matrixChunk(c *conv, pixels int, some bool, _ string) {
	const w, outputs = 24, 8
	pieces := 2
	if some {
		pieces = 1
	}
	for i := range pieces {
		for v := range outputs {
			for p := 0; p < pixels; p += 2 {
				c.usmmla(productsX+4+p+i, w+v, 4*p+v)
			}
			if i == 0 && v < pixels {
				c.op("FMOVQ (%s), F%d", patch(v), productsX+v)
			}
			c.op("FMOVQ %d(%s), F%d", 128*i+16*v, rW, w+v)
			if i == 1 && v < pixels {
				matrixPair(c, v, pixels, 0)
			}
		}
	}
	c.op("ADD $%d, %s", 128*pieces, rW)
	for p := range pixels {
		if some {
			matrixPair(c, p, pixels, 0)
		}
		matrixPair(c, p, pixels, 1)
	}
}

// matrixEnd takes the rows of matrices apart, those of two pixels with the first one.
func matrixEnd(c *conv, p int) []int {
	x := 4 * (p &^ 1)
	if p%2 > 0 {
		return []int{x + 1, x + 3, x + 5, x + 7}
	}
	first := []int{productsX, x, x + 2, x + 4}
	for v, to := range first {
		c.op("VZIP1 V%d.D2, V%d.D2, V%d.D2", x+2*v+1, x+2*v, to)
		c.op("VZIP2 V%d.D2, V%d.D2, V%d.D2", x+2*v+1, x+2*v, x+2*v+1)
	}
	return first
}

// smull multiplies bytes of the lower halves to 16-bit lanes.
func (a *asm) smull(n, m, d int) {
	a.word(0x0e20c000|uint32(m<<16|n<<5|d), "smull v%d.8h, v%d.8b, v%d.8b", d, n, m)
}

// smlsl2 subtracts the products of bytes of the upper halves from 16-bit lanes.
func (a *asm) smlsl2(n, m, d int) {
	a.word(0x4e20a000|uint32(m<<16|n<<5|d), "smlsl2 v%d.8h, v%d.16b, v%d.16b", d, n, m)
}

// sadalpH adds neighbouring 16-bit lanes of n to the 32-bit lanes of d.
func (a *asm) sadalpH(n, d int) {
	a.word(0x4e606800|uint32(n<<5|d), "sadalp v%d.4s, v%d.8h", d, n)
}

// sdot adds, for each 32-bit lane of d, the products of four bytes of n with those of a
// lane of m.
func (a *asm) sdot(n, m, lane, d int) {
	a.word(0x4f80e000|uint32(lane&1<<21|lane>>1<<11|m<<16|n<<5|d), "sdot v%d.4s, v%d.16b, v%d.4b[%d]", d, n, m, lane)
}

// usmmla adds to d, a matrix of 2×2, the product of 2×8 unsigned bytes of n and of 8×2
// bytes of m, whose columns follow each other.
func (a *asm) usmmla(n, m, d int) {
	a.word(0x4e80ac00|uint32(m<<16|n<<5|d), "usmmla v%d.4s, v%d.16b, v%d.16b", d, n, m)
}
