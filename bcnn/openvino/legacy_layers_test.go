package openvino

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// planar is an image, or weights, in float64.
type planar struct {
	dims   []int
	values []float64
}

func (p planar) at(i ...int) float64 {
	k := 0
	for d, v := range i {
		k = k*p.dims[d] + v
	}
	return p.values[k]
}

// filled is an image of rows and columns by a function of channel, row and column.
func filled(c, h, w int, f func(c, y, x int) float64) (list []float64) {
	for ch := range c {
		for y := range h {
			for x := range w {
				list = append(list, f(ch, y, x))
			}
		}
	}
	return list
}

// linear is a value between those of pixels along both sides, of which those beyond the edge are those at it.
func (p planar) linear(c int, y, x float64) (sum float64) {
	y, x = min(max(y, 0), float64(p.dims[1]-1)), min(max(x, 0), float64(p.dims[2]-1))
	for dy := range 2 {
		for dx := range 2 {
			iy, ix := min(int(y)+dy, p.dims[1]-1), min(int(x)+dx, p.dims[2]-1)
			wy, wx := math.Abs(1-float64(dy)-(y-math.Floor(y))), math.Abs(1-float64(dx)-(x-math.Floor(x)))
			sum += wy * wx * p.at(c, iy, ix)
		}
	}
	return sum
}

// Layers of the old versions compute what the catalogue of layers of OpenVINO 2020 says, in float64.
func TestLegacyLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(n int, least float64) (list []float32, wide []float64) {
		for range n {
			v := float32(least + float64(r.IntN(64))/16)
			list, wide = append(list, v), append(wide, float64(v))
		}
		return list, wide
	}
	const c, h, w = 4, 4, 6
	in, values := draw(c*h*w, -2)
	x := planar{[]int{c, h, w}, values}
	gain, gains := draw(c, 0.5)
	mean, means := draw(c, -1)
	variance, variances := draw(c, 0.25)
	deep, wide := draw(c/2*3*3*2*2, -2) // 2 groups, each 2 channels to 3 outputs, 3×2
	deconv := planar{[]int{2, 2, 3, 3, 2}, wide}
	bias, biases := draw(6, -1)
	across := func(size int, beta float64) func(ch, y, x int) float64 {
		return func(ch, y, col int) float64 {
			sum := 0.0
			for k := max(0, ch-size/2); k <= min(c-1, ch+size/2); k++ {
				sum += x.at(k, y, col) * x.at(k, y, col)
			}
			return x.at(ch, y, col) / math.Pow(1+0.5*sum/float64(size), beta)
		}
	}
	norm := func(ch, y, col int) float64 {
		sum := 0.0
		for k := range c {
			sum += x.at(k, y, col) * x.at(k, y, col)
		}
		return x.at(ch, y, col) / math.Sqrt(sum+0.125)
	}
	whole := 0.0
	for _, v := range values {
		whole += v * v
	}
	for name, test := range map[string]struct {
		typ, data string
		blobs     map[string][]float32
		out       []int
		want      func(ch, y, x int) float64
	}{
		"batch norm": {"BatchNormalization", `epsilon="0.125"`, map[string][]float32{"weights": variance, "biases": mean}, []int{c, h, w}, func(ch, y, col int) float64 {
			return (x.at(ch, y, col) - means[ch]) / math.Sqrt(variances[ch]+0.125)
		}},
		"response of channels": {"Norm", `alpha="0.5" beta="0.75" local-size="3" region="across"`, nil, []int{c, h, w}, across(3, 0.75)},
		"response of all":      {"Norm", `alpha="0.5" beta="1" k="1" local-size="7" region="across"`, nil, []int{c, h, w}, across(7, 1)},
		"response of pixels": {"Norm", `alpha="2" beta="0.5" k="2" local-size="3" region="same"`, nil, []int{c, h, w}, func(ch, y, col int) float64 {
			sum := 0.0
			for i := max(0, y-1); i <= min(h-1, y+1); i++ {
				for j := max(0, col-1); j <= min(w-1, col+1); j++ {
					sum += x.at(ch, i, j) * x.at(ch, i, j)
				}
			}
			return x.at(ch, y, col) / math.Sqrt(2+2*sum/9)
		}},
		"normalize": {"Normalize", `across_spatial="0" channel_shared="0" eps="0.125"`, map[string][]float32{"weights": gain}, []int{c, h, w}, func(ch, y, col int) float64 {
			return gains[ch] * norm(ch, y, col)
		}},
		"normalize, one scale": {"Normalize", `across_spatial="0" channel_shared="1" eps="0.125"`, map[string][]float32{"weights": gain[:1]}, []int{c, h, w}, func(ch, y, col int) float64 {
			return gains[0] * norm(ch, y, col)
		}},
		"normalize images": {"Normalize", `across_spatial="1" channel_shared="0" eps="0.125"`, map[string][]float32{"weights": gain}, []int{c, h, w}, func(ch, y, col int) float64 {
			return gains[ch] * x.at(ch, y, col) / math.Sqrt(whole+0.125)
		}},
		"interp, corners": {"Interp", `align_corners="1" height="7" pad_beg="0" pad_end="0" width="9"`, nil, []int{c, 7, 9}, func(ch, y, col int) float64 {
			return x.linear(ch, float64(y)*3/6, float64(col)*5/8)
		}},
		"interp": {"Interp", `align_corners="0" factor="2" pad_beg="0" pad_end="0"`, nil, []int{c, 8, 12}, func(ch, y, col int) float64 {
			return x.linear(ch, float64(y)/2, float64(col)/2)
		}},
		"interp to less": {"Interp", `align_corners="1" shrink_factor="2" pad_beg="0" pad_end="0"`, nil, []int{c, 2, 3}, func(ch, y, col int) float64 {
			return x.linear(ch, float64(y)*3, float64(col)*5/2)
		}},
		"nearest": {"Resample", `antialias="0" factor="3" type="caffe.ResampleParameter.NEAREST"`, nil, []int{c, 3 * h, 3 * w}, func(ch, y, col int) float64 {
			return x.at(ch, y/3, col/3)
		}},
		"linear": {"Resample", `antialias="0" factor="2" type="caffe.ResampleParameter.LINEAR"`, nil, []int{c, 2 * h, 2 * w}, func(ch, y, col int) float64 {
			return x.linear(ch, (float64(y)+0.5)/2-0.5, (float64(col)+0.5)/2-0.5)
		}},
		"crop": {"Crop", `axis="1,2,3" dim="2,2,5" offset="1,2,0"`, nil, []int{2, 2, 5}, func(ch, y, col int) float64 {
			return x.at(ch+1, y+2, col)
		}},
		"crop at both ends": {"Crop", `axis="2,3" crop_begin="1,2" crop_end="1,0"`, nil, []int{c, 2, 4}, func(ch, y, col int) float64 {
			return x.at(ch, y+1, col+2)
		}},
		"pad": {"Pad", `pad_mode="constant" pad_value="0.5" pads_begin="0,0,1,0" pads_end="0,0,0,2"`, nil, []int{c, h + 1, w + 2}, func(ch, y, col int) float64 {
			if y == 0 || col >= w {
				return 0.5
			}
			return x.at(ch, y-1, col)
		}},
		"pad by the edge": {"Pad", `pad_mode="edge" pads_begin="0,0,0,1" pads_end="0,0,1,1"`, nil, []int{c, h + 1, w + 2}, func(ch, y, col int) float64 {
			return x.at(ch, min(y, h-1), min(max(col-1, 0), w-1))
		}},
		"reorg": {"ReorgYolo", `stride="2"`, nil, []int{4 * c, h / 2, w / 2}, func(ch, y, col int) float64 {
			return reorganised(values, c, h, w, 2)[(ch*(h/2)+y)*(w/2)+col]
		}},
		"shuffle": {"ShuffleChannels", `axis="1" group="2"`, nil, []int{c, h, w}, func(ch, y, col int) float64 {
			return x.at(ch%2*2+ch/2, y, col)
		}},
		"square":  {"Power", `power="2" scale="0.5" shift="1"`, nil, []int{c, h, w}, func(ch, y, col int) float64 { return math.Pow(1+0.5*x.at(ch, y, col), 2) }},
		"inverse": {"Power", `power="-1" scale="1" shift="8"`, nil, []int{c, h, w}, func(ch, y, col int) float64 { return 1 / (8 + x.at(ch, y, col)) }},
		"relu6":   {"ReLU6", `n="6"`, nil, []int{c, h, w}, func(ch, y, col int) float64 { return min(max(x.at(ch, y, col), 0), 6) }},
		"tanh":    {"TanH", ``, nil, []int{c, h, w}, func(ch, y, col int) float64 { return math.Tanh(x.at(ch, y, col)) }},
		"logistic": {"Logistic", ``, nil, []int{c, h, w}, func(ch, y, col int) float64 {
			return 1 / (1 + math.Exp(-x.at(ch, y, col)))
		}},
		"deconvolution": {"Deconvolution", `dilations="1,1" group="2" kernel="3,2" output="6" pads_begin="1,0" pads_end="0,1" strides="2,2"`,
			map[string][]float32{"weights": deep, "biases": bias}, []int{6, 2*(h-1) + 3 - 1, 2*(w-1) + 2 - 1}, func(o, y, col int) float64 {
				sum := biases[o]
				for k := range 2 {
					for iy := range h {
						for ix := range w {
							ky, kx := y+1-2*iy, col-2*ix
							if ky >= 0 && ky < 3 && kx >= 0 && kx < 2 {
								sum += x.at(o/3*2+k, iy, ix) * deconv.at(o/3, k, o%3, ky, kx)
							}
						}
					}
				}
				return sum
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var g oldGraph
			from := g.layer("Input", "", "", []int{1, c, h, w})
			blobs := ""
			for _, k := range []string{"weights", "biases"} {
				if list := test.blobs[k]; list != nil {
					blobs += g.blob(k, list...)
				}
			}
			if blobs != "" {
				blobs = "<blobs>" + blobs + "</blobs>"
			}
			g.layer(test.typ, test.data, blobs, append([]int{1}, test.out...), from)
			got, err := g.decodeOf(t, in)
			require.NoError(t, err)
			want := filled(test.out[0], test.out[1], test.out[2], test.want)
			require.Len(t, got["l1"], len(want))
			for i, v := range want {
				require.InDelta(t, v, got["l1"][i], 2e-6*(1+math.Abs(v)), "value %d", i)
			}
		})
	}
}

// reorganised is what Darknet's [reorg] makes of an image, see reorg_cpu of AlexeyAB's Darknet: the image
// is read as c/s² channels of h·s rows and w·s columns.
func reorganised(in []float64, c, h, w, s int) []float64 {
	out := make([]float64, len(in))
	each := c / (s * s)
	for k := range c {
		for y := range h {
			for x := range w {
				row, col := y*s+k/each/s, x*s+k/each%s
				out[(k*h+y)*w+x] = in[(k%each*h*s+row)*w*s+col]
			}
		}
	}
	return out
}

// Split and Slice of the old versions have several outputs, which the ports give the sizes of.
func TestLegacySplit(t *testing.T) {
	in := make([]float32, 4*2*3)
	for i := range in {
		in[i] = float32(i)
	}
	for _, typ := range []string{"Split", "Slice"} {
		for axis, parts := range map[int][]int{1: {1, 3}, 2: {1, 1}, 3: {2, 1}} {
			var g oldGraph
			from := g.layer("Input", "", "", []int{1, 4, 2, 3})
			dims := [][]int{{1, 4, 2, 3}, {1, 4, 2, 3}}
			dims[0][axis], dims[1][axis] = parts[0], parts[1]
			at := g.several(typ, fmt.Sprintf(`axis="%d"`, axis), "", dims, from)
			g.layer("ReLU", "", "", dims[1], at+1)
			got, err := g.decodeOf(t, in)
			require.NoError(t, err)
			want := map[int][2][]float32{
				1: {in[:6], in[6:]},
				2: {{0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20}, {3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23}},
				3: {{0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22}, {2, 5, 8, 11, 14, 17, 20, 23}},
			}[axis]
			require.Equal(t, want[0], got["l1"], "%s along %d", typ, axis)
			require.Equal(t, want[1], got["l2"], "%s along %d", typ, axis)
		}
	}
}

// Eltwise repeats what has size 1, and takes more than two inputs of one shape.
func TestLegacyEltwise(t *testing.T) {
	var g oldGraph
	x := g.layer("Input", "", "", []int{1, 2, 3, 3}) // −3 to 14
	most := g.layer("Pooling", `kernel="3,3" pool-method="max" strides="1,1"`, "", []int{1, 2, 1, 1}, x)
	g.layer("Eltwise", `operation="sub"`, "", []int{1, 2, 3, 3}, x, most)
	g.layer("Eltwise", `operation="sum" coeff="1.0,1,1.00"`, "", []int{1, 2, 3, 3}, x, x, x)
	got, err := g.decode(t)
	require.NoError(t, err)
	for i := range 18 {
		v := float32(i - 3)
		require.Equal(t, v-[]float32{5, 14}[i/9], got["l2"][i])
		require.Equal(t, 3*v, got["l3"][i])
	}
}

func TestLegacyLayersRefuse(t *testing.T) {
	image := []int{1, 4, 4, 6}
	for _, c := range []struct {
		typ, data string
		out       []int
		want      string
	}{
		{"BatchNormalization", `epsilon="0.1"`, image, "it has no biases"},
		{"BatchNormalization", ``, image, "its attribute epsilon is missing"},
		{"Norm", `alpha="1" beta="0.3" local-size="3" region="across"`, image, "its beta is 0.3, want a multiple of ¼"},
		{"Norm", `alpha="1" beta="1" local-size="4" region="across"`, image, "a size of 4 is not supported"},
		{"Norm", `alpha="1" beta="1" local-size="3" region="within"`, image, `its attribute region is "within", want across or same`},
		{"Normalize", `across_spatial="0" eps="-1"`, image, "its eps is -1"},
		{"Interp", `align_corners="1" pad_beg="1" pad_end="0"`, image, `its attribute pad_beg is "1", want 0`},
		{"Interp", `align_corners="1"`, []int{1, 24}, "has not one output of 4 dimensions"},
		{"Interp", `align_corners="1"`, []int{1, 5, 8, 8}, "is computed as [1 4 8 8]"},
		{"Resample", `type="caffe.ResampleParameter.NEAREST"`, []int{1, 4, 6, 9}, "want rows and columns times whole numbers"},
		{"Resample", `type="cubic"`, []int{1, 4, 8, 12}, `its attribute type is "cubic"`},
		{"Crop", `axis="1" offset="3" dim="2"`, image, "it takes 2 values from number 3 on of dimension 1, which has 4"},
		{"Crop", `axis="0" crop_begin="1" crop_end="0"`, image, "it crops the batch"},
		{"Crop", `axis="1"`, image, "neither crop_begin and crop_end nor offset and dim"},
		{"Pad", `pad_mode="x" pads_begin="0,0,1,1" pads_end="0,0,1,1"`, image, `its attribute pad_mode is "x"`},
		{"Deconvolution", `kernel="3,3" output="4" strides="2,2"`, image, "it has no weights"},
		{"Deconvolution", `kernel="3,3" output="5" group="2" strides="2,2"`, image, "2 groups do not divide 4 channels and 5 outputs"},
		{"ReorgYolo", `stride="4"`, image, "want channels that 16 divides"},
		{"ShuffleChannels", `axis="1" group="3"`, image, "want the channels of images, which groups divide"},
		{"Split", `axis="1"`, []int{1, 3, 4, 6}, "its parts have 3 values of a dimension of 4"},
		{"Split", `axis="0"`, image, `its attribute axis is "0"`},
		{"Power", `power="0.3"`, image, "its power is 0.3"},
		{"ReLU6", `n="5"`, image, `its attribute n is "5"`},
		{"Tile", `axis="1" tiles="2"`, image, "this operator is not supported"},
	} {
		var g oldGraph
		g.layer(c.typ, c.data, "", c.out, g.layer("Input", "", "", image))
		_, err := g.decode(t)
		require.ErrorContains(t, err, c.want, "%s %s", c.typ, c.data)
	}
}
