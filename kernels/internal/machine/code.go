package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// code is what became of a kernel.
type code struct {
	Registers, Spills int // of a thread; bytes stored and loaded
	// Calls are subroutines of the assembler, but not those beside an instruction for
	// lanes that arrive apart.
	Calls        []string
	Instructions int
	// Of the main loop: the innermost one with the most arithmetic. Not known before
	// firstNew.
	Loop, Tensor, Popc int
}

var (
	compiling  = regexp.MustCompile(`Compiling entry function '(\w+)'`)
	properties = regexp.MustCompile(`Function properties for (\S+)`)
	spilled    = regexp.MustCompile(`(\d+) bytes spill stores, (\d+) bytes spill loads`)
	used       = regexp.MustCompile(`Used (\d+) registers`)
)

// parseLog reads what ptxas -v prints.
func parseLog(text []byte) (map[string]*code, error) {
	kernels := make(map[string]*code)
	entry, function := "", ""
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "wgmma.mma_async instructions are serialized") {
			return nil, errors.New(strings.TrimSpace(line))
		}
		if m := compiling.FindStringSubmatch(line); m != nil {
			entry = m[1]
			kernels[entry] = &code{}
		}
		if m := properties.FindStringSubmatch(line); m != nil {
			function = m[1]
		}
		if m := spilled.FindStringSubmatch(line); m != nil && kernels[function] != nil {
			kernels[function].Spills = number(m[1]) + number(m[2])
		}
		if m := used.FindStringSubmatch(line); m != nil {
			if kernels[entry] == nil {
				return nil, fmt.Errorf("registers of no kernel: %s", line)
			}
			kernels[entry].Registers = number(m[1])
		}
	}
	for name, c := range kernels {
		if c.Registers == 0 {
			return nil, fmt.Errorf("the registers of kernel %s are not told", name)
		}
	}
	return kernels, nil
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits, by the regular expressions
	return n
}

var (
	subroutine = regexp.MustCompile(`\$__cuda_(\w+)$`)
	tensorCall = regexp.MustCompile(`^sm_\w*_mma_`)
	divergent  = regexp.MustCompile(`^sm70_(votesync|shflsync|warpsync|matchsync)`)
)

// addSections reads sizes and subroutines of an assembled file.
func addSections(kernels map[string]*code, cubin string, arch int) error {
	text, err := os.ReadFile(cubin)
	if err != nil {
		return err
	}
	if version := 20; len(text) > version { // of the format; older assemblers write their own
		text[version] = byte(elf.EV_CURRENT)
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return err
	}
	of := make(map[elf.SectionIndex]*code)
	for i, s := range f.Sections {
		c := kernels[strings.TrimPrefix(s.Name, ".text.")]
		if c == nil || !strings.HasPrefix(s.Name, ".text.") {
			continue
		}
		of[elf.SectionIndex(i)] = c
		c.Instructions = int(s.Size / 16)
		if arch < 70 { // three instructions of 8 bytes, and 8 bytes of control
			c.Instructions = int(s.Size / 32 * 3)
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		m := subroutine.FindStringSubmatch(s.Name)
		if c := of[s.Section]; c != nil && m != nil && !divergent.MatchString(m[1]) && !slices.Contains(c.Calls, m[1]) {
			c.Calls = append(c.Calls, m[1])
			slices.Sort(c.Calls)
		}
	}
	return nil
}

var (
	section     = regexp.MustCompile(`^\s*\.section\s+\.text\.(\w+),`)
	label       = regexp.MustCompile(`^(\S+):\s*$`)
	instruction = regexp.MustCompile(`^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)([^;]*)`)
	target      = regexp.MustCompile("`\\(([^)]+)\\)")
)

// loop is a part of the instructions of a kernel, from the first to the last, from which
// a branch leads back.
type loop struct{ first, last int }

// addCode reads what nvdisasm -c prints.
func addCode(kernels map[string]*code, text []byte) {
	var current *code
	var ops []string
	var loops []loop
	labels := make(map[string]int)
	finish := func() {
		if current != nil {
			current.summarize(ops, loops)
		}
		ops, loops = nil, nil
		clear(labels)
	}
	for line := range strings.Lines(string(text)) {
		if m := section.FindStringSubmatch(line); m != nil {
			finish()
			current = kernels[m[1]]
		} else if m := label.FindStringSubmatch(line); m != nil {
			labels[m[1]] = len(ops)
		} else if m := instruction.FindStringSubmatch(line); m != nil {
			to := target.FindStringSubmatch(m[2])
			op := m[1]
			if op == "CALL" && to != nil {
				// Not those within the kernel, nor those for lanes that arrive apart.
				if called := subroutine.FindStringSubmatch(to[1]); called != nil && !divergent.MatchString(called[1]) {
					op = called[1]
				}
			}
			ops = append(ops, op)
			if op != "BRA" || to == nil {
				continue
			}
			if first, known := labels[to[1]]; known && first < len(ops)-1 {
				loops = append(loops, loop{first, len(ops) - 1})
			}
		}
	}
	finish()
}

// summarize counts instructions, and finds the main loop.
func (c *code) summarize(ops []string, loops []loop) {
	c.Instructions = 0
	for _, op := range ops {
		if op != "NOP" {
			c.Instructions++
		}
	}
	most := 0
	for _, l := range loops {
		inner := func(o loop) bool { return o != l && o.first >= l.first && o.last <= l.last }
		if slices.ContainsFunc(loops, inner) {
			continue
		}
		tensor, popc, arithmetic := 0, 0, 0
		for _, op := range ops[l.first : l.last+1] {
			switch {
			case op == "BGMMA" || op == "IGMMA": // of four warps, for many other instructions
				tensor++
				arithmetic += 64
			case op == "BMMA" || op == "IMMA" || op == "HMMA" || tensorCall.MatchString(op):
				tensor++
			case op == "POPC":
				popc++
			case op == "IDP" || op == "FFMA":
				arithmetic++
			}
		}
		if n := tensor + popc + arithmetic; n > most {
			most, c.Loop, c.Tensor, c.Popc = n, l.last-l.first+1, tensor, popc
		}
	}
}
