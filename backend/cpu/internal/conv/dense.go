package conv

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
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
	width   int
	group   int // channels
	at      kern.Patches
	direct  bool // rows are read in place, not packed densely
	planes  int  // of the input
	chunk   int  // images
	block   int  // outputs
	blocks  int
}

func newDense(c *schedule.Context, op *plan.Conv, in plan.Tensor) (tiles.Step, tiles.Size) {
	d := &dense{in: c.In, planes: max(op.InPlanes, 1), group: in.Shape.C}
	image := op.Image(in.Shape)
	d.pixels, d.width = image.Pixels(), image.W
	taps := image.Values()
	d.chunk, d.block = denseTiles(c, op, taps)
	d.blocks = num.CeilDiv(op.Out, d.block)
	stride := num.RoundUp(min(d.block, op.Out), c.Set.Block)
	d.direct = (d.group%bits.WordBits == 0 || d.pixels == 1) && (d.planes == 1 || image.H == 1)
	words := bits.Words(taps)
	d.at = kern.Patches{Step: words, Rows: 1, RowLen: words}
	d.weights = schedule.Share(c, func() *kern.DotBitsWeights {
		return c.Set.PackBits(packTaps(c, op.Bits, op.Out, d.pixels, d.group), op.Out, taps)
	})
	d.epilogue = newEpilogue(c, op, in.DType, stride)
	need := tiles.Size{Sums: num.Product(d.chunk, d.planes, stride)}
	if !d.direct {
		need.Words = num.Product(d.chunk, d.planes, words)
	}
	if d.outPlanes > 1 {
		need.Row = num.Product(d.outPlanes+1, bits.Words(d.block))
	}
	if d.direct && d.planes == 1 && d.outPlanes == 1 {
		return newMatrixDense(c, op, d, need)
	}
	return d, need
}

func (d *dense) Tiles(n int) int { return num.CeilDiv(n, d.chunk) * d.blocks }

func (d *dense) Run(tile int, s *tiles.Scratch) { d.from(0, tile, s) }

// from is Run for the images from one on.
func (d *dense) from(image, tile int, s *tiles.Scratch) {
	channel := tile % d.blocks * d.block
	n := min(d.block, d.channels-channel)
	first := image + tile/d.blocks*d.chunk
	at := &s.At
	*at = d.at
	images := min(d.chunk, d.in.N-first)
	at.Pixels = images * d.planes // those of an image follow each other
	rows := d.in.Words
	if d.direct {
		rows = rows[first*d.planes*at.Step:]
	} else {
		rows = s.Words[:at.Pixels*at.Step]
		clear(rows)
		image := d.pixels * bits.Words(d.group)
		for i := range images {
			src := d.in.Words[(first+i)*d.planes*image:][:d.planes*image]
			if d.planes == 1 {
				d.pack(rows[i*at.Step:][:at.Step], src)
				continue
			}
			d.packPlanes(rows[i*d.planes*at.Step:][:d.planes*at.Step], src)
		}
	}
	d.set.DotBits(s.Sums, d.stride, rows, at, d.weights, channel, n)
	for i := 0; d.planes > 1 && i < images; i++ {
		of := func(j int) []int32 { return s.Sums[(i*d.planes+j)*d.stride:][:d.stride] }
		for j := d.planes - 2; j >= 0; j-- {
			d.set.AddTwice(of(j), of(j+1))
		}
		copy(s.Sums[i*d.stride:][:d.stride], of(0))
	}
	if d.outPlanes == 1 {
		d.write(s, first, 0, 0, images, channel, n)
		return
	}
	for i := range images {
		d.codes(s, i, (first+i)*d.outPlanes, false, 1, 0, 0, 1, channel, n)
	}
}

// packPlanes packs each plane of an image densely, one after the other.
func (d *dense) packPlanes(dst, src []uint64) {
	row := d.width * bits.Words(d.group)
	if d.group%bits.WordBits == 0 {
		for y := range d.pixels / d.width {
			for j := range d.planes {
				copy(dst[j*d.at.Step+y*row:][:row], src[(y*d.planes+j)*row:])
			}
		}
		return
	}
	for y := range d.pixels / d.width {
		for j := range d.planes {
			bits.Join(dst[j*d.at.Step:][:d.at.Step], y*d.width*d.group, src[(y*d.planes+j)*row:], d.width, d.group)
		}
	}
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
