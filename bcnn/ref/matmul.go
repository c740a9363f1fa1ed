package ref

import (
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// matMul multiplies rows of x by rows of y.
func matMul(work *budget.Budget, out, x, y *tensor) error {
	for n := range out.n {
		for row := range out.shape.H {
			for w := range out.shape.W {
				for v := range out.shape.C {
					if err := work.Charge(int64(x.shape.C)); err != nil {
						return err
					}
					a, b, to := x.index(n, row, w, 0), y.index(n, row, v, 0), out.index(n, row, w, v)
					if x.dtype == bcnn.Float32 {
						var acc float32
						for k := range x.shape.C {
							acc = f32.FMA(x.f32[a+k], y.f32[b+k], acc)
						}
						out.f32[to] = acc
						continue
					}
					sum := 0
					for k := range x.shape.C {
						sum += int(x.pm[a+k]) * int(y.pm[b+k])
					}
					out.f32[to] = float32(sum)
				}
			}
		}
	}
	return nil
}

// transpose swaps columns and channels.
func transpose(out, x *tensor) {
	for n := range out.n {
		for row := range out.shape.H {
			for c := range out.shape.W {
				for w := range out.shape.C {
					from, to := x.index(n, row, w, c), out.index(n, row, c, w)
					if x.dtype == bcnn.Bits {
						out.pm[to] = x.pm[from]
					} else {
						out.f32[to] = x.f32[from]
					}
				}
			}
		}
	}
}
