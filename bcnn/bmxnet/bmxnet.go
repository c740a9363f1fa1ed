// Package bmxnet imports the networks of BMXNet (Yang et al., "BMXNet: An Open-Source
// Binary Neural Network Implementation Based on MXNet", 2017), and those of MXNet
// whose operators are among them: a graph, NAME-symbol.json, and its weights,
// NAME-0000.params, packed in words of 32 or 64 bits by BMXNet's model converter or
// as it trains them, in floats.
//
// What BMXNet computes is kept exactly: its binary layers make +1 of 0, pad with +1,
// since they binarise the zeros of the padding, and give (K + sum)/2 for a sum of K
// products. Of k bits, activations are round((2^k − 1)·x)/(2^k − 1) for x limited to 0 to 1,
// and weights 2·q(tanh(w)/(2·max|tanh|) + ½) − 1 with that rounding q; their products are
// summed as integers.
//
// Operators: QConvolution and QFullyConnected with activations of 1 to 8 bits or real ones,
// and weights of 1 to 7 bits, QActivation of 1 to 8 bits; Activation (relu, sigmoid, tanh,
// softrelu), BatchNorm, BlockGrad, Concat, Convolution, Dropout, Flatten, FullyConnected,
// L2Normalization, LeakyReLU (leaky, prelu, rrelu, elu, gelu), Pad, Pooling (avg, max), SoftmaxOutput and its
// relatives, clip, means of channels, slice_axis, products, sums and differences of tensors,
// with weights for each channel and with numbers, limits, and names that
// other versions have for them. The binary layers of BMXNet 2, whose graphs are exported
// by Gluon, are made of det_sign (also of weights, with the mean of their magnitudes),
// gradcancel, Pad and these. What a
// bcnn.Network cannot represent is an error that names all such nodes, see
// bcnn.ObstaclesError.
//
// # Cost
//
// Files may come from strangers. An import allocates at most 64 MiB and 128 bytes for
// each byte of the two files, and takes steps in proportion; Options.Limits bound the
// rest. What the files decide is charged to a budget before it is done; TestCost and
// FuzzCost find what is not.
package bmxnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	// Params is the file of the weights: a path for Load, a name in the file system for
	// Read. Without it the one file NAME-….params beside NAME-symbol.json is taken.
	Params string
	// InputShape is the size of the input, which most files do not have.
	InputShape bcnn.Shape
	// InputType is the type that the network is fed with: bcnn.Float32 (or 0), or
	// bcnn.Uint8 for the values of bytes.
	InputType bcnn.DType
	// Mean and Scale put (x − Mean)·Scale before the graph: one value, one per channel,
	// or none.
	Mean, Scale []float32
	// Name is the name of the network. Without it that is NAME.
	Name   string
	Labels []string
	// Resize is Input.Resize of the network.
	Resize int

	// Limits bound both files together, the nodes, the layers and every tensor.
	Limits bcnn.Limits
}

// Report tells what became of a network.
type Report struct {
	// Findings are what package simplify has found in it.
	Findings []simplify.Finding
}

// Load imports the network whose graph is in the file at path. It takes and returns
// images one by one; feature maps are NHWC. When ctx ends, its error is returned.
// Errors name the file and, where they can, the node.
func Load(ctx context.Context, path string, opts Options) (*bcnn.Network, *Report, error) {
	net, err := load(ctx, place{
		read:   files.ReadAll,
		list:   os.ReadDir,
		dir:    filepath.Dir,
		join:   filepath.Join,
		prefix: func(file string) string { return filepath.Base(file) },
	}, path, opts)
	return simplified(ctx, path, net, opts, err)
}

// Read is Load for the file called name of a file system, such as an embed.FS.
func Read(ctx context.Context, fsys fs.FS, name string, opts Options) (*bcnn.Network, *Report, error) {
	net, err := load(ctx, place{
		read:   func(file string, limit int64) ([]byte, error) { return files.ReadAllFS(fsys, file, limit) },
		list:   func(dir string) ([]fs.DirEntry, error) { return fs.ReadDir(fsys, dir) },
		dir:    path.Dir,
		join:   path.Join,
		prefix: path.Base,
	}, name, opts)
	return simplified(ctx, name, net, opts, err)
}

// Decode is Load for files in memory: the graph and its weights. The network does not
// keep them.
func Decode(ctx context.Context, symbol, params []byte, opts Options) (net *bcnn.Network, report *Report, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	im, err := begin(ctx, int64(len(symbol)), int64(len(params)), opts)
	if err != nil {
		return nil, nil, err
	}
	if err := im.read(symbol, params); err != nil {
		return nil, nil, err
	}
	net, err = im.network()
	return simplified(ctx, "", net, opts, err)
}

// simplified returns a network of a file with the layers that are binary, or of a few bits, as
// such.
func simplified(ctx context.Context, file string, net *bcnn.Network, opts Options, err error) (*bcnn.Network, *Report, error) {
	if err != nil {
		return nil, nil, err
	}
	r := &Report{}
	net, err = try.DoSafely(func() *bcnn.Network {
		net, findings, err := simplify.Network(ctx, net, simplify.Options{Limits: opts.Limits})
		r.Findings = findings
		return try.Value(net, err)
	})
	if err != nil {
		if file != "" {
			err = files.Name(file, err)
		}
		return nil, nil, err
	}
	return net, r, nil
}

// place is where files are.
type place struct {
	read   func(file string, limit int64) ([]byte, error)
	list   func(dir string) ([]fs.DirEntry, error)
	dir    func(file string) string
	join   func(parts ...string) string
	prefix func(file string) string // its name without the folder
}

func load(ctx context.Context, p place, symbol string, opts Options) (net *bcnn.Network, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	graph, err := p.read(symbol, min(limits.FileBytes, maxSymbol))
	if err != nil {
		return nil, err
	}
	name := baseName(p.prefix(symbol))
	params := opts.Params
	if params == "" {
		found, err := p.params(symbol, name)
		if err != nil {
			return nil, files.Name(symbol, err)
		}
		params = found
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	weights, err := p.read(params, limits.FileBytes-int64(len(graph)))
	if err != nil {
		return nil, err
	}
	im, err := begin(ctx, int64(len(graph)), int64(len(weights)), opts)
	if err != nil {
		return nil, files.Name(symbol, err)
	}
	if im.nodes, im.head, err = decodeSymbol(graph, im.limits.Layers, im.budget); err != nil {
		return nil, files.Name(symbol, err)
	}
	if im.params, err = decodeParams(weights, im.budget); err != nil {
		return nil, files.Name(params, err)
	}
	if im.opts.Name == "" {
		im.opts.Name = text.Escape(name) // a file may be called anything
	}
	net, err = im.network()
	return net, files.Name(symbol, err)
}

// baseName returns NAME of NAME-symbol.json.
func baseName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, ".json"), "-symbol")
}

// params finds the file of the weights beside the graph.
func (p place) params(symbol, name string) (string, error) {
	entries, err := p.list(p.dir(symbol))
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), name)
		if rest, params := strings.CutSuffix(rest, ".params"); ok && params && strings.Trim(strings.TrimPrefix(rest, "-"), "0123456789") == "" {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 1:
		return p.join(p.dir(symbol), found[0]), nil
	case 0:
		return "", fmt.Errorf("there are no weights beside it, such as %s; name them with Options.Params, or 'bcnn convert --params'", text.Quote(name+"-0000.params"))
	}
	const most = 20
	rest := ""
	if len(found) > most {
		found, rest = found[:most], ", …"
	}
	for i, f := range found {
		found[i] = text.Escape(f)
	}
	return "", fmt.Errorf("several files of weights are beside it: %s%s; choose one with Options.Params, or 'bcnn convert --params'", strings.Join(found, ", "), rest)
}

// What an import may spend: base units, and perByte for each byte of the files. A bit
// of a packed weight is moved on its own.
const (
	base    = 64 << 20
	perByte = 128
)

// maxSymbol is the largest graph in bytes: that of ResNet-152 has half a megabyte.
const maxSymbol = 8 << 20

// begin opens the account of an import of files of so many bytes.
func begin(ctx context.Context, symbol, params int64, opts Options) (*importer, error) {
	limits, err := opts.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	switch {
	case symbol > maxSymbol:
		return nil, fmt.Errorf("the graph has %d bytes, at most %d are supported", symbol, maxSymbol)
	case params > limits.FileBytes-symbol:
		return nil, fmt.Errorf("graph and weights have more than %d bytes; Limits.FileBytes allows more", limits.FileBytes)
	case opts.InputType != 0 && opts.InputType != bcnn.Uint8 && opts.InputType != bcnn.Float32:
		return nil, fmt.Errorf("the type of the input is %v, want uint8 or float32", opts.InputType)
	}
	b := budget.New(ctx, base)
	b.Grow(perByte * (symbol + params))
	return &importer{
		opts: opts, limits: limits, budget: b, net: &bcnn.Network{}, names: map[string]bool{}, folded: map[int]array{}, signs: map[int]value{}, quantised: map[quantised]value{},
	}, b.Charge(symbol + params)
}

// read decodes both files.
func (im *importer) read(symbol, params []byte) (err error) {
	if im.nodes, im.head, err = decodeSymbol(symbol, im.limits.Layers, im.budget); err != nil {
		return err
	}
	if im.params, err = decodeParams(params, im.budget); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	return nil
}

// errNoParams is the error of a node whose weights are not in the file.
var errNoParams = errors.New("not in the file of the weights")
