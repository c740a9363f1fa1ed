package ref

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
)

func binarize(op *plan.Binarize, out, x *tensor) {
	for n := range x.n {
		lo, hi := x.u8[x.index(n, 0, 0, 0)], x.u8[x.index(n, 0, 0, 0)]
		for _, v := range x.u8[x.index(n, 0, 0, 0):x.index(n+1, 0, 0, 0)] {
			lo, hi = min(lo, v), max(hi, v)
		}
		for y := range x.shape.H {
			for px := range x.shape.W {
				for c := range out.shape.C {
					var plus bool
					switch op.Scheme {
					case bcnn.SchemeThreshold:
						plus = int32(x.u8[x.index(n, y, px, c)]) >= op.Threshold.I32[c]
					case bcnn.SchemeGrey:
						plus = int32(luma(x, n, y, px)) >= op.Threshold.I32[0]
					case bcnn.SchemeLBP:
						at := [3][2]int{{-1, -1}, {0, 1}, {1, -1}}[c]
						plus = luma(x, n, y+at[0], px+at[1]) > luma(x, n, y, px)
					case bcnn.SchemeMinMax:
						plus = 2*(int(x.u8[x.index(n, y, px, c)])-int(lo)) > int(hi)-int(lo)
					}
					out.pm[out.index(n, y, px, c)] = plusMinus(plus)
				}
			}
		}
	}
	if op.Threshold != nil {
		flip(out, op.Threshold.Flip)
	}
}

// luma is the grey level of the pixel of the image that is nearest to (y, x).
func luma(t *tensor, n, y, x int) uint8 {
	y = min(max(y, 0), t.shape.H-1)
	x = min(max(x, 0), t.shape.W-1)
	if t.shape.C == 1 {
		return t.u8[t.index(n, y, x, 0)]
	}
	i := t.index(n, y, x, 0)
	return bcnn.Luma(t.u8[i], t.u8[i+1], t.u8[i+2])
}

func conv(work *budget.Budget, op *plan.Conv, out, x *tensor) error {
	sums := newTensor(out.dtype, x.n, op.Window.Output(op.Image(x.shape), op.Out)) // before pooling
	var numbers []int32                                                            // those of planes
	if op.OutPlanes > 1 {
		numbers = make([]int32, len(sums.pm))
	}
	weights := op.Int8
	if x.dtype != bcnn.Float32 && weights == nil && op.Int16 == nil {
		weights = make([]int8, op.Out*op.KH*op.KW*(x.shape.C/op.Groups))
		bits.Unpack(weights, op.Bits, x.shape.C/op.Groups)
	}
	taps := int64(op.KH * op.KW * (x.shape.C / op.Groups))
	for n := range x.n {
		for y := range sums.shape.H {
			for px := range sums.shape.W {
				for o := range op.Out {
					if err := work.Charge(taps); err != nil {
						return err
					}
					i := sums.index(n, y, px, o)
					if x.dtype == bcnn.Float32 {
						sum := floatSum(op, x, n, y, px, o)
						if out.dtype == bcnn.Bits {
							sums.pm[i] = plusMinus(sum >= op.Threshold.F32[o])
						} else {
							sums.f32[i] = scaled(op, sum, o)
						}
						continue
					}
					var sum int32
					if op.Int16 != nil {
						sum = integerSum(op, op.Int16, x, n, y, px, o)
					} else {
						sum = integerSum(op, weights, x, n, y, px, o)
					}
					if op.Offset != nil {
						sum += op.Offset[o]
					}
					if numbers != nil {
						for k := o; k < len(op.Threshold.I32); k += op.Out {
							if sum >= op.Threshold.I32[k] {
								numbers[i]++
							}
						}
						continue
					}
					if out.dtype == bcnn.Bits {
						sums.pm[i] = plusMinus(sum >= op.Threshold.I32[o])
					} else {
						sums.f32[i] = scaled(op, float32(sum), o)
					}
				}
			}
		}
	}
	if numbers != nil {
		pool := bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}
		if op.Pool != nil {
			pool = bcnn.Window{KH: op.Pool.KH, KW: op.Pool.KW, StrideH: op.Pool.KH, StrideW: op.Pool.KW}
		}
		if err := maxNumbers(work, pool, op.OutPlanes, out, numbers, sums); err != nil {
			return err
		}
	} else if op.Pool == nil {
		copy(out.pm, sums.pm)
		copy(out.f32, sums.f32)
	} else {
		w := bcnn.Window{KH: op.Pool.KH, KW: op.Pool.KW, StrideH: op.Pool.KH, StrideW: op.Pool.KW}
		if err := maxPool(work, w, out, sums); err != nil {
			return err
		}
	}
	if op.Threshold != nil {
		flip(out, op.Threshold.Flip)
	}
	return nil
}

// integerSum is the accumulator of output channel o of pixel (y, px), for Bits
// and Uint8 input.
func integerSum[W int8 | int16](op *plan.Conv, weights []W, x *tensor, n, y, px, o int) int32 {
	group := x.shape.C / op.Groups // channels of a group
	first := o / (op.Out / op.Groups) * group
	var sum int32
	for ky := range op.KH {
		for kx := range op.KW {
			iy := y*op.StrideH - op.Pad.Top + ky*op.DilationH
			ix := px*op.StrideW - op.Pad.Left + kx*op.DilationW
			planes := max(op.InPlanes, 1)
			taps := weights[((o*op.KH+ky)*op.KW+kx)*group:][:group]
			switch {
			case !x.inside(iy*planes, ix) && x.dtype == bcnn.Bits:
				for _, w := range taps {
					sum += int32(op.PadValue) * int32(w)
				}
			case !x.inside(iy*planes, ix): // the zero point, which counts for 0
			case x.dtype == bcnn.Bits:
				for j := range planes {
					products := int32(0)
					for c, v := range x.pm[x.index(n, iy*planes+j, ix, first):][:group] {
						products += int32(v) * int32(taps[c])
					}
					sum += products << j
				}
			default:
				for c, v := range x.u8[x.index(n, iy, ix, first):][:group] {
					sum += (int32(v) - int32(op.ZeroPoint)) * int32(taps[c])
				}
			}
		}
	}
	return sum
}

// floatSum is the accumulator for Float32 input.
func floatSum(op *plan.Conv, x *tensor, n, y, px, o int) float32 {
	group := x.shape.C / op.Groups
	first := o / (op.Out / op.Groups) * group
	sum := op.Bias[o]
	for ky := range op.KH {
		for kx := range op.KW {
			iy := y*op.StrideH - op.Pad.Top + ky*op.DilationH
			ix := px*op.StrideW - op.Pad.Left + kx*op.DilationW
			if !x.inside(iy, ix) {
				continue
			}
			taps := op.F32[((o*op.KH+ky)*op.KW+kx)*group:][:group]
			for c, v := range x.f32[x.index(n, iy, ix, first):][:group] {
				sum = f32.FMA(v, taps[c], sum)
			}
		}
	}
	return sum
}

// scaled is the result of a convolution with Float32 output.
func scaled(op *plan.Conv, sum float32, o int) float32 {
	if op.Scale != nil {
		sum = f32.FMA(sum, op.Scale[o], op.Shift[o])
	}
	return activate(sum, op.Activation, o)
}

// table looks up bytes.
func table(op *plan.Table, out, x *tensor) {
	for i, v := range x.u8 {
		value := op.Values[(i%x.shape.C*plan.TableSize+int(v))%len(op.Values)]
		switch out.dtype {
		case bcnn.Float32:
			out.f32[i] = value
		case bcnn.Uint8:
			out.u8[i] = uint8(value)
		default:
			inPlanes(out, x, i, int(value), op.Planes)
		}
	}
}

// inPlanes sets the planes of the number of value i.
func inPlanes(out, x *tensor, i, number, planes int) {
	row := x.shape.W * x.shape.C
	planes = max(planes, 1)
	for j := range planes {
		out.pm[(i/row*planes+j)*row+i%row] = plusMinus(number>>j&1 > 0)
	}
}

func sign(op *plan.Sign, out, x *tensor) {
	for i, v := range x.f32 {
		reached := 0
		for k := i % x.shape.C; k < len(op.Threshold.F32); k += x.shape.C {
			if v >= op.Threshold.F32[k] {
				reached++
			}
		}
		inPlanes(out, x, i, reached, op.Planes)
	}
}

// maxPool takes the maximum over windows. Of equal values the first in the
// order (ky, kx) stays; only the sign of a zero can tell.
func maxPool(work *budget.Budget, w bcnn.Window, out, x *tensor) error {
	for n := range out.n {
		for y := range out.shape.H {
			for px := range out.shape.W {
				for c := range out.shape.C {
					if err := work.Charge(int64(w.KH * w.KW)); err != nil {
						return err
					}
					i, first := out.index(n, y, px, c), true
					for ky := range w.KH {
						for kx := range w.KW {
							iy, ix := y*w.StrideH-w.Pad.Top+ky, px*w.StrideW-w.Pad.Left+kx
							if !x.inside(iy, ix) {
								continue
							}
							k := x.index(n, iy, ix, c)
							switch {
							case x.dtype == bcnn.Bits && (first || x.pm[k] > out.pm[i]):
								out.pm[i] = x.pm[k]
							case x.dtype == bcnn.Uint8 && (first || x.u8[k] > out.u8[i]):
								out.u8[i] = x.u8[k]
							case x.dtype == bcnn.Float32 && (first || x.f32[k] > out.f32[i]):
								out.f32[i] = x.f32[k]
							}
							first = false
						}
					}
				}
			}
		}
	}
	return nil
}

// maxNumbers takes the maximum of numbers over windows of the image that x would be,
// and writes its bits to planes.
func maxNumbers(work *budget.Budget, w bcnn.Window, planes int, out *tensor, numbers []int32, x *tensor) error {
	for n := range out.n {
		for y := range out.shape.H / planes {
			for px := range out.shape.W {
				for c := range out.shape.C {
					if err := work.Charge(int64(w.KH * w.KW)); err != nil {
						return err
					}
					var most int32
					for ky := range w.KH {
						for kx := range w.KW {
							iy, ix := y*w.StrideH-w.Pad.Top+ky, px*w.StrideW-w.Pad.Left+kx
							if x.inside(iy, ix) {
								most = max(most, numbers[x.index(n, iy, ix, c)])
							}
						}
					}
					for j := range planes {
						out.pm[out.index(n, y*planes+j, px, c)] = plusMinus(most>>j&1 > 0)
					}
				}
			}
		}
	}
	return nil
}

// maxPlanes is maxPool for planes.
func maxPlanes(work *budget.Budget, op *plan.MaxPool, out, x *tensor) error {
	shape := x.shape
	shape.H /= op.Planes
	image := &tensor{n: x.n, shape: shape}
	numbers := make([]int32, x.n*shape.Values())
	for n := range x.n {
		for y := range shape.H {
			for px := range shape.W {
				for c := range shape.C {
					for j := range op.Planes {
						if x.pm[x.index(n, y*op.Planes+j, px, c)] > 0 {
							numbers[image.index(n, y, px, c)] += 1 << j
						}
					}
				}
			}
		}
	}
	return maxNumbers(work, op.Window, op.Planes, out, numbers, image)
}

func affine(op *plan.Affine, out, x *tensor) {
	for i := range out.f32 {
		var v float32
		switch x.dtype {
		case bcnn.Uint8:
			v = float32(x.u8[i])
		case bcnn.Bits:
			v = float32(x.pm[i])
		case bcnn.Float32:
			v = x.f32[i]
		}
		if op.Scale != nil {
			v = f32.FMA(v, op.Scale[i%x.shape.C], op.Shift[i%x.shape.C])
		}
		out.f32[i] = activate(v, op.Activation, i%x.shape.C)
	}
}

// avgPool takes the mean over windows.
func avgPool(work *budget.Budget, op *plan.AvgPool, out, x *tensor) error {
	for n := range out.n {
		for y := range out.shape.H {
			for px := range out.shape.W {
				for c := range out.shape.C {
					if err := work.Charge(int64(op.KH * op.KW)); err != nil {
						return err
					}
					var sum float32 // for bits an integer of at most 24 bits: exact
					taps := 0
					for ky := range op.KH {
						for kx := range op.KW {
							iy, ix := y*op.StrideH-op.Pad.Top+ky, px*op.StrideW-op.Pad.Left+kx
							inside := x.inside(iy, ix)
							if inside || op.CountPadding {
								taps++
							}
							switch {
							case !inside:
							case x.dtype == bcnn.Bits:
								sum += float32(x.pm[x.index(n, iy, ix, c)])
							default:
								sum += x.f32[x.index(n, iy, ix, c)]
							}
						}
					}
					out.f32[out.index(n, y, px, c)] = divide(sum, taps)
				}
			}
		}
	}
	return nil
}

// divide is a/n by the reciprocal of n and one step of correction.
func divide(a float32, n int) float32 {
	y := 1 / float32(n)
	q := a * y
	r := f32.FMA(-float32(n), q, a)
	return f32.FMA(r, y, q)
}

// pair combines values with others, which are repeated where they are fewer.
func pair(kind plan.PairKind, out, x, others *tensor) {
	for n := range x.n {
		for y := range x.shape.H {
			for px := range x.shape.W {
				for c := range x.shape.C {
					a := x.f32[x.index(n, y, px, c)]
					b := others.f32[others.index(n, y%others.shape.H, px%others.shape.W, c%others.shape.C)]
					to := &out.f32[out.index(n, y, px, c)]
					switch kind {
					case plan.PairMul:
						*to = a * b
					case plan.PairMin:
						if *to = b; a < b || a != a {
							*to = a
						}
					case plan.PairMax:
						if *to = b; a > b || a != a {
							*to = a
						}
					case plan.PairMask:
						if *to = 0; b != 0 {
							*to = a
						}
					}
				}
			}
		}
	}
}

// join puts the channels of a tensor behind the first channels of the output.
func join(out, x *tensor, first int) {
	for pixel := range x.n * x.shape.Pixels() {
		for c := range x.shape.C {
			from, to := pixel*x.shape.C+c, pixel*out.shape.C+first+c
			if x.dtype == bcnn.Bits {
				out.pm[to] = x.pm[from]
			} else {
				out.f32[to] = x.f32[from]
			}
		}
	}
}

// pick takes channels of a tensor.
func pick(op *plan.Channels, out, x *tensor) {
	for pixel := range x.n * x.shape.Pixels() {
		for c, channel := range op.Index {
			from, to := pixel*x.shape.C+int(channel), pixel*out.shape.C+c
			switch {
			case channel < 0: // zero, as it is
			case x.dtype == bcnn.Bits:
				out.pm[to] = x.pm[from]
			default:
				out.f32[to] = x.f32[from]
			}
		}
	}
}
