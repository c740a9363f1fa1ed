package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/parity"
)

func TestCases(t *testing.T) {
	core, cover, all := parity.Core(), parity.Cover(), parity.Cases()
	require.Less(t, len(core), len(cover))
	require.Less(t, len(cover), len(all))
	for name, want := range map[string][]parity.Case{"core": core, "cover": cover, "all": all} {
		t.Setenv(EnvCases, name)
		require.Len(t, Cases(t, nil, nil), len(want))
	}
	t.Setenv(EnvCases, "")
	usual := map[bool][]parity.Case{true: core, false: cover}[testing.Short()]
	require.Len(t, Cases(t, parity.Core, parity.Cover), len(usual))
	_, err := parity.Select("most")
	require.EqualError(t, err, `"most" is no selection of cases, want core, cover or all`)
}
