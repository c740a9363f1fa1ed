//go:build arm64 && !purego

package neon

import (
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/generic"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

func threshold(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
	if pixels == 0 {
		return
	}
	words := len(t) / bits.WordBits
	for i := range words {
		thresholdNEON(&dst[i], &sums[i*bits.WordBits], &t[i*bits.WordBits], pixels, step, stride)
	}
	if whole := words * bits.WordBits; whole < len(t) {
		generic.Threshold(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func thresholdFloat(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
	if pixels == 0 {
		return
	}
	words := len(t) / bits.WordBits
	for i := range words {
		thresholdFloatNEON(&dst[i], &sums[i*bits.WordBits], &t[i*bits.WordBits], pixels, step, stride)
	}
	if whole := words * bits.WordBits; whole < len(t) {
		generic.ThresholdFloat(dst[words:], step, sums[whole:], stride, t[whole:], pixels)
	}
}

func or(dst, src []uint64) {
	blocks := len(src) / 8
	if blocks > 0 {
		orNEON(&dst[:len(src)][0], &src[0], blocks)
	}
	generic.Or(dst[8*blocks:], src[8*blocks:])
}

func scale(dst []float32, stride int, sums []int32, step, n, rows int, end kern.End) {
	whole := n &^ 3
	if whole > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, whole, rows, end)
		scaleNEON(job.Address())
	}
	if whole < n {
		generic.Scale(dst[whole:], stride, sums[whole:], step, n-whole, rows, end.From(whole))
	}
}

func scaleAdd(dst []float32, stride int, sums []int32, step, n, rows int, end, then kern.End, added []float32) {
	whole := n &^ 3
	if whole > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, whole, rows, end)
		job.Then(then, added)
		scaleAddNEON(job.Address())
	}
	if whole < n {
		generic.ScaleAdd(dst[whole:], stride, sums[whole:], step, n-whole, rows, end.From(whole), then.From(whole), added[whole:])
	}
}

func scaleFloat(dst []float32, stride int, sums []float32, step, n, rows int, end kern.End) {
	if end.None() {
		for r := range rows {
			copy(dst[r*stride:][:n], sums[r*step:][:n]) // nothing where they are the same
		}
		return
	}
	whole := n &^ 3
	if whole > 0 && rows > 0 {
		job := kern.NewEndJob(dst, stride, sums, step, whole, rows, end)
		scaleFloatNEON(job.Address())
	}
	if whole < n {
		generic.ScaleFloat(dst[whole:], stride, sums[whole:], step, n-whole, rows, end.From(whole))
	}
}

func scaleBytes(dst []float32, src []uint8, end kern.End) {
	whole := len(dst) / kern.BytePeriod * kern.BytePeriod
	if end.Slope != nil {
		whole = 0
	}
	if whole > 0 {
		scaleBytesNEON(&dst[0], &src[0], &end.Scale[0], &end.Shift[0], whole/kern.BytePeriod)
		if end.Clip {
			clipNEON(&dst[0], whole/4, end.Low, end.High)
		}
	}
	generic.ScaleBytes(dst[whole:], src[whole:], end)
}

func add(dst, a, b []float32, act kern.Activation) {
	whole := len(dst) &^ 3
	if whole > 0 {
		job := kern.NewAddJob(dst[:whole], a, b, act)
		addNEON(job.Address())
	}
	if whole < len(dst) {
		generic.Add(dst[whole:], a[whole:], b[whole:], kern.End{Activation: act}.From(whole).Activation)
	}
}

func largest(dst, src []float32, n int) {
	last := len(dst) - 2
	if n < 4 || last < 0 {
		generic.Largest(dst, src, n)
		return
	}
	largestNEON(&dst[0], &src[0], n, len(dst)/2)
	if len(dst)%2 > 0 { // one of them twice
		largestNEON(&dst[last], &src[last*n], n, 1)
	}
}

func divide(x []float32, n, y float32) {
	whole := len(x) &^ 3
	if whole > 0 {
		divideNEON(&x[0], whole/4, n, y)
	}
	generic.Divide(x[whole:], n, y)
}

func choose(dst []float32, src []uint64, one, zero []float32) {
	whole := len(dst) / bits.WordBits * bits.WordBits
	if whole > 0 {
		chooseNEON(&dst[0], (*uint16)(unsafe.Pointer(&src[0])), &one[0], &zero[0], whole/16, (len(one)+15)/16)
	}
	if whole < len(dst) {
		from := whole % len(one)
		generic.Choose(dst[whole:], src[whole/bits.WordBits:], one[from:], zero[from:])
	}
}

func pick(dst, src []float32, p *kern.Picks, pixels int) {
	const lanes = 4
	if pixels == 0 {
		return
	}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		job := p.Job(v, lanes, dst, src, pixels)
		switch address := job.Address(); v.Each {
		case 1:
			pick1NEON(address)
		case 2:
			pick2NEON(address)
		case 3:
			pick3NEON(address)
		default:
			pick4NEON(address)
		}
	}
	generic.PickFrom(dst, src, p, pixels, p.Done(lanes))
}

func function(dst, src []float32, f *kern.Function) {
	whole := len(dst) &^ 3
	if whole > 0 {
		functionNEON(&dst[0], &src[0], whole, (*uint8)(unsafe.Pointer(f)))
	}
	for i := whole; i < len(dst); i++ {
		dst[i] = f.Of.Of(src[i])
	}
}

var pairs = kern.NewPairs(2, 4, [kern.NumPairs]kern.PairCode{
	kern.Mul:  {All: mulNEON, Each: mulEachNEON, Rows: mulRowsNEON},
	kern.Min:  {All: minNEON, Each: minEachNEON, Rows: minRowsNEON},
	kern.Max:  {All: maxNEON, Each: maxEachNEON, Rows: maxRowsNEON},
	kern.Mask: {All: maskNEON, Each: maskEachNEON, Rows: maskRowsNEON},
}, generic.Pairs)
