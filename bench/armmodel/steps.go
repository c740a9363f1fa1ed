package main

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// stepCores are those that steps are modelled on.
var stepCores = cores[1:4]

// leastKernel is the share of the instructions of a step from which on a function is
// modelled by itself; the others, and copies, are at the assumed rate.
const leastKernel = 0.04

var (
	stepLine   = regexp.MustCompile(`(?m)^BenchmarkCount/([^/\s]+)/(\S+)\s+\d+\s(.*)$`)
	stepMetric = regexp.MustCompile(`([\d.e+]+) (values|products|operations|loads|stores)\b`)
)

// stepTable models the float32 steps of BenchmarkCount of backend/cpu whose names match only.
func (m *model) stepTable(w io.Writer, isa, only string) error {
	if err := m.as(stepCores[0]); err != nil {
		return err
	}
	floors := make([]map[string]rate, len(stepCores))
	for i, c := range stepCores {
		var err error
		if floors[i], err = m.rates(c); err != nil {
			return err
		}
	}
	listed, err := command("qemu-aarch64", "-L", m.root, "-cpu", "max", m.executed, "-test.run=^$", "-test.bench=^BenchmarkCount$/^"+isa+"$/"+only, "-test.benchtime=1x", "-test.cpu=1")
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "step\tinstructions for a value")
	for _, c := range stepCores {
		fmt.Fprintf(out, "\t%s", c.name)
	}
	fmt.Fprintln(out, "\twhat is executed")
	for _, line := range stepLine.FindAllStringSubmatch(string(listed), -1) {
		if line[1] != isa {
			continue
		}
		least := map[string]float64{}
		for _, found := range stepMetric.FindAllStringSubmatch(line[3], -1) {
			n, err := strconv.ParseFloat(found[1], 64)
			if err != nil {
				return fmt.Errorf("%s: %w", line[2], err)
			}
			least[found[2]] = n
		}
		if err := m.step(out, isa, line[2], least, floors); err != nil {
			return fmt.Errorf("%s: %w", line[2], err)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// step models a step: the functions that have a share of it as they are traced, what is
// left at the assumed instructions per cycle.
func (m *model) step(w io.Writer, isa, name string, least map[string]float64, floors []map[string]rate) error {
	const few, most = 1, 8000
	what := []string{name}
	once, err := m.run(isa, what, few, "", elf.Symbol{}, 0)
	if err != nil {
		return err
	}
	before := m.sums(once, 1)
	var first []counts
	var all float64
	// The runtime's own work is not the same in each run: short steps are run more often.
	for many := 3; many == 3 || many < 1000 && all < 1e6; many *= 100 {
		more, err := m.run(isa, what, many, "", elf.Symbol{}, 0)
		if err != nil {
			return err
		}
		first, all = m.sums(more, 1/float64(many-few)), 0
		for i := range first {
			first[i].add(before[i], -1/float64(many-few))
			// What else the test program does is not the same either.
			if name := m.symbols[i].Name; !strings.Contains(name, "/backend/cpu") && !copies.MatchString(name) {
				first[i] = counts{}
			}
			first[i][instructions] = max(0, first[i][instructions])
			all += first[i][instructions]
		}
	}
	cycles := make([]float64, len(stepCores))
	rest := all
	type part struct {
		name  string
		share float64
	}
	var parts []part
	for i, f := range m.symbols {
		n := first[i][instructions]
		if n < leastKernel*all || strings.HasPrefix(f.Name, "runtime.") {
			continue
		}
		rest -= n
		trace := filepath.Join(m.work, "trace")
		skip := max(0, int(before[i][instructions]-few*n)) // by the steps before and the program
		if _, err := m.run(isa, what, few, trace, f, skip+most); err != nil {
			return err
		}
		if err := cut(trace, skip); err != nil {
			return err
		}
		text, err := m.assembly(trace, f)
		if err != nil {
			return err
		}
		on, err := m.onCores(stepCores, text)
		if err != nil {
			return err
		}
		for c := range stepCores {
			cycles[c] += n / on[c].ipc
		}
		name := strings.TrimSuffix(f.Name[strings.LastIndex(f.Name, "/")+1:], ".abi0")
		parts = append(parts, part{fmt.Sprintf("%s %.0f %%", name, 100*n/all), n})
	}
	slices.SortFunc(parts, func(a, b part) int { return int(b.share - a.share) })
	fmt.Fprintf(w, "%s\t%.3g", strings.ReplaceAll(name, "_", " "), all/least["values"])
	for c, core := range stepCores {
		cycles[c] += rest / core.rest
		floor, slots := 0.0, 0.0
		for _, unit := range []string{"products", "operations", "loads", "stores"} {
			floor = max(floor, least[unit]*floors[c][unit].cycles)
			slots += least[unit] * floors[c][unit].slots
		}
		floor = max(floor, slots, (least["products"]+least["operations"])*floors[c]["operations"].cycles)
		fmt.Fprintf(w, "\t%.3g of %.3g, %.0f %%", cycles[c]/least["values"], floor/least["values"], 100*floor/cycles[c])
	}
	fmt.Fprint(w, "\t")
	for i, p := range parts {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprint(w, p.name)
	}
	fmt.Fprintln(w)
	return nil
}

// cut leaves out the first lines of a file.
func cut(name string, lines int) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	rest := string(data)
	for range lines {
		_, after, found := strings.Cut(rest, "\n")
		if !found {
			break
		}
		rest = after
	}
	return os.WriteFile(name, []byte(rest), 0o644)
}

// rate is what an operation on vectors takes where a core does nothing else: cycles, and
// those in which nothing else could be dispatched.
type rate struct{ cycles, slots float64 }

// rates returns those of a core.
func (m *model) rates(c core) (map[string]rate, error) {
	const many = 240
	rates := map[string]rate{}
	for unit, forms := range map[string][]struct {
		text    string // with the number of a register
		vectors int    // of 16 bytes
	}{
		"products":   {{"fmla v%d.4s, v30.4s, v31.4s", 1}},
		"operations": {{"eor v%d.16b, v30.16b, v31.16b", 1}},
		"loads":      {{"ldr q%d, [x0]", 1}, {"ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [x0] // %d", 4}},
		"stores":     {{"str q%d, [x0]", 1}, {"st1 {v0.4s, v1.4s, v2.4s, v3.4s}, [x0] // %d", 4}},
	} {
		for _, form := range forms {
			var b strings.Builder
			for i := range many {
				fmt.Fprintf(&b, form.text+"\n", i%24)
			}
			on, err := m.cycles(c, b.String())
			if err != nil {
				return nil, err
			}
			n := float64(form.vectors)
			r := rate{1 / on.ipc / n, on.slot / n}
			if known, ok := rates[unit]; ok { // the better of each
				r = rate{min(r.cycles, known.cycles), min(r.slots, known.slots)}
			}
			rates[unit] = r
		}
	}
	return rates, nil
}
