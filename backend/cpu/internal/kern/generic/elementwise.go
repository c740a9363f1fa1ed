package generic

import (
	"math"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// Threshold is that of kern.Set.
func Threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	for p := range pixels {
		row := sums[p*stride:][:len(t)]
		out := dst[p*step:]
		for i := 0; i*bits.WordBits < len(t); i++ {
			end := min((i+1)*bits.WordBits, len(t))
			out[i] = notLess(row[i*bits.WordBits:end], t[i*bits.WordBits:end])
		}
	}
}

// notLess packs v ≥ t of at most 64 channels. The difference, which fits into
// 64 bits, is negative where the bit is 0.
func notLess(v, t []int32) uint64 {
	v = v[:len(t)]
	var less uint64
	o := 0
	for ; o+4 <= len(t); o += 4 {
		x, y := (*[4]int32)(v[o:]), (*[4]int32)(t[o:])
		less |= (uint64(int64(x[0])-int64(y[0]))>>63 |
			uint64(int64(x[1])-int64(y[1]))>>63<<1 |
			uint64(int64(x[2])-int64(y[2]))>>63<<2 |
			uint64(int64(x[3])-int64(y[3]))>>63<<3) << (o & 63)
	}
	for ; o < len(t); o++ {
		less |= uint64(int64(v[o])-int64(t[o])) >> 63 << (o & 63)
	}
	return ^less & bits.TailMask(len(t))
}

// ThresholdFloat is that of kern.Set.
func ThresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	for p := range pixels {
		row := sums[p*stride:][:len(t)]
		out := dst[p*step:]
		for i := 0; i*bits.WordBits < len(t); i++ {
			end := min((i+1)*bits.WordBits, len(t))
			var word uint64
			values := row[i*bits.WordBits : end]
			for o, bound := range t[i*bits.WordBits : end] {
				var bit uint64
				if values[o] >= bound {
					bit = 1
				}
				word |= bit << (o & 63)
			}
			out[i] = word
		}
	}
}

// AddTwice is that of kern.Set.
func AddTwice(dst, src []int32) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] += 2 * v
	}
}

// Or is that of kern.Set.
func Or(dst, src []uint64) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] |= v
	}
}

// Scale is that of kern.Set.
func Scale(dst []float32, stride int, sums []int32, step, n, rows int, end kern.End) {
	for r := range rows {
		for o, v := range sums[r*step:][:n] {
			dst[r*stride+o] = ended(float32(v), o, &end)
		}
	}
}

// ScaleFloat is that of kern.Set.
func ScaleFloat(dst []float32, stride int, sums []float32, step, n, rows int, end kern.End) {
	for r := range rows {
		to, from := dst[r*stride:][:n], sums[r*step:][:n]
		if end.None() {
			copy(to, from) // nothing where they are the same
			continue
		}
		for o, v := range from {
			to[o] = ended(v, o, &end)
		}
	}
}

// ScaleAdd is that of kern.Set.
func ScaleAdd(dst []float32, stride int, sums []int32, step, n, rows int, end, then kern.End, added []float32) {
	clip := kern.End{Activation: then.Activation}
	then.Activation = kern.Activation{}
	for r := range rows {
		for o, v := range sums[r*step:][:n] {
			at := r*stride + o
			dst[at] = ended(ended(ended(float32(v), o, &end), o, &then)+added[at], o, &clip)
		}
	}
}

// ScaleBytes is that of kern.Set.
func ScaleBytes(dst []float32, src []uint8, end kern.End) {
	for i, v := range src[:len(dst)] {
		dst[i] = ended(float32(v), i%kern.BytePeriod, &end)
	}
}

// Add is that of kern.Set.
func Add(dst, a, b []float32, act kern.Activation) {
	a, b = a[:len(dst)], b[:len(dst)]
	end := kern.End{Activation: act}
	for i := range dst {
		dst[i] = ended(a[i]+b[i], i, &end)
	}
}

func ended(v float32, o int, end *kern.End) float32 {
	if end.Scale != nil {
		v = f32.FMA(v, end.Scale[o], end.Shift[o])
	}
	if end.Slope != nil && v < 0 {
		v *= end.Slope[o]
	}
	if end.Clip {
		if v < end.Low {
			v = end.Low
		}
		if v > end.High {
			v = end.High
		}
	}
	return v
}

// Largest is that of kern.Set.
func Largest(dst, src []float32, n int) {
	for p := range dst {
		best, most := 0, float32(math.Inf(-1))
		for c, v := range src[p*n:][:n] {
			if v > most {
				best, most = c, v
			}
		}
		dst[p] = float32(best)
	}
}

// Divide is that of kern.Set.
func Divide(x []float32, n, y float32) {
	for i, v := range x {
		q := v * y
		x[i] = f32.FMA(f32.FMA(-n, q, v), y, q)
	}
}

// Choose is that of kern.Set.
func Choose(dst []float32, src []uint64, one, zero []float32) {
	for from := 0; from < len(dst); from += len(one) {
		part := dst[from:min(from+len(one), len(dst))]
		for i := range part {
			v := zero[i]
			if k := from + i; src[k/bits.WordBits]>>(k%bits.WordBits)&1 != 0 {
				v = one[i]
			}
			part[i] = v
		}
	}
}

func pick(dst, src []float32, p *kern.Picks, pixels int) { PickFrom(dst, src, p, pixels, 0) }

// PickFrom is Pick of kern.Set for the channels of the output from first on.
func PickFrom(dst, src []float32, p *kern.Picks, pixels, first int) {
	n, index := len(p.Index), p.Index[first:]
	if len(index) == 0 {
		return
	}
	for k := range pixels {
		out, row := dst[k*n+first:][:len(index)], src[k*p.Channels:][:p.Channels]
		for c, from := range index {
			out[c] = 0
			if from >= 0 {
				out[c] = row[from]
			}
		}
	}
}

// Function computes dst[i] = f(src[i]).
func Function(dst, src []float32, f *kern.Function) {
	for i, x := range src[:len(dst)] {
		dst[i] = f.Of.Of(x)
	}
}

// LookUpBytes computes dst[i] = t.Values[src[i]].
func LookUpBytes(dst, src []uint8, t *kern.ByteTable) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = t.Values[x]
	}
}
