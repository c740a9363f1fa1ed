package pixelwise

import (
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/schedule"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// fewThresholds are compared one after the other.
const fewThresholds = 16

// quantize compiles a step that makes whole numbers of floats, or bytes that are the
// numbers of the levels.
func quantize(c *schedule.Context, op *plan.Quantize, shape bcnn.Shape, dtype bcnn.DType) (tiles.Step, tiles.Size) {
	if step, need := quantizeLines(c, op, shape, dtype); step != nil {
		return step, need
	}
	src, dst, n := c.In, c.Out, op.Levels-1
	var ladders []ladder // for all channels or for each
	if n > fewThresholds {
		for list := op.Thresholds; len(list) > 0; list = list[n:] {
			ladders = append(ladders, newLadder(list[:n]))
		}
	}
	do := func(_ *tiles.Scratch, image, from, to int) {
		from, to = (image*shape.Pixels()+from)*shape.C, (image*shape.Pixels()+to)*shape.C
		if in := src.F32[from:to]; dtype == bcnn.Uint8 {
			levels(dst.U8[from:to], in, op, ladders, shape.C, 0)
		} else {
			levels(dst.F32[from:to], in, op, ladders, shape.C, op.Low)
		}
	}
	work := float64(shape.Values()) * float64(min(n, fewThresholds)) / 2
	return c.Pixels("count thresholds", shape.Pixels(), work, do), tiles.Size{}
}

// quantizeLines is quantize of thresholds that arithmetic counts, nil for others. Thresholds that
// are the same are counted as one, and a table has how many those are.
func quantizeLines(c *schedule.Context, op *plan.Quantize, shape bcnn.Shape, dtype bcnn.DType) (tiles.Step, tiles.Size) {
	n := op.Levels - 1
	var reached []float32
	l, wrong := newLevels(c, op.Thresholds, n, shape.C)
	if l == nil && dtype == bcnn.Uint8 {
		var lists []float32
		if lists, reached = distinct(op.Thresholds, n); reached != nil {
			l, wrong = newLevels(c, lists, n*len(lists)/len(op.Thresholds), shape.C)
		}
		if l == nil && len(op.Thresholds) == n {
			if lists, reached = between(op.Thresholds); reached != nil {
				l, wrong = newLevels(c, lists, len(lists), shape.C)
			}
		}
	}
	if l == nil {
		return nil, tiles.Size{}
	}
	set, src, dst := c.Set, c.In, c.Out
	slow := make([]ladder, len(wrong))
	for i, channel := range wrong {
		slow[i] = newLadder(op.Thresholds[channel*n:][:n])
	}
	bytes := func(_ *tiles.Scratch, out []uint8, in []float32) { set.LevelBytes(out, in, l) }
	kernel, need, work := "levels of a line", tiles.Size{}, 2*c.Set.Cost.Value*float64(shape.Values())
	if l.Table != nil {
		kernel += ", compared"
	}
	if reached != nil {
		kernel += ", looked up"
		work *= 1.5
		table, chunk := kern.NewByteTable(reached), len(l.Scale)
		need.Bytes = chunk
		bytes = func(s *tiles.Scratch, out []uint8, in []float32) {
			for ; len(in) > 0; in, out = in[min(chunk, len(in)):], out[min(chunk, len(in)):] {
				some := s.Bytes[:min(chunk, len(in))]
				set.LevelBytes(some, in[:len(some)], l)
				set.LookUpBytes(out[:len(some)], some, table)
			}
		}
	}
	do := func(s *tiles.Scratch, image, from, to int) {
		from, to = (image*shape.Pixels()+from)*shape.C, (image*shape.Pixels()+to)*shape.C
		in := src.F32[from:to]
		if dtype == bcnn.Uint8 {
			bytes(s, dst.U8[from:to], in)
		} else {
			set.LevelFloats(dst.F32[from:to], in, l, float32(op.Low))
		}
		for i, channel := range wrong {
			for p := channel; p < len(in); p += shape.C {
				if k := slow[i].reached(in[p]); dtype == bcnn.Uint8 {
					dst.U8[from+p] = uint8(k)
				} else {
					dst.F32[from+p] = float32(op.Low + k)
				}
			}
		}
	}
	return c.Pixels(kernel, shape.Pixels(), work, do), need
}

// Levels returns the arithmetic for bytes that are numbers of levels, which other kernels may do with values
// in registers. It returns nil where there is none that alone finds all levels.
func Levels(c *schedule.Context, op *plan.Quantize, channels int) *kern.Levels {
	l, wrong := newLevels(c, op.Thresholds, op.Levels-1, channels)
	if len(wrong) > 0 {
		return nil
	}
	return l
}

// distinct returns lists of n thresholds without those that are the one before, if they are so at
// the same places in all lists, and for each byte how many of the n are reached where so many of the
// lists that it returns are. Both are nil where there are none.
func distinct(thresholds []float32, n int) (lists, reached []float32) {
	same := func(k int) bool { // as the one before, in all lists
		for i := k; i < len(thresholds); i += n {
			if thresholds[i] != thresholds[i-1] {
				return false
			}
		}
		return true
	}
	first := []int{0} // of each threshold
	for k := 1; k < n; k++ {
		if !same(k) {
			first = append(first, k)
		}
	}
	if len(first) == n {
		return nil, nil
	}
	for i := 0; i < len(thresholds); i += n {
		for _, k := range first {
			lists = append(lists, thresholds[i+k])
		}
	}
	reached = make([]float32, plan.TableSize)
	for i := range reached {
		reached[i] = float32(n)
		if i < len(first) {
			reached[i] = float32(first[i])
		}
	}
	return lists, reached
}

// between returns thresholds that rise evenly, of which those of the list are some, and for each byte how
// many of the list are reached where so many of those are. Levels that are sums of powers of two have such
// lists (APoT; Li, Dong and Wang, ICLR 2020). Both are nil where there are none.
func between(list []float32) (even, reached []float32) {
	steps := slices.Compact(slices.Clone(list))
	if len(steps) == 1 {
		return nil, nil
	}
	gap := math.Inf(1)
	for i := range steps[1:] {
		gap = min(gap, float64(steps[i+1])-float64(steps[i]))
	}
	for part := 1; even == nil; part++ { // middles of integers are multiples of half of what they differ by
		if part > 4 {
			return nil, nil
		}
		even = onLine(steps, gap/float64(part))
	}
	reached = make([]float32, plan.TableSize)
	k := 0
	for i := range reached {
		for i > 0 && i <= len(even) && k < len(list) && list[k] <= even[i-1] {
			k++
		}
		reached[i] = float32(k)
	}
	return even, reached
}

// onLine returns thresholds so far apart, from the first to the last of steps, which are some of them; nil
// where they are not, or those are too many for a byte.
func onLine(steps []float32, gap float64) []float32 {
	first := float64(steps[0])
	count := (float64(steps[len(steps)-1]) - first) / gap
	if !(count < math.MaxUint8) {
		return nil
	}
	even := make([]float32, int(math.Round(count))+1)
	for i := range even {
		even[i] = float32(first + float64(i)*gap)
	}
	for _, t := range steps {
		at := (float64(t) - first) / gap
		const near = 1e-3
		if math.Abs(at-math.Round(at)) > near {
			return nil
		}
		even[int(math.Round(at))] = t
	}
	return even
}

// levels writes low plus the number of thresholds that each value of pixels reaches.
func levels[T uint8 | float32](out []T, in []float32, op *plan.Quantize, ladders []ladder, channels, low int) {
	n := op.Levels - 1
	shared := len(op.Thresholds) == n
	switch {
	case ladders == nil:
		list := op.Thresholds[:n]
		for i, v := range in {
			if !shared {
				list = op.Thresholds[i%channels*n:][:n]
			}
			level := low
			for _, t := range list {
				reached := 0
				if v >= t {
					reached = 1
				}
				level += reached
			}
			out[i] = T(level)
		}
	case shared:
		for i, v := range in {
			out[i] = T(low + ladders[0].reached(v))
		}
	default:
		for ; len(in) > 0; in, out = in[channels:], out[channels:] {
			for c, v := range in[:channels] {
				out[c] = T(low + ladders[c].reached(v))
			}
		}
	}
}

// ladder is a list of thresholds that do not fall, in which many are found by where they
// would stand if they rose evenly, as those of integers that a factor makes of sums do.
type ladder struct {
	list        []float32
	first, last float32
	// bottom thresholds are the first one, and those from top on the last one; low and high
	// are the ones between, at their ends.
	bottom, top int
	low, high   float32
	scale       float32 // thresholds for a difference of 1, between them
}

func newLadder(list []float32) ladder {
	n := len(list)
	l := ladder{list: list, first: list[0], last: list[n-1], top: n - 1}
	for l.bottom < n && list[l.bottom] == l.first {
		l.bottom++
	}
	for l.top > 0 && list[l.top-1] == l.last {
		l.top--
	}
	if l.bottom < l.top {
		l.low, l.high = list[l.bottom], list[l.top-1]
		l.scale = float32(l.top-1-l.bottom) / (l.high - l.low)
	}
	return l
}

// reached is how many thresholds v reaches.
func (l *ladder) reached(v float32) int {
	switch {
	case !(v >= l.first): // or NaN
		return 0
	case v >= l.last:
		return len(l.list)
	case l.bottom >= l.top || v < l.low:
		return l.bottom
	case v >= l.high:
		return l.top
	}
	// From low on, and below high.
	k := min(max(l.bottom+1+int((v-l.low)*l.scale), l.bottom+1), l.top-1)
	for v < l.list[k-1] {
		k--
	}
	for v >= l.list[k] {
		k++
	}
	return k
}
