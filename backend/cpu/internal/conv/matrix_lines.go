package conv

import (
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// matrixLines lays out rows of the input for the kernels of a kern.Matrix: lines of 64 bytes that the
// weights of a step meet, those of neighbouring outputs equally far apart. Lines of rows of outputs
// follow each other, some behind the last column being of no output.
type matrixLines struct {
	bcnn.Window
	in        *bcnn.Tensor
	image     bcnn.Shape
	planes    int
	zeroPoint uint8
	cols      int // output columns
	groups    int
	pitch     int // lines of a row
	line      int // bytes from a line to the next
	// Rows of the image, every StrideH-th in a part of its own: which parts taps read, and how many rows
	// of a part outputs need beyond their own number.
	downs []int
	reach int
	lineLayout
}

// lineLayout is a way to lay out lines, for tiles of so many rows of outputs.
type lineLayout interface {
	// memory returns the bytes of the lines, and cost the cycles that they take.
	memory(rows int) int
	cost(rows int) float64
	// steps returns the number of lines of a window, of the channels of a group.
	steps() int
	// taps returns the offsets in bytes of the lines of a window on the first group, and group those from
	// the lines of a group to those of the next one.
	taps(rows int) []uint32
	group(rows int) int
	// load writes the lines for rows output rows, from row first on. size is the number of rows for which
	// the taps are.
	load(s *tiles.Scratch, set *kern.Set, dst []uint8, image, first, rows, size int)
	// signs returns weights of ±1 as lines of words, and bytes those of 8 bits as lines of bytes, in the
	// order of taps.
	signs(op *plan.Conv) []uint64
	bytes(outputs int, weights []int8) []int8
}

// newMatrixLines returns the layouts that there are for a convolution.
func newMatrixLines(op *plan.Conv, in plan.Tensor, tensor *bcnn.Tensor, cols int) []*matrixLines {
	common := matrixLines{
		Window: op.Window, in: tensor, image: op.Image(in.Shape), planes: max(op.InPlanes, 1), zeroPoint: op.ZeroPoint,
		cols: cols, groups: op.Groups, pitch: cols, line: kern.LineBytes,
	}
	if in.DType == bcnn.Bits {
		common.zeroPoint = 0
	}
	for ky := range common.KH {
		part, beyond := ky*common.DilationH%common.StrideH, ky*common.DilationH/common.StrideH
		if !slices.Contains(common.downs, part) {
			common.downs = append(common.downs, part)
		}
		common.reach = max(common.reach, beyond)
	}
	channels := common
	channels.lineLayout = newChannelLines(&channels)
	all := []*matrixLines{&channels}
	if in.DType == bcnn.Bits || common.groups > 1 || common.KW > 1 && common.DilationW > 1 {
		return all
	}
	rows := common
	rows.lineLayout = newRowLines(&rows)
	all = append(all, &rows)
	if 2*common.KW*common.image.C <= kern.LineBytes {
		patches := common
		patches.lineLayout = newPatchLines(&patches)
		all = append(all, &patches)
	}
	return all
}

// partRows returns the rows of a part that so many rows of outputs need.
func (l *matrixLines) partRows(rows int) int { return rows + l.reach }

// inside returns which rows of a part are inside the image, those from low to before high, and row 0 of the
// part as one of the image, for so many rows of outputs from first on.
func (l *matrixLines) inside(down, first, rows int) (low, high, top int) {
	top = first*l.StrideH + down - l.Pad.Top
	low = min(num.CeilDiv(max(-top, 0), l.StrideH), l.partRows(rows))
	high = max(min(num.CeilDiv(max(l.image.H-top, 0), l.StrideH), l.partRows(rows)), low)
	return low, high, top
}

// lineBuffer returns the lines of a tile, which begin at a multiple of their length.
func lineBuffer(memory []uint8) []uint8 {
	skip := -uintptr(unsafe.Pointer(&memory[0])) % kern.LineBytes
	return memory[skip:]
}
