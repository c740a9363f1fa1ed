package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A mutant may survive for a reason: it is the same function, or only slower. reasons.tsv
// lists those: file, code of the line, which of the same in the file, old and new token, and
// the reason. It holds as long as the line is what it was.
type reasons map[string]string

func (s site) key(root string) string {
	name, err := filepath.Rel(root, s.file)
	if err != nil {
		name = s.file
	}
	return strings.Join([]string{filepath.ToSlash(name), s.code, strconv.Itoa(s.occurrence), s.old, s.new}, "\t")
}

func readReasons(file string) (reasons, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list := reasons{}
	if len(data) == 0 {
		return list, nil
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		at := strings.LastIndex(line, "\t")
		if strings.Count(line, "\t") != 5 || at == len(line)-1 {
			return nil, fmt.Errorf("%s:%d: want file, code, number, old, new and a reason", file, i+1)
		}
		list[line[:at]] = line[at+1:]
	}
	return list, nil
}

// survivors returns those of the sites whose keys are in the output of an earlier run.
func survivors(file, root string, sites []site) ([]site, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if _, key, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok {
			listed[key] = true
		}
	}
	return slices.DeleteFunc(sites, func(s site) bool { return !listed[s.key(root)] }), nil
}
