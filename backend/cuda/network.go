//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/kernels"
)

// smallNetwork is variant f: a plan that the kernel network executes in one
// cooperative launch. It has convolutions and then dense layers, one after the other.
type smallNetwork struct {
	n             kernels.Network
	convs, denses []*bcnn.ConvStep
	convArgs      []networkArgs
	constants     []uint32
	weights       []uint32   // of the first dense layer
	shared        int        // bytes of a block
	uses          []bcnn.Use // of the tensors, between barriers of the grid
}

// networkArgs are the arrays of a convolution.
type networkArgs struct {
	in, out                int // tensors
	weights, flip          []uint32
	thresholds, rows, cols []int32
	correction, levels     []int32
}

// maxNetworkBatch is the largest batch for which one launch is considered without
// being forced: the last block does the dense layers of all images.
const maxNetworkBatch = 4

// considersNetwork reports whether one launch for the whole network may be chosen.
func (e *executable) considersNetwork() bool {
	if !e.device.limits.cooperative || e.opts.Timed != nil || e.opts.Tap != nil {
		return false
	}
	return e.opts.Variant == "f" ||
		e.opts.Variant == "" && e.device.pick < 0 && e.opts.MaxBatch <= maxNetworkBatch && e.device.info.Kind != backend.Emulated
}

// newSmallNetwork returns nil if the kernel cannot execute the plan.
func (e *executable) newSmallNetwork() *smallNetwork {
	s := &smallNetwork{}
	steps, before := e.plan.Steps, 0 // tensor
	var binarize *bcnn.BinarizeStep  // of the input
	if len(steps) == 0 {
		return nil
	}
	if first, ok := steps[0].Op.(*bcnn.BinarizeStep); ok {
		binarize, steps, before = first, steps[1:], steps[0].Out
	}
	for i, step := range steps {
		op, ok := step.Op.(*bcnn.ConvStep)
		if !ok || len(step.In) != 1 || step.In[0] != before {
			return nil
		}
		c := stepCompiler{limits: e.device.limits, arch: e.device.arch, batch: e.opts.MaxBatch,
			in: e.plan.Tensors[step.In[0]], out: e.plan.Tensors[step.Out]}
		last := i == len(steps)-1
		if last != (c.out.DType == bcnn.Float32) || c.out.DType == bcnn.Uint8 {
			return nil
		}
		switch {
		case op.Dense && c.in.DType == bcnn.Bits && len(s.convs) > 0 && len(s.denses) < len(s.n.Dense):
			if !s.addDense(&c, op) {
				return nil
			}
		case !op.Dense && len(s.denses) == 0 && len(s.convs) < len(s.n.Conv):
			if i == 0 && binarize != nil {
				if !s.addBinarizedConv(&c, op, step, binarize, e.plan.Tensors[0]) {
					return nil
				}
			} else if !s.addConv(&c, op, step) {
				return nil
			}
		default:
			return nil
		}
		before = step.Out
	}
	if len(s.denses) == 0 || before != e.plan.Output {
		return nil
	}
	s.listUses(e.plan)
	for len(s.constants)%4 != 0 {
		s.constants = append(s.constants, 0)
	}
	n := &s.n
	n.Convs, n.Denses, n.ConstantWords = int32(len(s.convs)), int32(len(s.denses)), int32(len(s.constants))
	n.SumStride = n.Dense[0].OutStride
	const warps = kernels.NetworkThreads / lanes
	s.shared = 4 * (len(s.constants) + warps*kernels.NetworkPatchWords + 2*kernels.NetworkBitsWords + int(n.SumStride))
	if s.shared+64 > e.device.limits.shared { // and a flag
		return nil
	}
	return s
}

// listUses tells when the launch uses which tensors: from one barrier of the grid to
// the next, blocks read and write in any order.
func (s *smallNetwork) listUses(plan *bcnn.Plan) {
	end := len(plan.Steps) - 1
	step := end - len(s.denses) - len(s.convs) + 1 // of the first convolution
	for i, a := range s.convArgs {
		first, last := step+i, step+i
		if i == 0 {
			first = 0 // the image is binarised on the way
		}
		if i == len(s.convArgs)-1 {
			last = end // no barrier comes before the dense layers
			s.uses = append(s.uses, bcnn.Use{Tensor: plan.Output, First: first, Last: last})
		}
		s.uses = append(s.uses, bcnn.Use{Tensor: a.in, First: first, Last: last}, bcnn.Use{Tensor: a.out, First: first, Last: last})
	}
}

// newConv starts the next convolution; nil if the kernel has nothing like it.
func (s *smallNetwork) newConv(c *stepCompiler, op *bcnn.ConvStep, step bcnn.Step) (*kernels.NetworkConv, *networkArgs, convGeometry) {
	g, w := c.conv(op)
	if op.Groups != 1 || op.Threshold == nil || op.KH != op.KW || g.PoolH != g.PoolW || g.PoolH > 2 ||
		max(op.StrideH, op.StrideW, op.DilationH, op.DilationW) > 1 {
		return nil, nil, w
	}
	stride := int(g.Blocks) * lanes
	a := networkArgs{in: step.In[0], out: step.Out, flip: mask(op), thresholds: thresholdsI32(op.Threshold, stride)}
	if op.Border != nil {
		g.Border, g.Cols = 1, int32(op.Border.Cols)
		a.rows, a.cols, a.correction = blockCorrection(op.Border, op.Out, stride)
	}
	at := &s.n.Conv[len(s.convs)]
	*at = kernels.NetworkConv{G: g, InBytes: int32(c.in.Shape.Bytes(c.in.DType)), Channels: int32(w.in), Scheme: -1}
	s.convs, s.convArgs = append(s.convs, op), append(s.convArgs, a)
	return at, &s.convArgs[len(s.convArgs)-1], w
}

var (
	bytesKinds = map[int]int32{3: kernels.NetworkBytes3, 5: kernels.NetworkBytes5} // by side of the window
	bitsKinds  = map[[2]int]int32{{3, 1}: kernels.NetworkBits3x1, {3, 2}: kernels.NetworkBits3x2, {3, 4}: kernels.NetworkBits3x4,
		{5, 1}: kernels.NetworkBits5x1, {5, 2}: kernels.NetworkBits5x2} // and by words
)

// addConv reports whether the kernel has the convolution.
func (s *smallNetwork) addConv(c *stepCompiler, op *bcnn.ConvStep, step bcnn.Step) bool {
	at, a, w := s.newConv(c, op, step)
	if at == nil {
		return false
	}
	ok := false
	switch c.in.DType {
	case bcnn.Uint8:
		at.Kind, ok = bytesKinds[op.KH]
		s.addBytes(a, w, op, int64(op.ZeroPoint))
		ok = ok && w.in <= 4
	case bcnn.Bits:
		at.Kind, ok = bitsKinds[[2]int{op.KH, w.words}]
		a.weights = w.blockWeights(op.Bits, 1)
	}
	return ok
}

// addBytes lays out the weights for bytes of which zero counts as 0.
func (s *smallNetwork) addBytes(a *networkArgs, w convGeometry, op *bcnn.ConvStep, zero int64) {
	var sums []int32
	a.weights, sums = w.byteWeights(op.Bits)
	for o, sum := range sums {
		a.thresholds[o] = saturate(int64(a.thresholds[o]) + zero*int64(sum))
	}
}

// addBinarizedConv reports whether the kernel has the convolution, of bits that it
// makes of the image on the way. With b = 0 or 1 for −1 or +1, Σ ±1·w = 2·Σ b·w − Σ w.
func (s *smallNetwork) addBinarizedConv(c *stepCompiler, op *bcnn.ConvStep, step bcnn.Step, binarize *bcnn.BinarizeStep, image bcnn.PlanTensor) bool {
	at, a, w := s.newConv(c, op, step)
	if at == nil || w.in > 4 {
		return false
	}
	scheme, ok := map[bcnn.Scheme]int32{bcnn.SchemeThreshold: 0, bcnn.SchemeGrey: 1, bcnn.SchemeLBP: 2}[binarize.Scheme]
	if !ok {
		return false
	}
	if at.Kind, ok = bytesKinds[op.KH]; !ok {
		return false
	}
	s.addBytes(a, w, op, 1)
	at.Scheme, at.G.InC, at.InBytes, a.in = scheme, int32(image.Shape.C), int32(image.Shape.Bytes(image.DType)), 0
	if binarize.Threshold != nil {
		a.levels = binarize.Threshold.I32
		if flip := binarize.Threshold.Flip; flip != nil {
			at.Inverted = int32(flip[0])
		}
	}
	return true
}

// addDense reports whether the kernel has the dense layer.
func (s *smallNetwork) addDense(c *stepCompiler, op *bcnn.ConvStep) bool {
	g, w := c.conv(op)
	stride := num.CeilDiv(op.Out, lanes) * lanes
	if g.ToBits == 1 {
		stride = int(g.OutWords) * lanes // so that the words of padding are made, too
	}
	if stride > kernels.NetworkBitsWords*lanes {
		return false
	}
	rowWords := 2 * len(op.Bits) / op.Out
	d := &s.n.Dense[len(s.denses)]
	*d = kernels.NetworkDense{RowWords: int32(rowWords), OutC: int32(op.Out), OutStride: int32(stride), Taps: g.Taps,
		ToBits: g.ToBits, Scaled: g.Scaled, Relu: g.Relu, Flip: -1}
	put := func(words []uint32) int32 {
		at := len(s.constants)
		s.constants = append(s.constants, words...)
		return int32(at)
	}
	if len(s.denses) == 0 {
		// [pixel][block][output]
		stored := 2 * bits.Words(w.in)
		s.weights = make([]uint32, w.taps*w.words*stride)
		for o := range op.Out {
			for p := range w.taps {
				for k := range w.words {
					s.weights[(p*w.words+k)*stride+o] = half(op.Bits[o*rowWords/2:], p*stored+k)
				}
			}
		}
	} else {
		if rowWords > kernels.NetworkBitsWords || w.taps != 1 {
			return false
		}
		columns := make([]uint32, rowWords*stride)
		for o := range op.Out {
			for k := range rowWords {
				columns[k*stride+o] = half(op.Bits[o*rowWords/2:], k)
			}
		}
		d.Weights = put(columns)
	}
	if g.ToBits == 1 {
		var words []uint32
		for _, t := range thresholdsI32(op.Threshold, stride) {
			words = append(words, uint32(t))
		}
		d.Thresholds = put(words)
		if m := mask(op); m != nil {
			d.Flip = put(m)
		}
	} else if op.Scale != nil {
		floats := func(v []float32) (words []uint32) {
			for _, f := range v {
				words = append(words, math.Float32bits(f))
			}
			return words
		}
		d.Scale, d.Shift = put(floats(op.Scale)), put(floats(op.Shift))
	}
	s.denses = append(s.denses, op)
	return true
}

// buildNetwork prepares the launch; nothing if a grid of such blocks does not fit.
func (e *executable) buildNetwork(s *smallNetwork) (_ *built, err error) {
	const file, kernel = "network", "network"
	f, err := e.function(file, kernel)
	if err != nil {
		return nil, err
	}
	if s.shared > e.device.limits.sharedDefault {
		if err := shim.AllowShared(f, s.shared); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", kernel, err)
		}
	}
	resident, err := f.MaxActiveBlocksPerMultiProcessor(kernels.NetworkThreads, int64(s.shared))
	if err != nil {
		return nil, shim.Check("cuOccupancyMaxActiveBlocksPerMultiprocessor", err)
	}
	if resident < 1 {
		return nil, nil
	}
	sums := kernels.NetworkReplicas * e.opts.MaxBatch * int(s.n.SumStride)
	if err := e.reserve(4 * int64(sums)); err != nil {
		return nil, err
	}
	b := &built{variant: "f", bag: &bag{thread: e.thread}}
	defer func() {
		if err != nil {
			_ = b.bag.release()
		}
	}()
	put := func(to *uint64, data any) {
		if err != nil {
			return
		}
		var p cu.DevicePtr
		p, err = e.argument(b.bag, data)
		*to = uint64(p)
	}
	n := s.n
	for i, a := range s.convArgs {
		c := &n.Conv[i]
		put(&c.In, tensor(a.in))
		put(&c.Out, tensor(a.out))
		put(&c.Weights, a.weights)
		put(&c.Thresholds, a.thresholds)
		put(&c.Flip, a.flip)
		put(&c.Rows, a.rows)
		put(&c.Cols, a.cols)
		put(&c.Correction, a.correction)
		put(&c.Levels, a.levels)
	}
	put(&n.Constants, s.constants)
	put(&n.Weights, s.weights)
	put(&n.Sums, make([]int32, sums))
	put(&n.Barrier, make([]uint32, 2))
	put(&n.Out, tensor(e.plan.Output))
	if err != nil {
		return nil, err
	}
	l, err := shim.NewLaunch(f, unsafe.Pointer(&n), unsafe.Sizeof(n), nil)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", kernel, err)
	}
	b.bag.launch(l)
	// One block to a multiprocessor: more make the barriers slower.
	b.launches = []launch{{l, spec{file: file, kernel: kernel, block: kernels.NetworkThreads,
		blocks: e.device.limits.processors, shared: s.shared, cooperative: true}}}
	return b, nil
}

// chooseNetwork makes the launch of the whole network, if there is one and it is
// forced or the faster.
func (e *executable) chooseNetwork(s *smallNetwork) error {
	if s == nil {
		return nil
	}
	b, err := e.buildNetwork(s)
	if err != nil || b == nil {
		return err
	}
	if e.opts.Variant != "f" {
		steps := 0.0
		together, err := e.time(b)
		for i := 0; err == nil && i < len(e.steps); i++ {
			var took float64
			took, err = e.time(e.steps[i])
			steps += took
		}
		if err != nil || together >= steps {
			released := b.bag.release()
			if err == nil {
				err = released
			}
			return err
		}
	}
	e.network = b
	return nil
}
