package parity

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// inMemory makes a hook that executes a plan in one block of memory, which tensors share as uses
// says, and every step in two halves: the inputs of the second are read when the first
// has been written.
func inMemory(uses func(p *plan.Plan) []plan.Use) func(*fakeEngine, context.Context, bcnn.Tensor, bcnn.Tensor) error {
	return func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		if x.config.Stepwise {
			return x.honest(ctx, out, in)
		}
		placed := x.plan.Place(in.N, uses(x.plan))
		memory := make([]byte, placed.Bytes)
		load := func(tensor int) bcnn.Tensor {
			of := x.plan.Tensors[tensor]
			t := bcnn.NewTensor(of.DType, in.N, of.Shape)
			fetch(t, memory[placed.Offsets[tensor]:])
			return t
		}
		for i, t := range x.inputs {
			if at := placed.Offsets[i]; at >= 0 { // else no step reads it
				copy(memory[at:], stored(t))
			}
		}
		for _, s := range x.plan.Steps {
			for half := range 2 {
				tensors := make([]bcnn.Tensor, len(x.plan.Tensors))
				for _, t := range s.In {
					tensors[t] = load(t)
				}
				var made bcnn.Tensor
				var err error
				if len(s.In) > 1 {
					made = x.join(s, tensors)
				} else if made, err = x.single(s)(s.Op, tensors[s.In[0]]); err != nil {
					return err
				}
				bytes := stored(made)
				middle := len(bytes) / 2
				copy(memory[placed.Offsets[s.Out]:][half*middle:], bytes[half*middle:][:middle+half*(len(bytes)-2*middle)])
			}
		}
		for i, t := range x.plan.Outputs {
			fetch(x.outputs[i], memory[placed.Offsets[t]:])
		}
		return nil
	}
}

// stored returns the bytes of a tensor in memory, and fetch fills a tensor from there.
func stored(t bcnn.Tensor) []byte {
	b := slices.Clone(t.U8)
	for _, w := range t.Words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for _, v := range t.F32 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func fetch(t bcnn.Tensor, b []byte) {
	copy(t.U8, b)
	for i := range t.Words {
		t.Words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	for i := range t.F32 {
		t.F32[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// usesBut makes uses of which keep keeps some; readers says how often the tensor has been read
// before.
func usesBut(keep func(p *plan.Plan, u plan.Use, writes bool, readers int) bool) func(p *plan.Plan) []plan.Use {
	return func(p *plan.Plan) []plan.Use {
		read := make([]int, len(p.Tensors))
		return slices.DeleteFunc(p.Uses(), func(u plan.Use) bool {
			writes := u.First < 0 || u.First < len(p.Steps) && p.Steps[u.First].Out == u.Tensor
			gone := !keep(p, u, writes, read[u.Tensor])
			if !writes {
				read[u.Tensor]++
			}
			return gone
		})
	}
}

// TestInMemory: with memory as it must be the hook passes, so that the fault is what the suite
// finds.
func TestInMemory(t *testing.T) {
	testenv.Long(t)
	honest := fake{run: inMemory((*plan.Plan).Uses)}.device()
	for _, c := range Cases() {
		if strings.HasPrefix(c.Name, "ends/") || strings.HasPrefix(c.Name, "graph/") || strings.HasPrefix(c.Name, "whole/") {
			require.Nil(t, c.check(t.Context(), honest, backend.Options{}, func(int) {}), c.Name)
		}
	}
}

// stale is the fault that some values of a step are those of the run before, if there was one.
func stale(where func(s spot) bool) ranFunc {
	return func(x *fakeEngine, step int, _ []bcnn.Tensor, out bcnn.Tensor) error {
		was, made := x.kept[step], clone(out)
		if was.N > 0 {
			images := min(was.N, out.N)
			take(out.Images(0, images), was.Images(0, images), planesOf(x.plan.Steps[step].Op), where)
		}
		x.kept[step] = made
		return nil
	}
}

func secondHalf(s spot) bool { return s.y >= (s.H+1)/2 }

// joinedWrong is the fault that channel c of what is joined from more than two parts is another
// one: from returns it, −1 for 0; starts are the first channels of the parts.
func joinedWrong(from func(starts []int, c int) int) ranFunc {
	return func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		if len(in) < 3 {
			return nil
		}
		starts, next := make([]int, len(in)), 0
		for i, t := range in {
			starts[i], next = next, next+t.Shape.C
		}
		return misplaced(func(s spot) spot {
			if s.c = from(starts, s.c); s.c < 0 {
				return nowhere
			}
			return s
		})(x, step, in, out)
	}
}

// runWith makes a hook that lets change replace the inputs of a run without Tap; kept are those of the first.
func runWith(change func(x *fakeEngine, kept []bcnn.Tensor)) func(*fakeEngine, context.Context, bcnn.Tensor, bcnn.Tensor) error {
	return func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		inputs := slices.Clone(x.inputs)
		for i, t := range inputs {
			inputs[i] = clone(t)
		}
		if x.inputs = inputs; !x.config.Stepwise {
			var kept []bcnn.Tensor
			for i := range inputs {
				if t, ok := x.kept[-1-i]; ok {
					kept = append(kept, t)
				}
			}
			now := make([]bcnn.Tensor, len(inputs))
			for i, t := range inputs {
				now[i] = clone(t)
			}
			if kept != nil {
				change(x, kept)
			}
			for i, t := range now {
				x.kept[-1-i] = t
			}
		}
		return x.honest(ctx, out, x.inputs[0])
	}
}

// firstImages replaces as many images as there are by those of another batch.
func firstImages(t, by bcnn.Tensor, most int) {
	n := min(t.N, by.N, most)
	to, from := t.Images(0, n), by.Images(0, n)
	copy(to.U8, from.U8)
	copy(to.Words, from.Words)
	copy(to.F32, from.F32)
}

// brokenMemory are faults of memory, threads, runs, and of what several tensors are joined to.
var brokenMemory = []brokenDevice{
	{"memory of a tensor taken when its first reader has run", fake{run: inMemory(usesBut(func(_ *plan.Plan, u plan.Use, writes bool, readers int) bool {
		return writes || readers < 1
	}))}, "graph/", "of a batch of 3: output: image"},
	{"memory of a tensor taken by the step that reads it", fake{run: inMemory(usesBut(func(p *plan.Plan, u plan.Use, writes bool, _ int) bool {
		return !writes || u.First < 0 || len(p.Steps[u.First].In) > 1
	}))}, "graph/", "of a batch of 3: output: image"},
	{"memory of an output taken by later steps", fake{run: inMemory(usesBut(func(p *plan.Plan, u plan.Use, _ bool, _ int) bool {
		return u.First < len(p.Steps)
	}))}, "ends/", "of a batch of 3: output"},
	{"memory of an input taken until a step reads it", fake{run: inMemory(usesBut(func(_ *plan.Plan, u plan.Use, _ bool, _ int) bool {
		return u.First >= 0
	}))}, "ends/", "of a batch of 3: output"},
	{"memory of a second input taken by what joins them", fake{run: inMemory(func(p *plan.Plan) []plan.Use {
		var uses []plan.Use
		for _, u := range p.Uses() {
			if u.First >= 0 && u.First < len(p.Steps) && len(p.Steps[u.First].In) > 1 && u.Tensor == p.Steps[u.First].In[1] && u.Tensor >= len(p.Inputs) {
				u.First, u.Last = u.First-1, u.Last-1
			}
			uses = append(uses, u)
		}
		return uses
	})}, "concat/", "of a batch of 3: output: image"},

	{"a second thread's rows of the run before", untapped(in("conv of bits", stale(secondHalf))), "conv/bits/", "run 2, of a batch of 1: output: image 0"},
	{"a second thread's rows of the run before, of pools", untapped(in("maxpool", stale(secondHalf))), "maxpool/", "run 2, of a batch of 1: output: image 0"},
	{"a second thread's channels of the run before", untapped(in("dense", stale(func(s spot) bool { return s.c >= 64 }))), "dense/", "of a batch of"},
	{"the last row of the run before", untapped(in("affine", stale(lastRow))), "affine", "run 2, of a batch of 1: output: image 0"},
	{"the last column of the run before, in a network", untapped(in("conv", stale(lastColumn))), "whole/", "of a batch of"},
	{"a second thread's rows of the image before", in("conv", misplaced(func(s spot) spot {
		if s.n > 0 && secondHalf(s) {
			s.n--
		}
		return s
	})), "conv/", "(conv): image 1"},
	{"a second thread's rows of the image before, of bytes", in("binarize", misplaced(func(s spot) spot {
		if s.n > 0 && secondHalf(s) {
			s.n--
		}
		return s
	})), "binarize/", "(binarize): image 1"},
	{"a second thread's rows one off", in("pixels", misplaced(func(s spot) spot {
		if secondHalf(s) && s.y+1 < s.H {
			s.y++
		}
		return s
	})), "pixels/", "(pixels): image"},
	{"a second thread's rows one off, of tables", in("table", misplaced(func(s spot) spot {
		if secondHalf(s) && s.y > 0 {
			s.y--
		}
		return s
	})), "table/", "(table): image"},
	{"a third thread's images of the second", in("dense", misplaced(func(s spot) spot {
		if s.N > 2 && s.n >= (2*s.N+2)/3 {
			s.n--
		}
		return s
	})), "dense/", "(dense): image"},
	{"the last tile of an odd number left out", in("resample", misplaced(func(s spot) spot {
		if s.N*s.H%2 == 1 && s.n == s.N-1 && s.y == s.H-1 {
			return nowhere
		}
		return s
	})), "resample/", "(resample): image 2"},
	{"the last of many rows left out", in("conv", misplaced(func(s spot) spot {
		if s.H > 24 && s.y == s.H-1 {
			return nowhere
		}
		return s
	})), "conv/", "(conv): image"},

	{"the first image of the run before", fake{run: runWith(func(x *fakeEngine, kept []bcnn.Tensor) { firstImages(x.inputs[0], kept[0], 1) })}, "", "run 2, of a batch of 1: output: image 0"},
	{"the last input of the run before", fake{run: runWith(func(x *fakeEngine, kept []bcnn.Tensor) {
		if last := len(kept) - 1; last > 0 {
			firstImages(x.inputs[last], kept[last], math.MaxInt)
		}
	})}, "ends/", "run 2, of a batch of 1: output"},
	{"a second input of the first image", fake{run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		x.inputs = slices.Clone(x.inputs)
		for i, t := range x.inputs[1:] {
			x.inputs[1+i] = clone(t)
			for n := 1; n < t.N; n++ {
				firstImages(x.inputs[1+i].Images(n, 1), t, 1)
			}
		}
		return x.honest(ctx, out, in)
	}}, "ends/", "image 1"},
	{"outputs one behind the other", fake{run: afterRun(func(x *fakeEngine, _, _ bcnn.Tensor) {
		for i := 1; i < len(x.outputs); i++ {
			if a, b := x.outputs[i-1], x.outputs[i]; a.Shape == b.Shape {
				copy(a.F32, b.F32)
			}
		}
	})}, "ends/", "output"},
	{"the last output not in small batches", fake{run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		last := x.outputs[len(x.outputs)-1]
		was := slices.Clone(last.F32)
		err := x.honest(ctx, out, in)
		if len(x.outputs) > 1 && in.N < x.config.MaxBatch {
			copy(last.F32, was)
		}
		return err
	}}, "ends/", "run 2, of a batch of 1: output"},
	{"a run again of the same size", fake{run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
		if was, ok := x.kept[in.N]; ok && !x.config.Stepwise {
			copy(out.F32, was.F32)
			return nil
		}
		err := x.honest(ctx, out, in)
		x.kept[in.N] = clone(out)
		return err
	}}, "", "run 4, of a batch of 3: output: image 0"},

	{"the third part at the place of the second", in("concat", joinedWrong(func(starts []int, c int) int {
		if c >= starts[2] {
			c = c - starts[2] + starts[1]
		}
		return c
	})), "concat/", "(concat): image"},
	{"the word in which a part begins", in("concat of bits", joinedWrong(func(starts []int, c int) int {
		for _, s := range starts[2:] {
			if s%64 > 0 && c < s && c/64 == s/64 {
				return -1
			}
		}
		return c
	})), "concat/", "(concat): image"},
	{"the word that a part ends in", in("concat of bits", joinedWrong(func(starts []int, c int) int {
		if c >= starts[1] && c < starts[2] && c/64 == starts[2]/64 {
			return -1
		}
		return c
	})), "concat/", "(concat): image"},
	{"the last part left out", in("concat of float32", joinedWrong(func(starts []int, c int) int {
		if c >= starts[len(starts)-1] {
			return -1
		}
		return c
	})), "concat/", "(concat): image"},
	{"the second word of a part that is not moved", in("concat of bits", func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		// Bits beyond the first word of the second part lie as in the part.
		from, by := in[0].Shape.C, in[0].Shape.C%64
		return misplaced(func(s spot) spot {
			if c := s.c - from; c >= 64 && c < in[1].Shape.C && s.c+by < s.C {
				s.c += by
			}
			return s
		})(x, step, in, out)
	}), "concat/", "(concat): image"},
	{"channels of the second word from the first", in("channels of bits", func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		op := x.plan.Steps[step].Op.(*plan.Channels)
		eachSpot(out, 1, func(s spot) {
			if c := int(op.Index[s.c]); c >= 64 {
				put(out, s.index(1), in[0], ((s.n*s.H+s.y)*s.W+s.x)*in[0].Shape.C+c%64)
			}
		})
		return nil
	}), "channels/", "(channels): image"},
	{"a run of channels across words", in("channels of bits", func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		// Of a word that is made of two, the second one is left out.
		op := x.plan.Steps[step].Op.(*plan.Channels)
		return misplaced(func(s spot) spot {
			if first := int(op.Index[s.c/64*64]); int(op.Index[s.c]) == first+s.c%64 && (first+s.c%64)/64 > first/64 {
				return nowhere
			}
			return s
		})(x, step, in, out)
	}), "channels/", "(channels): image"},
	{"bits of pixels that cross words", in("flatten of bits", func(x *fakeEngine, step int, in []bcnn.Tensor, out bcnn.Tensor) error {
		c := in[0].Shape.C
		return misplaced(func(s spot) spot {
			if pixel := s.c / c; c < 64 && pixel*c/64 != (pixel*c+c-1)/64 && s.c/64 > pixel*c/64 {
				return nowhere
			}
			return s
		})(x, step, in, out)
	}), "flatten/", "(flatten): image"},
	{"the second word of packed signs", in("sign", misplaced(func(s spot) spot {
		if s.c >= 64 && s.c%64 == s.C%64-1 && s.c/64 == bits.Words(s.C)-1 {
			return nowhere
		}
		return s
	})), "sign-", "(sign): image"},
	{"the last bits of a packed image", in("binarize", misplaced(func(s spot) spot {
		if s.c >= 64 && s.c == s.C-1 {
			return nowhere
		}
		return s
	})), "binarize/", "(binarize): image"},
}
