package modelfile

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Sources make a file one of version 3, of an input and of a layer alike, and must be
// whole.
func TestSources(t *testing.T) {
	source := &bcnn.Source{Name: "x", Dims: []int{4}}
	onInput, onLayer := small(), small()
	onInput.Input.Source = source
	onLayer.Layers[0].Source = source
	for name, n := range map[string]*bcnn.Network{"input": onInput, "layer": onLayer} {
		b := encode(t, n)
		data := 8 + binary.LittleEndian.Uint64(b)
		header := digits.ReplaceAllString(string(b[8:data]), `"sha256":"`+unsealed+`"`)
		require.Contains(t, header, `"version":"3"`, name)
		for _, c := range []struct{ old, new, want string }{
			{`"version":"3"`, `"version":"2"`, "sources came with version 3 of the format, this is version 2"},
			{`\"dims\":[4]`, `\"dims\":[2]`, "the dimensions [2] of the source are not those of 2×2×1"},
			{`\"dims\":[4]`, `\"dims\":[0]`, "the dimensions [0] of the source"},
			{`\"dims\":[4]`, `\"dims\":[1,8]`, "the dimensions [1 8] of the source"},
			{`\"dims\":[4],`, ``, "a source without dims"},
			{`\"dims\":[4]`, `\"Dims\":[4]`, `unknown field "Dims"`},
			{`\"dims\":[4]`, `\"dims\":[4],\"dims\":[4]`, `"dims" occurs twice`},
			{`\"name\":\"x\"`, `\"name\":\"\\t\"`, "has the control character U+0009"},
			{`\"channels_first\":false`, `\"channels_first\":1`, "cannot unmarshal number"},
		} {
			broken := strings.Replace(header, c.old, c.new, 1)
			require.NotEqual(t, header, broken, c.old)
			_, err := Read(t.Context(), file(broken, b[data:]), Options{})
			require.ErrorContains(t, err, c.want, "%s: %s", name, c.new)
		}
	}
}
