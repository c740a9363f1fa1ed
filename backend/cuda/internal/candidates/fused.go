package candidates

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/kernels"
)

// Fused is variant gpu.Fused: a plan that the kernel network executes in one
// cooperative launch. It has convolutions and then dense layers, one after the other.
type Fused struct {
	Net       kernels.Network // without addresses
	Convs     []FusedConv
	Constants []uint32
	Weights   []uint32   // of the first dense layer
	Threads   int        // of a block
	Shared    int        // bytes of a block
	Uses      []plan.Use // of the tensors, between barriers of the grid
	denses    int
	arch      int
}

// FusedConv are the arrays of a convolution.
type FusedConv struct {
	In, Out                gpu.Tensor
	Weights, Flip          []uint32
	Thresholds, Rows, Cols []int32
	Correction, Levels     []int32
}

// NewFused returns nil if the kernel, as PTX for an architecture, cannot execute the plan,
// whose sizes have been checked.
func NewFused(p *plan.Plan, limits Limits, arch int) *Fused {
	s := &Fused{arch: arch}
	if len(p.Steps) == 0 || len(p.Inputs) > 1 || len(p.Outputs) > 1 || !s.addSteps(p) {
		return nil
	}
	s.listUses(p)
	for len(s.Constants)%4 != 0 {
		s.Constants = append(s.Constants, 0)
	}
	n := &s.Net
	n.Convs, n.Denses, n.ConstantWords = int32(len(s.Convs)), int32(s.denses), int32(len(s.Constants))
	n.SumStride = n.Dense[0].OutStride
	s.chooseThreads(limits)
	s.Shared = 4 * (len(s.Constants) + s.Threads/Lanes*kernels.NetworkPatchWords + 2*kernels.NetworkBitsWords + int(n.SumStride))
	if s.Shared+64 > limits.Shared { // and a flag
		return nil
	}
	return s
}

// addSteps adds all steps, each of which reads the output of the one before and nothing else. It reports whether the
// kernel can execute them.
func (s *Fused) addSteps(p *plan.Plan) bool {
	steps, before := p.Steps, 0 // tensor
	var binarize *plan.Binarize // of the input
	if first, ok := steps[0].Op.(*plan.Binarize); ok {
		binarize, steps, before = first, steps[1:], steps[0].Out
	}
	for i, step := range steps {
		op, ok := step.Op.(*plan.Conv)
		if !ok || gpu.HasPlanes(op) || len(step.In) != 1 || step.In[0] != before {
			return false
		}
		c := gpu.Step{In: p.Tensors[step.In[0]], Out: p.Tensors[step.Out], X: gpu.Tensor(step.In[0]), Y: gpu.Tensor(step.Out)}
		last := i == len(steps)-1
		if last != (c.Out.DType == bcnn.Float32) || c.Out.DType == bcnn.Uint8 {
			return false
		}
		switch {
		case op.Dense:
			ok = s.addDense(c, op)
		case i == 0 && binarize != nil:
			ok = s.addBinarizedConv(c, op, binarize, p.Tensors[0])
		default:
			ok = s.addConv(c, op)
		}
		if !ok {
			return false
		}
		before = step.Out
	}
	return s.denses > 0 && before == p.Outputs[0]
}

// chooseThreads takes the number with which warps go over their tiles the fewest times,
// and the smallest of several.
func (s *Fused) chooseThreads(limits Limits) {
	least, most := math.MaxInt, kernels.NetworkThreads
	if !hasByteProducts(s.arch) {
		most = kernels.NetworkOldThreads
	}
	for threads := kernels.NetworkOldThreads; threads <= most; threads += Lanes {
		rounds := 0
		for _, c := range s.Net.Conv[:len(s.Convs)] {
			w := 2 // pixels of a tile, which has two rows
			if c.Kind == kernels.NetworkBytes3 || c.Kind == kernels.NetworkBytes5 {
				w = 4
			}
			tiles := num.CeilDiv(int(c.G.ConvH), 2) * num.CeilDiv(int(c.G.ConvW), w) * num.CeilDiv(int(c.G.OutC), Lanes)
			rounds += num.CeilDiv(tiles, limits.Processors*threads/Lanes)
		}
		if rounds < least {
			least, s.Threads = rounds, threads
		}
	}
}

// listUses tells when the launch uses which tensors: from one barrier of the grid to
// the next, blocks read and write in any order.
func (s *Fused) listUses(p *plan.Plan) {
	end := len(p.Steps) - 1
	step := end - s.denses - len(s.Convs) + 1 // of the first convolution
	for i, a := range s.Convs {
		first, last := step+i, step+i
		if i == 0 {
			first = 0 // the image is binarised on the way
		}
		if i == len(s.Convs)-1 {
			last = end // no barrier comes before the dense layers
			s.Uses = append(s.Uses, plan.Use{Tensor: p.Outputs[0], First: first, Last: last})
		}
		s.Uses = append(s.Uses, plan.Use{Tensor: int(a.In), First: first, Last: last}, plan.Use{Tensor: int(a.Out), First: first, Last: last})
	}
}

// newConv starts the next convolution; nil if the kernel has nothing like it.
func (s *Fused) newConv(c gpu.Step, op *plan.Conv) (*kernels.NetworkConv, *FusedConv, gpu.Conv) {
	w := c.Conv(op, Lanes)
	if s.denses > 0 || len(s.Convs) == len(s.Net.Conv) {
		return nil, nil, w
	}
	if op.Groups != 1 || op.Threshold == nil || op.KH != op.KW || w.G.PoolH != w.G.PoolW || w.G.PoolH > 2 ||
		max(op.StrideH, op.StrideW, op.DilationH, op.DilationW) > 1 {
		return nil, nil, w
	}
	a := FusedConv{In: c.X, Out: c.Y, Flip: w.Mask(), Thresholds: w.ThresholdsI32(w.Stride())}
	a.Rows, a.Cols, a.Correction = w.Border()
	at := &s.Net.Conv[len(s.Convs)]
	*at = kernels.NetworkConv{G: w.G.Geometry, InBytes: int32(c.In.Shape.Bytes(c.In.DType)), Channels: int32(w.In), Scheme: -1}
	s.Convs = append(s.Convs, a)
	return at, &s.Convs[len(s.Convs)-1], w
}

var (
	bytesKinds = map[int]int32{3: kernels.NetworkBytes3, 5: kernels.NetworkBytes5} // by side of the window
	bitsKinds  = map[[2]int]int32{{3, 1}: kernels.NetworkBits3x1, {3, 2}: kernels.NetworkBits3x2, {3, 4}: kernels.NetworkBits3x4,
		{5, 1}: kernels.NetworkBits5x1, {5, 2}: kernels.NetworkBits5x2} // and by words
)

// addConv reports whether the kernel has the convolution.
func (s *Fused) addConv(c gpu.Step, op *plan.Conv) bool {
	at, a, w := s.newConv(c, op)
	if at == nil {
		return false
	}
	ok := false
	switch c.In.DType {
	case bcnn.Uint8:
		at.Kind, ok = bytesKinds[op.KH]
		s.addBytes(a, w, op, int64(op.ZeroPoint))
		ok = ok && w.In <= 4
	case bcnn.Bits:
		at.Kind, ok = bitsKinds[[2]int{op.KH, w.Words}]
		a.Weights = w.Bits(op.Bits, 1)
	}
	return ok
}

// addBytes lays out the weights for bytes of which zero counts as 0.
func (s *Fused) addBytes(a *FusedConv, w gpu.Conv, op *plan.Conv, zero int64) {
	var sums []int32
	a.Weights, sums = w.Bytes(w.Int8())
	if hasByteProducts(s.arch) {
		a.Weights = gpu.Fragments(a.Weights, w.Taps*num.CeilDiv(w.In, 4))
	}
	for o, sum := range sums {
		a.Thresholds[o] = saturate(int64(a.Thresholds[o]) + zero*int64(sum))
	}
}

// addBinarizedConv reports whether the kernel has the convolution, of bits that it
// makes of the image on the way. With b = 0 or 1 for −1 or +1, Σ ±1·w = 2·Σ b·w − Σ w.
func (s *Fused) addBinarizedConv(c gpu.Step, op *plan.Conv, binarize *plan.Binarize, image plan.Tensor) bool {
	at, a, w := s.newConv(c, op)
	if at == nil || w.In > 4 || binarize.Scheme == bcnn.SchemeMinMax {
		return false
	}
	kind, ok := bytesKinds[op.KH]
	if !ok {
		return false
	}
	s.addBytes(a, w, op, 1)
	at.Kind, at.Scheme = kind, gpu.SchemeNumber(binarize.Scheme)
	at.G.InC, at.InBytes, a.In = int32(image.Shape.C), int32(image.Shape.Bytes(image.DType)), 0
	if binarize.Threshold != nil {
		a.Levels = binarize.Threshold.I32
		if flip := binarize.Threshold.Flip; flip != nil {
			at.Inverted = int32(flip[0])
		}
	}
	return true
}

// addDense reports whether the kernel has the dense layer.
func (s *Fused) addDense(c gpu.Step, op *plan.Conv) bool {
	if c.In.DType != bcnn.Bits || op.Border != nil || len(s.Convs) == 0 || s.denses == len(s.Net.Dense) {
		return false
	}
	w := c.Conv(op, Lanes)
	g := w.G
	stride := num.CeilDiv(op.Out, Lanes) * Lanes
	if g.ToBits == 1 {
		stride = int(g.OutWords) * Lanes // so that the words of padding are made, too
	}
	if stride > kernels.NetworkBitsWords*Lanes {
		return false
	}
	rowWords := 2 * len(op.Bits) / op.Out
	d := &s.Net.Dense[s.denses]
	*d = kernels.NetworkDense{RowWords: int32(rowWords), OutC: int32(op.Out), OutStride: int32(stride), Taps: g.Taps,
		ToBits: g.ToBits, Scaled: g.Scaled, Activation: g.Activation, Flip: -1}
	put := func(words []uint32) int32 {
		at := len(s.Constants)
		s.Constants = append(s.Constants, words...)
		return int32(at)
	}
	if s.denses == 0 {
		// [pixel][block][output]
		stored := 2 * bits.Words(w.In)
		s.Weights = make([]uint32, w.Taps*w.Words*stride)
		for o := range op.Out {
			for p := range w.Taps {
				for k := range w.Words {
					s.Weights[(p*w.Words+k)*stride+o] = gpu.Half(op.Bits[o*rowWords/2:], p*stored+k)
				}
			}
		}
	} else {
		if rowWords > kernels.NetworkBitsWords || w.Taps != 1 {
			return false
		}
		d.Weights = put(gpu.Columns(op.Bits, op.Out, stride))
	}
	if g.ToBits == 1 {
		var words []uint32
		for _, t := range w.ThresholdsI32(stride) {
			words = append(words, uint32(t))
		}
		d.Thresholds = put(words)
		if m := w.Mask(); m != nil {
			d.Flip = put(m)
		}
	} else {
		floats := func(v []float32) int32 {
			words := make([]uint32, len(v))
			for i, f := range v {
				words[i] = math.Float32bits(f)
			}
			return put(words)
		}
		d.Scale, d.Shift, d.Slope = floats(op.Scale), floats(op.Shift), floats(w.Slope())
	}
	s.denses++
	return true
}
