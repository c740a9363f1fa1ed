package bmxnet

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// filters are the weights of a convolution in the order of MXNet: output, input
// channel, row, column. Those of a dense layer have pixels instead of rows and columns,
// and are convolved with the whole image.
type filters struct {
	array
	out, channels, pixels int
	packed                bool
	// columns says that the words of packed weights are ordered by inputs first, then
	// by outputs.
	columns bool
}

// check tests the number of weights, and for floats their dimensions.
func (f *filters) check(dims ...int) {
	want := f.out * f.channels * f.pixels
	if !f.packed {
		if !slices.Equal(f.dims, dims) {
			try.Failf("its weights have shape %v, want %v", f.dims, dims)
		}
		return
	}
	word := try.Value(f.wordBits())
	if row := f.channels * f.pixels; f.columns && row%word != 0 {
		try.Failf("%d inputs are no multiple of the %d bits of a word", row, word)
	}
	if f.len()*word != want {
		try.Failf("%d packed words of %d bits do not hold %d weights", f.len(), word, want)
	}
}

// at returns the place of a weight among the bits or numbers.
func (f *filters) at(o, c, p int) int {
	i := c*f.pixels + p // of the filter
	if f.columns {
		word, _ := f.wordBits() // that there is one has been checked
		return (i/word*f.out+o)*word + i%word
	}
	return o*f.channels*f.pixels + i
}

// moveUnits is what it costs to find the place of a weight and to move it.
const moveUnits = 3

// reorder calls move for every weight in the order of a bcnn.Network: output, pixel, input
// channel. It is charged for the work.
func (f *filters) reorder(b *budget.Budget, move func(o, p, c, from int)) {
	rows := f.out * f.pixels
	for row := range rows {
		try.Check(b.Charge(moveUnits * int64(f.channels)))
		for c := range f.channels {
			o, p := row/f.pixels, row%f.pixels
			move(o, p, c, f.at(o, c, p))
		}
	}
}

// real returns the weights as floats.
func (f *filters) real(b *budget.Budget) bcnn.Weights {
	values := try.Value(f.floats(b))
	if f.pixels == 1 {
		return bcnn.Weights{F32: values}
	}
	try.Check(b.Charge(4 * int64(len(values))))
	out := make([]float32, 0, len(values))
	f.reorder(b, func(_, _, _, from int) { out = append(out, values[from]) })
	return bcnn.Weights{F32: out}
}

// binary returns the signs of the weights. A dense layer has one row of bits for all
// pixels of a filter, a convolution one for each. mean is that of their magnitudes,
// 1 where only the signs are known.
func (f *filters) binary(b *budget.Budget, dense bool) (w bcnn.Weights, mean float32) {
	perRow, rows := f.channels, f.out*f.pixels
	if dense {
		perRow, rows = f.channels*f.pixels, f.out
	}
	words := bits.Words(perRow)
	try.Check(b.Charge(8 * int64(rows) * int64(words)))
	w.Bits = make([]uint64, rows*words)
	plus, mean := f.bit, 1
	if !f.packed {
		values := try.Value(f.floats(b))
		sum := 0.0
		for _, v := range values { // charged by floats
			sum += float64(max(v, -v))
		}
		mean = float32(sum / float64(len(values)))
		plus = func(i int) uint64 {
			if values[i] < 0 {
				return 0
			}
			return 1
		}
	}
	f.reorder(b, func(o, p, c, from int) {
		row, at := o*f.pixels+p, c
		if dense {
			row, at = o, p*f.channels+c
		}
		w.Bits[row*words+at/bits.WordBits] |= plus(from) << (at % bits.WordBits)
	})
	return w, mean
}
