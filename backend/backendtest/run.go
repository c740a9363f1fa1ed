// Package backendtest holds backends to their contract in tests: the values that
// they compute (Run, Fuzz, Published), by package parity, and all else (Life).
package backendtest

import (
	"os"
	"sync"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// EnvCases is the environment variable that says which cases of package parity tests take, with
// and without -short: "core" (parity.Core), "cover" (parity.Cover) or "all" (parity.Cases). If it
// is not set, each test takes what it usually does.
const EnvCases = "BCNN_TEST_CASES"

// Cases returns the cases that EnvCases asks for, or else those that the test usually takes:
// short with -short, and long without.
func Cases(t testing.TB, short, long func() []parity.Case) []parity.Case {
	t.Helper()
	name := os.Getenv(EnvCases)
	switch {
	case name == "" && testing.Short():
		return short()
	case name == "":
		return long()
	}
	cases, err := parity.Select(name)
	if err != nil {
		t.Fatalf("%s: %v", EnvCases, err)
	}
	return cases
}

// CoreEvery returns a function that returns every nth case of parity.Core.
func CoreEvery(n int) func() []parity.Case {
	return func() (some []parity.Case) {
		for i, c := range parity.Core() {
			if i%n == 0 {
				some = append(some, c)
			}
		}
		return some
	}
}

// Run runs parity.Cover on the device, or parity.Core with go test -short, each case as a
// subtest. EnvCases asks for others.
func Run(t *testing.T, dev *backend.Device, opts backend.Options) {
	run(t, Cases(t, parity.Core, parity.Cover), nil, dev, opts)
}

// RunFirst is Run for the first of several devices, or instruction sets, that one program drives: it
// runs the whole table, or parity.Cover with go test -short.
func RunFirst(t *testing.T, dev *backend.Device, opts backend.Options) {
	run(t, Cases(t, parity.Cover, parity.Cases), nil, dev, opts)
}

// RunOnly is Run for those cases that have a step of which f is true.
func RunOnly(t *testing.T, f func(*plan.Plan, plan.Step) bool, dev *backend.Device, opts backend.Options) {
	run(t, Cases(t, parity.Core, parity.Cover), f, dev, opts)
}

// table has every case by its name. They are kept, as tests run them with several sets of options.
var table = sync.OnceValue(func() map[string]parity.Case {
	cases := make(map[string]parity.Case)
	for _, c := range parity.Keep(parity.Cases()) {
		cases[c.Name] = c
	}
	return cases
})

func run(t *testing.T, cases []parity.Case, has func(*plan.Plan, plan.Step) bool, dev *backend.Device, opts backend.Options) {
	for _, c := range cases {
		c = table()[c.Name]
		if has != nil {
			if some, err := c.Has(t.Context(), has); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			} else if !some {
				continue
			}
		}
		t.Run(c.Name, func(t *testing.T) { check(t, dev, opts, c) })
	}
}

// Fuzz compares the device with the reference on random networks, which the kinds of
// kernels take turns at. "" is what users get.
func Fuzz(f *testing.F, dev *backend.Device, opts backend.Options, kinds ...string) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	kinds = append([]string{opts.Kernels}, kinds...)
	f.Fuzz(func(t *testing.T, seed uint64) {
		opts.Kernels = kinds[seed%uint64(len(kinds))]
		check(t, dev, opts, parity.RandomCase(seed))
	})
}

func check(t *testing.T, dev *backend.Device, opts backend.Options, c parity.Case) {
	failures, err := parity.Check(t.Context(), dev, opts, []parity.Case{c}, nil)
	if err != nil {
		t.Error(err)
	}
	for _, f := range failures {
		t.Error(f)
	}
}
