package bcnn

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/bitcnn/bitcnn/internal/f32"
)

// What functions of one value make of a byte has at most 256 values for a channel, so any
// chain of steps that treat the bytes of an input one by one is a table.

// TableSize is the number of values that a byte can have.
const TableSize = 256

// TableStep looks up the Uint8 values of an input: of value x of channel c it makes
//
//	Float32: Values[x], or Values[256·c + x] where every channel has a table
//	Bits:    the same as a whole number from 0 to 2^Planes − 1, in its planes
type TableStep struct {
	Values []float32
	Planes int // of Bits; 0 means 1
}

func (*TableStep) stepKind() string { return "table" }

// Of returns the values of all bytes of a channel.
func (t *TableStep) Of(channel int) []float32 {
	return t.Values[channel*TableSize%len(t.Values):][:TableSize]
}

// check returns the shape of the output.
func (t *TableStep) check(in Shape, out DType) (Shape, error) {
	if len(t.Values) != TableSize && int64(len(t.Values)) != TableSize*int64(in.C) {
		return in, fmt.Errorf("%d values of bytes of %d channels", len(t.Values), in.C)
	}
	if out != Bits {
		if t.Planes != 0 {
			return in, fmt.Errorf("%d planes of %v", t.Planes, out)
		}
		return in, nil
	}
	if err := checkPlanes(t.Planes, 0); err != nil {
		return in, err
	}
	planes := max(t.Planes, 1)
	for i, v := range t.Values {
		if !(v >= 0 && v < float32(int(1)<<planes)) || v != float32(int(v)) {
			return in, fmt.Errorf("value %d, %v, is no number of %d planes", i, v, planes)
		}
	}
	in.H *= planes
	return in, nil
}

// maxTables is how many channels may have a table each: those of images. A kilobyte for
// every channel of a long vector would neither be small nor fast.
const maxTables = 16

// look is a run of steps, each of which alone reads the one before, that starts at the
// bytes of an input.
type look struct {
	steps []int
	each  bool // channels differ
}

// tables puts one look-up in the place of each run of steps that treat bytes one by one.
// It computes what they compute.
func (lo *lowering) tables() error {
	p := lo.plan
	readers, ends := make([]int, len(p.Tensors)), p.Ends()
	for _, s := range p.Steps {
		for _, t := range s.In {
			readers[t]++
		}
	}
	runs := make(map[int]*look) // by the tensor that a run ends in
	var all []*look
	for i, s := range p.Steps {
		in := s.In[0]
		run := runs[in]
		if _, affine := s.Op.(*AffineStep); affine && in < len(p.Inputs) && p.Tensors[in].DType == Uint8 {
			run = &look{}
			all = append(all, run)
		} else if run == nil || !perValue(s.Op) || p.Tensors[s.Out].DType == Uint8 || readers[in] != 1 || ends[in] {
			continue
		}
		each, err := lo.differs(s.Op)
		if err != nil {
			return err
		}
		if each = each || run.each; each && p.Tensors[in].Shape.C > maxTables {
			continue
		}
		run.steps, run.each = append(run.steps, i), each
		delete(runs, in)
		if p.Tensors[s.Out].DType == Float32 {
			runs[s.Out] = run
		}
	}
	gone := make([]bool, len(p.Steps))
	changed := false
	for _, run := range all {
		done, err := lo.lookUp(run)
		if err != nil {
			return err
		}
		if done {
			changed = true
			for _, i := range run.steps[1:] {
				gone[i] = true
			}
		}
	}
	if !changed {
		return nil
	}
	var kept []Step
	for i, s := range p.Steps {
		if !gone[i] {
			kept = append(kept, s)
		}
	}
	lo.renumber(kept)
	return nil
}

// costly reports whether a step takes longer than a look-up of each value.
func costly(op StepOp) bool {
	switch op := op.(type) {
	case *AffineStep:
		return op.Activation.Kind == ActivationFunction
	case *SignStep:
		return op.Planes > 1
	}
	return true
}

// perValue reports whether a step treats values one by one.
func perValue(op StepOp) bool {
	switch op.(type) {
	case *AffineStep, *SignStep, *QuantizeStep:
		return true
	}
	return false
}

// differs reports whether a step that treats values one by one does so for each channel in
// its own way.
func (lo *lowering) differs(op StepOp) (bool, error) {
	var lists [][]float32
	switch op := op.(type) {
	case *AffineStep:
		lists = [][]float32{op.Scale, op.Shift, op.Activation.Slope}
	case *QuantizeStep:
		return len(op.Thresholds) >= op.Levels, nil
	case *SignStep:
		n := len(op.Threshold.F32) / max(1<<max(op.Planes, 1)-1, 1)
		for list := op.Threshold.F32; len(list) > 0; list = list[n:] {
			lists = append(lists, list[:n])
		}
		if op.Threshold.Flip != nil {
			return true, nil
		}
	}
	for _, list := range lists {
		if i := slices.IndexFunc(list, func(v float32) bool { return v != list[0] }); i >= 0 {
			return true, lo.Charge(int64(i))
		}
		if err := lo.Charge(int64(len(list))); err != nil {
			return false, err
		}
	}
	return false, nil
}

// lookUp makes the first step of a run stand for all of it, where that is faster, and
// reports whether it is.
func (lo *lowering) lookUp(run *look) (bool, error) {
	p := lo.plan
	if len(run.steps) == 0 {
		return false, nil
	}
	s, last := &p.Steps[run.steps[0]], p.Steps[run.steps[len(run.steps)-1]]
	sign, toBits := last.Op.(*SignStep)
	worth := slices.ContainsFunc(run.steps, func(i int) bool { return costly(p.Steps[i].Op) })
	if !worth && !toBits {
		return false, nil
	}
	channels, tables := p.Tensors[s.In[0]].Shape.C, 1
	if run.each {
		tables = channels
	}
	if err := lo.hold(4 * TableSize * int64(tables)); err != nil {
		return false, err
	}
	table := &TableStep{Values: make([]float32, TableSize*tables)}
	for i := range table.Values {
		table.Values[i] = float32(i % TableSize)
	}
	var layers []int
	for _, step := range run.steps {
		if err := lo.Charge(int64(len(table.Values))); err != nil {
			return false, err
		}
		for i, v := range table.Values {
			table.Values[i] = valueOf(p.Steps[step].Op, v, i/TableSize, channels)
		}
		layers = append(layers, p.Steps[step].Layers...)
	}
	var op StepOp = table
	if toBits {
		table.Planes = sign.Planes
		if threshold := table.threshold(channels); threshold != nil {
			op = &BinarizeStep{Scheme: SchemeThreshold, Threshold: threshold}
		} else if !worth {
			return false, nil
		}
	}
	s.Op, s.Out = op, last.Out
	return true, lo.name(s, &p.Tensors[s.Out], layers)
}

// valueOf is what a step makes of a value of a channel; of Bits, the number of its planes.
func valueOf(op StepOp, v float32, c, channels int) float32 {
	switch op := op.(type) {
	case *AffineStep:
		if op.Scale != nil {
			v = f32.FMA(v, op.Scale[c], op.Shift[c])
		}
		return op.Activation.Of(v, c)
	case *QuantizeStep:
		n := op.Levels - 1
		list := op.Thresholds[c*n%len(op.Thresholds):][:n]
		return float32(op.Low + sort.Search(n, func(k int) bool { return !(v >= list[k]) }))
	case *SignStep:
		list, planes := op.Threshold.F32, max(op.Planes, 1)
		reached := sort.Search(len(list)/channels, func(k int) bool { return !(v >= list[k*channels+c]) })
		if flip := op.Threshold.Flip; flip != nil && flip[c/64]>>(c%64)&1 == 1 {
			reached ^= 1<<planes - 1
		}
		return float32(reached)
	}
	return v
}

// threshold returns a table of single bits as thresholds, or nil where bits change more
// than once.
func (t *TableStep) threshold(channels int) *Threshold {
	if t.Planes > 1 {
		return nil
	}
	out := &Threshold{I32: make([]int32, channels)}
	flips := newFlips(channels)
	for c := range channels {
		values := t.Of(c)
		at := 1
		for at < TableSize && values[at] == values[0] {
			at++
		}
		if slices.ContainsFunc(values[min(at, TableSize-1):], func(v float32) bool { return v != values[TableSize-1] }) {
			return nil
		}
		switch {
		case at < TableSize:
			out.I32[c] = int32(at)
			flips.set(c, values[0] == 1)
		case values[0] == 1:
			out.I32[c] = math.MinInt32
		default:
			out.I32[c] = math.MaxInt32
		}
	}
	out.Flip = flips.words()
	return out
}

// renumber gives the plan other steps, and keeps the tensors that they write.
func (lo *lowering) renumber(steps []Step) {
	p := lo.plan
	to := make([]int, len(p.Tensors))
	tensors := p.Tensors[:len(p.Inputs):len(p.Inputs)]
	for t := range p.Inputs {
		to[t] = t
	}
	for i := range steps {
		s := &steps[i]
		in := make([]int, len(s.In))
		for k, t := range s.In {
			in[k] = to[t]
		}
		to[s.Out] = len(tensors)
		tensors = append(tensors, p.Tensors[s.Out])
		s.In, s.Out = in, to[s.Out]
	}
	for i, t := range p.Outputs {
		p.Outputs[i] = to[t]
	}
	p.Steps, p.Tensors = steps, tensors
}
