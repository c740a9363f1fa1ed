package candidates

import (
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
)

// floatLanes is the number of output channels of a work-item that writes floats:
// fewer than the 32 of a word, for more work-items.
const floatLanes = 4

// conv starts the spec of a convolution or dense layer.
func (c *planner) conv(op *plan.Conv) (Spec, gpu.Conv) {
	lanes, toBits := floatLanes, c.Out.DType == bcnn.Bits
	if toBits {
		lanes = 32
	}
	w := c.Conv(op, lanes)
	form := Form{Lanes: lanes, Bits: toBits, Bytes: c.In.DType == bcnn.Uint8, Mixed: w.MixedLanes}
	return Spec{Kernel: gpu.Kernel{G: w.G}, Form: form, Items: int(w.G.OutH) * c.Out.Shape.W * int(w.G.Blocks)}, w
}

// uniformPixels is from how many pixels on work-groups have one block of channels: with
// fewer, most of a group would have nothing to do.
const uniformPixels = 16

// directConv starts the spec of a kernel in which a work-item has a block of channels of a
// pixel.
func (c *planner) directConv(op *plan.Conv) (Spec, gpu.Conv) {
	s, w := c.conv(op)
	if pixels := s.Items / int(w.G.Blocks); pixels >= uniformPixels {
		s.Form.Uniform, s.Items, s.Blocks = true, pixels, int(w.G.Blocks)
	}
	return s, w
}

func (c *planner) convBits(op *plan.Conv) []Spec {
	s, w := c.directConv(op)
	s.File, s.Name = "conv_bits", "conv_bits"
	var weights, masks []uint32
	if w.MixedLanes {
		weights, masks = w.Mixed(op.Bits)
	} else {
		weights = w.Bits(op.Bits, 1)
	}
	s.Args = append([]any{c.X, c.Y, weights, masks}, w.Epilogue()...)
	s.G = w.G
	return []Spec{s}
}

// convVectors is a convolution of bits or bytes, 8 output channels and 4 pixels at a time;
// nil where groups do not fill such blocks, for bytes in groups or with
// weights of 16 bits, and for pooling windows
// other than 2×2.
func (c *planner) convVectors(op *plan.Conv) []Spec {
	const lanes, pixels = 8, 4
	bytes := c.In.DType == bcnn.Uint8
	if op.Dense || c.In.DType == bcnn.Float32 || gpu.HasPlanes(op) || bytes && (op.Groups > 1 || op.Int16 != nil) {
		return nil
	}
	w := c.Conv(op, lanes)
	pooled := w.G.PoolH*w.G.PoolW != 1
	if w.MixedLanes || pooled && (w.G.PoolH != 2 || w.G.PoolW != 2) {
		return nil
	}
	toBits := c.Out.DType == bcnn.Bits
	if toBits { // a byte each, those of padding, too
		w.G.Blocks *= 32 / lanes
	}
	s := Spec{Form: Form{Lanes: lanes, Bits: toBits, Bytes: bytes, Pooled: pooled}, Items: c.Out.Shape.Pixels(), Blocks: int(w.G.Blocks)}
	if !pooled {
		s.Items = c.Out.Shape.H * num.CeilDiv(c.Out.Shape.W, pixels)
	}
	s.File, s.Name = "conv_vectors", "conv_vectors"
	args := []any{c.X, c.Y}
	if bytes {
		weights, correction := c.runs(op, &w)
		args = append(append(args, weights, w.ThresholdsI32(w.Stride())), w.Tail()...)
		args = append(args, []int32(nil), []int32(nil), correction)
		s.Form.Dot = c.limits.Dot
	} else {
		args = append(append(args, w.Bits(op.Bits, 1)), w.Epilogue()...)
	}
	s.G, s.Args = w.G, args
	return []Spec{s}
}

// runs returns weights as bytes, of the taps of a row of the window without gaps where
// those of the image have none, and what the sums of a channel lack if 0 is at 128.
func (c *planner) runs(op *plan.Conv, w *gpu.Conv) (weights []uint32, correction []int32) {
	run := 1
	if op.DilationW == 1 {
		run = op.KW
	}
	w.G.Words = int32(num.CeilDiv(run*w.In, 4))
	weights, sums := w.Runs(w.Int8(), run)
	for i := range sums {
		sums[i] *= 128 - int32(op.ZeroPoint)
	}
	return weights, gpu.PadTo(sums, w.Stride(), 0)
}

func (c *planner) convValues(op *plan.Conv) []Spec {
	s, w := c.directConv(op)
	s.File, s.Name = "conv_values", "conv_values"
	switch {
	case op.Int8 != nil || op.Int16 != nil:
		s.Form.Int8 = true
		s.Args = []any{c.X, c.Y, w.Int32Weights(), make([]int32, w.Stride()), w.ThresholdsI32(w.Stride())}
	case s.Form.Bytes:
		weights, negatives := w.Signs(w.Int8())
		s.Args = []any{c.X, c.Y, weights, gpu.PadTo(negatives, w.Stride(), 0), w.ThresholdsI32(w.Stride())}
	default:
		s.Args = []any{c.X, c.Y, w.Floats(op.F32), gpu.PadTo(op.Bias, w.Stride(), 0), w.ThresholdsF32(w.Stride())}
	}
	s.Args = append(s.Args, w.Tail()...)
	return []Spec{s}
}

// finish makes the result of the popcounts in scratch memory.
func (c *planner) finish(s Spec, epilogue []any, from gpu.Scratch) Spec {
	s.File, s.Name = "finish", "finish"
	s.Args = append([]any{from, c.Y}, epilogue...)
	return s
}

const (
	denseGroup   = 64 // of the kernel dense_reduce
	mostSegments = 64 // of a row
	leastSegment = 8  // words
)

// dense is a dense layer on bits of which a kernel makes partial sums of so many words
// of a row each.
func (c *planner) dense(op *plan.Conv, segment int, first Spec, weights []uint32) []Spec {
	s, w := c.conv(op)
	epilogue := w.Epilogue()
	row := 2 * len(op.Bits) / op.Out
	segments := num.CeilDiv(row, segment)
	w.G.RowWords, w.G.Segments, w.G.SegmentWords = int32(row), int32(segments), int32(segment)
	partial := gpu.Scratch{Which: gpu.SumMemory, Bytes: c.Batch * op.Out * segments * 4}
	s.G, first.G = w.G, w.G
	first.File, first.Args = "dense", []any{c.X, weights, partial}
	first.Items *= op.Out
	return []Spec{first, c.finish(s, epilogue, partial)}
}

// denseReduce gives every output a work-group that adds its sums up; nil where
// work-groups are too small.
func (c *planner) denseReduce(op *plan.Conv) []Spec {
	if c.limits.Group < denseGroup {
		return nil
	}
	first := Spec{Kernel: gpu.Kernel{Name: "dense_reduce"}, Items: denseGroup, Local: denseGroup}
	return c.dense(op, 2*len(op.Bits)/op.Out, first, gpu.Rows(op.Bits))
}

func (c *planner) denseSegments(op *plan.Conv) []Spec {
	row := 2 * len(op.Bits) / op.Out
	segment := max(leastSegment, num.CeilDiv(row, mostSegments))
	first := Spec{Kernel: gpu.Kernel{Name: "dense_segments"}, Items: num.CeilDiv(row, segment)}
	return c.dense(op, segment, first, gpu.Columns(op.Bits, op.Out, op.Out))
}

// patches is the paper's convolution, for activations of all channels in one group; nil
// where local memory or work-groups are too small.
func (c *planner) patches(op *plan.Conv) []Spec {
	if op.Groups != 1 {
		return nil
	}
	s, w := c.conv(op)
	epilogue := w.Epilogue()
	g := w.G
	tile, gemm, bytes := 16, 16, 0
	for ; tile >= 4; tile /= 2 {
		g.TileH = int32((tile-1)*op.StrideH + (op.KH-1)*op.DilationH + 1)
		g.TileW = int32((tile-1)*op.StrideW + (op.KW-1)*op.DilationW + 1)
		if bytes = int(g.TileH) * int(g.TileW) * w.Words * 4; tile*tile <= c.limits.Group && bytes <= c.limits.LocalBytes {
			break
		}
	}
	for gemm*gemm > c.limits.Group || 2*gemm*(gemm+1)*4 > c.limits.LocalBytes {
		gemm /= 2
	}
	g.PatchWords, g.Segments = int32(num.CeilDiv(int(g.Taps), 32)), 1
	pixels := int(g.ConvH) * int(g.ConvW)
	packed := gpu.Scratch{Which: gpu.PatchMemory, Bytes: c.Batch * pixels * int(g.PatchWords) * 4}
	counts := gpu.Scratch{Which: gpu.SumMemory, Bytes: c.Batch * pixels * op.Out * 4}
	if tile < 4 || gemm < 4 || int64(max(packed.Bytes, counts.Bytes)) > c.limits.Buffer {
		return nil
	}
	tilesY, tilesX := num.CeilDiv(int(g.ConvH), tile), num.CeilDiv(int(g.ConvW), tile)
	g.TileY, g.TileX, g.TilesX = int32(tile), int32(tile), int32(tilesX)
	s.G = g
	form := Form{GemmTile: gemm}
	kernel := func(name string, args ...any) gpu.Kernel {
		return gpu.Kernel{File: "patches", Name: name, G: g, Args: args}
	}
	return []Spec{
		{Kernel: kernel(gpu.PackPatches, c.X, packed, Local(bytes)), Form: form, Items: tilesY * tilesX * tile * tile, Local: tile * tile},
		{Kernel: kernel("xor_gemm", packed, w.Patches(op.Bits), counts), Form: form,
			Items: num.CeilDiv(pixels, gemm) * num.CeilDiv(op.Out, gemm) * gemm * gemm, Local: gemm * gemm},
		c.finish(s, epilogue, counts),
	}
}
