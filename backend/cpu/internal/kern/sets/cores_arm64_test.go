//go:build !purego

package sets

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/neon"
)

func TestCoresOf(t *testing.T) {
	cpuinfo := func(cores ...core) string {
		var b strings.Builder
		for i, c := range cores {
			fmt.Fprintf(&b, "processor\t: %d\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd\nCPU implementer\t: %#x\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: %#x\nCPU revision\t: 3\n\n", i, c.implementer, c.part)
		}
		return b.String()
	}
	inOrder := func(name string) neon.Cores { return neon.Cores{InOrder: name} }
	slow := func(name string) neon.Cores { return neon.Cores{SlowInsert: name} }
	a53, a55, a72, a76 := core{0x41, 0xd03}, core{0x41, 0xd05}, core{0x41, 0xd08}, core{0x41, 0xd0b}
	for name, c := range map[string]struct {
		cpuinfo string
		midr    []string
		want    neon.Cores
	}{
		"nothing":                   {},
		"not Arm":                   {cpuinfo: "processor\t: 0\nmodel name\t: none\nflags\t\t: fpu\n"},
		"Raspberry Pi 3":            {cpuinfo: cpuinfo(a53, a53, a53, a53), want: inOrder("Cortex-A53")},
		"Raspberry Pi 4":            {cpuinfo: cpuinfo(a72, a72), want: slow("Cortex-A72")},
		"slow big and little":       {cpuinfo: cpuinfo(a53, a72, a53), want: slow("Cortex-A72")},
		"slow big and other":        {cpuinfo: cpuinfo(a55, a72, a76)},
		"big and little":            {cpuinfo: cpuinfo(a55, a55, a76)},
		"registers":                 {midr: []string{"0x00000000410fd034\n", "0x00000000410fd034\n"}, want: inOrder("Cortex-A53")},
		"registers before cpuinfo":  {cpuinfo: cpuinfo(a72), midr: []string{"0x00000000412fd050\n"}, want: inOrder("Cortex-A55")},
		"registers, big and little": {midr: []string{"0x00000000412fd050\n", "0x00000000414fd0b0\n"}},
		"registers of no use":       {cpuinfo: cpuinfo(a53), midr: []string{"\n"}, want: inOrder("Cortex-A53")},
		"another implementer":       {cpuinfo: cpuinfo(core{0x61, 0xd03})},
		"Kryo":                      {cpuinfo: cpuinfo(core{0x51, 0x803}), want: inOrder("Kryo 3xx Silver")},
		"Kryo of Pixel 1":           {cpuinfo: cpuinfo(core{0x51, 0x201}, core{0x51, 0x205}), want: slow("Kryo")},
	} {
		files := fstest.MapFS{"proc/cpuinfo": {Data: []byte(c.cpuinfo)}}
		for i, text := range c.midr {
			files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/regs/identification/midr_el1", i)] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, c.want, coresOf(files), name)
	}
	require.Equal(t, neon.Cores{}, coresOf(fstest.MapFS{}))
}
