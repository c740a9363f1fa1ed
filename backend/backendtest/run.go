// Package backendtest holds backends to their contract in tests: the values that
// they compute (Run, Fuzz, Published), by package parity, and all else (Life).
package backendtest

import (
	"sync"
	"testing"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

// Run runs the table on the device, each case as a subtest; testenv.EnvShare says how much of it,
// and that is not the same for all instruction sets.
func Run(t *testing.T, dev *backend.Device, opts backend.Options) { run(t, 1, nil, dev, opts) }

// RunOnly is Run for those cases that have a step of which f is true.
func RunOnly(t *testing.T, f func(*plan.Plan, plan.Step) bool, dev *backend.Device, opts backend.Options) {
	run(t, 1, f, dev, opts)
}

// RunSlow is Run for a device that is slow, such as an emulated one: go test -short
// takes every eighth case.
func RunSlow(t *testing.T, dev *backend.Device, opts backend.Options) {
	n := 1
	if testing.Short() {
		n = 8
	}
	run(t, n, nil, dev, opts)
}

// table is kept, as tests run it with several sets of options.
var table = sync.OnceValue(func() []parity.Case { return parity.Keep(parity.Cases()) })

func run(t *testing.T, n int, has func(*plan.Plan, plan.Step) bool, dev *backend.Device, opts backend.Options) {
	first := len(opts.ISA)
	for i, c := range table() {
		if (i+first)%n != 0 || !testenv.InShare(t, (i+first)/n) {
			continue
		}
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
