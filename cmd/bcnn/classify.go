package main

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"image"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/pages"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

const defaultModel = "vehiclenet"

// classification is the result for one image, and a line of classify --json.
type classification struct {
	File      string `json:"file"`
	FileBytes []byte `json:"file_bytes,omitempty"`
	vision.Class
	Logits []float32      `json:"logits"`
	Top    []vision.Class `json:"top,omitempty"`
	Device string         `json:"device"`
	Micros float64        `json:"us"`
}

func newClassify(env *environment) *cobra.Command {
	var model, device, page string
	top := 1
	var asJSON bool
	var background [3]uint8
	cmd := &cobra.Command{
		Use:   "classify IMAGE|FOLDER|-...",
		Short: "Classify images",
		Long: `Classify images and print label, probability, time and device, one line each.
Of a folder, all images in it and below are classified (names that end in .jpg,
.jpeg, .png, .gif, .bmp or .webp); links to folders are followed only directly in
it. - reads images from standard input, one after another, as they arrive, such as
those of a camera.

Without --model the network is vehiclenet, a demonstration: it knows six kinds of
vehicles as one road camera sees them, and takes any other photo, also of a car
elsewhere, for one of them. To classify your own photos, train a network with
'python -m bitcnn.train'.

A photo is turned upright, resized so that its shorter side fits the model, and its
centre cropped; a picture of the model's size is used unchanged. The time is that
of one inference, without decoding and resizing. An unreadable image is reported,
the others are still classified, and the exit status is 1. --html FILE writes a
contact sheet, the most doubtful photos first.

With --json, one object per line: file, label, index, probability, logits, device,
us (microseconds); file_bytes, the name in base64, if it is not UTF-8; with --top
above 1 also top, the likeliest classes.`,
		Example: `  bcnn classify --model pets.bcnn photo.jpg
  bcnn classify --model vehiclenet-lbp --device cpu --top 3 photos
  bcnn classify --model pets.bcnn photos --html sheet.html
  curl -s https://example.com/photo.jpg | bcnn classify --model pets.bcnn -
  ffmpeg -i /dev/video0 -f image2pipe -c:v mjpeg - | bcnn classify --model pets.bcnn -
  bcnn classify --model digits --json digit.png`,
		Args: someArguments(someImages),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSources(args); err != nil {
				return err
			}
			ctx := cmd.Context()
			net, err := loadModel(ctx, model)
			if err != nil {
				return err
			}
			if err := checkImages(model, net); err != nil {
				return err
			}
			c, session, err := openClassifier(ctx, device, net, 1, vision.Options{Background: background})
			if err != nil {
				return err
			}
			defer session.Close()

			job := &classifying{env: env, net: net, classifier: c, device: session.Device().ID, top: top, json: asJSON}
			for _, label := range c.Labels() {
				job.labels = max(job.labels, utf8.RuneCountInString(text.Escape(label)))
			}
			if page != "" {
				job.sheet = &pages.Sheet{Title: net.Name, Device: job.device}
			}
			if !asJSON && !cmd.Flags().Changed("model") {
				env.note("using the demo model %s: it knows %s as one road camera sees them, and takes any other photo for one of them; choose another with --model",
					model, strings.Join(c.Labels(), ", "))
			}
			sources := listSources(ctx, args)
			job.width = widest(sources)
			err = eachImage(ctx, sources, cmd.InOrStdin(), c.Preprocessing(), job.prepare, job.classify)
			if page != "" && err == nil {
				err = job.sheet.Write(page)
			}
			return cmp.Or(err, job.failed)
		},
	}
	modelFlag(cmd, &model, defaultModel, "built-in model, .bcnn, .onnx, .tflite, .cfg or .xml file")
	deviceFlag(cmd, &device)
	intVar(cmd, &top, "top", 1, maxChannels, "number of likeliest classes to print")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image")
	backgroundFlag(cmd, &background)
	htmlFlag(cmd, &page)
	return cmd
}

// classifying is a run of classify.
type classifying struct {
	env        *environment
	net        *bcnn.Network
	classifier *vision.Classifier
	device     string
	top        int
	// The widths of the names of files and of classes.
	width, labels int
	json          bool
	sheet         *pages.Sheet // if one is wanted
	failed        error        // where something could not be classified, which has been reported
}

// prepared is an image as the network reads it, and for the contact sheet.
type prepared struct {
	in      bcnn.Tensor
	picture template.URL
}

// prepare makes the input of the network of an image.
func (j *classifying) prepare(ctx context.Context, img image.Image) (p prepared, err error) {
	p.in = bcnn.NewTensor(j.net.Inputs[0].DType, 1, j.net.Inputs[0].Shape)
	if err = j.classifier.Preprocessing().Fill(ctx, p.in, 0, img); err == nil && j.sheet != nil {
		p.picture, err = pages.Thumbnail(ctx, img)
	}
	return p, err
}

// classify classifies and prints an image, or reports why there is none.
func (j *classifying) classify(ctx context.Context, file string, p prepared, err error) error {
	var results []vision.Result
	if err == nil {
		results, err = j.classifier.ClassifyTensor(ctx, p.in)
		err = files.Name(file, err)
	}
	if j.sheet != nil && ctx.Err() == nil {
		if err != nil {
			j.sheet.Broken = append(j.sheet.Broken, err.Error())
		} else {
			j.sheet.Add(pages.Photo{File: file, Picture: p.picture, Answers: pages.Answers(results[0].Top(max(3, j.top)))})
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		report(j.env.stderr, err)
		j.failed = errReported
	case j.json:
		return j.env.out.json(newClassification(file, results[0], j.top, j.device))
	default:
		r := results[0]
		j.env.out.printf("%-*s  %s  %.0f µs  %s\n", j.width, file, classes(r.Top(j.top), j.labels), measure.Micros(r.Time), j.device)
	}
	return j.env.out.err
}

func newClassification(file string, r vision.Result, top int, device string) classification {
	c := classification{File: file, FileBytes: nameBytes(file), Class: r.Class, Logits: r.Logits, Device: device, Micros: measure.Micros(r.Time)}
	if top > 1 {
		c.Top = r.Top(top)
	}
	return c
}

// classes writes classes with their probabilities, in columns for labels of up to width runes.
func classes(list []vision.Class, width int) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = fmt.Sprintf("%-*s  %5.1f %%", width, c.Label, 100*c.Probability)
	}
	return strings.Join(words, ", ")
}
