package conv

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// channelLines are lines of 64 channels of a pixel each. Pixels that a tap reads for neighbouring outputs
// are neighbours, also where the stride is not 1: every StrideH-th row and StrideW-th column is in a part
// of its own.
//
//	[part of rows][part of columns][64 channels][row][column][64 bytes]
//
// A row ends where the next one begins. Columns to the left of the image and those to its right are
// the same lines where both are padding.
type channelLines struct {
	*matrixLines
	across  int // lines of the channels of a pixel
	columns []columnPart
	over    int // lines behind the last row of a part that its last pixels read
}

// columnPart is every StrideW-th column: those from lines first to end of a row are inside the image.
type columnPart struct{ offset, first, end int }

func newChannelLines(l *matrixLines) *channelLines {
	c := &channelLines{matrixLines: l, across: num.CeilDiv(l.image.C, kern.LineBytes)}
	for kx := range l.KW {
		part, beyond := kx*l.DilationW%l.StrideW, kx*l.DilationW/l.StrideW
		needed := l.cols + beyond
		p := columnPart{offset: part - l.Pad.Left}
		p.first = min(num.CeilDiv(max(-p.offset, 0), l.StrideW), needed)
		p.end = max(min(num.CeilDiv(max(l.image.W-p.offset, 0), l.StrideW), needed), p.first)
		l.pitch = max(l.pitch, p.end, needed-p.first)
		c.over = max(c.over, needed)
		at := c.column(part)
		if at == len(c.columns) {
			c.columns = append(c.columns, p)
		}
		// The first taps may not reach the image.
		c.columns[at].first, c.columns[at].end = max(c.columns[at].first, p.first), max(c.columns[at].end, p.end)
	}
	c.over = max(c.over-l.pitch, 0)
	return c
}

// column returns the number of the part of columns of an offset.
func (l *channelLines) column(part int) int {
	for i, c := range l.columns {
		if c.offset == part-l.Pad.Left {
			return i
		}
	}
	return len(l.columns)
}

// partLines returns the lines of 64 channels of a part.
func (l *channelLines) partLines(rows int) int {
	return num.Sum(num.Product(l.partRows(rows), l.pitch), l.over)
}

// size returns the lines that so many rows of outputs need.
func (l *channelLines) size(rows int) int {
	return num.Product(len(l.downs), len(l.columns), l.across, l.partLines(rows))
}

func (l *channelLines) memory(rows int) int { return num.Product(l.size(rows), kern.LineBytes) }

func (l *channelLines) cost(rows int) float64 {
	const makeLine = 2 // cycles for a line
	return makeLine * float64(l.size(rows))
}

func (l *channelLines) steps() int { return l.across / l.groups * l.KH * l.KW }

func (l *channelLines) group(rows int) int {
	return l.across / l.groups * l.partLines(rows) * kern.LineBytes
}

// taps has those of 64 channels after the other.
func (l *channelLines) taps(rows int) []uint32 {
	var taps []uint32
	part := l.partLines(rows)
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

func (l *channelLines) load(s *tiles.Scratch, set *kern.Set, dst []uint8, image, first, rows, size int) {
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
func (l *channelLines) channels(across int) int {
	return min(l.image.C-across*kern.LineBytes, kern.LineBytes)
}

// rows writes rows of a part that are inside the image, the first of which is row y of it.
func (l *channelLines) rows(s *tiles.Scratch, set *kern.Set, dst []uint8, image, y, rows, across int, c *columnPart) {
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
func (l *channelLines) border(dst []uint8, channels int) {
	if l.zeroPoint == 0 {
		clear(dst)
		return
	}
	for ; len(dst) > 0; dst = dst[kern.LineBytes:] {
		fill(dst[:channels], l.zeroPoint)
		clear(dst[channels:kern.LineBytes])
	}
}

func (l *channelLines) signs(m *kern.Matrix, op *plan.Conv) *kern.MatrixFilter {
	filter, across := l.KH*l.KW, l.across/l.groups
	out := make([]uint64, 0, len(op.Bits))
	for o := range op.Out {
		for a := range across {
			for t := range filter {
				out = append(out, op.Bits[(o*filter+t)*across+a])
			}
		}
	}
	return kern.PackMatrixSigns(m, out, op.Out, l.steps())
}

func (l *channelLines) bytes(outputs int, weights []int8) []int8 {
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
