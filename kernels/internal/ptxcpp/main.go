// Command ptxcpp translates PTX to C++ for the emulated machine of
// kernels/cu/emulation, so that what ships is what is tested:
//
//	ptxcpp DIR FILE.ptx...
//
// writes DIR/*.cpp, which scripts/cuda-emulator compiles into the emulated driver. An
// opcode, a modifier, a directive or a kind of operand that it does not know is an
// error.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: ptxcpp DIR FILE.ptx...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "ptxcpp:", err)
		os.Exit(1)
	}
}

func run(dir string, files []string) error {
	texts := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[filepath.Base(file)] = string(text)
	}
	sources, err := translate(texts)
	if err != nil {
		return err
	}
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is about how many instructions make a C++ file: small ones are compiled side
// by side, and again one by one.
const atOnce = 16000

// translate returns C++ files by their names, of PTX files by theirs.
func translate(texts map[string]string) (map[string]string, error) {
	sources := make(map[string]string)
	var table strings.Builder
	table.WriteString("#include \"emulation/engine.h\"\n")
	for _, file := range sortedKeys(texts) {
		text := texts[file]
		m, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		parts, err := m.translate()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var of []string // that return the kernels
		for i, part := range parts {
			function := fmt.Sprintf("kernels_%s_%d", notOfNames.ReplaceAllString(file, "_"), i)
			of = append(of, function)
			sources[fmt.Sprintf("%s.%d.cpp", file, i)] = cppFile(file, function, part)
		}
		if strings.Contains(text, `)ptx"`) {
			return nil, fmt.Errorf("%s: it holds the end of a C++ string", file)
		}
		id := notOfNames.ReplaceAllString(file, "_")
		fmt.Fprintf(&table, "static const char text_%s[] = R\"ptx(%s)ptx\";\n", id, text)
		for _, function := range of {
			fmt.Fprintf(&table, "std::vector<emulation::Kernel> %s() EMULATION;\n", function)
		}
		fmt.Fprintf(&table, "[[maybe_unused]] static const bool added_%s = emulation::add_translation(text_%s, {%s});\n", id, id,
			strings.Join(append(of, ""), "(), "))
	}
	sources["translations.cpp"] = table.String()
	return sources, nil
}

var notOfNames = regexp.MustCompile(`[^A-Za-z0-9]`)
