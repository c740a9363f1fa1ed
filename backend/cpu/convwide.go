package cpu

import (
	"math"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// maxTable bounds the entries of the tables of a wide convolution.
const maxTable = 1 << 22

// wideConv is a convolution by the kernels of a kern.Wide. A tile is a number
// of rows of the output by some blocks of output channels of an image. All
// pixels of a tile are one list to the kernels, so that rows of any width keep
// their registers busy.
type wideConv struct {
	window
	epilogue
	rows         rowSource
	weights      *kern.Weights
	table        wideTable
	at           []uint32 // offset of the patch of every pixel of a tile
	class        []uint32 // offset of the thresholds of every pixel of an image, nil if there is one class
	none         []uint32 // zeros, for the pixels of a tile
	runStep      int      // bytes between the runs of a patch
	outShape     bcnn.Shape
	poolH, poolW int
	tileRows     int
	rowTiles     int
	blocks       int // of 64 channels, in a tile
	blockTiles   int
}

// rowSource brings the rows of the input that a tile needs into the layout of
// the kernels.
type rowSource interface {
	// need is the memory for the rows of the given number of outputs.
	need(rows int) scratchSize
	// steps returns the distances in bytes of the patches of two rows of pixels,
	// of two pixels of a row, and of two runs of a patch.
	steps() (row, pixel, run int)
	// load returns the first patch of rows output rows, from row first on.
	load(s *scratch, image, first, rows int) unsafe.Pointer
}

// wideTable is what the sums of outputs are compared with or added to, for
// every border class: [class][channel], in whole blocks.
type wideTable struct {
	values []int32
	step   int // bytes of a class
}

func newWideTable(channels, classes int) wideTable {
	step := roundUp(channels, kern.BlockOutputs)
	return wideTable{values: make([]int32, product(step, classes)), step: 4 * step}
}

// bitTable makes the table for sums K − 2·c + correction of taps products:
// thresholds for c, or K + correction.
func (e *epilogue) bitTable(op *bcnn.ConvStep, taps int) wideTable {
	classes := 1
	if op.Border != nil {
		classes = op.Border.Rows * op.Border.Cols
	}
	t := newWideTable(op.Out, classes)
	for k := range classes {
		row := t.values[k*t.step/4:][:t.step/4]
		for o := range row {
			row[o] = -1 // never
		}
		for o := range op.Out {
			sum := taps
			if op.Border != nil {
				sum += int(op.Border.Correction[k*op.Out+o])
			}
			switch {
			case op.Threshold == nil:
				row[o] = int32(sum)
			case op.Threshold.I32[o] == math.MinInt32:
				row[o] = math.MaxInt32
			case op.Threshold.I32[o] != math.MaxInt32:
				// The shift rounds down, and −1 is less than any count.
				row[o] = int32(min(max((int64(sum)-int64(op.Threshold.I32[o]))>>1, -1), math.MaxInt32))
			}
		}
	}
	return t
}

// byteTable makes the table for sums c of bytes, without the zero point.
func byteTable(op *bcnn.ConvStep, taps, rowWords int, dense []uint64) wideTable {
	t := newWideTable(op.Out, 1)
	for o := range t.values {
		t.values[o] = math.MaxInt32 // never: sums are less
	}
	for o := range op.Out {
		var fix int64
		for i := range taps {
			fix += int64(op.ZeroPoint) * int64(bits.At(dense[o*rowWords:][:rowWords], i))
		}
		switch {
		case op.Threshold == nil:
			t.values[o] = int32(-fix)
		case op.Threshold.I32[o] == math.MinInt32 || op.Threshold.I32[o] == math.MaxInt32:
			t.values[o] = op.Threshold.I32[o]
		default:
			t.values[o] = int32(min(max(int64(op.Threshold.I32[o])+fix, math.MinInt32), math.MaxInt32))
		}
	}
	return t
}

// wideConv returns nil where the kernels do not fit.
func (c *compiler) wideConv(op *bcnn.ConvStep, w window, in, out bcnn.PlanTensor) (*wideConv, scratchSize) {
	wide := c.set.Wide
	if wide == nil || op.Groups != 1 || in.DType == bcnn.Float32 || in.DType == bcnn.Bits && w.taps() > wide.MaxTaps {
		return nil, scratchSize{}
	}
	v := &wideConv{window: w, outShape: out.Shape, poolH: 1, poolW: 1}
	v.epilogue = c.epilogue(op, in.DType, kern.BlockOutputs)
	if op.Pool != nil {
		v.poolH, v.poolW = op.Pool.KH, op.Pool.KW
	}
	classes := 1
	if op.Border != nil {
		classes = op.Border.Rows * op.Border.Cols
	}
	tableSize := product(classes, roundUp(op.Out, kern.BlockOutputs))
	if product(v.poolH, w.cols) > maxTable || tableSize > maxTable || op.Border != nil && product(w.rows, w.cols) > maxTable {
		return nil, scratchSize{}
	}
	if in.DType == bcnn.Bits {
		v.rows, v.weights = c.wideBits(op, w)
		v.table = v.bitTable(op, w.taps())
	} else {
		dense := packTaps(op.Bits, op.Out, w.KH*w.KW, w.group)
		v.table = byteTable(op, w.taps(), bits.Words(w.taps()), dense)
		v.rows, v.weights = c.wideBytes(op, w)
	}

	work := sumTime(op, in.DType, w.taps()) * float64(w.rows) * float64(w.cols)
	tiles := c.split(work / wideSpeedUp)
	v.tileRows = ceilDiv(out.Shape.H, tiles)
	blocks := ceilDiv(op.Out, kern.BlockOutputs)
	v.blocks = blocks
	if tiles > out.Shape.H {
		v.blocks = ceilDiv(blocks, ceilDiv(tiles, out.Shape.H))
	}
	v.blockTiles = ceilDiv(blocks, v.blocks)
	var need scratchSize
	for {
		pixels := product(v.tileRows, v.poolH, w.cols)
		need = v.rows.need(v.tileRows * v.poolH)
		if op.Pool != nil {
			need.row = pixels
		}
		if v.tileRows == 1 || max(need.words*8, need.bytes) <= rowBytes && pixels <= maxTable {
			break
		}
		v.tileRows = ceilDiv(v.tileRows, 2)
	}
	if max(need.words, need.bytes) >= 1<<28 {
		return nil, scratchSize{} // beyond the offsets
	}
	if op.Threshold == nil {
		need.sums = wideChunk * kern.BlockOutputs
	}
	v.rowTiles = ceilDiv(out.Shape.H, v.tileRows)
	v.fillOffsets(op.Border)
	return v, need
}

const (
	// wideSpeedUp is how much faster wide kernels are than sumTime says.
	wideSpeedUp = 4
	// wideChunk is the number of pixels whose sums are computed at a time.
	wideChunk = 64
)

func (c *wideConv) fillOffsets(border *bcnn.Border) {
	row, pixel, run := c.rows.steps()
	c.runStep = run
	tile := c.tileRows * c.poolH
	c.at = make([]uint32, tile*c.cols)
	for y := range tile {
		for x := range c.cols {
			c.at[y*c.cols+x] = uint32(y*row + x*pixel)
		}
	}
	if border == nil || border.Rows*border.Cols == 1 {
		c.none = make([]uint32, tile*c.cols)
		return
	}
	c.class = make([]uint32, c.window.rows*c.cols)
	for y := range c.window.rows {
		for x := range c.cols {
			c.class[y*c.cols+x] = uint32((border.Row[y]*border.Cols + border.Col[x]) * c.table.step)
		}
	}
}

func (c *wideConv) tiles(n int) int { return n * c.rowTiles * c.blockTiles }

func (c *wideConv) run(tile int, s *scratch) {
	image, tile := tile/(c.rowTiles*c.blockTiles), tile%(c.rowTiles*c.blockTiles)
	block := tile % c.blockTiles * c.blocks
	end := min((block+c.blocks)*kern.BlockOutputs, c.channels)
	y0 := tile / c.blockTiles * c.tileRows
	y1 := min(y0+c.tileRows, c.outShape.H)
	first, rows := y0*c.poolH, (y1-y0)*c.poolH
	pixel := (image*c.outShape.H + y0) * c.outShape.W
	src := c.rows.load(s, image, first, rows)
	class := c.none
	if c.class != nil {
		class = c.class[first*c.cols:]
	}
	for ; block*kern.BlockOutputs < end; block++ {
		s.job = kern.Job{
			Src: src, At: &c.at[0], Class: &class[0],
			Table: unsafe.Pointer(&c.table.values[block*kern.BlockOutputs]), Pixels: uintptr(rows * c.cols),
		}
		switch {
		case c.thresholds == nil:
			c.floats(s, class, pixel, rows*c.cols, block)
		case c.poolH*c.poolW > 1:
			c.pooled(s, pixel, y1-y0, block)
		default:
			s.job.Dst, s.job.DstStep = unsafe.Pointer(&c.out.Words[pixel*c.words+block]), uintptr(8*c.words)
			if c.flip != nil {
				s.job.Flip = c.flip[block]
			}
			c.weights.Bits(&s.job, block, c.runStep)
		}
	}
	s.job = kern.Job{}
}

// pooled computes a block of rows of output pixels.
func (c *wideConv) pooled(s *scratch, pixel, rows, block int) {
	s.job.Dst, s.job.DstStep = unsafe.Pointer(&s.row[0]), 8
	c.weights.Bits(&s.job, block, c.runStep)
	var flip uint64
	if c.flip != nil {
		flip = c.flip[block]
	}
	dst := c.out.Words[pixel*c.words+block:]
	for y := range rows {
		src := s.row[y*c.poolH*c.cols:][:c.poolH*c.cols]
		out := dst[y*c.outShape.W*c.words:]
		if c.poolH == 2 && c.poolW == 2 {
			upper, lower := src[:c.cols], src[c.cols:][:c.cols]
			at := 0
			for x := 1; x < len(upper) && x < len(lower); x += 2 {
				out[at] = (upper[x-1] | upper[x] | lower[x-1] | lower[x]) ^ flip
				at += c.words
			}
			continue
		}
		for x := range c.outShape.W {
			var v uint64
			for ky := range c.poolH {
				for _, u := range src[ky*c.cols+x*c.poolW:][:c.poolW] {
					v |= u
				}
			}
			out[x*c.words] = v ^ flip
		}
	}
}

// floats computes a block of float32 outputs of consecutive pixels.
func (c *wideConv) floats(s *scratch, class []uint32, pixel, pixels, block int) {
	job := s.job
	channel := block * kern.BlockOutputs
	n := min(c.channels-channel, kern.BlockOutputs)
	var scale, shift []float32
	if c.scale != nil {
		scale, shift = c.scale[channel:][:n], c.shift[channel:][:n]
	}
	for p := 0; p < pixels; p += wideChunk {
		take := min(wideChunk, pixels-p)
		s.job = job
		s.job.At, s.job.Class, s.job.Pixels = &c.at[p], &class[p], uintptr(take)
		s.job.Dst, s.job.DstStep = unsafe.Pointer(&s.sums[0]), 4*kern.BlockOutputs
		c.weights.Sums(&s.job, block, c.runStep)
		for i := range take {
			dst := c.out.F32[(pixel+p+i)*c.channels+channel:][:n]
			c.set.Scale(dst, s.sums[i*kern.BlockOutputs:][:n], scale, shift, c.relu)
		}
	}
}
