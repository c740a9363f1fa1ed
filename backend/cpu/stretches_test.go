package cpu

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/sets"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// divided is the processor with its plans divided at random. parts counts the stretches.
type divided struct {
	device
	seed  uint64
	parts *int
}

func (d divided) Compile(ctx context.Context, p *plan.Plan, c driver.Config) (driver.Engine, error) {
	set, err := sets.Lookup(c.ISA)
	if err != nil {
		return nil, err
	}
	e, err := compileDivided(ctx, p, set, c, atRandom(d.seed))
	if err != nil {
		return nil, err
	}
	*d.parts += len(e.stretches) - 1
	return e, nil
}

// atRandom begins a new stretch at every other group, with any number of images at a time.
func atRandom(seed uint64) division {
	return func(p *plan.Plan, groups []group, batch int) []stretch {
		rng := rand.New(rand.NewPCG(seed, 8))
		var all []stretch
		for i, g := range groups {
			if i == 0 || rng.IntN(2) == 0 {
				all = append(all, stretch{first: g.first, images: 1 + rng.IntN(batch)})
			}
			all[len(all)-1].last = g.last
		}
		return all
	}
}

// TestDividedParity: results are the same however a plan is divided.
func TestDividedParity(t *testing.T) {
	for _, threads := range []int{1, 3} {
		parts := 0
		dev := backend.NewDevice(divided{seed: uint64(threads), parts: &parts})
		backendtest.Run(t, dev, backend.Options{Threads: threads})
		require.Greater(t, parts, 100)
	}
}

// TestDividedPlans is the same for plans beyond what lowering makes, with batches that no number of
// images at a time divides.
func TestDividedPlans(t *testing.T) {
	parts, few, seeds := 0, uint64(40), uint64(40)
	if raceEnabled || testing.Short() {
		few = 8
	}
	for seed := range seeds {
		for i, net := range []func(uint64) *planner{
			func(seed uint64) *planner { p, _ := byteSums(seed); return p }, // takes little time
			func(seed uint64) *planner { p, _ := convAndPool(seed); return p },
			randomGraph, randomPlan, pools, shortcuts, smallNet,
		} {
			if i > 0 && seed >= few {
				continue
			}
			p := net(seed)
			made, threads := p.done(), 1+int(seed)%2
			set, err := sets.Lookup(sets.Names()[int(seed)%len(sets.Names())])
			require.NoError(t, err)
			config := driver.Config{MaxBatch: 7, Threads: threads, ISA: set.ISA, ArenaBytes: 1 << 30}
			e, err := compileDivided(t.Context(), made, set, config, atRandom(seed+uint64(i)))
			require.NoError(t, err)
			parts += len(e.stretches) - 1
			in := p.input(config.MaxBatch)
			want, err := ref.RunAll(t.Context(), made, []bcnn.Tensor{in}, nil)
			require.NoError(t, err)
			for _, n := range []int{7, 5, 1} {
				got := make([]bcnn.Tensor, len(want))
				for k, w := range want {
					got[k] = bcnn.NewTensor(w.DType, n, w.Shape)
				}
				require.NoError(t, e.Run(t.Context(), got, []bcnn.Tensor{in.Images(0, n)}))
				for k, w := range want {
					requireSame(t, w.Images(0, n), got[k], "output")
				}
			}
			require.NoError(t, e.Close())
		}
	}
	require.Greater(t, parts, 5*int(few))
}

// A batch goes through wide layers in few images at a time and through deep ones in more, and all of it at
// once through a dense layer that is most of the weights. Where the cache holds everything, or there is one
// image, nothing is divided.
func TestStretches(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 64, 64, 16))
	conv := func(h, c, weights int) {
		p.step("conv", &plan.Conv{Bits: make([]uint64, weights/8)}, bcnn.Float32, bcnn.Shape{H: h, W: h, C: c})
	}
	conv(64, 16, 1<<10) // 256 KiB an image
	conv(64, 16, 1<<10)
	conv(8, 64, 256<<10) // 16 KiB an image
	conv(8, 64, 256<<10)
	conv(1, 64, 4<<20)
	conv(1, 16, 1<<10)
	made := &p.plan
	all := groupsOf(made, false)
	for _, c := range []struct {
		batch, cache int
		want         []stretch
	}{
		{1, 1 << 10, whole(made, 1)},
		{32, 64 << 20, []stretch{{first: 0, last: 5, images: 32}}},
		{32, 1 << 20, []stretch{{first: 0, last: 2, images: 1}, {first: 3, last: 3, images: 16}, {first: 4, last: 5, images: 16}}},
		{33, 4 << 20, []stretch{{first: 0, last: 3, images: 4}, {first: 4, last: 5, images: 33}}},
		{32, 1 << 10, []stretch{{first: 0, last: 5, images: 1}}},
	} {
		require.Equal(t, c.want, stretches(made, all, c.batch, c.cache), "%d, %d", c.batch, c.cache)
	}
}

// A plan of as many groups as there are is divided in a moment.
func TestStretchesOfMany(t *testing.T) {
	p := newPlanner(1, input(bcnn.Float32, 1, 1, 1))
	for range 10000 {
		p.step("pool", &plan.MaxPool{}, bcnn.Float32, p.last().Shape)
	}
	got := stretches(&p.plan, groupsOf(&p.plan, false), 4, 1)
	require.Equal(t, len(p.plan.Steps)-1, got[len(got)-1].last)
}
