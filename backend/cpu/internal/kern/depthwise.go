package kern

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/internal/num"
)

// Depthwise are the kernels of depthwise convolutions of 3×3 on bytes whose outputs are levels. Kernels[i] has a
// stride of i + 1 between its windows, and takes the address of a DepthwiseJob.
type Depthwise struct {
	Kernels [2]func(job *uint8)
}

const (
	// LeastDepthwise is the number of pixels that kernels of Depthwise take at least.
	LeastDepthwise = 4
	depthwiseTaps  = 3 // rows and columns
)

// DepthwiseFilter is the weights of a depthwise convolution of 3×3 in blocks of BlockOutputs channels, [block][column][channel]
// with 4 bytes for each, those of the rows and a 0, and what sums begin with, [block][channel]. Channels of a block
// are in the order of depthwiseChannel.
type DepthwiseFilter struct {
	Channels int
	weights  []uint8
	table    []int32
}

// DepthwiseBytes returns the memory of a filter.
func DepthwiseBytes(channels int) int {
	return num.Product(num.CeilDiv(channels, BlockOutputs)*BlockOutputs, 4*(depthwiseTaps+1))
}

// depthwiseChannel returns which channel of a block is at the given place. Bytes of rows become pairs and quads by
// instructions that work on 16 bytes at a time, of which they take the first or the last half: so there are four
// vectors of every fourth quad of channels, which the instructions that make bytes of sums put in order again.
func depthwiseChannel(place int) int { return place%16/4*16 + place/16*4 + place%4 }

// InDepthwiseOrder returns the values of channels, with zeros for those that blocks lack, as kernels of Depthwise
// have the scales and shifts that end their outputs. nil stays nil.
func InDepthwiseOrder[T any](row []T) []T {
	if row == nil {
		return nil
	}
	out := make([]T, num.RoundUp(len(row), BlockOutputs))
	for i := range out {
		if c := i/BlockOutputs*BlockOutputs + depthwiseChannel(i%BlockOutputs); c < len(row) {
			out[i] = row[c]
		}
	}
	return out
}

// PackDepthwise lays out weights, [channel][row][column], and what sums begin with.
func PackDepthwise(w []int8, first []int32) *DepthwiseFilter {
	const taps = depthwiseTaps
	f := &DepthwiseFilter{Channels: len(first), table: InDepthwiseOrder(first)}
	f.weights = aligned(4 * taps * len(f.table))
	for i := range f.table {
		block, place := i/BlockOutputs, i%BlockOutputs
		c := block*BlockOutputs + depthwiseChannel(place)
		if c >= len(first) {
			continue
		}
		for k, v := range w[c*taps*taps:][:taps*taps] {
			f.weights[4*((block*taps+k%taps)*BlockOutputs+place)+k/taps] = uint8(v)
		}
	}
	return f
}

// Blocks returns the number of blocks.
func (f *DepthwiseFilter) Blocks() int { return len(f.table) / BlockOutputs }

// DepthwiseJob is one call of a kernel of Depthwise: Pixels pixels of a row, LeastDepthwise at least, for a block of
// channels, with x the bytes at Src,
//
//	Dst[p·DstStep + c] = the level of the end of table[c] + Σ over y, x of Src[y·Row + (p·stride + x)·Column + c] · w[c][y][x]
//
// Distances are in bytes; the kernels rely on the offsets of the fields.
type DepthwiseJob struct {
	ConvJob
	Row, Column uintptr
	mask        uint64 // of the channels of the block
}

// Levels computes the levels of a block. The end and the levels, of which Usual holds, are those of the block, in the order
// of InDepthwiseOrder.
func (d *Depthwise) Levels(j *DepthwiseJob, f *DepthwiseFilter, block, stride int, end *End, l *Levels) {
	j.end(end)
	j.levels(l)
	j.weights, j.Table = unsafe.Pointer(&f.weights[4*depthwiseTaps*BlockOutputs*block]), unsafe.Pointer(&f.table[BlockOutputs*block])
	channels := min(f.Channels-BlockOutputs*block, BlockOutputs)
	j.mask = ^uint64(0) >> (BlockOutputs - channels)
	annotateDepthwise(j, end, channels, stride)
	d.Kernels[stride-1]((*uint8)(unsafe.Pointer(j)))
}
