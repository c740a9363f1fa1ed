package gpu

import (
	"hash/maphash"
	"math/rand/v2"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
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
	return why + "; left out, as it computes something else: " + strings.Join(wrong, ", ")
}

var seed = maphash.MakeSeed()

// Hash is that of an output.
func Hash(output []byte) uint64 { return maphash.Bytes(seed, output) }

// Fill sets a tensor of a plan to random values: any bytes, any bits of channels that there
// are, and numbers around 0.
func Fill(t bcnn.Tensor, r *rand.Rand) {
	for i := range t.U8 {
		t.U8[i] = uint8(r.Uint32())
	}
	for i := range t.F32 {
		t.F32[i] = float32(r.NormFloat64())
	}
	words, last := bits.Words(t.Shape.C), bits.TailMask(t.Shape.C)
	for i := range t.Words {
		t.Words[i] = r.Uint64()
		if i%words == words-1 {
			t.Words[i] &= last
		}
	}
}
