package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// errorMakers are the functions whose first argument is the text of an error.
var errorMakers = map[string]bool{"fmt.Errorf": true, "errors.New": true, "try.Failf": true, "try.Errorf": true}

// unclear are forms that readers had to read twice, and what an error is not.
var unclear = map[string]*regexp.Regexp{
	"a relative clause without its noun":  regexp.MustCompile(`\b(that|those) of (who|what)\b|\bwhat is (no|not)\b|\bof what is\b`),
	"one of which, the other":             regexp.MustCompile(`\bof which (one|the)\b|\bothers than\b|\bor nothing\b`),
	"as X has it":                         regexp.MustCompile(`\bas [^,]+ ha(s|ve) it\b`),
	"at least behind its noun":            regexp.MustCompile(`\bthere (is|are) [^,]+ at least\b`),
	"a capital letter, a period or space": regexp.MustCompile(`^(An?|The|It|This|No|Cannot|Could) |[^.]\.$|\s$`),
}

// Error messages are lines that can be read once: see docs/glossary.md for their words.
func TestMessages(t *testing.T) {
	seen := 0
	for _, folder := range []string{"../../bcnn", "../../cmd/bcnn"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 || !errorMakers[called(call)] {
					return true
				}
				literal, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				seen++
				for form, pattern := range unclear {
					if pattern.MatchString(text) {
						t.Errorf("%v: %q has %s", set.Position(literal.Pos()), text, form)
					}
				}
				if len(text) > 320 || strings.Contains(text, "\n") {
					t.Errorf("%v: %q is no line that is read at a glance", set.Position(literal.Pos()), text)
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, seen, 900)
}

// called returns the function of a call as its package and name.
func called(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}
