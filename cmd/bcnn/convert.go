package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bincnn"
	"github.com/bitcnn/bitcnn/bcnn/bmxnet"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/recognize"
	"github.com/bitcnn/bitcnn/internal/text"
)

// convertFlags are the flags of convert, apart from those of onnx.Options that
// are set directly.
type convertFlags struct {
	output, from, mode string
	input, labels      string
	shape              string
	signOfZero         string
	params             string
	onnx               onnx.Options
	firstWeights       int
	requireBinary      bool
	json               bool
}

// flagsOf are the flags that only make sense for some formats.
var flagsOf = []struct {
	names, formats []string
	what           string
}{
	{[]string{"input", "mean", "scale", "labels", "name", "resize"}, []string{"onnx", "tflite", "bmxnet"}, "for ONNX, TensorFlow Lite and BMXNet models"},
	{[]string{"shape"}, []string{"onnx", "bmxnet"}, "for ONNX and BMXNet models"},
	{[]string{"sign-zero", "override-zeros", "weight-tolerance"}, []string{"onnx"}, "for ONNX models"},
	{[]string{"params"}, []string{"bmxnet"}, "for BMXNet models"},
}

func newConvert(env *environment) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert IN -o OUT.bcnn",
		Short: "Convert a model to a .bcnn file",
		Long: `Convert an ONNX model, a TensorFlow Lite model such as those of Larq Compute
Engine, a network of BMXNet (NAME-symbol.json, with its weights NAME-0000.params
beside it), the folder of weights published with BinCNN (with --mode), or a network
that 'bcnn zoo' lists with random weights (--from zoo), to a .bcnn file, and
report for every layer with weights whether it is binary, its bytes before and
after, and why it is computed in float. The format is recognised by what is in
the file; a .bcnn file is written anew.

What a .bcnn file cannot represent exactly is an error that names all such nodes.
The file is written completely or not at all; a file of that name is replaced.
The report ends with a warning if less than half of the multiplications became
binary; with --require-binary that is an error, and no file is written.

The flags below override what the file says about its input; the size of the
input of a BMXNet model must be given with --shape. --input uint8 makes a model
with a float input read the bytes of images, of which it computes
(x - mean) · scale per channel first.

With --json, one object: input, output, bytes, layers, macs, binary_macs,
float_bytes, stored_bytes, warning, of an ONNX or TensorFlow Lite model nodes and
folded, of an ONNX model cancelled, zeros, nearly_binary, and with --first-weights
rounded.`,
		Example: `  bcnn convert model.onnx -o model.bcnn
  bcnn convert model.onnx -o model.bcnn --input uint8 --mean 127.5 --scale 0.00784313725 --labels labels.txt
  bcnn convert lenet-symbol.json -o lenet.bcnn --shape 28x28x1 --input uint8 --scale 0.00392156862745098
  bcnn convert --mode thresh weights -o bincnn.bcnn
  bcnn convert --from zoo vgg16 -o vgg16.bcnn`,
		Args: oneArgument("a model: a file, a folder, or a name of the zoo"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := args[0]
			if f.output == "" {
				return usagef("convert needs -o OUT%s", modelfile.Extension)
			}
			if ext := filepath.Ext(f.output); ext != modelfile.Extension {
				return usagef("%s: the output must be named *%s", text.Escape(f.output), modelfile.Extension)
			}
			if err := f.parse(); err != nil {
				return err
			}
			format, err := f.format(in)
			if err != nil {
				return err
			}
			for _, f := range flagsOf {
				for _, name := range f.names {
					if !slices.Contains(f.formats, format) && cmd.Flags().Changed(name) {
						return usagef("--%s is %s", name, f.what)
					}
				}
			}
			if format != "bincnn" && f.mode != "" {
				return usagef("--mode is for folders of weights of BinCNN")
			}
			var net *bcnn.Network
			var nodes *onnx.Report       // of an ONNX model
			var operators *tflite.Report // of a TensorFlow Lite model
			switch format {
			case "onnx":
				net, nodes, err = f.loadONNX(cmd.Context(), in)
			case "tflite":
				net, operators, err = f.loadTFLite(cmd.Context(), in)
			case "bmxnet":
				net, err = f.loadBMXNet(cmd.Context(), in)
			case "bincnn":
				mode := bincnn.Mode(f.mode)
				modes := []bincnn.Mode{bincnn.Thresh, bincnn.Norm, bincnn.Int}
				if !slices.Contains(modes, mode) {
					return usagef("--mode %q: want thresh, norm or int", f.mode)
				}
				net, err = bincnn.Load(cmd.Context(), in, mode)
			case "zoo":
				if !slices.Contains(zoo.Names(), in) {
					return usagef("--from zoo has no %q: want %s", in, strings.Join(zoo.Names(), ", "))
				}
				net, err = zoo.New(in, measure.Seed)
			default:
				net, err = bitcnn.Load(cmd.Context(), in, bitcnn.LoadOptions{})
			}
			if err != nil {
				return err
			}
			var rounded []bcnn.RoundedLayer
			if f.firstWeights > 0 {
				if net, rounded, err = bcnn.RoundFirst(cmd.Context(), net, f.firstWeights, bcnn.LowerOptions{}); err != nil {
					return files.Name(in, err)
				}
			}
			plan, err := bcnn.Lower(cmd.Context(), net, bcnn.LowerOptions{})
			if err != nil {
				return files.Name(in, err)
			}
			c := newConversion(in, f.output, net, plan, nodes)
			for _, l := range rounded {
				c.Rounded = append(c.Rounded, roundedLayer(l))
			}
			if operators != nil {
				c.kind, c.Nodes, c.Folded = "TensorFlow Lite operators", operators.Operators, operators.Folded
				c.Deviations = operators.Deviations
			}
			if c.Warning != "" && f.requireBinary {
				return files.Name(in, errors.New(c.Warning))
			}
			if err := modelfile.Save(f.output, net); err != nil {
				return err
			}
			info, err := os.Stat(f.output)
			if err != nil {
				return err
			}
			c.Bytes = info.Size()
			if f.json {
				return env.out.json(c)
			}
			c.print(env.out)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "file to write")
	flags.StringVar(&f.from, "from", "", "format of IN: onnx, tflite, bmxnet or bincnn, or zoo for the name of a network (default what is in the file)")
	flags.StringVar(&f.mode, "mode", "", "input of a bincnn network: thresh, norm or int")
	flags.StringVar(&f.input, "input", "", "type of the input: uint8 or float32 (default as the file says)")
	flags.StringVar(&f.shape, "shape", "", "HEIGHTxWIDTHxCHANNELS of the input, where the file leaves it open")
	flags.StringVar(&f.params, "params", "", "file of the weights of a BMXNet model (default the one NAME-*.params beside it)")
	floatsFlag(cmd, &f.onnx.Mean, "mean", "subtracted from the input, one value or one per channel")
	floatsFlag(cmd, &f.onnx.Scale, "scale", "multiplied with the input after that, one value or one per channel")
	flags.StringVar(&f.labels, "labels", "", "text file with the labels, one per line")
	flags.StringVar(&f.onnx.Name, "name", "", "name of the network")
	wholeFlag(cmd, &f.onnx.Resize, "resize", 0, maxSide, "shorter side of photos before the centre is cropped")
	flags.StringVar(&f.signOfZero, "sign-zero", "", "make an ONNX Sign node binary, 0 becoming plus or minus (ONNX says 0, which takes two products of bits)")
	flags.BoolVar(&f.onnx.OverrideZeros, "override-zeros", false, "apply --sign-zero also where the input of Sign often is 0, which makes another network")
	f.onnx.WeightTolerance = onnx.DefaultWeightTolerance
	fractionFlag(cmd, &f.onnx.WeightTolerance, "weight-tolerance", "take weights as ±α of a filter that differ from it by at most this fraction of α; 0: only equal ones")
	wholeFlag(cmd, &f.firstWeights, "first-weights", 2, 16, "round the real weights of layers that read bytes to integers of so many bits times a scale per filter, which makes another network")
	flags.BoolVar(&f.requireBinary, "require-binary", false, "fail if less than half of the multiplications become binary")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	for name, values := range map[string][]string{
		"from": {"onnx", "tflite", "bmxnet", "bincnn", "zoo"}, "mode": {"thresh", "norm", "int"},
		"input": {"uint8", "float32"}, "sign-zero": {"plus", "minus"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// format returns the format of the model that is to be converted: onnx, tflite, bmxnet,
// bincnn, zoo or bcnn.
func (f *convertFlags) format(in string) (string, error) {
	switch f.from {
	case "onnx", "tflite", "bmxnet", "bincnn", "zoo":
		return f.from, nil
	case "":
	default:
		return "", usagef("--from %q: want onnx, tflite, bmxnet, bincnn or zoo", f.from)
	}
	format, err := recognize.Path(in)
	if err != nil {
		return "", err
	}
	return map[recognize.Format]string{
		recognize.ONNX: "onnx", recognize.TFLite: "tflite", recognize.BMXNet: "bmxnet", recognize.BinCNN: "bincnn", recognize.ModelFile: "bcnn",
	}[format], nil
}

// parse sets the options of an import from the flags that are text.
func (f *convertFlags) parse() error {
	switch f.input {
	case "":
	case "uint8":
		f.onnx.InputType = bcnn.Uint8
	case "float32":
		f.onnx.InputType = bcnn.Float32
	default:
		return usagef("--input %q: want uint8 or float32", f.input)
	}
	switch f.signOfZero {
	case "":
	case "plus":
		f.onnx.SignOfZero = bcnn.ZeroIsPlus
	case "minus":
		f.onnx.SignOfZero = bcnn.ZeroIsMinus
	default:
		return usagef("--sign-zero %q: want plus or minus", f.signOfZero)
	}
	if f.onnx.WeightTolerance == 0 {
		f.onnx.WeightTolerance = -1
	}
	if f.onnx.OverrideZeros && f.signOfZero == "" {
		return usagef("--override-zeros needs --sign-zero")
	}
	if f.shape != "" {
		s := &f.onnx.InputShape
		if n, err := fmt.Sscanf(f.shape, "%dx%dx%d", &s.H, &s.W, &s.C); err != nil || n != 3 ||
			fmt.Sprintf("%dx%dx%d", s.H, s.W, s.C) != f.shape ||
			min(s.H, s.W, s.C) < 1 || max(s.H, s.W) > maxSide || s.C > maxChannels {
			return usagef("--shape %q: want HEIGHTxWIDTHxCHANNELS, such as 96x96x3", f.shape)
		}
	}
	return nil
}

// loadONNX imports an ONNX model with the options that the flags set.
func (f *convertFlags) loadONNX(ctx context.Context, in string) (*bcnn.Network, *onnx.Report, error) {
	if err := f.setLabels(); err != nil {
		return nil, nil, err
	}
	return onnx.Load(ctx, in, f.onnx)
}

// loadBMXNet imports a network of BMXNet, whose input the same flags describe.
func (f *convertFlags) loadBMXNet(ctx context.Context, in string) (*bcnn.Network, error) {
	if err := f.setLabels(); err != nil {
		return nil, err
	}
	o := &f.onnx
	return bmxnet.Load(ctx, in, bmxnet.Options{
		Params: f.params, InputShape: o.InputShape, InputType: o.InputType, Mean: o.Mean, Scale: o.Scale,
		Name: o.Name, Labels: o.Labels, Resize: o.Resize,
	})
}

// loadTFLite imports a TensorFlow Lite model with those of the options that it has.
func (f *convertFlags) loadTFLite(ctx context.Context, in string) (*bcnn.Network, *tflite.Report, error) {
	if err := f.setLabels(); err != nil {
		return nil, nil, err
	}
	o := &f.onnx
	return tflite.Load(ctx, in, tflite.Options{
		InputType: o.InputType, Mean: o.Mean, Scale: o.Scale, Name: o.Name, Labels: o.Labels, Resize: o.Resize,
	})
}

// setLabels reads the file of labels.
func (f *convertFlags) setLabels() (err error) {
	if f.labels != "" {
		f.onnx.Labels, err = readLabels(f.labels)
	}
	return err
}

// maxLabels is the size of a file of labels at the most: more than a model file
// can hold.
const maxLabels = 4 << 20

// readLabels reads a text file with one label per line.
func readLabels(file string) ([]string, error) {
	data, err := files.ReadAll(file, maxLabels)
	if err != nil {
		return nil, err
	}
	var labels []string
	for line := range strings.Lines(string(data)) {
		if l := strings.TrimSpace(line); l != "" {
			labels = append(labels, l)
		}
	}
	if len(labels) == 0 {
		return nil, files.Name(file, errors.New("no labels; want one per line"))
	}
	return labels, nil
}
