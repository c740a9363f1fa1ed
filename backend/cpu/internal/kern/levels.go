package kern

import (
	"math"
	"unsafe"
)

// Levels is how many of a list of thresholds a value reaches, as arithmetic. Of value x in
// place i of a row, with y = x, or x rounded down, it is
//
//	k = Offset + round(min(max(float32(y·Scale[i]) + Shift[i], Least), Most))
//
// to the nearest integer, or the even one of two, and that of Least for a NaN. Where that
// may be one less than it ought to be, Table has the threshold of the next level, and 1 is
// added where x ≥ Table[List[i] + k − Offset].
type Levels struct {
	Scale, Shift []float32 // of a row
	Least, Most  float32   // whole, from −Offset to 255 − Offset
	Offset       int32
	Down         bool      // x is rounded down
	Divide       bool      // y is divided by the scale
	Truncate     bool      // instead of rounding to the nearest
	Table        []float32 // nil for none
	List         []int32   // of a row
}

// Even rounds values of magnitudes to 255 that are added to it and it is taken off again.
const Even = 3 << 22

// Usual reports whether k is what is asked for, rounded to the nearest of a product.
func (l *Levels) Usual() bool { return !l.Down && !l.Divide && !l.Truncate && l.Table == nil }

// From returns the levels of the values from place i of a row on.
func (l *Levels) From(i int) Levels {
	from := *l
	from.Scale, from.Shift = l.Scale[i:], l.Shift[i:]
	if l.Table != nil {
		from.List = l.List[i:]
	}
	return from
}

// Guess is k for a value in place i of a row.
func (l *Levels) Guess(x float32, i int) int {
	if l.Down {
		x = float32(math.Floor(float64(x)))
	}
	y := float32(x * l.Scale[i])
	if l.Divide {
		y = x / l.Scale[i]
	}
	v := y + l.Shift[i]
	if !(v > l.Least) {
		v = l.Least
	}
	if !(v < l.Most) {
		v = l.Most
	}
	if l.Truncate {
		return int(v) + int(l.Offset)
	}
	return int(float32(v+Even)-Even) + int(l.Offset)
}

// Number is how many thresholds a value in place i of a row reaches.
func (l *Levels) Number(x float32, i int) int {
	k := l.Guess(x, i)
	if l.Table != nil && x >= l.Table[int(l.List[i]-l.Offset)+k] {
		k++
	}
	return k
}

// LevelsJob is one call of an assembly kernel that writes levels of a row of values. The
// kernels know the places of the fields.
type LevelsJob struct {
	dst, src     unsafe.Pointer
	scale, shift unsafe.Pointer
	table, list  unsafe.Pointer
	n            uintptr
	down         uintptr // 1, else 0, as the next two
	divide       uintptr
	truncate     uintptr
	least, most  float32
	low          float32 // of floats, which the offset is a part of
	offset       int32   // of bytes
}

// NewLevelsJob returns the job of a row, or of the first values of one, of which there is
// at least one.
func NewLevelsJob[T uint8 | float32](dst []T, src []float32, l *Levels, low float32) LevelsJob {
	j := LevelsJob{
		dst: unsafe.Pointer(&dst[0]), src: unsafe.Pointer(&src[0]),
		scale: unsafe.Pointer(&l.Scale[0]), shift: unsafe.Pointer(&l.Shift[0]),
		n: uintptr(len(src)), least: l.Least, most: l.Most, low: low + float32(l.Offset), offset: l.Offset,
	}
	if l.Table != nil {
		j.table, j.list = unsafe.Pointer(&l.Table[0]), unsafe.Pointer(&l.List[0])
	}
	for _, flag := range []struct {
		set bool
		to  *uintptr
	}{{l.Down, &j.down}, {l.Divide, &j.divide}, {l.Truncate, &j.truncate}} {
		if flag.set {
			*flag.to = 1
		}
	}
	return j
}

// Address is what the assembly takes.
func (j *LevelsJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
