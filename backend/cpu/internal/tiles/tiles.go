// Package tiles computes the tiles that the steps of a plan are divided into: what a
// step is, the workers who share its tiles, and the memory of each of them.
package tiles

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Task is work that falls into independent tiles.
type Task interface {
	// Run does tile number tile with the memory of one worker.
	Run(tile int, s *Scratch)
}

// Step is a compiled step of a plan.
type Step interface {
	Task
	// Tiles returns the number of tiles for a batch of n images.
	Tiles(n int) int
}

// Next works on the pixels from from to before to of an image.
type Next func(s *Scratch, image, from, to int)

// Leader is a step that can have others work on its output while that is in the cache.
type Leader interface {
	Step
	// Lead makes it call next for the pixels of its output, of so many for an image and
	// so many values each, as soon as it has written all channels of some of them. It
	// does so once for every pixel. Where the division into tiles does not allow that,
	// nothing changes and it returns false.
	Lead(pixels, values int, next Next) bool
}

// Range is a step that computes the rows, or the pixels, of an image
// independently. A tile is a number of them.
type Range struct {
	Size, Tile int
	Do         func(s *Scratch, image, from, to int)
}

// PerImage returns the number of tiles of an image.
func (r *Range) PerImage() int { return num.CeilDiv(r.Size, r.Tile) }

func (r *Range) Tiles(n int) int { return n * r.PerImage() }

func (r *Range) Run(tile int, s *Scratch) {
	image, from := tile/r.PerImage(), tile%r.PerImage()*r.Tile
	r.Do(s, image, from, min(from+r.Tile, r.Size))
}

// leadValues is the number of values that a Range writes before it calls the next step: a
// part of the first-level cache.
const leadValues = 4096

// Lead is that of a Leader. The items of an image are its pixels in order, so many each.
func (r *Range) Lead(pixels, values int, next Next) bool {
	if pixels%r.Size != 0 {
		return false
	}
	item, do := pixels/r.Size, r.Do
	step := max(1, leadValues/num.Product(item, values))
	r.Do = func(s *Scratch, image, from, to int) {
		for ; from < to; from += step {
			end := min(from+step, to)
			do(s, image, from, end)
			next(s, image, from*item, end*item)
		}
	}
	return true
}

// Size says how much memory of its own a worker needs.
type Size struct {
	Words, Row, Bytes, Sums, Floats, Values, Runs, Made int
}

// Grow makes it enough for t too.
func (s *Size) Grow(t Size) {
	s.Words = max(s.Words, t.Words)
	s.Row = max(s.Row, t.Row)
	s.Bytes = max(s.Bytes, t.Bytes)
	s.Sums = max(s.Sums, t.Sums)
	s.Floats = max(s.Floats, t.Floats)
	s.Values = max(s.Values, t.Values)
	s.Runs = max(s.Runs, t.Runs)
	s.Made = max(s.Made, t.Made)
}

// Total returns the memory in bytes.
func (s *Size) Total() int {
	return num.Sum(num.Product(num.Sum(s.Words, s.Row), 8), num.Product(s.Runs, 16), s.Bytes, num.Product(num.Sum(s.Sums, s.Floats, s.Values, s.Made), 4))
}

// Scratch is the memory of one worker.
type Scratch struct {
	owner  *Workers // of the worker
	Words  []uint64 // bordered rows and packed patches
	Row    []uint64 // thresholded sums of a few pixels, before pooling
	Bytes  []uint8
	Sums   []int32
	Floats []float32
	Values []float32 // rows of an input of bytes
	Runs   []kern.FloatRun
	// Made are rows of a step that another one reads at once. From is where they begin in the tensor that
	// they would be part of, while they are made, and Source while they are read; −1 where steps write
	// and read tensors.
	Made         []float32
	From, Source int
	// The tile in hand, where a tensor is read in place.
	Image, Base int // image, and first row
	Rows, Patch int // rows of the tile, and where the first patch begins
	// Here, because a variable whose address a kernel of a Set gets is
	// allocated on the heap.
	At        kern.Patches
	Patches   kern.FloatPatches
	Columns   kern.FloatColumns
	Job       kern.ConvJob
	Squares   kern.WinogradInput
	Products  kern.WinogradSums
	Ends      kern.WinogradJob
	Matrix    kern.MatrixJob
	Depthwise kern.DepthwiseJob
	Part      kern.MatrixPart
	Lines     kern.LineRows
	LineRuns  kern.RunRows
	Pool      kern.Pool
	Bits      kern.DotBitsWeights // rows of a matrix
	Reals     kern.FloatWeights   // likewise
}

// Ended reports whether the work is not wanted any more. Tiles that take long ask
// now and then.
func (s *Scratch) Ended() bool { return s.owner.ctx.Err() != nil }

func newScratch(owner *Workers, size Size) Scratch {
	return Scratch{
		owner:  owner,
		Words:  make([]uint64, size.Words),
		Row:    make([]uint64, size.Row),
		Bytes:  make([]uint8, size.Bytes),
		Sums:   make([]int32, size.Sums),
		Floats: make([]float32, size.Floats),
		Values: make([]float32, size.Values),
		Runs:   make([]kern.FloatRun, size.Runs),
		Made:   make([]float32, size.Made),
		From:   -1,
		Source: -1,
	}
}

// Out returns where the outputs of a step go from one on, which are those of a tensor or what stands
// for a part of it.
func (s *Scratch) Out(tensor []float32, from int) []float32 {
	if s.From >= 0 {
		return s.Made[from-s.From:]
	}
	return tensor[from:]
}
