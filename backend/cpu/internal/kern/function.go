package kern

import (
	"sync"
	"unsafe"

	"github.com/bitcnn/bitcnn/internal/f32"
)

// Function is an elementary function of the numeric contract, laid out for the kernels, which rely
// on the offsets of the fields.
type Function struct {
	rows unsafe.Pointer // hi, lo, c1, …, c6 of an interval, at a multiple of 32
	// The magnitudes, as bits, from and below which intervals of positive and of negative numbers
	// have a middle other than 0.
	from, to [2]uint32
	below    uint32 // the greatest exponent that has the interval of 0
	_        uint32
	// places[sign][i] is the place of exponent below + i; the first also stands for smaller
	// exponents, the last but one for larger ones, and the last is that of infinity. A place packs
	// the first row of an exponent and how far the mantissa is shifted to choose among its rows.
	places    [2][functionPlaces]uint16
	directory [functionDirectory]uint32 // the places of all signs and exponents

	Of *f32.Function
	// Wide says that places does not have all exponents.
	Wide bool
}

const (
	functionPlaces    = 64
	functionDirectory = 512
	functionRow       = 9 // values of a row of the table
	functionValues    = 8 // values behind the middle
)

var functions = func() map[string]func() *Function {
	all := map[string]func() *Function{}
	for _, name := range f32.Names() {
		all[name] = sync.OnceValue(func() *Function { return newFunction(f32.Named(name)) })
	}
	return all
}()

// FunctionNamed returns the function of a name that f32 knows.
func FunctionNamed(name string) *Function { return functions[name]() }

func newFunction(of *f32.Function) *Function {
	table := of.Table()
	rows := table[functionDirectory:]
	n := len(rows) / functionRow
	values := alignedFloats(functionValues * n)
	for i := range n {
		copy(values[i*functionValues:][:functionValues], rows[i*functionRow+1:][:functionValues])
	}
	f := &Function{rows: unsafe.Pointer(&values[0]), below: functionDirectory, Of: of}
	for i, bounds := range of.Inner() {
		f.from[i], f.to[i] = bounds[0], bounds[1]
		if bounds[1] > 0 {
			f.below = min(f.below, bounds[0]>>23-1)
		}
	}
	copy(f.directory[:], unsafe.Slice((*uint32)(unsafe.Pointer(&table[0])), functionDirectory))
	const exponents = functionDirectory / 2
	for sign := range f.places {
		for i := range f.places[sign] {
			e := min(int(f.below)+i, exponents-2)
			if i == functionPlaces-1 {
				e = exponents - 1
			}
			f.places[sign][i] = uint16(f.directory[sign*exponents+e])
		}
		for e, place := range f.directory[sign*exponents:][:exponents-1] {
			i := min(max(e-int(f.below), 0), functionPlaces-2)
			f.Wide = f.Wide || uint32(f.places[sign][i]) != place
		}
	}
	return f
}
