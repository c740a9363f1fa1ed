// Command instrument makes copies of packages that count their steps, and an
// overlay for the go command that puts them in the place of the packages. See
// package steps.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const steps = "github.com/bitcnn/bitcnn/internal/steps"

func main() {
	out := flag.String("o", "", "folder for the copies and overlay.json")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "instrument:", err)
		os.Exit(1)
	}
}

func run(out string, patterns []string) error {
	if out == "" || len(patterns) == 0 {
		return errors.New("usage: instrument -o DIR PACKAGES")
	}
	list := exec.Command("go", append([]string{"list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`}, patterns...)...)
	list.Stderr = os.Stderr
	files, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	replace := map[string]string{}
	for i, file := range strings.Split(strings.TrimSpace(string(files)), "\n") {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if src, err = instrument(file, src); err != nil {
			return err
		}
		replace[file] = filepath.Join(out, fmt.Sprintf("%d_%s", i, filepath.Base(file)))
		if err := os.WriteFile(replace[file], src, 0o644); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "overlay.json"), overlay, 0o644)
}

// instrument puts a counter at the start of every body of a function and of a
// loop. Lines stay where they are.
func instrument(name string, src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	insert := map[int]string{}
	body := func(b *ast.BlockStmt) {
		if b != nil {
			insert[fset.Position(b.Lbrace).Offset+1] = "steps__.N++;"
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			body(n.Body)
		case *ast.FuncLit:
			body(n.Body)
		case *ast.ForStmt:
			body(n.Body)
		case *ast.RangeStmt:
			body(n.Body)
		}
		return true
	})
	if len(insert) == 0 {
		return src, nil
	}
	insert[fset.Position(file.Name.End()).Offset] = fmt.Sprintf("; import steps__ %q", steps)
	var offsets []int
	for at := range insert {
		offsets = append(offsets, at)
	}
	slices.Sort(offsets)
	var out []byte
	last := 0
	for _, at := range offsets {
		out = append(append(out, src[last:at]...), insert[at]...)
		last = at
	}
	return append(out, src[last:]...), nil
}
