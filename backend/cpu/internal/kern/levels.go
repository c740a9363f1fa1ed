package kern

import (
	"math"
	"unsafe"

	"github.com/bitcnn/bitcnn/internal/f32"
)

// Levels computes how many thresholds of a list a value reaches. For value x in place i of a row,
// with y = x, or x rounded down, it is
//
//	k = Offset + round(min(max(p + Shift[i], Least), Most)), p = float32(y·Scale[i])
//
// with ties to even; a NaN counts as Least. With Rest the product has one rounding of 48 bits of a
// factor,
//
//	p = fma(y, Scale[i], float32(y·Rest[i]))
//
// which is what a division by a rounded step gives, at the price of a multiplication. If that may be one less than it should be, Table has
// the threshold of the next level, and 1 is added where x ≥ Table[List[i] + k − Offset].
type Levels struct {
	Scale, Shift []float32 // one for each place of a row
	Rest         []float32 // above 0; nil for none
	Least, Most  float32   // integers from −Offset to 255 − Offset
	Offset       int32
	Down         bool      // x is rounded down
	Truncate     bool      // instead of rounding to the nearest
	Table        []float32 // nil for none
	List         []int32   // one for each place of a row
}

// Even rounds a value of magnitude up to 255 to an integer, ties to even, if it is added and
// subtracted again.
const Even = 3 << 22

// Usual reports whether k is the result, rounded to the nearest: none of Down, Truncate and Table is
// set.
func (l *Levels) Usual() bool { return !l.Down && !l.Truncate && l.Table == nil }

// From returns the levels for places of a row from i on.
func (l *Levels) From(i int) Levels {
	from := *l
	from.Scale, from.Shift = l.Scale[i:], l.Shift[i:]
	if l.Rest != nil {
		from.Rest = l.Rest[i:]
	}
	if l.Table != nil {
		from.List = l.List[i:]
	}
	return from
}

// FakeQuantize makes float32 values of values by way of the numbers k of their levels, as a quantisation
// and its inverse do:
//
//	fma(Low + k, Scale[i], Shift[i])
type FakeQuantize struct {
	Levels       *Levels // Usual
	Low          float32
	Scale, Shift []float32
}

// From returns what is done in places of a row from i on.
func (q *FakeQuantize) From(i int) FakeQuantize {
	levels := q.Levels.From(i)
	return FakeQuantize{&levels, q.Low, q.Scale[i:], q.Shift[i:]}
}

// Guess returns k for a value in place i of a row.
func (l *Levels) Guess(x float32, i int) int {
	if l.Down {
		x = float32(math.Floor(float64(x)))
	}
	y := float32(x * l.Scale[i])
	if l.Rest != nil {
		y = f32.FMA(x, l.Scale[i], float32(x*l.Rest[i]))
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
	down         uintptr // 0 or 1
	rest         unsafe.Pointer
	truncate     uintptr // 0 or 1
	least, most  float32
	low          float32 // of float32 results; includes the offset
	offset       int32   // of results that are bytes
}

// NewLevelsJob returns a job without values, which LevelsOf gives it.
func NewLevelsJob(l *Levels, low float32) LevelsJob {
	j := LevelsJob{
		scale: unsafe.Pointer(&l.Scale[0]), shift: unsafe.Pointer(&l.Shift[0]),
		least: l.Least, most: l.Most, low: low + float32(l.Offset), offset: l.Offset,
	}
	if l.Rest != nil {
		j.rest = unsafe.Pointer(&l.Rest[0])
	}
	if l.Table != nil {
		j.table, j.list = unsafe.Pointer(&l.Table[0]), unsafe.Pointer(&l.List[0])
	}
	if l.Down {
		j.down = 1
	}
	if l.Truncate {
		j.truncate = 1
	}
	return j
}

// LevelsOf makes j the job of a row of values, or of its first ones, of which there is at least one.
func LevelsOf[T uint8 | float32](j *LevelsJob, dst []T, src []float32) {
	j.dst, j.src, j.n = unsafe.Pointer(&dst[:len(src)][0]), unsafe.Pointer(&src[0]), uintptr(len(src))
}

// Address is what the assembly takes.
func (j *LevelsJob) Address() *uint8 { return (*uint8)(unsafe.Pointer(j)) }
