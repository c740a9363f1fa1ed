package bitcnn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"syscall"

	"github.com/bitcnn/bitcnn/bcnn/bincnn"
	"github.com/bitcnn/bitcnn/bcnn/bmxnet"
	"github.com/bitcnn/bitcnn/bcnn/darknet"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/openvino"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/recognize"
	"github.com/bitcnn/bitcnn/models"
)

// LoadOptions are the options of Load, LoadFS and Read. The zero value is good for
// most models.
type LoadOptions struct {
	// Limits bound files and models from strangers.
	Limits Limits
	// ONNX says what ONNX files leave open. Its Limits are those above.
	ONNX onnx.Options
	// TFLite says what becomes of the inputs of TensorFlow Lite files. Its Limits are
	// those above.
	TFLite tflite.Options
	// BMXNet says what files of BMXNet and MXNet leave open, such as the size of the
	// input. Its Limits are those above.
	BMXNet bmxnet.Options
	// Darknet says what descriptions of Darknet leave open, such as the file of the weights.
	// Its Limits are those above.
	Darknet darknet.Options
	// OpenVINO says what files of OpenVINO leave open, and what becomes of their first input. Its
	// Limits are those above.
	OpenVINO openvino.Options
	// BinCNN says what a network of BinCNN does with the bytes of an image, which its
	// folder of weights leaves open.
	BinCNN bincnn.Mode
	// FirstWeights rounds the real weights of layers that read the bytes of an input to
	// so many bits, 2 to 16, which makes another, faster network: see lower.RoundFirst,
	// which also tells what it changes. 0 keeps them.
	FirstWeights int
}

// Load reads a model: a .bcnn file, an ONNX file, a TensorFlow Lite file such as those
// of Larq Compute Engine, a network of BMXNet, which is named by its NAME-symbol.json, of
// Darknet, by its NAME.cfg, or of OpenVINO, by its NAME.xml, or the folder of weights
// published with BinCNN. The format is recognised by content, not by name; a file that is
// no model is answered with what it is. When ctx ends, its error is returned. Errors name
// the file.
func Load(ctx context.Context, path string, opts LoadOptions) (*Model, error) {
	kind, err := recognize.Path(path)
	if err != nil {
		return nil, err
	}
	model, err := formats[kind].load(ctx, path, opts)
	if err == nil {
		model, err = opts.finish(ctx, model)
		err = files.Name(path, err)
	}
	return model, err
}

// LoadFS is Load for the file or folder called name of a file system, such as an
// embed.FS.
func LoadFS(ctx context.Context, fsys fs.FS, name string, opts LoadOptions) (*Model, error) {
	kind, err := recognizeFS(fsys, name)
	if err != nil {
		return nil, files.Name(name, err)
	}
	model, err := formats[kind].read(ctx, fsys, name, opts)
	if err == nil {
		model, err = opts.finish(ctx, model)
		err = files.Name(name, err)
	}
	return model, err
}

// format is how files of a format are read: by their name, from a file system, and from
// memory, which decode does, nil where a file alone is no model.
type format struct {
	load   func(ctx context.Context, path string, o LoadOptions) (*Model, error)
	read   func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error)
	decode func(ctx context.Context, data []byte, o LoadOptions) (*Model, error)
}

var formats = map[recognize.Format]format{
	recognize.ModelFile: {
		func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			return modelfile.Load(ctx, path, modelfile.Options{Limits: o.Limits})
		},
		readModelFile,
		func(ctx context.Context, data []byte, o LoadOptions) (*Model, error) {
			return modelfile.Read(ctx, data, modelfile.Options{Limits: o.Limits})
		},
	},
	recognize.ONNX: {
		func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			model, _, err := onnx.Load(ctx, path, o.onnx())
			return model, err
		},
		func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
			model, _, err := onnx.Read(ctx, fsys, name, o.onnx())
			return model, err
		},
		func(ctx context.Context, data []byte, o LoadOptions) (*Model, error) {
			model, _, err := onnx.Decode(ctx, data, o.onnx())
			return model, err
		},
	},
	recognize.TFLite: {
		func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			model, _, err := tflite.Load(ctx, path, o.tflite())
			return model, err
		},
		func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
			model, _, err := tflite.Read(ctx, fsys, name, o.tflite())
			return model, err
		},
		func(ctx context.Context, data []byte, o LoadOptions) (*Model, error) {
			model, _, err := tflite.Decode(ctx, data, o.tflite())
			return model, err
		},
	},
	recognize.BMXNet: {
		load: func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			model, _, err := bmxnet.Load(ctx, path, o.bmxnet())
			return model, err
		},
		read: func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
			model, _, err := bmxnet.Read(ctx, fsys, name, o.bmxnet())
			return model, err
		},
	},
	recognize.Darknet: {
		load: func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			model, _, err := darknet.Load(ctx, path, o.darknet())
			return model, err
		},
		read: func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
			model, _, err := darknet.Read(ctx, fsys, name, o.darknet())
			return model, err
		},
	},
	recognize.OpenVINO: {
		load: func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			model, _, err := openvino.Load(ctx, path, o.openvino())
			return model, err
		},
		read: func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
			model, _, err := openvino.Read(ctx, fsys, name, o.openvino())
			return model, err
		},
	},
	recognize.BinCNN: {
		load: func(ctx context.Context, path string, o LoadOptions) (*Model, error) {
			if err := o.checkBinCNN(); err != nil {
				return nil, files.Name(path, err)
			}
			return bincnn.Load(ctx, path, o.BinCNN)
		},
		read: func(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
			if err := o.checkBinCNN(); err != nil {
				return nil, files.Name(name, err)
			}
			return bincnn.Read(ctx, fsys, name, o.BinCNN)
		},
	},
}

func readModelFile(ctx context.Context, fsys fs.FS, name string, o LoadOptions) (*Model, error) {
	limits, err := o.Limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	data, err := files.ReadAllFS(fsys, name, limits.FileBytes)
	if err != nil {
		return nil, err
	}
	model, err := modelfile.Read(ctx, data, modelfile.Options{Limits: o.Limits})
	return model, files.Name(name, err)
}

func recognizeFS(fsys fs.FS, name string) (recognize.Format, error) {
	f, _, err := files.OpenFS(fsys, name)
	if errors.Is(err, syscall.EISDIR) {
		return recognize.Folder(func(file string) bool {
			_, err := fs.Stat(fsys, path.Join(name, file))
			return err == nil
		})
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return recognize.Reader(f)
}

// Read reads a model from what r delivers until it ends, such as the body of a
// request: a .bcnn file, an ONNX file that refers to no others, or a TensorFlow Lite
// file. It takes no more than Limits.FileBytes.
func Read(ctx context.Context, r io.Reader, opts LoadOptions) (*Model, error) {
	data, err := readAll(ctx, r, opts.Limits)
	if err != nil {
		return nil, err
	}
	kind, err := recognize.Head(data[:min(len(data), recognize.HeadBytes)])
	if err != nil {
		return nil, err
	}
	decode := formats[kind].decode
	if decode == nil {
		return nil, fmt.Errorf("a %v graph, whose weights are in another file: Load and LoadFS read both", kind)
	}
	model, err := decode(ctx, data, opts)
	if err == nil {
		model, err = opts.finish(ctx, model)
	}
	return model, err
}

// finish applies FirstWeights.
func (o LoadOptions) finish(ctx context.Context, model *Model) (*Model, error) {
	if o.FirstWeights == 0 {
		return model, nil
	}
	rounded, _, err := lower.RoundFirst(ctx, model, o.FirstWeights, lower.Options{Limits: o.Limits})
	return rounded, err
}

func readAll(ctx context.Context, r io.Reader, limits Limits) ([]byte, error) {
	limits, err := limits.WithDefaults()
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("there is no reader")
	}
	const step = 1 << 20
	most := min(limits.FileBytes, math.MaxInt-1)
	var b bytes.Buffer
	for rest := most + 1; rest > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := io.CopyN(&b, r, min(rest, step))
		rest -= n
		if err == io.EOF {
			return b.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d bytes; Limits.FileBytes allows more", most)
}

func (o LoadOptions) onnx() onnx.Options {
	o.ONNX.Limits = o.Limits
	return o.ONNX
}

func (o LoadOptions) tflite() tflite.Options {
	o.TFLite.Limits = o.Limits
	return o.TFLite
}

func (o LoadOptions) bmxnet() bmxnet.Options {
	o.BMXNet.Limits = o.Limits
	return o.BMXNet
}

func (o LoadOptions) darknet() darknet.Options {
	o.Darknet.Limits = o.Limits
	return o.Darknet
}

func (o LoadOptions) openvino() openvino.Options {
	o.OpenVINO.Limits = o.Limits
	return o.OpenVINO
}

func (o LoadOptions) checkBinCNN() error {
	if o.BinCNN == "" {
		return fmt.Errorf("a BinCNN weights folder, which does not say how image bytes are read: set LoadOptions.BinCNN to one of %v", bincnn.Modes)
	}
	return nil
}

// Bundled returns one of the trained models that are part of the module: see
// BundledNames.
func Bundled(name string) (*Model, error) { return models.Load(context.Background(), name) }

// BundledNames lists the trained models that are part of the module: "vehiclenet" and
// its variants, and "digits". See package models.
func BundledNames() []string { return models.Names() }
