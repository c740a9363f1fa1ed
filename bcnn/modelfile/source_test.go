package modelfile

import (
	"bytes"
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
	onInput.Inputs[0].Source = source
	onLayer.Layers[0].Source = source
	for name, n := range map[string]*bcnn.Network{"input": onInput, "layer": onLayer} {
		b := encode(t, n)
		data := 8 + binary.LittleEndian.Uint64(b)
		header := digits.ReplaceAllString(string(b[8:data]), `"sha256":"`+unsealed+`"`)
		require.Contains(t, header, `"version":"3"`, name)
		for _, c := range []struct{ old, new, want string }{
			{`"version":"3"`, `"version":"2"`, "sources need version 3 of the format, this file has version 2"},
			{`\"dims\":[4]`, `\"dims\":[2]`, "the dimensions [2] of the source do not fit 2×2×1"},
			{`\"dims\":[4]`, `\"dims\":[0]`, "the dimensions [0] of the source"},
			{`\"dims\":[4]`, `\"dims\":[1,8]`, "the dimensions [1 8] of the source"},
			{`\"dims\":[4],`, ``, "the source has no dims"},
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

// Names of absorbed tensors are an entry of the metadata, which earlier readers do not know.
func TestAbsorbed(t *testing.T) {
	for _, names := range [][]string{nil, {}, {"a", "b/ö"}} {
		n := small()
		n.Absorbed = names
		got, err := Read(t.Context(), encode(t, n), Options{})
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	n := small()
	n.Absorbed = []string{"a"}
	b := encode(t, n)
	data := 8 + binary.LittleEndian.Uint64(b)
	header := digits.ReplaceAllString(string(b[8:data]), `"sha256":"`+unsealed+`"`)
	require.Contains(t, header, `"version":"1"`)
	for _, c := range []struct{ list, want string }{
		{`[1]`, "metadata: absorbed: json: cannot unmarshal number"},
		{`[`, "metadata: absorbed: "},
		{`null`, "metadata: absorbed: "},
		{`[\"\\t\"]`, "an absorbed tensor: \"\\t\" has the control character U+0009"},
		{`[\"` + strings.Repeat("x", 257) + `\"]`, "the name of an absorbed tensor has 257 bytes, at most 256"},
	} {
		broken := strings.Replace(header, `[\"a\"]`, c.list, 1)
		require.NotEqual(t, header, broken)
		_, err := Read(t.Context(), file(broken, b[data:]), Options{})
		require.ErrorContains(t, err, c.want)
	}
}

// So are deviations.
func TestDeviations(t *testing.T) {
	n := small()
	n.Deviations = []string{"a", "b ± 1"}
	b := encode(t, n)
	got, err := Read(t.Context(), b, Options{})
	require.NoError(t, err)
	require.Equal(t, n, got)
	n.Deviations = []string{"a"}
	b = encode(t, n)
	data := 8 + binary.LittleEndian.Uint64(b)
	header := digits.ReplaceAllString(string(b[8:data]), `"sha256":"`+unsealed+`"`)
	require.Contains(t, header, `"version":"1"`)
	for _, c := range []struct{ list, want string }{
		{`[1]`, "metadata: deviations: json: cannot unmarshal number"},
		{`[\"\\t\"]`, "deviation 0: \"\\t\" has the control character U+0009"},
	} {
		broken := strings.Replace(header, `[\"a\"]`, c.list, 1)
		require.NotEqual(t, header, broken)
		_, err := Read(t.Context(), file(broken, b[data:]), Options{})
		require.ErrorContains(t, err, c.want)
	}
}

func TestSeveralEnds(t *testing.T) {
	b := encode(t, networks()["several ends"])
	data := 8 + binary.LittleEndian.Uint64(b)
	header := digits.ReplaceAllString(string(b[8:data]), `"sha256":"`+unsealed+`"`)
	for _, c := range []struct{ old, new, want string }{
		{`\"outputs\":[3,0,2]`, `\"outputs\":[3,0,4]`, "output 2 is layer 4, which does not exist"},
		{`\"outputs\":[3,0,2]`, `\"outputs\":[3,0,-1]`, "output 2 is layer -1"},
		{`\"outputs\":[3,0,2]`, `\"outputs\":[3,0,3]`, "output 2 is layer 3"},
		{`\"outputs\":[3,0,2]`, `\"outputs\":[0,2]`, `layer 3 "second": its output is not used`},
		{`\"inputs\":[2,-3]`, `\"inputs\":[2,-4]`, "input 1 is layer -4"},
		{`\"shape\":[8,8,1]`, `\"shape\":[8,8]`, "input 2: 2 dimensions"},
		{`\"shape\":[8,8,1]`, `\"shape\":[8,0,1]`, "input 2: shape 8×0×1 is empty"},
		{`\"resize\":9`, `\"resize\":3`, "input 2: resize 3"},
	} {
		broken := strings.Replace(header, c.old, c.new, 1)
		require.NotEqual(t, header, broken, c.old)
		_, err := Read(t.Context(), file(broken, b[data:]), Options{})
		require.ErrorContains(t, err, c.want, c.new)
	}
	n := small()
	n.Outputs = []int{1}
	old := bytes.Replace(encode(t, n), []byte(`"version":"3"`), []byte(`"version":"2"`), 1)
	seal(old)
	_, err := Read(t.Context(), old, Options{})
	require.ErrorContains(t, err, "several inputs or outputs need version 3 of the format, this file has version 2")
}
