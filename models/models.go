// Package models has the trained networks of the module, by name.
package models

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

//go:embed *.bcnn
var files embed.FS

// Trained says what a network was trained on, and how good it is.
type Trained struct {
	Name string `json:"name"`
	On   string `json:"on"`
	// Accuracy is in percent, for a detector the mean average precision at an overlap of 0.5. Of
	// says on which images, and who measured it.
	Accuracy float64 `json:"accuracy"`
	Of       string  `json:"of"`
	Source   string  `json:"source"`
	Licence  string  `json:"licence"`
}

const (
	vehicles = "vehicles seen by one road camera, six classes"
	kept     = "480 held-out photos"
	here     = "train/README.md"
	apache   = "Apache-2.0"
	finn     = "github.com/Xilinx/BNN-PYNQ, cnvW1A1"
	bsd      = "BSD-3-Clause"
)

var trained = []Trained{
	{"vehiclenet", vehicles, 94.79, kept, here, apache},
	{"vehiclenet-rgb", vehicles, 94.58, kept, here, apache},
	{"vehiclenet-grey", vehicles, 91.04, kept, here, apache},
	{"vehiclenet-lbp", vehicles, 94.79, kept, here, apache},
	{"digits", "MNIST, handwritten digits", 99.51, "its 10,000 test images", here, apache},
	{"canvas", "MNIST, several digits on a canvas", 91.51, "mAP@0.5, 1,000 canvases of its test images", here, apache},
	{"vehicles", "photos of vehicles seen by one road camera, placed in scenes", 91.63, "mAP@0.5, 1,000 scenes of held-out photos", here, apache},
	{"cifar10", "CIFAR-10, animals and vehicles, ten classes", 79.37, "its 10,000 test images", finn, bsd},
	{"roadsigns", "German road signs (GTSRB), 43 and none", 96.63, "its test images, as published", finn, bsd},
	{"streetview", "digits of house numbers (SVHN)", 94.9, "its test images, as published (Umuroglu et al., FINN, 2017)", finn, bsd},
}

// All lists the networks.
func All() []Trained { return slices.Clone(trained) }

// Names lists the names of the networks.
func Names() []string {
	names := make([]string, len(trained))
	for i, t := range trained {
		names[i] = t.Name
	}
	return names
}

// Load returns one of Names.
func Load(ctx context.Context, name string) (*bcnn.Network, error) {
	switch {
	case slices.Contains(vehiclenet.Models(), name):
		return vehiclenet.Load(ctx, name)
	case !slices.Contains(Names(), name):
		return nil, fmt.Errorf("no bundled model %q; available: %s", name, strings.Join(Names(), ", "))
	}
	data, err := files.ReadFile(name + ".bcnn")
	if err != nil {
		return nil, err
	}
	n, err := modelfile.Read(ctx, data, modelfile.Options{})
	if err != nil {
		return nil, fmt.Errorf("models: %s: %w", name, err)
	}
	return n, nil
}
