// Package costtest judges what loading takes: time and memory in proportion to the bytes of a file.
// What is charged to the budget is bounded by the limit of a format; here what is done is held
// against what was charged, by counts that know nothing of the budget: the bytes that are allocated
// and, where the code is instrumented, the steps that it takes. A run that counts steps (TestSteps,
// scripts/fuzz) reads all files; others read fewer, and smaller ones.
package costtest

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/drawn"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/steps"
)

// The tables of functions, made once, are no part of what a network costs.
func init() { f32.TabulateAll() }

// Format is a kind of files, or of networks, that a stage of loading reads.
type Format[F any] struct {
	// Read reads a file, and returns its size and what it used of the budget.
	Read func(t testing.TB, ctx context.Context, file F) (size, used int64, err error)
	// Base and PerByte are what may be used: in any case, and for each byte of the size.
	Base, PerByte int64
	// Free are the bytes that may be allocated for each byte of the size and are not charged.
	Free int64
	// Steps are what a unit, or a byte that is free, pays for.
	Steps float64
	// Soon is how many steps may pass until a context that has ended is seen.
	Soon int64
	// Draw makes a file as a program of bytes says.
	Draw func(program []byte) F
	// Kinds are files for what drawn ones do not show.
	Kinds []Kind[F]
}

// Kind is files that grow with n.
type Kind[F any] struct {
	Name string
	N    int // the least size; others are 10 and 100 times as large
	// Ends is how reading the largest ends: "" well, Exceeds, or with an error that contains it.
	Ends string
	Make func(n int) F
}

// Exceeds says that a kind of files asks for more work than the budget has.
const Exceeds = "exceeds"

// Cost is what reading a file took.
type Cost struct {
	Size, Used       int64
	Allocated, Steps int64
	Looks            int // at the context
	Err              error
}

func (c Cost) String() string {
	end, _, _ := strings.Cut(fmt.Sprint(c.Err), "\n")
	return fmt.Sprintf("size %d: %d units, %d bytes allocated, %d steps: %.100s", c.Size, c.Used, c.Allocated, c.Steps, end)
}

// variable of the environment says that steps are counted.
const variable = "BCNN_TEST_STEPS"

var counted = os.Getenv(variable) != ""

// ever is a number of looks at a context that does not end.
const ever = math.MaxInt

// watched is a context that ends when it has been looked at so often, and remembers the most steps
// between two looks.
type watched struct {
	context.Context
	looks, end int
	last, most int64
}

func (w *watched) Err() error {
	w.looks++
	w.most = max(w.most, steps.N-w.last)
	w.last = steps.N
	if w.looks > w.end {
		return context.Canceled
	}
	return nil
}

// Judge reads a file and requires that what is done is charged and within the limit, and that the
// context is looked at soon enough.
func (f Format[F]) Judge(t testing.TB, file F) Cost {
	t.Helper()
	return f.judge(t, file, ever)
}

// warm is done when what code makes in its first run, which no file pays for, has been made.
var warm sync.Once

func (f Format[F]) judge(t testing.TB, file F, looks int) (c Cost) {
	t.Helper()
	warm.Do(func() { _, _, _ = f.Read(t, t.Context(), file) })
	w := &watched{Context: t.Context(), end: looks, last: steps.N}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	executed := steps.N
	c.Size, c.Used, c.Err = f.Read(t, w, file)
	c.Steps, c.Looks = steps.N-executed, w.looks
	runtime.ReadMemStats(&after)
	c.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	_ = w.Err()
	require.Equal(t, counted, c.Steps > 0, "%s says whether steps are counted", variable)
	require.LessOrEqual(t, c.Used, f.Base+f.PerByte*c.Size, "%v", c)
	paid := c.Used + f.Free*c.Size
	// Slices and maps grow in steps.
	require.LessOrEqual(t, c.Allocated, paid+min(paid/2+1<<16, 1<<20), "allocations are charged: %v", c)
	require.LessOrEqual(t, float64(c.Steps), f.Steps*float64(paid)+1<<12, "steps are charged: %v", c)
	require.LessOrEqual(t, w.most, f.Soon, "an interrupt is seen soon: %v", c)
	return c
}

// Test reads every kind of files in three sizes, or in two where steps are not counted.
func (f Format[F]) Test(t *testing.T) {
	for _, k := range f.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			var c []Cost
			sizes := []int{1, 10, 100}
			if !counted {
				sizes = sizes[:2]
			}
			for _, times := range sizes {
				c = append(c, f.Judge(t, k.Make(times*k.N)))
				t.Log(c[len(c)-1])
			}
			if !counted {
				return
			}
			if k.Ends == Exceeds { // the limit is all there is to hold
				require.ErrorIs(t, c[2].Err, budget.ErrExceeded)
				return
			}
			requireEnd(t, k.Ends, c[2].Err)
			requireLinear(t, c)
		})
	}
}

func requireEnd(t *testing.T, ends string, err error) {
	t.Helper()
	if ends == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, ends)
	require.NotErrorIs(t, err, budget.ErrExceeded)
}

// requireLinear requires that files of three sizes take no more than in proportion to them. Ten
// times the size may take ten times as much, and as much for slices and maps, which grow in steps;
// what is quadratic takes a hundred times as much.
func requireLinear(t *testing.T, c []Cost) {
	t.Helper()
	for _, count := range []func(Cost) int64{
		func(c Cost) int64 { return c.Used },
		func(c Cost) int64 { return c.Allocated },
		func(c Cost) int64 { return c.Steps },
	} {
		first, second := count(c[1])-count(c[0]), count(c[2])-count(c[1])
		require.LessOrEqual(t, second, 20*max(first, 0)+1<<17, "%v", c)
	}
}

// update writes what Units finds.
var update = flag.Bool("update", false, "TestUnits writes testdata/units.txt")

// Units requires that files use what testdata/units.txt says: those of every kind, and those that
// the seeds draw which the file names, chosen since each reaches a charge that those before it do
// not. So a charge that is lost is seen even where others would pay for it. Whoever changes a charge
// changes the figures, with -update.
func (f Format[F]) Units(t *testing.T) {
	name := filepath.Join("testdata", "units.txt")
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	var got strings.Builder
	add := func(name string, file F) { fmt.Fprintf(&got, "%d\t%s\n", f.Judge(t, file).Used, name) }
	for _, k := range f.Kinds {
		add(k.Name, k.Make(k.N))
	}
	for line := range strings.Lines(string(want)) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "\tseed ")
		if seed, err := strconv.Atoi(text); err == nil {
			add("seed "+text, f.Draw(Program(seed)))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(got.String()), 0o644))
		return
	}
	require.Equal(t, string(want), got.String(), "units that are charged; -update writes them")
}

// Interrupt ends the context at different places of reading, of every kind of files and of drawn
// ones.
func (f Format[F]) Interrupt(t *testing.T) {
	times := 10
	if testing.Short() {
		times = 1
	}
	for _, k := range f.Kinds {
		f.interrupt(t, k.Name, k.Make(times*k.N))
	}
	for seed := range 10 * times {
		f.interrupt(t, fmt.Sprint("seed ", seed), f.Draw(Program(seed)))
	}
}

func (f Format[F]) interrupt(t *testing.T, name string, file F) {
	t.Helper()
	all := f.Judge(t, file)
	for _, looks := range []int{0, 1, all.Looks / 2, all.Looks - 1} {
		if looks < all.Looks {
			c := f.judge(t, file, looks)
			require.ErrorIs(t, c.Err, context.Canceled, "%s after %d looks", name, looks)
			require.LessOrEqual(t, c.Looks, looks+1, "%s: the first error is final", name)
		}
	}
}

// Program is what a seed draws: short programs make much of few instructions, long ones little of
// many.
func Program(seed int) []byte { return drawn.Bytes(seed, 8<<(seed%5)) }

// Fuzz reads drawn files: of so many seeds, or of a tenth where steps are not counted, and of what
// fuzz was given.
func (f Format[F]) Fuzz(fuzz *testing.F, seeds int) {
	if !counted {
		seeds /= 10
	}
	for seed := range seeds {
		fuzz.Add(Program(seed))
	}
	fuzz.Fuzz(func(t *testing.T, program []byte) { f.Judge(t, f.Draw(program)) })
}
