package backendtest

import (
	"testing"

	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/testenv"
)

func TestPublishedOnTheReference(t *testing.T) {
	testenv.Long(t)
	Published(t, ref.Run)
}
