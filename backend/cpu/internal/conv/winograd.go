package conv

import (
	"fmt"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// winogradConv is a convolution of 3×3 on bytes that makes outputs in squares of four, of 16 products over the
// channels instead of 36 (kern.Winograd). Sums of integers are the same in any order. A tile is a number
// of rows of squares by some blocks of 64 output channels of an image.
type winogradConv struct {
	epilogue
	kernels       *kern.Winograd
	in            *bcnn.Tensor
	image         bcnn.Shape
	pad           bcnn.Padding
	zeroPoint     uint8
	filter        *kern.WinogradFilter
	across, down  int // squares of a row, and rows of them
	chunk         int // rows of squares at a time
	spare         int // where bytes are that others need not
	width, height int // of the output
	added         *bcnn.Tensor
	levels        *kern.Levels // of the outputs, where these are nothing else; nil for none
	levelsOut     *bcnn.Tensor // their numbers
	next          tiles.Next
	tiling
}

// newWinogradConv returns nil where other kernels take less time, or compute what these do not.
func newWinogradConv(c *schedule.Context, op *plan.Conv, w window, out plan.Tensor) (*winogradConv, tiles.Size) {
	switch {
	case c.Set.Wide.Winograd == nil || op.Int8 == nil || w.KH != 3 || w.KW != 3 || w.StrideH != 1 || w.StrideW != 1 || w.DilationH != 1 || w.DilationW != 1,
		op.Groups > 1 || op.Pool != nil || op.Threshold != nil || w.planes > 1 || op.OutPlanes > 1,
		w.image.C%64 != 0 || op.Out%kern.BlockOutputs != 0 || out.Shape.W < 2*kern.LeastSquares-1:
		return nil, tiles.Size{}
	}
	v := &winogradConv{
		kernels: c.Set.Wide.Winograd, in: c.In, image: w.image, pad: op.Pad, zeroPoint: op.ZeroPoint,
		width: out.Shape.W, height: out.Shape.H, across: num.CeilDiv(out.Shape.W, 2), down: num.CeilDiv(out.Shape.H, 2),
	}
	v.epilogue = newEpilogue(c, op, bcnn.Uint8, kern.BlockOutputs)
	if !v.rest.None() {
		return nil, tiles.Size{}
	}
	transformed, direct := v.times(op, w)
	if transformed > direct {
		return nil, tiles.Size{}
	}
	v.filter = schedule.Share(c, func() *kern.WinogradFilter {
		// The border has the zero point, which a plan may have above all levels.
		return kern.PackWinograd(op.Int8, op.Out, w.image.C, max(c.Most, op.ZeroPoint), op.ZeroPoint)
	})
	if v.filter == nil {
		return nil, tiles.Size{}
	}
	why := fmt.Sprintf("%.1f µs by count, %.1f without", transformed/1e3, direct/1e3)
	var split string
	blocks := op.Out / kern.BlockOutputs
	v.tiling.rows, v.blocks, split = c.Split(transformed, v.down, blocks)
	v.rowTiles, v.blockTiles = num.CeilDiv(v.down, v.tiling.rows), num.CeilDiv(blocks, v.blocks)
	v.chunk = min(v.tiling.rows, num.CeilDiv(squaresAtOnce, v.across))
	c.Choice.Kernel = "squares of outputs (Winograd), 8-bit weights"
	c.Choice.Why = why + "; " + split
	c.Choice.Tile = fmt.Sprintf("%s × %s, %s", schedule.Count(2*v.tiling.rows, "row"),
		schedule.Count(v.blocks*kern.BlockOutputs, "channel"), schedule.Count(v.rowTiles*v.blockTiles, "tile"))
	squares := v.chunk * v.across
	need := tiles.Size{
		Bytes: num.Sum(v.bordered(), num.Product(kern.Squares, squares, w.image.C)),
		Sums:  num.Product(kern.Squares, squares, kern.BlockOutputs),
	}
	if v.cut() {
		v.spare = need.Bytes
		need.Bytes = num.Sum(need.Bytes, v.rowOfSquares())
		need.Floats = v.rowOfSquares()
	}
	return v, need
}

// squaresAtOnce is the number of squares whose sums are in memory at a time, at least: as many as weights are read
// for.
const squaresAtOnce = 28

// times estimates the nanoseconds for an image, and those by kernels that sum all taps.
func (c *winogradConv) times(op *plan.Conv, w window) (transformed, direct float64) {
	const (
		clock   = 2.9 // cycles of a nanosecond
		lanes   = 16
		piece   = 0.53 // cycles for 4 channels and a vector of outputs
		sum     = 1.5  // for the sum of a vector
		square  = 40   // for the outputs of a square and a vector
		input   = 30   // for 64 channels of a square
		perByte = 0.1  // for weights that the second-level cache does not hold
	)
	squares, vectors, channels := float64(c.across*c.down), float64(op.Out)/lanes, float64(w.image.C)
	transformed = squares * (vectors*(kern.Squares*(channels/4*piece+sum)+square) + channels/64*input)
	direct = float64(c.width*c.height) * vectors * 9 * channels / 4 * piece
	if bytes := kern.Squares * channels * float64(op.Out); bytes > float64(schedule.L2()) {
		transformed += bytes * perByte * max(1, squares/squaresAtOnce)
	}
	return transformed / clock, direct / clock
}

// bordered returns the bytes of the rows of a chunk with their border.
func (c *winogradConv) bordered() int { return num.Product(2*c.chunk+2, c.rowBytes()) }

func (c *winogradConv) rowBytes() int { return num.Product(2*c.across+2, c.image.C) }

// cut reports whether the last squares are beyond the output.
func (c *winogradConv) cut() bool { return c.width%2+c.height%2 > 0 }

// rowOfSquares returns the number of outputs of a row of squares and a block.
func (c *winogradConv) rowOfSquares() int { return num.Product(4, c.across, kern.BlockOutputs) }

// Lead is that of a tiles.Leader. A tile must have all channels.
func (c *winogradConv) Lead(_, _ int, next tiles.Next) bool {
	if c.blockTiles > 1 {
		return false
	}
	c.next = next
	return true
}

// take is that of an ender.
func (c *winogradConv) take(e schedule.End) (why string, overlaid bool) {
	switch {
	case e.Bytes != nil:
		return noBytes, false
	case !e.Then.None():
		return noScaledSums, false
	case e.Levels == nil && c.cut():
		return throughMemory, false
	case compared(e):
		return comparedLevels, false
	}
	c.added, c.levels, c.levelsOut = e.Floats, e.Levels, e.Out
	c.dropClip(e.Levels)
	return "", true
}

func (c *winogradConv) Tiles(n int) int { return n * c.rowTiles * c.blockTiles }

func (c *winogradConv) Run(tile int, s *tiles.Scratch) {
	image, tile := tile/(c.rowTiles*c.blockTiles), tile%(c.rowTiles*c.blockTiles)
	block := tile % c.blockTiles * c.blocks
	end := min(block+c.blocks, c.channels/kern.BlockOutputs)
	y := tile / c.blockTiles * c.tiling.rows
	last := min(y+c.tiling.rows, c.down)
	for ; y < last; y += c.chunk {
		rows := min(c.chunk, last-y)
		c.load(s, image, y, rows)
		for b := block; b < end; b++ {
			if s.Ended() {
				break
			}
			s.Products = kern.WinogradSums{
				Dst: unsafe.Pointer(&s.Sums[0]), Src: unsafe.Pointer(&s.Bytes[c.bordered()]), Squares: uintptr(rows * c.across),
			}
			c.kernels.Sums(&s.Products, c.filter, b)
			c.write(s, image, y, rows, b)
		}
		if c.next != nil {
			c.next(s, image, 2*y*c.width, min(2*(y+rows), c.height)*c.width)
		}
	}
	s.Squares, s.Products, s.Ends = kern.WinogradInput{}, kern.WinogradSums{}, kern.WinogradJob{}
}

// load transforms what rows of squares of an image read, from row y on.
func (c *winogradConv) load(s *tiles.Scratch, image, y, rows int) {
	shape, row := c.image, c.rowBytes()
	for r := range 2*rows + 2 {
		borderRow(s.Bytes[r*row:][:row], c.in.U8, shape, image, 2*y-c.pad.Top+r, c.pad.Left, c.zeroPoint)
	}
	for r := range rows {
		s.Squares = kern.WinogradInput{
			Dst: unsafe.Pointer(&s.Bytes[c.bordered()+r*c.across*shape.C]), Src: unsafe.Pointer(&s.Bytes[2*r*row]),
			Step: uintptr(shape.C), Row: uintptr(row), DstStep: uintptr(shape.C), Plane: uintptr(rows * c.across * shape.C),
			Squares: uintptr(c.across), Vectors: uintptr(shape.C / 64), Offset: uintptr(c.filter.Offset),
		}
		c.kernels.Transform(&s.Squares)
	}
}

// write makes outputs of the sums of rows of squares, four of each.
func (c *winogradConv) write(s *tiles.Scratch, image, y, rows, block int) {
	channel := block * kern.BlockOutputs
	end := c.end.From(channel)
	for r := range rows {
		first := 2 * (y + r)
		at := (image*c.height+first)*c.width*c.channels + channel
		j := &s.Ends
		*j = kern.WinogradJob{Plane: uintptr(rows * c.across * 4 * kern.BlockOutputs)}
		j.Src, j.Pixels = unsafe.Pointer(&s.Sums[r*c.across*kern.BlockOutputs]), uintptr(c.across)
		if c.levels != nil {
			levels, numbers := c.levels.From(channel), c.levelsOut.U8[at:]
			writeSquares(c, j, numbers, s.Bytes[c.spare:], first, func() { c.kernels.EndLevels(j, &end, &levels) })
			continue
		}
		var added unsafe.Pointer
		if c.added != nil {
			added = unsafe.Pointer(&c.added.F32[at])
		}
		writeSquares(c, j, s.Out(c.out.F32, at), s.Floats, first, func() { c.kernels.EndFloats(j, &end, added) })
	}
}

// writeSquares has a kernel write a row of squares from row y on to dst, if need be by way of other memory, from
// which those inside the output are copied.
func writeSquares[T uint8 | float32](c *winogradConv, j *kern.WinogradJob, dst, memory []T, y int, kernel func()) {
	size := unsafe.Sizeof(dst[0])
	if !c.cut() {
		j.Dst, j.DstStep, j.Row = unsafe.Pointer(&dst[0]), size*uintptr(c.channels), size*uintptr(c.width*c.channels)
		kernel()
		return
	}
	row := 2 * c.across * kern.BlockOutputs
	j.Dst, j.DstStep, j.Row = unsafe.Pointer(&memory[0]), size*kern.BlockOutputs, size*uintptr(row)
	kernel()
	for r := range min(2, c.height-y) {
		for x := range c.width {
			copy(dst[(r*c.width+x)*c.channels:][:kern.BlockOutputs], memory[r*row+x*kern.BlockOutputs:])
		}
	}
}
