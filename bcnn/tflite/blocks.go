package tflite

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
)

// Dilated convolutions of a batch of unknown size: SPACE_TO_BATCH_ND takes every so many rows and
// columns for an image of its own, a convolution without dilation follows, and BATCH_TO_SPACE_ND
// puts them together. In between a value stays one image here, with the dilation pending.

// blocks is how many rows and columns apart those of one image are; zero for values that are not
// divided.
type blocks struct{ h, w int }

func (b blocks) some() bool { return b != blocks{} }

// dims are those of the file's tensor.
func (b blocks) dims(batch int, s bcnn.Shape, rank int) []int {
	all := []int{batch * b.h * b.w, s.H / b.h, s.W / b.w, s.C}
	if rank == 3 {
		return []int{all[0], all[2], all[3]}
	}
	return all
}

// blockSizes returns the block of SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND on a value of so many
// dimensions, and its amounts of rows and columns: before and after.
func (im *importer) blockSizes(o *schema.Operator, rank int) (b blocks, edges [4][2]int) {
	size, list := im.integers(o, 1), im.integers(o, 2)
	if rank != 3 && rank != 4 || len(size) < 1 || len(size) > rank-2 || len(list) != 2*len(size) {
		try.Failf("blocks of sizes %v with edges %v do not fit %d dimensions", size, list, rank)
	}
	b = blocks{1, 1}
	for i, n := range size {
		d := dim(int64(i+1), rank)
		if n < 1 || n > maxSide {
			try.Failf("a block of %d rows or columns is not supported", n)
		}
		if d == dimH {
			b.h = int(n)
		} else {
			b.w = int(n)
		}
		for k := range 2 {
			if e := list[2*i+k]; e < 0 || e > maxSide {
				try.Failf("an edge of %d rows or columns is not supported", e)
			}
			edges[d][k] = int(list[2*i+k])
		}
	}
	return b, edges
}

// spaceToBatch is SPACE_TO_BATCH_ND: zeros around the image, which then counts as divided.
func (im *importer) spaceToBatch(o *schema.Operator) *value {
	v := im.moved(o, 0)
	b, edges := im.blockSizes(o, v.rank)
	rank := v.rank
	out := im.padded(o, v, edges[dimH], edges[dimW], 0)
	if out.shape.H%b.h != 0 || out.shape.W%b.w != 0 {
		try.Failf("blocks of %d×%d do not fit an image of %d×%d", b.h, b.w, out.shape.H, out.shape.W)
	}
	out.blocks, out.rank, out.by = b, rank, o
	return out
}

// batchToSpace is BATCH_TO_SPACE_ND behind SPACE_TO_BATCH_ND.
func (im *importer) batchToSpace(o *schema.Operator) *value {
	v := checked(im.operand(o, 0), 0)
	if !v.blocks.some() {
		try.Failf("only behind a SPACE_TO_BATCH_ND is this operator supported")
	}
	b, edges := im.blockSizes(o, v.rank)
	if b != v.blocks {
		try.Failf("its blocks of %d×%d are not those of the SPACE_TO_BATCH_ND in front of it, %d×%d", b.h, b.w, v.blocks.h, v.blocks.w)
	}
	out := *v
	out.blocks = blocks{}
	for _, d := range []int{dimH, dimW} {
		e, size := edges[d], out.size(d)
		if e == [2]int{} {
			continue
		}
		if e[0]+e[1] >= size {
			try.Failf("edges of %d and %d leave nothing of %d rows or columns", e[0], e[1], size)
		}
		out = *im.lines(o, &out, d, span{from: int64(e[0]), step: 1, count: int64(size - e[0] - e[1]), size: int64(size)})
	}
	out.rank = v.rank
	return &out
}

// undivided refuses values between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.
func (v *value) undivided() *value {
	if v.blocks.some() {
		try.Failf("between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND only convolutions and what does the same with each value are supported")
	}
	return v
}

// spaceToDepth is SPACE_TO_DEPTH: the rows and columns of a block, as channels.
func (im *importer) spaceToDepth(o *schema.Operator) *value {
	v := im.moved(o, 0)
	b := int(o.Options.Int32(0, 0))
	if b < 1 || b > maxSide || v.shape.H%b != 0 || v.shape.W%b != 0 {
		try.Failf("a block size of %d does not fit an image of %d×%d", b, v.shape.H, v.shape.W)
	}
	if b > maxBlock {
		try.Failf("a block size of %d is not supported, only up to %d", b, maxBlock)
	}
	parts := make([]*value, 0, b*b)
	shape := bcnn.Shape{H: v.shape.H / b, W: v.shape.W / b, C: v.shape.C}
	for i := range b {
		for k := range b {
			part := im.every(o, v, b, i, k, shape)
			parts = append(parts, part)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	shape.C *= b * b
	y := im.emit(o, "", bcnn.Concat{}, shape, parts...)
	return y.moves(v)
}

// maxBlock is the largest block of SPACE_TO_DEPTH, of which each place is a layer.
const maxBlock = 16

// every takes every so many rows and columns, from one of each on.
func (im *importer) every(o *schema.Operator, v *value, step, row, col int, s bcnn.Shape) *value {
	if step == 1 {
		return v
	}
	try.Check(im.budget.Charge(8 * int64(s.H+s.W)))
	at := func(n, from int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i*step + from)
		}
		return list
	}
	y := im.emit(o, "/place", bcnn.Pixels{Rows: at(s.H, row), Cols: at(s.W, col)}, s, v)
	return y.moves(v)
}
