package pixelwise

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/internal/num"
)

// Thresholds that rise about evenly are counted by arithmetic. The guess of a kern.Levels
// does not fall as values rise, so that it is right for all values if it is right at each
// threshold and at the float32 just below: that is tried out for each list.

// levelForm is how levels are guessed.
type levelForm struct {
	down, rest, truncate bool // see kern.Levels
	after                bool // what is added is, after rounding
	late                 bool // guesses may be one less than the level
}

// levelForms are tried in turn, the cheapest first: of those that multiply and
// round, then for thresholds that are whole, which need not be as exact, and at last the
// guess that the next threshold is looked up for.
var levelForms = []levelForm{
	{}, {truncate: true}, {after: true}, {rest: true}, {rest: true, truncate: true}, {rest: true, after: true}, {down: true}, {late: true},
}

// newLevels returns the arithmetic for lists of n thresholds, for all channels or each of
// them, in rows of some pixels. Channels of the lists in wrong are to be done otherwise.
// It returns nil where they are many.
func newLevels(c *schedule.Context, thresholds []float32, n, channels int) (l *kern.Levels, wrong []int) {
	lists := len(thresholds) / n
	pixels := max(1, affineValues/channels)
	if n > math.MaxUint8 || !c.Reserve(num.Product(16, pixels, channels)+num.Product(4, lists, n+1)) {
		return nil, nil
	}
	lines := make([]evenly, lists)
	for i := range lines {
		lines[i] = line(thresholds[i*n:][:n])
		if c.Ended() {
			return nil, nil
		}
	}
	for _, form := range levelForms {
		l, wrong = form.levels(n, lines[0]), nil
		for i, even := range lines {
			if c.Ended() {
				return nil, nil
			}
			list := thresholds[i*n:][:n]
			scale, rest, shift, ok := form.guess(l, list, even)
			if !ok {
				wrong = append(wrong, i)
			}
			if 4*len(wrong) > lists || !ok && !form.late {
				break
			}
			l.Scale, l.Shift = append(l.Scale, scale), append(l.Shift, shift)
			if form.rest {
				l.Rest = append(l.Rest, rest)
			}
			if form.late {
				l.List = append(l.List, int32(len(l.Table)))
				l.Table = append(append(l.Table, list...), float32(math.NaN()))
			}
		}
		if len(wrong) == 0 || form.late && 4*len(wrong) <= lists {
			repeat := pixels
			if lists == 1 {
				repeat *= channels
			}
			l.Scale, l.Shift = slices.Repeat(l.Scale, repeat), slices.Repeat(l.Shift, repeat)
			l.List = slices.Repeat(l.List, repeat)
			if form.rest {
				l.Rest = slices.Repeat(l.Rest, repeat)
			}
			return l, wrong
		}
	}
	return nil, nil
}

// levels returns what is common to lists of n thresholds, the first of which is near a line.
func (form levelForm) levels(n int, even evenly) *kern.Levels {
	l := &kern.Levels{Most: float32(n), Down: form.down, Truncate: form.truncate}
	if offset := math.Round(even.shift(-0.5)); form.after && offset > 0 && offset <= float64(n) {
		l.Offset, l.Least, l.Most = int32(offset), float32(-offset), float32(float64(n)-offset)
	}
	return l
}

// guess returns the scale, its rest and the shift that guess levels, and whether they do.
func (form levelForm) guess(l *kern.Levels, list []float32, even evenly) (scale, rest, shift float32, ok bool) {
	if !(even.step > 0) || math.IsInf(even.first, 0) || math.IsInf(even.step, 0) {
		return 1, 1, 0, false
	}
	move := -0.5 // to what is rounded up
	switch {
	case form.late: // as far from one more as from one less
		move = -1
	case form.down: // between a whole threshold and the number below
		move = -0.5 + 0.5/even.step
	case form.truncate:
		move = 0
	}
	raw := even.shift(move) - float64(l.Offset)
	scale = float32(1 / even.step)
	if form.late || form.down {
		return scale, 0, float32(raw), form.holds(l, list, scale, 0, float32(raw))
	}
	// Shifts and factors as quantisers have them.
	for _, shift := range []float32{float32(math.Round(2*raw) / 2), float32(raw)} {
		for _, by := range []int32{0, 1, -1, 2, -2} {
			s, r := neighbour(scale, by), float32(0)
			if form.rest {
				s, r = reciprocal(neighbour(float32(even.step), by))
			}
			if form.holds(l, list, s, r, shift) {
				return s, r, shift, true
			}
		}
	}
	return scale, 1, float32(raw), false
}

// neighbour returns the float32 that is so many places from a positive one.
func neighbour(x float32, places int32) float32 {
	return math.Float32frombits(uint32(int32(math.Float32bits(x)) + places))
}

// reciprocal returns the largest float32 below 1/x, and the rest as another: the sum has the first 48
// bits. The rest is positive, so that products with both do not fall as values rise, and neither do their
// rounded sums; that of an infinite value is infinite.
func reciprocal(x float32) (scale, rest float32) {
	y := 1 / float64(x)
	scale = float32(y)
	if float64(scale) >= y {
		scale = math.Nextafter32(scale, 0)
	}
	return scale, float32(y - float64(scale))
}

// holds reports whether a scale, its rest and a shift guess the levels of a list for every value.
func (form levelForm) holds(l *kern.Levels, list []float32, scale, rest, shift float32) bool {
	if !(scale > 0) || math.IsInf(float64(scale), 0) || math.IsInf(float64(shift), 0) || math.IsNaN(float64(shift)) {
		return false
	}
	one := *l
	one.Scale, one.Shift = []float32{scale}, []float32{shift}
	if form.rest {
		if !(rest > 0) || math.IsInf(float64(rest), 0) {
			return false
		}
		one.Rest = []float32{rest}
	}
	less := 0
	if form.late {
		less = 1
	}
	for k, t := range list { // from t on, k + 1 are reached
		if one.Guess(t, 0) < k+1-less || one.Guess(math.Nextafter32(t, float32(math.Inf(-1))), 0) > k {
			return false
		}
	}
	return true
}

// evenly is the line first + step·k, for k from 1 on.
type evenly struct{ first, step float64 }

// shift is what is added to values times 1/step so that level k begins at k + move.
func (e evenly) shift(move float64) float64 { return -e.first/e.step + move }

// line returns the line whose largest distance from the values of a list is the least.
func line(list []float32) (e evenly) {
	n := len(list)
	if t := float64(list[0]); n == 1 {
		step := max(math.Abs(t), math.SmallestNonzeroFloat32)
		return evenly{t - step, step}
	}
	above, below := hull(list, 1), hull(list, -1)
	best := math.Inf(1)
	for _, corners := range [][]int{above, below} {
		for i := 1; i < len(corners); i++ {
			a, b := corners[i-1], corners[i]
			m := (float64(list[b]) - float64(list[a])) / float64(b-a)
			high, low := math.Inf(-1), math.Inf(1)
			for _, k := range above {
				high = max(high, float64(list[k])-m*float64(k))
			}
			for _, k := range below {
				low = min(low, float64(list[k])-m*float64(k))
			}
			if high-low < best {
				best, e = high-low, evenly{low + (high-low)/2 - m, m}
			}
		}
	}
	return e // a NaN or an infinite value leaves them 0
}

// hull returns the corners of the values of a list as seen from above, or, with sign −1,
// from below.
func hull(list []float32, sign float64) []int {
	var corners []int
	for k := range list {
		for len(corners) > 1 {
			a, b := corners[len(corners)-2], corners[len(corners)-1]
			if sign*(float64(list[b])-float64(list[a]))*float64(k-a) > sign*(float64(list[k])-float64(list[a]))*float64(b-a) {
				break
			}
			corners = corners[:len(corners)-1]
		}
		corners = append(corners, k)
	}
	return corners
}
