//go:build !purego

package sets

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/neon"
)

// coresOf returns what Linux tells of the cores in its files, which are below
// root: the identification register of every core, or the lines of cpuinfo made
// of it. Of a processor with cores of both kinds the fast ones count, and cores
// that are not known, or a system that tells nothing, as Apple's, are taken for
// ones that change the order of instructions and are slow at none.
func coresOf(root fs.FS) neon.Cores {
	var cores neon.Cores
	for _, id := range identified(root) {
		if name := inOrderCores[id]; name != "" {
			cores.InOrder = name
		} else if name := slowInsertCores[id]; name != "" {
			cores.SlowInsert = name
		} else {
			return neon.Cores{}
		}
	}
	if cores.SlowInsert != "" {
		cores.InOrder = ""
	}
	return cores
}

// core is an implementer and a part.
type core struct{ implementer, part uint64 }

// inOrderCores are those that execute instructions in the order of the program.
var inOrderCores = map[core]string{
	{0x41, 0xd02}: "Cortex-A34",
	{0x41, 0xd03}: "Cortex-A53",
	{0x41, 0xd04}: "Cortex-A35",
	{0x41, 0xd05}: "Cortex-A55",
	{0x41, 0xd46}: "Cortex-A510",
	{0x41, 0xd80}: "Cortex-A520",
	{0x51, 0x801}: "Kryo 2xx Silver",
	{0x51, 0x803}: "Kryo 3xx Silver",
	{0x51, 0x805}: "Kryo 4xx Silver",
}

// slowInsertCores are those that take two operations for BIT of 128 bits, as Arm's guide
// tells of Cortex-A57 and A72. Of Cortex-A73 and A75 nothing is known; LLVM takes them
// for an A57.
var slowInsertCores = map[core]string{
	{0x41, 0xd07}: "Cortex-A57",
	{0x41, 0xd08}: "Cortex-A72",
	{0x41, 0xd09}: "Cortex-A73",
	{0x41, 0xd0a}: "Cortex-A75",
	{0x51, 0x201}: "Kryo",
	{0x51, 0x205}: "Kryo",
	{0x51, 0x211}: "Kryo",
	{0x51, 0x800}: "Kryo 2xx Gold",
	{0x51, 0x802}: "Kryo 3xx Gold",
}

// identified lists the cores of the processor.
func identified(root fs.FS) []core {
	var ids []core
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu*/regs/identification/midr_el1")
	for _, name := range files {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue // the core is not running
		}
		if midr, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 64); err == nil {
			ids = append(ids, core{midr >> 24 & 0xff, midr >> 4 & 0xfff})
		}
	}
	if len(ids) > 0 {
		return ids
	}
	text, _ := fs.ReadFile(root, "proc/cpuinfo")
	var id core
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseUint(strings.TrimSpace(value), 0, 64)
		switch {
		case err != nil:
		case strings.TrimSpace(name) == "CPU implementer":
			id.implementer = n
		case strings.TrimSpace(name) == "CPU part":
			id.part = n
			ids = append(ids, id)
		}
	}
	return ids
}
