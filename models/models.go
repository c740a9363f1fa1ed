// Package models has the trained networks of the module, by name.
package models

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

//go:embed digits.bcnn
var digits []byte

// Names lists the networks: those of vehiclenet.Models, and
//
//	digits  handwritten digits, 28×28 grey
//
// train/README.md says how they were trained and how accurate they are.
func Names() []string { return append(vehiclenet.Models(), "digits") }

// Load returns one of Names.
func Load(ctx context.Context, name string) (*bcnn.Network, error) {
	switch {
	case name == "digits":
		n, err := modelfile.Read(ctx, digits, modelfile.Options{})
		if err != nil {
			return nil, fmt.Errorf("models: digits: %w", err)
		}
		return n, nil
	case slices.Contains(vehiclenet.Models(), name):
		return vehiclenet.Load(ctx, name)
	}
	return nil, fmt.Errorf("models: there is no %q, there are %s", name, strings.Join(Names(), ", "))
}
