// Package darknet imports the networks of Darknet (Redmon; the branch of AlexeyAB), as it runs
// them when it detects: NAME.cfg, which describes the layers, and NAME.weights, their weights.
//
// Batch normalisation is folded into the weights first. A layer with xnor=1 binarises the
// folded weights, which keeps the mean of their magnitudes as the scale of a filter, and its
// input; 0 becomes −1, and so does the padding. bin_output=1 leaves out the activation, but
// on layers that a [route] names, in front of a [shortcut], and on the first layer that it
// adds. A layer with binary=1 binarises its weights alone, as Darknet does on a GPU: on a CPU
// it runs such a layer with the real weights, which it was not trained with.
//
// Where two builds of Darknet differ, the plain code counts: with AVX a [maxpool] of stride 1 and
// a size of 3 or more leaves out pixels at the left border of wide images.
//
// Sections: convolutional with the activations linear, leaky, relu, logistic, tanh, elu, mish
// and swish, maxpool, avgpool, route, shortcut, upsample, reorg, reorg3d, softmax, dropout and
// cost, which do nothing, yolo and region. Refused are other sections, and options that are
// neither read here nor known to change nothing when Darknet detects: see bcnn.ObstaclesError,
// whose nodes are called layer_NN, counted from 0 behind [net] as Darknet counts them.
//
// Outputs are the maps of all [yolo] and [region] sections, in their order, and that of the
// last section if it is none of these. The map of a [yolo] is what Darknet has there before it
// decodes boxes: for each anchor x, y, width, height, objectness and the classes, with the
// logistic function on all but width and height, and scale_x_y on x and y. That of a [region]
// has it on the objectness; where its classes need a softmax it is the plain output of the
// layer in front, on which x, y and objectness need the logistic function. Network.Detection says
// how boxes are made of them, with the threshold of 0.25 and the overlap of 0.45 that Darknet's
// command takes; a program that decodes them by itself finds the heads in Report.Heads.
//
// Darknet feeds a network with pictures as R, G, B from 0 to 1, stretched to its size, or
// fitted into it between grey borders where Report.Letterbox and Input.Photo say so. With
// Options.InputType bcnn.Uint8 bytes are divided by 255.
//
// # Cost
//
// Files may come from strangers. An import allocates at most 64 MiB and 128 bytes for each
// byte of the two files, and takes steps in proportion; Options.Limits bound the rest.
package darknet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/internal/budget"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
	"github.com/bitcnn/bitcnn/internal/text"
)

// Options are the options of an import.
type Options struct {
	// Weights is the file of the weights: a path for Load, a name in the file system for
	// Read. Without it NAME.weights beside NAME.cfg is taken.
	Weights string
	// InputType is the type that the network is fed with: bcnn.Float32 (or 0), or
	// bcnn.Uint8 for the bytes of pictures, which are divided by 255 unless Mean or Scale
	// are given.
	InputType bcnn.DType
	// Mean and Scale put (x − Mean)·Scale before the network: one value, one per channel,
	// or none.
	Mean, Scale []float32
	// Name is the name of the network. Without it that is NAME.
	Name   string
	Labels []string
	// Resize is Input.Resize of the network.
	Resize int

	// Limits bound both files together, the sections, the layers and every tensor.
	Limits bcnn.Limits
}

// Report tells what became of a network.
type Report struct {
	// Findings are what package simplify has found in it.
	Findings []simplify.Finding
	// Heads tell how boxes are decoded from outputs, in their order.
	Heads []Head
	// Letterbox says that Darknet fits pictures into the input between grey borders, and does
	// not stretch them.
	Letterbox bool
}

// Head tells how boxes are decoded from an output, [anchor][4 + 1 + classes] in each cell.
type Head struct {
	Section int    // its number, from 0 behind [net]
	Output  int    // of the network
	Kind    string // "yolo" or "region"
	Classes int
	// Anchors are widths and heights: in pixels of the input for a yolo, in cells for a
	// region.
	Anchors [][2]float32
	// NewCoords says that the convolution in front has the logistic function, and width and
	// height are (2·w)² times the anchor.
	NewCoords bool
	// Raw says that the output of a region lacks the logistic function on its objectness, and
	// the softmax of its classes.
	Raw bool
}

// Load imports the network whose description is in the file at path. It takes and returns
// images one by one; feature maps are NHWC. When ctx ends, its error is returned.
// Errors name the file and, where they can, the section.
func Load(ctx context.Context, path string, opts Options) (*bcnn.Network, *Report, error) {
	return load(ctx, place{files.ReadAll, filepath.Base}, path, opts)
}

// Read is Load for the file called name of a file system, such as an embed.FS.
func Read(ctx context.Context, fsys fs.FS, name string, opts Options) (*bcnn.Network, *Report, error) {
	read := func(file string, limit int64) ([]byte, error) { return files.ReadAllFS(fsys, file, limit) }
	return load(ctx, place{read, path.Base}, name, opts)
}

// Decode is Load for files in memory. The network does not keep them.
func Decode(ctx context.Context, cfg, weights []byte, opts Options) (net *bcnn.Network, report *Report, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	im, err := begin(ctx, cfg, weights, opts)
	if err != nil {
		return nil, nil, err
	}
	if net, err = im.network(); err != nil {
		return nil, nil, err
	}
	return im.simplified(ctx, net)
}

// place is where files are.
type place struct {
	read func(file string, limit int64) ([]byte, error)
	base func(file string) string // its name without the folder
}

func load(ctx context.Context, p place, file string, opts Options) (net *bcnn.Network, report *Report, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := p.read(file, min(limits.FileBytes, maxConfig))
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	stem := strings.TrimSuffix(file, path.Ext(p.base(file)))
	name := opts.Weights
	if name == "" {
		name = stem + ".weights"
	}
	weights, err := p.read(name, limits.FileBytes-int64(len(cfg)))
	if errors.Is(err, fs.ErrNotExist) && opts.Weights == "" {
		return nil, nil, files.Name(file, fmt.Errorf("there are no weights beside it, %s; name them with Options.Weights, or 'bcnn convert --params'", text.Quote(p.base(name))))
	}
	if err != nil {
		return nil, nil, err
	}
	if opts.Name == "" {
		opts.Name = text.Escape(p.base(stem)) // a file may be called anything
	}
	if net, report, err = Decode(ctx, cfg, weights, opts); err != nil {
		return nil, nil, files.Name(file, err)
	}
	return net, report, nil
}

// simplified returns the network with the layers that are binary as such.
func (im *importer) simplified(ctx context.Context, net *bcnn.Network) (*bcnn.Network, *Report, error) {
	r := &Report{Heads: im.heads, Letterbox: im.letterbox}
	net, err := try.DoSafely(func() *bcnn.Network {
		net, findings, err := simplify.Network(ctx, net, simplify.Options{Limits: im.opts.Limits})
		r.Findings = findings
		return try.Value(net, err)
	})
	if err != nil {
		return nil, nil, err
	}
	return net, r, nil
}

// What an import may spend: base units, and perByte for each byte of the files.
const (
	base    = 64 << 20
	perByte = 128
)

// maxConfig is the largest description in bytes: that of the largest network published with
// Darknet has 50 thousand.
const maxConfig = 8 << 20

// begin opens the account of an import.
func begin(ctx context.Context, cfg, weights []byte, opts Options) (*importer, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	all := int64(len(cfg)) + int64(len(weights))
	switch {
	case len(cfg) > maxConfig:
		return nil, fmt.Errorf("the description has %d bytes, at most %d are supported", len(cfg), maxConfig)
	case all > limits.FileBytes:
		return nil, fmt.Errorf("description and weights have more than %d bytes; Limits.FileBytes allows more", limits.FileBytes)
	case opts.InputType != 0 && opts.InputType != bcnn.Uint8 && opts.InputType != bcnn.Float32:
		return nil, fmt.Errorf("the type of the input is %v, want uint8 or float32", opts.InputType)
	}
	b := budget.New(ctx, base)
	b.Grow(perByte * all)
	return &importer{
		opts: opts, limits: limits, budget: b, cfg: cfg, weights: weights, net: &bcnn.Network{}, signs: map[int]value{},
	}, b.Charge(all)
}
