package main

import (
	"debug/elf"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// system is a core in a machine for which other engines' times are published.
type system struct {
	name      string
	core      core
	fastest   float64 // instructions per cycle of the fastest kernels, for which prefetches may be late
	gigahertz float64
	caches    []cache
	transfers transfers
}

// transfers are what lines of 64 bytes take, while nothing else happens. They are assumed.
type transfers struct {
	// second is the bytes per cycle from and to the second cache, and secondWait the cycles
	// until a line comes that no prefetcher has asked for.
	second, secondWait float64
	// memory is the gigabytes per second, and memoryWait the nanoseconds until such a line
	// comes.
	memory, memoryWait float64
}

// moved is what lines take that come from the second cache and from memory, or go there.
func (s *system) moved(fromSecond, fromMemory float64) float64 {
	const line = 64
	return fromSecond*line/s.transfers.second/s.gigahertz/1e6 + fromMemory*line/s.transfers.memory/1e6
}

// streamed is what the lines of a run take that a prefetcher asks for, and those that are
// written back, prefetched what those take that come by prefetches while other instructions
// are executed, and waits what the others do, and prefetches that are late.
func (s *system) streamed(n counts) float64 {
	return s.moved(n[secondStreamed]+n[toSecond], n[memoryStreamed]+n[toMemory])
}

func (s *system) prefetched(n counts) float64 {
	return s.moved(n[secondPrefetched], n[memoryPrefetched])
}

func (s *system) waits(n counts) float64 {
	late := n[late] / s.fastest / s.gigahertz / 1e6
	return n[second]*s.transfers.secondWait/s.gigahertz/1e6 + n[memory]*s.transfers.memoryWait/1e6 + late
}

// ahead returns the caches with the instructions that are executed while a line comes.
func (s *system) ahead() []cache {
	both := slices.Clone(s.caches)
	both[0].ahead = int(s.transfers.secondWait * s.fastest)
	both[1].ahead = int(s.transfers.memoryWait * s.gigahertz * s.fastest)
	return both
}

var systems = []system{
	{
		"Pixel 1", core{"kryo", 1.3, 0x512f2051}, 2.2, 2.15,
		[]cache{{128, 3, 0}, {2048, 8, 0}}, // 24 KiB, 1 MiB
		transfers{second: 8, secondWait: 25, memory: 8, memoryWait: 130},
	},
	{
		"Raspberry Pi 4B", core{"cortex-a72", 1.5, 0x410fd083}, 2.2, 1.5,
		[]cache{{256, 2, 0}, {1024, 16, 0}}, // 32 KiB, 1 MiB
		transfers{second: 8, secondWait: 21, memory: 4, memoryWait: 150},
	},
	{
		"Mac Mini M1", core{"neoverse-v1", 2.5, 0x611f0230}, 4, 3.2,
		[]cache{{256, 8, 0}, {16384, 12, 0}}, // 128 KiB, 12 MiB
		transfers{second: 32, secondWait: 18, memory: 40, memoryWait: 100},
	},
}

// leastShare is that of the instructions, or of the time of the memory, from which on a
// function has a row.
const leastShare = 0.01

// copies are the functions of Go's runtime that a network calls.
var copies = regexp.MustCompile(`^runtime\.mem(move|clr)`)

// network models a network on every system whose name has only in it.
func (m *model) network(w io.Writer, isa, name, only string) error {
	for _, s := range systems {
		if !strings.Contains(s.name, only) {
			continue
		}
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
// assumed instructions per cycle, and their loads and stores with the caches of the system.
func (m *model) onSystem(w io.Writer, isa, name string, s system) error {
	what := []string{name}
	m.caches = s.ahead()
	sums, err := m.count(isa, what, 1, 3)
	m.caches = nil
	if err != nil {
		return err
	}
	var all counts
	for i, n := range sums {
		if name := m.symbols[i].Name; strings.HasPrefix(name, "runtime.") && !copies.MatchString(name) {
			sums[i] = counts{} // its timers go on while QEMU is slow
			continue
		}
		all.add(n, 1)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "\n%s, %s, on %s (%s, %.4g GHz)\tM instructions\tms\tMB from L2\tfrom memory\twritten back\tms\tms of waits\n", name, isa, s.name, s.core.name, s.gigahertz)
	megabytes := func(lines float64) float64 { return lines * 64 / 1e6 }
	line := func(what string, n counts, ms float64) {
		fmt.Fprintf(out, "%s\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.2f\t%.2f\n", what, n[instructions]/1e6, ms,
			megabytes(n[secondStreamed]+n[second]+n[secondPrefetched]), megabytes(n[memoryStreamed]+n[memory]+n[memoryPrefetched]), megabytes(n[toSecond]+n[toMemory]), s.streamed(n)+s.prefetched(n), s.waits(n))
	}
	rest := all
	var computed, overlapped float64
	row := func(what string, n counts, ms float64) {
		line(what, n, ms)
		rest.add(n, -1)
		computed += ms
		overlapped += max(ms, s.streamed(n)) + s.waits(n)
	}
	assumed := func(n counts) float64 { return n[instructions] / s.core.rest / s.gigahertz / 1e6 }
	moved := func(n counts) float64 { return s.streamed(n) + s.prefetched(n) + s.waits(n) }
	for i, f := range m.symbols {
		if sums[i][instructions] < leastShare*all[instructions] && moved(sums[i]) < leastShare*moved(all) {
			continue
		}
		name := f.Name[strings.LastIndex(f.Name, "/")+1:]
		kernel, ok := strings.CutSuffix(name, ".abi0")
		if !ok || !strings.Contains(f.Name, "/kern/neon.") {
			row(name+", assumed", sums[i], assumed(sums[i]))
			continue
		}
		modelled, err := m.traced(isa, what, f, s.core)
		if err != nil {
			return fmt.Errorf("%s: %w", kernel, err)
		}
		row(kernel, sums[i], sums[i][instructions]/modelled.ipc/s.gigahertz/1e6)
	}
	row("the rest, assumed", rest, assumed(rest))
	line("all", all, computed)
	fmt.Fprintf(out, "in the first cache %.1f ms, overlapped %.1f, in turns %.1f\n", computed, overlapped, computed+moved(all))
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
