package main

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed plugin/trace.c
var plugin []byte

// model has what it takes to model a convolution.
type model struct {
	work, llvm, driver, plugin string
	executed                   string       // the driver with loads for prefetches
	steps                      bool         // the driver is the test program of backend/cpu
	symbols                    []elf.Symbol // functions, by address
	printed                    string       // by the driver, in the last run
	root                       string       // of the files that tell of the cores
	caches                     []cache      // to simulate
}

// cache is a data cache, of lines of 64 bytes, and the instructions that are executed while
// one comes from behind it.
type cache struct{ sets, ways, ahead int }

// The things that are counted at every address: instructions, and, with caches, the lines
// that came from the second cache or from memory, near others that had just come or not,
// and those that were written back to the second cache and to memory; those that came by
// prefetches, and the instructions by which they were late.
const (
	instructions = iota
	secondStreamed
	second
	memoryStreamed
	memory
	toSecond
	toMemory
	secondPrefetched
	memoryPrefetched
	late
	kinds
)

type counts [kinds]float64

func (c *counts) add(of counts, factor float64) {
	for kind := range c {
		c[kind] += factor * of[kind]
	}
}

// modelled is a convolution with the kernel that is picked for some cores.
type modelled struct {
	name           string  // of the kernel
	kernel, around float64 // instructions of a run
}

// onCore is a kernel on a core.
type onCore struct {
	*modelled
	ipc  float64 // instructions per cycle
	slot float64 // cycles for an instruction, as many operations as the core dispatches in each
	busy float64 // cycles of the busiest unit for an instruction
	unit string
}

// build makes the driver and the plugin.
func (m *model) build() error {
	source := filepath.Join(m.work, "trace.c")
	if err := os.WriteFile(source, plugin, 0o644); err != nil {
		return err
	}
	if _, err := command("cc", "-O2", "-shared", "-fPIC", "-o", m.plugin, source); err != nil {
		return err
	}
	build := []string{"build", "-o", m.driver, "github.com/bitcnn/bitcnn/bench/armmodel/driver"}
	if m.steps {
		build = []string{"test", "-c", "-o", m.driver, "github.com/bitcnn/bitcnn/backend/cpu"}
	}
	cmd := exec.Command("go", build...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", build[0], err, out)
	}
	f, err := elf.Open(m.driver)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := f.Symbols()
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			m.symbols = append(m.symbols, s)
		}
	}
	slices.SortFunc(m.symbols, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	if err != nil {
		return err
	}
	return m.loadPrefetches(f.Section(".text"))
}

// loadPrefetches makes the program that is executed: QEMU tells plugins nothing of prefetches,
// so PRFM of the kernels is LDR into XZR there, of the same address.
func (m *model) loadPrefetches(text *elf.Section) error {
	data, err := os.ReadFile(m.driver)
	if err != nil {
		return err
	}
	for _, s := range m.symbols {
		if !strings.Contains(s.Name, "/kern/neon.") {
			continue
		}
		code := data[text.Offset+s.Value-text.Addr:][:s.Size]
		for ; len(code) >= 4; code = code[4:] {
			const prfm, ldr, registers = 0xf9800000, 0xf9400000, 0x3fffe0
			if word := binary.LittleEndian.Uint32(code); word&0xffc00000 == prfm {
				binary.LittleEndian.PutUint32(code, ldr|word&registers|31)
			}
		}
	}
	m.executed = m.driver + "-prefetches"
	return os.WriteFile(m.executed, data, 0o755)
}

// as has the kernels picked for a core.
func (m *model) as(c core) error {
	const file = "sys/devices/system/cpu/cpu0/regs/identification/midr_el1"
	m.root = filepath.Join(m.work, c.name)
	name := filepath.Join(m.root, file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, fmt.Appendf(nil, "%#016x\n", c.midr), 0o644)
}

// run runs a convolution or a network a number of times and returns what was counted at
// every address. If trace is not "", the first most instructions of from are
// written there, and the run ends with them.
func (m *model) run(isa string, what []string, runs int, trace string, from elf.Symbol, most int) (map[uint64]counts, error) {
	file := filepath.Join(m.work, "counts")
	options := fmt.Sprintf("%s,counts=%s", m.plugin, file)
	for i, c := range m.caches {
		options += fmt.Sprintf(",l%d=%d:%d:%d", i+1, c.sets, c.ways, c.ahead)
	}
	if trace != "" {
		options += fmt.Sprintf(",trace=%s,from=%#x,to=%#x,most=%d", trace, from.Value, from.Value+from.Size, most)
	}
	args := []string{"-L", m.root, "-cpu", "max", "-plugin", options, m.executed}
	if m.steps {
		names := strings.ReplaceAll(regexp.QuoteMeta("BenchmarkCount/"+isa+"/"+what[0]), "/", "$/^")
		args = append(args, "-test.run=^$", "-test.cpu=1", "-test.bench=^"+names+"$", fmt.Sprintf("-test.benchtime=%dx", runs))
	} else {
		args = append(append(append(args, isa), what...), strconv.Itoa(runs))
	}
	printed, err := command("qemu-aarch64", args...)
	if err != nil {
		return nil, err
	}
	m.printed = string(printed)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	executed := map[uint64]counts{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		at, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil || len(fields) != 1+kinds {
			return nil, fmt.Errorf("counts: %q", line)
		}
		var n counts
		for kind, field := range fields[1:] {
			if n[kind], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, fmt.Errorf("counts: %w", err)
			}
		}
		executed[at] = n
	}
	return executed, nil
}

// around names the functions that a convolution spends instructions in beside its
// kernel: they lay out rows, and go through tiles.
var around = regexp.MustCompile(`/cpu/internal/conv\.|/kern\.\(\*WideFilter\)|^runtime\.memmove|^runtime\.memclr`)

// measure models a convolution on every core, with the kernels that are picked for it.
func (m *model) measure(isa string, s shape) ([]onCore, error) {
	what := s.args()
	alike := map[string][]int{} // cores by what the driver prints
	for i, c := range cores {
		if err := m.as(c); err != nil {
			return nil, err
		}
		if _, err := m.run(isa, what, 1, "", elf.Symbol{}, 0); err != nil {
			return nil, err
		}
		alike[m.printed] = append(alike[m.printed], i)
	}
	all := make([]onCore, len(cores))
	for _, of := range alike {
		if err := m.as(cores[of[0]]); err != nil {
			return nil, err
		}
		r, text, err := m.picked(isa, s)
		if err != nil {
			return nil, err
		}
		some := make([]core, len(of))
		for i, at := range of {
			some[i] = cores[at]
		}
		on, err := m.onCores(some, text)
		if err != nil {
			return nil, err
		}
		for i, at := range of {
			on[i].modelled = r
			all[at] = on[i]
		}
	}
	return all, nil
}

// picked counts the instructions of a convolution, and returns those of its kernel as a
// program.
func (m *model) picked(isa string, s shape) (*modelled, string, error) {
	what := s.args()
	sums, err := m.count(isa, what, 4, 12)
	if err != nil {
		return nil, "", err
	}
	r := &modelled{}
	var kernel elf.Symbol
	var most float64
	for i, f := range m.symbols {
		switch {
		case strings.Contains(f.Name, "/kern/neon.conv"):
			if sums[i][instructions] > most {
				kernel, most = f, sums[i][instructions]
			}
			r.kernel += sums[i][instructions]
		case around.MatchString(f.Name):
			r.around += sums[i][instructions]
		}
	}
	if r.kernel == 0 {
		return nil, "", errors.New("no kernel of convolutions was executed")
	}
	name := strings.TrimSuffix(kernel.Name, ".abi0")
	r.name = name[strings.LastIndex(name, ".")+1:]
	// Whole tiles of four pixels by 64 outputs, from the start of a call.
	tile := r.kernel / float64(s.side()*s.side()) / float64((s.out+63)/64) * 4
	tiles := max(2, int(24000/tile))
	trace := filepath.Join(m.work, "trace")
	if _, err := m.run(isa, what, 1, trace, kernel, int(tile*float64(tiles))); err != nil {
		return nil, "", err
	}
	text, err := m.assembly(trace, kernel)
	return r, text, err
}

// count returns what a run counts in each function, from two numbers of runs.
func (m *model) count(isa string, what []string, few, many int) ([]counts, error) {
	least, err := m.run(isa, what, few, "", elf.Symbol{}, 0)
	if err != nil {
		return nil, err
	}
	executed, err := m.run(isa, what, many, "", elf.Symbol{}, 0)
	if err != nil {
		return nil, err
	}
	sums := m.sums(executed, 1/float64(many-few))
	for i, n := range m.sums(least, -1/float64(many-few)) {
		sums[i].add(n, 1)
	}
	return sums, nil
}

// sums returns what was counted in each function, times a factor.
func (m *model) sums(executed map[uint64]counts, factor float64) []counts {
	sums := make([]counts, len(m.symbols))
	for at, n := range executed {
		i, found := slices.BinarySearchFunc(m.symbols, at, func(s elf.Symbol, at uint64) int { return cmp.Compare(s.Value, at) })
		if !found {
			i--
		}
		if i >= 0 {
			sums[i].add(n, factor)
		}
	}
	return sums
}

// onCores models a program on each core.
func (m *model) onCores(cores []core, text string) ([]onCore, error) {
	modelled := make([]onCore, len(cores))
	errs := make([]error, len(cores))
	var wait sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, c := range cores {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			modelled[i], errs[i] = m.cycles(c, text)
		})
	}
	wait.Wait()
	return modelled, errors.Join(errs...)
}

var (
	instruction = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(\S.*)$`)
	// target is that of a branch.
	target = regexp.MustCompile(`^(b|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\w+,)\s+(0x)?[0-9a-f]+ <.*>$`)
)

// assembly returns the instructions of a trace as a program without loops.
func (m *model) assembly(trace string, kernel elf.Symbol) (string, error) {
	out, err := command(filepath.Join(m.llvm, "llvm-objdump"), "-d", "--no-show-raw-insn", "--mattr=+dotprod,+i8mm",
		fmt.Sprintf("--start-address=%#x", kernel.Value), fmt.Sprintf("--stop-address=%#x", kernel.Value+kernel.Size), m.driver)
	if err != nil {
		return "", err
	}
	text := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if found := instruction.FindStringSubmatch(strings.TrimRight(line, "\n")); found != nil {
			code, _, _ := strings.Cut(found[2], "//")
			text[found[1]] = target.ReplaceAllString(strings.TrimSpace(code), "$1 .Lnext")
		}
	}
	f, err := os.Open(trace)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b strings.Builder
	b.WriteString(".Lnext:\n")
	for s := bufio.NewScanner(f); s.Scan(); {
		line, ok := text[s.Text()]
		if !ok {
			return "", fmt.Errorf("no instruction at %s", s.Text())
		}
		b.WriteString(line + "\n")
	}
	return b.String(), nil
}

var (
	totals   = regexp.MustCompile(`Instructions:\s+(\d+)\s+Total Cycles:\s+(\d+)`)
	dispatch = regexp.MustCompile(`Total uOps:\s+(\d+)\s+Dispatch Width:\s+(\d+)`)
	resource = regexp.MustCompile(`(?m)^\[([\d.]+)\]\s+- (\S+)`)
	pressure = regexp.MustCompile(`Resource pressure per iteration:\n(.*)\n(.*)`)
)

// cycles has llvm-mca tell how long a program takes on a core.
func (m *model) cycles(c core, program string) (onCore, error) {
	cmd := exec.Command(filepath.Join(m.llvm, "llvm-mca"), "-mtriple=aarch64-linux-gnu", "-mcpu="+c.name, "-mattr=+dotprod,+i8mm",
		"-iterations=1", "-instruction-info=0", "-skip-unsupported-instructions=parse-failure")
	cmd.Stdin = strings.NewReader(program)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return onCore{}, fmt.Errorf("llvm-mca for %s: %w\n%s", c.name, err, errs.String())
	}
	found := totals.FindSubmatch(out)
	if found == nil {
		return onCore{}, fmt.Errorf("llvm-mca for %s: no cycles in what it says", c.name)
	}
	executed, _ := strconv.ParseFloat(string(found[1]), 64)
	cycles, _ := strconv.ParseFloat(string(found[2]), 64)
	r := onCore{ipc: executed / cycles}
	if found := dispatch.FindSubmatch(out); found != nil {
		operations, _ := strconv.ParseFloat(string(found[1]), 64)
		width, _ := strconv.ParseFloat(string(found[2]), 64)
		r.slot = operations / width / executed
	}
	names := map[string]string{}
	for _, unit := range resource.FindAllSubmatch(out, -1) {
		names["["+string(unit[1])+"]"] = string(unit[2])
	}
	if rows := pressure.FindSubmatch(out); rows != nil {
		values := strings.Fields(string(rows[2]))
		for i, name := range strings.Fields(string(rows[1])) {
			if n, err := strconv.ParseFloat(values[i], 64); err == nil && n/executed > r.busy {
				r.busy, r.unit = n/executed, names[name]
			}
		}
	}
	if r.busy == 0 {
		return onCore{}, fmt.Errorf("llvm-mca for %s: no unit in what it says", c.name)
	}
	return r, nil
}
