package gpu

import (
	"fmt"
	mathbits "math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// plainConv is a convolution that knows nothing but what kernels are given: the
// geometry and the constants.
type plainConv struct {
	Conv
	in                     *bcnn.Tensor
	words, masks           []uint32
	integers               []int32
	floats, bias           []float32
	thresholds             []int32
	levels                 []float32
	rows, cols, correction []int32
}

func newPlainConv(s Step, op *plan.Conv, lanes int, in *bcnn.Tensor) *plainConv {
	p := &plainConv{Conv: s.Conv(op, lanes), in: in}
	switch {
	case s.In.DType == bcnn.Float32:
		p.floats, p.bias = p.Floats(op.F32), PadTo(op.Bias, p.Stride(), 0)
		p.levels = p.ThresholdsF32(p.Stride())
		return p
	case s.In.DType == bcnn.Uint8:
		p.integers = p.Int32Weights()
	case p.MixedLanes:
		p.words, p.masks = p.Mixed(op.Bits)
	default:
		p.words = p.Bits(op.Bits, 1)
	}
	if p.words != nil {
		p.rows, p.cols, p.correction = p.Border()
	}
	p.thresholds = p.ThresholdsI32(p.Stride())
	return p
}

// each calls f for every tap that is inside the image, with the pixel.
func (p *plainConv) each(y, x int, f func(tap, pixel int)) {
	g := p.G
	for tap := range p.Taps {
		iy := int32(y)*g.StrideH - g.PadT + int32(tap)/g.Kw*g.DilationH
		ix := int32(x)*g.StrideW - g.PadL + int32(tap)%g.Kw*g.DilationW
		if iy >= 0 && iy < g.InH && ix >= 0 && ix < g.InW {
			f(tap, int(iy*g.InPlanes*g.InW+ix)) // of the first plane
		} else if p.words != nil {
			f(tap, -1) // a border of 0 bits
		}
	}
}

// at returns the sum of an output of a pixel of an image, before pooling; as a float if
// it is one.
func (p *plainConv) at(image, y, x, o int) (sum int32, float float32) {
	g, pixels := p.G, int(p.G.InH*p.G.InPlanes*p.G.InW)
	block, lane, first := o/p.Lanes, o%p.Lanes, o/int(g.GroupOut)*int(g.GroupIn)
	weight := func(tap, k, of int) int { return ((block*p.Taps+tap)*of+k)*p.Lanes + lane }
	if p.floats != nil {
		float = p.bias[o]
		p.each(y, x, func(tap, pixel int) {
			for c := range int(g.GroupIn) {
				v := p.in.F32[(image*pixels+pixel)*int(g.InC)+first+c]
				float = f32.FMA(v, p.floats[weight(tap, c, p.In)], float)
			}
		})
		return 0, float
	}
	if p.integers != nil {
		p.each(y, x, func(tap, pixel int) {
			for c := range int(g.GroupIn) {
				v := int32(p.in.U8[(image*pixels+pixel)*int(g.InC)+first+c]) - g.ZeroPoint
				sum += v * p.integers[weight(tap, c, p.In)]
			}
		})
		return sum, float32(sum)
	}
	count := 0
	p.each(y, x, func(tap, pixel int) {
		for i := range int(g.Words * g.InPlanes) {
			j, k := i/int(g.Words), i%int(g.Words)
			var v uint32
			if at := first/32 + k; pixel >= 0 && at < int(g.InWords) {
				v = Half(p.in.Words[(image*pixels+pixel+j*int(g.InW))*int(g.InWords)/2:], at)
			}
			if p.masks != nil {
				v &= p.masks[(block*int(g.Words)+k)*p.Lanes+lane]
			}
			count += mathbits.OnesCount32(v^p.words[weight(tap, k, int(g.Words))]) << j
		}
	})
	sum = g.Taps*(1<<g.InPlanes-1) - 2*int32(count)
	if g.Border == 1 {
		sum += p.correction[int(p.rows[y]*g.Cols+p.cols[x])*p.Stride()+o]
	}
	return sum, float32(sum)
}

// run computes the output of n images.
func (p *plainConv) run(n int) (words []uint32, values []float32) {
	g, tail := p.G, p.Tail()
	scale, shift, slope, mask := tail[0].([]float32), tail[1].([]float32), tail[2].([]float32), tail[3].([]uint32)
	planes, plane := int(g.OutPlanes), int(g.OutW*g.OutWords)
	if g.ToBits == 1 {
		words = make([]uint32, n*int(g.OutH)*planes*plane)
	}
	for item := range n * int(g.OutH*g.OutW) {
		image, pixel := item/int(g.OutH*g.OutW), item%int(g.OutH*g.OutW)
		y, x := pixel/int(g.OutW), pixel%int(g.OutW)
		var rows []uint32 // from the word of the first plane
		if g.ToBits == 1 {
			rows = words[(image*int(g.OutH)+y)*planes*plane+x*int(g.OutWords):]
		}
		for o := range int(g.OutC) {
			if g.ToBits == 0 {
				_, v := p.at(image, y, x, o)
				if g.Scaled == 1 {
					v = f32.FMA(v, scale[o], shift[o])
				}
				values = append(values, activated(g, v, slope, o))
				continue
			}
			number := 0
			for i := range g.PoolH * g.PoolW {
				sum, v := p.at(image, y*int(g.PoolH)+int(i/g.PoolW), x*int(g.PoolW)+int(i%g.PoolW), o)
				reached := 0
				for k := range 1<<planes - 1 {
					if at := k*p.Stride() + o; p.levels != nil && v >= p.levels[at] || p.levels == nil && sum >= p.thresholds[at] {
						reached++
					}
				}
				number = max(number, reached)
			}
			for j := range planes {
				rows[j*plane+o/32] |= uint32(number>>j&1) << (o % 32)
			}
		}
		for j := range planes {
			for i := range mask {
				rows[j*plane+i] ^= mask[i]
			}
		}
	}
	return words, values
}

// activated is what kernels make of a value of channel c at the end.
func activated(g Geometry, v float32, slope []float32, c int) float32 {
	switch plan.ActivationKind(g.Activation) {
	case plan.ActivationReLU:
		if v < 0 {
			v = 0
		}
	case plan.ActivationPReLU:
		if v < 0 {
			v *= slope[c]
		}
	case plan.ActivationClip:
		if v < slope[0] {
			v = slope[0]
		}
		if v > slope[1] {
			v = slope[1]
		}
	}
	return v
}

// eachStep calls f for every step of the cases of the table, with its inputs and what
// the reference made of them.
func eachStep(t *testing.T, f func(name string, s Step, op plan.Op, in []*bcnn.Tensor, out *bcnn.Tensor)) {
	for _, c := range backendtest.Cases(t, parity.Cover, parity.Cases) {
		plan, err := lower.Network(t.Context(), c.Network(), lower.Options{})
		require.NoError(t, err)
		tensors := make([]bcnn.Tensor, len(plan.Tensors))
		in := c.Inputs(plan, c.Batch)
		copy(tensors, in)
		_, err = ref.RunAll(t.Context(), plan, in, func(step int, _ string, made bcnn.Tensor) { tensors[plan.Steps[step].Out] = made })
		require.NoError(t, err)
		for k, of := range plan.Steps {
			s, err := NewStep(plan, k, c.Batch)
			require.NoError(t, err)
			var in []*bcnn.Tensor
			for _, i := range of.In {
				in = append(in, &tensors[i])
			}
			f(fmt.Sprintf("%s, step %d (%s)", c.Name, k, of.Name), s, of.Op, in, &tensors[of.Out])
		}
	}
}

// TestConv computes every convolution and dense layer of the table from what kernels are
// given alone, and compares with the reference.
func TestConv(t *testing.T) {
	seen := make(map[string]int)
	eachStep(t, func(name string, s Step, op plan.Op, in []*bcnn.Tensor, out *bcnn.Tensor) {
		conv, ok := op.(*plan.Conv)
		if !ok {
			return
		}
		for _, lanes := range []int{32, 4} {
			if lanes == 4 && s.Out.DType == bcnn.Bits {
				continue // words are 32 channels
			}
			p := newPlainConv(s, conv, lanes, in[0])
			words, values := p.run(out.N)
			if s.Out.DType == bcnn.Bits {
				require.Equal(t, Rows(out.Words), words, name)
			} else {
				made := *out
				made.F32 = values
				require.NoError(t, compare.Tensors(*out, made), name)
			}
			seen[s.In.DType.String()]++
			for what, is := range map[string]bool{
				"mixed": p.MixedLanes, "pooled": conv.Pool != nil, "border": conv.Border != nil, "dilated": conv.DilationH > 1,
				"strided": conv.StrideW > 1, "grouped": conv.Groups > 1, "flipped": p.G.Flip == 1, conv.Activation.Kind.String(): true, "dense": conv.Dense,
				"zero point": conv.ZeroPoint > 0, "planes": conv.InPlanes > 1, "to planes": conv.OutPlanes > 1,
			} {
				if is {
					seen[what]++
				}
			}
		}
	})
	for _, what := range []string{"bits", "uint8", "float32", "mixed", "pooled", "border", "dilated", "strided", "grouped", "flipped", "relu", "prelu", "clip", "dense", "zero point", "planes", "to planes"} {
		require.Positive(t, seen[what], "%s among %v", what, seen)
	}
}

// TestConvConstants: outputs that there are not are never reached.
func TestConvConstants(t *testing.T) {
	s := Step{In: plan.Tensor{DType: bcnn.Bits, Shape: bcnn.Shape{H: 4, W: 4, C: 40}}, Out: plan.Tensor{DType: bcnn.Bits, Shape: bcnn.Shape{H: 4, W: 4, C: 3}}}
	op := &plan.Conv{Window: bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, Out: 3, Groups: 1,
		Threshold: &plan.Threshold{I32: []int32{5, -6, 7}, F32: []float32{1, 2, 3}, Flip: []uint64{6}},
		Border:    &plan.Border{Row: []int{0, 1, 1, 0}, Col: []int{0, 0, 0, 0}, Rows: 2, Cols: 1, Correction: []int32{0, 0, 0, 1, 2, 3}}}
	c := s.Conv(op, 32)
	require.Equal(t, 64, c.Stride()) // two words, of which the second is padding
	require.Zero(t, c.G.Border)
	args := c.Epilogue()
	require.Len(t, args, 8)
	thresholds := args[0].([]int32)
	require.Len(t, thresholds, 64)
	require.Equal(t, []int32{5, -6, 7, 1<<31 - 1, 1<<31 - 1}, thresholds[:5])
	require.Equal(t, []uint32{6, 0}, args[4])
	require.Equal(t, []int32{0, 1, 1, 0}, args[5])
	require.Equal(t, []int32{0, 0, 0, 0}, args[6])
	require.Equal(t, []int32{1, 2, 3, 0}, args[7].([]int32)[64:68])
	require.Equal(t, [2]int32{1, 1}, [2]int32{c.G.Border, c.G.Cols})
	require.Greater(t, c.ThresholdsF32(64)[3], float32(3e38))
	op.Threshold, op.Border = nil, nil
	c = s.Conv(op, 32)
	require.Nil(t, c.ThresholdsI32(64))
	require.Nil(t, c.ThresholdsF32(64))
	require.Nil(t, c.Mask())
}

func TestCheckSize(t *testing.T) {
	shape := func(h, w, c int) plan.Tensor { return plan.Tensor{Shape: bcnn.Shape{H: h, W: w, C: c}} }
	conv := func(out, k int) plan.Step {
		return plan.Step{Op: &plan.Conv{Window: bcnn.Window{KH: k, KW: k}, Out: out, Groups: 1}}
	}
	border, pool, dense := conv(64, 3), conv(64, 3), conv(40000000, 1)
	dense.Op.(*plan.Conv).Dense = true
	border.Op.(*plan.Conv).Border = &plan.Border{Rows: 5000, Cols: 5000}
	pool.Op.(*plan.Conv).Pool = &bcnn.Window{KH: 100, KW: 100}
	for name, c := range map[string]struct {
		step    plan.Step
		in, out plan.Tensor
		fits    bool
	}{
		"usual":       {conv(512, 3), shape(224, 224, 512), shape(224, 224, 512), true},
		"many pixels": {plan.Step{Op: &plan.Sign{}}, shape(1<<13, 1<<13, 1), shape(1<<13, 1<<13, 1), false},
		"weights":     {conv(1<<16, 15), shape(9, 9, 1024), shape(1, 1, 1<<16), false},
		"classes":     {border, shape(9, 9, 64), shape(9, 9, 64), false},
		"pooling":     {pool, shape(5000, 5000, 64), shape(50, 50, 64), false},
		"dense":       {dense, shape(1, 1, 8), shape(1, 1, 40000000), false},
	} {
		err := Step{In: c.in, Out: c.out}.checkSize(c.step.Op)
		if c.fits {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, driver.ErrTooLarge, name)
		}
	}
}
