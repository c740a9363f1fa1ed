package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

var update = flag.Bool("update", false, "write testdata/api.txt again")

// TestAPI holds what packages for programs export against a list, so that no name changes
// unnoticed: it is run with -update after a change that is meant.
func TestAPI(t *testing.T) {
	const list = "testdata/api.txt"
	var text strings.Builder
	for _, folder := range forPrograms {
		fmt.Fprintf(&text, "package %s\n", path.Join("github.com/bitcnn/bitcnn", folder))
		names := signatures(t, folder)
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&text, "\t%s\n", name)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(list, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String(), "the API differs from %s; -update writes it again", list)
}

// forPrograms are the packages that programs import.
var forPrograms = []string{".", "vision", "serve", "models"}

// signatures are the constants, variables, functions, types and methods that a package exports.
func signatures(t *testing.T, folder string) []string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(testenv.Root(t), folder, "*.go"))
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, name, nil, 0)
			require.NoError(t, err)
			parsed = append(parsed, f)
		}
	}
	p, err := doc.NewFromFiles(fset, parsed, folder)
	require.NoError(t, err)
	var all []string
	values := func(values []*doc.Value) {
		for _, v := range values {
			for _, name := range v.Names {
				all = append(all, v.Decl.Tok.String()+" "+name)
			}
		}
	}
	functions := func(functions []*doc.Func) {
		for _, f := range functions {
			var text strings.Builder
			require.NoError(t, printer.Fprint(&text, fset, f.Decl))
			all = append(all, strings.Join(strings.Fields(text.String()), " "))
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, typ := range p.Types {
		all = append(all, "type "+typ.Name)
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
	}
	return all
}
