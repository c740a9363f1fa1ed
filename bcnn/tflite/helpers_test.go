package tflite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/schema"
	"github.com/bitcnn/bitcnn/internal/budget"
)

// newTestImporter returns an importer of an empty graph.
func newTestImporter(t *testing.T) *importer {
	t.Helper()
	limits, err := bcnn.Limits{}.WithDefaults()
	require.NoError(t, err)
	return newImporter(&schema.Model{Graph: &schema.Graph{}}, Options{}, limits, budget.New(t.Context(), base))
}
