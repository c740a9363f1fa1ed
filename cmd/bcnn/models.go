package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/recognize"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/models"
	"github.com/bitcnn/bitcnn/vision"
)

func embeddedModels() []string { return models.Names() }

// modelFlag adds --model with completion of the embedded names.
func modelFlag(cmd *cobra.Command, model *string, value, usage string) {
	cmd.Flags().StringVarP(model, "model", "m", value, usage)
	completeModels(cmd)
}

// modelsFlag adds --model for one or several models.
func modelsFlag(cmd *cobra.Command, models *[]string, usage string) {
	*models = []string{defaultModel}
	cmd.Flags().VarP(&namesFlag{models}, "model", "m", usage)
	completeModels(cmd)
}

func completeModels(cmd *cobra.Command) {
	// Only an unknown flag could make this fail.
	_ = cmd.RegisterFlagCompletionFunc("model", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return builtIn(), cobra.ShellCompDirectiveDefault
	})
}

// deviceFlag adds --device with completion of the devices that are there.
func deviceFlag(cmd *cobra.Command, device *string, more ...string) {
	usage := `"auto", or a device as 'bcnn devices' lists it (default $BCNN_DEVICE, else auto)`
	if slices.Contains(more, "all") {
		usage = `"auto", "all", or a device as 'bcnn devices' lists it (default $BCNN_DEVICE, else auto)`
	}
	cmd.Flags().StringVarP(device, "device", "d", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("device", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := append([]string{"auto"}, more...)
		for _, d := range backend.Devices() {
			names = append(names, d.Info().ID)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// loadModel reads an embedded model or a file, or builds a network of the zoo.
// Names win; a file of the same name is reached with a path such as ./digits.
func loadModel(ctx context.Context, name string) (*bcnn.Network, error) {
	if slices.Contains(embeddedModels(), name) {
		return models.Load(ctx, name)
	}
	if slices.Contains(zoo.Names(), name) {
		return zoo.New(name, measure.Seed)
	}
	format, err := recognize.Path(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := ""
		if near := text.Closest(name, builtIn()); near != "" {
			hint = fmt.Sprintf("did you mean %s? ", near)
		}
		return nil, files.Name(name, fmt.Errorf("no such file or built-in model; %s'bcnn zoo' and 'bcnn help' list the built-in models", hint))
	case format == recognize.BinCNN:
		return nil, files.Name(name, errors.New("this is a BinCNN weights folder; convert it with 'bcnn convert --mode thresh|norm|int'"))
	}
	return bitcnn.Load(ctx, name, bitcnn.LoadOptions{})
}

// openClassifier returns a classifier by a network on a device, and its session.
func openClassifier(ctx context.Context, device string, net *bcnn.Network, batch int, opts vision.Options) (*vision.Classifier, *bitcnn.Session, error) {
	s, err := bitcnn.Open(ctx, net, bitcnn.Options{Device: device, MaxBatch: batch})
	if err != nil {
		return nil, nil, err
	}
	c, err := vision.NewClassifier(s, opts)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return c, s, nil
}

// openDevices returns one device, or for "all" every device that is there.
func openDevices(name string) ([]*backend.Device, error) {
	if name != "all" {
		dev, err := backend.Open(name)
		if err != nil {
			return nil, err
		}
		return []*backend.Device{dev}, nil
	}
	devices := backend.Devices()
	if len(devices) == 0 {
		return nil, errors.New("no device is available; 'bcnn devices' says why")
	}
	return devices, nil
}

// optionsFor returns what of opts a device gets that was named as openDevices takes
// it: of all devices, each takes those of the threads, instruction sets and kernels
// that it has a choice of; a device that was named has to take what it is given.
func optionsFor(name string, dev *backend.Device, opts backend.Options) backend.Options {
	if name != "all" {
		return opts
	}
	info := dev.Info()
	if info.MaxThreads == 0 {
		opts.Threads = 0
	}
	if len(info.ISAs) == 0 {
		opts.ISA = ""
	}
	if len(info.Kernels) == 0 {
		opts.Kernels = ""
	}
	return opts
}

// checkImages reports whether a network can be fed with images.
func checkImages(model string, net *bcnn.Network) error {
	in := net.Inputs[0]
	if net.Detection != nil {
		return files.Name(model, errors.New("the model is a detector, not a classifier; use 'bcnn detect'"))
	}
	if ins, outs := len(net.Inputs), len(net.OutputLayers()); ins != 1 || outs != 1 {
		return files.Name(model, fmt.Errorf("the model has %d inputs and %d outputs, not one of each; use 'bcnn run'", ins, outs))
	}
	if in.DType == bcnn.Uint8 && (in.Shape.C == 1 || in.Shape.C == 3) {
		return nil
	}
	return files.Name(model, fmt.Errorf("the model reads %v of %v, not the bytes of an image; "+
		"for an ONNX model, 'bcnn convert --input uint8 --mean … --scale …' adds the scaling of the bytes", in.DType, in.Shape))
}
