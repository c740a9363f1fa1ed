package generic

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// OrPool is that of kern.Set.
func OrPool(dst, src []uint64, p *kern.Pool) {
	for x := range p.Pixels {
		d := dst[x*p.DstStep:][:p.Values]
		for t, at := range p.Taps {
			s := src[x*p.Step+at:][:p.Values]
			if t == 0 {
				copy(d, s)
				continue
			}
			for i, v := range s {
				d[i] |= v
			}
		}
		if p.Flip != 0 {
			for i := range d {
				d[i] ^= p.Flip
			}
		}
	}
}

// MaxPool is that of kern.Set, and MaxPoolBytes.
func MaxPool[T uint8 | float32](dst, src []T, p *kern.Pool) {
	for x := range p.Pixels {
		d := dst[x*p.DstStep:][:p.Values]
		for t, at := range p.Taps {
			s := src[x*p.Step+at:][:p.Values]
			if t == 0 {
				copy(d, s)
				continue
			}
			for i, v := range s {
				if v > d[i] {
					d[i] = v
				}
			}
		}
	}
}

// Mean is that of kern.Set.
func Mean(dst, src []float32, at *kern.FloatPatches, n int, taps, y float32) {
	for p := range at.Pixels {
		sums := dst[p*n:][:n]
		clear(sums)
		for _, r := range at.Runs {
			for i, v := range src[p*at.Step+r.Src:][:len(sums)] {
				sums[i] += v
			}
		}
		Divide(sums, taps, y)
	}
}

func meanSigns(dst []float32, src []uint64, n int, p *kern.Pool, divisor, y float32) {
	SumSignsFrom(dst, src, n, 0, p)
	Divide(dst[:n*p.Pixels], divisor, y)
}

// SumSignsFrom makes the sums of MeanSigns of kern.Set for the channels from first on, a multiple
// of 8. It counts bits in the bytes of a word.
func SumSignsFrom(dst []float32, src []uint64, n, first int, p *kern.Pool) {
	const (
		spread = 0x0101010101010101
		each   = 0x8040201008040201 // bit i of byte i
		most   = 255                // that a byte counts
	)
	for x := range p.Pixels {
		for c := first; c < n; c += 8 {
			out := dst[x*n+c:][:min(8, n-c)]
			clear(out)
			for taps := p.Taps; len(taps) > 0; taps = taps[min(len(taps), most):] {
				var counts uint64
				some := taps[:min(len(taps), most)]
				for _, t := range some {
					b := src[x*p.Step+t+c/64] >> (c % 64) & 0xff * spread & each
					counts += (b + 0x7f*spread) >> 7 & spread
				}
				for i := range out {
					out[i] += float32(2*int(counts>>(8*i)&0xff) - len(some))
				}
			}
		}
	}
}
