package ref

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// pixels picks pixels, of which the channels of the input may hold several.
func pixels(op *plan.Pixels, out, x *tensor) {
	for n := range out.n {
		for y, row := range op.Rows {
			for px, col := range op.Cols {
				for c := range out.shape.C {
					to := out.index(n, y, px, c)
					if row < 0 || col < 0 {
						if out.dtype == bcnn.Bits {
							out.pm[to] = int8(op.Fill)
						} else {
							out.f32[to] = op.Fill
						}
						continue
					}
					block := int(row)%op.BlockH*op.BlockW + int(col)%op.BlockW
					from := x.index(n, int(row)/op.BlockH, int(col)/op.BlockW, block*out.shape.C+c)
					if out.dtype == bcnn.Bits {
						out.pm[to] = x.pm[from]
					} else {
						out.f32[to] = x.f32[from]
					}
				}
			}
		}
	}
}

// resample adds up weighted pixels.
func resample(work *budget.Budget, op *plan.Resample, out, x *tensor) error {
	rows, cols := op.Rows, op.Cols
	for n := range out.n {
		for y := range out.shape.H {
			for px := range out.shape.W {
				if err := work.Charge(int64(out.shape.C) * int64(rows.N) * int64(cols.N)); err != nil {
					return err
				}
				for c := range out.shape.C {
					var acc float32
					for ky := range rows.N {
						for kx := range cols.N {
							row, col := y*rows.N+ky, px*cols.N+kx
							v := x.f32[x.index(n, int(rows.Index[row]), int(cols.Index[col]), c)]
							acc = f32.FMA(v, rows.Weight[row]*cols.Weight[col], acc)
						}
					}
					out.f32[out.index(n, y, px, c)] = acc
				}
			}
		}
	}
	return nil
}

// topK looks for the largest value that it has not had, again and again.
func topK(work *budget.Budget, op *plan.TopK, out, x *tensor) error {
	channels := x.shape.C
	for pixel := range x.n * x.shape.Pixels() {
		values := x.f32[pixel*channels:][:channels]
		had := make([]bool, channels)
		for k := range op.K {
			if err := work.Charge(int64(channels)); err != nil {
				return err
			}
			best := -1
			for c, v := range values {
				if !had[c] && (best < 0 || rank(v) > rank(values[best])) {
					best = c
				}
			}
			had[best] = true
			if out.f32[pixel*op.K+k] = float32(best); op.Values {
				out.f32[pixel*op.K+k] = values[best]
			}
		}
	}
	return nil
}

// rank is the value, of a NaN −∞.
func rank(v float32) float32 {
	if v != v {
		return float32(math.Inf(-1))
	}
	return v
}
