// Package transposed makes convolutions of transposed ones.
//
// A transposed convolution of stride s makes s rows and columns of each of the image.
// With the padding cut off at the end, row y of the result is y = s·q + r, and the taps
// that reach it lie s apart: for each r it is a convolution of stride 1 with some of the
// taps. All of them together are one, whose output channels are the pixels of a block of
// s×s: so weights of ±1 stay what they are, and so do the ±1 of the input.
package transposed

import (
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Phases are the taps of one dimension, in Stride convolutions of stride 1.
type Phases struct {
	Stride, Dilation, Kernel int
	Window                   int // taps of a phase
	Before, After            int // padding of the convolution
	// Positions are the rows of the result among those of all blocks: row i of the result
	// is row Positions[i] % Stride of block Positions[i] / Stride.
	Positions []int32
}

// New divides the taps for an image of a size of which so many rows are wanted, from row
// cut of the whole result on. All sizes are at least 1, cut at least 0.
func New(b *budget.Budget, size, kernel, stride, dilation, cut, wanted int) (*Phases, error) {
	p := &Phases{Stride: stride, Dilation: dilation, Kernel: kernel, Window: (kernel-1)*dilation/stride + 1}
	p.Before = max(0, p.Window-1-cut/stride)
	p.After = max(0, num.CeilDiv(cut+wanted, stride)-size)
	first := p.Window - 1 - p.Before // row of the convolution
	var err error
	p.Positions, err = budget.List(b, wanted, func(i int) int32 { return int32(cut + i - first*stride) })
	return p, err
}

// Output is the number of rows of the convolution over an image of a size.
func (p *Phases) Output(size int) int { return size + p.Before + p.After - p.Window + 1 }

// InOrder reports whether the result is all rows of an image of a size, in order.
func (p *Phases) InOrder(size int) bool {
	return p.Stride == 1 && len(p.Positions) == p.Output(size) && p.Positions[0] == 0
}

// tap returns which tap of the kernel is number t of a phase, −1 for none.
func (p *Phases) tap(phase, t int) int {
	at := (p.Window-1-t)*p.Stride + phase
	if k := at / p.Dilation; at%p.Dilation == 0 && k < p.Kernel {
		return k
	}
	return -1
}

// Fill sets the weights of the convolution, [group][phase][out][tap][channel], with so
// many outputs and channels of a group. weight returns that of a tap of the transposed
// one. What a phase does not have stays 0.
func Fill[T any](b *budget.Budget, rows []T, groups, out, channels int, y, x *Phases, weight func(group, out, ky, kx, c int) T) error {
	taps, blocks := y.Window*x.Window, y.Stride*x.Stride
	for o := range groups * blocks * out {
		group, block, m := o/(blocks*out), o/out%blocks, o%out
		for t := range taps {
			if err := b.Charge(4 * int64(channels)); err != nil {
				return err
			}
			ky, kx := y.tap(block/x.Stride, t/x.Window), x.tap(block%x.Stride, t%x.Window)
			if ky < 0 || kx < 0 {
				continue
			}
			to := rows[(o*taps+t)*channels:][:channels]
			for c := range to {
				to[c] = weight(group, m, ky, kx, c)
			}
		}
	}
	return nil
}
