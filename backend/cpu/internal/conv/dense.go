package conv

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// dense is a dense layer on bits. The images of a batch take the place of the
// pixels of a convolution, so that weights are read once for several images.
// A tile is a chunk of images by a block of outputs.
type dense struct {
	epilogue
	in      *bcnn.Tensor
	weights *kern.DotBitsWeights
	pixels  int // of an image
	group   int // channels
	at      kern.Patches
	direct  bool // rows are read in place, not packed densely
	chunk   int  // images
	block   int  // outputs
	blocks  int
}

func newDense(c *schedule.Context, op *bcnn.ConvStep, in bcnn.PlanTensor) (tiles.Step, tiles.Size) {
	d := &dense{in: c.In, pixels: in.Shape.Pixels(), group: in.Shape.C}
	taps := in.Shape.Values()
	d.chunk, d.block = denseTiles(c, op, taps)
	d.blocks = num.CeilDiv(op.Out, d.block)
	stride := num.RoundUp(min(d.block, op.Out), c.Set.Block)
	d.direct = d.group%bits.WordBits == 0 || d.pixels == 1
	words := bits.Words(taps)
	d.at = kern.Patches{Step: words, Rows: 1, RowLen: words}
	d.weights = schedule.Share(c, func() *kern.DotBitsWeights {
		return c.Set.PackBits(packTaps(c, op.Bits, op.Out, d.pixels, d.group), op.Out, taps)
	})
	d.epilogue = newEpilogue(c, op, in.DType, stride)
	need := tiles.Size{Sums: num.Product(d.chunk, stride)}
	if !d.direct {
		need.Words = num.Product(d.chunk, words)
	}
	return d, need
}

func (d *dense) Tiles(n int) int { return num.CeilDiv(n, d.chunk) * d.blocks }

func (d *dense) Run(tile int, s *tiles.Scratch) {
	channel := tile % d.blocks * d.block
	n := min(d.block, d.channels-channel)
	first := tile / d.blocks * d.chunk
	at := &s.At
	*at = d.at
	at.Pixels = min(d.chunk, d.in.N-first)
	rows := d.in.Words
	if d.direct {
		rows = rows[first*at.Step:]
	} else {
		rows = s.Words[:at.Pixels*at.Step]
		clear(rows)
		image := d.pixels * bits.Words(d.group)
		for i := range at.Pixels {
			d.pack(rows[i*at.Step:][:at.Step], d.in.Words[(first+i)*image:][:image])
		}
	}
	d.set.DotBits(s.Sums, d.stride, rows, at, d.weights, channel, n)
	d.write(s, first, 0, 0, at.Pixels, channel, n)
}

// pack packs the pixels of an image densely.
func (d *dense) pack(dst, src []uint64) {
	if d.group == pieceBits && d.set.Wide != nil { // where words are little-endian
		halves := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), 2*len(dst))
		d.set.Narrow(halves[:len(src)], src)
		return
	}
	bits.Join(dst, 0, src, d.pixels, d.group)
}
