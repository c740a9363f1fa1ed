package parity

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// coreNames are the names of the cases that Core chooses, one a line, sorted.
// go test ./backend/parity -run TestCore -update writes them.
//
//go:embed core.txt
var coreNames string

// Core returns the smallest part of Cases that finds what all of it finds, as far as that is
// known: chosen cases, and all networks (random ones, whole small ones, and those of the zoo).
// The tests of this package have a list of broken devices, each with one fault: in what a step
// computes, or in how a backend executes steps, with tiles, borders, shared memory, threads and
// batches. The chosen cases find every one of them. Core takes a tenth of the time of
// Cases, and is for emulators and for the second device of a kind.
func Core() []Case {
	names := chosen()
	return slices.DeleteFunc(Cases(), func(c Case) bool {
		_, found := slices.BinarySearch(names, c.Name)
		return !found && !isNetwork(c)
	})
}

// Cover returns Core and, of each kind of case, every 16th: of what a backend executes it
// reaches nearly all that Cases reaches, in a sixth of the time.
func Cover() []Case {
	in := make(map[string]bool)
	for _, c := range slices.Concat(Core(), everyNth(16)) {
		in[c.Name] = true
	}
	return slices.DeleteFunc(Cases(), func(c Case) bool { return !in[c.Name] })
}

// Select returns a part of the table by its name: Core, Cover, or all Cases.
func Select(name string) ([]Case, error) {
	switch name {
	case "core":
		return Core(), nil
	case "cover":
		return Cover(), nil
	case "all":
		return Cases(), nil
	}
	return nil, fmt.Errorf("%q is no selection of cases, want core, cover or all", name)
}

// chosen returns the names of the chosen cases.
func chosen() []string {
	if coreNames == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(coreNames, "\n"), "\n")
}

// isNetwork reports whether a case is a network as a whole, and not one kind of step.
func isNetwork(c Case) bool {
	kind, _, _ := strings.Cut(c.Name, "/")
	return kind == "random" || kind == "whole" || kind == "zoo"
}

// everyNth returns of each kind of case (the first two parts of its name) the first and every
// n-th behind it. Cases of other kinds that are added or removed do not change the choice.
func everyNth(n int) []Case {
	count := make(map[string]int)
	return slices.DeleteFunc(Cases(), func(c Case) bool {
		parts := strings.SplitN(c.Name, "/", 3)
		kind := strings.Join(parts[:min(2, len(parts)-1)], "/")
		count[kind]++
		return (count[kind]-1)%n != 0
	})
}
