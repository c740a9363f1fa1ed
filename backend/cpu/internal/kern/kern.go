// Package kern describes the inner loops of the CPU backend: a Set is a table of
// them, for one instruction set. The executor around them knows no instruction
// set: it hands a Set packed weights that the Set itself has laid out, and rows
// of patches. The Sets are in packages of their own, below this one; package sets
// knows which of them the processor can run.
//
// All Sets give the same bits. Slices are as long as the doc comments say; the
// callers see to it.
package kern

// Patches says where the patches of a row of pixels lie in a slice: a patch is
// Rows runs of RowLen consecutive elements (words of bits, or bytes). Element
// i of run r of pixel p is at index p·Step + r·RowStep + i.
type Patches struct {
	Pixels  int
	Step    int
	Rows    int
	RowStep int
	RowLen  int
}

// DotBitsWeights are ±1 weights, laid out by a Set for its DotBits: Outputs rows
// of Words words each, the last rows and bits possibly padding.
type DotBitsWeights struct {
	Outputs int
	Words   int
	K       int // true taps
	Data    []uint64
}

// DotBytesWeights are ±1 weights for patches of bytes, laid out by a Set for its
// DotBytes.
type DotBytesWeights struct {
	Outputs int
	K       int
	Data    []uint8
	Fix     []int32 // zero point · Σw per output
}

// DotWordsWeights are weights of 8 or 16 bits for patches of bytes, laid out by a Set for
// its DotWords.
type DotWordsWeights struct {
	Outputs int
	K       int
	Data    []int16
	Fix     []int32 // zero point · Σw per output
}

// Pool says which values of a row are pooled. Steps and taps count elements.
type Pool struct {
	Taps          []int
	Values        int // words or floats of a pixel
	Step, DstStep int
	Pixels        int
	Flip          uint64 // XORed to every word of an OrPool
}

// span returns the number of elements from the first that is read to the last,
// and from the first that is written to the last.
func (p *Pool) span() (read, written int) {
	last := 0
	for _, t := range p.Taps {
		last = max(last, t)
	}
	return (p.Pixels-1)*p.Step + last + p.Values, (p.Pixels-1)*p.DstStep + p.Values
}

// BytePeriod is the number of bytes after which the end of ScaleBytes repeats: pixels
// of 1, 2, 3, 4, 6, 8, 12 or 24 channels.
const BytePeriod = 24

// Cost estimates what the kernels of a Set take, in nanoseconds. Within a
// factor of two is good enough.
type Cost struct {
	Bits, Bytes, Floats float64 // a product of ±1 values, of a byte and ±1, of float32 values
	Value               float64 // a value that is read, converted and written
}

// Set is the table of kernels of an instruction set.
type Set struct {
	ISA string

	// Block is what output channels come in: DotBits and DotBytes write sums
	// for a multiple of it, those beyond Outputs being meaningless, and start at
	// a multiple of it. It divides 64.
	Block int

	// PackBits lays out weights: outputs rows of bits.Words(k) words.
	PackBits func(w []uint64, outputs, k int) *DotBitsWeights

	// DotBits computes, for every pixel p and output o from first on,
	//
	//	dst[p·stride + o − first] = K − 2·popcount(patch p XOR weights o)
	//
	// for n outputs, rounded up to a multiple of Block.
	DotBits func(dst []int32, stride int, src []uint64, at *Patches, w *DotBitsWeights, first, n int)

	// PackBytes lays out weights: outputs rows of bits.Words(k) words.
	PackBytes func(w []uint64, outputs, k int, zeroPoint uint8) *DotBytesWeights

	// DotBytes computes, for every pixel p and output o from first on,
	//
	//	dst[p·stride + o − first] = Σ (patch p − zero point)·weights o
	//
	// for n outputs, rounded up to a multiple of Block.
	DotBytes func(dst []int32, stride int, src []uint8, at *Patches, w *DotBytesWeights, first, n int)

	// PackInt8 and PackInt16 lay out weights: outputs rows of k. DotWords computes with
	// them what DotBytes does, modulo 2³².
	PackInt8  func(w []int8, outputs, k int, zeroPoint uint8) *DotWordsWeights
	PackInt16 func(w []int16, outputs, k int, zeroPoint uint8) *DotWordsWeights
	DotWords  func(dst []int32, stride int, src []uint8, at *Patches, w *DotWordsWeights, first, n int)

	// FloatBlock and FloatLanes are what NewFloatWeights lays weights out by: the
	// outputs of a block and of a register. FloatBlock divides 64.
	FloatBlock, FloatLanes int

	// FMAPixels computes, for every pixel p and output o of n from first on, which
	// is a multiple of FloatBlock, with x the values of patch p in order and t
	// their taps,
	//
	//	dst[p·stride + o − first] = bias[o], then fma(x[i], w[t[i]][o], ·) for each i
	//
	// and ends it; end is that of the n outputs. There is a pixel at least.
	FMAPixels func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, first, n int, end End)

	// FMAEach computes, for every pixel p and channel c, of which there are
	// w.Outputs, with x[r] the values from that of run r on,
	//
	//	dst[p·stride + c] = bias[c], then fma(x[r][c], w[tap of r][c], ·) for each r
	//
	// and ends it. There is a pixel at least.
	FMAEach func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, end End)

	// FMAColumns computes, for every pixel and channel c of w, like FMAEach, with x the
	// values of its window that are inside of the image, in the order of the rows and
	// of the columns,
	//
	//	dst[y·DstRow + x·DstStep + c] = bias[c], then fma(x[t][c], w[t][c], ·) for each tap t
	//
	// and ends it. There are a pixel and a row of the input at least, and FloatLanes
	// channels. Columns reports whether it is there for windows of so many taps, and so
	// many values from a pixel of the output to the next.
	FMAColumns func(dst, src []float32, at *FloatColumns, w *ColumnWeights, end End)
	Columns    func(taps, stride int) bool

	// Threshold packs pixels rows of len(t) sums, stride apart, to rows of
	// bits.Words(len(t)) words, step apart: bit o of row p is
	// sums[p·stride + o] ≥ t[o]. Padding bits become 0.
	Threshold func(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int)

	// ThresholdPlanes counts how many of three thresholds each of n values of a pixel reaches, a
	// multiple of 8: that of value o are t[o], t[o+n] and t[o+2·n], in ascending order. It sets
	// bit o of the words of a pixel to whether they are odd, and that of the words plane behind
	// them to whether they are two or three. Bits of the last word beyond n are 0. nil where a
	// set has none.
	ThresholdPlanes func(dst []uint64, step, plane int, values []float32, stride int, t []float32, pixels int)

	// ThresholdFloat is Threshold for float32 sums.
	ThresholdFloat func(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int)

	// AddTwice computes dst[i] += 2·src[i] for all of src.
	AddTwice func(dst, src []int32)

	// Or computes dst[i] |= src[i] for all of src.
	Or func(dst, src []uint64)

	// Scale ends rows of n sums each, and ScaleFloat those of float32 values, which
	// dst may be:
	//
	//	dst[r·stride + o] = end of float32(sums[r·step + o])
	Scale      func(dst []float32, stride int, sums []int32, step, n, rows int, end End)
	ScaleFloat func(dst []float32, stride int, sums []float32, step, n, rows int, end End)

	// ScaleAdd ends rows of sums like Scale, has then scale and shift them, adds values of
	// another tensor, which dst may be, and has then clip the sum:
	//
	//	v = end of float32(sums[r·step + o])
	//	dst[r·stride + o] = clip of fma(v, then.Scale[o], then.Shift[o]) + added[r·stride + o]
	//
	// A then without a scale leaves v as it is; none has slopes. nil where there is no
	// kernel for all of it.
	ScaleAdd func(dst []float32, stride int, sums []int32, step, n, rows int, end, then End, added []float32)

	// ScaleBytes ends bytes: dst[i] = end of float32(src[i]) as that of output
	// i mod BytePeriod, for all of dst. The end has a scale, and twice BytePeriod
	// outputs, of which the second half are like the first.
	ScaleBytes func(dst []float32, src []uint8, end End)

	// LevelBytes and LevelFloats write how many thresholds each of src reaches, and that
	// plus low, of rows as long as those of l, the last of which may be shorter. dst is
	// not src.
	LevelBytes  func(dst []uint8, src []float32, l *Levels)
	LevelFloats func(dst, src []float32, l *Levels, low float32)

	// LookUp computes dst[i] = t.Values[256·(i mod t.Tables) + src[i]] for all of dst.
	LookUp func(dst []float32, src []uint8, t *FloatTables)

	// Mul computes dst[i] = a[i]·b[i] for all of dst.
	Mul func(dst, a, b []float32)
	// Min sets dst[i] to a[i] where a[i] < b[i] or a[i] is a NaN, else to b[i], and Max to
	// a[i] where a[i] > b[i] or a[i] is a NaN, else to b[i], for all of dst.
	Min, Max func(dst, a, b []float32)
	// MulEach, MinEach and MaxEach are Mul, Min and Max of rows of n values each, of which b
	// has one for all of row i, b[i].
	MulEach, MinEach, MaxEach func(dst, a, b []float32, n int)
	// MulRows, MinRows and MaxRows are Mul, Min and Max of rows as long as b, of which all
	// have the values of b; dst may be a. Nil where a set has nothing better than Mul, Min and
	// Max for each row.
	MulRows, MinRows, MaxRows func(dst, a, b []float32)

	// Largest sets dst[p] to the place of the first of the largest of the n values of src
	// from p·n on, where a NaN counts as −∞, for all of dst.
	Largest func(dst, src []float32, n int)

	// Function computes dst[i] = f(src[i]) for all of dst, which may be src.
	Function func(dst, src []float32, f *Function)

	// Blend computes, for every pixel p and channel c < n, with x the values of src from
	// that of a row and a column on,
	//
	//	dst[p·n + c] = +0, then fma(x[c], row.Weight·col.Weight, ·)
	//
	// for each row and, with it, each column of the pixel, of which cols has as many for
	// all pixels. There is a row at least, and a column.
	Blend func(dst, src []float32, rows, cols []BlendTap, n, pixels int)

	// BlendRows computes what Blend does, for all of dst: rows of pixels with cols.Taps rows
	// of the input each, which rows has one after the other, at the same places for all. Nil
	// where there is nothing of the kind. A vector that cols was made for has FloatLanes
	// values.
	BlendRows func(dst, src []float32, rows []BlendTap, cols *BlendColumns)

	// Add computes dst[i] = a[i] + b[i] for all of dst, and then the activation.
	Add func(dst, a, b []float32, act Activation)

	// Choose sets dst[i] to one[i mod n] where bit i of src is set, else to
	// zero[i mod n], with n the length of both: a multiple of 64, or that of dst at
	// least.
	Choose func(dst []float32, src []uint64, one, zero []float32)

	// PickLanes is what NewPicks lays channels out for.
	PickLanes int

	// Pick computes, for every pixel p and channel c of the output,
	//
	//	dst[p·len(Index) + c] = src[p·Channels + Index[c]], or 0 where Index[c] is −1
	Pick func(dst, src []float32, picks *Picks, pixels int)

	// OrPool and MaxPool compute, for every pixel p of the pool and i < Values,
	//
	//	dst[p·DstStep + i] = OR or max over t of src[p·Step + Taps[t] + i]
	//
	// XOR Flip.
	//
	// Of equal float32 values the first one is taken.
	OrPool  func(dst, src []uint64, p *Pool)
	MaxPool func(dst, src []float32, p *Pool)
	// MaxPoolBytes is MaxPool of bytes.
	MaxPoolBytes func(dst, src []uint8, p *Pool)

	// LookUpBytes computes dst[i] = t.Values[src[i]] for all of dst, which is not src.
	LookUpBytes func(dst, src []uint8, t *ByteTable)

	// Mean computes, for every pixel p and channel c < n, with x[r] the values from
	// that of run r on, the float32 sum of +0 and x[r][c] over r, in their order, and
	// its quotient by the number of taps, whose rounded reciprocal is y, as
	// dst[p·n + c]: of a sum x
	//
	//	q = x·y, r = fma(−taps, q, x), mean = fma(r, y, q)
	//
	// There is a pixel at least, and a run.
	Mean func(dst, src []float32, at *FloatPatches, n int, taps, y float32)

	// MeanSigns computes, for every pixel p of the pool and channel c < n, the sum
	// over t of +1 where bit c of the words from src[p·Step + Taps[t]] on is set,
	// else −1, and its quotient by divisor, like Mean, as dst[p·n + c]. Values is the
	// number of words of n bits, and there are less than 2²² taps.
	MeanSigns func(dst []float32, src []uint64, n int, p *Pool, divisor, y float32)

	// Narrow computes dst[i] = uint32(src[i]) for all of dst.
	Narrow func(dst []uint32, src []uint64)

	// Join computes, for all of dst,
	//
	//	dst[i] = OR over t < taps of src[i + t·step] << (t·shift)
	Join func(dst, src []uint32, taps, step, shift int)

	// ThresholdBytes packs bytes densely: bit i of dst = src[i] ≥ t[i mod len(t)],
	// and the bits of the last word behind them are 0. len(t) is a multiple of 64.
	ThresholdBytes func(dst []uint64, src, t []uint8)

	// Floats computes dst[i] = float32(src[i]) for all of dst.
	Floats func(dst []float32, src []uint8)

	// Spread computes dst[p] = bits p·n … p·n+n−1 of src, XOR flip; n ≤ 8. It may
	// read all of src.
	Spread func(dst, src []uint64, n int, flip uint64)

	// Luma computes dst[p] = (77·r + 150·g + 29·b) >> 8 of the bytes of pixel p.
	Luma func(dst, rgb []uint8)

	// LBP computes, for all of dst, with c = row[x+1],
	//
	//	dst[x] = above[x] > c | (row[x+2] > c)<<1 | (below[x] > c)<<2
	LBP func(dst []uint64, above, row, below []uint8)

	// MinMax returns the extremes of bytes, of which there is at least one.
	MinMax func(src []uint8) (lowest, highest uint8)

	// Cost is what the executor splits work by.
	Cost Cost

	// Wide replaces DotBits and DotBytes where all outputs read the same inputs;
	// nil where the instruction set has nothing wider than a word.
	Wide *Wide

	// Peak does rounds × PeakProducts products of bits on registers and the L1
	// cache alone, as fast as the instruction set can.
	Peak         func(rounds int)
	PeakProducts int

	// PeakFMA does rounds × PeakFMAs fused products and sums of float32 on
	// registers; nil where they are not the processor's.
	PeakFMA  func(rounds int)
	PeakFMAs int
}
