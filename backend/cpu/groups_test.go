package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// link makes step i of a plan read so many tensors.
func (p *planner) link(in ...int) { p.plan.Steps[len(p.plan.Steps)-1].In = in }

// TestFollows asks of which steps the last one can be in a group with those before it.
func TestFollows(t *testing.T) {
	shape := bcnn.Shape{H: 6, W: 5, C: 8}
	one := bcnn.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1}
	affine := func(p *planner) { p.affine(plan.ActivationNone) }
	for _, c := range []struct {
		name string
		in   bcnn.DType
		last func(p *planner)
		want bool
	}{
		{"an affine step", bcnn.Float32, affine, true},
		{"a sum", bcnn.Float32, func(p *planner) { p.step("add", &plan.Add{}, bcnn.Float32, shape, 0) }, true},
		{"a sum whose second input is the one", bcnn.Float32, func(p *planner) { p.step("add", &plan.Add{}, bcnn.Float32, shape); p.link(0, 1) }, true},
		{"a product", bcnn.Float32, func(p *planner) { p.step("mul", &plan.Pair{}, bcnn.Float32, shape, 0) }, true},
		{"signs", bcnn.Float32, func(p *planner) { p.sign() }, true},
		{"signs of planes", bcnn.Float32, func(p *planner) { p.numbers(2) }, false},
		{"more channels", bcnn.Float32, func(p *planner) {
			p.step("channels", &plan.Channels{Index: make([]int32, 3)}, bcnn.Float32, bcnn.Shape{H: 6, W: 5, C: 3})
		}, true},
		{"levels", bcnn.Float32, func(p *planner) {
			p.step("levels", &plan.Quantize{Levels: 2, Thresholds: []float32{0}}, bcnn.Uint8, shape)
		}, true},
		{"an affine step of bytes", bcnn.Uint8, affine, true},
		{"of another tensor", bcnn.Float32, func(p *planner) { affine(p); p.link(0) }, false},
		{"a pool", bcnn.Float32, func(p *planner) { p.step("pool", &plan.MaxPool{Window: one}, bcnn.Float32, shape) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanner(1, bcnn.Input{DType: c.in, Shape: shape})
			p.step("pool", &plan.MaxPool{Window: one}, c.in, shape)
			c.last(p)
			want := []group{{0, 0}, {1, 1}}
			if c.want {
				want = []group{{0, 1}}
			}
			require.Equal(t, want, groupsOf(&p.plan, false))
			require.Equal(t, []group{{0, 0}, {1, 1}}, groupsOf(&p.plan, true))
		})
	}
}

// A step that follows works on as many rows and columns as the first of its group, also where
// another has as many pixels.
func TestFollowsShape(t *testing.T) {
	for _, c := range []struct {
		h, w int
		want int
	}{{6, 5, 1}, {6, 4, 2}, {7, 5, 2}, {5, 6, 2}} {
		p := newPlanner(1, input(bcnn.Float32, 6, 5, 8))
		p.affine(plan.ActivationNone)
		p.step("add", &plan.Add{}, bcnn.Float32, bcnn.Shape{H: c.h, W: c.w, C: 8}, 0) // which a check would refuse
		require.Len(t, groupsOf(&p.plan, false), c.want, c)
	}
}

// A group has a leader and at most four behind it.
func TestGroupSizes(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 6, 5, 8))
	for range 12 {
		p.affine(plan.ActivationNone)
	}
	require.Equal(t, []group{{0, 4}, {5, 9}, {10, 11}}, groupsOf(&p.plan, false))
	p.affine(plan.ActivationNone) // of the sum of the second group
	p.link(5)
	require.Equal(t, []group{{0, 4}, {5, 9}, {10, 11}, {12, 12}}, groupsOf(&p.plan, false))
}

// TestPlaces says who lies where in small plans of one group: 1 is what its first step writes,
// 2 what the second does, which reads 1.
func TestPlaces(t *testing.T) {
	shape := bcnn.Shape{H: 6, W: 5, C: 8}
	affine := func(p *planner) { p.affine(plan.ActivationNone) }
	for _, c := range []struct {
		name string
		more func(p *planner)
		want []int
	}{
		{"read once", func(p *planner) { affine(p); p.sign() }, []int{0, 2, 2, 3}},
		{"a sum's first input", func(p *planner) { p.step("add", &plan.Add{}, bcnn.Float32, shape, 0); p.sign() }, []int{0, 2, 2, 3}},
		{"a sum's second input", func(p *planner) { p.step("add", &plan.Add{}, bcnn.Float32, shape); p.link(0, 1); p.sign() }, []int{0, 2, 2, 3}},
		{"a product", func(p *planner) { p.step("mul", &plan.Pair{}, bcnn.Float32, shape, 0); p.sign() }, []int{0, 2, 2, 3}},
		{"twice the same", func(p *planner) { p.step("add", &plan.Add{}, bcnn.Float32, shape, 1); p.sign() }, []int{0, 1, 2, 3}},
		{"of another shape", func(p *planner) {
			p.step("channels", &plan.Channels{Index: make([]int32, 8)}, bcnn.Float32, shape)
			p.sign()
		}, []int{0, 1, 2, 3}},
		{"a chain", func(p *planner) { affine(p); affine(p); affine(p); p.sign() }, []int{0, 4, 4, 4, 4, 5}},
		{"read behind it", func(p *planner) { affine(p); p.step("add", &plan.Add{}, bcnn.Float32, shape, 1); p.sign() }, []int{0, 1, 3, 3, 4}},
		{"an output", func(p *planner) { affine(p); p.sign(); p.plan.Outputs = []int{1} }, []int{0, 1, 2, 3}},
		{"before an output", func(p *planner) { affine(p); p.sign(); p.plan.Outputs = []int{2} }, []int{0, 1, 2, 3}},
		{"a step that reads something else", func(p *planner) {
			affine(p)
			p.step("add", &plan.Add{}, bcnn.Float32, shape)
			p.link(1, 0)
			p.sign()
		}, []int{0, 1, 2, 3, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanner(1, bcnn.Input{DType: bcnn.Float32, Shape: shape})
			affine(p)
			c.more(p)
			require.Equal(t, c.want, inPlace(graphOf(&p.plan), groupsOf(&p.plan, false), separate(&p.plan)))
			require.Equal(t, separate(&p.plan), inPlace(graphOf(&p.plan), groupsOf(&p.plan, true), separate(&p.plan)))
		})
	}
}

// The last run leaves no tensors of the caller behind, and Explain has a choice for each step.
func TestUnbound(t *testing.T) {
	for _, net := range []func(uint64) *planner{smallNet, floatNet} {
		p := net(1)
		plan := p.done()
		e := compileWith(t, plan, driver.Config{MaxBatch: 2})
		require.Len(t, e.Explain(), len(plan.Steps))
		out := []bcnn.Tensor{bcnn.NewTensor(bcnn.Float32, 1, plan.OutputShape())}
		require.NoError(t, e.Run(t.Context(), out, []bcnn.Tensor{p.input(1)}))
		for i, t2 := range e.tensors {
			kept := t2.U8 != nil || t2.Words != nil || t2.F32 != nil
			inner := i > 0 && i != plan.Outputs[0]
			require.Equal(t, inner, kept, i)
			if inner {
				require.Equal(t, 1, t2.N)
				require.Equal(t, plan.Tensors[i].Shape, t2.Shape)
			}
		}
	}
}

// Of two tensors at one place, the larger one has it, and the others that lie in the smaller
// one come along.
func TestPlaceOfPairs(t *testing.T) {
	of := func(channels ...int) *planner {
		p := newPlanner(1, input(bcnn.Float32, 3, 3, 4))
		for _, c := range channels {
			p.step("channels", &plan.Channels{Index: make([]int32, c)}, bcnn.Float32, bcnn.Shape{H: 3, W: 3, C: c})
		}
		p.affine(plan.ActivationNone)
		return p
	}
	for _, c := range []struct {
		channels []int
		over     []pair
		want     []int
	}{
		{[]int{6, 8, 8}, []pair{{1, 2}}, []int{0, 2, 2, 3, 4}},
		{[]int{6, 8, 8}, []pair{{2, 1}}, []int{0, 2, 2, 3, 4}},
		{[]int{8, 6, 8}, []pair{{1, 2}}, []int{0, 1, 1, 3, 4}},
		{[]int{7, 8, 9}, []pair{{1, 2}, {2, 3}}, []int{0, 3, 3, 3, 4}},
		{[]int{9, 8, 7}, []pair{{2, 3}, {1, 2}}, []int{0, 1, 1, 1, 4}},
	} {
		plan := &of(c.channels...).plan
		_, at, _ := uses(graphOf(plan), 1, groupsOf(plan, true), whole(plan, 1), separate(plan), c.over)
		require.Equal(t, c.want, at, c)
	}
}

// TestFloatGroups has convolutions in groups of few inputs, with as many outputs or more, of the sizes that
// kernels take together and of others.
func TestFloatGroups(t *testing.T) {
	same := bcnn.Window{KH: 3, KW: 3, Pad: pad(1)}
	forEach(t, func(t *testing.T, opts backend.Options) {
		for i, c := range []struct {
			in, groups, out int
			window          bcnn.Window
		}{
			{64, 8, 64, same}, {32, 4, 64, same}, {32, 16, 32, same}, {64, 16, 64, same}, {64, 16, 128, same}, {32, 16, 128, same},
			{48, 6, 96, same}, {32, 4, 128, same}, {64, 4, 64, same}, {24, 8, 32, same},
			{64, 8, 64, bcnn.Window{KH: 3, KW: 3}},
			{64, 8, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(2), DilationH: 2, DilationW: 2}},
			{64, 8, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(1), StrideH: 2, StrideW: 1}},
			{64, 8, 64, bcnn.Window{KH: 3, KW: 3, Pad: pad(1), StrideH: 1, StrideW: 2}},
			{64, 8, 64, bcnn.Window{KH: 2, KW: 3, Pad: pad(1)}},
		} {
			for width, end := range map[int]plan.ActivationKind{7: plan.ActivationNone, 21: plan.ActivationPReLU} {
				p := newPlanner(uint64(i), input(bcnn.Float32, 5, width, c.in))
				p.conv(convOptions{window: c.window, out: c.out, groups: c.groups, float: true, end: end})
				requireReference(t, p, opts)
			}
		}
	})
}
