package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// row is a kernel for an architecture.
type row struct {
	source, kernel string
	arch           int
	code
}

func (r row) compare(o row) int {
	return cmp.Or(cmp.Compare(r.source, o.source), cmp.Compare(r.kernel, o.kernel), cmp.Compare(r.arch, o.arch))
}

const columns = "source\tkernel\tarchitectures\tregisters\tspills\tcalls\tinstructions\tloop\ttensor\tpopc\n"

// values are the columns of a code.
func (c code) values() string {
	calls := "-"
	if len(c.Calls) > 0 {
		calls = strings.Join(c.Calls, ",")
	}
	return fmt.Sprintf("%d\t%d\t%s\t%d\t%d\t%d\t%d", c.Registers, c.Spills, calls, c.Instructions, c.Loop, c.Tensor, c.Popc)
}

// formatTable writes sorted rows, the same ones of a kernel as one.
func formatTable(rows []row) []byte {
	var out bytes.Buffer
	out.WriteString(columns)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].kernel == rows[0].kernel && rows[n].source == rows[0].source {
			n++
		}
		of := rows[:n]
		rows = rows[n:]
		var order []string
		archs := make(map[string][]string)
		for _, r := range of {
			v := r.values()
			if archs[v] == nil {
				order = append(order, v)
			}
			archs[v] = append(archs[v], strconv.Itoa(r.arch))
		}
		for _, v := range order {
			fmt.Fprintf(&out, "%s\t%s\t%s\t%s\n", of[0].source, of[0].kernel, strings.Join(archs[v], ","), v)
		}
	}
	return out.Bytes()
}

// parseTable reads what formatTable writes.
func parseTable(text []byte) ([]row, error) {
	var rows []row
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0]+"\n" != columns {
		return nil, fmt.Errorf("line 1: want %q", strings.TrimSpace(columns))
	}
	for i, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != strings.Count(columns, "\t")+1 {
			return nil, fmt.Errorf("line %d: %d columns", i+2, len(f))
		}
		r := row{source: f[0], kernel: f[1]}
		if f[5] != "-" {
			r.Calls = strings.Split(f[5], ",")
		}
		for column, to := range map[int]*int{3: &r.Registers, 4: &r.Spills, 6: &r.Instructions, 7: &r.Loop, 8: &r.Tensor, 9: &r.Popc} {
			var err error
			if *to, err = strconv.Atoi(f[column]); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
		}
		for _, arch := range strings.Split(f[2], ",") {
			var err error
			if r.arch, err = strconv.Atoi(arch); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, row.compare)
	return rows, nil
}

// exceeded tells which rows are beyond their limits, and for which there are none.
func exceeded(rows, limits []row) (failures []string) {
	find := func(all []row, r row) *row {
		if i, ok := slices.BinarySearchFunc(all, r, row.compare); ok {
			return &all[i]
		}
		return nil
	}
	for _, r := range rows {
		fail := func(format string, args ...any) {
			failures = append(failures, fmt.Sprintf("%s for sm_%d: ", r.kernel, r.arch)+fmt.Sprintf(format, args...))
		}
		l := find(limits, r)
		if l == nil {
			fail("no limits")
			continue
		}
		for _, v := range []struct {
			what     string
			is, most int
		}{
			{"registers", r.Registers, l.Registers}, {"bytes of spills", r.Spills, l.Spills},
			{"instructions", r.Instructions, l.Instructions}, {"instructions in the main loop", r.Loop, l.Loop},
		} {
			if v.is > v.most {
				fail("%d %s, the limit is %d", v.is, v.what, v.most)
			}
		}
		for _, call := range r.Calls {
			if !slices.Contains(l.Calls, call) {
				fail("calls %s", call)
			}
		}
		if r.Tensor < l.Tensor {
			fail("%d tensor instructions in the main loop, and there were %d", r.Tensor, l.Tensor)
		}
	}
	for _, l := range limits {
		if find(rows, l) == nil {
			failures = append(failures, fmt.Sprintf("%s for sm_%d: limits, but no kernel", l.kernel, l.arch))
		}
	}
	return failures
}
