package vision

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/f32"
)

// patient is a context that is cancelled when it has been looked at so many times.
type patient struct {
	context.Context
	left, looks int
}

func (p *patient) Err() error {
	if p.looks++; p.looks > p.left {
		return context.Canceled
	}
	return nil
}

// thousand is a map of 20×20 cells with 3 anchors and 1,000 classes, as Darknet's, all of whose scores are
// above a threshold.
func thousand(t *testing.T, score func() float32, opts DetectorOptions) (*decoder, []float32) {
	out := bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 20, W: 20, C: 3 * 1005})
	for i := range out.F32 {
		switch i % 1005 {
		case 0, 1:
			out.F32[i] = 0.5
		case 2, 3:
		case 4:
			out.F32[i] = 1
		default:
			out.F32[i] = score()
		}
	}
	d := &bcnn.Detection{Classes: 1000, Background: -1, Overlap: 0.45, Heads: []bcnn.Head{bcnn.YOLO{Anchors: [][2]float32{{2, 1}, {4, 2}, {8, 4}}}}}
	det, err := newDetector(answering(out), d, opts)
	require.NoError(t, err)
	return &det.decoder, out.F32
}

// Of 1,200,000 candidates of a model that bounds nothing, of equal and of different scores, the best are taken,
// and few pairs are compared.
func TestCandidatesOfAllClassesAreBounded(t *testing.T) {
	for name, score := range map[string]func() float32{
		"equal":     func() float32 { return 0.5 },
		"different": rand.New(rand.NewPCG(5, 6)).Float32,
	} {
		t.Run(name, func(t *testing.T) {
			d, values := thousand(t, score, DetectorOptions{Threshold: 1e-6, Overlap: 1})
			p := &pace{ctx: t.Context()}
			all, err := d.anchors(p, nil, d.Heads[0].(bcnn.YOLO), slices.Clone(values), d.outputs[0])
			require.NoError(t, err)
			require.Len(t, all, 1200)
			got, err := d.candidates(p, all)
			require.NoError(t, err)
			require.Len(t, got, mostCandidates)
			require.True(t, slices.IsSortedFunc(got, better))
			for _, c := range got {
				require.Equal(t, all[c.at].scores[c.class], c.score)
			}
			as := 0 // as good as the last of them
			for at, b := range all {
				for class, s := range b.scores {
					if better(candidate{s, int32(class), int32(at)}, got[mostCandidates-1]) <= 0 {
						as++
					}
				}
			}
			require.Equal(t, mostCandidates, as)

			// Pairs that are compared, counted by the looks at the context.
			c := &patient{Context: t.Context(), left: 1 << 30}
			boxes, err := d.selected(&pace{ctx: c}, all, got, Frame{0, 0, 80, 20, image.Pt(80, 20)})
			require.NoError(t, err)
			require.Len(t, boxes, mostKeep)
			require.LessOrEqual(t, c.looks, mostTopK*mostKeep/stepsBetweenLooks)
			for i, b := range boxes {
				require.Equal(t, int(got[i].class), b.Index)
				require.Equal(t, got[i].score, b.Score)
			}
		})
	}
}

// What a list keeps does not depend on the order in which it gets candidates.
func TestBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var list []candidate
	for i := range 1000 {
		list = append(list, candidate{float32(rng.IntN(20)), int32(i % 3), int32(i)})
	}
	want := slices.SortedFunc(slices.Values(list), better)
	reversed := slices.Clone(want)
	slices.Reverse(reversed)
	for _, most := range []int{1, 7, 500, 999, 1000, 1001, 5000} {
		b := newBest(most, len(list))
		room := cap(b.list)
		for _, given := range [][]candidate{list, want, reversed} {
			b.reset()
			for _, c := range given {
				b.add(c)
			}
			require.Equal(t, want[:min(most, len(want))], b.sorted(), most)
			require.Equal(t, room, cap(b.list))
		}
	}
}

// Work ends within a few thousand steps of the end of its context, wherever that finds it.
func TestBoxesEndWithTheirContext(t *testing.T) {
	for _, left := range []int{0, 1, 2, 100, 290, 400, 580, 650} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			d, values := thousand(t, func() float32 { return 0.5 }, DetectorOptions{Threshold: 1e-6, Overlap: 1})
			c := &patient{Context: t.Context(), left: left}
			_, err := d.boxes(c, [][]float32{values}, Frame{0, 0, 80, 20, image.Pt(80, 20)})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, left+1, c.looks) // and it is not looked at again
		})
	}
}

// The server reserves twice the outputs and 2 MiB, the answer included.
func TestBoxesTakeTheMemoryThatIsPromised(t *testing.T) {
	f32.TabulateAll()
	ssd, few := squares(1, make([]float32, 100_000), slices.Repeat([]float32{0.9}, 100_000)...)
	det, err := newDetector(ssd, few, DetectorOptions{Overlap: 1})
	require.NoError(t, err)
	d, values := thousand(t, func() float32 { return 0.5 }, DetectorOptions{Threshold: 1e-6, Overlap: 1})
	for name, c := range map[string]struct {
		d   *decoder
		out [][]float32
	}{
		"many boxes":   {&det.decoder, [][]float32{ssd.outputs[0].F32, ssd.outputs[1].F32}},
		"many classes": {d, [][]float32{values}},
	} {
		t.Run(name, func(t *testing.T) {
			outputs := 0
			for _, o := range c.out {
				outputs += 4 * len(o)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.d.boxes(t.Context(), c.out, Frame{0, 0, 80, 20, image.Pt(80, 20)})
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			require.LessOrEqual(t, int(after.TotalAlloc-before.TotalAlloc), 2*outputs+3<<19)
			t.Logf("%d bytes of %d outputs", after.TotalAlloc-before.TotalAlloc, outputs)
		})
	}
}

// Boxes are made of output

// Boxes are made of outputs of one image, all of them.
func TestBoxesRefuse(t *testing.T) {
	s, d := squares(1, []float32{0}, 0.9)
	det, err := newDetector(s, d, DetectorOptions{})
	require.NoError(t, err)
	for want, out := range map[string][]bcnn.Tensor{
		"1 outputs, want 2":     s.outputs[:1],
		"out: 2 images, want 1": {bcnn.NewTensor(bcnn.Float32, 2, s.outputs[0].Shape), s.outputs[1]},
		"out: ":                 {s.outputs[1], s.outputs[0]},
	} {
		_, err := det.Boxes(t.Context(), out, Frame{})
		require.ErrorContains(t, err, want)
	}
}
