package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/recognize"
	"github.com/bitcnn/bitcnn/internal/summary"
	"github.com/bitcnn/bitcnn/internal/text"
)

// passInfo is what a pass on the way from a file to kernels leaves, and what it changed.
type passInfo struct {
	Pass   string   `json:"pass"`
	Leaves string   `json:"leaves"`
	Did    []string `json:"did"`
}

// readFor is loadModel, with what the rules have found during the import.
func readFor(ctx context.Context, name string) (imported, error) {
	switch format, err := recognize.Path(name); {
	case slices.Contains(builtIn(), name), err != nil, format == recognize.BinCNN:
		net, err := loadModel(ctx, name)
		return imported{net: net}, err
	}
	f := &convertFlags{output: name}
	if err := f.parse(); err != nil {
		return imported{}, err
	}
	from, err := f.reader(name)
	if err != nil {
		return imported{}, err
	}
	return from.load(ctx, f, name)
}

// listPasses says what each pass did: the rules of simplify, lowering, and the device.
func listPasses(info *inspection, findings []simplify.Finding, program *lower.Program, choices []backend.Choice) []passInfo {
	rules := map[string]int{}
	var order []string
	for _, f := range findings {
		if f.Nearly {
			continue
		}
		if rules[string(f.Rule)]++; rules[string(f.Rule)] == 1 {
			order = append(order, string(f.Rule))
		}
	}
	found := []string{}
	if len(order) == 0 {
		found = append(found, "no rule applied")
	}
	for _, rule := range order {
		found = append(found, fmt.Sprintf("rule %s: %s", rule, text.Count(rules[rule], "layer")))
	}
	lowered := precisions(info.Report)
	within := 0
	for _, s := range program.Plan.Steps {
		within += max(len(s.Layers)-1, 0)
	}
	if within > 0 {
		lowered = append(lowered, fmt.Sprintf("%s merged into other steps", text.Count(within, "layer")))
	}
	calls, did := shared(choices)
	return []passInfo{
		{"simplify", text.Count(len(program.Network.Layers), "layer"), found},
		{"lower", text.Count(len(program.Plan.Steps), "step"), lowered},
		{info.Plan.Device, text.Count(calls, "step"), did},
	}
}

// precisions counts the layers that multiply by how they do.
func precisions(report *summary.Report) []string {
	counts := map[string]int{}
	order := []string{}
	for _, l := range report.Layers {
		if counts[l.Words]++; counts[l.Words] == 1 {
			order = append(order, l.Words)
		}
	}
	for i, words := range order {
		order[i] = fmt.Sprintf("%s %s", text.Count(counts[words], "layer"), words)
	}
	return order
}

// shared counts the steps that a device computes on their own, and says what becomes of the others.
func shared(choices []backend.Choice) (alone int, did []string) {
	registers, tiles := 0, 0
	for _, c := range choices {
		switch {
		case c.With == "":
			alone++
		case strings.HasPrefix(c.Kernel, "in that of "):
			registers++
		default:
			tiles++
		}
	}
	if alone == len(choices) {
		return alone, []string{"each step separately"}
	}
	if registers > 0 {
		did = append(did, text.Count(registers, "step")+" in the registers of other kernels")
	}
	if tiles > 0 {
		did = append(did, text.Count(tiles, "step")+" tile by tile with other steps")
	}
	return alone, did
}

func printPasses(out *output, passes []passInfo) {
	if passes == nil {
		return
	}
	out.printf("\n")
	rows := []row{"pass\tresult\twhat it did"}
	for _, p := range passes {
		rows = append(rows, rowf("%s\t%s\t%s", p.Pass, p.Leaves, strings.Join(p.Did, "; ")))
	}
	out.table(rows)
}
