package cpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// residual draws a plan in which every kind of step follows another, on tensors that
// others read too, and not.
func residual(h, w, c int) *planner {
	p := newPlanner(uint64(h*w*c), input(bcnn.Float32, h, w, c))
	same := bcnn.Window{KH: 3, KW: 3, Pad: bcnn.Padding{Top: 1, Left: 1, Bottom: 1, Right: 1}}
	tensor := func() int { return len(p.plan.Tensors) - 1 }
	shape := func() bcnn.Shape { return p.last().Shape }
	add := func(end plan.ActivationKind, more int) {
		p.step("add", &plan.Add{Activation: p.activation(end, shape().C)}, bcnn.Float32, shape(), more)
	}
	affine := func(end plan.ActivationKind) {
		p.step("affine", &plan.Affine{Scale: p.floats(shape().C), Shift: p.floats(shape().C), Activation: p.activation(end, shape().C)},
			bcnn.Float32, shape())
	}
	sign := func() {
		p.step("sign", &plan.Sign{Threshold: p.threshold(shape().C, 1, 2, false)}, bcnn.Bits, shape())
	}
	p.step("gate", &plan.AvgPool{Window: bcnn.Window{KH: h, KW: w, StrideH: 1, StrideW: 1}}, bcnn.Float32, bcnn.Shape{H: 1, W: 1, C: c})
	gate := tensor()
	p.step("first", &plan.Quantize{Low: -1, Levels: 3, Thresholds: []float32{-0.5, 0.5}}, bcnn.Float32, shape())
	p.plan.Steps[1].In, p.plan.Tensors[2].Shape = []int{0}, bcnn.Shape{H: h, W: w, C: c}
	sign()
	p.conv(convOptions{window: same, out: c, padValue: 1, float: true, end: plan.ActivationPReLU})
	add(plan.ActivationClip, 0)
	affine(plan.ActivationReLU)
	sum := tensor()
	sign()
	p.conv(convOptions{window: same, out: c, padValue: -1, float: true, raw: true})
	p.step("mul", &plan.Pair{}, bcnn.Float32, shape(), gate)
	p.step("max", &plan.Pair{Kind: plan.PairMax}, bcnn.Float32, shape(), sum)
	p.step("tanh", &plan.Affine{Scale: p.floats(c), Shift: p.floats(c), Activation: plan.Activation{Kind: plan.ActivationFunction, Function: bcnn.Tanh}},
		bcnn.Float32, shape())
	add(plan.ActivationPReLU, sum)
	double := shape()
	double.C *= 2
	p.step("concat", &plan.Concat{}, bcnn.Float32, double, sum)
	index := make([]int32, c)
	for i := range index {
		index[i] = int32((5*i)%(2*c+1)) - 1
	}
	single := shape()
	single.C = c
	p.step("channels", &plan.Channels{Index: index}, bcnn.Float32, single)
	add(plan.ActivationNone, tensor()) // twice the same
	p.conv(convOptions{window: bcnn.Window{KH: 1, KW: 1}, out: c, float: true})
	add(plan.ActivationNone, sum)
	sign()
	affine(plan.ActivationNone)
	pool := &plan.MaxPool{Window: bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2}}
	p.step("pool", pool, bcnn.Float32, pool.Window.Output(shape(), c))
	sign()
	p.conv(convOptions{window: bcnn.Window{KH: 3, KW: 3, StrideH: 2, StrideW: 2, Pad: same.Pad}, out: 2 * c, padValue: 0, float: true})
	affine(plan.ActivationClip)
	down := tensor()
	sign()
	p.conv(convOptions{window: same, out: 2 * c, padValue: 1, float: true, end: plan.ActivationReLU})
	add(plan.ActivationNone, down)
	affine(plan.ActivationNone)
	return p
}

func TestGroups(t *testing.T) {
	plan := residual(9, 7, 64).done()
	kinds := func(stepwise bool) string {
		var lines []string
		for _, g := range groupsOf(plan, stepwise) {
			var steps []string
			for _, s := range plan.Steps[g.first : g.last+1] {
				steps = append(steps, s.Kind())
			}
			lines = append(lines, strings.Join(steps, " "))
		}
		return strings.Join(lines, "\n")
	}
	require.Equal(t, `avgpool
quantize sign
conv add affine sign
conv mul max affine add
concat channels add
conv add sign affine
maxpool sign
conv affine sign
conv add affine`, kinds(false))
	require.Equal(t, len(plan.Steps), strings.Count(kinds(true), "\n")+1)
}

// TestInPlace looks at who lies where: results that only the next step reads where it
// writes, and nothing where something else is read while the group is at work.
func TestInPlace(t *testing.T) {
	plan := residual(9, 7, 64).done()
	all := groupsOf(plan, false)
	uses, at, _ := uses(graphOf(plan), 2, all, whole(plan, 2), joinedOf(plan), nil)
	placed := plan.Place(2, uses)
	ofStep := map[int]group{}
	for _, g := range all {
		for i := g.first; i <= g.last; i++ {
			ofStep[i] = g
		}
	}
	shared := 0
	for a, s := range plan.Steps {
		if at[s.Out] != s.Out {
			next := plan.Steps[a+1]
			require.Contains(t, next.In, s.Out)
			require.Equal(t, at[next.Out], at[s.Out])
			require.Equal(t, ofStep[a], ofStep[a+1])
			shared++
		}
		// All that a group touches, the same tensor and what lies in its place apart.
		for b, other := range plan.Steps {
			if ofStep[a] != ofStep[b] {
				continue
			}
			for _, x := range append([]int{s.Out}, s.In...) {
				y := other.Out
				if at[x] == at[y] || placed.Offsets[at[x]] < 0 || placed.Offsets[at[y]] < 0 {
					continue
				}
				from, to := placed.Offsets[at[x]], placed.Offsets[at[y]]
				require.True(t, from >= to+plan.Tensors[y].Bytes(2) || to >= from+plan.Tensors[x].Bytes(2), "%d and %d", x, y)
			}
		}
	}
	require.Equal(t, 9, shared)
}

// TestFused compares what fused steps compute with the reference, and counts them.
func TestFused(t *testing.T) {
	shapes := [][3]int{{9, 7, 64}, {5, 33, 3}, {13, 11, 130}, {3, 3, 65}, {40, 3, 16}}
	forEach(t, func(t *testing.T, opts backend.Options) {
		for _, s := range shapes {
			requireReference(t, residual(s[0], s[1], s[2]), opts)
		}
	})
	p := residual(40, 33, 64).done()
	for _, threads := range []int{1, 2} {
		for _, isa := range sets.Names() {
			set, err := sets.Lookup(isa)
			require.NoError(t, err)
			config := driver.Config{MaxBatch: 1, Threads: threads, ISA: set.ISA, ArenaBytes: 1 << 30}
			e, err := newExecutable(t.Context(), p, set, config)
			require.NoError(t, err)
			require.Len(t, e.steps, 9, set.ISA)
			added := 0
			for _, c := range e.Explain() {
				if strings.HasPrefix(c.Kernel, "in that of ") {
					added++
				}
			}
			want := 0 // where no kernel ends float32 values
			switch {
			case set.ScaleAdd != nil, set.Matrix != nil:
				want = 2
			case strings.HasPrefix(set.ISA, "avx"):
				want = 1
			}
			require.Equal(t, want, added, set.ISA)
			// The shortcut that is read for the last time may be where the sum is.
			last := p.Steps[len(p.Steps)-2]
			require.IsType(t, &plan.Add{}, last.Op)
			over := &e.full[last.In[1]].F32[0] == &e.full[last.Out].F32[0]
			require.Equal(t, want > 0, over, set.ISA)
			require.NoError(t, e.Close())
		}
	}
}

// TestOver looks at who lies where once a chain of shortcuts lies in one place.
func TestOver(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 8, 8, 64))
	p.step("affine", &plan.Affine{Scale: p.floats(64), Shift: p.floats(64)}, bcnn.Float32, p.last().Shape)
	var over []pair
	for range 3 {
		shortcut := len(p.plan.Tensors) - 1
		p.step("sign", &plan.Sign{Threshold: p.threshold(64, 1, 2, false)}, bcnn.Bits, p.last().Shape)
		p.conv(convOptions{window: bcnn.Window{KH: 1, KW: 1}, out: 64, float: true})
		p.step("add", &plan.Add{}, bcnn.Float32, p.last().Shape, shortcut)
		over = append(over, pair{shortcut, len(p.plan.Tensors) - 1})
	}
	p.step("sign", &plan.Sign{Threshold: p.threshold(64, 1, 2, false)}, bcnn.Bits, p.last().Shape)
	p.step("affine", &plan.Affine{Scale: p.floats(64), Shift: p.floats(64)}, bcnn.Float32, p.last().Shape)
	plan := p.done()
	all := groupsOf(plan, false)
	before, _, _ := uses(graphOf(plan), 1, all, whole(plan, 1), joinedOf(plan), nil)
	after, at, _ := uses(graphOf(plan), 1, all, whole(plan, 1), joinedOf(plan), over)
	for _, p := range over {
		require.Equal(t, at[p.written], at[p.read])
	}
	tensor := plan.Tensors[plan.Steps[0].Out].Bytes(1)
	require.Equal(t, tensor, plan.Place(1, before).Bytes-plan.Place(1, after).Bytes)
	requireReference(t, p, backend.Options{})
}

// TestFusedMemory: where the memory does not allow fusion, steps take turns.
func TestFusedMemory(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 64, 64, 64))
	for range 4 { // each of them twice read, so none lies in the place of another
		p.step("channels", &plan.Channels{Index: make([]int32, 64)}, bcnn.Float32, p.last().Shape)
		p.step("add", &plan.Add{}, bcnn.Float32, p.last().Shape, len(p.plan.Tensors)-1)
	}
	plan := p.done()
	fused, _, _ := uses(graphOf(plan), 1, groupsOf(plan, false), whole(plan, 1), joinedOf(plan), nil)
	need, less := plan.Place(1, fused).Bytes, plan.Place(1, plan.InnerUses()).Bytes
	require.Less(t, less, need)
	set, err := sets.Lookup(sets.Names()[0])
	require.NoError(t, err)
	for _, c := range []struct {
		arena int64
		steps int
	}{{need + 1<<20, 2}, {need - 1, len(plan.Steps)}} {
		e, err := newExecutable(t.Context(), plan, set, driver.Config{MaxBatch: 1, Threads: 1, ISA: set.ISA, ArenaBytes: c.arena})
		require.NoError(t, err)
		require.Len(t, e.steps, c.steps)
		require.NoError(t, e.Close())
	}
	requireReference(t, p, backend.Options{})
}
