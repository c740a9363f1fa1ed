package candidates

import (
	"fmt"
	"math"
	mathbits "math/bits"
	"slices"
	"sort"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// gemmForm is a way to multiply of conv_mma.cu.
type gemmForm struct {
	name  string
	and   bool // counts a AND w, not a XOR w
	bytes bool // sums up bytes
	tiles []gemmTile
}

// gemmTile mirrors the instantiations of conv_mma.cu.
type gemmTile struct {
	rows, cols  int // of a block
	rowsOfWarp  int
	threads     int
	sharedBytes int
}

func newGemmTile(rows, cols, warpsRows, warpsCols, stages int) gemmTile {
	const planes, planeBytes, rowBytes = 2, 32, 16
	return gemmTile{rows: rows, cols: cols, rowsOfWarp: rows / warpsRows, threads: Lanes * warpsRows * warpsCols,
		sharedBytes: stages*planes*(rows+cols)*planeBytes + rows*rowBytes}
}

var (
	gemmAnd = gemmForm{name: "and", and: true, tiles: []gemmTile{
		newGemmTile(128, 256, 2, 4, 3), newGemmTile(128, 128, 2, 2, 3), newGemmTile(64, 64, 2, 2, 3),
		newGemmTile(64, 32, 2, 1, 3), newGemmTile(16, 32, 1, 1, 4),
	}}
	gemmImma = gemmForm{name: "imma", and: true, tiles: []gemmTile{
		newGemmTile(128, 128, 2, 2, 3), newGemmTile(64, 64, 2, 2, 3), newGemmTile(64, 32, 2, 1, 3), newGemmTile(16, 32, 1, 1, 4),
	}}
	gemmXor = gemmForm{name: "xor", tiles: []gemmTile{
		newGemmTile(128, 128, 2, 2, 2), newGemmTile(64, 64, 2, 2, 2), newGemmTile(64, 32, 2, 1, 2), newGemmTile(16, 32, 1, 1, 2),
	}}
	gemmLargePopc = gemmForm{name: "popc", tiles: []gemmTile{newGemmTile(128, 64, 4, 2, 2)}}
	gemmPopc      = gemmForm{name: "popc", tiles: []gemmTile{
		newGemmTile(128, 64, 4, 2, 2), newGemmTile(64, 64, 2, 2, 2), newGemmTile(16, 32, 1, 1, 2),
	}}
	gemmBytes = gemmForm{name: "bytes", bytes: true, tiles: []gemmTile{
		newGemmTile(128, 256, 2, 4, 3), newGemmTile(128, 128, 2, 2, 3), newGemmTile(64, 64, 2, 2, 3),
		newGemmTile(64, 32, 2, 1, 3), newGemmTile(16, 32, 1, 1, 3),
	}}
	gemmBytes75 = gemmForm{name: "bytes", bytes: true, tiles: []gemmTile{
		newGemmTile(128, 128, 2, 2, 2), newGemmTile(64, 64, 2, 2, 2), newGemmTile(64, 32, 2, 1, 2), newGemmTile(16, 32, 1, 1, 2),
	}}
)

// gemmForms are the forms that the PTX for an architecture has and that a device of a
// capability executes well: tensor cores from 10.0 on multiply no bits. Where they do, from 8.0
// on, tiles on integer units take ten times as long (500 for 40 µs of 3×3, 56×56×256, batch 64,
// by their rates).
func gemmForms(arch, capability int) []gemmForm {
	switch {
	case arch >= 90 && capability >= 100:
		return []gemmForm{gemmImma, gemmLargePopc}
	case arch >= 80:
		return []gemmForm{gemmAnd}
	case arch >= 75:
		return []gemmForm{gemmXor, gemmLargePopc}
	}
	return []gemmForm{gemmPopc}
}

// byteForms are the forms for bytes.
func byteForms(arch int) []gemmForm {
	switch {
	case arch >= 80:
		return []gemmForm{gemmBytes}
	case hasByteProducts(arch):
		return []gemmForm{gemmBytes75}
	}
	return nil
}

const (
	planeWords = 8 // 32-bit words of a plane
	wordBytes  = 4
	// The largest sum of a word's products of unsigned by signed bytes, if negative.
	largestOfWord = wordBytes * 255 * 128
)

// rowWords lists the words that make the row of an output pixel in a GEMM: where
// each is, and in which bits of the weights.
type rowWord struct {
	tap, word int
}

// gemm lists the kernels of variant gpu.TensorCore, an implicit GEMM with tiles in shared memory;
// none for groups that do not fill words and for pooling windows whose pixels are no
// power of two.
func (c *planner) gemm(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	rows, cols, correction, offset := w.PaddedBorder()
	// The upper half of a pixel's last 64-bit word is loaded along with more than one
	// word: it is 0.
	words := w.Words
	if op.Groups == 1 && words > 1 {
		words = int(w.G.InWords)
	}
	g, row := c.gemmRow(op, &w, words)
	if row == nil {
		return nil
	}
	stride := w.Stride()
	weights, ones := planeWeights(w.Sizes, op.Bits, row, stride)
	scale, shift, slope := floatConstants(op, &w)
	var all, splits []Candidate
	for _, form := range gemmForms(c.arch, c.limits.Capability) {
		base, limits := countConstants(g, w.ThresholdsI32(stride), ones, offset, form.and)
		args := []any{c.X, c.Y, weights, c.gemmTaps(op, g, row), base, limits, scale, shift, slope, w.Mask(), rows, cols, correction, nil}
		some, inParts := c.gemmTiles(op, g, form, args)
		all, splits = append(all, some...), append(splits, inParts...)
	}
	// Large tiles read less, but should be as many as there are multiprocessors, and
	// not be empty for the most part.
	c.sortTiles(all, c.Out.Shape.Pixels(), w.PerGroup)
	return append(all, splits...)
}

// gemmOfBytes is gemm for bytes, of which four channels make a word.
func (c *planner) gemmOfBytes(op *plan.Conv) []Candidate {
	w := c.Conv(op, Lanes)
	if w.In%wordBytes != 0 || tooManyBytes(w.Taps*w.In) {
		return nil
	}
	w.G.InWords = int32(c.In.Shape.C / wordBytes)
	g, row := c.gemmRow(op, &w, w.In/wordBytes)
	if row == nil {
		return nil
	}
	stride := w.Stride()
	word, base, limits := byteConstants(&w)
	weights := planesOf(w.Sizes, row, stride, word)
	scale, shift, slope := floatConstants(op, &w)
	args := []any{c.X, c.Y, weights, c.gemmTaps(op, g, row), base, limits, scale, shift, slope, w.Mask(), nil, nil, nil, nil}
	var all, splits []Candidate
	for _, form := range byteForms(c.arch) {
		all, splits = c.gemmTiles(op, g, form, args)
	}
	c.sortTiles(all, c.Out.Shape.Pixels(), w.PerGroup)
	return append(all, splits...)
}

// gemmRow completes the geometry for a GEMM, a tap having so many words, and lists the words
// of a row; none where there is no GEMM.
func (c *planner) gemmRow(op *plan.Conv, w *gpu.Conv, words int) (gpu.Geometry, []rowWord) {
	g := w.G
	pool := int(g.PoolH * g.PoolW)
	if w.MixedLanes || pool&(pool-1) != 0 {
		return g, nil
	}
	pixels := c.Out.Shape.Pixels()
	if max(c.Batch*c.In.Shape.Pixels()*int(g.InWords), c.Batch*pixels*pool) > math.MaxInt32/2 {
		return g, nil
	}
	g.PoolLog2 = int32(mathbits.Len(uint(pool)) - 1)
	// Words are loaded by twos or fours where they lie together.
	together := words
	if op.Dense && op.Groups == 1 && words == int(g.InWords) { // the whole row lies together
		together *= w.Taps
	}
	g.Vector = 1
	for g.Vector < 4 && together%int(2*g.Vector) == 0 {
		g.Vector *= 2
	}
	g.Words = int32(words)
	var row []rowWord
	for tap := range w.Taps {
		for k := range words {
			row = append(row, rowWord{tap, k})
		}
	}
	g.Planes = int32(num.CeilDiv(len(row), planeWords))
	g.PartPlanes = g.Planes
	return g, row
}

// gemmTiles lists the kernels of a form, and those that share sums.
func (c *planner) gemmTiles(op *plan.Conv, g gpu.Geometry, form gemmForm, args []any) (all, splits []Candidate) {
	pool := int(g.PoolH * g.PoolW)
	for _, t := range form.tiles {
		tiles := op.Groups * num.CeilDiv(int(g.GroupOut), t.cols)
		if pool > t.rowsOfWarp || t.sharedBytes > c.limits.Shared || tiles > c.limits.GridY {
			continue
		}
		name := fmt.Sprintf("conv_%s_%dx%d", form.name, t.rows, t.cols)
		spec := Spec{
			Kernel: gpu.Kernel{File: "conv_mma", Name: name, G: g, Args: args}, Grid: [2]int{0, tiles},
			Items: c.Out.Shape.Pixels(), ItemsOfBlock: t.rows / pool, Block: t.threads, Shared: t.sharedBytes,
		}
		all = append(all, Candidate{Variant: gpu.TensorCore, Name: name, Specs: []Spec{spec}})
		splits = append(splits, c.splitK(spec, t, form)...)
	}
	return all, splits
}

// countConstants makes of the ones of every output's weights, and of its offset, what
// conv_mma.cu adds to its counts, of thresholds what it adds to the same so that those which
// reach them are not negative. and is as in gemmForm.
func countConstants(g gpu.Geometry, thresholds []int32, ones []int, offset []int32, and bool) (base, limits []int32) {
	base = slices.Clone(offset)
	for o := range ones {
		base[o] += g.Taps
		if and {
			base[o] -= 2 * int32(ones[o])
		}
	}
	for o, threshold := range thresholds {
		limits = append(limits, saturate(int64(base[o])-int64(threshold)))
	}
	return base, limits
}

// byteConstants are the words of the weights of every output, and base and limits as of
// countConstants, for sums of bytes.
func byteConstants(w *gpu.Conv) (word func(o int, r rowWord) uint32, base, limits []int32) {
	weights, sums := w.Bytes(w.Int8())
	words := num.CeilDiv(w.In, wordBytes)
	word = func(o int, r rowWord) uint32 {
		return weights[((o/Lanes*w.Taps+r.tap)*words+r.word)*Lanes+o%Lanes]
	}
	base = w.ByteBias(sums)
	for o, threshold := range w.ThresholdsI32(w.Stride()) {
		limits = append(limits, saturate(int64(base[o])-int64(threshold)))
	}
	return word, base, limits
}

// tooManyBytes reports whether sums of so many products of bytes may not be above minSum.
func tooManyBytes(products int) bool { return products > -minSum/(255*128) }

// floatConstants are scale, shift and slope of a convolution; where its outputs are floats,
// for all columns, and 1 and 0 where it has none.
func floatConstants(op *plan.Conv, w *gpu.Conv) (scale, shift, slope []float32) {
	scale, shift, slope = op.Scale, op.Shift, w.Slope()
	if w.G.ToBits == 1 {
		return scale, shift, slope
	}
	stride := w.Stride()
	if scale == nil {
		scale, shift = gpu.PadTo(scale, stride, 1), nil
	}
	return gpu.PadTo(scale, stride, 1), gpu.PadTo(shift, stride, 0), gpu.PadTo(slope, stride, 0)
}

const (
	stagePlanes = 2 // planes that are copied at a time
	planeBits   = 32 * planeWords
	// largestSplit is the number of rows of the largest tiles that parts of a sum are
	// added up for.
	largestSplit = 64
)

// splitK lists launches of a kernel in which several blocks share the sums of a tile, for
// layers whose tiles are fewer than two for each multiprocessor: with one, two and four
// blocks for each, the second first.
func (c *planner) splitK(s Spec, t gemmTile, form gemmForm) []Candidate {
	blocks := num.CeilDiv(c.Batch*s.Items, s.ItemsOfBlock) * s.Grid[1]
	if t.rows > largestSplit || blocks >= 2*c.limits.Processors {
		return nil
	}
	// Bytes of a sum and of a ticket; what a sum may hold, and what it gets of a plane at the most.
	count, most, ofPlane := 2, int64(math.MaxUint16), planeBits
	if form.bytes {
		count, most, ofPlane = 4, math.MaxUint32, planeWords*largestOfWord
	}
	const ticket = 4
	memory := gpu.Scratch{Which: gpu.ZeroMemory, Bytes: blocks * (t.rows*t.cols*count + ticket)}
	s.Args = slices.Clone(s.Args)
	s.Args[len(s.Args)-1] = memory
	stages := num.CeilDiv(int(s.G.Planes), stagePlanes)
	var all []Candidate
	for _, ofProcessor := range []int{2, 1, 4} {
		parts := min(num.CeilDiv(ofProcessor*c.limits.Processors, blocks), stages)
		s.G.PartPlanes = int32(num.CeilDiv(stages, parts) * stagePlanes)
		s.Parts = num.CeilDiv(int(s.G.Planes), int(s.G.PartPlanes)) // none is empty
		// As much is added to each as it may be, if negative.
		if s.Parts < 2 || 2*int64(s.Parts)*int64(s.G.PartPlanes)*int64(ofPlane) > most {
			continue
		}
		made := Candidate{Variant: gpu.SplitK, Name: s.Label(), Specs: []Spec{s}}
		if !slices.ContainsFunc(all, func(other Candidate) bool { return other.Name == made.Name }) {
			all = append(all, made)
		}
	}
	return all
}

// sortTiles puts the best guess first; candidates come with the largest tiles
// first, and tensor cores before the rest.
func (c *planner) sortTiles(all []Candidate, pixels, outputs int) {
	fits := func(s Spec) bool {
		blocks := num.CeilDiv(c.Batch*pixels, s.ItemsOfBlock) * s.Grid[1]
		return blocks >= c.limits.Processors && (outputs >= 128 || s.Block <= 128)
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i].Specs[0], all[j].Specs[0]
		if fits(a) != fits(b) {
			return fits(a)
		}
		return !fits(a) && a.Block < b.Block && a.Name[:8] == b.Name[:8]
	})
}

// minSum is below all sums.
const minSum = -1 << 30

// saturate returns the nearest number that is beyond all sums, as limits may be, and leaves
// room to add a sum.
func saturate(v int64) int32 { return int32(min(max(v, minSum), -minSum)) }

// gemmTaps tells where the words of a row are: for each vector of them the offset in
// words and the rows and columns from the first tap, and a word of padding.
func (c *planner) gemmTaps(op *plan.Conv, g gpu.Geometry, row []rowWord) []int32 {
	const outside = 1 << 29
	vector := int(g.Vector)
	taps := make([]int32, 0, int(g.Planes)*planeWords/vector*4)
	for i := 0; i < int(g.Planes)*planeWords; i += vector {
		if i >= len(row) {
			taps = append(taps, 0, outside, outside, 0)
			continue
		}
		y, x := row[i].tap/op.KW*op.DilationH, row[i].tap%op.KW*op.DilationW
		offset := (y*c.In.Shape.W+x)*int(g.InWords) + row[i].word
		if op.Dense { // all of it is inside, also where a vector spans pixels
			y, x = 0, 0
		}
		taps = append(taps, int32(offset), int32(y), int32(x), 0)
	}
	return taps
}

// columnOf is the column of an output channel, see conv_mma.cu.
func columnOf(o int) int {
	of := o % Lanes
	return o/Lanes*Lanes + of%8/2*8 + of/8*2 + of%2
}

// planeWeights orders packed weights as [plane][column][word]; stride columns hold
// channels, and columns hold words, in the order that conv_mma.cu wants. ones counts the
// bits of each output.
func planeWeights(s gpu.Sizes, weights []uint64, row []rowWord, stride int) (out []uint32, ones []int) {
	words := bits.Words(s.In)
	ones = make([]int, s.Out)
	out = planesOf(s, row, stride, func(o int, r rowWord) uint32 {
		if r.word >= 2*words {
			return 0
		}
		v := gpu.Half(weights[(o*s.Taps+r.tap)*words:], r.word)
		ones[o] += mathbits.OnesCount32(v)
		return v
	})
	return out, ones
}

// planesOf orders the words of every output's weights as planeWeights does.
func planesOf(s gpu.Sizes, row []rowWord, stride int, word func(o int, r rowWord) uint32) []uint32 {
	out := make([]uint32, num.CeilDiv(len(row), planeWords)*stride*planeWords)
	for o := range s.Out {
		column := columnOf(o)
		for i, r := range row {
			at := i % planeWords
			out[(i/planeWords*stride+column)*planeWords+at%4*2+at/4] = word(o, r)
		}
	}
	return out
}
