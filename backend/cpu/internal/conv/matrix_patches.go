package conv

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// patchLines are lines of the patches of bytes of few channels: a line has as many runs of a patch as
// fit, two at least, and each output pixel has lines of its own.
//
//	[line of a patch][row][column][64 bytes], and behind them rows of the input with their border
type patchLines struct {
	*matrixLines
	run     int // bytes of a run
	perLine int // runs
	row     int // bytes of a row of the input
	lines   [][]kern.LineRun
}

func newPatchLines(l *matrixLines) *patchLines {
	run := l.KW * l.image.C
	p := &patchLines{matrixLines: l, run: run, perLine: kern.LineBytes / run, row: ((l.cols-1)*l.StrideW + l.KW) * l.image.C}
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
func (l *patchLines) rows(rows int) int { return (rows-1)*l.StrideH + (l.KH-1)*l.DilationH + 1 }

// size returns the bytes of a line of all patches.
func (l *patchLines) size(rows int) int { return num.Product(rows, l.cols, kern.LineBytes) }

func (l *patchLines) memory(rows int) int {
	return num.Sum(num.Product(len(l.lines), l.size(rows)), num.Product(l.rows(rows), l.row))
}

func (l *patchLines) cost(rows int) float64 {
	const makeRun = 4 // cycles for a run of a patch
	return makeRun * float64(num.Product(rows, l.cols, l.KH))
}

func (l *patchLines) steps() int { return len(l.lines) }

func (l *patchLines) group(int) int { return 0 }

func (l *patchLines) taps(rows int) []uint32 {
	var taps []uint32
	for i := range l.lines {
		taps = append(taps, uint32(i*l.size(rows)))
	}
	return taps
}

func (l *patchLines) load(s *tiles.Scratch, set *kern.Set, dst []uint8, image, first, rows, size int) {
	line := l.size(size)
	input := dst[len(l.lines)*line:]
	for r := range l.rows(rows) {
		if s.Ended() {
			return
		}
		l.borderedRow(input[r*l.row:][:l.row], image, first*l.StrideH-l.Pad.Top+r)
	}
	for i, runs := range l.lines {
		s.LineRuns = kern.RunRows{Rows: rows, Pixels: l.cols, Step: l.StrideW * l.image.C, Row: l.StrideH * l.row, Runs: runs}
		set.Matrix.LinesOfRuns(dst[i*line:], input, &s.LineRuns)
	}
}

func (l *patchLines) signs(m *kern.Matrix, op *plan.Conv) *kern.MatrixFilter {
	words := bits.Words(l.image.C)
	out := make([]uint64, op.Out*len(l.lines))
	for o := range op.Out {
		for k := range l.KH * l.KW {
			ky, kx := k/l.KW, k%l.KW
			tap := op.Bits[(o*l.KH*l.KW+k)*words:][:words]
			at := o*len(l.lines)*kern.LineBytes + ky/l.perLine*kern.LineBytes + ky%l.perLine*l.run + kx*l.image.C
			bits.Copy(out, at, tap, 0, l.image.C)
		}
	}
	return kern.PackMatrixSigns(m, out, op.Out, l.steps())
}

func (l *patchLines) bytes(outputs int, weights []int8) []int8 {
	out := make([]int8, num.Product(outputs, len(l.lines), kern.LineBytes))
	for o := range outputs {
		for ky := range l.KH {
			at := (o*len(l.lines)+ky/l.perLine)*kern.LineBytes + ky%l.perLine*l.run
			copy(out[at:], weights[(o*l.KH+ky)*l.run:][:l.run])
		}
	}
	return out
}
