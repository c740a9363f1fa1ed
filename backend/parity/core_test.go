package parity

import (
	"cmp"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
)

var update = flag.Bool("update", false, "TestCore chooses the cases of core.txt again")

// brokenDevices are all of them.
func brokenDevices() []brokenDevice {
	return slices.Concat(broken, brokenLayers, brokenBytes, brokenTiles, brokenReads, brokenEnds, brokenMemory, brokenKernels)
}

// finds reports whether a case that is made for the fault finds it, for the reason that it is one.
func (b brokenDevice) finds(t *testing.T, c Case) bool {
	if !strings.HasPrefix(c.Name, b.in) {
		return false
	}
	f := c.check(t.Context(), b.dev.device(), backend.Options{}, func(int) {})
	return f != nil && strings.Contains(f.Error(), b.says)
}

// TestCore: the chosen cases find the fault of every broken device. Whole small networks, which
// Core has anyway, are asked too; random ones and those of the zoo are not.
func TestCore(t *testing.T) {
	table := slices.DeleteFunc(Cases(), func(c Case) bool { return strings.HasPrefix(c.Name, "random/") || strings.HasPrefix(c.Name, "zoo/") })
	if *update {
		chooseCore(t, Keep(table))
	}
	names := chosen()
	require.True(t, slices.IsSorted(names))
	var asked, whole []Case
	for _, c := range table {
		if isNetwork(c) {
			whole = append(whole, c)
		} else if slices.Contains(names, c.Name) {
			asked = append(asked, c)
		}
	}
	if len(asked) != len(names) {
		for _, c := range asked {
			names = slices.DeleteFunc(names, func(name string) bool { return name == c.Name })
		}
		t.Errorf("core.txt names cases that the table does not have, or twice: %q; go test ./backend/parity -run TestCore -update chooses again", names)
	}
	asked = Keep(append(asked, whole...))
	took := map[string]time.Duration{}
	for _, b := range brokenDevices() {
		t.Run(b.name, func(t *testing.T) {
			slices.SortStableFunc(asked, func(c, d Case) int { return cmp.Compare(took[c.Name], took[d.Name]) }) // the quickest first
			finds := func(c Case) bool {
				start := time.Now()
				defer func() { took[c.Name] = max(took[c.Name], time.Since(start)) }()
				return b.finds(t, c)
			}
			if !slices.ContainsFunc(asked, finds) {
				t.Errorf("no case of core.txt %q… finds the fault and says %q; go test ./backend/parity -run TestCore -update chooses again", b.in, b.says)
			}
		})
	}
}

// chooseCore writes core.txt. First, for each fault that no candidate finds, the first case of the
// table that does becomes one; then the candidate that finds most of what those chosen before do not
// find is chosen, again and again; and what is not needed in the end is dropped.
func chooseCore(t *testing.T, table []Case) {
	var whole, candidates []Case
	for _, c := range table {
		if isNetwork(c) {
			whole = append(whole, c)
		}
	}
	var faults []brokenDevice // that whole networks do not find
	for _, b := range brokenDevices() {
		finds := func(c Case) bool { return b.finds(t, c) }
		if slices.ContainsFunc(whole, finds) {
			continue
		}
		faults = append(faults, b)
		if slices.ContainsFunc(candidates, finds) {
			continue
		}
		at := slices.IndexFunc(table, finds)
		if at < 0 {
			t.Errorf("no case of the table %q… finds %q and says %q", b.in, b.name, b.says)
			continue
		}
		candidates = append(candidates, table[at])
	}
	found := make(map[string][]int) // by a candidate: numbers of faults
	for _, c := range candidates {
		for i, b := range faults {
			if b.finds(t, c) {
				found[c.Name] = append(found[c.Name], i)
			}
		}
	}
	times := make([]int, len(faults)) // by how many of those chosen
	var names []string
	for {
		best, most := "", 0
		for _, c := range candidates {
			n := 0
			for _, i := range found[c.Name] {
				if times[i] == 0 {
					n++
				}
			}
			if n > most {
				best, most = c.Name, n
			}
		}
		if most == 0 {
			break
		}
		names = append(names, best)
		for _, i := range found[best] {
			times[i]++
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		if slices.ContainsFunc(found[name], func(i int) bool { return times[i] == 1 }) {
			return false
		}
		for _, i := range found[name] {
			times[i]--
		}
		return true
	})
	slices.Sort(names)
	coreNames = strings.Join(names, "\n") + "\n"
	require.NoError(t, os.WriteFile("core.txt", []byte(coreNames), 0o644))
}
