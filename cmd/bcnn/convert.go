package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bincnn"
	"github.com/bitcnn/bitcnn/bcnn/bmxnet"
	"github.com/bitcnn/bitcnn/bcnn/darknet"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
	"github.com/bitcnn/bitcnn/bcnn/onnx"
	"github.com/bitcnn/bitcnn/bcnn/openvino"
	"github.com/bitcnn/bitcnn/bcnn/simplify"
	"github.com/bitcnn/bitcnn/bcnn/tflite"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/recognize"
	"github.com/bitcnn/bitcnn/internal/summary"
	"github.com/bitcnn/bitcnn/internal/text"
)

// convertFlags are the flags of convert, apart from those of onnx.Options that
// are set directly.
type convertFlags struct {
	output, from, mode string
	input, labels      string
	shape              string
	signOfZero         string
	detection          string
	params             string
	onnx               onnx.Options
	firstWeights       int
	requireBinary      bool
	explain            bool
	json               bool
}

// imported is a network that was read, with what the report says of it.
type imported struct {
	net      *bcnn.Network
	named    bool // by the model, and not for want of a name after its file
	findings []simplify.Finding
	describe func(c *conversion) // nil for nothing
}

// reader is a format that convert reads.
type reader struct {
	name  string
	kind  recognize.Format // 0 for what only --from asks for
	flags []string         // that it has of those that only some have
	load  func(ctx context.Context, f *convertFlags, in string) (imported, error)
}

// readers are all formats.
func readers() []reader {
	input := []string{"input", "mean", "scale", "labels", "name", "resize"}
	return []reader{
		{"onnx", recognize.ONNX, append(input, "shape", "sign-zero", "override-zeros", "weight-tolerance", "detection"), loadONNX},
		{"tflite", recognize.TFLite, input, loadTFLite},
		{"bmxnet", recognize.BMXNet, append(input, "shape", "params"), loadBMXNet},
		{"darknet", recognize.Darknet, append(input, "params"), loadDarknet},
		{"openvino", recognize.OpenVINO, append(input, "shape", "params"), loadOpenVINO},
		{"bincnn", recognize.BinCNN, []string{"mode"}, loadBinCNN},
		{"zoo", 0, nil, loadZoo},
		{"bcnn", recognize.ModelFile, nil, func(ctx context.Context, _ *convertFlags, in string) (imported, error) {
			net, err := modelfile.Load(ctx, in, modelfile.Options{})
			return imported{net: net, named: err == nil && net.Name != stem(in)}, err
		}},
	}
}

// formatsOf names the formats that have a flag; none if all have it.
func formatsOf(flag string) string {
	var names []string
	for _, r := range readers() {
		if slices.Contains(r.flags, flag) {
			names = append(names, r.kind.String())
		}
	}
	return text.List(names, "and")
}

// namesOf are the values of --from.
func namesOf() (names []string) {
	for _, r := range readers() {
		if r.name != "bcnn" {
			names = append(names, r.name)
		}
	}
	return names
}

func newConvert(env *environment) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert IN -o OUT.bcnn",
		Short: "Convert a model to a .bcnn file",
		Long: `Convert a model to a .bcnn file, and report which layers are binary, of few bits or
float32, and why. IN is an ONNX or TensorFlow Lite file, a network of BMXNet
(NAME-symbol.json and NAME-0000.params), Darknet (NAME.cfg and NAME.weights) or
OpenVINO (NAME.xml and NAME.bin), a folder of BinCNN weights (with --mode), or a
network with random weights (--from zoo). The format is recognised by the content.

What a .bcnn file cannot represent exactly is an error that names all such nodes. The
file is written completely or not at all.

"precision" is that of a layer's multiplications, the bits of the wider factor:
"binary" is 1 bit by 1 bit, "2-bit" to "16-bit" are integers, computed exactly
(three-valued signs have 2 bits, bytes of an image 8), "float32" has a reason.
Weights, other tables and metadata add up to the file.

The flags override what the file says about its input. --input uint8 makes a model
with a float input read the bytes of images and compute (x - mean) * scale per
channel; without --mean and --scale, a Darknet model divides them by 255.

--sign-zero, --override-zeros and --first-weights change what the network computes.
Without --sign-zero, Sign is exact: +1 and -1 if its input is never 0, else three
values, which double the work of the next layer.

With --json, one object: input, output, layers, macs, binary_macs, macs_by_bits,
multiplications (in words), float_bytes, stored_bytes, compression, table_bytes,
metadata_bytes, file_bytes, float_steps, warning; nodes and folded (ONNX, TensorFlow
Lite), cancelled, zeros, ternary, nearly_binary (ONNX), deviations (TensorFlow Lite,
OpenVINO), rounded (--first-weights), findings (--explain).`,
		Example: `  bcnn convert model.onnx -o model.bcnn
  bcnn convert model.onnx -o model.bcnn --input uint8 --mean 127.5 --scale 0.00784313725 --labels labels.txt
  bcnn convert lenet-symbol.json -o lenet.bcnn --shape 28x28x1 --input uint8 --scale 0.00392156862745098
  bcnn convert face-detection.xml -o faces.bcnn
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
			from, err := f.reader(in)
			if err != nil {
				return err
			}
			cmd.Flags().Visit(func(flag *pflag.Flag) {
				if formats := formatsOf(flag.Name); err == nil && formats != "" && !slices.Contains(from.flags, flag.Name) {
					err = usagef("--%s is for %s models", flag.Name, formats)
				}
			})
			if err != nil {
				return err
			}
			c, net, err := f.convert(cmd.Context(), from, in)
			if err != nil {
				return err
			}
			if f.requireBinary {
				if err := c.CheckBinary(); err != nil {
					return files.Name(in, err)
				}
			}
			if err := modelfile.Save(f.output, net); err != nil {
				return err
			}
			if f.json {
				return env.out.json(c)
			}
			c.print(env.out)
			return nil
		},
	}
	flags := cmd.Flags()
	outputVar(cmd, &f.output, "output", "o", "file to write")
	flags.StringVar(&f.from, "from", "", "format of IN: onnx, tflite, bmxnet, darknet, openvino, bincnn, or zoo for a built-in network (default by content)")
	flags.StringVar(&f.mode, "mode", "", "input of a bincnn network: thresh, norm or int")
	flags.StringVar(&f.input, "input", "", "input type: uint8 or float32 (default as the file says)")
	flags.StringVar(&f.shape, "shape", "", "HEIGHTxWIDTHxCHANNELS of the input, if the file leaves it open (BMXNet)")
	flags.StringVar(&f.params, "params", "", "weights of a BMXNet, Darknet or OpenVINO model (default NAME-*.params, NAME.weights or NAME.bin beside it)")
	floatsFlag(cmd, &f.onnx.Mean, "mean", "mean to subtract from the input, one value or one per channel")
	floatsFlag(cmd, &f.onnx.Scale, "scale", "scale to multiply the input by after that, one value or one per channel")
	flags.StringVar(&f.labels, "labels", "", "text file with the labels, one per line")
	flags.StringVar(&f.onnx.Name, "name", "", "name of the network (default from the file, else from OUT)")
	intVar(cmd, &f.onnx.Resize, "resize", 0, maxSide, "resize the shorter side of photos to this before cropping the centre")
	flags.StringVar(&f.detection, "detection", "", "how an ONNX detector encodes boxes in its output maps: yolox or yolov8")
	flags.StringVar(&f.signOfZero, "sign-zero", "", "make ONNX Sign nodes binary: 0 becomes plus or minus 1")
	flags.BoolVar(&f.onnx.OverrideZeros, "override-zeros", false, "apply --sign-zero even if the input of Sign is often 0")
	f.onnx.WeightTolerance = onnx.DefaultWeightTolerance
	fractionFlag(cmd, &f.onnx.WeightTolerance, "weight-tolerance", "accept weights that differ from ±α of their filter by up to this fraction of α; 0 demands equality")
	intVar(cmd, &f.firstWeights, "first-weights", 2, 16, "round the real weights of layers that read bytes to integers of this many bits, 2 to 16, times a scale per filter")
	flags.BoolVar(&f.requireBinary, "require-binary", false, "fail if less than half of the multiplications are binary")
	flags.BoolVar(&f.explain, "explain", false, "say for each layer which rule made it binary or of few bits, or how narrowly its weights miss it")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	for name, values := range map[string][]string{
		"from": namesOf(), "mode": {"thresh", "norm", "int"},
		"input": {"uint8", "float32"}, "sign-zero": {"plus", "minus"}, "detection": {"yolox", "yolov8"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// convert reads a model and reports on it.
func (f *convertFlags) convert(ctx context.Context, from reader, in string) (*conversion, *bcnn.Network, error) {
	if err := f.setLabels(); err != nil {
		return nil, nil, err
	}
	m, err := from.load(ctx, f, in)
	if err != nil {
		return nil, nil, err
	}
	if !m.named && f.onnx.Name == "" {
		m.net.Name = stem(f.output)
	}
	program, err := lower.Compile(ctx, m.net, lower.Options{})
	if err != nil {
		return nil, nil, files.Name(in, err)
	}
	findings := append(m.findings, program.Findings...)
	var rounded []lower.RoundedLayer
	if f.firstWeights > 0 {
		var net *bcnn.Network
		if net, rounded, err = lower.RoundFirst(ctx, program.Network, f.firstWeights, lower.Options{}); err == nil {
			program, err = lower.Compile(ctx, net, lower.Options{})
		}
		if err != nil {
			return nil, nil, files.Name(in, err)
		}
		findings = append(findings, program.Findings...)
	}
	c := &conversion{Input: in, Output: f.output, Report: summary.New(program.Network, program.Plan)}
	if m.describe != nil {
		m.describe(c)
	}
	for _, l := range rounded {
		c.Rounded = append(c.Rounded, roundedLayer(l))
	}
	if f.explain {
		for _, l := range findings {
			c.Findings = append(c.Findings, finding{l.Layer, string(l.Rule), l.Text, l.Deviation, l.Nearly})
		}
	}
	return c, program.Network, nil
}

// reader returns the format of the model that is to be converted.
func (f *convertFlags) reader(in string) (reader, error) {
	list := readers()
	kind := recognize.Format(0)
	if f.from == "" {
		var err error
		if kind, err = recognize.Path(in); err != nil {
			return reader{}, err
		}
	}
	for _, s := range list {
		if f.from == s.name && s.name != "bcnn" || f.from == "" && s.kind == kind {
			return s, nil
		}
	}
	return reader{}, usagef("--from %q: want %s", f.from, text.List(namesOf(), "or"))
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
	if f.onnx.Detection = onnx.Detection(f.detection); f.detection != "" && !slices.Contains(onnx.Detections(), f.onnx.Detection) {
		return usagef("--detection %q: want yolox or yolov8", f.detection)
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
func loadONNX(ctx context.Context, f *convertFlags, in string) (imported, error) {
	net, r, err := onnx.Load(ctx, in, f.onnx)
	if err != nil {
		return imported{}, err
	}
	return imported{net, net.Name != stem(in), r.Findings, func(c *conversion) { c.ofONNX(r) }}, nil
}

// loadBMXNet imports a network of BMXNet, whose input the same flags describe.
func loadBMXNet(ctx context.Context, f *convertFlags, in string) (imported, error) {
	o := &f.onnx
	net, r, err := bmxnet.Load(ctx, in, bmxnet.Options{
		Params: f.params, InputShape: o.InputShape, InputType: o.InputType, Mean: o.Mean, Scale: o.Scale,
		Name: o.Name, Labels: o.Labels, Resize: o.Resize,
	})
	if err != nil {
		return imported{}, err
	}
	return imported{net: net, findings: r.Findings}, nil
}

// loadDarknet imports a network of Darknet with those of the options that it has.
func loadDarknet(ctx context.Context, f *convertFlags, in string) (imported, error) {
	o := &f.onnx
	net, r, err := darknet.Load(ctx, in, darknet.Options{
		Weights: f.params, InputType: o.InputType, Mean: o.Mean, Scale: o.Scale, Name: o.Name, Labels: o.Labels, Resize: o.Resize,
	})
	if err != nil {
		return imported{}, err
	}
	return imported{net: net, findings: r.Findings}, nil
}

// loadOpenVINO imports a network of OpenVINO, whose input the same flags describe.
func loadOpenVINO(ctx context.Context, f *convertFlags, in string) (imported, error) {
	o := &f.onnx
	net, r, err := openvino.Load(ctx, in, openvino.Options{
		Params: f.params, InputShape: o.InputShape, InputType: o.InputType, Mean: o.Mean, Scale: o.Scale,
		Name: o.Name, Labels: o.Labels, Resize: o.Resize,
	})
	if err != nil {
		return imported{}, err
	}
	return imported{net: net, findings: r.Findings}, nil
}

// loadTFLite imports a TensorFlow Lite model with those of the options that it has.
func loadTFLite(ctx context.Context, f *convertFlags, in string) (imported, error) {
	o := &f.onnx
	net, r, err := tflite.Load(ctx, in, tflite.Options{
		InputType: o.InputType, Mean: o.Mean, Scale: o.Scale, Name: o.Name, Labels: o.Labels, Resize: o.Resize,
	})
	if err != nil {
		return imported{}, err
	}
	return imported{net, false, r.Findings, func(c *conversion) { c.ofTFLite(r) }}, nil
}

// loadBinCNN reads a folder of weights of BinCNN.
func loadBinCNN(ctx context.Context, f *convertFlags, in string) (imported, error) {
	mode := bincnn.Mode(f.mode)
	if !slices.Contains([]bincnn.Mode{bincnn.Thresh, bincnn.Norm, bincnn.Int}, mode) {
		return imported{}, usagef("--mode %q: want thresh, norm or int", f.mode)
	}
	net, err := bincnn.Load(ctx, in, mode)
	return imported{net: net}, err
}

// loadZoo makes a network of the zoo.
func loadZoo(_ context.Context, _ *convertFlags, in string) (imported, error) {
	if !slices.Contains(zoo.Names(), in) {
		return imported{}, usagef("--from zoo has no %q: want %s", in, strings.Join(zoo.Names(), ", "))
	}
	net, err := zoo.New(in, measure.Seed)
	return imported{net: net, named: true}, err
}

// stem is the name of the network in a file that has no other.
func stem(path string) string {
	return text.Escape(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

// setLabels reads the file of labels.
func (f *convertFlags) setLabels() (err error) {
	if f.labels != "" {
		f.onnx.Labels, err = readLabels(f.labels)
	}
	return err
}

// maxLabels is the largest size of a file of labels: more than a model file
// can hold.
const maxLabels = 4 << 20

// readLabels reads a text file with one label per line.
func readLabels(file string) ([]string, error) {
	text, err := files.ReadText(file, maxLabels)
	if err != nil {
		return nil, err
	}
	var labels []string
	for line := range strings.Lines(text) {
		if l := strings.TrimSpace(line); l != "" {
			labels = append(labels, l)
		}
	}
	if len(labels) == 0 {
		return nil, files.Name(file, errors.New("no labels; want one per line"))
	}
	return labels, nil
}
