package conv

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// wideSource computes sums by the kernels of a kern.Wide.
type wideSource struct {
	window
	rowSource
	filter *kern.WideFilter
	table  wideTable
	stride int      // of the sums of a pixel
	at     []uint32 // distance of the patch of every pixel of a row from that of the first
	none   []uint32 // zeros, as many
}

// newWideSource returns nil where the tables of the kernels would be too large.
func newWideSource(c *schedule.Context, op *plan.Conv, w window, stride int) *wideSource {
	b := &wideSource{window: w, stride: stride}
	b.rowSource, b.filter = wideBits(c, op, w, false)
	b.table = newWideTable(op.Out, 1, 1)
	for o := range b.table.values {
		b.table.values[o] = int32(w.taps())
	}
	need := b.need(b.planes)
	if b.cols > maxTable || len(b.table.values) > maxTable || max(need.Words, need.Bytes) >= 1<<28 {
		return nil
	}
	return b
}

func (b *wideSource) size(rows, pixels int) tiles.Size {
	size := b.need(rows)
	size.Sums = num.Product(pixels, b.stride)
	if b.at == nil { // the same for any number of rows
		b.at, b.none = make([]uint32, b.cols), make([]uint32, b.cols)
		for x := range b.at {
			b.at[x] = uint32(b.offset(0, x))
		}
	}
	return size
}

func (b *wideSource) prepare(s *tiles.Scratch, image, first, rows int) {
	s.Job.Src = b.load(s, image, first, rows, 0)
}

func (b *wideSource) sums(s *tiles.Scratch, y, x, pixels, channel, n int) {
	base := s.Job.Src
	for o := channel; o < channel+n; o += kern.BlockOutputs {
		s.Job = kern.ConvJob{
			Dst: unsafe.Pointer(&s.Sums[o-channel]), DstStep: uintptr(4 * b.stride),
			Src: unsafe.Add(base, b.offset(y, 0)), At: &b.at[x], Class: &b.none[x],
			Table: unsafe.Pointer(&b.table.values[o]), Pixels: uintptr(pixels),
		}
		b.filter.ConvSums(&s.Job, o/kern.BlockOutputs, b.run())
	}
	s.Job = kern.ConvJob{Src: base}
}
