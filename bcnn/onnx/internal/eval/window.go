package eval

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// Window is how a convolution or a pool moves over the dimensions behind batch and channels. Each
// list has one element per dimension.
type Window struct {
	Size, Stride, Dilation []int
	Begin, End             []int // padding
}

// out returns the dimensions of the result over dims.
func (w Window) out(dims []int) []int {
	out := make([]int, len(dims))
	for d, size := range dims {
		room := size + w.Begin[d] + w.End[d] - (w.Size[d]-1)*w.Dilation[d] - 1
		if room < 0 || size == 0 {
			try.Failf("a window of %v is larger than its padded input, %v without the padding", w.Size, dims)
		}
		out[d] = room/w.Stride[d] + 1
	}
	return out
}

// taps calls f for each tap of the window at a position of the result that lies inside dims, with
// the position that it reads.
func (w Window) taps(dims, outDims []int, position int, f func(tap, at int)) {
	each := strides(dims)
	origin := make([]int, len(dims))
	for d, step := range strides(outDims) {
		origin[d] = position/step%outDims[d]*w.Stride[d] - w.Begin[d]
	}
	steps := strides(w.Size)
	for tap := range product(w.Size) {
		at, inside := 0, true
		for d := range dims {
			p := origin[d] + tap/steps[d]%w.Size[d]*w.Dilation[d]
			inside = inside && p >= 0 && p < dims[d]
			at += p * each[d]
		}
		if inside {
			f(tap, at)
		}
	}
}

// product returns the number of values of dimensions whose product fits.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Conv convolves [N][C][…] with weights [M][C/groups][…] and adds a bias for each of the M filters,
// nil for none. Sums are in float64, with one rounding.
func (e *Evaluator) Conv(x, w, bias *Tensor, groups int, win Window) *Tensor {
	if x.HasBatch() || w.HasBatch() || x.Type != w.Type || !x.Type.Real() ||
		len(x.Dims) != len(w.Dims) || len(x.Dims) < 3 {
		try.Failf("constants of %v and shape %v and of %v and shape %v cannot be convolved", x.Type, x.Dims, w.Type, w.Dims)
	}
	channels, filters, each := x.Dims[1], w.Dims[0], w.Dims[1]
	if groups < 1 || each*groups != channels || filters%groups != 0 ||
		bias != nil && (bias.Type != x.Type || bias.Len() != filters) {
		try.Failf("%d groups do not fit %d channels and %d filters, or the bias does not fit", groups, channels, filters)
	}
	pixels := x.Dims[2:]
	to := win.out(pixels)
	out := e.NewTensor(x.Type, append([]int{x.Dims[0], filters}, to...))
	size, inside, outside := product(win.Size), product(pixels), product(to)
	if out.Len() == 0 {
		return out
	}
	try.Check(e.Budget.Charge(lookUnits * int64(size*len(to)) * int64(outside)))
	sums := make([]float64, x.Dims[0]*filters)
	try.Check(e.Budget.Charge(8 * int64(len(sums))))
	for position := range outside {
		for i := range sums {
			if sums[i] = 0; bias != nil {
				sums[i] = bias.At(i % filters)
			}
		}
		win.taps(pixels, to, position, func(tap, at int) {
			try.Check(e.Budget.Charge(lookUnits * int64(each*len(sums))))
			for i := range sums {
				f, image := i%filters, i/filters
				first := f / (filters / groups) * each
				for c := range each {
					sums[i] += float64(x.At((image*channels+first+c)*inside+at) * w.At((f*each+c)*size+tap))
				}
			}
		})
		try.Check(e.Budget.Loop(len(sums), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out.Set(i*outside+position, sums[i])
			}
		}))
	}
	return out
}

// Pool returns the maximum of each window if largest is set, and otherwise the mean: of the values
// inside or, if all is set, with the zeros of the padding.
func (e *Evaluator) Pool(x *Tensor, win Window, largest, all bool) *Tensor {
	if x.HasBatch() || !x.Type.Real() && !largest || len(x.Dims) < 3 {
		try.Failf("a constant of %v and shape %v cannot be pooled", x.Type, x.Dims)
	}
	pixels := x.Dims[2:]
	to := win.out(pixels)
	out := e.NewTensor(x.Type, append(slices.Clone(x.Dims[:2]), to...))
	size, inside, outside := product(win.Size), product(pixels), product(to)
	try.Check(e.Budget.Charge(lookUnits * int64(size*(1+len(to))) * int64(out.Len())))
	try.Check(e.Budget.Loop(out.Len(), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			sum, n := 0.0, 0
			if largest {
				sum = math.Inf(-1)
			}
			win.taps(pixels, to, i%outside, func(_, at int) {
				v := x.At(i/outside*inside + at)
				if n++; largest {
					sum = max(sum, v)
				} else {
					sum += v
				}
			})
			switch {
			case largest && n == 0:
				try.Failf("a window lies in the padding alone, so that it has no largest value")
			case !largest && all:
				sum /= float64(size)
			case !largest && n > 0:
				sum /= float64(n)
			}
			out.Set(i, sum)
		}
	}))
	return out
}
