package generic

import "github.com/bitcnn/bitcnn/backend/cpu/internal/kern"

// LevelBytes is that of kern.Set.
func LevelBytes(dst []uint8, src []float32, l *kern.Levels) { levels(dst, src, l, 0) }

// LevelFloats is that of kern.Set.
func LevelFloats(dst, src []float32, l *kern.Levels, low float32) { levels(dst, src, l, int(low)) }

func levels[T uint8 | float32](dst []T, src []float32, l *kern.Levels, low int) {
	for len(src) > 0 {
		n := min(len(src), len(l.Scale))
		if l.Usual() && l.Rest == nil {
			usual(dst[:n], src[:n], l, low+int(l.Offset))
			dst, src = dst[n:], src[n:]
			continue
		}
		for i, x := range src[:n] {
			dst[i] = T(low + l.Number(x, i))
		}
		dst, src = dst[n:], src[n:]
	}
}

func usual[T uint8 | float32](dst []T, src []float32, l *kern.Levels, low int) {
	scale, shift, least, most := l.Scale[:len(src)], l.Shift[:len(src)], l.Least, l.Most
	for i, x := range src {
		v := float32(x*scale[i]) + shift[i]
		if !(v > least) {
			v = least
		}
		if !(v < most) {
			v = most
		}
		dst[i] = T(low + int(float32(v+kern.Even)-kern.Even))
	}
}
