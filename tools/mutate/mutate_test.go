package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const code = `package p

import (
	"errors"
	"math"
)

func Sign(x int) (int, error) {
	if x > 1<<20 {
		return 7, errors.New("large")
	}
	if x < 0 {
		return -1, nil
	}
	return 1, nil
}

func Never(x int) bool { return x == 3 }

func Text() string { return "a" + "b" }

func Least() float64 { return math.Inf(-1) }
`

const tests = `package p

import "testing"

func TestSign(t *testing.T) {
	for x, want := range map[int]int{-5: -1, 5: 1} {
		if got, err := Sign(x); got != want || err != nil {
			t.Fatal(got)
		}
	}
}

func TestText(t *testing.T) { Text() }
`

// module writes a module with a package.
func module(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.25\n", "p.go": code, "p_test.go": tests} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// Every mutant of a small package, and what becomes of it.
func TestMutate(t *testing.T) {
	dir := module(t)
	t.Chdir(dir)
	list := filepath.Join(dir, "reasons.tsv")
	reason := "p.go\tif x < 0 {\t0\t0\t1\tno test has 0"
	require.NoError(t, os.WriteFile(list, []byte(reason+"\n"), 0o644))
	var out bytes.Buffer
	m := &mutator{dir: ".", packages: []string{"."}, count: 100, jobs: 2, seed: 1, reasons: list, out: &out}
	percent, err := m.run(t.Context())
	require.NoError(t, err, out.String())
	var got []string
	for line := range strings.Lines(out.String()) {
		if what, key, ok := strings.Cut(line, "\t"); ok {
			got = append(got, what[:8]+" "+strings.TrimSpace(key))
		}
	}
	require.ElementsMatch(t, []string{
		"SURVIVED p.go\tif x > 1<<20 {\t0\t>\t>=",
		"SURVIVED p.go\tif x > 1<<20 {\t0\t1\t2",
		"SURVIVED p.go\tif x > 1<<20 {\t0\t20\t21",
		"SURVIVED p.go\tif x < 0 {\t0\t<\t<=",
		"NO TEST  p.go\tfunc Never(x int) bool { return x == 3 }\t0\t==\t!=",
		"NO TEST  p.go\tfunc Never(x int) bool { return x == 3 }\t0\t3\t4",
		"NO TEST  p.go\tfunc Least() float64 { return math.Inf(-1) }\t0\t-", // of 1 the sign alone counts
	}, got)
	// Killed: << as >>, −1 as 1 and as −2, 1 as 2.
	require.Contains(t, out.String(), "12 mutants: 4 killed, 8 survived (of which 1 for a reason), 3 on lines that no test runs; 41.7 % killed or for a reason; 0 more did not compile")
	require.InDelta(t, 500./12, percent, 1e-9)

	// Only those again that survived; the one with a reason is not listed.
	earlier := filepath.Join(dir, "earlier.txt")
	require.NoError(t, os.WriteFile(earlier, out.Bytes(), 0o644))
	out.Reset()
	m.again = earlier
	_, err = m.run(t.Context())
	require.NoError(t, err)
	require.Contains(t, out.String(), "7 mutants: 0 killed, 7 survived")
}

// Tests of another package look for mutants as well.
func TestTestsOfAnotherPackage(t *testing.T) {
	dir := module(t)
	t.Chdir(dir)
	other := filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(other, "other_test.go"), []byte(`package other

import (
	"p"
	"testing"
)

func TestNever(t *testing.T) {
	if !p.Never(3) || p.Never(4) {
		t.Fatal()
	}
}
`), 0o644))
	for packages, want := range map[string]string{".": "4 killed, 8 survived", "other": "2 killed, 10 survived", ".,other": "6 killed, 6 survived"} {
		var out bytes.Buffer
		m := &mutator{dir: ".", packages: strings.Split(packages, ","), count: 100, jobs: 2, seed: 1, reasons: os.DevNull, out: &out}
		_, err := m.run(t.Context())
		require.NoError(t, err, out.String())
		require.Contains(t, out.String(), "12 mutants: "+want, packages)
	}
}

func TestSites(t *testing.T) {
	dir := module(t)
	sites, err := sitesIn(dir)
	require.NoError(t, err)
	for _, s := range sites {
		changed, err := s.mutated()
		require.NoError(t, err)
		require.Equal(t, code[:s.from]+s.new+code[s.to:], string(changed))
		require.Equal(t, s.old, code[s.from:s.to])
		require.NotContains(t, []string{"7"}, s.old) // beside an error
	}
	_, err = sitesIn(filepath.Join(dir, "absent"))
	require.NoError(t, err)
	_, err = (&mutator{dir: t.TempDir(), reasons: os.DevNull}).run(t.Context())
	require.ErrorContains(t, err, "nothing to mutate")
	_, err = (&mutator{dir: dir, reasons: filepath.Join(dir, "p.go")}).run(t.Context())
	require.ErrorContains(t, err, "p.go:1: want file")
}

// Functions of every form have copies, and what stands outside of them, or in the conditions of
// a switch, meets its tests.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.25\n", "p.go": `package p

const most = 3

type T struct{ n int }

func (T) None(_ int, _ ...string) bool { return true }

func (t *T) Grow(by ...int) {
	for _, b := range by {
		t.n += b
	}
}

func Sum[N ~int | ~float64](list ...N) (sum N) {
	for _, v := range list {
		sum += v
	}
	return sum
}

func Size(n int) string {
	switch {
	case n > most:
		return "large"
	}
	return "small"
}

func Both() (func() int, int) {
	return func() int {
		return 3
	},
		4
}
`, "p_test.go": `package p

import "testing"

func TestForms(t *testing.T) {
	v := T{1}
	v.Grow(2, 3)
	if v.n != 6 || !v.None(1, "a") || Sum(1, 2) != 3 || Sum(0.5, 2) != 2.5 {
		t.Fatal(v)
	}
}

func TestBoth(t *testing.T) {
	if f, n := Both(); f() != 3 || n != 4 {
		t.Fatal(n)
	}
}

func TestLarge(t *testing.T) {
	if Size(4) != "large" {
		t.Fatal()
	}
}

func TestSmall(t *testing.T) {
	if Size(3) != "small" {
		t.Fatal()
	}
}
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	var out bytes.Buffer
	m := &mutator{dir: ".", packages: []string{"."}, count: 100, jobs: 2, seed: 1, reasons: os.DevNull, out: &out}
	_, err := m.run(t.Context())
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "7 mutants: 7 killed", "3, true, += and +=, >, 3 and 4")
}
