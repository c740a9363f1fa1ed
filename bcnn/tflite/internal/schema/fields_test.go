package schema

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/tables.tsv
var tables string

// The fields are those of the schema, each read, harmless for a reason, or refused.
func TestFields(t *testing.T) {
	ours := map[string]fields{}
	for _, f := range []fields{modelFields, graphFields, signatureFields, codeFields, operatorFields, tensorFields, quantizationFields, bufferFields} {
		ours[f.table] = f
	}
	lines := strings.Split(strings.TrimSuffix(tables, "\n"), "\n")[1:]
	require.Len(t, ours, len(lines))
	for _, line := range lines {
		columns := strings.Split(line, "\t")
		of := ours[columns[0]]
		known := map[int]bool{}
		for _, column := range columns[1:] {
			f := strings.Split(column, ":")
			slot, err := strconv.Atoi(f[0])
			require.NoError(t, err)
			require.Less(t, slot, len(of.list), line)
			known[slot] = true
			got := of.list[slot]
			require.Equal(t, f[1], got.name)
			if got.refused != "" {
				require.Equal(t, f[2] == "offset", got.refers, "%s.%s", of.table, got.name)
				require.Equal(t, "0", f[3], "%s.%s is refused where it is not 0", of.table, got.name)
			}
		}
		for slot, f := range of.list {
			require.False(t, f.harmless != "" && f.refused != "", "%s.%s", of.table, f.name)
			if !known[slot] {
				require.Contains(t, f.name, "deprecated", "%s.%s", of.table, f.name)
			}
		}
	}
}
