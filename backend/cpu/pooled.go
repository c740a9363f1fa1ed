package cpu

import (
	"fmt"
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/conv"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/pixelwise"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// pooled is a convolution and the maxima behind it. A tile is rows of these; those of the convolution
// that they read lie in the memory of the worker and not in that of a tensor, which is the largest of
// most networks.
type pooled struct {
	rows     func(s *tiles.Scratch, image, y0, y1 int)
	pool     *pixelwise.MaxPool
	made     bcnn.Shape // by the convolution
	shape    bcnn.Shape // of the output
	most     int        // rows of the convolution at a time
	chunk    int        // rows of the output at a time
	tileRows int        // of a tile
	next     tiles.Next
}

// madeBytes is about how much memory the rows of a convolution take that wait for their maxima: a part
// of the second-level cache.
const madeBytes = 256 << 10

// newPooled returns nil where steps cannot be one, or tiles would compute too many rows twice: those
// that two of them read.
func newPooled(first, second tiles.Step, made, shape bcnn.Shape, threads int) *pooled {
	pool, ok := second.(*pixelwise.MaxPool)
	most, rows := conv.Rows(first)
	if !ok || most == 0 {
		return nil
	}
	p := &pooled{rows: rows, pool: pool, made: made, shape: shape, most: most, tileRows: shape.H}
	if threads > 1 {
		const each = 2 // tiles of a thread, so that none waits long for the others
		p.tileRows = num.CeilDiv(shape.H, each*threads)
	}
	const part = 16 // at most one row of so many is computed twice
	if p.twice()*part > made.H {
		return nil
	}
	row := num.Product(4, made.W, made.C)
	for p.chunk = 1; p.chunk < p.tileRows && num.Product(p.held(p.chunk+1), row) <= madeBytes; p.chunk++ {
	}
	return p
}

// twice returns how many rows of an image two tiles compute.
func (p *pooled) twice() (n int) {
	for y := p.tileRows; y < p.shape.H; y += p.tileRows {
		from, _ := p.pool.Reads(y, y+1)
		_, to := p.pool.Reads(y-1, y)
		n += max(to-from, 0)
	}
	return n
}

// held returns the most rows that so many output rows read.
func (p *pooled) held(chunk int) (most int) {
	for y := range p.shape.H {
		from, to := p.pool.Reads(y, min(y+chunk, p.shape.H))
		most = max(most, to-from)
	}
	return most
}

// memory returns what a worker needs beside that of the convolution.
func (p *pooled) memory() tiles.Size {
	return tiles.Size{Made: num.Product(p.held(p.chunk), p.made.W, p.made.C)}
}

// Lead is that of a tiles.Leader.
func (p *pooled) Lead(_, _ int, next tiles.Next) bool {
	p.next = next
	return true
}

func (p *pooled) perImage() int { return num.CeilDiv(p.shape.H, p.tileRows) }

func (p *pooled) Tiles(n int) int { return n * p.perImage() }

func (p *pooled) Run(tile int, s *tiles.Scratch) {
	image, y0 := tile/p.perImage(), tile%p.perImage()*p.tileRows
	row := p.made.W * p.made.C
	first, end := 0, 0 // the rows that are there
	for y := y0; y < min(y0+p.tileRows, p.shape.H) && !s.Ended(); y += p.chunk {
		to := min(y+p.chunk, y0+p.tileRows, p.shape.H)
		from, last := p.pool.Reads(y, to)
		if from < end {
			copy(s.Made, s.Made[(from-first)*row:(end-first)*row])
		} else {
			end = from
		}
		first = from
		s.From = (image*p.made.H + first) * row
		for ; end < last; end = min(end+p.most, last) {
			p.rows(s, image, end, min(end+p.most, last))
		}
		s.From = -1
		p.pool.Of(s, s.Made, first, image, y, to)
		if p.next != nil {
			p.next(s, image, y*p.shape.W, to*p.shape.W)
		}
	}
}

// fusePools makes one step of each convolution alone in its group and the maxima behind it, if nothing
// else reads what it makes, and no more memory is needed then: that without the tensor, as placed says,
// and what workers have, which grow gives them if it may. It returns the groups whose tensors are needed
// at the same time, and where they lie.
func (e *executable) fusePools(groups []group, placed plan.Placement, grow func(tiles.Size) bool) ([]group, plan.Placement) {
	groups = slices.Clone(groups)
	for k := 0; k+1 < len(groups); k++ {
		conv, pool := groups[k], groups[k+1]
		if conv.first != conv.last {
			continue
		}
		p := e.pooled(conv.first, pool.first)
		if p == nil {
			continue
		}
		made := e.plan.Steps[conv.first].Out
		e.unmade[made] = true
		fused := slices.Replace(slices.Clone(groups), k, k+2, group{conv.first, pool.last})
		less, err := e.layout(fused, nil)
		if err != nil || less.Bytes > placed.Bytes || !grow(p.memory()) {
			e.unmade[made] = false
			continue
		}
		groups, placed = fused, less
		e.steps[conv.first], e.steps[pool.first] = nil, p
		name := e.plan.Steps[pool.first].Name
		e.choices[conv.first].Tile = "those of " + name
		e.choices[pool.first].Tile = fmt.Sprintf("%s, %s, %s at a time",
			schedule.Count(p.tileRows, "row"), schedule.Count(p.perImage(), "tile"), schedule.Count(p.chunk, "row"))
		e.choices[pool.first].Why = "rows that are in the cache"
	}
	return groups, placed
}

// pooled returns the step that does the work of steps i and next; nil if there is none.
func (e *executable) pooled(i, next int) *pooled {
	from, to := e.plan.Steps[i], e.plan.Steps[next]
	made, out := e.plan.Tensors[from.Out], e.plan.Tensors[to.Out]
	if made.DType != bcnn.Float32 || to.In[0] != from.Out || !e.unread(from.Out, next) || !e.standalone(from.Out) {
		return nil
	}
	return newPooled(e.steps[i], e.steps[next], made.Shape, out.Shape, e.config.Threads)
}
