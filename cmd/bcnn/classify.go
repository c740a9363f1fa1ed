package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/parallel"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

const defaultModel = "vehiclenet"

// standardInput is the name by which an image is read from standard input.
const standardInput = "-"

// classification is the result for one image, and a line of classify --json.
type classification struct {
	File      string `json:"file"`
	FileBytes []byte `json:"file_bytes,omitempty"`
	class
	Logits []float32 `json:"logits"`
	Top    []class   `json:"top,omitempty"`
	Device string    `json:"device"`
	Micros float64   `json:"us"`
}

type class struct {
	Label       string  `json:"label"`
	Index       int     `json:"index"`
	Probability float64 `json:"probability"`
}

func newClassify(env *environment) *cobra.Command {
	var model, device string
	top := 1
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "classify IMAGE|FOLDER|-...",
		Short: "Say what is on images",
		Long: `Classify images (JPEG, PNG, GIF, BMP): label, probability, time and
device, a line each. Of a folder, all images in it and below it are classified
whose names end in .jpg, .jpeg, .png, .gif or .bmp; - is an image from standard
input.

A photo is resized so that its shorter side fits the model and the centre is
cropped; a picture that already has the model's size is used as it is. The time
is that of one inference, without reading, decoding and resizing the image.
An image that cannot be read is reported, the others are still classified, and
the exit code is 1.

With --json, one object per line: file, label, index, probability, logits,
device, us (microseconds); and file_bytes, the name in base64, where it is not
UTF-8; with --top above 1 also top, the likeliest classes.`,
		Example: `  bcnn classify photo.jpg
  bcnn classify --model vehiclenet-lbp --device cpu --top 3 photos
  curl -s https://example.com/photo.jpg | bcnn classify -
  bcnn classify --model digits --json digit.png`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if i := slices.Index(args, standardInput); i >= 0 && slices.Contains(args[i+1:], standardInput) {
				return usagef("standard input (-) can be read only once")
			}
			ctx := cmd.Context()
			net, err := loadModel(ctx, model)
			if err != nil {
				return err
			}
			if err := checkImages(model, net); err != nil {
				return err
			}
			c, session, err := openClassifier(ctx, device, net, 1)
			if err != nil {
				return err
			}
			defer session.Close()
			id := session.Device().ID

			sources := listSources(ctx, args)
			width := 0
			for _, s := range sources {
				width = max(width, utf8.RuneCountInString(text.Escape(s.file)))
			}
			// Images are prepared at the same time, and run one after the other, so that
			// the time is that of one.
			type prepared struct {
				in  bcnn.Tensor
				err error
			}
			prepare := func(i int) prepared {
				img, err := sources[i].decode(ctx, cmd.InOrStdin())
				if err != nil {
					return prepared{err: err}
				}
				in := bcnn.NewTensor(net.Inputs[0].DType, 1, net.Inputs[0].Shape)
				return prepared{in, files.Name(sources[i].file, c.Preprocessing().Fill(in, 0, img))}
			}
			var failed error
			err = parallel.InOrder(ctx, len(sources), dataset.AtOnce(), prepare, func(i int, p prepared) error {
				err := p.err
				var results []vision.Result
				if err == nil {
					results, err = c.ClassifyTensor(ctx, p.in)
				}
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err != nil:
					report(env.stderr, files.Name(sources[i].file, err))
					failed = errReported
				case asJSON:
					return env.out.json(newClassification(sources[i].file, results[0], top, id))
				default:
					r := results[0]
					env.out.printf("%-*s  %s  %.0f µs  %s\n", width, sources[i].file, classes(r.Top(top)), measure.Micros(r.Time), id)
				}
				return env.out.err
			})
			if err != nil {
				return err
			}
			return failed
		},
	}
	modelFlag(cmd, &model, defaultModel, "built-in model, .bcnn, .onnx or .tflite file")
	deviceFlag(cmd, &device)
	wholeFlag(cmd, &top, "top", 1, maxChannels, "number of the likeliest classes to print")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image")
	return cmd
}

func newClassification(file string, r vision.Result, top int, device string) classification {
	c := classification{File: file, FileBytes: nameBytes(file), class: newClass(r.Class), Logits: r.Logits, Device: device, Micros: measure.Micros(r.Time)}
	if top > 1 {
		for _, k := range r.Top(top) {
			c.Top = append(c.Top, newClass(k))
		}
	}
	return c
}

func newClass(c vision.Class) class { return class{c.Label, c.Index, c.Probability} }

// classes writes classes with their probabilities.
func classes(list []vision.Class) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = fmt.Sprintf("%s  %.1f %%", c.Label, 100*c.Probability)
	}
	return strings.Join(words, ", ")
}

// source is an image to be classified, or the reason why there is none.
type source struct {
	file string
	err  error
}

// listSources returns what the arguments name: files, standard input, and the
// images of folders.
func listSources(ctx context.Context, args []string) []source {
	var all []source
	for _, arg := range args {
		if info, err := os.Stat(arg); arg == standardInput || err != nil || !info.IsDir() {
			all = append(all, source{file: arg}) // opening it will tell what is wrong
			continue
		}
		images, err := dataset.Images(ctx, arg)
		if err == nil && len(images) == 0 {
			err = errors.New("no images in this folder and those below it (*.jpg, *.jpeg, *.png, *.gif, *.bmp)")
		}
		if err != nil {
			all = append(all, source{arg, files.Name(arg, err)})
		}
		for _, file := range images {
			all = append(all, source{file: file})
		}
	}
	return all
}

func (s source) decode(ctx context.Context, stdin io.Reader) (image.Image, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.file != standardInput {
		return vision.DecodeFile(s.file)
	}
	// Reading cannot be interrupted: it is left behind.
	type decoded struct {
		img image.Image
		err error
	}
	done := make(chan decoded, 1)
	go func() {
		img, err := vision.Decode(stdin)
		done <- decoded{img, files.Name("standard input", err)}
	}()
	select {
	case d := <-done:
		return d.img, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
