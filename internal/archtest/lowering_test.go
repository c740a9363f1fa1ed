package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// lowersAsWritten are the folders whose programs may lower a network without simplifying it first:
// those that compare steps, or an import, with the reference.
var lowersAsWritten = []string{"backend/parity", "backend/backendtest", "bcnn/lower", "internal/answers", "internal/importfuzz"}

// There is one way from a network to a plan, lower.Compile: who calls lower.Network compiles another
// program than bitcnn.Open does.
func TestOneWayToCompile(t *testing.T) {
	dir := testenv.Root(t)
	compiles := 0
	walk(t, dir, func(name string) error {
		if strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := s.X.(*ast.Ident); ok && of.Name == "lower" {
				if s.Sel.Name == "Compile" {
					compiles++
				}
				if s.Sel.Name == "Network" && !slices.Contains(lowersAsWritten, path.Dir(name)) {
					t.Errorf("%s calls lower.Network, which does not simplify; lower.Compile does", fset.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	require.Greater(t, compiles, 5) // the walk really reads the files
}
