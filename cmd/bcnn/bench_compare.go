package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
)

// compareBench prints what two files of bench --json have in common, side by side.
func compareBench(env *environment, names [2]string, stdin io.Reader, format string) error {
	var results [2]*measure.Results
	for i, name := range names {
		var err error
		if results[i], err = readResults(name, stdin); err != nil {
			return files.Name(name, err)
		}
	}
	pairs, alone := measure.Compare(results[0], results[1])
	if len(pairs) == 0 {
		return fmt.Errorf("%s and %s have no measurement in common: %s", names[0], names[1], strings.Join(alone, "; "))
	}
	switch format {
	case formatJSON:
		for _, p := range pairs {
			if err := env.out.json(p); err != nil {
				return err
			}
		}
	case formatTable:
		for i, name := range names {
			env.out.printf("%s: %s", string(rune('A'+i)), name)
			if origins := results[i].Origins(); len(origins) > 0 {
				env.out.printf(" (%s)", strings.Join(origins, "; "))
			}
			env.out.printf("\n")
		}
		for _, p := range pairs {
			printComparison(env.out, p)
		}
		if len(alone) > 0 {
			env.out.printf("\nonly in %s\n", strings.Join(alone, "; "))
		}
		return env.out.err
	case formatCSV:
		return measure.WriteComparisonsCSV(env.out, pairs)
	}
	return writeCharts(env.out, format, measure.ComparisonCharts(pairs))
}

func readResults(name string, stdin io.Reader) (*measure.Results, error) {
	if name == standardInput {
		return measure.Read(stdin)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return measure.Read(f)
}

func printComparison(out *output, c measure.Comparison) {
	out.printf("\n%s\n", c)
	rows := []row{"\tA, min µs\tB, min µs\tA / B"}
	line := func(name string, a, b, ratio float64) {
		cell := func(format string, v float64) string {
			if v == 0 {
				return ""
			}
			return fmt.Sprintf(format, v)
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%s", name, cell("%.1f", a), cell("%.1f", b), cell("%.2f", ratio)))
	}
	line("whole run", c.A.Min, c.B.Min, c.Ratio)
	line("whole run, median", c.A.Median, c.B.Median, c.A.Median/c.B.Median)
	for _, s := range c.Steps {
		line(s.Name, s.A, s.B, s.Ratio)
	}
	out.table(rows)
	for i, side := range []measure.Side{c.A, c.B} {
		if warning := side.Busy(); warning != "" {
			out.printf("%s: %s\n", string(rune('A'+i)), warning)
		}
	}
}
