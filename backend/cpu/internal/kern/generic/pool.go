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

// MaxPool is that of kern.Set.
func MaxPool(dst, src []float32, p *kern.Pool) {
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

// SumPool is that of kern.Set.
func SumPool(dst, src []float32, p *kern.Pool) { SumPoolBy(dst, src, p, Add) }

// SumPoolBy is SumPool by add, which is Add, for one tap after the other.
func SumPoolBy(dst, src []float32, p *kern.Pool, add func(dst, a, b []float32, relu bool)) {
	for x := range p.Pixels {
		d := dst[x*p.DstStep:][:p.Values]
		for t, at := range p.Taps {
			s := src[x*p.Step+at:][:p.Values]
			if t == 0 {
				copy(d, s)
			} else {
				add(d, d, s, false)
			}
		}
	}
}
