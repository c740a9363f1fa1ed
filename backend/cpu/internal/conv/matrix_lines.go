package conv

import (
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// matrixLines lays out rows of the input for the kernels of a kern.Matrix: a line of 64 bytes for 64
// channels of a pixel. Pixels that a tap reads for neighbouring outputs are neighbours, also where
// the stride is not 1: every StrideH-th row and StrideW-th column is in a part of its own.
//
//	[part of rows][part of columns][64 channels][row][column][64 bytes]
//
// A row ends where the next one begins. Columns to the left of the image and those to its right are
// the same lines where both are padding.
type matrixLines struct {
	bcnn.Window
	in        *bcnn.Tensor
	image     bcnn.Shape
	planes    int
	zeroPoint uint8
	cols      int          // output columns
	across    int          // lines of the channels of a pixel
	groups    int          // of as many of them each
	patches   *linePatches // instead, where there are few channels; nil for none
	downs     []int
	columns   []columnPart
	pitch     int // lines of a row
	reach     int // rows of a part that outputs need beyond their own number
	over      int // lines behind the last row of a part that its last pixels read
}

// columnPart is every StrideW-th column: those from lines first to end of a row are inside the image.
type columnPart struct{ offset, first, end int }

func newMatrixLines(op *plan.Conv, in plan.Tensor, tensor *bcnn.Tensor, cols int) *matrixLines {
	l := &matrixLines{
		Window: op.Window, in: tensor, image: op.Image(in.Shape), planes: max(op.InPlanes, 1), zeroPoint: op.ZeroPoint,
		cols: cols, across: num.CeilDiv(in.Shape.C, kern.LineBytes), groups: op.Groups, pitch: cols,
	}
	if in.DType == bcnn.Bits {
		l.zeroPoint = 0
	} else if l.patches = newLinePatches(l); l.patches != nil {
		return l
	}
	for ky := range l.KH {
		part, beyond := ky*l.DilationH%l.StrideH, ky*l.DilationH/l.StrideH
		if !slices.Contains(l.downs, part) {
			l.downs = append(l.downs, part)
		}
		l.reach = max(l.reach, beyond)
	}
	for kx := range l.KW {
		part, beyond := kx*l.DilationW%l.StrideW, kx*l.DilationW/l.StrideW
		needed := cols + beyond
		c := columnPart{offset: part - l.Pad.Left}
		c.first = min(num.CeilDiv(max(-c.offset, 0), l.StrideW), needed)
		c.end = max(min(num.CeilDiv(max(l.image.W-c.offset, 0), l.StrideW), needed), c.first)
		l.pitch = max(l.pitch, c.end, needed-c.first)
		l.over = max(l.over, needed)
		at := l.column(part)
		if at == len(l.columns) {
			l.columns = append(l.columns, c)
		}
		// The first taps may not reach the image.
		l.columns[at].first, l.columns[at].end = max(l.columns[at].first, c.first), max(l.columns[at].end, c.end)
	}
	l.over = max(l.over-l.pitch, 0)
	return l
}

// column returns the number of the part of columns of an offset.
func (l *matrixLines) column(part int) int {
	for i, c := range l.columns {
		if c.offset == part-l.Pad.Left {
			return i
		}
	}
	return len(l.columns)
}

// partRows returns the rows of a part that so many rows of outputs need.
func (l *matrixLines) partRows(rows int) int { return rows + l.reach }

// partLines returns the lines of 64 channels of a part.
func (l *matrixLines) partLines(rows int) int {
	if l.patches != nil {
		return num.Product(rows, l.cols)
	}
	return num.Sum(num.Product(l.partRows(rows), l.pitch), l.over)
}

// size returns the lines that so many rows of outputs need.
func (l *matrixLines) size(rows int) int {
	if l.patches != nil {
		return num.Product(len(l.patches.lines), l.partLines(rows))
	}
	return num.Product(len(l.downs), len(l.columns), l.across, l.partLines(rows))
}

// memory returns the bytes that so many rows of outputs need.
func (l *matrixLines) memory(rows int) int {
	lines := num.Product(l.size(rows), kern.LineBytes)
	if l.patches != nil {
		lines = num.Sum(lines, num.Product(l.patches.rows(l, rows), l.patches.row))
	}
	return lines
}

// steps returns the number of lines of a window, of the channels of a group.
func (l *matrixLines) steps() int {
	if l.patches != nil {
		return len(l.patches.lines)
	}
	return l.across / l.groups * l.KH * l.KW
}

// group returns the distance in bytes of the lines of a group from those of the next one, for tiles of
// so many rows of outputs.
func (l *matrixLines) group(rows int) int {
	return l.across / l.groups * l.partLines(rows) * kern.LineBytes
}

// taps returns the offsets in bytes of the lines of a window on the first group, for tiles of so many
// rows of outputs: of 64 channels after the other.
func (l *matrixLines) taps(rows int) []uint32 {
	var taps []uint32
	part := l.partLines(rows)
	if l.patches != nil {
		for i := range l.patches.lines {
			taps = append(taps, uint32(i*part*kern.LineBytes))
		}
		return taps
	}
	for a := range l.across / l.groups {
		for ky := range l.KH {
			down := slices.Index(l.downs, ky*l.DilationH%l.StrideH)
			for kx := range l.KW {
				column := l.column(kx * l.DilationW % l.StrideW)
				line := ((down*len(l.columns)+column)*l.across+a)*part + ky*l.DilationH/l.StrideH*l.pitch + kx*l.DilationW/l.StrideW
				taps = append(taps, uint32(line*kern.LineBytes))
			}
		}
	}
	return taps
}

// load writes the lines for rows output rows, from row first on. size is the number of rows for which
// the taps are.
func (l *matrixLines) load(s *tiles.Scratch, set *kern.Set, dst []uint8, image, first, rows, size int) {
	if l.patches != nil {
		l.patches.load(s, l, set, dst, image, first, rows, size)
		return
	}
	part, row := l.partLines(size)*kern.LineBytes, l.pitch*kern.LineBytes
	for d, down := range l.downs {
		// Rows of the part from low to before high are inside the image.
		top := first*l.StrideH + down - l.Pad.Top
		low := min(num.CeilDiv(max(-top, 0), l.StrideH), l.partRows(rows))
		high := max(min(num.CeilDiv(max(l.image.H-top, 0), l.StrideH), l.partRows(rows)), low)
		for i := range l.columns {
			for a := range l.across {
				if s.Ended() {
					return
				}
				to := dst[((d*len(l.columns)+i)*l.across+a)*part:][:part]
				l.border(to[:low*row], l.channels(a))
				l.rows(s, set, to[low*row:], image, top+low*l.StrideH, high-low, a, &l.columns[i])
				l.border(to[high*row:], l.channels(a))
			}
		}
	}
}

// channels returns how many channels a line has.
func (l *matrixLines) channels(across int) int {
	return min(l.image.C-across*kern.LineBytes, kern.LineBytes)
}

// rows writes rows of a part that are inside the image, the first of which is row y of it.
func (l *matrixLines) rows(s *tiles.Scratch, set *kern.Set, dst []uint8, image, y, rows, across int, c *columnPart) {
	if rows == 0 {
		return
	}
	at := &s.Lines
	*at = kern.LineRows{
		Rows: rows, Before: c.first, Inside: c.end - c.first, After: l.pitch - c.end, Planes: l.planes,
		Mask: ^uint64(0) >> (kern.LineBytes - l.channels(across)), Border: l.zeroPoint,
	}
	x := min(max(c.first*l.StrideW+c.offset, 0), l.image.W-1) // if none is inside, none is read
	if l.in.DType == bcnn.Bits {
		words := bits.Words(l.image.C)
		row := l.image.W * words
		at.Step, at.Plane, at.Row = 8*l.StrideW*words, 8*row, 8*l.StrideH*l.planes*row
		set.Matrix.LinesOfBits(dst, l.in.Words[(image*l.image.H+y)*l.planes*row+x*words+across:], at)
		return
	}
	at.Step, at.Row = l.StrideW*l.image.C, l.StrideH*l.image.W*l.image.C
	set.Matrix.LinesOfBytes(dst, l.in.U8[((image*l.image.H+y)*l.image.W+x)*l.image.C+across*kern.LineBytes:], at)
}

// border writes lines outside of the image. What is behind the channels is 0, whose products with
// weights of ±1 are, too.
func (l *matrixLines) border(dst []uint8, channels int) {
	if l.zeroPoint == 0 {
		clear(dst)
		return
	}
	for ; len(dst) > 0; dst = dst[kern.LineBytes:] {
		fill(dst[:channels], l.zeroPoint)
		clear(dst[channels:kern.LineBytes])
	}
}

// signs returns the weights of ±1 as lines of words, in the order of taps.
func (l *matrixLines) signs(op *plan.Conv) []uint64 {
	if l.patches != nil {
		return l.patches.signs(l, op)
	}
	filter, across := l.KH*l.KW, l.across/l.groups
	out := make([]uint64, 0, len(op.Bits))
	for o := range op.Out {
		for a := range across {
			for t := range filter {
				out = append(out, op.Bits[(o*filter+t)*across+a])
			}
		}
	}
	return out
}

// bytes returns weights of 8 bits as lines, in the order of taps.
func (l *matrixLines) bytes(outputs int, weights []int8) []int8 {
	if l.patches != nil {
		return l.patches.bytes(l, outputs, weights)
	}
	filter, n := l.KH*l.KW, l.image.C/l.groups
	out := make([]int8, outputs*l.steps()*kern.LineBytes)
	at := 0
	for o := range outputs {
		for a := range l.across / l.groups {
			first := a * kern.LineBytes
			for t := range filter {
				copy(out[at:at+kern.LineBytes], weights[(o*filter+t)*n+first:][:min(n-first, kern.LineBytes)])
				at += kern.LineBytes
			}
		}
	}
	return out
}

// lineBuffer returns the lines of a tile, which begin at a multiple of their length.
func lineBuffer(memory []uint8) []uint8 {
	skip := -uintptr(unsafe.Pointer(&memory[0])) % kern.LineBytes
	return memory[skip:]
}
