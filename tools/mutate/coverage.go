package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// test is a test function of one of the packages, with the time that it takes and the lines that it
// runs, by the name of the file: false where it could and does not.
type test struct {
	in    int // which package
	name  string
	time  time.Duration
	lines map[string]map[int]bool
}

// covers reports whether a test runs the line of a site, or may read what stands there.
func (t *test) covers(s site) bool {
	lines := t.lines[filepath.Base(s.file)]
	line := s.line
	if _, counted := lines[line]; !counted { // behind a function in the same statement, for instance
		line = s.function
	}
	return s.outside || lines[line] || s.decided > 0 && lines[s.decided]
}

// allTests runs each test of the packages alone, with coverage of the mutated one; the quickest
// come first.
func (m *mutator) allTests(ctx context.Context) ([]*test, error) {
	var all []*test
	for i := range m.packages {
		tests, err := m.testsOf(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, tests...)
	}
	slices.SortStableFunc(all, func(a, b *test) int { return cmp.Compare(a.time, b.time) })
	return all, nil
}

func (m *mutator) testsOf(ctx context.Context, i int) ([]*test, error) {
	mutated, err := m.command(ctx, "go", "list", ".").Output()
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(m.work, "covered.test")
	build := m.command(ctx, "go", "test", "-c", "-cover", "-coverpkg", strings.TrimSpace(string(mutated)), "-tags", m.tags, "-o", binary, ".")
	build.Dir = m.packages[i]
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s\n%w", out, err)
	}
	list := m.command(ctx, binary, "-test.list", "^Test")
	list.Dir = m.packages[i]
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	var all []*test
	for name := range strings.Lines(string(out)) {
		if name = strings.TrimSpace(name); !strings.HasPrefix(name, "Test") {
			continue
		}
		profile := filepath.Join(m.work, "profile")
		c := m.command(ctx, binary, "-test.run", "^"+name+"$", "-test.short", "-test.coverprofile", profile)
		c.Dir = m.packages[i]
		start := time.Now()
		out, err := c.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s fails without a mutation:\n%s", name, out)
		}
		t := &test{in: i, name: name, time: time.Since(start)}
		if t.lines, err = linesOf(profile); err != nil {
			return nil, err
		}
		if m.longest == 0 || t.time <= m.longest {
			all = append(all, t)
		}
	}
	return all, nil
}

// linesOf reads a profile of coverage: NAME:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func linesOf(profile string) (map[string]map[int]bool, error) {
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := map[string]map[int]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		at := strings.LastIndexByte(s.Text(), ':')
		fields := strings.FieldsFunc(s.Text()[at+1:], func(r rune) bool { return strings.ContainsRune(" .,", r) })
		if len(fields) != 6 {
			continue
		}
		first, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, err
		}
		last, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, err
		}
		name := path.Base(s.Text()[:at])
		if lines[name] == nil {
			lines[name] = map[int]bool{}
		}
		for i := first; i <= last; i++ {
			lines[name][i] = lines[name][i] || fields[5] != "0"
		}
	}
	return lines, nil
}
