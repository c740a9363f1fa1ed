package darknet

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/costtest"
)

// pair are the files of a network.
type pair struct{ cfg, weights []byte }

func (m *model) pair() pair { return pair{[]byte(m.cfg.String()), m.weights} }

// loading is what is judged of the import of pairs.
var loading = costtest.Format[pair]{
	Base: base, PerByte: perByte, Steps: 2, Soon: 32 << 20, Kinds: kindsOfCost, Draw: draw,
	Read: func(t testing.TB, ctx context.Context, p pair) (size, used int64, err error) {
		size = int64(len(p.cfg) + len(p.weights))
		im, err := begin(ctx, p.cfg, p.weights, Options{Name: "n"})
		if err != nil {
			return size, 0, err
		}
		_, err = im.network()
		require.NotErrorIs(t, err, try.ErrPanic)
		return size, im.budget.Used(), err
	},
}

// pairOf returns a description behind an input of 8×8×4, with zeros for weights.
func pairOf(layers string, floats int) pair {
	cfg := strings.Replace(net8, "channels=3", "channels=4", 1) + strings.ReplaceAll(layers, " ", "\n")
	return pair{[]byte(cfg), append(header(0, 2), make([]byte, 4*floats)...)}
}

// kindsOfCost are files, each of which shows a charge that others do not show.
var kindsOfCost = []costtest.Kind[pair]{
	{Name: "sections", N: 300, Make: func(n int) pair {
		return pairOf("[avgpool]\n"+strings.Repeat("[max]\n", n), 0)
	}},
	{Name: "unknown sections", N: 300, Ends: "sections of this kind are not supported", Make: func(n int) pair {
		return pairOf(strings.Repeat("[x]\n", n), 0)
	}},
	{Name: "options", N: 1000, Ends: "unknown options", Make: func(n int) pair {
		var cfg strings.Builder
		cfg.WriteString("[avgpool]\n")
		for i := range n {
			fmt.Fprintf(&cfg, "%d=1\n", i)
		}
		return pairOf(cfg.String(), 0)
	}},
	{Name: "lists", N: 100, Make: func(n int) pair {
		return pairOf("[max]\n[route] layers="+strings.Repeat("0,", min(n, 4095))+"0\n[avgpool]", 0)
	}},
	{Name: "comments", N: 10000, Ends: "it has no sections", Make: func(n int) pair {
		return pair{cfg: []byte(strings.Repeat("#\n", n))}
	}},
	{Name: "weights", N: 1000, Make: func(n int) pair {
		return pairOf(fmt.Sprintf("[conv] activation=linear batch_normalize=1 filters=%d", n), 8*n)
	}},
	{Name: "signs", N: 1000, Make: func(n int) pair {
		return pairOf(fmt.Sprintf("[conv] activation=linear filters=96\n[conv] activation=linear xnor=1 filters=%d", n), 96*5+97*n)
	}},
	{Name: "channels from nothing", N: 24, Ends: costtest.Exceeds, Make: func(n int) pair {
		return pairOf(strings.Repeat("[max]\n", 1)+strings.Repeat("[route] layers=-1,-1\n", min(n, 18))+strings.Repeat("[route] groups=2 layers=-1,-1\n", n), 0)
	}},
	{Name: "upsampled", N: 10, Ends: costtest.Exceeds, Make: func(n int) pair {
		return pairOf("[avgpool]\n"+strings.Repeat("[upsample] stride=8000\n[max] stride=8000\n", 10*n), 0)
	}},
	{Name: "reorganised", N: 1, Ends: costtest.Exceeds, Make: func(n int) pair {
		return pairOf("[upsample] stride=32\n"+strings.Repeat("[reorg] stride=2\n[reorg] stride=2 reverse=1\n", n), 0)
	}},
}

// TestCost imports every kind of files.
func TestCost(t *testing.T) { loading.Test(t) }

// TestInterrupt ends the context at different places of imports.
func TestInterrupt(t *testing.T) { loading.Interrupt(t) }

// TestUnits finds that a charge is lost.
func TestUnits(t *testing.T) { loading.Units(t) }

// seeds are files whose bytes are changed.
func seeds() (all []pair) {
	m := newModel(4, 4, 3)
	m.convolution("filters=8 size=3 pad=1 stride=2 activation=leaky batch_normalize=1", false)
	m.convolution("filters=7 size=3 pad=1 xnor=1 bin_output=1 activation=mish", true)
	m.section("yolo", "classes=2 anchors=3,4")
	m.logistic(7, 1, func(entry int) bool { return entry != 2 && entry != 3 })
	m.route("layers=-2,0")
	m.upsample("stride=2")
	m.maxPool("size=3 stride=2")
	m.route("layers=-3 groups=5 group_id=1")
	m.shortcut("from=-2 activation=relu")
	m.section("reorg3d", "stride=2")
	m.section("avgpool", "")
	m.section("softmax", "")
	all = append(all, m.pair())
	for seed := range 20 {
		all = append(all, draw(costtest.Program(seed)))
	}
	return all
}

// FuzzLoad imports arbitrary bytes: an error, or a network that can be lowered and, if
// it is small, run.
func FuzzLoad(f *testing.F) {
	for _, p := range seeds() {
		f.Add(p.cfg, p.weights)
	}
	f.Fuzz(func(t *testing.T, cfg, weights []byte) {
		net, _, err := Decode(t.Context(), cfg, weights, Options{Name: "n"})
		if err != nil {
			require.NotErrorIs(t, err, try.ErrPanic)
			require.Nil(t, net)
			return
		}
		require.NoError(t, net.Check())
		p, err := lower.Network(t.Context(), net, lower.Options{})
		require.NoError(t, err)
		work := int64(0)
		for _, l := range plan.Summarize(net, p) {
			work += l.MACs
		}
		for _, tensor := range p.Tensors {
			work += int64(tensor.Shape.Values())
		}
		if work < 1<<16 {
			_, err := ref.RunAll(t.Context(), p, []bcnn.Tensor{bcnn.NewTensor(net.Inputs[0].DType, 1, net.Inputs[0].Shape)}, nil)
			require.NoError(t, err)
		}
	})
}

// FuzzCost imports arbitrary bytes, and descriptions that a program of bytes makes.
func FuzzCost(f *testing.F) {
	for _, p := range seeds() {
		f.Add(slices.Concat(p.cfg, []byte{0}, p.weights))
	}
	loading.Fuzz(f, 500)
}

// draw makes files of a program: those that it holds, with a zero between them, or a description
// with zeros for weights.
func draw(program []byte) pair {
	if cfg, weights, _ := bytes.Cut(program, []byte{0}); bytes.HasPrefix(cfg, []byte("[")) {
		return pair{cfg, weights}
	}
	return grow(program)
}

// grow makes a description of a program: each four bytes are a section that is repeated.
func grow(program []byte) pair {
	sections := []string{
		"[conv] activation=leaky filters=N size=3 pad=1", "[conv] activation=linear xnor=1 size=3 pad=1 filters=N batch_normalize=1",
		"[conv] activation=relu binary=1 filters=N", "[max] size=N", "[max] size=2 stride=N", "[upsample] stride=N",
		"[route] layers=-1,-BACK", "[route] layers=-BACK groups=N", "[shortcut] activation=mish from=-BACK", "[reorg] stride=N",
		"[reorg3d] stride=N", "[reorg] reverse=1 stride=N", "[avg]", "[dropout]", "[soft]", "[region] classes=N anchors=1,1", "[yolo] classes=N anchors=1,1 scale_x_y=2",
		"[unknown]",
	}
	cfg := "[max] size=1"
	for n := 0; len(program) >= 4 && n < 4096; program = program[4:] {
		p := program
		for range 1 << (p[0] / 32) {
			n++
			number := strings.NewReplacer("N", fmt.Sprint(1+p[1]%4), "BACK", fmt.Sprint(1+int(p[2])%min(n, 16)))
			cfg += "\n" + number.Replace(sections[int(p[0]%32)%len(sections)])
		}
	}
	p := pairOf(cfg, 1<<16)
	// As many weights as it takes.
	if _, _, err := Decode(context.Background(), p.cfg, p.weights, Options{Name: "n"}); err != nil {
		var left int
		if _, rest, ok := strings.Cut(err.Error(), "the file of the weights has "); ok {
			if _, err := fmt.Sscan(rest, &left); err == nil && left < len(p.weights) {
				p.weights = p.weights[:len(p.weights)-left]
			}
		}
	}
	return p
}
