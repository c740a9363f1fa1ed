package main

import (
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

const defaultModel = "vehiclenet"

func newClassify(env *environment) *cobra.Command {
	var model, device string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "classify IMAGE...",
		Short: "Say what is on images",
		Long: `Classify images (JPEG, PNG, GIF, BMP): label, probability, time and
device, a line each.

A photo is resized so that its shorter side fits the model and the centre is
cropped; a picture that already has the model's size is used as it is. The time
is that of one inference, without reading, decoding and resizing the image.
An image that cannot be read is reported, the others are still classified, and
the exit code is 1.

With --json, one object per line: file, label, index, probability, logits,
device, us (microseconds); and file_bytes, the name in base64, where it is not
UTF-8.`,
		Example: `  bcnn classify photo.jpg
  bcnn classify --model vehiclenet-lbp --device cpu *.jpg
  bcnn classify --model digits --json digit.png`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			net, err := loadModel(cmd.Context(), model)
			if err != nil {
				return err
			}
			if err := checkImages(model, net); err != nil {
				return err
			}
			plan, err := bcnn.Lower(cmd.Context(), net, bcnn.LowerOptions{})
			if err != nil {
				return err
			}
			dev, err := backend.Open(device)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			r, err := newRunner(ctx, dev, plan, backend.Options{})
			if err != nil {
				return err
			}
			defer r.Close()

			width := 0
			for _, file := range files {
				width = max(width, utf8.RuneCountInString(text.Escape(file)))
			}
			var failed error
			for _, file := range files {
				img, err := vision.DecodeFile(file)
				if err == nil {
					var c classification
					if c, err = r.classify(ctx, file, img); err == nil {
						if asJSON {
							err = env.out.json(c)
						} else {
							env.out.printf("%-*s  %s  %.1f %%  %.0f µs  %s\n", width, file, c.Label, 100*c.Probability, c.Micros, c.Device)
						}
					}
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if env.out.err != nil {
					return env.out.err
				}
				if err != nil {
					report(env.stderr, err)
					failed = errReported
				}
			}
			return failed
		},
	}
	modelFlag(cmd, &model, defaultModel, "built-in model, .bcnn or .onnx file")
	deviceFlag(cmd, &device)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image")
	return cmd
}

// quantity writes a number with its noun.
func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
