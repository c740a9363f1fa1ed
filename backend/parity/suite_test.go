package parity

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/models"
)

func TestTheHonestDevicePasses(t *testing.T) {
	cases := Cases()
	if testing.Short() { // networks are found right on every device
		cases = slices.DeleteFunc(Core(), isNetwork)
	}
	failures, err := Check(t.Context(), fake{}.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Empty(t, failures)
}

// FuzzRandomNetwork holds the generator to networks that lower both ways, and
// the two plans to the same output.
func FuzzRandomNetwork(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	// Functions of what is limited, so that they do not overflow in front of a normalisation.
	f.Add(uint64(17900231673210337874))
	f.Add(uint64(11130005025789735227))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if f := RandomCase(seed).check(t.Context(), fake{}.device(), backend.Options{}, func(int) {}); f != nil {
			t.Error(*f)
		}
	})
}

// The table must reach every kind of step on every type, and every field that
// changes what a step does.
func TestTheTableCoversThePlan(t *testing.T) {
	seen := make(map[string]int)
	note := func(on bool, feature string) {
		if on {
			seen[feature]++
		}
	}
	names := make(map[string]bool)
	for _, c := range Cases() {
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		plans, err := c.plans(t.Context())
		require.NoError(t, err, c.Name)
		for _, p := range plans {
			for _, s := range p.Steps {
				in := p.Tensors[s.In[0]].DType.String()
				kind := s.Kind() + " of " + in
				seen[kind]++
				switch op := s.Op.(type) {
				case *plan.Binarize:
					note(true, string(op.Scheme))
					note(op.Threshold != nil && op.Threshold.Flip != nil, "binarize flip")
				case *plan.Conv:
					note(op.Threshold != nil, kind+" to bits")
					note(op.Threshold == nil && op.Scale == nil, kind+" to sums")
					note(op.Scale != nil, kind+" scaled")
					note(op.Activation.Kind != plan.ActivationNone, kind+" "+op.Activation.Kind.String())
					note(op.Pool != nil, kind+" pool")
					note(op.Threshold != nil && op.Threshold.Flip != nil, kind+" flip")
					note(op.Pool != nil && op.Threshold.Flip != nil, kind+" pool, flip")
					note(op.Groups > 1, kind+" groups")
					note(op.Border != nil, "border")
					note(op.ZeroPoint != 0, kind+" zero point")
					if inner := s.In[0] >= len(p.Inputs); in == "uint8" {
						of := fmt.Sprintf("%s, 8-bit weights %v, levels %v", kind, op.Int8 != nil, inner)
						if op.Int16 != nil {
							of = kind + ", 16-bit weights"
						}
						note(true, of)
						note(op.ZeroPoint != 0, of+", zero point")
						note(op.Pad != (bcnn.Padding{}), of+", padded")
						note(op.Threshold != nil, of+", to bits")
						note(op.Scale != nil, of+", scaled")
					}
					note(op.InPlanes > 1 && op.OutPlanes > 1, "conv of planes to planes")
					note(op.InPlanes > 1 && op.OutPlanes < 2 && op.Threshold != nil, "conv of planes to bits")
					note(op.InPlanes > 1 && op.Threshold == nil, "conv of planes to sums")
					note(op.OutPlanes > 1 && op.Pool != nil, "conv to planes, pool")
				case *plan.MaxPool:
					note(op.Flip != nil, "maxpool flip")
					note(op.Planes > 1, "maxpool of planes")
					note(op.Pad != (bcnn.Padding{}), kind+" padded")
				case *plan.Affine:
					note(op.Scale == nil, kind+" copy")
					note(op.Activation.Kind != plan.ActivationNone, kind+" "+op.Activation.Kind.String()+string(op.Activation.Function))
				case *plan.Table:
					note(op.Planes > 1, "table to planes")
					note(p.Tensors[s.Out].DType == bcnn.Bits, "table to bits")
					note(p.Tensors[s.Out].DType == bcnn.Uint8, "table to uint8")
					note(p.Tensors[s.Out].DType == bcnn.Uint8 && len(op.Values) > plan.TableSize, "table to uint8 each")
					note(p.Tensors[s.Out].DType == bcnn.Uint8 && p.Tensors[s.Out].Shape.Values()%4 > 0, "table to uint8, not of words")
					note(len(op.Values) > plan.TableSize, "table each")
				case *plan.Sign:
					note(op.Threshold.Flip != nil, "sign flip")
					note(op.Planes > 1, "sign to planes")
				case *plan.Quantize:
					to := "quantize to " + p.Tensors[s.Out].DType.String()
					note(true, to)
					note(len(op.Thresholds) >= op.Levels, to+" each")
				case *plan.Add:
					note(op.Activation.Kind != plan.ActivationNone, "add "+op.Activation.Kind.String())
				case *plan.AvgPool:
					note(op.Pad != (bcnn.Padding{}), fmt.Sprintf("%s padding %v", kind, op.CountPadding))
				case *plan.Pair:
					by := p.Tensors[s.In[1]].Shape
					note(true, fmt.Sprintf("%s by a pixel %v, a channel %v", kind, by.Pixels() == 1, by.C == 1))
				case *plan.Concat:
					note(len(s.In) > 2, kind+" of many")
				case *plan.Pixels:
					note(slices.Contains(op.Rows, -1), kind+" filled")
					note(op.BlockH > 1 && op.BlockW > 1, kind+" in blocks")
					note(p.Tensors[s.Out].Coded, kind+" of levels")
				case *plan.Transpose:
					note(p.Tensors[s.Out].Coded, kind+" of levels")
				case *plan.TopK:
					note(op.Values, kind+" values")
				case *plan.Channels:
					note(slices.Contains(op.Index, -1), kind+" zeros")
				}
			}
		}
	}
	t.Logf("%d cases, %v", len(names), seen)
	require.Greater(t, len(names), 500)
	features := []string{"threshold", "grey", "lbp", "minmax", "binarize flip", "border", "sign of float32", "sign flip",
		"sign to planes", "conv of planes to planes", "conv of planes to bits", "conv of planes to sums", "conv to planes, pool", "maxpool of planes",
		"table to planes", "table to bits", "table to uint8", "table to uint8 each", "table to uint8, not of words",
		"quantize to float32", "quantize to float32 each", "quantize to uint8", "quantize to uint8 each", "maxpool of uint8", "maxpool of uint8 padded",
		"add of float32", "add relu", "add prelu", "add clip", "avgpool of bits", "avgpool of float32",
		"avgpool of bits padding true", "avgpool of bits padding false", "avgpool of float32 padding true", "avgpool of float32 padding false",
		"mul of float32 by a pixel true, a channel true", "mul of float32 by a pixel true, a channel false", "mul of float32 by a pixel false, a channel true", "mul of float32 by a pixel false, a channel false",
		"table of uint8", "table to planes", "table to bits", "table each",
		"min of float32 by a pixel true, a channel true", "min of float32 by a pixel true, a channel false", "min of float32 by a pixel false, a channel true", "min of float32 by a pixel false, a channel false",
		"max of float32 by a pixel true, a channel true", "max of float32 by a pixel true, a channel false", "max of float32 by a pixel false, a channel true", "max of float32 by a pixel false, a channel false",
		"concat of bits", "concat of float32", "concat of bits of many", "concat of float32 of many",
		"channels of bits", "channels of float32", "channels of float32 zeros",
		"pixels of bits", "pixels of float32", "pixels of bits filled", "pixels of float32 filled", "pixels of bits in blocks", "pixels of float32 in blocks",
		"matmul of bits", "matmul of float32", "transpose of bits", "transpose of float32", "transpose of bits of levels",
		"pixels of bits of levels", "resample of float32", "topk of float32", "topk of float32 values",
		"flatten of bits", "flatten of float32", "maxpool of bits", "maxpool of float32",
		"maxpool of bits padded", "maxpool of float32 padded", "maxpool flip", "conv of uint8 zero point"}
	for _, of := range []string{"8-bit weights true, levels true", "8-bit weights true, levels false", "8-bit weights false, levels true", "16-bit weights"} {
		for _, end := range []string{"", ", zero point", ", padded", ", scaled"} {
			features = append(features, "conv of uint8, "+of+end)
		}
		features = append(features, "dense of uint8, "+of)
	}
	features = append(features, "conv of uint8, 8-bit weights false, levels true, to bits")
	for _, in := range []string{"bits", "uint8", "float32"} {
		features = append(features, "affine of "+in, "affine of "+in+" copy",
			"affine of "+in+" relu", "affine of "+in+" prelu", "affine of "+in+" clip",
			"conv of "+in+" groups", "conv of "+in+" pool", "conv of "+in+" flip", "conv of "+in+" pool, flip")
		for _, f := range bcnn.FunctionNames() {
			features = append(features, "affine of "+in+" function"+string(f))
		}
		for _, kind := range []string{"conv of ", "dense of "} {
			features = append(features, kind+in+" to bits", kind+in+" to sums", kind+in+" scaled", kind+in+" relu", kind+in+" prelu", kind+in+" clip")
		}
	}
	for _, f := range features {
		require.Positive(t, seen[f], f)
	}
}

func TestCasesAreAlwaysTheSame(t *testing.T) {
	for _, c := range []Case{Cases()[0], RandomCase(7), RandomCase(8)} {
		a, b := c.Network(), c.Network()
		require.Equal(t, a, b)
		plan, err := lower.Network(t.Context(), a, lower.Options{})
		require.NoError(t, err)
		small, large := c.Inputs(plan, 1), c.Inputs(plan, 3)
		for i := range small {
			require.Equal(t, small[i], large[i].Images(0, 1))
		}
	}
	require.NotEqual(t, RandomCase(7).Network(), RandomCase(8).Network())
}

// Progress counts the images that are run, of all cases alike, failures and plans that
// there are not among them.
func TestProgressCountsWork(t *testing.T) {
	cases := append(Cases()[:4], NetworkCases(Cases()[4].Network())...)
	dev := fake{compile: func(p *plan.Plan) error {
		if p.Name == cases[1].Name {
			return errors.ErrUnsupported
		}
		return nil
	}}
	// The reference, with Tap, then batches of all sizes: of both plans.
	work := map[int]int{2: 2 * (2 + 2 + 2 + 1 + 2), 3: 2 * (3 + 3 + 3 + 1 + 2 + 3)}
	total := 0
	for _, c := range cases {
		require.Equal(t, work[c.Batch], c.work(dev.device(), backend.Options{}))
		total += c.work(dev.device(), backend.Options{})
	}
	last, calls := 0, 0
	_, err := Check(t.Context(), dev.device(), backend.Options{}, cases, func(done, all int) {
		require.Equal(t, total, all)
		require.GreaterOrEqual(t, done, last)
		require.LessOrEqual(t, done-last, work[3])
		last, calls = done, calls+1
	})
	require.NoError(t, err)
	require.Equal(t, total, last)
	require.Greater(t, calls, 4*len(cases), "more than the cases are counted")
}

func TestCheckReportsEveryBrokenCase(t *testing.T) {
	cases := Cases()[:5]
	dev := fake{compile: func(p *plan.Plan) error {
		if p.Name == cases[1].Name || p.Name == cases[3].Name {
			return errors.ErrUnsupported
		}
		return nil
	}}
	failures, err := Check(context.Background(), dev.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Len(t, failures, 2)
	require.Equal(t, cases[1].Name, failures[0].Case)
	require.Equal(t, "fused", failures[0].Plan)
	require.ErrorIs(t, failures[1], errors.ErrUnsupported)
	require.ErrorContains(t, failures[1], cases[3].Name+": fused plan: with Tap: compile: fake: compile: ")

	ctx, cancel := context.WithCancel(context.Background())
	two := cases[0].work(dev.device(), backend.Options{}) + cases[1].work(dev.device(), backend.Options{})
	failures, err = Check(ctx, dev.device(), backend.Options{}, cases, func(done, _ int) {
		if done == two {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, failures, 1)
}

func TestPlansMustAgree(t *testing.T) {
	a := bcnn.Tensor{DType: bcnn.Float32, N: 2, Shape: bcnn.Shape{H: 1, W: 1, C: 4}, F32: []float32{1, 2, 3, 4, 5, 6, 7, 8}}
	b := compare.Guard(a).Tensor
	require.NoError(t, agree([][]bcnn.Tensor{{a}}))
	require.NoError(t, agree([][]bcnn.Tensor{{a}, {b}}))
	b.F32[6]++
	require.ErrorContains(t, agree([][]bcnn.Tensor{{a}, {b}}), "image 1, y 0, x 0, channel 2")
}

func TestABadNetworkIsAFailure(t *testing.T) {
	c := RandomCase(3)
	c.build = func(b *builder) *bcnn.Network { return &bcnn.Network{Name: "empty"} }
	f := c.check(t.Context(), fake{}.device(), backend.Options{}, func(int) {})
	require.NotNil(t, f)
	require.ErrorContains(t, f, c.Name+": lower: ")
}

func TestNetworkCases(t *testing.T) {
	net := RandomCase(11).Network()
	cases := NetworkCases(net)
	require.Len(t, cases, 5)
	failures, err := Check(t.Context(), fake{}.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Empty(t, failures)
	failures, err = Check(t.Context(), fake{compile: func(*plan.Plan) error { return errors.New("no") }}.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Len(t, failures, len(cases))

	// Sums beyond 2²⁴ are refused unfused; the fused plan is still checked.
	big := &bcnn.Network{Name: "big", Inputs: []bcnn.Input{{DType: bcnn.Uint8, Shape: bcnn.Shape{H: 300, W: 300, C: 1}}}}
	b := &builder{rng: cases[0].rng("test"), net: big}
	b.dense(2, false)
	cases = NetworkCases(big)
	plans, err := cases[0].plans(t.Context())
	require.NoError(t, err)
	require.Len(t, plans, 1)
	failures, err = Check(t.Context(), fake{}.device(), backend.Options{}, cases[:1], nil)
	require.NoError(t, err)
	require.Empty(t, failures)
}

// Cases that are kept are lowered once, and hold a later device to the same values.
func TestKeep(t *testing.T) {
	cases := Keep(Cases()[:5])
	compiled := make(map[*plan.Plan]int)
	failures, err := Check(t.Context(), fake{compile: func(p *plan.Plan) error { compiled[p]++; return nil }}.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Empty(t, failures)
	require.Len(t, compiled, 10) // fused and not

	spoils := func(op plan.Op, in bcnn.Tensor, honest func(plan.Op, bcnn.Tensor) (bcnn.Tensor, error)) (bcnn.Tensor, error) {
		out, err := honest(op, in)
		for i := range out.Words {
			out.Words[i] ^= 1
		}
		return out, err
	}
	failures, err = Check(t.Context(), fake{step: spoils}.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Len(t, failures, len(cases))

	// The spoilt values are not those that are kept.
	failures, err = Check(t.Context(), fake{compile: func(p *plan.Plan) error { compiled[p]++; return nil }}.device(), backend.Options{}, cases, nil)
	require.NoError(t, err)
	require.Empty(t, failures)
	require.Len(t, compiled, 10)
}

// The reference is held against the limit of the device.
func TestReferenceNeedsMemory(t *testing.T) {
	net, err := models.Load(t.Context(), "digits")
	require.NoError(t, err)
	cases := NetworkCases(net)
	for _, limit := range []int64{1, 10000} { // less than the reference needs, less than it and all results
		failures, err := Check(t.Context(), fake{}.device(), backend.Options{Limits: bcnn.Limits{ArenaBytes: limit}}, cases, nil)
		require.Empty(t, failures)
		require.ErrorIs(t, err, ErrMemory)
		require.ErrorContains(t, err, fmt.Sprintf("the limit is %d", limit))
	}
	failures, err := Check(t.Context(), fake{}.device(), backend.Options{}, cases[:1], nil)
	require.NoError(t, err)
	require.Empty(t, failures)
	_, err = Check(t.Context(), nil, backend.Options{}, cases, nil)
	require.ErrorContains(t, err, "no device")
	failures, err = Check(t.Context(), fake{}.device(), backend.Options{ISA: "none"}, cases, nil)
	require.Empty(t, failures)
	require.EqualError(t, err, `fake: instruction set "none": the device offers no choice`)
	_, err = memory(nil, 1)
	require.ErrorContains(t, err, "no plan")
}

// What is live when a device runs is no more than what has been asked for.
func TestMemoryIsEnough(t *testing.T) {
	testenv.Long(t)
	size := bcnn.Shape{H: 512, W: 512, C: 3}
	plain := bcnn.Window{KH: 1, KW: 1}
	padded := bcnn.Window{KH: 1, KW: 1, Pad: bcnn.Padding{Top: 255, Left: 255, Bottom: 256, Right: 256}}
	for name, build := range map[string]func(net *bcnn.Network){
		"large input": func(net *bcnn.Network) {
			net.Inputs[0].Shape = size
			net.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 512, KW: 512}})
		},
		"large output": func(net *bcnn.Network) {
			net.Inputs[0].Shape = bcnn.Shape{H: 1, W: 1, C: 1}
			net.Append("conv", bcnn.Conv2D{Window: padded, Out: 2, Weights: bcnn.Weights{F32: []float32{1.5, 2.5}}})
		},
		"large between": func(net *bcnn.Network) {
			net.Inputs[0].Shape = bcnn.Shape{H: 1, W: 1, C: 1}
			net.Append("conv", bcnn.Conv2D{Window: padded, Out: 2, Weights: bcnn.Weights{F32: []float32{1.5, 2.5}}})
			net.Append("relu", bcnn.ReLU{})
			net.Append("more", bcnn.Conv2D{Window: plain, Out: 1, Weights: bcnn.Weights{F32: []float32{1, 2}}})
			net.Append("pool", bcnn.MaxPool{Window: bcnn.Window{KH: 512, KW: 512}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			net := &bcnn.Network{Name: name, Inputs: []bcnn.Input{{DType: bcnn.Float32}}}
			build(net)
			var want, most, before int64
			live := func() int64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			before = live()
			device := fake{
				compile: func(p *plan.Plan) error {
					need, err := memory(p, 3)
					want = max(want, need)
					most = max(most, live()-before)
					return err
				},
				run: func(x *fakeEngine, ctx context.Context, out, in bcnn.Tensor) error {
					most = max(most, live()-before)
					return x.honest(ctx, out, in)
				},
			}
			failures, err := Check(t.Context(), device.device(), backend.Options{}, NetworkCases(net)[:1], nil)
			require.NoError(t, err)
			require.Empty(t, failures)
			require.LessOrEqual(t, most, want)
			require.Greater(t, 4*most, want, "and not far from it")
		})
	}
}
