package main

import (
	"debug/elf"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// system is a core in a machine for which other engines' times are published.
type system struct {
	name string
	core core
	gigahertz,
	// memory is the gigabytes per second of one core beyond its first cache, which are
	// assumed.
	memory float64
}

var systems = []system{
	{"Pixel 1", core{"kryo", 1.3, 0x512f2051}, 2.15, 8},
	{"Raspberry Pi 4B", core{"cortex-a72", 1.5, 0x410fd083}, 1.5, 4},
	{"Mac Mini M1", core{"neoverse-v1", 2.5, 0x611f0230}, 3.2, 40},
}

// leastShare is that of the instructions from which on a kernel is traced.
const leastShare = 0.01

// network models a network on every system.
func (m *model) network(w io.Writer, isa, name string) error {
	for _, s := range systems {
		if err := m.as(s.core); err != nil {
			return err
		}
		if err := m.onSystem(w, isa, name, s); err != nil {
			return err
		}
	}
	return nil
}

// onSystem models a network: kernels as they are traced, what is not traced at the
// assumed instructions per cycle, and nothing of the memory's time at the same time.
func (m *model) onSystem(w io.Writer, isa, name string, s system) error {
	what := []string{name}
	sums, err := m.count(isa, what, 1, 2)
	if err != nil {
		return err
	}
	var weights, tensors float64
	if _, err := fmt.Sscanf(m.printed[strings.LastIndex(m.printed, "bytes\t"):], "bytes\t%g\t%g", &weights, &tensors); err != nil {
		return fmt.Errorf("bytes of the network: %w", err)
	}
	var all float64
	for _, n := range sums {
		all += n
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\n%s, %s\tM instructions\t%s (%s, %.4g GHz)\n", name, isa, s.name, s.core.name, s.gigahertz)
	rest, total := all, 0.
	row := func(what string, instructions, ms float64) {
		total += ms
		count := ""
		if instructions > 0 {
			count = fmt.Sprintf("%.2f", instructions/1e6)
		}
		fmt.Fprintf(out, "%s\t%s\t%.2f\n", what, count, ms)
	}
	assumed := func(instructions float64) float64 { return instructions / s.core.rest / s.gigahertz / 1e6 }
	for i, f := range m.symbols {
		if sums[i] < leastShare*all {
			continue
		}
		name := f.Name[strings.LastIndex(f.Name, "/")+1:]
		kernel, ok := strings.CutSuffix(name, ".abi0")
		if !ok || !strings.Contains(f.Name, "/kern/neon.") {
			rest -= sums[i]
			row(name+", assumed", sums[i], assumed(sums[i]))
			continue
		}
		modelled, err := m.traced(isa, what, f, s.core)
		if err != nil {
			return fmt.Errorf("%s: %w", kernel, err)
		}
		rest -= sums[i]
		row(kernel, sums[i], sums[i]/modelled.ipc/s.gigahertz/1e6)
	}
	row("the rest, assumed", rest, assumed(rest))
	row(fmt.Sprintf("memory: %.1f MB of weights, %.1f of tensors", weights/1e6, tensors/1e6), 0, (weights+tensors)/s.memory/1e6)
	fmt.Fprintf(out, "all\t%.2f\t%.1f\n", all/1e6, total)
	return out.Flush()
}

// traced models the first instructions of a function in a run.
func (m *model) traced(isa string, what []string, f elf.Symbol, c core) (onCore, error) {
	const most = 24000
	trace := filepath.Join(m.work, "trace")
	if _, err := m.run(isa, what, 1, trace, f, most); err != nil {
		return onCore{}, err
	}
	text, err := m.assembly(trace, f)
	if err != nil {
		return onCore{}, err
	}
	return m.cycles(c, text)
}
