package conv

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/internal/num"
)

// patches are copies of the patches of a few pixels, for kernels that read parities.
type patches struct {
	wide      *kern.Wide
	rows, run int      // runs of a patch in the rows of the input, and bytes of one
	at        []uint32 // offset of each copy
}

// newPatches returns patches of size bytes each, and the bytes that they need: as many
// as a quarter of the first-level cache holds, but a tile at least.
func newPatches(c *schedule.Context, w window, size int) (*patches, int) {
	const tile, slack = 12, 64 // of kernels of three and of four pixels, and of two planes
	p := &patches{wide: c.Set.Wide, rows: w.KH, run: w.KW * num.CeilDiv(w.group, pieceBits) * 4}
	p.at = make([]uint32, max(c.L1/4/size/tile, 1)*tile)
	for i := range p.at {
		p.at[i] = uint32(i * size)
	}
	return p, num.Product(len(p.at), size) + slack
}

// write copies patches that are at src + at, with a distance of step bytes between two
// runs, to the bytes of the scratch.
func (p *patches) write(s *tiles.Scratch, src unsafe.Pointer, at []uint32, step int) {
	p.wide.Patches(s.Bytes, src, at, p.rows, p.run, step)
}

// source returns what kernels read of pixels from p on of a tile, and where in it their
// patches are: src and the list, or copies.
func (c *wideConv) source(s *tiles.Scratch, src unsafe.Pointer, p, pixels int) (unsafe.Pointer, *uint32) {
	at := c.at[p*c.planes:][:pixels*c.planes]
	if c.patches == nil {
		return src, &at[0]
	}
	c.patches.write(s, src, at, c.runStep)
	return unsafe.Pointer(&s.Bytes[0]), &c.patches.at[0]
}
