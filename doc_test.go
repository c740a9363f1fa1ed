package bitcnn

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAliases: go doc shows no field and no method of an alias, so that its comment names all.
func TestAliases(t *testing.T) {
	types := map[string]reflect.Type{
		"Model": reflect.TypeFor[*Model](), "Tensor": reflect.TypeFor[Tensor](), "Layout": reflect.TypeFor[Layout](),
		"Shape": reflect.TypeFor[Shape](), "DType": reflect.TypeFor[DType](), "Limits": reflect.TypeFor[Limits](),
		"UnsupportedError": reflect.TypeFor[*UnsupportedError](), "Device": reflect.TypeFor[Device](), "Choice": reflect.TypeFor[Choice](),
	}
	file, err := parser.ParseFile(token.NewFileSet(), "bitcnn.go", nil, parser.ParseComments)
	require.NoError(t, err)
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Assign.IsValid() {
			return true
		}
		found++
		of := types[spec.Name.Name]
		require.NotNil(t, of, spec.Name.Name)
		comment := spec.Doc.Text()
		says := func(name string) {
			require.Regexp(t, regexp.MustCompile(`\b`+name+`\b`), comment, spec.Name.Name)
		}
		for method := range of.Methods() {
			says(method.Name)
		}
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			for field := range of.Fields() {
				if field.IsExported() {
					says(field.Name)
				}
			}
		}
		return true
	})
	require.Equal(t, len(types), found)
}
