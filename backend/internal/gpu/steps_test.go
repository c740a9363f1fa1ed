package gpu

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// plainStep executes the kernels of means, products, joined and picked channels; it
// knows nothing but what they are given.
type plainStep struct {
	tensors map[Tensor]*bcnn.Tensor
	words   []uint32
	values  []float32
}

func bitOf(words []uint32, c int) bool { return words[c/32]>>(c%32)&1 == 1 }

func (p *plainStep) run(e Elementwise, images int) {
	g := e.G
	for item := range images * e.Items {
		image, item := item/e.Items, item%e.Items
		switch e.Name {
		case "avg_pool_bits", "avg_pool_float":
			p.avgPool(e, image, item/int(g.OutC), item%int(g.OutC))
		case "pair":
			pixel, c := item/int(g.OutC), item%int(g.OutC)
			other := image * int(g.OtherPixels*g.OtherC)
			if g.OtherPixels > 1 {
				other += pixel * int(g.OtherC)
			}
			if g.OtherC > 1 {
				other += c
			}
			i := image*e.Items + item
			x, y := p.tensors[e.Args[0].(Tensor)].F32[i], p.tensors[e.Args[1].(Tensor)].F32[other]
			switch kind := plan.PairKind(g.Scheme); {
			case kind == plan.PairMul:
				y *= x
			case kind == plan.PairMask && y != 0:
				y = x
			case kind == plan.PairMask:
				y = 0
			case x != x, kind == plan.PairMin && x < y, kind == plan.PairMax && x > y:
				y = x
			}
			p.values[i] = y
		case "pixels_float", "pixels_bits":
			p.pixels(e, image, item)
		case "quantize":
			i, n := image*e.Items+item, int(g.End-g.First)
			list := e.Args[2].([]float32)
			if g.OtherC > 1 {
				list = list[item%int(g.OutC)*n:]
			}
			level := g.First
			for _, t := range list[:n] {
				if p.tensors[e.Args[0].(Tensor)].F32[i] >= t {
					level++
				}
			}
			p.values[i] = float32(level)
		case "table_float", "table_bits":
			p.table(e, image, item)
		case "sign_bits":
			per := e.Items / int(g.OutH*g.OutW)
			pixel, k := image*int(g.OutH*g.OutW)+item/per, item%per
			in := p.tensors[e.Args[0].(Tensor)].F32[pixel*int(g.InC):]
			thresholds, row := e.Args[2].([]float32), pixel/int(g.OutW)
			for j := range int(g.OutPlanes) {
				word := &p.words[((row*int(g.OutPlanes)+j)*int(g.OutW)+pixel%int(g.OutW))*int(g.OutWords)+k]
				*word = 0
				for c := k * 32; c < min(k*32+32, int(g.OutC)); c++ {
					reached := 0
					for i := c; i < len(thresholds); i += int(g.OutC) {
						if in[c] >= thresholds[i] {
							reached++
						}
					}
					*word |= uint32(reached>>j&1) << (c % 32)
				}
				if g.Flip != 0 {
					*word ^= e.Args[3].([]uint32)[k]
				}
			}
		case "gather_float":
			channels := int(g.End - g.First)
			pixel, c := image*int(g.OutH*g.OutW)+item/channels, item%channels
			var v float32
			if from := e.Args[2].([]int32)[c]; from >= 0 {
				v = p.tensors[e.Args[0].(Tensor)].F32[pixel*int(g.InC)+int(from)]
			}
			p.values[pixel*int(g.OutC)+int(g.First)+c] = v
		case "gather_bits":
			per := e.Items / int(g.OutH*g.OutW)
			pixel, k := image*int(g.OutH*g.OutW)+item/per, int(g.First)/32+item%per
			in := Rows(p.tensors[e.Args[0].(Tensor)].Words)[pixel*int(g.InWords):]
			word := &p.words[pixel*int(g.OutWords)+k]
			if k*32 >= int(g.First) {
				*word = 0
			}
			for c := max(k*32, int(g.First)); c < min(k*32+32, int(g.End)); c++ {
				if bitOf(in, int(e.Args[2].([]int32)[c-int(g.First)])) {
					*word |= 1 << (c % 32)
				}
			}
		}
	}
}

// pixels makes a value, or a word.
func (p *plainStep) pixels(e Elementwise, image, item int) {
	g, in, index := e.G, p.tensors[e.Args[0].(Tensor)], e.Args[2].([]int32)
	per := e.Items / int(g.OutH*g.OutW)
	pixel, k := item/per, item%per
	row, col := index[pixel/int(g.OutW)], index[int(g.OutH)+pixel%int(g.OutW)]
	fill := math.Float32frombits(uint32(index[g.OutH+g.OutW]))
	inside := row >= 0 && col >= 0
	from := image*int(g.InH*g.InW) + int(row/g.Kh*g.InW+col/g.Kw)
	block := int(row%g.Kh*g.Kw+col%g.Kw) * int(g.OutC)
	if e.Name == "pixels_float" {
		if inside {
			fill = in.F32[from*int(g.InC)+block+k]
		}
		p.values[image*e.Items+item] = fill
		return
	}
	word := &p.words[image*e.Items+item]
	*word = 0
	for c := k * 32; c < min(k*32+32, int(g.OutC)); c++ {
		if !inside && fill > 0 || inside && bitOf(Rows(in.Words[from*int(g.InWords)/2:][:g.InWords/2]), block+c) {
			*word |= 1 << (c % 32)
		}
	}
}

func (p *plainStep) avgPool(e Elementwise, image, pixel, c int) {
	g, in := e.G, p.tensors[e.Args[0].(Tensor)]
	y, x := int32(pixel)/g.OutW*g.StrideH-g.PadT, int32(pixel)%g.OutW*g.StrideW-g.PadL
	var sum float32
	for iy := max(y, 0); iy < min(y+g.Kh, g.InH); iy++ {
		for ix := max(x, 0); ix < min(x+g.Kw, g.InW); ix++ {
			from := image*int(g.InH*g.InW) + int(iy*g.InW+ix)
			switch {
			case in.DType == bcnn.Float32:
				sum += in.F32[from*int(g.InC)+c]
			case bitOf(Rows(in.Words[from*int(g.InWords)/2:][:g.InWords/2]), c):
				sum++
			default:
				sum--
			}
		}
	}
	divisors := e.Args[2].([]float32)
	n, reciprocal := divisors[2*pixel], divisors[2*pixel+1]
	q := sum * reciprocal
	p.values[(image*int(g.OutH*g.OutW)+pixel)*int(g.OutC)+c] = f32.FMA(f32.FMA(-n, q, sum), reciprocal, q)
}

// table looks up a byte, or those of a word of each plane.
func (p *plainStep) table(e Elementwise, image, item int) {
	g, in, table := e.G, p.tensors[e.Args[0].(Tensor)].U8, e.Args[2].([]float32)
	number := func(i int) float32 {
		if g.OtherC == 1 {
			return table[in[i]]
		}
		return table[256*(i%int(g.OutC))+int(in[i])]
	}
	if e.Name == "table_float" {
		p.values[image*e.Items+item] = number(image*e.Items + item)
		return
	}
	per := e.Items / int(g.OutH*g.OutW)
	pixel, k := image*int(g.OutH*g.OutW)+item/per, item%per
	for j := range int(g.OutPlanes) {
		word := &p.words[((pixel/int(g.OutW)*int(g.OutPlanes)+j)*int(g.OutW)+pixel%int(g.OutW))*int(g.OutWords)+k]
		*word = 0
		for c := k * 32; c < min(k*32+32, int(g.OutC)); c++ {
			*word |= uint32(int(number(pixel*int(g.OutC)+c))>>j&1) << (c % 32)
		}
	}
}

// TestSteps computes the means, products, levels, joined and picked channels of the table from
// what kernels are given alone, and compares with the reference.
func TestSteps(t *testing.T) {
	seen := make(map[string]int)
	eachStep(t, func(name string, s Step, op plan.Op, in []*bcnn.Tensor, out *bcnn.Tensor) {
		switch op.(type) {
		case *plan.AvgPool, *plan.Table, *plan.Pair, *plan.Concat, *plan.Channels, *plan.Pixels, *plan.Sign, *plan.Quantize:
		default:
			return
		}
		kernels, err := s.Elementwise(op)
		require.NoError(t, err, name)
		p := plainStep{tensors: map[Tensor]*bcnn.Tensor{s.X: in[0]}, values: make([]float32, len(out.F32)), words: make([]uint32, 2*len(out.Words))}
		for i, o := range s.More {
			p.tensors[o.At] = in[1+i]
		}
		for i := range p.words {
			p.words[i] = 0x55555555 // what was there before
		}
		for _, e := range kernels {
			p.run(e, out.N)
			seen[e.Name]++
		}
		if s.Out.DType == bcnn.Bits {
			require.Equal(t, Rows(out.Words), p.words, name)
			return
		}
		require.True(t, slices.EqualFunc(out.F32, p.values, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }), name)
	})
	for _, name := range []string{"avg_pool_bits", "avg_pool_float", "pair", "table_float", "table_bits", "gather_bits", "gather_float", "pixels_bits", "pixels_float", "sign_bits", "quantize"} {
		require.Positive(t, seen[name], name)
	}
}
