package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// script builds a network from bytes: what is added, how often, of which size,
// and what it reads. The networks are mostly well formed, large where that costs
// few bytes, and odd in their shape.
type script struct {
	code   []byte
	net    *bcnn.Network
	shapes []bcnn.Shape
	room   int // parameters that may still be made
	used   []bool
}

func (s *script) next(n int) int {
	if len(s.code) == 0 {
		return 0
	}
	v := int(s.code[0])
	s.code = s.code[1:]
	return v % n
}

// of picks one of a few values.
func of[T any](s *script, values ...T) T { return values[s.next(len(values))] }

func (s *script) shape(i int) bcnn.Shape {
	if i < 0 {
		return s.net.Inputs[0].Shape
	}
	return s.shapes[i]
}

// add appends a layer whose output shape is known.
func (s *script) add(op bcnn.Op, out bcnn.Shape, inputs ...int) int {
	for _, i := range inputs {
		if i >= 0 {
			s.used[i] = true
		}
	}
	s.shapes, s.used = append(s.shapes, out), append(s.used, false)
	return s.net.Append(fmt.Sprintf("%s%d", op.Kind(), len(s.net.Layers)), op, inputs...)
}

// values makes up to 1<<18 parameters in all.
func (s *script) values(n int) bool {
	if n > s.room {
		return false
	}
	s.room -= n
	return true
}

func (s *script) weights(rows, n int) (w bcnn.Weights, ok bool) {
	if s.next(4) == 0 {
		if ok = rows*n < 1<<18 && s.values(rows*n); ok {
			w.F32 = constant(rows*n, -1)
		}
		return w, ok
	}
	if s.next(5) == 1 {
		if ok = rows*n < 1<<18 && s.values(rows*n/4); ok {
			w.Int8 = make([]int8, rows*n)
			w.Int8[0] = of[int8](s, 0, 1, 3, 7, -128)
		}
		return w, ok
	}
	if ok = rows*bits.Words(n) < 1<<18 && s.values(rows*bits.Words(n)); ok {
		w.Bits = make([]uint64, rows*bits.Words(n))
	}
	return w, ok
}

// window is one whose result is not empty.
func (s *script) window(in bcnn.Shape) (w bcnn.Window, out bcnn.Shape) {
	side := func() int { return of(s, 1, 1, 2, 3, 7, 64, 999) }
	pad := func() int { return of(s, 0, 0, 1, 2, 63, 3000) }
	w = bcnn.Window{KH: side(), KW: side(), StrideH: of(s, 1, 2, 5), StrideW: of(s, 1, 3), DilationH: of(s, 1, 1, 2, 40), DilationW: of(s, 1, 1, 3)}
	w.Pad = bcnn.Padding{Top: pad(), Left: pad(), Bottom: pad(), Right: pad()}
	return w, w.Output(in, in.C)
}

// step adds one layer that reads from.
func (s *script) step(from int) int {
	in := s.shape(from)
	switch s.next(26) {
	case 21:
		op := bcnn.Pixels{Rows: make([]int32, of(s, 1, 2, in.H, 500)), Cols: make([]int32, of(s, 1, in.W, 2*in.W)), Fill: of[float32](s, 0, 1)}
		op.Rows[0] = of[int32](s, 0, -1)
		out := bcnn.Shape{H: len(op.Rows), W: len(op.Cols), C: in.C}
		if in.C%2 == 0 && s.next(2) == 0 {
			op.BlockH, op.BlockW, out.C = 2, 1, in.C/2
		}
		if out.W < 1<<16 && out.H < 1<<16 && out.Values() < 1<<20 && s.values(out.H+out.W) {
			return s.add(op, out, from)
		}
	case 22:
		taps := func(size, n int) bcnn.Taps {
			return bcnn.Taps{N: min(size, 2), Index: make([]int32, n*min(size, 2)), Weight: constant(n*min(size, 2), 0.5)}
		}
		op := bcnn.Resample{Rows: taps(in.H, of(s, 1, 3, 100)), Cols: taps(in.W, of(s, 1, 2, 300))}
		out := bcnn.Shape{H: len(op.Rows.Index) / op.Rows.N, W: len(op.Cols.Index) / op.Cols.N, C: in.C}
		if out.Values() < 1<<20 && s.values(4*(out.H+out.W)) {
			return s.add(op, out, from)
		}
	case 23:
		out := in
		if out.C = of(s, 1, min(in.C, 5)); out.C > 0 {
			return s.add(bcnn.TopK{K: out.C, Values: s.next(2) > 0}, out, from)
		}
	case 20:
		return s.add(bcnn.Function{Name: of(s, bcnn.FunctionNames()...)}, in, from)
	case 18, 19:
		q := bcnn.Quantize{Low: of(s, -1, 0, -8, 3, -256), Levels: of(s, 3, 2, 4, 16, 256)}
		n := (q.Levels - 1) * of(s, 1, in.C)
		if s.values(n) {
			q.Thresholds = constant(n, of[float32](s, 0, 0.5))
			return s.add(q, in, from)
		}
	case 12:
		w, _ := s.window(in)
		w.DilationH, w.DilationW = 1, 1
		w.Pad = bcnn.Padding{Top: min(w.Pad.Top, w.KH-1), Left: min(w.Pad.Left, w.KW-1)}
		if out := w.Output(in, in.C); out.H > 0 && out.W > 0 {
			return s.add(bcnn.AvgPool{Window: w, CountPadding: s.next(2) > 0}, out, from)
		}
	case 13:
		n := of(s, 1, in.C)
		if s.values(n) {
			return s.add(bcnn.PReLU{Slope: constant(n, of[float32](s, 0.5, -0.5))}, in, from)
		}
	case 14:
		return s.add(bcnn.Clip{Min: -1, Max: of[float32](s, 1, 6)}, in, from)
	case 15:
		index := make([]int32, of(s, 1, 2, 65, min(in.C, 1000)))
		for i := range index {
			index[i] = int32((i * 7) % in.C)
		}
		index[0] = of[int32](s, -1, 0)
		out := in
		if out.C = len(index); s.values(len(index)) {
			return s.add(bcnn.Channels{Index: index}, out, from)
		}
	case 16:
		return s.add(of[bcnn.Op](s, bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}), in, from, from)
	case 17:
		parts := of(s, 2, 3, 30)
		out := in
		if out.C *= parts; out.C < 1<<17 && out.Values() < 1<<20 {
			inputs := make([]int, parts)
			for i := range inputs {
				inputs[i] = from
			}
			return s.add(bcnn.Concat{}, out, inputs...)
		}
	case 0, 1:
		return s.add(bcnn.ReLU{}, in, from)
	case 2:
		return s.add(bcnn.Affine{Scale: []float32{of[float32](s, 1, -1, 0, 0.5)}, Bias: []float32{of[float32](s, 0, 1, -3)}}, in, from)
	case 3:
		if s.values(in.C) {
			return s.add(bcnn.Affine{Bias: constant(in.C, -0.5)}, in, from)
		}
	case 4:
		if s.values(4 * in.C) {
			return s.add(bcnn.BatchNorm{Gamma: constant(in.C, -0.5), Beta: constant(in.C, -1), Mean: constant(in.C, 0), Var: constant(in.C, 1)}, in, from)
		}
	case 5, 6:
		return s.add(bcnn.Sign{Zero: of(s, bcnn.ZeroIsPlus, bcnn.ZeroIsMinus)}, in, from)
	case 7:
		return s.add(bcnn.Flatten{}, bcnn.Shape{H: 1, W: 1, C: in.Values()}, from)
	case 8:
		w, _ := s.window(in)
		w.DilationH, w.DilationW = 1, 1
		w.Pad = bcnn.Padding{Top: min(w.Pad.Top, w.KH-1), Left: min(w.Pad.Left, w.KW-1)}
		if out := w.Output(in, in.C); out.H > 0 && out.W > 0 {
			return s.add(bcnn.MaxPool{Window: w}, out, from)
		}
	case 9:
		out := of(s, 1, 2, 65)
		if w, ok := s.weights(out, in.Values()); ok {
			return s.add(bcnn.Dense{Out: out, Weights: w}, bcnn.Shape{H: 1, W: 1, C: out}, from)
		}
	case 10:
		w, out := s.window(in)
		c := bcnn.Conv2D{Window: w, Out: of(s, 1, 2, 65, in.C), Groups: 1, PadValue: of(s, 0, 0, 1, -1)}
		if c.Out == in.C {
			c.Groups = in.C
		}
		out.C = c.Out
		rows := int64(c.Out) * int64(w.KH) * int64(w.KW)
		if out.H < 1 || out.W < 1 || rows > 1<<18 {
			break
		}
		var ok bool
		if c.Weights, ok = s.weights(int(rows), in.C/c.Groups); ok {
			return s.add(c, out, from)
		}
	case 11:
		return s.add(bcnn.Add{}, in, from, from)
	case 24:
		return s.add(bcnn.Transpose{}, bcnn.Shape{H: in.H, W: in.C, C: in.W}, from)
	case 25:
		if out := (bcnn.Shape{H: in.H, W: in.W, C: in.W}); out.Values() < 1<<20 {
			return s.add(bcnn.MatMul{}, out, from, from)
		}
	}
	return s.add(bcnn.ReLU{}, in, from)
}

// one makes one value of a layer.
func (s *script) one(from int) int {
	one := bcnn.Shape{H: 1, W: 1, C: 1}
	if s.shape(from) == one {
		return from
	}
	in := s.shape(from)
	if words := bits.Words(in.Values()); s.values(words) {
		return s.add(bcnn.Dense{Out: 1, Weights: bcnn.Weights{Bits: make([]uint64, words)}}, one, from)
	}
	from = s.add(bcnn.Channels{Index: []int32{0}}, bcnn.Shape{H: in.H, W: in.W, C: 1}, from)
	return s.add(bcnn.Pixels{Rows: []int32{0}, Cols: []int32{0}}, one, from)
}

// build makes a chain of chains: runs of the same layers, from the last layer,
// an older one or the input. What nobody has read is summed at the end.
func (s *script) build() *bcnn.Network {
	in := bcnn.Shape{H: of(s, 1, 1, 2, 7, 500), W: of(s, 1, 1, 3, 9, 70), C: of(s, 1, 2, 3, 64, 65, 5000, 50_000)}
	if in.Values() > 1<<16 {
		in.H, in.W = 1, 1
	}
	s.net = &bcnn.Network{Name: "script", Inputs: []bcnn.Input{{Shape: in, DType: of(s, bcnn.Float32, bcnn.Uint8)}}}
	last := bcnn.NetworkInput
	for len(s.code) > 0 && len(s.net.Layers) < 600 {
		length := 1 + s.next(12)
		body := s.code[:min(len(s.code), length)]
		times := of(s, 1, 1, 1, 3, 20, 100)
		older := s.next(3)
		for range times {
			from := last
			if older == 1 {
				from = bcnn.NetworkInput
			} else if older == 2 && len(s.net.Layers) > 0 {
				from = s.next(len(s.net.Layers))
			}
			rest := s.code
			s.code = body
			for len(s.code) > 0 {
				from = s.step(from)
			}
			last, s.code = from, rest
		}
		s.code = s.code[min(len(s.code), length):]
	}
	if len(s.net.Layers) == 0 {
		last = s.add(bcnn.ReLU{}, in, last)
	}
	end := last
	for i := range s.net.Layers[:len(s.net.Layers)] {
		if s.used[i] || i == last {
			continue
		}
		if s.shape(i) != s.shape(end) {
			i, end = s.one(i), s.one(end)
		}
		end = s.add(bcnn.Add{}, s.shape(end), end, i)
	}
	switch s.next(5) {
	case 1:
		s.net.Layers[s.next(len(s.net.Layers))].Name = s.net.Layers[0].Name
	case 2:
		for i := range s.net.Layers {
			s.net.Layers[i].Name = fmt.Sprintf("%0250d", i)
		}
	case 3:
		s.net.Labels = strings.Split(strings.Repeat(",", s.shape(len(s.net.Layers)-1).Values()-1), ",")
	}
	return s.net
}

// FuzzCost lowers networks of all forms, whose layers are fused and are not.
func FuzzCost(f *testing.F) {
	for i := range byte(12) {
		for _, code := range [][]byte{
			{0, 0, 6, 0, 11, 5, 0, i, i, i + 1, i, i + 2, i, 5, 0}, // long vectors
			{3, 3, 3, 0, 11, 4, 1, 5, 0, 10, i, i, i, i, i, i, i, i, 1, 2, 3},
			{1, 1, 1, 1, 3, 5, i % 3, 2, i, 10, i, 2, 3, 4, 5, 6, 7},
			{2, 2, 3, 0, 9, 4, 1, 12 + i%6, i, 17, i, 6, 12 + i/2, i, 13, i, 6},
			{4, 4, 2, 0, 11, 3, 2, i, 7, 9, 1, 2, 5, 8, i, i, i, 2},
		} {
			f.Add(code)
			f.Add(append(code, 0)) // see Draw
		}
	}
	loading.Fuzz(f, 1000)
}
