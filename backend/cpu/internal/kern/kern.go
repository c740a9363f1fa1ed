// Package kern describes the inner loops of the CPU backend: a Set is a table of them for one
// instruction set. The executor around them knows no instruction set: it hands a Set packed weights
// that the Set itself has laid out, and rows of patches. The Sets are in packages of their own
// below this one; package sets knows which of them the processor can run.
//
// All Sets give the same bits. Callers ensure that slices are as long as the doc comments say.
package kern

// Patches says where the patches of a row of pixels lie in a slice. A patch is Rows runs of RowLen
// consecutive elements (words of bits, or bytes): element i of run r of pixel p is at index p·Step
// + r·RowStep + i.
type Patches struct {
	Pixels  int
	Step    int
	Rows    int
	RowStep int
	RowLen  int
}

// DotBitsWeights are ±1 weights, laid out by a Set for its DotBits: Outputs rows of Words words
// each. The last rows and bits may be padding.
type DotBitsWeights struct {
	Outputs int
	Words   int
	K       int // taps, without padding
	Data    []uint64
}

// DotBytesWeights are ±1 weights for patches of bytes, laid out by a Set for its DotBytes.
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
	Flip          uint64 // XORed to every word by OrPool
}

// span returns how many elements there are from the first that is read to the last, and from the
// first that is written to the last.
func (p *Pool) span() (read, written int) {
	last := 0
	for _, t := range p.Taps {
		last = max(last, t)
	}
	return (p.Pixels-1)*p.Step + last + p.Values, (p.Pixels-1)*p.DstStep + p.Values
}

// BytePeriod is the number of bytes after which the end of ScaleBytes repeats. It suits pixels of
// 1, 2, 3, 4, 6, 8, 12 or 24 channels.
const BytePeriod = 24

// Cost estimates the time of the kernels of a Set in nanoseconds. A factor of two is close enough.
type Cost struct {
	Bits, Bytes, Floats float64 // a product of ±1 values, of a byte and ±1, of float32 values
	Value               float64 // to read, convert and write a value
}

// Set is the table of kernels of an instruction set.
type Set struct {
	ISA string

	// DotBits, DotBytes and DotWords write sums of a multiple of Block outputs, from a multiple of
	// Block on. Sums of outputs beyond the last one have no meaning. Block divides 64.
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

	// PackInt8 and PackInt16 lay out weights: outputs rows of k. With them DotWords computes what
	// DotBytes does, modulo 2³².
	PackInt8  func(w []int8, outputs, k int, zeroPoint uint8) *DotWordsWeights
	PackInt16 func(w []int16, outputs, k int, zeroPoint uint8) *DotWordsWeights
	DotWords  func(dst []int32, stride int, src []uint8, at *Patches, w *DotWordsWeights, first, n int)

	// FloatBlock and FloatLanes are how many outputs a block and a register have in the layout of
	// NewFloatWeights. FloatBlock divides 64.
	FloatBlock, FloatLanes int

	// FMAPixels computes, for every pixel p and each output o of n from first on, with x the values
	// of patch p in order and t their taps,
	//
	//	dst[p·stride + o − first] = bias[o], then fma(x[i], w[t[i]][o], ·) for each i
	//
	// and applies end, which is that of these outputs. first is a multiple of FloatBlock. There is
	// at least one pixel.
	FMAPixels func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, first, n int, end End)

	// FMAEach computes, for every pixel p and each channel c of w.Outputs, with x[r] the values of
	// run r,
	//
	//	dst[p·stride + c] = bias[c], then fma(x[r][c], w[tap of r][c], ·) for each r
	//
	// and applies end. There is at least one pixel.
	FMAEach func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, end End)

	// FMAGroups computes, for every pixel p and each output o of w, with x[r] the values of run r, which are
	// those of the first group, n of each, and g the group of o, of outs outputs,
	//
	//	dst[p·stride + o] = bias[o], then fma(x[r][n·g + i], w[tap of r + i][o], ·) for each r and i < n
	//
	// and applies end. Groups reports whether there is a kernel: for at.Slide of 3 and at.Stride of 1, and
	// so many pixels, inputs and outputs of a group, and outputs. FMAGroups is nil where there is none.
	FMAGroups func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, n, outs int, end End)
	Groups    func(at *FloatPatches, n, outs, outputs int) bool

	// FMAColumns computes, for every pixel and channel c of w, like FMAEach, with x the values of
	// its window that are inside the image, row by row,
	//
	//	dst[y·DstRow + x·DstStep + c] = bias[c], then fma(x[t][c], w[t][c], ·) for each tap t
	//
	// and applies end. There are at least one pixel, one row of the input, and FloatLanes channels.
	// Columns reports whether there is a kernel for windows of so many taps, and so many values
	// from a pixel of the output to the next.
	FMAColumns func(dst, src []float32, at *FloatColumns, w *ColumnWeights, end End)
	Columns    func(taps, stride int) bool

	// Depthwise are the kernels of depthwise convolutions on bytes; nil if there are none.
	Depthwise *Depthwise

	// Threshold packs pixels rows of len(t) sums, stride apart, into rows of bits.Words(len(t))
	// words, step apart: bit o of row p is sums[p·stride + o] ≥ t[o]. Padding bits become 0.
	Threshold func(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int)

	// ThresholdPlanes counts how many of three thresholds each value of a pixel reaches. Value o of
	// n, a multiple of 8, has the thresholds t[o], t[o+n] and t[o+2·n], in ascending order. The low
	// bit of the count is bit o of the words of the pixel, the high bit that of the words plane
	// behind them. Bits of the last word beyond n are 0. nil if a set has no such kernel.
	ThresholdPlanes func(dst []uint64, step, plane int, values []float32, stride int, t []float32, pixels int)

	// ThresholdFloat is Threshold for float32 sums.
	ThresholdFloat func(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int)

	// AddTwice computes dst[i] += 2·src[i] for all of src.
	AddTwice func(dst, src []int32)

	// Or computes dst[i] |= src[i] for all of src.
	Or func(dst, src []uint64)

	// Scale applies end to rows of n sums each, and ScaleFloat to rows of float32 values, which may
	// be dst:
	//
	//	dst[r·stride + o] = end of float32(sums[r·step + o])
	Scale      func(dst []float32, stride int, sums []int32, step, n, rows int, end End)
	ScaleFloat func(dst []float32, stride int, sums []float32, step, n, rows int, end End)

	// ScaleAdd applies end to rows of sums, scales and shifts the results by then, adds the values
	// of another tensor, which may be dst, and clips the sums by then:
	//
	//	v = end of float32(sums[r·step + o])
	//	dst[r·stride + o] = clip of fma(v, then.Scale[o], then.Shift[o]) + added[r·stride + o]
	//
	// Without a scale in then, v is added as it is. then has no slopes. nil if there
	// is no kernel for all of it.
	ScaleAdd func(dst []float32, stride int, sums []int32, step, n, rows int, end, then End, added []float32)

	// ScaleBytes computes dst[i] = end of float32(src[i]), as output i mod BytePeriod, for all of
	// dst. The end has a scale, and twice BytePeriod outputs, whose second half repeats the first.
	ScaleBytes func(dst []float32, src []uint8, end End)

	// LevelBytes writes how many thresholds of l each value of src reaches, LevelFloats that plus
	// low. src is rows as long as those of l; the last may be shorter. dst is not src.
	LevelBytes  func(dst []uint8, src []float32, l *Levels)
	LevelFloats func(dst, src []float32, l *Levels, low float32)

	// LookUp computes dst[i] = t.Values[256·(i mod t.Tables) + src[i]] for all of dst.
	LookUp func(dst []float32, src []uint8, t *FloatTables)

	// Pairs has the kernels of each Pair.
	Pairs [NumPairs]PairKernels

	// Largest sets dst[p] to the position of the first maximum of the n values of src from p·n on,
	// for all of dst. A NaN counts as −∞.
	Largest func(dst, src []float32, n int)

	// Function computes dst[i] = f(src[i]) for all of dst, which may be src.
	Function func(dst, src []float32, f *Function)

	// Blend computes, for every pixel p and channel c < n, with x the values of the pixel of src at
	// a row and a column,
	//
	//	dst[p·n + c] = +0, then fma(x[c], row.Weight·col.Weight, ·)
	//
	// for each row and, within it, each column of the pixel. All pixels have the same number of
	// columns. There are at least one row and one column.
	Blend func(dst, src []float32, rows, cols []BlendTap, n, pixels int)

	// BlendRows computes what Blend does for all of dst, which is rows of pixels. rows has
	// cols.Taps rows of the input for each of them, one after the other; cols is the same for all.
	// Vectors of cols have FloatLanes values. nil if there is no such kernel.
	BlendRows func(dst, src []float32, rows []BlendTap, cols *BlendColumns)

	// Add computes dst[i] = a[i] + b[i] for all of dst, and then the activation.
	Add func(dst, a, b []float32, act Activation)

	// Choose sets dst[i] to one[i mod n] where bit i of src is set, else to zero[i mod n]. n, the
	// length of both, is a multiple of 64, or at least that of dst.
	Choose func(dst []float32, src []uint64, one, zero []float32)

	// PickLanes is the number of lanes for NewPicks.
	PickLanes int

	// Pick computes, for every pixel p and channel c of the output,
	//
	//	dst[p·len(Index) + c] = src[p·Channels + Index[c]], or 0 where Index[c] is −1
	Pick func(dst, src []float32, picks *Picks, pixels int)

	// OrPool and MaxPool compute, for every pixel p of the pool and i < Values,
	//
	//	dst[p·DstStep + i] = OR or max over t of src[p·Step + Taps[t] + i]
	//
	// OrPool XORs Flip to that. MaxPool takes the first of equal float32 values.
	OrPool  func(dst, src []uint64, p *Pool)
	MaxPool func(dst, src []float32, p *Pool)
	// MaxPoolBytes is MaxPool of bytes.
	MaxPoolBytes func(dst, src []uint8, p *Pool)

	// LookUpBytes computes dst[i] = t.Values[src[i]] for all of dst, which is not src.
	LookUpBytes func(dst, src []uint8, t *ByteTable)

	// Mean computes, for every pixel p and channel c < n, with x[r] the values of run r, the
	// float32 sum of +0 and x[r][c] over r, in order, and writes its quotient by taps to dst[p·n +
	// c]. y is the rounded reciprocal of taps. The quotient of a sum x is
	//
	//	q = x·y, r = fma(−taps, q, x), mean = fma(r, y, q)
	//
	// There are at least one pixel and one run.
	Mean func(dst, src []float32, at *FloatPatches, n int, taps, y float32)

	// MeanSigns computes, for every pixel p of the pool and channel c < n, the sum over t of +1
	// where bit c of the words from src[p·Step + Taps[t]] on is set, else −1, and writes its
	// quotient by divisor, as Mean computes it, to dst[p·n + c]. Values is the number of words of n
	// bits. There are less than 2²² taps.
	MeanSigns func(dst []float32, src []uint64, n int, p *Pool, divisor, y float32)

	// Narrow computes dst[i] = uint32(src[i]) for all of dst.
	Narrow func(dst []uint32, src []uint64)

	// Join computes, for all of dst,
	//
	//	dst[i] = OR over t < taps of src[i + t·step] << (t·shift)
	Join func(dst, src []uint32, taps, step, shift int)

	// ThresholdBytes packs bytes densely: bit i of dst = src[i] ≥ t[i mod len(t)]. Bits of the last
	// word behind them are 0. len(t) is a multiple of 64.
	ThresholdBytes func(dst []uint64, src, t []uint8)

	// Floats computes dst[i] = float32(src[i]) for all of dst.
	Floats func(dst []float32, src []uint8)

	// Spread computes dst[p] = bits p·n … p·n+n−1 of src, XOR flip, with n ≤ 8. It may read all of
	// src.
	Spread func(dst, src []uint64, n int, flip uint64)

	// Luma computes dst[p] = (77·r + 150·g + 29·b) >> 8 of the bytes of pixel p.
	Luma func(dst, rgb []uint8)

	// LBP computes, for all of dst, with c = row[x+1],
	//
	//	dst[x] = above[x] > c | (row[x+2] > c)<<1 | (below[x] > c)<<2
	LBP func(dst []uint64, above, row, below []uint8)

	// MinMax returns the least and the greatest of at least one byte.
	MinMax func(src []uint8) (lowest, highest uint8)

	// Cost is what the executor divides work by.
	Cost Cost

	// Wide replaces DotBits and DotBytes where all outputs read the same inputs. nil if the
	// instruction set has no registers wider than a word.
	Wide *Wide

	// Matrix replaces Wide where that takes less time. nil if the instruction set multiplies no
	// matrices.
	Matrix *Matrix

	// Peaks are loops over products of bits on registers and the L1 cache alone, each as fast
	// as some instructions of the set can. Which of them is the fastest may change with what
	// else runs on a core.
	Peaks []Peak

	// Read reads memory as fast as the instruction set can. Its length is a multiple of
	// ReadBytes.
	Read func(b []byte)

	// PeakFMA computes rounds × PeakFMAs fused multiplications and additions of float32, on
	// registers. nil if the processor has no such instructions.
	PeakFMA  func(rounds int)
	PeakFMAs int
}

// Peak is a loop that computes rounds × Products products of bits.
type Peak struct {
	Run      func(rounds int)
	Products int
}

// ReadBytes is what Read reads at least.
const ReadBytes = 2048
