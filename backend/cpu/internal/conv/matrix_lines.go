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
	// signs packs weights of ±1, and bytes returns those of 8 bits as lines, in the order of taps.
	signs(m *kern.Matrix, op *plan.Conv) *kern.MatrixFilter
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
	// Weights of ±1 become bytes there, which should not be many.
	if op.Bits == nil || num.Product(op.Out, rows.steps(), kern.LineBytes) < nibbles {
		all = append(all, &rows)
	}
	if 2*common.KW*common.image.C <= kern.LineBytes {
		patches := common
		patches.lineLayout = newPatchLines(&patches)
		all = append(all, &patches)
	}
	return all
}

// partRows returns the rows of a part that so many rows of outputs need.
func (l *matrixLines) partRows(rows int) int { return rows + l.reach }

// borderedRow writes row y of an image of bytes, with what windows read beside it. A row outside of the
// image is all border.
func (l *matrixLines) borderedRow(dst []uint8, image, y int) {
	if y < 0 || y >= l.image.H {
		fill(dst, l.zeroPoint)
		return
	}
	width := l.image.W * l.image.C
	left := min(l.Pad.Left*l.image.C, len(dst))
	inside := min(width, len(dst)-left)
	fill(dst[:left], l.zeroPoint)
	copy(dst[left:][:inside], l.in.U8[(image*l.image.H+y)*width:])
	fill(dst[left+inside:], l.zeroPoint)
}

// lineBuffer returns the lines of a tile, which begin at a multiple of their length.
func lineBuffer(memory []uint8) []uint8 {
	skip := -uintptr(unsafe.Pointer(&memory[0])) % kern.LineBytes
	return memory[skip:]
}
