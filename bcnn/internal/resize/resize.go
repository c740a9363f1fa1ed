// Package resize computes which pixels of an image those of a resized one are made of, as ONNX and
// OpenVINO define it.
package resize

import (
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Method is how positions and weights along an axis are computed, by the names of ONNX's attributes,
// which are those of OpenVINO, too.
type Method struct {
	Mode        string  // nearest, linear or cubic
	Coordinates string  // coordinate_transformation_mode
	Nearest     string  // nearest_mode; simple, of OpenVINO, is ceil where the image shrinks, else floor
	Cubic       float64 // cubic_coeff_a
	Exclude     bool    // exclude_outside
	// Tie is how far from the middle of two pixels a position still counts as equally near to both.
	// In ONNX Runtime 1.32 that is 1e-6 (in 1.24 nothing): pixel 4 of 8 made of 7, for instance, is at
	// 3.5, and in float32 at 3.4999998.
	Tie float64
	// Still says that an axis that keeps its size stays as it is, whatever its scale.
	Still bool
}

// at returns where pixel i of to in the result lies among from pixels of the image. It is float32
// arithmetic, as in ONNX Runtime, since rounding decides between neighbours that are equally near.
func (r Method) at(i, from, to int, scale float32) float32 {
	x := float32(i)
	if scale == 1 || r.Still && from == to { // for all modes
		return x
	}
	switch r.Coordinates {
	case "asymmetric":
		return x / scale
	case "align_corners":
		if to == 1 {
			return 0
		}
		return float32(x*float32(from-1)) / float32(to-1)
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / scale
	case "pytorch_half_pixel":
		if to == 1 {
			return 0
		}
	case "half_pixel_symmetric":
		adjustment := float32(to) / float32(scale*float32(from))
		offset := float32(float32(from) / 2 * (1 - adjustment))
		return float32(float64(offset) + float64((float64(x)+0.5)/float64(scale)) - 0.5) // in float64 there
	}
	return float32((x+0.5)/scale) - 0.5
}

// Between reports whether the image shrinks and some pixel of the result lies between two of it.
func (r Method) Between(from, to int, scale float32) bool {
	for i := range to {
		if x := r.at(i, from, to, scale); scale < 1 && x != float32(int(x)) {
			return true
		}
	}
	return false
}

// Positions returns the nearest pixel for each of the result.
func (r Method) Positions(from, to int, scale float32) []int32 {
	list := make([]int32, to)
	for i := range list {
		x := float64(r.at(i, from, to, scale))
		switch r.Nearest {
		case "floor":
			x = math.Floor(x)
		case "ceil":
			x = math.Ceil(x)
		case "simple":
			if x = math.Floor(x); scale < 1 {
				x = math.Ceil(float64(r.at(i, from, to, scale)))
			}
		case "round_prefer_floor":
			x = math.Ceil(x - 0.5 - r.Tie)
		case "round_prefer_ceil":
			x = math.Floor(x + 0.5 + r.Tie)
		}
		list[i] = int32(max(0, min(x, float64(from-1))))
	}
	return list
}

// Taps returns the weighted pixels of linear or cubic interpolation.
func (r Method) Taps(from, to int, scale float32) bcnn.Taps {
	t := bcnn.Taps{N: min(2, from)}
	if r.Mode == "cubic" {
		t.N = 4
	}
	t.Index, t.Weight = make([]int32, t.N*to), make([]float32, t.N*to)
	for i := range to {
		index, weights := t.Index[i*t.N:][:t.N], t.Weight[i*t.N:][:t.N]
		x := float64(r.at(i, from, to, scale))
		if r.Mode == "cubic" {
			r.cubicTaps(index, weights, x, from)
			continue
		}
		x = max(0, min(x, float64(from-1)))
		first := min(int(x), max(from-2, 0))
		for k := range index {
			index[k] = int32(first + k)
			weights[k] = float32(1 - math.Abs(x-float64(first+k)))
		}
	}
	return t
}

// Filtered returns the weighted pixels of an interpolation whose filter is stretched as the image
// shrinks, so that all pixels count. Pixels outside count as the one at the border, or with
// exclude_outside not at all. The weights add up to 1.
func (r Method) Filtered(from, to int, scale float32) bcnn.Taps {
	width, f := 1.0, func(d float64) float64 { return 1 - d }
	if r.Mode == "cubic" {
		width, f = 2, r.keys
	}
	shrink := min(float64(scale), 1)
	reach := width / shrink
	window := func(i int) (middle float64, first, end int) {
		middle = float64(r.at(i, from, to, scale)) + 0.5
		first, end = int(math.Floor(middle-reach+0.5)), int(math.Floor(middle+reach+0.5))
		if r.Exclude {
			first = max(0, min(first, from-1))
			end = max(first+1, min(end, from))
		}
		return middle, first, end
	}
	inside := func(at int) int { return max(0, min(at, from-1)) }
	var t bcnn.Taps
	for i := range to {
		_, first, end := window(i)
		t.N = max(t.N, inside(end-1)-inside(first)+1)
	}
	t.Index, t.Weight = make([]int32, t.N*to), make([]float32, t.N*to)
	all := make([]float64, t.N)
	for i := range to {
		middle, first, end := window(i)
		clear(all)
		sum := 0.0
		for at := first; at < end; at++ {
			if d := math.Abs(float64(at)+0.5-middle) * shrink; d < width {
				all[inside(at)-inside(first)] += f(d)
				sum += f(d)
			}
		}
		for k, w := range all {
			t.Index[i*t.N+k] = int32(inside(inside(first) + k))
			t.Weight[i*t.N+k] = float32(w / sum)
		}
	}
	return t
}

// keys is the filter of cubic interpolation at a distance below 2.
func (r Method) keys(d float64) float64 {
	if a := r.Cubic; d > 1 {
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return ((r.Cubic+2)*d-(r.Cubic+3))*d*d + 1
}

// cubicTaps sets the four pixels and weights of Keys, "Cubic Convolution Interpolation for Digital
// Image Processing" (1981), at position x.
func (r Method) cubicTaps(index []int32, weights []float32, x float64, size int) {
	first := int(math.Floor(x)) - 1
	all := make([]float64, len(index))
	sum := 0.0
	for k := range index {
		all[k] = r.keys(math.Abs(x - float64(first+k)))
		if at := first + k; r.Exclude && (at < 0 || at >= size) {
			all[k] = 0
		}
		index[k] = int32(max(0, min(first+k, size-1)))
		sum += all[k]
	}
	for k, w := range all {
		if r.Exclude {
			w /= sum
		}
		weights[k] = float32(w)
	}
}
