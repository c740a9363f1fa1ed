package tiles

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/tiles/weak"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// TestHandOver explores the hand-over between submitter and workers in every order that
// a weak memory permits, as it is and broken: it rewrites the package to the types of
// package weak, with errors that can be switched on, and runs itself on that copy.
func TestHandOver(t *testing.T) {
	if weak.Sites != nil {
		executed := map[int]weak.Kind{}
		t.Run("as it is", func(t *testing.T) { unbroken(t, executed) })
		t.Run("weaker orders", func(t *testing.T) { weakerOrders(t, executed) })
		t.Run("errors", brokenHandOver)
		return
	}
	testenv.Long(t)
	if _, err := exec.LookPath("go"); err != nil {
		testenv.Absent(t, "go", err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for _, name := range []string{"tiles.go", "workers.go"} {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		text := string(src)
		if name == "workers.go" {
			text = withErrors(t, text)
		}
		original, err := filepath.Abs(name)
		require.NoError(t, err)
		replace[original] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(replace[original], rewrite(t, name, text), 0o600))
	}
	others, err := filepath.Abs("workers_test.go")
	require.NoError(t, err)
	replace[others] = "" // not there
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-overlay", file, "-run", "^TestHandOver$", ".").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}

// handed is a task whose tiles read what other tiles of the task before have written.
type handed struct{ from, to []*weak.Plain[int] }

func (h *handed) Run(tile int, _ *Scratch) {
	h.to[tile].Set(h.from[(tile+1)%len(h.from)].Get() + 1)
}

// newHanded returns tasks with so many tiles each, from a value of 0.
func newHanded(tasks, tiles int) []handed {
	var cells [2][]*weak.Plain[int]
	for i := range cells {
		for range tiles {
			cells[i] = append(cells[i], weak.NewPlain("memory of a tile", 0))
		}
	}
	all := make([]handed, tasks)
	for i := range all {
		all[i] = handed{cells[i%2], cells[(i+1)%2]}
	}
	return all
}

// check has the submitter look at what number n of the tasks has written.
func (h *handed) check(n int) {
	for _, p := range h.to {
		if p.Get() != n {
			weak.Fail("after task %d there is %d", n, p.Get())
		}
	}
}

// helped is a task of two tiles, the first of which waits for the second.
type helped struct{ begun *weak.Chan }

func (h *helped) Run(tile int, _ *Scratch) {
	if tile == 0 {
		h.begun.Receive()
	} else {
		h.begun.Send()
	}
}

// ending is a context that ends some time, or not.
type ending struct {
	context.Context
	ended bool
}

func (e *ending) Err() error {
	if !e.ended && weak.Choose(2) == 0 {
		e.ended = true
	}
	if e.ended {
		return context.Canceled
	}
	return nil
}

const (
	twoTasks = "two tasks"
	waiting  = "a tile that waits for another"
	ends     = "a run that ends"
)

// uses are what is explored.
var uses = map[string]func(){
	twoTasks: func() {
		tasks := newHanded(2, 2)
		w := Start(2, Size{})
		for i := range tasks {
			weak.Mark(i)
			if err := w.Do(&tasks[i], 2); err != nil {
				weak.Fail("%v", err)
			}
			tasks[i].check(i + 1)
		}
		weak.Mark(len(tasks))
		w.Stop()
	},
	waiting: func() {
		task := &helped{begun: weak.MakeChan(1)}
		w := Start(2, Size{})
		if err := w.Do(task, 2); err != nil {
			weak.Fail("%v", err)
		}
		weak.Mark(1)
		w.Stop()
	},
	ends: func() {
		tasks := newHanded(1, 2)
		w := Start(2, Size{})
		w.Begin(&ending{Context: context.Background()})
		if w.Do(&tasks[0], 2) == nil {
			tasks[0].check(1)
		}
		w.End()
		weak.Mark(1)
		for _, p := range tasks[0].to {
			p.Set(0)
		}
		if err := w.Do(&tasks[0], 2); err != nil {
			weak.Fail("%v", err)
		}
		tasks[0].check(1)
		weak.Mark(2)
		w.Stop()
	},
}

func unbroken(t *testing.T, executed map[int]weak.Kind) {
	for name, body := range uses {
		r := weak.Explore(nil, 0, body)
		require.Empty(t, r.Failure, "%s\n%s", name, r.String())
		t.Logf("%s: %d runs, %d states", name, r.Runs, r.States)
		maps.Copy(executed, r.Sites)
	}
}

// requireFailure explores a use of code that is wrong until it fails.
func requireFailure(t *testing.T, orders map[int]weak.Order, use string) {
	t.Helper()
	const limit = 500_000 // states, more than the code has where it is right
	r := weak.Explore(orders, limit, uses[use])
	require.NotEmpty(t, r.Failure, "%s: no failure in %d states", use, r.States)
	t.Logf("%s: %s, in run %d", use, r.Failure, r.Runs)
}

// weaker is what becomes of the code when an operation has a weaker order: the use that
// fails, for each order, or why none does or is looked for.
var weaker = []struct {
	site     string
	fails    map[weak.Order]string
	harmless map[weak.Order]string
}{
	{"Do: w.done.Store", nil, map[weak.Order]string{
		weak.Release: published, weak.Relaxed: published, weak.NotAtomic: published,
	}},
	// Under QEMU a worker may sleep on, and the submitter does its tiles.
	{"Do: w.state.Store", map[weak.Order]string{weak.Release: waiting, weak.Relaxed: twoTasks, weak.NotAtomic: twoTasks}, nil},
	{"Do: w.sleepers.Load", map[weak.Order]string{weak.Relaxed: waiting, weak.NotAtomic: twoTasks}, nil},
	{"drop: w.state.Swap", map[weak.Order]string{weak.NotAtomic: ends}, map[weak.Order]string{weak.Relaxed: "nobody reads what was before it"}},
	{"drop: w.done.Add", map[weak.Order]string{weak.NotAtomic: ends}, map[weak.Order]string{weak.Relaxed: "the submitter itself waits for it"}},
	{"tile: w.state.Load", map[weak.Order]string{weak.NotAtomic: twoTasks}, map[weak.Order]string{weak.Relaxed: "who goes on adds"}},
	// Relaxed, it takes a tile of the next task without what came with it.
	{"tile: w.state.Add", map[weak.Order]string{weak.Relaxed: twoTasks, weak.NotAtomic: twoTasks}, nil},
	{"tile: w.done.Add", map[weak.Order]string{weak.Relaxed: twoTasks, weak.NotAtomic: twoTasks}, nil},
	{"tile: w.waiting.CompareAndSwap", map[weak.Order]string{weak.NotAtomic: twoTasks}, map[weak.Order]string{weak.Relaxed: channel}},
	{"wait: w.done.Load", map[weak.Order]string{weak.Relaxed: twoTasks, weak.NotAtomic: twoTasks}, nil},
	{"wait: w.waiting.Swap", map[weak.Order]string{weak.NotAtomic: twoTasks}, map[weak.Order]string{weak.Relaxed: "package weak has updates wait for nothing; an error below has the load before it"}},
	{"wait: w.done.Load 2", map[weak.Order]string{weak.Relaxed: twoTasks, weak.NotAtomic: twoTasks}, nil},
	{"wait: w.waiting.CompareAndSwap", map[weak.Order]string{weak.NotAtomic: twoTasks}, map[weak.Order]string{weak.Relaxed: channel}},
	{"sleep: w.sleepers.Add", map[weak.Order]string{weak.Relaxed: waiting, weak.NotAtomic: twoTasks}, nil},
	{"sleep: w.sleepers.Add 2", map[weak.Order]string{weak.NotAtomic: twoTasks}, map[weak.Order]string{weak.Relaxed: "who sees a sleeper that has gone wakes nobody"}},
	{"sleep: w.state.Load", map[weak.Order]string{weak.Relaxed: waiting, weak.NotAtomic: twoTasks}, nil},
}

const (
	published = "tiles are there later, and that orders it"
	channel   = "the channel orders memory"
)

// weakerOrders makes one operation weaker after the other, all that are executed.
func weakerOrders(t *testing.T, executed map[int]weak.Kind) {
	sites := map[string]int{}
	for site := range executed {
		sites[weak.Sites[site]] = site
	}
	for _, w := range weaker {
		site, ok := sites[w.site]
		require.True(t, ok, "%s is not executed", w.site)
		delete(sites, w.site)
		for _, order := range executed[site].Weaker() {
			if w.harmless[order] != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s, %v", w.site, order), func(t *testing.T) {
				requireFailure(t, map[int]weak.Order{site: order}, w.fails[order])
			})
		}
	}
	require.Empty(t, sites, "these are in no list")
}

// brokenHandOver has one error after the other.
func brokenHandOver(t *testing.T) {
	defer func() { weak.Broken = "" }()
	for _, e := range handOverErrors {
		t.Run(e.name, func(t *testing.T) {
			weak.Broken = e.name
			requireFailure(t, nil, e.use)
		})
	}
}
