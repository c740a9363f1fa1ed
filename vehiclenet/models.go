package vehiclenet

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
)

//go:embed models/*.bcnn
var files embed.FS

// Models lists the trained networks that are part of this package:
//
//	vehiclenet       reads bytes, no input binarisation
//	vehiclenet-rgb   RGB threshold
//	vehiclenet-grey  grey threshold
//	vehiclenet-lbp   local binary patterns
//
// train/README.md says how they were trained and how accurate they are.
func Models() []string {
	return []string{"vehiclenet", "vehiclenet-rgb", "vehiclenet-grey", "vehiclenet-lbp"}
}

// Load returns one of Models.
func Load(ctx context.Context, name string) (*bcnn.Network, error) {
	data, err := files.ReadFile("models/" + name + modelfile.Extension)
	if err != nil {
		return nil, fmt.Errorf("no embedded model %q; available: %s", name, strings.Join(Models(), ", "))
	}
	n, err := modelfile.Read(ctx, data, modelfile.Options{})
	if err != nil {
		return nil, fmt.Errorf("vehiclenet: embedded model %s: %w", name, err)
	}
	return n, nil
}
