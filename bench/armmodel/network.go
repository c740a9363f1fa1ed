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
	{"Pixel 1", core{"kryo", 1.3}, 2.15, 8},
	{"Raspberry Pi 4B", core{"cortex-a72", 1.5}, 1.5, 4},
	{"Mac Mini M1", core{"neoverse-v1", 2.5}, 3.2, 40},
}

// leastShare is that of the instructions from which on a kernel is traced.
const leastShare = 0.01

// network models a network: kernels as they are traced, what is not traced at the
// assumed instructions per cycle, and nothing of the memory's time at the same time.
func (m *model) network(w io.Writer, isa, name string) error {
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
	cores := make([]core, len(systems))
	for i, s := range systems {
		cores[i] = s.core
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := make([]string, len(systems))
	for i, s := range systems {
		head[i] = fmt.Sprintf("%s (%s, %.4g GHz)", s.name, s.core.name, s.gigahertz)
	}
	fmt.Fprintf(out, "\n%s, %s\tM instructions\t%s\n", name, isa, strings.Join(head, "\t"))
	rest, total := all, make([]float64, len(systems))
	row := func(what string, instructions float64, ms func(i int) float64) {
		cells := make([]string, len(systems))
		for i := range systems {
			cells[i] = fmt.Sprintf("%.2f", ms(i))
			total[i] += ms(i)
		}
		count := ""
		if instructions > 0 {
			count = fmt.Sprintf("%.2f", instructions/1e6)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", what, count, strings.Join(cells, "\t"))
	}
	for i, f := range m.symbols {
		if sums[i] < leastShare*all {
			continue
		}
		name := f.Name[strings.LastIndex(f.Name, "/")+1:]
		kernel, ok := strings.CutSuffix(name, ".abi0")
		if !ok || !strings.Contains(f.Name, "/kern/neon.") {
			rest -= sums[i]
			row(name+", assumed", sums[i], func(s int) float64 { return sums[i] / systems[s].core.rest / systems[s].gigahertz / 1e6 })
			continue
		}
		modelled, err := m.traced(isa, what, f, cores)
		if err != nil {
			return fmt.Errorf("%s: %w", kernel, err)
		}
		rest -= sums[i]
		row(kernel, sums[i], func(s int) float64 { return sums[i] / modelled[s].ipc / systems[s].gigahertz / 1e6 })
	}
	row("the rest, assumed", rest, func(s int) float64 { return rest / systems[s].core.rest / systems[s].gigahertz / 1e6 })
	row(fmt.Sprintf("memory: %.1f MB of weights, %.1f of tensors", weights/1e6, tensors/1e6), 0,
		func(s int) float64 { return (weights + tensors) / systems[s].memory / 1e6 })
	cells := make([]string, len(systems))
	for i := range systems {
		cells[i] = fmt.Sprintf("%.1f", total[i])
	}
	fmt.Fprintf(out, "all\t%.2f\t%s\n", all/1e6, strings.Join(cells, "\t"))
	return out.Flush()
}

// traced models the first instructions of a function in a run.
func (m *model) traced(isa string, what []string, f elf.Symbol, cores []core) ([]onCore, error) {
	const most = 24000
	trace := filepath.Join(m.work, "trace")
	if _, err := m.run(isa, what, 1, trace, f, most); err != nil {
		return nil, err
	}
	text, err := m.assembly(trace, f)
	if err != nil {
		return nil, err
	}
	return m.onCores(cores, text)
}
