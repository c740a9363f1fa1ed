package lower

import (
	"math"
	"slices"
	"sort"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// maxTables is the largest number of channels that have a table each, enough for images. A kilobyte
// for every channel of a long vector would be neither small nor fast.
const maxTables = 16

// tabled describes a tensor whose values are functions of the bytes in the same places of another
// tensor.
type tabled struct {
	of     int       // the tensor of bytes; −1 if there is none
	each   bool      // the function differs by channel
	costly bool      // a step of the function takes longer than a look-up
	stays  bool      // the tensor stays in the plan: an output, or read by other steps
	begins bool      // a tensor of bytes that others are functions of
	values []float32 // of the function, for each byte
}

// tables replaces steps of a plan by look-ups.
type tables struct {
	*lowering
	all   []tabled    // by tensor
	graph *plan.Graph // of the plan before
}

// tables replaces steps that treat bytes one by one, of an input or of levels, by look-ups: several
// of them, and sums and products among them, become one. Levels that only such steps read become
// bytes if a look-up is worth it. Results stay the same.
func (lo *lowering) tables() error {
	p := lo.plan
	bytes := slices.ContainsFunc(p.Tensors, func(t plan.Tensor) bool { return t.DType == bcnn.Uint8 })
	if !bytes && !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { _, levels := s.Op.(*plan.Quantize); return levels }) {
		return nil
	}
	t := &tables{lowering: lo, all: make([]tabled, len(p.Tensors)), graph: plan.NewGraph(p)}
	t.find()
	worth := make([]bool, len(p.Tensors)) // by tensor of bytes
	for out, f := range t.all {
		if f.of >= 0 && f.stays && (f.costly || p.Tensors[out].DType == bcnn.Bits && p.Tensors[f.of].DType == bcnn.Uint8) {
			worth[f.of] = true
		}
	}
	before := slices.Clone(p.Steps)
	looked := make([]bool, len(p.Steps))
	for i := range p.Steps {
		if of := t.all[p.Steps[i].Out].of; of >= 0 && worth[of] {
			var err error
			if looked[i], err = t.lookUp(&p.Steps[i]); err != nil {
				return err
			}
		}
	}
	if !slices.Contains(looked, true) {
		return nil
	}
	for in := range worth {
		if worth[in] && p.Tensors[in].DType == bcnn.Float32 {
			p.Tensors[in].DType, p.Tensors[in].Coded = bcnn.Uint8, true
		}
	}
	return t.drop(before, looked)
}

// find finds out which tensors are functions of bytes.
func (t *tables) find() {
	p := t.plan
	each := make([]bool, len(p.Steps))
	for i, s := range p.Steps {
		each[i] = differs(s.Op)
	}
	// bytes reports whether levels may be bytes: all steps that read them take one at a time.
	bytes := func(out int) bool {
		return !slices.ContainsFunc(t.graph.Readers[out], func(i int) bool {
			s := p.Steps[i]
			return len(s.In) > 1 || !perValue(s.Op) || each[i] && t.many(s)
		})
	}
	for in := range p.InputTensors() {
		t.all[in] = tabled{of: -1, begins: p.Tensors[in].DType == bcnn.Uint8}
	}
	for i, s := range p.Steps {
		f := t.function(s, each[i])
		_, levels := s.Op.(*plan.Quantize)
		isBytes := p.Tensors[s.Out].DType == bcnn.Uint8
		switch {
		case f.of < 0:
			f = tabled{of: -1, begins: isBytes || levels && !t.graph.IsEnd(s.Out) && bytes(s.Out)}
		case isBytes && !bytes(s.Out): // the bytes stay in any case
			f.begins = true
		}
		f.stays = t.graph.IsEnd(s.Out) || f.begins || p.Tensors[s.Out].DType == bcnn.Bits
		t.all[s.Out] = f
		if f.of < 0 || f.begins {
			for _, in := range s.In {
				t.all[in].stays = t.all[in].stays || f.of < 0
			}
		}
	}
}

// many reports whether the output of a step has more channels than there may be tables.
func (t *tables) many(s plan.Step) bool { return t.plan.Tensors[s.Out].Shape.C > maxTables }

// function describes the output of a step as a function. each says that the step differs by
// channel.
func (t *tables) function(s plan.Step, each bool) tabled {
	if !perValue(s.Op) {
		return tabled{of: -1}
	}
	p := t.plan
	f := tabled{of: t.source(s.In[0]), each: each, costly: costly(s.Op)}
	for _, in := range s.In {
		if t.source(in) != f.of || p.Tensors[in].Shape != p.Tensors[s.In[0]].Shape {
			f.of = -1
		}
		f.each, f.costly = f.each || t.all[in].each && !t.all[in].begins, f.costly || t.all[in].costly && !t.all[in].begins
	}
	if f.each && t.many(s) {
		f.of = -1
	}
	return f
}

// source returns the tensor of bytes that a tensor is, or is a function of; −1 if there is none.
func (t *tables) source(in int) int {
	if t.all[in].begins {
		return in
	}
	if t.plan.Tensors[in].DType == bcnn.Bits {
		return -1
	}
	return t.all[in].of
}

// lookUp makes a look-up of a step that computes a function of bytes, if its output stays, and if a
// look-up is faster or the input only now becomes bytes. It reports whether it has done so.
func (t *tables) lookUp(s *plan.Step) (bool, error) {
	p := t.plan
	values, err := t.evaluate(s)
	if err != nil {
		return false, err
	}
	f := &t.all[s.Out]
	f.values = values
	if !f.stays {
		return false, nil
	}
	sign, toBits := s.Op.(*plan.Sign)
	must := p.Tensors[f.of].DType == bcnn.Float32
	if !f.costly && !toBits && !must {
		return false, nil
	}
	if err := t.hold(4 * int64(len(values))); err != nil {
		return false, err
	}
	table := &plan.Table{Values: values}
	var op plan.Op = table
	if toBits {
		table.Planes = sign.Planes
		channels := p.Tensors[f.of].Shape.C
		if err := t.hold(4*int64(channels) + 8*int64(bits.Words(channels))); err != nil {
			return false, err
		}
		if threshold := tableThreshold(table, channels); threshold != nil {
			op = &plan.Binarize{Scheme: bcnn.SchemeThreshold, Threshold: threshold}
		} else if !f.costly && !must {
			return false, nil
		}
	}
	s.Op, s.In = op, []int{f.of}
	return true, nil
}

// evaluate returns the output of a step for each byte: one table for all channels, or one per
// channel.
func (t *tables) evaluate(s *plan.Step) ([]float32, error) {
	p := t.plan
	f := t.all[s.Out]
	channels, size := p.Tensors[f.of].Shape.C, plan.TableSize
	if f.each {
		size *= channels
	}
	if err := t.Charge(int64(size) * int64(len(s.In))); err != nil {
		return nil, err
	}
	in := make([][]float32, len(s.In))
	for k, tensor := range s.In {
		if in[k] = t.all[tensor].values; tensor == f.of {
			in[k] = t.bytes(tensor)
		}
	}
	values := in[0]
	if from := s.In[0]; from == f.of || t.all[from].stays || len(t.graph.Readers[from]) > 1 || len(values) != size {
		values = make([]float32, size) // others still need the table of the input
	}
	op, quantize := s.Op.(*plan.Quantize)
	numbers := quantize && p.Tensors[s.Out].DType == bcnn.Uint8
	for i := range values {
		x := in[0][i%len(in[0])]
		if len(in) > 1 {
			values[i] = valueOfTwo(s.Op, x, in[1][i%len(in[1])], i/plan.TableSize)
		} else {
			values[i] = valueOf(s.Op, x, i/plan.TableSize, channels)
		}
		if numbers {
			values[i] -= float32(op.Low)
		}
	}
	return values, nil
}

// bytes returns the values that the bytes of a tensor stand for.
func (t *tables) bytes(tensor int) []float32 {
	low, most := 0, plan.TableSize-1
	if tensor >= len(t.plan.Inputs) && t.plan.Tensors[tensor].DType == bcnn.Float32 {
		op := t.writer(tensor).Op.(*plan.Quantize)
		low, most = op.Low, op.Levels-1
	}
	values := make([]float32, plan.TableSize)
	for i := range values {
		values[i] = float32(low + min(i, most))
	}
	return values
}

// drop removes the steps that nothing needs any more. Their layers go to the look-ups.
func (t *tables) drop(before []plan.Step, looked []bool) error {
	p := t.plan
	needed := make([]bool, len(p.Tensors))
	for _, out := range p.Outputs {
		needed[out] = true
	}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := p.Steps[i]
		if f := t.all[s.Out]; f.of >= 0 && !f.stays && !needed[s.Out] {
			continue
		}
		needed[s.Out] = true
		for _, in := range s.In {
			needed[in] = true
		}
	}
	var kept []plan.Step
	layers := make([][]int, len(p.Tensors)) // of the removed steps
	for i, s := range p.Steps {
		if needed[s.Out] && !looked[i] {
			kept = append(kept, s)
			continue
		}
		var all []int
		for _, in := range before[i].In {
			gone := layers[in]
			if layers[in] = nil; len(gone) > len(all) { // a chain is not copied at each step
				all, gone = gone, all
			}
			if err := t.Charge(8 * int64(len(gone))); err != nil {
				return err
			}
			all = append(all, gone...)
		}
		all = append(all, s.Layers...)
		if !needed[s.Out] {
			layers[s.Out] = all
			continue
		}
		if err := t.name(&s, &p.Tensors[s.Out], all); err != nil {
			return err
		}
		kept = append(kept, s)
	}
	t.renumber(kept)
	return nil
}

// costly reports whether a step takes longer than a look-up per value.
func costly(op plan.Op) bool {
	switch op := op.(type) {
	case *plan.Affine:
		return op.Activation.Kind == plan.ActivationFunction
	case *plan.Sign:
		return op.Planes > 1
	}
	return true
}

// perValue reports whether a step computes each value from those in the same place of its inputs,
// if these have the same shape.
func perValue(op plan.Op) bool {
	switch op.(type) {
	case *plan.Affine, *plan.Sign, *plan.Quantize, *plan.Add, *plan.Pair:
		return true
	}
	return false
}

// differs reports whether a step of perValue does something else for some channels. It reads each
// constant once, which the budget of the plan covers.
func differs(op plan.Op) bool {
	var lists [][]float32
	switch op := op.(type) {
	case *plan.Affine:
		lists = [][]float32{op.Scale, op.Shift, op.Activation.Slope}
	case *plan.Add:
		lists = [][]float32{op.Activation.Slope}
	case *plan.Quantize:
		return len(op.Thresholds) >= op.Levels
	case *plan.Sign:
		n := len(op.Threshold.F32) / max(1<<max(op.Planes, 1)-1, 1)
		for list := op.Threshold.F32; len(list) > 0; list = list[n:] {
			lists = append(lists, list[:n])
		}
		if flip := op.Threshold.Flip; flip != nil {
			for c := range n {
				if bits.At(flip, c) != bits.At(flip, 0) {
					return true
				}
			}
		}
	}
	return slices.ContainsFunc(lists, func(list []float32) bool {
		// +0 and −0 give different zeros.
		return slices.ContainsFunc(list, func(v float32) bool { return math.Float32bits(v) != math.Float32bits(list[0]) })
	})
}

// valueOf returns what a step makes of a value of channel c. For bits it is the integer whose bits
// are in the planes.
func valueOf(op plan.Op, v float32, c, channels int) float32 {
	switch op := op.(type) {
	case *plan.Affine:
		if op.Scale != nil {
			v = f32.FMA(v, op.Scale[c], op.Shift[c])
		}
		return op.Activation.Of(v, c)
	case *plan.Quantize:
		n := op.Levels - 1
		list := op.Thresholds[c*n%len(op.Thresholds):][:n]
		return float32(op.Low + sort.Search(n, func(k int) bool { return !(v >= list[k]) }))
	case *plan.Sign:
		list, planes := op.Threshold.F32, max(op.Planes, 1)
		reached := sort.Search(len(list)/channels, func(k int) bool { return !(v >= list[k*channels+c]) })
		if flip := op.Threshold.Flip; flip != nil && flip[c/64]>>(c%64)&1 == 1 {
			reached ^= 1<<planes - 1
		}
		return float32(reached)
	}
	return v
}

// valueOfTwo returns what a step makes of two values of channel c.
func valueOfTwo(op plan.Op, x, y float32, c int) float32 {
	switch op := op.(type) {
	case *plan.Add:
		return op.Activation.Of(x+y, c)
	case *plan.Pair:
		switch {
		case op.Kind == plan.PairMul:
			return x * y
		case op.Kind == plan.PairMask && y != 0:
			return x
		case op.Kind == plan.PairMask:
			return 0
		case op.Kind == plan.PairMin && x < y || op.Kind == plan.PairMax && x > y || x != x:
			return x
		}
		return y
	}
	return x
}

// renumber replaces the steps of the plan, and removes tensors that they do not write.
func (lo *lowering) renumber(steps []plan.Step) {
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

// tableThreshold returns a table of single bits as thresholds, or nil where bits change more
// than once.
func tableThreshold(t *plan.Table, channels int) *plan.Threshold {
	if t.Planes > 1 {
		return nil
	}
	out := &plan.Threshold{I32: make([]int32, channels)}
	flips := newFlips(channels)
	var at int32
	var falls bool
	for c := range channels {
		if c*plan.TableSize < len(t.Values) { // what all channels share is searched once
			var once bool
			if at, falls, once = step(t.Of(c)); !once {
				return nil
			}
		}
		out.I32[c] = at
		flips.set(c, falls)
	}
	out.Flip = flips.words()
	return out
}

// step returns from which value on bits of all bytes change, and whether from 1 to 0; once is
// false where they change more than once.
func step(values []float32) (at int32, falls, once bool) {
	first, last := values[0], values[plan.TableSize-1]
	n := 1
	for n < plan.TableSize && values[n] == first {
		n++
	}
	switch {
	case n == plan.TableSize && first == 1:
		return math.MinInt32, false, true
	case n == plan.TableSize:
		return math.MaxInt32, false, true
	}
	changed := slices.ContainsFunc(values[n:], func(v float32) bool { return v != last })
	return int32(n), first == 1, !changed
}
