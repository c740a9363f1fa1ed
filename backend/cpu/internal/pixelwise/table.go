package pixelwise

import (
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// table compiles the look-up of bytes.
func table(c *schedule.Context, op *plan.Table, shape bcnn.Shape, out bcnn.DType) tiles.Step {
	set, src, dst, channels := c.Set, c.In, c.Out, shape.C
	work := c.Set.Cost.Value * float64(shape.Values())
	pixels := func(image, from, to int) (first, end int) {
		return (image*shape.Pixels() + from) * channels, (image*shape.Pixels() + to) * channels
	}
	switch out {
	case bcnn.Bits:
		return tableBits(c, op, shape)
	case bcnn.Uint8:
		tables := make([]*kern.ByteTable, len(op.Values)/plan.TableSize)
		for t := range tables {
			tables[t] = kern.NewByteTable(op.Of(t))
		}
		if len(tables) == 1 {
			return c.Pixels("look up bytes", shape.Pixels(), work/2, func(_ *tiles.Scratch, image, from, to int) {
				first, end := pixels(image, from, to)
				set.LookUpBytes(dst.U8[first:end], src.U8[first:end], tables[0])
			})
		}
		return c.Pixels("look up bytes of each channel", shape.Pixels(), work, func(_ *tiles.Scratch, image, from, to int) {
			first, end := pixels(image, from, to)
			for t, table := range tables {
				for i := first + t; i < end; i += len(tables) {
					dst.U8[i] = table.Values[src.U8[i]]
				}
			}
		})
	}
	c.Reserve(4 * len(op.Values))
	floats := kern.NewFloatTables(op.Values)
	do := func(_ *tiles.Scratch, image, from, to int) {
		first, end := pixels(image, from, to)
		set.LookUp(dst.F32[first:end], src.U8[first:end], floats)
	}
	return c.Pixels("look up", shape.Pixels(), work, do)
}

// tableBits makes numbers, of which plane j has bit j.
func tableBits(c *schedule.Context, op *plan.Table, shape bcnn.Shape) tiles.Step {
	src, dst, channels, planes := c.In, c.Out, shape.C, max(op.Planes, 1)
	tables := len(op.Values) / plan.TableSize
	numbers := make([][plan.TableSize]uint8, tables)
	for t := range numbers {
		for x, v := range op.Of(t) {
			numbers[t][x] = uint8(v)
		}
	}
	row := shape.W * bits.Words(channels)
	do := func(_ *tiles.Scratch, image, from, to int) {
		for y := image*shape.H + from; y < image*shape.H+to; y++ {
			in, out := src.U8[y*shape.W*channels:][:shape.W*channels], dst.Words[y*planes*row:][:planes*row]
			at := 0 // word of a plane
			for ; len(in) > 0; in = in[channels:] {
				for first := 0; first < channels; first += bits.WordBits {
					var words [plan.MaxPlanes]uint64
					for i, x := range in[first:min(first+bits.WordBits, channels)] {
						t := 0
						if tables > 1 {
							t = first + i
						}
						number := uint64(numbers[t][x])
						for j := range planes {
							words[j] |= number >> j & 1 << i
						}
					}
					for j := range planes {
						out[j*row+at] = words[j]
					}
					at++
				}
			}
		}
	}
	return c.Rows("look up and pack", shape.H, 2*c.Set.Cost.Value*float64(shape.Values()*planes), do)
}
