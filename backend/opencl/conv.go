//go:build opencl && cgo && linux && (amd64 || arm64)

package opencl

import (
	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/layout"
)

// floatLanes is the number of output channels of a work-item that writes floats:
// fewer than the 32 of a word, for more work-items.
const floatLanes = 4

// conv starts the spec of a convolution or dense layer.
func (c *stepCompiler) conv(op *bcnn.ConvStep) (spec, convGeometry) {
	g := c.shapes()
	g.window(op.Window)
	conv := c.out.Shape
	g["POOL_H"], g["POOL_W"] = 1, 1
	if op.Pool != nil {
		g["POOL_H"], g["POOL_W"] = op.Pool.KH, op.Pool.KW
		// Rows and columns that fill no window are made by variant a only, which
		// needs a size that holds all that is pooled.
		conv.H, conv.W = conv.H*op.Pool.KH, conv.W*op.Pool.KW
	}
	g["CONV_H"], g["CONV_W"] = conv.H, conv.W
	w := convGeometry{taps: op.KH * op.KW, in: c.in.Shape.C / op.Groups, out: op.Out, perGroup: op.Out / op.Groups, lanes: floatLanes}
	f := form{bits: c.out.DType == bcnn.Bits, bytes: c.in.DType == bcnn.Uint8}
	if f.bits {
		w.lanes = 32
	}
	w.blocks = (op.Out + w.lanes - 1) / w.lanes
	g["BLOCKS"] = w.blocks
	if f.bits {
		g["BLOCKS"] = words32(op.Out)
	}
	w.words = (w.in + 31) / 32
	f.lanes = w.lanes
	f.mixed = op.Groups > 1 && (w.perGroup%w.lanes != 0 || c.in.DType == bcnn.Bits && w.in%32 != 0)
	if f.mixed && c.in.DType == bcnn.Bits {
		w.words = layout.MixedWords(w.in, op.Groups)
	}
	g["WORDS"], g["GROUP_IN"], g["GROUP_OUT"] = w.words, w.in, w.perGroup
	g["TAPS"], g["ZERO_POINT"] = w.taps*w.in, int(op.ZeroPoint)
	g["SCALED"], g["RELU"] = flag(op.Scale != nil), flag(op.ReLU)
	g["FLIP"] = flag(op.Threshold != nil && op.Threshold.Flip != nil)
	return spec{form: f, g: g, items: c.out.Shape.Pixels() * g["BLOCKS"]}, w
}

// epilogue is the tail of the arguments of kernels with integer sums of bits.
func (c *stepCompiler) epilogue(op *bcnn.ConvStep, s *spec) []any {
	stride := s.g["BLOCKS"] * s.form.lanes
	rows, cols, correction := blockCorrection(op.Border, op.Out, stride)
	if op.Border != nil {
		s.g["BORDER"], s.g["COLS"] = 1, op.Border.Cols
	}
	return []any{
		put(c, thresholdsI32(op.Threshold, stride)), put(c, op.Scale), put(c, op.Shift), c.flip(op),
		put(c, rows), put(c, cols), put(c, correction),
	}
}

func (c *stepCompiler) flip(op *bcnn.ConvStep) *cl.MemObject {
	if op.Threshold == nil {
		return put[uint32](c, nil)
	}
	return put(c, layout.Rows(op.Threshold.Flip))
}

func (c *stepCompiler) convBits(op *bcnn.ConvStep) []spec {
	s, w := c.conv(op)
	s.file, s.kernel = "conv_bits.cl", "conv_bits"
	var weights, masks []uint32
	if s.form.mixed {
		weights, masks = w.layout().Mixed(op.Bits)
	} else {
		weights = w.layout().Bits(op.Bits, 1)
	}
	s.args = append([]any{c.x, c.y, put(c, weights), put(c, masks)}, c.epilogue(op, &s)...)
	return []spec{s}
}

func (c *stepCompiler) convValues(op *bcnn.ConvStep) []spec {
	s, w := c.conv(op)
	s.file, s.kernel = "conv_values.cl", "conv_values"
	stride := s.g["BLOCKS"] * w.lanes
	args := []any{c.x, c.y}
	if s.form.bytes {
		weights, counts := w.signWeights(op.Bits)
		args = append(args, put(c, weights), put(c, layout.PadTo(counts, stride, 0)), put(c, thresholdsI32(op.Threshold, stride)))
	} else {
		args = append(args, put(c, w.layout().Floats(op.F32)), put(c, layout.PadTo(op.Bias, stride, 0)), put(c, thresholdsF32(op.Threshold, stride)))
	}
	s.args = append(args, put(c, op.Scale), put(c, op.Shift), c.flip(op))
	return []spec{s}
}

// finish makes the result of the popcounts in scratch memory. segments is how
// many of them make one sum.
func (c *stepCompiler) finish(op *bcnn.ConvStep, s spec, from scratch) spec {
	s.file, s.kernel = "finish.cl", "finish"
	s.args = append([]any{from, c.y}, c.epilogue(op, &s)...)
	return s
}

const denseGroup = 64 // of the kernel dense_reduce

func (c *stepCompiler) dense(op *bcnn.ConvStep, variant string) []spec {
	s, _ := c.conv(op)
	row := 2 * len(op.Bits) / op.Out
	s.g["ROW_WORDS"], s.g["SEGMENTS"], s.g["SEGMENT_WORDS"] = row, 1, row
	// Both kernels of a step share the geometry, so that is completed first.
	first := spec{file: "dense.cl", g: s.g}
	if variant == "a" {
		if c.limits.group < denseGroup {
			return nil
		}
		first.kernel, first.items, first.local = "dense_reduce", op.Out*denseGroup, denseGroup
	} else {
		s.g["SEGMENT_WORDS"] = max(8, (row+63)/64)
		s.g["SEGMENTS"] = (row + s.g["SEGMENT_WORDS"] - 1) / s.g["SEGMENT_WORDS"]
		first.kernel, first.items = "dense_segments", op.Out*s.g["SEGMENTS"]
	}
	partial := scratch{sums, c.batch * op.Out * s.g["SEGMENTS"] * 4}
	if variant == "a" {
		first.args = []any{c.x, put(c, layout.Rows(op.Bits)), partial}
	} else {
		first.args = []any{c.x, put(c, columnWeights(op.Bits, op.Out)), partial}
	}
	return []spec{first, c.finish(op, s, partial)}
}

// patches is the paper's convolution, for activations of all channels in one
// group; nothing where local memory or work-groups are too small.
func (c *stepCompiler) patches(op *bcnn.ConvStep) []spec {
	if c.in.DType != bcnn.Bits || op.Groups != 1 {
		return nil
	}
	s, w := c.conv(op)
	g := s.g
	patchWords := (g["TAPS"] + 31) / 32
	tile, gemm, bytes := 16, 16, 0
	for ; tile >= 4; tile /= 2 {
		g["TILE_H"] = (tile-1)*op.StrideH + (op.KH-1)*op.DilationH + 1
		g["TILE_W"] = (tile-1)*op.StrideW + (op.KW-1)*op.DilationW + 1
		if bytes = g["TILE_H"] * g["TILE_W"] * w.words * 4; tile*tile <= c.limits.group && bytes <= c.limits.localBytes {
			break
		}
	}
	for gemm*gemm > c.limits.group || 2*gemm*(gemm+1)*4 > c.limits.localBytes {
		gemm /= 2
	}
	pixels := g["CONV_H"] * g["CONV_W"]
	packed := scratch{patches, c.batch * pixels * patchWords * 4}
	counts := scratch{sums, c.batch * pixels * op.Out * 4}
	if tile < 4 || gemm < 4 || int64(max(packed.bytes, counts.bytes)) > c.limits.buffer {
		return nil
	}
	g["PATCH_WORDS"], g["SEGMENTS"] = patchWords, 1
	g["TILE_Y"], g["TILE_X"] = tile, tile
	tilesY, tilesX := (g["CONV_H"]+tile-1)/tile, (g["CONV_W"]+tile-1)/tile
	g["TILES_X"] = tilesX
	f := form{gemmTile: gemm}
	up := func(n int) int { return (n + gemm - 1) / gemm }
	return []spec{
		{file: "patches.cl", kernel: "pack_patches", form: f, g: g, args: []any{c.x, packed, cl.LocalBuffer(bytes)},
			items: tilesY * tilesX * tile * tile, local: tile * tile},
		{file: "patches.cl", kernel: "xor_gemm", form: f, g: g, args: []any{packed, put(c, w.layout().Patches(op.Bits)), counts},
			items: up(pixels) * up(op.Out) * gemm * gemm, local: gemm * gemm},
		c.finish(op, s, counts),
	}
}
