//go:build amd64 && !purego

package avx2

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 && pixels > 0 {
		thresholdAVX2(&dst[0], &sums[0], &t[0], words, pixels, 8*step, 4*stride)
	}
	if rest := len(t) - whole; pixels > 0 && rest > 0 && rest%8 == 0 {
		thresholdNarrowAVX2(&dst[words], &sums[whole], &t[whole], rest/8, pixels, 8*step, 4*stride)
	} else if pixels > 0 && rest > 0 {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	words := len(t) / bits.WordBits
	whole := words * bits.WordBits
	if words > 0 && pixels > 0 {
		thresholdFloatAVX2(&dst[0], &sums[0], &t[0], words, pixels, 8*step, 4*stride)
	}
	if rest := len(t) - whole; pixels > 0 && rest > 0 && rest%8 == 0 {
		thresholdFloatNarrowAVX2(&dst[words], &sums[whole], &t[whole], rest/8, pixels, 8*step, 4*stride)
	} else if pixels > 0 && rest > 0 {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdPlanes(dst []uint64, step, plane int, values []float32, stride int, t []float32, pixels int) {
	next := len(t) / 3
	for o := 0; o < next && pixels > 0; o += bits.WordBits {
		n := min(next-o, bits.WordBits)
		thresholdPlanesAVX2(&dst[o/bits.WordBits], &values[o], &t[o], n/8, pixels, 8*step, 4*stride, 8*plane, 4*next)
	}
}

func scale(dst []float32, stride int, sums []int32, step, n, rows int, end kern.End) {
	if n > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, n, rows, end)
		scaleAVX2(job.Address())
	}
}

func scaleFloat(dst []float32, stride int, sums []float32, step, n, rows int, end kern.End) {
	if n > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, n, rows, end)
		scaleFloatAVX2(job.Address())
	}
}

func scaleBytes(dst []float32, src []uint8, end kern.End) {
	const period = 24
	whole := len(dst) / period * period
	if whole > 0 {
		job := kern.NewEndJob(dst, 0, src, 0, whole/period, 1, end)
		scaleBytesAVX2(job.Address())
	}
	generic.ScaleBytes(dst[whole:], src[whole:], end)
}

func add(dst, a, b []float32, act kern.Activation) {
	if len(dst) > 0 {
		job := kern.NewAddJob(dst, a, b, act)
		addAVX2(job.Address())
	}
}

func largest(dst, src []float32, n int) {
	const pixels = 16
	groups := len(dst) / pixels
	kernel := largestAVX2
	switch {
	case n < 2:
		groups = 0
	case n < 4: // of the last pixels there are no four values
		groups = max(len(dst)-1, 0) / pixels
		kernel = [...]func(dst, src *float32, n, groups int){2: largest2AVX2, 3: largest3AVX2}[n]
	}
	if groups > 0 {
		kernel(&dst[0], &src[0], n, groups)
	}
	done := pixels * groups
	if n >= 4 && groups > 0 && done < len(dst) { // some pixels twice
		from := len(dst) - pixels
		kernel(&dst[from], &src[from*n], n, 1)
		return
	}
	generic.Largest(dst[done:], src[done*n:], n)
}

// Divide divides all of x by n, whose rounded reciprocal is y.
func Divide(x []float32, n, y float32) {
	if len(x) > 0 {
		divideAVX2(&x[0], len(x), n, y)
	}
}

func choose(dst []float32, src []uint64, one, zero []float32) {
	if len(dst) > 0 {
		chooseAVX2(&dst[0], (*uint8)(unsafe.Pointer(&src[0])), &one[0], &zero[0], len(dst), len(one))
	}
}

func pick(dst, src []float32, p *kern.Picks, pixels int) {
	const lanes = 8
	if pixels == 0 {
		return
	}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		job := p.Job(v, lanes, dst, src, pixels)
		switch address := job.Address(); v.Each {
		case 1:
			pick1AVX2(address)
		case 2:
			pick2AVX2(address)
		case 3:
			pick3AVX2(address)
		default:
			pick4AVX2(address)
		}
	}
	generic.PickFrom(dst, src, p, pixels, p.Done(lanes))
}

func function(dst, src []float32, f *kern.Function) {
	if len(dst) > 0 {
		functionAVX2(&dst[0], &src[0], len(dst), (*uint8)(unsafe.Pointer(f)))
	}
}

var pairs = kern.NewPairs(0, 8, [kern.NumPairs]kern.PairCode{
	kern.Mul:  {All: mulAVX2, Each: mulEachAVX2},
	kern.Min:  {All: minAVX2, Each: minEachAVX2},
	kern.Max:  {All: maxAVX2, Each: maxEachAVX2},
	kern.Mask: {All: maskAVX2, Each: maskEachAVX2},
}, generic.Pairs)
