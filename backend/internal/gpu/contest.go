package gpu

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Contest finds the fastest of some candidates, of those that write the same. If not all do,
// a kernel, a compiler or the device is at fault, and which of them is right nobody knows:
// those count whose output most of them write or, where there are as many, that of the
// plainest, or of the first. The zero value has seen none. B is what was built of a candidate.
type Contest[B any] struct{ sides []*side[B] }

// side are candidates that write the same.
type side[B any] struct {
	output uint64 // its hash
	names  []string
	plain  bool
	race   Race
	best   B
}

// Enter adds a candidate with the hash of its output and its times. It returns what of this
// one and those before is slower than another, so that it is not needed any more.
func (c *Contest[B]) Enter(name string, plain bool, output uint64, took Times, built B) (slower []B) {
	var of *side[B]
	for _, s := range c.sides {
		if s.output == output {
			of = s
		}
	}
	if of == nil {
		of = &side[B]{output: output}
		c.sides = append(c.sides, of)
	}
	of.plain = of.plain || plain
	of.names = append(of.names, name)
	switch {
	case !of.race.Add(took):
		return []B{built}
	case len(of.names) > 1:
		slower = []B{of.best}
	}
	of.best = built
	return slower
}

// End returns the fastest, the race of those that wrote the same, the names of the others, and
// what else was built. ok is false if there was no candidate.
func (c *Contest[B]) End() (best B, race Race, wrong []string, rest []B, ok bool) {
	if len(c.sides) == 0 {
		return best, race, nil, nil, false
	}
	right := c.sides[0]
	for _, s := range c.sides[1:] {
		if n, most := len(s.names), len(right.names); n > most || n == most && s.plain && !right.plain {
			right = s
		}
	}
	for _, s := range c.sides {
		if s != right {
			wrong, rest = append(wrong, s.names...), append(rest, s.best)
		}
	}
	return right.best, right.race, wrong, rest, true
}

// Why is a reason for a choice, and what was left out of it.
func Why(why string, wrong []string) string {
	if len(wrong) == 0 {
		return why
	}
	return why + "; not used, as it computes wrong bits: " + strings.Join(wrong, ", ")
}

// Trial is what the candidates of a step are compared on: random inputs, and an output.
type Trial struct {
	Step   plan.Step
	Images int
	Inputs []bcnn.Tensor // of Step.In
	Output bcnn.Tensor
}

// comparedBytes is how much the tensors of a trial have at the most, if that is more than one
// image.
const comparedBytes = 16 << 20

// NewTrial is that of a step, of no more images than a batch.
func NewTrial(plan *plan.Plan, step, batch int) *Trial {
	t := &Trial{Step: plan.Steps[step]}
	each := plan.Tensors[t.Step.Out].Bytes(1)
	for _, i := range t.Step.In {
		each += plan.Tensors[i].Bytes(1)
	}
	t.Images = int(max(1, min(int64(batch), comparedBytes/max(each, 1))))
	r := rand.New(rand.NewPCG(uint64(step), 1))
	for _, i := range t.Step.In {
		t.Inputs = append(t.Inputs, Random(plan.Tensors[i], t.Images, r))
	}
	out := plan.Tensors[t.Step.Out]
	t.Output = bcnn.NewTensor(out.DType, t.Images, out.Shape)
	return t
}

// Clear fills the memory of an output, so that what a candidate does not write is seen.
func Clear(output []byte) {
	for i := range output {
		output[i] = 0xa5
	}
}

var seed = maphash.MakeSeed()

// Hash is that of an output.
func Hash(output []byte) uint64 { return maphash.Bytes(seed, output) }

// Random returns n images of a tensor of a plan with random values of those that it may have:
// any bytes and bits of channels that there are, numbers around 0, of levels the lowest two,
// and of sums without their factor integers.
func Random(of plan.Tensor, n int, r *rand.Rand) bcnn.Tensor {
	t := bcnn.NewTensor(of.DType, n, of.Shape)
	for i := range t.U8 {
		t.U8[i] = uint8(r.Uint32())
		if of.Coded {
			t.U8[i] &= 1
		}
	}
	for i := range t.F32 {
		t.F32[i] = float32(r.NormFloat64())
		if of.Coded {
			t.F32[i] = float32(math.Round(8 * float64(t.F32[i])))
		}
	}
	words, last := bits.Words(t.Shape.C), bits.TailMask(t.Shape.C)
	for i := range t.Words {
		t.Words[i] = r.Uint64()
		if i%words == words-1 {
			t.Words[i] &= last
		}
	}
	return t
}
