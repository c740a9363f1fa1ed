package kernels

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestGeometry compares the struct of the kernels with the one that the host
// fills.
func TestGeometry(t *testing.T) {
	text, err := os.ReadFile("cu/geometry.h")
	require.NoError(t, err)
	source := comment.ReplaceAllString(string(text), "")
	body := regexp.MustCompile(`(?s)struct Geometry \{(.*)\};`).FindStringSubmatch(source)
	require.NotNil(t, body)
	var names []string
	for _, declaration := range strings.Split(strings.TrimSpace(body[1]), ";") {
		if declaration = strings.TrimSpace(declaration); declaration == "" {
			continue
		}
		fields, ok := strings.CutPrefix(declaration, "int32_t ")
		require.True(t, ok, declaration)
		for _, name := range strings.Split(fields, ",") {
			var b strings.Builder
			for _, part := range strings.Split(strings.TrimSpace(name), "_") {
				b.WriteString(strings.ToUpper(part[:1]) + part[1:])
			}
			names = append(names, b.String())
		}
	}
	mirror := reflect.TypeFor[Geometry]()
	require.Equal(t, mirror.NumField(), len(names))
	for i, name := range names {
		require.Equal(t, mirror.Field(i).Name, name)
		require.Equal(t, reflect.Int32, mirror.Field(i).Type.Kind(), name)
	}
	require.LessOrEqual(t, unsafe.Sizeof(Geometry{}), uintptr(512))
}
