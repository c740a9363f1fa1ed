// Command mutate measures what the tests of a package find: it changes one token of the code
// at a time (a comparison, an operator, a number) and sees whether a test fails; see README.md.
//
//	go build -C tools -o ../build/mutate ./mutate && build/mutate -n 300 -seed 1 ./bcnn/tflite
//	build/mutate -n 33 -tests .,./backend/cpu ./backend/cpu/internal/conv
//
// The tree is not changed: the go command takes another file by its -overlay. A mutant that
// does not compile is not counted. The exit status is 1 where fewer are killed than -least.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	m := &mutator{out: os.Stdout}
	flag.IntVar(&m.count, "n", 300, "mutants")
	flag.Uint64Var(&m.seed, "seed", 1, "which ones")
	flag.IntVar(&m.jobs, "jobs", runtime.NumCPU(), "mutants at the same time")
	flag.StringVar(&m.tags, "tags", "", "build tags")
	flag.DurationVar(&m.longest, "longest", time.Hour, "leave out tests that take longer, so that at least as many are killed as it says")
	tested := flag.String("tests", ".", "folders of the packages whose tests look for the mutants, by commas: . is that of the mutants")
	least := flag.Float64("least", 0, "percentage that must be killed")
	flag.StringVar(&m.again, "again", "", "output of an earlier run, of which only the mutants are tried that survived")
	flag.StringVar(&m.reasons, "reasons", "tools/mutate/reasons.tsv", "list of mutants that may survive")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "mutate: want the folder of a package")
		os.Exit(2)
	}
	m.dir, m.packages = flag.Arg(0), strings.Split(*tested, ",")
	killed, err := m.run(ctx)
	if err == nil && killed < *least {
		err = fmt.Errorf("%.1f %% killed, want at least %g %%", killed, *least)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutator mutates a package.
type mutator struct {
	dir, tags, reasons, again string
	count, jobs               int
	longest                   time.Duration
	seed                      uint64
	out                       io.Writer
	work, root                string
	packages                  []string // whose tests run
	tests                     []*test
	many                      *together
}

// What became of a mutant.
type fate int

const (
	killed fate = iota
	survived
	uncovered // no test runs the line
	broken    // it does not compile
)

type result struct {
	site
	fate fate
}

// run prints what survives, and returns the percentage of mutants that were killed or may
// survive.
func (m *mutator) run(ctx context.Context) (float64, error) {
	var err error
	if m.root, err = os.Getwd(); err != nil {
		return 0, err
	}
	known, err := readReasons(m.reasons)
	if err != nil {
		return 0, err
	}
	if m.dir, err = filepath.Abs(m.dir); err != nil {
		return 0, err
	}
	for i, p := range m.packages {
		if p == "." {
			m.packages[i] = m.dir
		} else if m.packages[i], err = filepath.Abs(p); err != nil {
			return 0, err
		}
	}
	sites, err := sitesIn(m.dir)
	if err != nil {
		return 0, err
	}
	if m.again != "" {
		if sites, err = survivors(m.again, m.root, sites); err != nil {
			return 0, err
		}
	}
	if len(sites) == 0 {
		return 0, fmt.Errorf("%s: nothing to mutate", m.dir)
	}
	if m.work, err = os.MkdirTemp("", "mutate"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(m.work)
	if m.tests, err = m.allTests(ctx); err != nil {
		return 0, err
	}
	m.draw(sites)
	// A tenth of them may not compile.
	if m.many, err = m.of(ctx, sites[:min(len(sites), m.count+m.count/8)]); err != nil {
		return 0, err
	}
	counts, excused := map[fate]int{}, 0
	err = m.each(ctx, sites, func(r result) bool {
		reason, ok := known[r.key(m.root)]
		switch counts[r.fate]++; {
		case r.fate == broken || r.fate == killed:
		case ok:
			excused++
		default:
			what := map[fate]string{survived: "SURVIVED", uncovered: "NO TEST "}[r.fate]
			fmt.Fprintf(m.out, "%s %s\t%s\n", what, r.site, r.key(m.root))
		}
		if ok && r.fate == killed {
			fmt.Fprintf(m.out, "KILLED   %s, although %q\n", r.site, reason)
		}
		return counts[killed]+counts[survived]+counts[uncovered] < m.count
	})
	if err != nil {
		return 0, err
	}
	total := counts[killed] + counts[survived] + counts[uncovered]
	percent := 100 * float64(counts[killed]+excused) / float64(max(total, 1))
	fmt.Fprintf(m.out, "%d mutants: %d killed, %d survived (of which %d for a reason), %d on lines that no test runs; %.1f %% killed or for a reason; %d more did not compile\n",
		total, counts[killed], counts[survived]+counts[uncovered], excused, counts[uncovered], percent, counts[broken])
	return percent, nil
}

// draw puts sites into an order that the seed decides. It is that of a hash of their keys, so that
// the rest is drawn as before where some lines change.
func (m *mutator) draw(sites []site) {
	order := map[site]uint64{}
	for _, s := range sites {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d\t%s", m.seed, s.key(m.root))
		order[s] = rand.New(rand.NewPCG(h.Sum64(), 0)).Uint64() // as keys that are alike have hashes that are
	}
	slices.SortFunc(sites, func(a, b site) int { return cmp.Compare(order[a], order[b]) })
}

// each tries sites, several at the same time, and calls do with what becomes of them in their
// order, until that returns false.
func (m *mutator) each(ctx context.Context, sites []site, do func(result) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		fate fate
		err  error
	}
	outcomes := make([]chan outcome, len(sites))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	next := make(chan int)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for job := range m.jobs {
		workers.Go(func() {
			for i := range next {
				f, err := m.try(ctx, filepath.Join(m.work, fmt.Sprint(job)), sites[i])
				outcomes[i] <- outcome{f, err}
			}
		})
	}
	go func() {
		defer close(next)
		for i := range sites {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for i, s := range sites {
		select {
		case o := <-outcomes[i]:
			if o.err != nil {
				return o.err
			}
			if !do(result{s, o.fate}) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// quick is how long the tests take that run first: most mutants need no more.
const quick = 2 * time.Second

// try tests a mutant.
func (m *mutator) try(ctx context.Context, work string, s site) (fate, error) {
	var quickly, slowly []*test
	var spent time.Duration
	for _, t := range m.tests {
		if !t.covers(s) {
			continue
		}
		if spent += t.time; spent <= quick || len(quickly) == 0 {
			quickly = append(quickly, t)
		} else {
			slowly = append(slowly, t)
		}
	}
	if m.many.broken[s] {
		return broken, nil
	}
	alone := m.many.number[s] == 0
	if alone {
		if ok, err := m.compile(ctx, work, s); !ok || err != nil {
			return broken, err
		}
	}
	if len(quickly) == 0 {
		return uncovered, nil
	}
	for _, stage := range [][]*test{quickly, slowly} {
		for i := range m.packages {
			binary := m.many.binaries[i]
			if alone {
				binary = binaryOf(work, i)
			}
			if f, err := m.runs(ctx, i, binary, m.many.number[s], stage); f == killed || err != nil {
				return f, err
			}
		}
	}
	return survived, nil
}

// runs tells what the tests of a package among some do with a mutant.
func (m *mutator) runs(ctx context.Context, i int, binary string, number int, tests []*test) (fate, error) {
	var names []string
	var spent time.Duration
	for _, t := range tests {
		if t.in == i {
			names, spent = append(names, t.name), spent+t.time
		}
	}
	if len(names) == 0 {
		return survived, nil
	}
	slices.Sort(names)
	limit := 10*spent + 10*time.Second                            // of a loop that does not end
	ended, stop := context.WithTimeout(ctx, limit+10*time.Second) // for one that the runtime cannot interrupt either
	defer stop()
	c := m.limited(ended, binary, "-test.failfast", "-test.short", "-test.timeout", limit.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	c.Dir, c.Env = m.packages[i], append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	err := c.Run()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return killed, nil
	}
	return survived, err
}

// compile makes test binaries that have a mutant, and reports whether it compiles.
func (m *mutator) compile(ctx context.Context, work string, s site) (bool, error) {
	src, err := s.mutated()
	if err != nil {
		return false, err
	}
	changed, overlay := work+".go", work+".json"
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{s.file: changed}})
	if err = errors.Join(err, os.WriteFile(changed, src, 0o644), os.WriteFile(overlay, list, 0o644)); err != nil {
		return false, err
	}
	for i, p := range m.packages {
		c := m.command(ctx, "go", "test", "-c", "-overlay", overlay, "-tags", m.tags, "-vet=off", "-o", binaryOf(work, i), ".")
		if c.Dir = p; c.Run() != nil {
			return false, ctx.Err()
		}
	}
	return true, nil
}

// binaryOf names the test binary of a package.
func binaryOf(work string, i int) string { return fmt.Sprintf("%s-%d.test", work, i) }

// limited is a command that has no more than 8 GiB of address space, as a mutant may ask for
// more and more.
func (m *mutator) limited(ctx context.Context, name string, args ...string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		return m.command(ctx, name, args...)
	}
	return m.command(ctx, "sh", append([]string{"-c", `ulimit -v 8388608; exec "$0" "$@"`, name}, args...)...)
}

// command is one in the folder of the package.
func (m *mutator) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = m.dir
	return c
}
