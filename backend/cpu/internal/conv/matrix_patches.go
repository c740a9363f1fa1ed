package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// linePatches are lines of the patches of bytes of few channels: a line has as many runs of a patch as
// fit, and each output pixel has lines of its own.
//
//	[line of a patch][row][column][64 bytes], and behind them rows of the input with their border
type linePatches struct {
	run     int // bytes of a run
	perLine int // runs
	row     int // bytes of a row of the input
	lines   [][]kern.LineRun
}

// newLinePatches returns nil where a run is longer than a line, or not what follows a pixel.
func newLinePatches(l *matrixLines) *linePatches {
	run := l.KW * l.image.C
	if run > kern.LineBytes || l.KW > 1 && l.DilationW > 1 || l.groups > 1 {
		return nil
	}
	p := &linePatches{run: run, perLine: kern.LineBytes / run, row: ((l.cols-1)*l.StrideW + l.KW) * l.image.C}
	for ky := range l.KH {
		place := ky % p.perLine * run
		if place == 0 {
			p.lines = append(p.lines, nil)
		}
		line := &p.lines[len(p.lines)-1]
		mask := ^uint64(0) >> (kern.LineBytes - run) << place
		*line = append(*line, kern.LineRun{Offset: ky*l.DilationH*p.row - place, Mask: mask})
	}
	return p
}

// rows returns the rows of the input that so many rows of outputs need.
func (p *linePatches) rows(l *matrixLines, rows int) int {
	return (rows-1)*l.StrideH + (l.KH-1)*l.DilationH + 1
}

// load is that of matrixLines.
func (p *linePatches) load(s *tiles.Scratch, l *matrixLines, set *kern.Set, dst []uint8, image, first, rows, size int) {
	line := size * l.cols * kern.LineBytes
	input := dst[len(p.lines)*line:]
	left := min(l.Pad.Left*l.image.C, p.row)
	inside := min(l.image.W*l.image.C, p.row-left)
	for r := range p.rows(l, rows) {
		if s.Ended() {
			return
		}
		row, y := input[r*p.row:][:p.row], first*l.StrideH-l.Pad.Top+r
		if y < 0 || y >= l.image.H {
			fill(row, l.zeroPoint)
			continue
		}
		fill(row[:left], l.zeroPoint)
		copy(row[left:][:inside], l.in.U8[(image*l.image.H+y)*l.image.W*l.image.C:])
		fill(row[left+inside:], l.zeroPoint)
	}
	for i, runs := range p.lines {
		s.LineRuns = kern.RunRows{Rows: rows, Pixels: l.cols, Step: l.StrideW * l.image.C, Row: l.StrideH * p.row, Runs: runs}
		set.Matrix.LinesOfRuns(dst[i*line:], input, &s.LineRuns)
	}
}

// signs is that of matrixLines.
func (p *linePatches) signs(l *matrixLines, op *plan.Conv) []uint64 {
	words := bits.Words(l.image.C)
	out := make([]uint64, op.Out*len(p.lines))
	for o := range op.Out {
		for k := range l.KH * l.KW {
			ky, kx := k/l.KW, k%l.KW
			tap := op.Bits[(o*l.KH*l.KW+k)*words:][:words]
			at := o*len(p.lines)*kern.LineBytes + ky/p.perLine*kern.LineBytes + ky%p.perLine*p.run + kx*l.image.C
			bits.Copy(out, at, tap, 0, l.image.C)
		}
	}
	return out
}

// bytes is that of matrixLines.
func (p *linePatches) bytes(l *matrixLines, outputs int, weights []int8) []int8 {
	out := make([]int8, num.Product(outputs, len(p.lines), kern.LineBytes))
	for o := range outputs {
		for ky := range l.KH {
			at := (o*len(p.lines)+ky/p.perLine)*kern.LineBytes + ky%p.perLine*p.run
			copy(out[at:], weights[(o*l.KH+ky)*p.run:][:p.run])
		}
	}
	return out
}
