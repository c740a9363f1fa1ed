// Package costtest judges what reading a file takes, for tests of importers: time and memory in
// proportion to its bytes. What is charged to the budget is bounded by the importer; here what is
// done is held against what was charged, by counts that know nothing of the budget: the bytes that
// are allocated and, where the code is instrumented (Instrumented), the steps that it takes.
package costtest

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/steps"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// Cost is what an import took.
type Cost struct {
	Bytes            int64 // of the files
	Used             int64 // of the budget
	Allocated, Steps int64
	Looks            int // at the context
	Err              error
}

func (c Cost) String() string {
	end, _, _ := strings.Cut(fmt.Sprint(c.Err), "\n")
	return fmt.Sprintf("%d bytes, %d units, %d bytes allocated, %d steps: %.100s", c.Bytes, c.Used, c.Allocated, c.Steps, end)
}

// Ever is a number of looks at a context that does not end.
const Ever = math.MaxInt

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

// Measure imports files of so many bytes and requires that what the import does is charged, and
// that it looks at its context after soon steps at the latest. The context ends when it has been
// looked at so often. read imports, and returns what it used of the budget.
func Measure(t testing.TB, bytes int64, looks int, soon int64, read func(ctx context.Context) (used int64, err error)) Cost {
	t.Helper()
	c := Cost{Bytes: bytes}
	w := &watched{Context: t.Context(), end: looks, last: steps.N}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	executed := steps.N
	c.Used, c.Err = read(w)
	c.Steps, c.Looks = steps.N-executed, w.looks
	runtime.ReadMemStats(&after)
	c.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	require.LessOrEqual(t, c.Allocated, c.Used+1<<20, "allocations are charged: %+v", c)
	require.LessOrEqual(t, c.Steps, 3*c.Used+1<<14, "steps are charged: %+v", c)
	_ = w.Err()
	require.LessOrEqual(t, w.most, soon, "an interrupt is seen soon: %+v", c)
	return c
}

// Sizes are how many times as large files are made; tests that are to be short take the first two.
func Sizes() []int {
	if testing.Short() {
		return []int{1, 10}
	}
	return []int{1, 10, 100}
}

// RequireLinear requires that imports of files of all Sizes take no more than in proportion to
// them. Ten times the size may take ten times as much, and as much for slices and maps, which grow
// in steps; what is quadratic takes a hundred times as much.
func RequireLinear(t testing.TB, c []Cost) {
	t.Helper()
	for _, count := range []func(Cost) int64{
		func(c Cost) int64 { return c.Used },
		func(c Cost) int64 { return c.Allocated },
		func(c Cost) int64 { return c.Steps },
	} {
		first, second := count(c[1])-count(c[0]), count(c[2])-count(c[1])
		require.LessOrEqual(t, second, 20*max(first, 0)+1<<17, "%+v", c)
	}
}

// Instrumented runs tests of the package once more on copies of the packages that count their
// steps. In that run it does nothing.
func Instrumented(t *testing.T, pattern string) {
	if steps.N > 0 {
		return
	}
	testenv.Long(t)
	if _, err := exec.LookPath("go"); err != nil {
		testenv.Absent(t, "go", err)
	}
	dir := t.TempDir()
	run := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
	}
	run("run", "../../internal/steps/instrument", "-o", dir, "..", "../bits", "./...")
	run("test", "-count=1", "-overlay", filepath.Join(dir, "overlay.json"), "-run", pattern, ".")
}
