package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// together are test binaries of many mutants. A package takes seconds to compile, and most of
// its tests less: so each mutant is a copy of its function, which the function calls where
// the environment has the mutant's number.
type together struct {
	binaries []string      // by the package whose tests they are
	number   map[site]int  // of the mutants in it, from 1 on
	broken   map[site]bool // those that do not compile
}

// variable is that of the environment.
const variable = "MUTANT"

// of compiles mutants together, but for those outside of functions.
func (m *mutator) of(ctx context.Context, sites []site) (*together, error) {
	t := &together{number: map[site]int{}, broken: map[site]bool{}}
	for i := range m.packages {
		t.binaries = append(t.binaries, binaryOf(filepath.Join(m.work, "together"), i))
	}
	for i, s := range sites {
		t.number[s] = i + 1
	}
	for {
		lines, overlay, err := m.copies(t, sites)
		if err != nil {
			return nil, err
		}
		var out []byte
		for i, p := range m.packages {
			c := m.command(ctx, "go", "test", "-c", "-gcflags=-e", "-overlay", overlay, "-tags", m.tags, "-vet=off", "-o", t.binaries[i], ".")
			c.Dir = p
			if out, err = c.CombinedOutput(); err != nil {
				break
			}
		}
		if err == nil || ctx.Err() != nil {
			return t, ctx.Err()
		}
		broken := len(t.broken)
		for _, at := range position.FindAllSubmatch(out, -1) {
			line, _ := strconv.Atoi(string(at[2]))
			for _, c := range lines[string(at[1])] {
				if line >= c.first && line <= c.last {
					t.broken[c.site] = true
					delete(t.number, c.site)
				}
			}
		}
		if len(t.broken) == broken {
			return nil, fmt.Errorf("%s\n%w", out, err)
		}
	}
}

// position is where the compiler says that an error is.
var position = regexp.MustCompile(`(?m)^(?:.*[/\\])?([^/\\]+\.go):(\d+):`)

// lines are those of a copy of a function.
type lines struct {
	site
	first, last int
}

// copies writes the files of an overlay, and returns by the name of the file which lines are
// whose.
func (m *mutator) copies(t *together, sites []site) (map[string][]lines, string, error) {
	of := map[string][]site{}
	for _, s := range sites {
		if t.number[s] > 0 {
			of[s.file] = append(of[s.file], s)
		}
	}
	all, replace, name := map[string][]lines{}, map[string]string{}, "main"
	folder := filepath.Join(m.work, "together")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, "", err
	}
	for file, sites := range of {
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, src, 0)
		if err != nil {
			return nil, "", err
		}
		name = parsed.Name.Name
		text, at := withCopies(src, set, parsed, sites, t.number)
		for _, s := range sites {
			if !slices.ContainsFunc(at, func(l lines) bool { return l.site == s }) {
				delete(t.number, s)
			}
		}
		all[filepath.Base(file)] = at
		replace[file] = filepath.Join(folder, filepath.Base(file)) // whose name the compiler prints
		if err := os.WriteFile(replace[file], text, 0o644); err != nil {
			return nil, "", err
		}
	}
	number := filepath.Join(m.work, "number.go")
	replace[filepath.Join(m.dir, "mutant__.go")] = number
	text := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutant__, _ = strconv.Atoi(os.Getenv(%q))\n", name, variable)
	list, err := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(m.work, "together.json")
	return all, overlay, errors.Join(err, os.WriteFile(number, []byte(text), 0o644), os.WriteFile(overlay, list, 0o644))
}

// edit puts a text in the place of some bytes.
type edit struct {
	from, to int
	text     string
}

func edited(src []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, src[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, src[done:]...)
}

// withCopies returns a file whose functions start with a switch over the copies of them, which
// stand at its end.
func withCopies(src []byte, set *token.FileSet, file *ast.File, sites []site, number map[site]int) ([]byte, []lines) {
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	var edits []edit
	var copies bytes.Buffer
	var at []lines
	line := bytes.Count(src, []byte("\n")) + 1
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "_" {
			continue
		}
		from, to, cases := offset(f.Pos()), offset(f.End()), ""
		call, named := callOf(f, offset)
		for _, s := range sites {
			if s.from < offset(f.Body.Pos()) || s.to > to {
				continue
			}
			copied := fmt.Sprintf("%s__%d", f.Name.Name, number[s])
			name := edit{offset(f.Name.Pos()) - from, offset(f.Name.End()) - from, copied}
			text := edited(src[from:to], []edit{name, {s.from - from, s.to - from, s.new}})
			copies.WriteByte('\n')
			line++
			copies.Write(text)
			last := line + bytes.Count(text, []byte("\n"))
			at = append(at, lines{s, line, last})
			line = last
			cases += fmt.Sprintf("case %d: %s; ", number[s], fmt.Sprintf(call, copied))
		}
		if cases != "" {
			edits = append(edits, named...)
			body := offset(f.Body.Pos()) + 1
			edits = append(edits, edit{body, body, " switch mutant__ { " + cases + "}; "})
		}
	}
	return append(edited(src, edits), copies.Bytes()...), at
}

// callOf returns a format of the call of a copy of a function, with the same arguments, and
// what gives names to the parameters that have none.
func callOf(f *ast.FuncDecl, offset func(token.Pos) int) (call string, named []edit) {
	var args, types []string
	parameter := func(of *ast.Field) {
		names := of.Names
		if len(names) == 0 {
			at := offset(of.Type.Pos())
			name := fmt.Sprintf("p%d__", len(named))
			named = append(named, edit{at, at, name + " "})
			args = append(args, name)
		}
		for _, n := range names {
			name := n.Name
			if name == "_" {
				name = fmt.Sprintf("p%d__", len(named))
				named = append(named, edit{offset(n.Pos()), offset(n.End()), name})
			}
			args = append(args, name)
		}
		if _, ok := of.Type.(*ast.Ellipsis); ok {
			args[len(args)-1] += "..."
		}
	}
	call = "%s"
	if f.Recv != nil {
		parameter(f.Recv.List[0])
		call, args = args[0]+".%s", nil
	}
	if f.Type.TypeParams != nil {
		for _, p := range f.Type.TypeParams.List {
			for _, n := range p.Names {
				types = append(types, n.Name)
			}
		}
		call += "[" + strings.Join(types, ", ") + "]"
	}
	for _, p := range f.Type.Params.List {
		parameter(p)
	}
	call += "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", named
	}
	return "return " + call, named
}
