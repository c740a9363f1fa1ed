//go:build amd64 && !purego

package avx512

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	if len(t) > 0 && pixels > 0 {
		thresholdAVX512(&dst[0], &sums[0], &t[0], len(t), pixels, 8*step, 4*stride)
	}
}

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	if len(t) > 0 && pixels > 0 {
		thresholdFloatAVX512(&dst[0], &sums[0], &t[0], len(t), pixels, 8*step, 4*stride)
	}
}

func thresholdPlanes(dst []uint64, step, plane int, values []float32, stride int, t []float32, pixels int) {
	next := len(t) / 3
	for o := 0; o < next && pixels > 0; o += bits.WordBits {
		n := min(next-o, bits.WordBits)
		thresholdPlanesAVX512(&dst[o/bits.WordBits], &values[o], &t[o], n, pixels, 8*step, 4*stride, 8*plane, 4*next)
	}
}

func scale(dst []float32, stride int, sums []int32, step, n, rows int, end kern.End) {
	if n > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, n, rows, end)
		scaleAVX512(job.Address())
	}
}

func scaleFloat(dst []float32, stride int, sums []float32, step, n, rows int, end kern.End) {
	if n > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, n, rows, end)
		scaleFloatAVX512(job.Address())
	}
}

func scaleBytes(dst []float32, src []uint8, end kern.End) {
	const period = 48
	whole := len(dst) / period * period
	if whole > 0 {
		job := kern.NewEndJob(dst, 0, src, 0, whole/period, 1, end)
		scaleBytesAVX512(job.Address())
	}
	generic.ScaleBytes(dst[whole:], src[whole:], end)
}

func add(dst, a, b []float32, act kern.Activation) {
	if len(dst) > 0 {
		job := kern.NewAddJob(dst, a, b, act)
		addAVX512(job.Address())
	}
}

func choose(dst []float32, src []uint64, one, zero []float32) {
	words := len(dst) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 {
		chooseAVX512(&dst[0], &src[0], &one[0], &zero[0], words, (len(one)+bits.WordBits-1)/bits.WordBits)
	}
	if whole < len(dst) {
		from := whole % len(one)
		generic.Choose(dst[whole:], src[words:], one[from:], zero[from:])
	}
}

func pick(dst, src []float32, p *kern.Picks, pixels int) {
	const lanes = 16
	if pixels == 0 {
		return
	}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		job := p.Job(v, lanes, dst, src, pixels)
		switch address := job.Address(); v.Each {
		case 1:
			pick1AVX512(address)
		case 2:
			pick2AVX512(address)
		case 3:
			pick3AVX512(address)
		default:
			pick4AVX512(address)
		}
	}
	generic.PickFrom(dst, src, p, pixels, p.Done(lanes))
}

func function(dst, src []float32, f *kern.Function) {
	switch {
	case f.Wide:
		generic.Function(dst, src, f)
	case len(dst) > 0:
		functionAVX512(&dst[0], &src[0], len(dst), (*uint8)(unsafe.Pointer(f)))
	}
}

func lookUpBytes(dst, src []uint8, t *kern.ByteTable) {
	if n := len(dst); n > 0 {
		lookUpBytesAVX512(&dst[0], &src[:n][0], n, &t.Values[0])
	}
}
