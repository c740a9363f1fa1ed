package cpu

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/host"
	"github.com/bitcnn/bitcnn/internal/text"
)

// shortcut draws a plan whose step 2 makes tensor 3 of float32 values, with tensor 1 as a
// shortcut past it.
func shortcut() *planner {
	p := newPlanner(1, input(bcnn.Float32, 4, 5, 8))
	p.affine(plan.ActivationNone)
	p.sign()
	p.conv(convOptions{window: bcnn.Window{KH: 1, KW: 1}, out: 8, float: true})
	return p
}

// graphOf is plan.NewGraph for tests whose plans are called plan.
func graphOf(p *plan.Plan) *plan.Graph { return plan.NewGraph(p) }

// asked is a compiler that answers questions of a plan.
func asked(p *plan.Plan, threads int) *compiler {
	c := &compiler{graph: graphOf(p), config: driver.Config{Threads: threads}, container: separate(p)}
	c.at = inPlace(c.graph, groupsOf(p, false), c.container)
	return c
}

// TestShortcut asks which sums behind a convolution its kernels may do besides.
func TestShortcut(t *testing.T) {
	shape := bcnn.Shape{H: 4, W: 5, C: 8}
	add := func(p *planner, end plan.ActivationKind, in ...int) {
		p.step("add", &plan.Add{Activation: p.activation(end, 8)}, bcnn.Float32, shape)
		p.link(in...)
	}
	function := func(p *planner, in ...int) {
		p.step("add", &plan.Add{Activation: plan.Activation{Kind: plan.ActivationFunction, Function: bcnn.Tanh}}, bcnn.Float32, shape)
		p.link(in...)
	}
	for _, c := range []struct {
		name    string
		more    func(p *planner)
		steps   int
		added   int // tensor, where it asks
		scaled  bool
		overlay []pair
	}{
		{"a sum", func(p *planner) { add(p, plan.ActivationNone, 3, 1); p.sign() }, 1, 1, false, []pair{{1, 4}}},
		{"with the shortcut first", func(p *planner) { add(p, plan.ActivationReLU, 1, 3); p.sign() }, 1, 1, false, []pair{{1, 4}}},
		{"with an input", func(p *planner) { add(p, plan.ActivationClip, 3, 0); p.sign() }, 1, 0, false, nil},
		{"a sum that is an output", func(p *planner) { add(p, plan.ActivationNone, 3, 1) }, 0, -1, false, nil},
		{"a shortcut that is read again", func(p *planner) { add(p, plan.ActivationNone, 3, 1); add(p, plan.ActivationNone, 4, 1); p.sign() }, 1, 1, false, nil},
		{"a function of the sum", func(p *planner) { function(p, 3, 1); p.sign() }, 0, -1, false, nil},
		{"a sum of others", func(p *planner) { add(p, plan.ActivationNone, 1, 0); p.sign() }, 0, -1, false, nil},
		{"a product", func(p *planner) { p.step("mul", &plan.Pair{}, bcnn.Float32, shape, 1); p.sign() }, 0, -1, false, nil},
		{"a scaled sum", func(p *planner) { p.affine(plan.ActivationNone); add(p, plan.ActivationPReLU, 4, 1); p.sign() }, 2, 1, true, []pair{{1, 5}}},
		{"a scaled sum with the shortcut first", func(p *planner) { p.affine(plan.ActivationNone); add(p, plan.ActivationNone, 1, 4); p.sign() }, 2, 1, true, []pair{{1, 5}}},
		{"scaled alone", func(p *planner) { p.affine(plan.ActivationNone); p.numbers(2) }, 0, -1, false, nil},
		{"scaled and cut", func(p *planner) { p.affine(plan.ActivationReLU); add(p, plan.ActivationNone, 4, 1); p.sign() }, 0, -1, false, nil},
		{"nothing but cut", func(p *planner) {
			p.step("affine", &plan.Affine{}, bcnn.Float32, shape)
			add(p, plan.ActivationNone, 4, 1)
			p.sign()
		}, 0, -1, false, nil},
		{"scaled sums that are read again", func(p *planner) {
			p.affine(plan.ActivationNone)
			add(p, plan.ActivationNone, 4, 1)
			add(p, plan.ActivationNone, 5, 3)
			p.sign()
		}, 0, -1, false, nil},
		{"scaled, and read again", func(p *planner) {
			p.affine(plan.ActivationNone)
			add(p, plan.ActivationNone, 4, 1)
			add(p, plan.ActivationNone, 5, 4)
			p.sign()
		}, 0, -1, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shortcut()
			c.more(p)
			asked := asked(&p.plan, 1)
			last := 2
			for _, g := range groupsOf(&p.plan, false) {
				if g.first == 2 {
					last = g.last
				}
			}
			var ends []end
			for _, e := range asked.ends(2, last, last) {
				if e.sum >= 0 {
					ends = append(ends, e)
				}
			}
			if c.added < 0 {
				require.Empty(t, ends)
				return
			}
			require.Len(t, ends, 1)
			e := ends[0]
			require.Equal(t, c.added, e.other)
			require.Equal(t, 2+c.steps, e.last)
			require.Equal(t, e.last, e.sum)
			require.Equal(t, -1, e.levels)
			require.Empty(t, e.unwritten)
			if c.scaled {
				require.Equal(t, 3, e.scaled)
			} else {
				require.Equal(t, -1, e.scaled)
			}
			for _, overlaid := range []bool{true, false} {
				prog := &program{choices: make([]driver.Choice, len(p.plan.Steps)), unwritten: make([]bool, len(p.plan.Tensors))}
				asked.ended(prog, 2, &lead{end: &e, overlaid: overlaid})
				require.False(t, prog.saves)
				if overlaid {
					require.Equal(t, c.overlay, prog.over)
				} else {
					require.Empty(t, prog.over)
				}
				for i, choice := range prog.choices {
					require.Equal(t, i > 2 && i <= e.last, choice.Kernel != "")
				}
			}
		})
	}
}

// TestLevelsOf asks which levels the step before may make besides.
func TestLevelsOf(t *testing.T) {
	levels := func(p *planner) { p.levels(4, bcnn.Uint8) }
	for _, c := range []struct {
		name string
		more func(p *planner)
		want bool
	}{
		{"read once", levels, true},
		{"of another tensor", func(p *planner) { levels(p); p.link(1) }, false},
		{"an output", func(p *planner) { levels(p); p.done(); p.plan.Outputs = append(p.plan.Outputs, 3) }, false},
		{"read again", func(p *planner) { levels(p); p.affine(plan.ActivationNone); p.link(3) }, false},
		{"read before", func(p *planner) { levels(p); p.plan.Steps[1].In = []int{3} }, false},
		{"in float32", func(p *planner) { p.levels(4, bcnn.Float32) }, false},
		{"of another kind", func(p *planner) { p.affine(plan.ActivationNone) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shortcut()
			c.more(p)
			p.done()
			e, ok := asked(&p.plan, 1).levelsOf(2)
			require.Equal(t, c.want, ok)
			if ok {
				require.Equal(t, end{last: 3, fake: -1, scaled: -1, sum: -1, levels: 3}, e)
			}
		})
	}
}

// TestPoolPlace asks of pools whether they may write over what they read.
func TestPoolPlace(t *testing.T) {
	shape := bcnn.Shape{H: 4, W: 6, C: 8}
	half := bcnn.Shape{H: 2, W: 3, C: 8}
	pool := &plan.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}}
	for _, c := range []struct {
		name    string
		threads int
		more    func(p *planner)
		change  func(c *compiler)
		want    bool
	}{
		{"read once", 1, func(p *planner) {}, nil, true},
		{"of two threads", 2, func(p *planner) {}, nil, false},
		{"read behind it", 1, func(p *planner) { p.sign(); p.link(1) }, nil, false},
		{"an output", 1, func(p *planner) { p.plan.Outputs = []int{2} }, nil, false},
		{"what is an output", 1, func(p *planner) { p.plan.Outputs = []int{1} }, nil, false},
		{"an input", 1, func(p *planner) { p.plan.Steps[1].In = []int{0} }, nil, false},
		{"the part of another", 1, func(p *planner) {}, func(c *compiler) { c.container[1] = 3 }, false},
		{"in which another is", 1, func(p *planner) {}, func(c *compiler) { c.container[3] = 1 }, false},
		{"that is a part", 1, func(p *planner) {}, func(c *compiler) { c.container[2] = 3 }, false},
		{"that has a part", 1, func(p *planner) {}, func(c *compiler) { c.container[3] = 2 }, false},
		{"whose windows reach back", 1, func(p *planner) {
			p.plan.Steps[1].Op = &plan.MaxPool{Window: bcnn.Window{KH: 3, KW: 3, StrideH: 1, StrideW: 1, Pad: pad(1)}}
			p.plan.Tensors[2].Shape = shape
		}, nil, false},
		{"of another kind", 1, func(p *planner) { p.plan.Steps[1].Op = &plan.AvgPool{Window: pool.Window} }, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanner(1, bcnn.Input{DType: bcnn.Float32, Shape: shape})
			p.affine(plan.ActivationNone)
			p.step("pool", pool, bcnn.Float32, half)
			p.affine(plan.ActivationNone)
			p.affine(plan.ActivationNone)
			c.more(p)
			e := asked(&p.plan, c.threads)
			if c.change != nil {
				c.change(e)
			}
			require.Equal(t, c.want, e.poolsInPlace(1))
		})
	}
}

// TestWhole says which tensors lie in which: 1 is joined to 0 as 2.
func TestWhole(t *testing.T) {
	shape := func(c int) bcnn.Shape { return bcnn.Shape{H: 4, W: 5, C: c} }
	join := func(p *planner, a, b int) {
		p.step("join", &plan.Concat{}, bcnn.Float32, shape(p.plan.Tensors[a].Shape.C+p.plan.Tensors[b].Shape.C))
		p.link(a, b)
	}
	signs := func(p *planner, of int) {
		c := p.plan.Tensors[of].Shape.C
		p.step("sign", &plan.Sign{Threshold: p.threshold(c, 1, 2, false)}, bcnn.Bits, shape(c))
		p.link(of)
	}
	end := func(p *planner) { p.affine(plan.ActivationNone) }
	for _, c := range []struct {
		name string
		more func(p *planner)
		want []int
	}{
		{"once", func(p *planner) { end(p) }, []int{0, 1, 2, 3}},
		{"twice", func(p *planner) { join(p, 2, 1); end(p) }, []int{0, 1, 3, 3, 4}},
		{"three times", func(p *planner) { join(p, 2, 1); join(p, 3, 1); end(p) }, []int{0, 1, 4, 4, 4, 5}},
		{"as the second", func(p *planner) { join(p, 1, 2); end(p) }, []int{0, 1, 2, 3, 4}},
		{"to itself", func(p *planner) { join(p, 2, 2); end(p) }, []int{0, 1, 2, 3, 4}},
		{"read by a sign", func(p *planner) { signs(p, 2); join(p, 2, 1); end(p) }, []int{0, 1, 4, 3, 4, 5}},
		{"read by an affine step before", func(p *planner) { end(p); p.link(2); join(p, 2, 1); end(p) }, []int{0, 1, 2, 3, 4, 5}},
		{"read by an affine step behind", func(p *planner) {
			join(p, 2, 1)
			end(p)
			end(p)
			p.link(2)
			join(p, 4, 5)
			end(p)
		}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"joined twice", func(p *planner) { join(p, 2, 1); join(p, 2, 1); join(p, 3, 4); end(p) }, []int{0, 1, 2, 5, 4, 5, 6}},
		{"an output", func(p *planner) { join(p, 2, 1); end(p); p.plan.Outputs = append(p.plan.Outputs, 2) }, []int{0, 1, 2, 3, 4}},
		{"in an output", func(p *planner) { join(p, 2, 1) }, []int{0, 1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanner(1, bcnn.Input{DType: bcnn.Float32, Shape: shape(4)})
			end(p)
			join(p, 0, 1)
			c.more(p)
			require.Equal(t, c.want, joinedOf(&p.plan))
		})
	}
	p := newPlanner(1, bcnn.Input{DType: bcnn.Float32, Shape: shape(4)})
	p.sign()
	for range 2 { // of bits
		p.step("join", &plan.Concat{}, bcnn.Bits, shape(p.last().Shape.C+4), 1)
	}
	p.done()
	require.Equal(t, separate(&p.plan), joinedOf(&p.plan))
	p = newPlanner(1, bcnn.Input{DType: bcnn.Float32, Shape: shape(4)})
	end(p)
	join(p, 0, 1)
	p.numbers(2) // planes, which are other rows
	join(p, 2, 1)
	end(p)
	require.Equal(t, separate(&p.plan), joinedOf(&p.plan))
}

func TestInfo(t *testing.T) {
	info := device{}.Info()
	require.Equal(t, "cpu", info.ID)
	require.NotEmpty(t, info.Name)
	require.Equal(t, driver.CPU, info.Kind)
	require.Equal(t, sets.Names(), info.ISAs)
	require.Equal(t, sets.Names()[0]+", "+text.Count(host.Threads(), "thread"), info.Detail)
	require.Equal(t, 1<<24, info.MaxBatch)
	require.Equal(t, 1024, info.MaxThreads)
}

// What is read for a bandwidth is as large as asked for, within what tells caches apart.
func TestBandwidthMemory(t *testing.T) {
	for _, c := range []struct {
		size    int64
		threads int
		want    uint64
	}{{1, 1, 4096}, {1, 3, 3 * 4096}, {8192, 2, 2 * 4096}, {32768, 2, 32768}, {48 << 20, 2, 48 << 20}, {1 << 40, 2, 256 << 20}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Device().Bandwidth(backend.Options{Threads: c.threads}, c.size)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		got := after.TotalAlloc - before.TotalAlloc
		require.GreaterOrEqual(t, got, c.want)
		require.Less(t, got, c.want+(512<<10))
	}
}
