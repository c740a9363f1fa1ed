package backend

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/internal/host"
)

// Check returns the error of Compile for options that a device of which info is
// known cannot honour.
func (o Options) Check(info Info) error {
	_, err := o.config(info)
	return err
}

// config returns what the driver of a device gets: the options that it can honour,
// with their defaults in place.
func (o Options) config(info Info) (driver.Config, error) {
	c := driver.Config{
		MaxBatch: o.MaxBatch, Threads: o.Threads, ISA: o.ISA, Kernels: o.Kernels,
		Stepwise: o.Timed != nil || o.Tap != nil,
	}
	if why := info.MissingISAs[o.ISA]; why != "" {
		return c, plan.Unsupported(fmt.Sprintf("instruction set %q: %s", o.ISA, why))
	}
	if err := oneOf("instruction set", o.ISA, info.ISAs); err != nil {
		return c, err
	}
	if c.ISA == "" && len(info.ISAs) > 0 {
		c.ISA = info.ISAs[0]
	}
	if err := oneOf("kernels", o.Kernels, info.Kernels); err != nil {
		return c, err
	}
	if c.Threads != 0 && info.MaxThreads == 0 {
		return c, plan.Unsupported(fmt.Sprintf("%d threads: the device offers no choice", o.Threads))
	}
	if c.Threads == 0 {
		c.Threads = min(host.Threads(), info.MaxThreads)
	}
	if c.Threads < 0 || c.Threads > info.MaxThreads {
		return c, fmt.Errorf("%d threads, want 1 to %d", c.Threads, info.MaxThreads)
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 1
	}
	if c.MaxBatch < 0 || c.MaxBatch > info.MaxBatch {
		return c, fmt.Errorf("a batch of %d images, want 1 to %d", c.MaxBatch, info.MaxBatch)
	}
	limits, err := o.Limits.WithDefaults()
	if err != nil {
		return c, err
	}
	if c.ArenaBytes = limits.ArenaBytes; c.ArenaBytes == 0 {
		c.ArenaBytes = memory(info)
	}
	c.ArenaBytes = min(c.ArenaBytes, maxMemory)
	return c, nil
}

const (
	// unknownMemory is what a device may have that does not say how much it has.
	unknownMemory = 8 << 30
	// maxMemory bounds any limit: no address space is larger.
	maxMemory = min(1<<42, math.MaxInt/2)
)

// memory is what an executable may take where it is not told: all of the device's,
// or what is free of the machine's.
func memory(info Info) int64 {
	m := info.Memory
	if free := host.Available(); info.Kind != DiscreteGPU && free > 0 && (m == 0 || free < m) {
		m = free
	}
	if m == 0 {
		m = unknownMemory
	}
	return m
}

// oneOf makes sure that the value of an option is one of those that there are.
func oneOf(what, value string, all []string) error {
	switch {
	case value == "" || slices.Contains(all, value):
		return nil
	case len(all) == 0:
		return plan.Unsupported(fmt.Sprintf("%s %q: the device offers no choice", what, value))
	}
	return plan.Unsupported(fmt.Sprintf("%s %q; the device has %s", what, value, strings.Join(all, ", ")))
}
