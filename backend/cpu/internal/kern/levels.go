package kern

import (
	"math"
	"unsafe"
)

// Levels computes how many thresholds of a list a value reaches. For value x in place i of a row,
// with y = x, or x rounded down, it is
//
//	k = Offset + round(min(max(float32(y·Scale[i]) + Shift[i], Least), Most))
//
// with ties to even; a NaN counts as Least. If that may be one less than it should be, Table has
// the threshold of the next level, and 1 is added where x ≥ Table[List[i] + k − Offset].
type Levels struct {
	Scale, Shift []float32 // one for each place of a row
	Least, Most  float32   // integers from −Offset to 255 − Offset
	Offset       int32
	Down         bool      // x is rounded down
	Divide       bool      // y is divided by the scale
	Truncate     bool      // instead of rounding to the nearest
	Table        []float32 // nil for none
	List         []int32   // one for each place of a row
}

// Even rounds a value of magnitude up to 255 to an integer, ties to even, if it is added and
// subtracted again.
const Even = 3 << 22

// Usual reports whether k is the result, of a product that is rounded to the nearest: none of Down,
// Divide, Truncate and Table is set.
func (l *Levels) Usual() bool { return !l.Down && !l.Divide && !l.Truncate && l.Table == nil }

// From returns the levels for places of a row from i on.
func (l *Levels) From(i int) Levels {
	from := *l
	from.Scale, from.Shift = l.Scale[i:], l.Shift[i:]
	if l.Table != nil {
		from.List = l.List[i:]
	}
	return from
}

// Guess returns k for a value in place i of a row.
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

// Number returns how many thresholds a value in place i of a row reaches.
func (l *Levels) Number(x float32, i int) int {
	k := l.Guess(x, i)
	if l.Table != nil && x >= l.Table[int(l.List[i]-l.Offset)+k] {
		k++
	}
	return k
}

// LevelsJob is one call of an assembly kernel that writes the levels of a row of values. The
// kernels rely on the offsets of the fields.
type LevelsJob struct {
	dst, src     unsafe.Pointer
	scale, shift unsafe.Pointer
	table, list  unsafe.Pointer
	n            uintptr
	down         uintptr // 0 or 1, as the next two
	divide       uintptr
	truncate     uintptr
	least, most  float32
	low          float32 // of float32 results; includes the offset
	offset       int32   // of results that are bytes
}

// NewLevelsJob returns the job of a row, or of its first values, of which there is at least one.
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
