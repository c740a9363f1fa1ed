package lower_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// interpret executes a network layer by layer in float64, on plain values and
// from the definitions alone. It knows nothing of plans, thresholds or packed
// activations: the oracle of lowering. It returns the outputs of all layers.
func interpret(n *bcnn.Network, shapes []bcnn.Shape, inputs [][]float64) [][]float64 {
	outputs := make([][]float64, len(n.Layers))
	for i, l := range n.Layers {
		in := make([][]float64, len(l.Inputs))
		inShape := make([]bcnn.Shape, len(l.Inputs))
		for j, s := range l.Inputs {
			if s <= bcnn.NetworkInput {
				k := bcnn.NetworkInput - s
				in[j], inShape[j] = inputs[k], n.Inputs[k].Shape
			} else {
				in[j], inShape[j] = outputs[s], shapes[s]
			}
		}
		switch op := l.Op.(type) {
		case bcnn.Concat:
			outputs[i] = concatenate(in, inShape)
		case bcnn.Mul:
			outputs[i] = paired(in, inShape, func(x, y float64) float64 { return x * y })
		case bcnn.Min:
			outputs[i] = paired(in, inShape, math.Min)
		case bcnn.Max:
			outputs[i] = paired(in, inShape, math.Max)
		case bcnn.Mask:
			outputs[i] = paired(in, inShape, func(x, y float64) float64 {
				if y != 0 {
					return x
				}
				return 0
			})
		case bcnn.MatMul:
			outputs[i] = multiplied(in, inShape)
		default:
			outputs[i] = apply(op, in, inShape[0], shapes[i])
		}
	}
	return outputs
}

// concatenate joins the channels of each pixel.
func concatenate(in [][]float64, shapes []bcnn.Shape) (out []float64) {
	for pixel := range shapes[0].Pixels() {
		for j, x := range in {
			out = append(out, x[pixel*shapes[j].C:][:shapes[j].C]...)
		}
	}
	return out
}

// paired repeats the second values over pixels and channels.
func paired(in [][]float64, shapes []bcnn.Shape, of func(x, y float64) float64) (out []float64) {
	by := shapes[1]
	for y := range shapes[0].H {
		for x := range shapes[0].W {
			for c := range shapes[0].C {
				other := in[1][(min(y, by.H-1)*by.W+min(x, by.W-1))*by.C+min(c, by.C-1)]
				out = append(out, of(in[0][(y*shapes[0].W+x)*shapes[0].C+c], other))
			}
		}
	}
	return out
}

// multiplied is the product of the rows of two layers.
func multiplied(in [][]float64, shapes []bcnn.Shape) (out []float64) {
	a, b := shapes[0], shapes[1]
	for h := range a.H {
		for w := range a.W {
			for v := range b.W {
				sum := 0.0
				for k := range a.C {
					sum += in[0][(h*a.W+w)*a.C+k] * in[1][(h*b.W+v)*b.C+k]
				}
				out = append(out, sum)
			}
		}
	}
	return out
}

func pick(v []float32, c int, empty float64) float64 {
	switch len(v) {
	case 0:
		return empty
	case 1:
		return float64(v[0])
	}
	return float64(v[c])
}

func each(x []float64, channels int, f func(c int, v float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(i%channels, v)
	}
	return out
}

func apply(op bcnn.Op, in [][]float64, s, out bcnn.Shape) []float64 {
	x := in[0]
	pixel := func(y, xx, c int) float64 { return x[(y*s.W+xx)*s.C+c] }
	switch op := op.(type) {
	case bcnn.BatchNorm:
		return each(x, s.C, func(c int, v float64) float64 {
			return (v-float64(op.Mean[c]))*float64(op.Gamma[c])/math.Sqrt(float64(op.Var[c])+float64(op.Epsilon)) + float64(op.Beta[c])
		})
	case bcnn.Affine:
		return each(x, s.C, func(c int, v float64) float64 { return v*pick(op.Scale, c, 1) + pick(op.Bias, c, 0) })
	case bcnn.Sign:
		return each(x, s.C, func(_ int, v float64) float64 {
			if v > 0 || v == 0 && op.Zero == bcnn.ZeroIsPlus {
				return 1
			}
			return -1
		})
	case bcnn.Quantize:
		n := op.Levels - 1
		return each(x, s.C, func(c int, v float64) float64 {
			level := float64(op.Low)
			for _, t := range op.Thresholds[c*n%len(op.Thresholds):][:n] {
				if v >= float64(t) {
					level++
				}
			}
			return level
		})
	case bcnn.ReLU:
		return each(x, s.C, func(_ int, v float64) float64 { return math.Max(v, 0) })
	case bcnn.PReLU:
		return each(x, s.C, func(c int, v float64) float64 {
			if v < 0 {
				v *= pick(op.Slope, c, 0)
			}
			return v
		})
	case bcnn.Clip:
		return each(x, s.C, func(_ int, v float64) float64 { return math.Min(math.Max(v, float64(op.Min)), float64(op.Max)) })
	case bcnn.Function:
		return each(x, s.C, func(_ int, v float64) float64 { return float64(f32.Named(string(op.Name)).Of(float32(v))) })
	case bcnn.Channels:
		picked := make([]float64, 0, out.Values())
		for pixel := range s.Pixels() {
			for _, c := range op.Index {
				v := 0.0
				if c >= 0 {
					v = x[pixel*s.C+int(c)]
				}
				picked = append(picked, v)
			}
		}
		return picked
	case bcnn.Pixels:
		bh, bw := max(op.BlockH, 1), max(op.BlockW, 1)
		made := make([]float64, 0, out.Values())
		for _, row := range op.Rows {
			for _, col := range op.Cols {
				for c := range out.C {
					v := float64(op.Fill)
					if row >= 0 && col >= 0 {
						v = pixel(int(row)/bh, int(col)/bw, (int(row)%bh*bw+int(col)%bw)*out.C+c)
					}
					made = append(made, v)
				}
			}
		}
		return made
	case bcnn.Resample:
		made := make([]float64, out.Values())
		for i := range made {
			y, xx := i/out.C/out.W*op.Rows.N, i/out.C%out.W*op.Cols.N
			for k := range op.Rows.N * op.Cols.N {
				row, col := y+k/op.Cols.N, xx+k%op.Cols.N
				made[i] += pixel(int(op.Rows.Index[row]), int(op.Cols.Index[col]), i%out.C) * float64(op.Rows.Weight[row]) * float64(op.Cols.Weight[col])
			}
		}
		return made
	case bcnn.TopK:
		made := make([]float64, 0, out.Values())
		for p := range s.Pixels() {
			values, order := x[p*s.C:][:s.C], make([]int, s.C)
			for c := range order {
				order[c] = c
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
			for _, c := range order[:op.K] {
				if op.Values {
					made = append(made, values[c])
				} else {
					made = append(made, float64(c))
				}
			}
		}
		return made
	case bcnn.Flatten, bcnn.Softmax:
		return x
	case bcnn.Transpose:
		made := make([]float64, 0, out.Values())
		for y := range out.H {
			for c := range out.W {
				for xx := range out.C {
					made = append(made, pixel(y, xx, c))
				}
			}
		}
		return made
	case bcnn.Add:
		sum := make([]float64, len(x))
		for i := range sum {
			sum[i] = x[i] + in[1][i]
		}
		return sum
	case bcnn.Binarize:
		sign := make([]float64, 0, out.Values())
		luma := func(y, xx int) float64 {
			y, xx = min(max(y, 0), s.H-1), min(max(xx, 0), s.W-1)
			if s.C == 1 {
				return pixel(y, xx, 0)
			}
			return math.Floor((77*pixel(y, xx, 0) + 150*pixel(y, xx, 1) + 29*pixel(y, xx, 2)) / 256)
		}
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, v := range x {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
		for y := range s.H {
			for xx := range s.W {
				for c := range out.C {
					var bit bool
					switch op.Scheme {
					case bcnn.SchemeThreshold:
						bit = pixel(y, xx, c) >= float64(op.Thresholds[c])
					case bcnn.SchemeGrey:
						bit = luma(y, xx) >= float64(op.Thresholds[0])
					case bcnn.SchemeLBP:
						step := [][2]int{{-1, -1}, {0, 1}, {1, -1}}[c]
						bit = luma(y+step[0], xx+step[1]) > luma(y, xx)
					case bcnn.SchemeMinMax:
						bit = hi > lo && 254*(pixel(y, xx, c)-lo)/(hi-lo)-127 > 0
					}
					v := -1.0
					if bit {
						v = 1
					}
					sign = append(sign, v)
				}
			}
		}
		return sign
	case bcnn.Dense:
		sums := make([]float64, op.Out)
		for o := range sums {
			sums[o] = pick(op.Bias, o, 0)
			for k, v := range x {
				if op.Weights.Binary() {
					words := bits.Words(len(x))
					sums[o] += v * float64(bits.At(op.Weights.Bits[o*words:][:words], k))
				} else if op.Weights.Int8 != nil {
					sums[o] += v * float64(op.Weights.Int8[o*len(x)+k])
				} else {
					sums[o] += v * float64(op.Weights.F32[o*len(x)+k])
				}
			}
		}
		return sums
	case bcnn.Conv2D, bcnn.MaxPool:
		return slide(op, x, s, out)
	case bcnn.AvgPool:
		return average(op, x, s, out)
	}
	return nil
}

func slide(op bcnn.Op, x []float64, s, out bcnn.Shape) []float64 {
	conv, isConv := op.(bcnn.Conv2D)
	w := conv.Window
	if pool, ok := op.(bcnn.MaxPool); ok {
		w = pool.Window
	}
	sh, sw, dh, dw := max(w.StrideH, 1), max(w.StrideW, 1), max(w.DilationH, 1), max(w.DilationW, 1)
	groups := max(conv.Groups, 1)
	result := make([]float64, 0, out.Values())
	for oy := range out.H {
		for ox := range out.W {
			for o := range out.C {
				acc := math.Inf(-1)
				group := s.C / groups
				first := o
				if isConv {
					acc = pick(conv.Bias, o, 0)
					first = o / (conv.Out / groups) * group
				}
				for ky := range w.KH {
					for kx := range w.KW {
						y, xx := oy*sh-w.Pad.Top+ky*dh, ox*sw-w.Pad.Left+kx*dw
						inside := y >= 0 && y < s.H && xx >= 0 && xx < s.W
						if !isConv {
							if inside {
								acc = math.Max(acc, x[(y*s.W+xx)*s.C+o])
							}
							continue
						}
						for c := range group {
							v := float64(conv.PadValue)
							if inside {
								v = x[(y*s.W+xx)*s.C+first+c]
							}
							row := (o*w.KH+ky)*w.KW + kx
							if conv.Weights.Binary() {
								acc += v * float64(bits.At(conv.Weights.Bits[row*bits.Words(group):], c))
							} else if conv.Weights.Int8 != nil {
								acc += v * float64(conv.Weights.Int8[row*group+c])
							} else {
								acc += v * float64(conv.Weights.F32[row*group+c])
							}
						}
					}
				}
				result = append(result, acc)
			}
		}
	}
	return result
}

func average(op bcnn.AvgPool, x []float64, s, out bcnn.Shape) (means []float64) {
	for oy := range out.H {
		for ox := range out.W {
			for c := range out.C {
				sum, taps := 0.0, 0.0
				for ky := range op.KH {
					for kx := range op.KW {
						y, xx := oy*max(op.StrideH, 1)-op.Pad.Top+ky, ox*max(op.StrideW, 1)-op.Pad.Left+kx
						inside := y >= 0 && y < s.H && xx >= 0 && xx < s.W
						if inside {
							sum += x[(y*s.W+xx)*s.C+c]
						}
						if inside || op.CountPadding {
							taps++
						}
					}
				}
				means = append(means, sum/taps)
			}
		}
	}
	return means
}
