package darknet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
)

// model is a network of Darknet that a test makes, with what it computes, by plain loops.
type model struct {
	rng     *rand.Rand
	cfg     strings.Builder
	weights []byte
	input   planar
	layers  []planar          // what they compute
	options map[string]string // of the section that is made
	values  []float32         // of the weights of the next layer, instead of random ones
}

// newModel begins a network with an input of random values, some of them 0.
func newModel(h, w, c int) *model {
	m := &model{rng: rand.New(rand.NewPCG(5, 7)), weights: header(0, 2)}
	m.input = planar{shape: bcnn.Shape{H: h, W: w, C: c}}
	for range h * w * c {
		m.input.values = append(m.input.values, m.value())
	}
	fmt.Fprintf(&m.cfg, "[net]\nheight=%d\nwidth=%d\nchannels=%d\n", h, w, c)
	return m
}

// header is the beginning of a file of weights.
func header(major, minor int) []byte {
	data := binary.LittleEndian.AppendUint32(nil, uint32(major))
	data = binary.LittleEndian.AppendUint32(data, uint32(minor))
	data = append(data, 5, 0, 0, 0, 7, 7, 7, 7)
	if 10*major+minor >= 2 {
		data = append(data, 7, 7, 7, 7)
	}
	return data
}

func (m *model) value() float32 {
	if m.rng.IntN(8) == 0 {
		return 0
	}
	return float32(m.rng.NormFloat64())
}

// section appends a section with options such as "size=3 pad=1".
func (m *model) section(kind, options string) {
	m.options = map[string]string{}
	fmt.Fprintf(&m.cfg, "\n[%s]\n", kind)
	for o := range strings.FieldsSeq(options) {
		name, value, _ := strings.Cut(o, "=")
		m.options[name] = value
		fmt.Fprintln(&m.cfg, o)
	}
}

// option is the number of an option.
func (m *model) option(name string, otherwise int) int {
	if v, ok := m.options[name]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		return n
	}
	return otherwise
}

// numbers writes so many weights.
func (m *model) numbers(n int, make func() float32) []float32 {
	list := m.values
	if m.values == nil {
		for range n {
			list = append(list, make())
		}
	}
	list, m.values = list[:n], nil
	for _, v := range list {
		m.weights = binary.LittleEndian.AppendUint32(m.weights, math.Float32bits(v))
	}
	return list
}

func (m *model) last() planar {
	if len(m.layers) == 0 {
		return m.input
	}
	return m.layers[len(m.layers)-1]
}

func (p planar) at(c, y, x int) float32 { return p.values[(c*p.shape.H+y)*p.shape.W+x] }

// image makes a layer of a function of channel, row and column.
func (m *model) image(h, w, c int, f func(c, y, x int) float32) {
	p := planar{shape: bcnn.Shape{H: h, W: w, C: c}}
	for c := range c {
		for y := range h {
			for x := range w {
				p.values = append(p.values, f(c, y, x))
			}
		}
	}
	m.layers = append(m.layers, p)
}

// function is an activation.
func function(name string, x float32) float32 {
	v := float64(x)
	switch name {
	case "leaky":
		if x <= 0 {
			return 0.1 * x
		}
	case "relu":
		return max(x, 0)
	case "logistic":
		return float32(1 / (1 + math.Exp(-v)))
	case "tanh":
		return float32(math.Tanh(v))
	case "elu":
		if x < 0 {
			return float32(math.Expm1(v))
		}
	case "mish":
		return float32(v * math.Tanh(math.Log1p(math.Exp(v))))
	case "swish":
		return float32(v / (1 + math.Exp(-v)))
	case "linear":
	default:
		panic(name)
	}
	return x
}

// convolution appends a section; linear says that bin_output is in force.
func (m *model) convolution(options string, linear bool) {
	m.section("convolutional", options)
	in, n, size := m.last(), m.option("filters", 1), m.option("size", 1)
	xnor, binary, groups := m.option("xnor", 0) != 0, m.option("binary", 0) != 0, m.option("groups", 1)
	if xnor {
		groups = 1
	}
	pad, dilation := m.option("padding", 0), m.option("dilation", 1)
	if m.option("pad", 0) != 0 {
		pad = size / 2
	}
	strideX, strideY := m.option("stride_x", m.option("stride", 1)), m.option("stride_y", m.option("stride", 1))
	channels := in.shape.C / groups
	bias := m.numbers(n, m.value)
	var scale, mean, variance []float32
	if m.option("batch_normalize", 0) != 0 {
		scale, mean = m.numbers(n, m.value), m.numbers(n, m.value)
		variance = m.numbers(n, func() float32 { return 0.5 + m.rng.Float32() })
	}
	weights := m.numbers(n*channels*size*size, m.value)
	shift := make([]float64, n)
	factor := make([]float64, n)
	for o := range n {
		shift[o], factor[o] = float64(bias[o]), 1
		if scale != nil {
			deviation := math.Sqrt(float64(variance[o]) + 1e-5)
			shift[o] -= float64(scale[o]) * float64(mean[o]) / deviation
			factor[o] = float64(scale[o]) / deviation
		}
	}
	activation := m.options["activation"]
	if linear {
		activation = "linear"
	}
	side := func(in, stride int) int { return (in+2*pad*dilation-dilation*(size-1)-1)/stride + 1 }
	m.image(side(in.shape.H, strideY), side(in.shape.W, strideX), n, func(o, y, x int) float32 {
		filter := weights[o*channels*size*size:][:channels*size*size]
		sum, magnitude := 0.0, 0.0
		for i, w := range filter {
			c, ky, kx := i/size/size+o/(n/groups)*channels, i/size%size, i%size
			weight := float64(w) * factor[o]
			magnitude += math.Abs(weight)
			iy, ix := y*strideY-pad*dilation+ky*dilation, x*strideX-pad*dilation+kx*dilation
			tap := 0.0
			if iy >= 0 && iy < in.shape.H && ix >= 0 && ix < in.shape.W {
				tap = float64(in.at(c, iy, ix))
			}
			if xnor {
				tap = plusOrMinus(tap)
			}
			if xnor || binary {
				weight = plusOrMinus(weight)
			}
			sum += tap * weight
		}
		if xnor || binary {
			sum *= magnitude / float64(len(filter))
		}
		return function(activation, float32(sum+shift[o]))
	})
}

func plusOrMinus(x float64) float64 {
	if x > 0 {
		return 1
	}
	return -1
}

func (m *model) maxPool(options string) {
	m.section("maxpool", options)
	in, stride := m.last(), m.option("stride", 1)
	size := m.option("size", stride)
	pad := m.option("padding", size-1)
	m.image((in.shape.H+pad-size)/stride+1, (in.shape.W+pad-size)/stride+1, in.shape.C, func(c, y, x int) float32 {
		best := float32(-math.MaxFloat32)
		for iy := y*stride - pad/2; iy < y*stride-pad/2+size; iy++ {
			for ix := x*stride - pad/2; ix < x*stride-pad/2+size; ix++ {
				if iy >= 0 && iy < in.shape.H && ix >= 0 && ix < in.shape.W {
					best = max(best, in.at(c, iy, ix))
				}
			}
		}
		return best
	})
}

// number is the layer that a list means.
func (m *model) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	if n < 0 {
		n += len(m.layers)
	}
	return n
}

func (m *model) route(options string) {
	m.section("route", options)
	groups, group := m.option("groups", 1), m.option("group_id", 0)
	var all planar
	for text := range strings.SplitSeq(m.options["layers"], ",") {
		from := m.layers[m.number(text)]
		n := from.shape.C / groups
		all.values = append(all.values, from.values[group*n*from.shape.Pixels():][:n*from.shape.Pixels()]...)
		all.shape = bcnn.Shape{H: from.shape.H, W: from.shape.W, C: all.shape.C + n}
	}
	m.layers = append(m.layers, all)
}

func (m *model) shortcut(options string) {
	m.section("shortcut", options)
	in := m.last()
	var others []planar
	for text := range strings.SplitSeq(m.options["from"], ",") {
		others = append(others, m.layers[m.number(text)])
	}
	m.image(in.shape.H, in.shape.W, in.shape.C, func(c, y, x int) float32 {
		sum := in.at(c, y, x)
		for _, o := range others {
			if c < o.shape.C {
				sum += o.at(c, y, x)
			}
		}
		return function(m.options["activation"], sum)
	})
}

func (m *model) upsample(options string) {
	m.section("upsample", options)
	in, stride := m.last(), m.option("stride", 2)
	m.image(in.shape.H*stride, in.shape.W*stride, in.shape.C, func(c, y, x int) float32 {
		return float32(m.option("scale", 1)) * in.at(c, y/stride, x/stride)
	})
}
