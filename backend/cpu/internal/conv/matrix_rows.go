package conv

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// rowLines are rows of bytes as they lie in the image, with their border. The lines of a pixel begin at its
// first channel and go on over its neighbours, so that those of all taps of a row follow each other: 16
// channels of three taps are one line. What the last one has beyond them meets weights of 0.
//
//	[part of rows][row][pixel][channel], and as many bytes behind them as the lines of a pixel have
type rowLines struct {
	*matrixLines
	run   int // bytes of the taps of a row
	lines int // of a run
}

func newRowLines(l *matrixLines) *rowLines {
	l.line = l.StrideW * l.image.C
	l.pitch = num.CeilDiv((l.cols-1)*l.StrideW+l.KW, l.StrideW)
	run := l.KW * l.image.C
	return &rowLines{matrixLines: l, run: run, lines: num.CeilDiv(run, kern.LineBytes)}
}

// part returns the bytes of a part of the rows.
func (l *rowLines) part(rows int) int { return num.Product(l.partRows(rows), l.pitch, l.line) }

func (l *rowLines) memory(rows int) int {
	return num.Sum(num.Product(len(l.downs), l.part(rows)), l.lines*kern.LineBytes)
}

func (l *rowLines) cost(rows int) float64 {
	const perCycle, perRow = 32, 30 // bytes that are copied, and cycles
	return float64(len(l.downs)) * (float64(l.part(rows))/perCycle + perRow*float64(l.partRows(rows)))
}

func (l *rowLines) steps() int { return l.KH * l.lines }

func (l *rowLines) group(int) int { return 0 }

func (l *rowLines) taps(rows int) []uint32 {
	var taps []uint32
	for ky := range l.KH {
		down := slices.Index(l.downs, ky*l.DilationH%l.StrideH)
		row := down*l.part(rows) + ky*l.DilationH/l.StrideH*l.pitch*l.line
		for i := range l.lines {
			taps = append(taps, uint32(row+i*kern.LineBytes))
		}
	}
	return taps
}

func (l *rowLines) load(s *tiles.Scratch, _ *kern.Set, dst []uint8, image, first, rows, size int) {
	row := l.pitch * l.line
	for d, down := range l.downs {
		part := dst[d*l.part(size):]
		for r := range l.partRows(rows) {
			if s.Ended() {
				return
			}
			l.borderedRow(part[r*row:][:row], image, (first+r)*l.StrideH+down-l.Pad.Top)
		}
	}
}

// signs packs bytes, as bits cannot be 0.
func (l *rowLines) signs(m *kern.Matrix, op *plan.Conv) *kern.MatrixFilter {
	words, n := bits.Words(l.image.C), op.Out*l.KH*l.KW
	signs := make([]int8, n*l.image.C)
	for tap := range n {
		bits.Unpack(signs[tap*l.image.C:][:l.image.C], op.Bits[tap*words:][:words], l.image.C)
	}
	return kern.PackMatrixBytes(m, l.bytes(op.Out, signs), op.Out, l.steps())
}

func (l *rowLines) bytes(outputs int, weights []int8) []int8 {
	out := make([]int8, num.Product(outputs, l.steps(), kern.LineBytes))
	for i := range outputs * l.KH {
		copy(out[i*l.lines*kern.LineBytes:], weights[i*l.run:][:l.run])
	}
	return out
}
