package modelfile

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Thresholds of many levels mostly lie on a line, rounded: the levels are equally far apart in
// what is rounded to them. So a file has the line of each channel, where it gives back all bits.

// Roundings of the numbers on a line.
const (
	roundUp   = "up"   // to the next integer, or the next part of one
	roundNear = "near" // to the nearest float32
)

// fewestLevels is the least number of levels of which lines are worth their names.
const fewestLevels = 16

// lines describe the thresholds of channels, n each.
type lines struct {
	rounding string
	parts    int       // of an integer, 1 to mostParts
	knee     int       // where a second line begins, 0 if there is none
	ends     []float64 // the first number and the step of each line of each channel
	bounds   []float32 // the least and the greatest threshold of each channel; empty if there are none
	shifts   []int8    // what is added to each threshold, in integers or float32 numbers; empty for 0

	scratch []float32 // thresholds of a channel
}

// channel writes the thresholds of channel c.
func (l *lines) channel(out []float32, c int) {
	low, high := float32(math.Inf(-1)), float32(math.Inf(1))
	if len(l.bounds) > 0 {
		low, high = l.bounds[2*c], l.bounds[2*c+1]
	}
	var shifts []int8
	if len(l.shifts) > 0 {
		shifts = l.shifts[c*len(out):][:len(out)]
	}
	ends := l.ends[c*l.each():][:l.each()]
	if l.knee > 0 {
		l.line(out[:l.knee], shifts[:min(l.knee, len(shifts))], ends[0], ends[1], low, high)
		out, shifts, ends = out[l.knee:], shifts[min(l.knee, len(shifts)):], ends[2:]
	}
	l.line(out, shifts, ends[0], ends[1], low, high)
}

// line writes the thresholds of one line, between bounds. Products and sums are both rounded, on every
// machine.
func (l *lines) line(out []float32, shifts []int8, first, step float64, low, high float32) {
	parts, none := float64(l.parts), 0.0 // which makes +0 of −0
	switch {
	case l.rounding == roundUp && len(shifts) > 0:
		for k := range out {
			out[k] = min(max(float32((math.Ceil(float64(step*float64(k))+first)+float64(shifts[k]))/parts), low), high)
		}
	case l.rounding == roundUp:
		for k := range out {
			out[k] = min(max(float32((math.Ceil(float64(step*float64(k))+first)+none)/parts), low), high)
		}
	case len(shifts) > 0:
		for k := range out {
			out[k] = min(max(unordered(ordered(float32(float64(step*float64(k))+first))+int64(shifts[k])), low), high)
		}
	default:
		for k := range out {
			out[k] = min(max(float32(float64(step*float64(k))+first), low), high)
		}
	}
}

// each is how many numbers describe the lines of a channel.
func (l *lines) each() int {
	if l.knee > 0 {
		return 4
	}
	return 2
}

// ordered numbers all float32 in their order, from 0 for 0 on.
func ordered(x float32) int64 {
	b := int64(math.Float32bits(x))
	if b>>31 != 0 {
		return -(b & math.MaxInt32)
	}
	return b
}

// unordered is the float32 of a number; one out of range is infinite, or no number.
func unordered(n int64) float32 {
	if n < 0 {
		return -math.Float32frombits(uint32(-n))
	}
	return math.Float32frombits(uint32(n))
}

// thresholds returns all thresholds, n of each channel.
func (l *lines) thresholds(n int) []float32 {
	out := make([]float32, len(l.ends)/l.each()*n)
	for c := range len(out) / n {
		l.channel(out[c*n:][:n], c)
	}
	return out
}

// lined returns the lines of thresholds, n of each channel, nil if they do not give back every bit
// in less bytes. Integers that are rounded away from 0 lie on two, one on each side of a level.
func lined(list []float32, n, level int) *lines {
	if n < fewestLevels-1 || len(list)%n != 0 {
		return nil
	}
	l := &lines{rounding: roundUp, parts: partsOf(list)}
	if l.parts == 0 {
		l.rounding, l.parts = roundNear, 1
	}
	if l.exact(list, n, 0) || l.exact(list, n, level) {
		return l
	}
	for knee := range l.knees(list, n) {
		if l.exact(list, n, knee) {
			return l
		}
	}
	// Of those beside a line it is told how far.
	l.knee = 0
	l.fitAll(list, n, true)
	near := l.thresholds(n)
	l.shifts = make([]int8, len(list))
	for i, t := range list {
		y := near[i]
		d := int64(math.Round((float64(t) - float64(y)) * float64(l.parts)))
		if l.rounding == roundNear {
			d = ordered(t) - ordered(y)
		}
		if d != int64(int8(d)) {
			return nil
		}
		l.shifts[i] = int8(d)
	}
	if !l.all(list, n) {
		return nil
	}
	return l
}

// exact fits lines, and reports whether they give back all bits.
func (l *lines) exact(list []float32, n, knee int) bool {
	if knee < 0 || knee >= n {
		return false
	}
	l.knee = knee
	for _, bounded := range []bool{false, true} {
		if l.fitAll(list, n, bounded) {
			return true
		}
	}
	return false
}

// fitAll fits a line, or two, to the thresholds of each channel, until one does not give them back
// unless it is bounded.
func (l *lines) fitAll(list []float32, n int, bounded bool) (exact bool) {
	channels := len(list) / n
	l.ends, l.bounds, exact = make([]float64, 0, l.each()*channels), nil, true
	for c := range channels {
		t := list[c*n:][:n]
		if bounded {
			l.bounds = append(l.bounds, t[0], t[n-1])
		}
		l.fitEach(t, false)
		if bounded && !l.matches(c, t) {
			l.ends = l.ends[:c*l.each()]
			l.fitEach(t, true)
		}
		if exact = exact && l.matches(c, t); !exact && !bounded {
			break
		}
	}
	return exact
}

// fitEach fits the line of a channel, or both.
func (l *lines) fitEach(t []float32, bounded bool) {
	for _, part := range [][]float32{t[:l.knee], t[l.knee:]} {
		if len(part) > 0 {
			first, step := l.fit(part, bounded)
			l.ends = append(l.ends, first, step)
		}
	}
}

// knees yields where the second line of the first channel may begin that does not lie on one.
func (l *lines) knees(list []float32, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; len(list) > 0; list = list[n:] {
			one := &lines{rounding: l.rounding, parts: l.parts}
			if one.exact(list[:n], n, 0) {
				continue
			}
			for knee := 1; knee < n; knee++ {
				if one.exact(list[:n], n, knee) && !yield(knee) {
					return
				}
			}
			return
		}
	}
}

// all reports whether the lines give back all bits.
func (l *lines) all(list []float32, n int) bool {
	for c := range len(list) / n {
		if !l.matches(c, list[c*n:][:n]) {
			return false
		}
	}
	return true
}

// mostParts is the largest number of parts of an integer.
const mostParts = 1 << 12

// partsOf returns the least number of parts of integers of which all of a list consist, rounded to
// float32; 0 if there is none.
func partsOf(list []float32) int {
	for parts := 1; parts <= mostParts; parts++ {
		if !slices.ContainsFunc(list, func(t float32) bool {
			return math.Abs(float64(t)) > 1<<40 || t != float32(math.Round(float64(t)*float64(parts))/float64(parts))
		}) {
			return parts
		}
	}
	return 0
}

// matches reports whether a channel's line gives back all bits of its thresholds.
func (l *lines) matches(c int, t []float32) bool {
	l.scratch = slices.Grow(l.scratch[:0], len(t))[:len(t)]
	l.channel(l.scratch, c)
	for k, want := range t {
		if math.Float32bits(l.scratch[k]) != math.Float32bits(want) {
			return false
		}
	}
	return true
}

// around returns the numbers between which those lie that are rounded to t.
func (l *lines) around(t float32) (below, above float64) {
	if l.rounding == roundUp {
		whole := math.Round(float64(t) * float64(l.parts))
		return whole - 1, whole
	}
	less, more := math.Nextafter32(t, float32(math.Inf(-1))), math.Nextafter32(t, float32(math.Inf(1)))
	return (float64(less) + float64(t)) / 2, (float64(t) + float64(more)) / 2
}

// fit returns a line on which thresholds lie, if there is one, else one that is near them. Where they
// are bounded, those that are equal at both ends may lie beyond them.
func (l *lines) fit(t []float32, bounded bool) (first, step float64) {
	i, j := 0, len(t)-1 // the ends of the line
	if bounded {
		for i < j && t[i+1] == t[0] {
			i++
		}
		for j > i && t[j-1] == t[len(t)-1] {
			j--
		}
		if j-i > 3 { // of the last ones that are equal only one side is known
			i, j = i+1, j-1
		}
	}
	of := func(k int) float64 { return float64(t[k]) }
	if l.rounding == roundUp {
		of = func(k int) float64 { return math.Round(float64(t[k]) * float64(l.parts)) }
	}
	from, to := of(i), of(j)
	if i == j {
		return from, 0
	}
	// A line is known by how far from t[i] and t[j] it is there: u and v. Each threshold leaves a
	// strip of them, and all strips a polygon, of which the middle is taken.
	rise := (to - from) / float64(j-i)
	polygon := make([][2]float64, 0, 16)
	spare := make([][2]float64, 0, 16)
	lowI, highI := l.around(t[i])
	lowJ, highJ := l.around(t[j])
	polygon = append(polygon, [2]float64{lowI - from, lowJ - to}, [2]float64{highI - from, lowJ - to},
		[2]float64{highI - from, highJ - to}, [2]float64{lowI - from, highJ - to})
	for k := max(i-1, 0); k <= min(j+1, len(t)-1); k++ {
		part := float64(k-i) / float64(j-i)
		at := from + rise*float64(k-i) // of the line through both
		low, high := l.around(t[k])
		cut := func(sign, bound float64) {
			// sign·(u·(1 − part) + v·part) ≤ bound
			side := func(p [2]float64) float64 { return bound - sign*(p[0]*(1-part)+p[1]*part) }
			spare = spare[:0]
			for n, p := range polygon {
				q := polygon[(n+1)%len(polygon)]
				a, b := side(p), side(q)
				if a >= 0 {
					spare = append(spare, p)
				}
				if a > 0 && b < 0 || a < 0 && b > 0 {
					w := a / (a - b)
					spare = append(spare, [2]float64{p[0] + w*(q[0]-p[0]), p[1] + w*(q[1]-p[1])})
				}
			}
			if len(spare) > 0 { // else there is no such line
				polygon, spare = spare, polygon
			}
		}
		if k <= j {
			cut(1, high-at)
		}
		if k >= i {
			cut(-1, at-low)
		}
	}
	var u, v float64
	for _, p := range polygon {
		u, v = u+p[0]/float64(len(polygon)), v+p[1]/float64(len(polygon))
	}
	step = (to + v - from - u) / float64(j-i)
	return from + u - step*float64(i), step
}

// levelThresholds writes, or reads, the thresholds of levels.
func levelThresholds(f fields, op *bcnn.Quantize) {
	var rounding *string
	var parts, knee int
	w, writes := f.(*layerWriter)
	var l *lines
	if writes && w.packs {
		if l = lined(op.Thresholds, op.Levels-1, -op.Low); l != nil {
			rounding, knee = &l.rounding, l.knee
			if l.parts > 1 {
				parts = l.parts
			}
		}
	}
	p := quantizeJSON{&op.Low, &op.Levels, rounding, parts, knee}
	if f.scalars(&p); p.Line == nil {
		f.floats(thresholds, &op.Thresholds)
		return
	}
	if writes {
		w.packed()
		w.add(lineEnds, &tensor{dtype: f64, shape: []int64{int64(len(l.ends) / l.each()), int64(l.each())}, f64: l.ends})
		w.floats(lineBounds, &l.bounds)
		w.add(lineShifts, &tensor{dtype: i8, shape: []int64{int64(len(l.shifts))}, i8: l.shifts})
		return
	}
	r := f.(*layerReader)
	if r.err == nil {
		op.Thresholds, r.err = r.lined(&p)
	}
}

// lined reads the lines of thresholds, and returns these.
func (r *layerReader) lined(p *quantizeJSON) ([]float32, error) {
	if err := p.checkLine(r.version); err != nil {
		return nil, err
	}
	l := &lines{rounding: *p.Line, parts: max(p.Parts, 1), knee: p.Knee}
	n := *p.Levels - 1
	if err := r.describe(l, n); err != nil {
		return nil, err
	}
	bytes := 4 * int64(n) * int64(len(l.ends)/l.each())
	if err := r.room(bytes); err != nil {
		return nil, err
	}
	if err := r.Charge(lineWork * bytes); err != nil {
		return nil, err
	}
	return l.thresholds(n), nil
}

// checkLine checks the params of lines.
func (p *quantizeJSON) checkLine(version int) error {
	rounding, parts, levels := *p.Line, p.Parts, *p.Levels
	switch {
	case version < packedVersion:
		return fmt.Errorf("lines need version %d of the format, this file has version %d", packedVersion, version)
	case rounding != roundUp && rounding != roundNear:
		return fmt.Errorf("line is %s, want %q or %q", text.Quote(rounding), roundUp, roundNear)
	case parts < 0 || parts > mostParts || parts > 0 && rounding != roundUp:
		return fmt.Errorf("parts = %d with line %q, want at most %d, with %q", parts, rounding, mostParts, roundUp)
	case p.Knee < 0 || p.Knee > 0 && p.Knee >= levels-1:
		return fmt.Errorf("knee = %d, want less than %d thresholds", p.Knee, levels-1)
	case levels < 2 || levels > bcnn.MaxLevels:
		return fmt.Errorf("%d levels, want 2 to %d", levels, bcnn.MaxLevels)
	}
	return nil
}

// describe reads the tensors of lines of n thresholds each.
func (r *layerReader) describe(l *lines, n int) error {
	ends, err := r.take(lineEnds)
	if err != nil {
		return err
	}
	if ends == nil || ends.dtype != f64 || len(ends.shape) != 2 || ends.shape[1] != int64(l.each()) {
		return fmt.Errorf("%s: no tensor of %s with %d numbers of each channel", lineEnds, f64, l.each())
	}
	l.ends, l.bounds, l.shifts = ends.f64, r.vector(lineBounds, f32).f32, r.vector(lineShifts, i8).i8
	if r.err != nil {
		return r.err
	}
	channels := len(l.ends) / l.each()
	if b := len(l.bounds); b != 0 && b != 2*channels {
		return fmt.Errorf("%s: %d numbers, want two for each of %d channels", lineBounds, b, channels)
	}
	if s := len(l.shifts); s != 0 && s != n*channels {
		return fmt.Errorf("%s: %d numbers, want %d for each of %d channels", lineShifts, s, n, channels)
	}
	for _, v := range l.ends {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s: it holds %v", lineEnds, v)
		}
	}
	if slices.ContainsFunc(l.bounds, func(v float32) bool { return math.IsNaN(float64(v)) }) {
		return fmt.Errorf("%s: it holds NaN", lineBounds)
	}
	return nil
}

// lineWork is what computing and checking a byte of a threshold takes, in units of budget.Budget: nothing of it
// is read.
const lineWork = 12

// room charges for what a tensor of a file becomes, of so many bytes.
func (r *layerReader) room(bytes int64) error {
	if bytes > r.limits.TensorBytes {
		return fmt.Errorf("a tensor takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", bytes, r.limits.TensorBytes)
	}
	return r.Charge(bytes)
}
