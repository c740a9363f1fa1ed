// Package schedule decides, from the work that a step is, the instruction set, the
// cache and the number of threads, into which tiles it is divided. That happens once,
// at Compile.
//
// BitFlow has the same under the name of vector execution scheduler (Hu et al.,
// "BitFlow: Exploiting Vector Parallelism for Binary Neural Networks on CPU", IPDPS
// 2018), where it is the number of channels alone that decides.
package schedule

import (
	"context"
	"fmt"
	"math"

	"github.com/klauspost/cpuid/v2"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/weights"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	// minTile is the work in nanoseconds that is worth a hand-over to another
	// thread.
	minTile = 4000
	// handOver is the time in nanoseconds for taking a tile and loading its
	// border once more.
	handOver = 500
	// MaxTile bounds a tile in nanoseconds, since a Run whose context has ended
	// goes on until the tiles in hand are done.
	MaxTile = 4e6
	// tilesPerThread evens out threads that do not get a whole CPU.
	tilesPerThread = 4
	// minL1 and minL2 are the smallest caches of any processor in question.
	minL1, minL2 = 32 << 10, 256 << 10
)

// L1 returns the bytes of the first-level data cache.
func L1() int { return max(cpuid.CPU.Cache.L1D, minL1) }

// L2 returns the bytes of the second-level cache.
func L2() int { return max(cpuid.CPU.Cache.L2, minL2) }

// Context is what is known of a step that is compiled, and what was picked for it.
type Context struct {
	Ctx            context.Context
	Weights        *weights.Plan
	Step           int // number of the step
	Room           int // bytes of memory that are left for tables
	Tables         int // bytes of those of the step
	Set            *kern.Set
	Batch, Threads int
	L1             int // bytes of the cache
	In, Out        *bcnn.Tensor
	Others         []*bcnn.Tensor // the inputs behind the first
	// InPitch and OutPitch are the values from a pixel of float32 to the next, of the first
	// input and of the output: more than a pixel has where a tensor lies in that of a
	// concatenation. Only signs read those, and concatenations.
	InPitch, OutPitch int
	Most              uint8         // the largest byte of the first input
	Least             int           // what byte 0 of it stands for, if a step in float32 reads bytes
	RareZeros         bool          // it is −1, +1 and, for one float32 of each channel alone, 0
	Ends              []End         // what kernels of a convolution may do besides: the first that they can
	Took              int           // which of them they do; −1 for none
	Refused           []string      // why they cannot do those before
	Overlaid          bool          // what they add may lie where the outputs do
	Choice            driver.Choice // what was picked
}

// End is what kernels may do with outputs in registers, before they write them.
type End struct {
	Floats *bcnn.Tensor // that are added; nil for none
	Bytes  *bcnn.Tensor // that are scaled, shifted and added, in place of Floats; nil for none
	// Fake makes levels of the outputs, and values of these, before Bytes are added; nil for none.
	Fake   *kern.FakeQuantize
	Then   kern.End     // scale and shift of the outputs before Floats are added, or of Bytes, and the activation of the sum
	Levels *kern.Levels // whose numbers are written; nil for float32 outputs
	Out    *bcnn.Tensor // where those numbers go
}

// Reserve reports whether there is room for a table of so many bytes, which a
// step needs beside its weights.
func (c *Context) Reserve(bytes int) bool {
	c.Tables = num.Sum(c.Tables, bytes)
	return c.Tables <= c.Room
}

// Ended reports whether the compilation is not wanted any more. What has been made
// of the step by then is dropped.
func (c *Context) Ended() bool { return c.Ctx.Err() != nil }

// Share returns what pack makes of the parameters of the step, or what it has made for
// another executable of the plan. A step may share one value of each type. It must not
// depend on threads, images or tensors.
func Share[T any](c *Context, pack func() T) T {
	return weights.Share(c.Weights, c.Step, c.Ended, pack)
}

// Split divides work, in nanoseconds, on rows and blocks of channels into tiles
// of so many of each. Threads that do not get a whole CPU need several tiles
// each, to share them unequally; among such divisions it takes the one that
// threads which do get one finish first. Tiles of some blocks only load the same
// rows again, so blocks are divided only where there are too few rows.
func (c *Context) Split(work float64, rows, blocks int) (tileRows, tileBlocks int, why string) {
	want := int(min(work/minTile, float64(tilesPerThread*c.Threads)))
	if c.Threads == 1 {
		want = 1
	}
	want = max(want, int(min(math.Ceil(work/MaxTile), float64(rows)*float64(blocks))))
	switch {
	case want <= 1 && c.Threads == 1:
		return rows, blocks, "one thread"
	case want <= 1:
		return rows, blocks, "too little work to share"
	}
	tileBlocks = num.CeilDiv(blocks, num.CeilDiv(want, rows))
	blockTiles := num.CeilDiv(blocks, tileBlocks)
	best := math.Inf(1)
	for n := 1; n <= num.CeilDiv(rows, num.CeilDiv(want, blockTiles)); n++ {
		turns := num.CeilDiv(num.CeilDiv(rows, n)*blockTiles, c.Threads)
		took := float64(turns) * (handOver + work*float64(n*tileBlocks)/float64(rows*blocks))
		if took <= best {
			best, tileRows = took, n
		}
	}
	tiles := Count(num.CeilDiv(rows, tileRows)*blockTiles, "tile")
	if c.Threads == 1 {
		return tileRows, tileBlocks, tiles + " for one thread, so that it can be interrupted"
	}
	return tileRows, tileBlocks, fmt.Sprintf("%s shared by %d threads", tiles, c.Threads)
}

// Rows divides an image of the given height, which takes so many nanoseconds.
func (c *Context) Rows(kernel string, height int, work float64, do func(s *tiles.Scratch, image, y0, y1 int)) *tiles.Range {
	tile, _, why := c.Split(work, height, 1)
	r := &tiles.Range{Size: height, Tile: tile, Do: do}
	c.chooseRange(r, kernel, "row", why)
	return r
}

// Pixels divides an image of so many pixels, where rows do not matter.
func (c *Context) Pixels(kernel string, pixels int, work float64, do func(s *tiles.Scratch, image, from, to int)) *tiles.Range {
	return c.Items(kernel, "pixel", pixels, work, do)
}

// Items divides an image of n parts of some kind.
func (c *Context) Items(kernel, kind string, n int, work float64, do func(s *tiles.Scratch, image, from, to int)) *tiles.Range {
	const units = 1024 // enough to divide evenly, and few to try
	unit := num.CeilDiv(n, units)
	tile, _, why := c.Split(work, num.CeilDiv(n, unit), 1)
	r := &tiles.Range{Size: n, Tile: min(tile*unit, n), Do: do}
	c.chooseRange(r, kernel, kind, why)
	return r
}

func (c *Context) chooseRange(r *tiles.Range, kernel, kind, why string) {
	c.Choice = driver.Choice{Kernel: kernel, Tile: Count(r.Tile, kind) + ", " + Count(r.PerImage(), "tile"), Why: why}
}

// Count returns "1 row" or "3 rows".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
