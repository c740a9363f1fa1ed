package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/pages"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

func newEval(env *environment) *cobra.Command {
	var model, device, data, labelFile, annotations, page string
	var f detectFlags
	size := 32
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval --model MODEL --data DIR | --data IMAGES.idx --labels LABELS.idx | --data DIR --annotations BOXES.json",
		Short: "Measure the accuracy of a model on labelled images",
		Long: `Classify all images of a data set and print the accuracy and the confusion matrix
(rows: true class, columns: predicted class).

The data set is a folder DIR/CLASS/*.jpg (or .jpeg, .png, .gif, .bmp, .webp), with
classes named as in the model ('bcnn inspect MODEL' lists them), or two IDX files as
of MNIST, plain or compressed with gzip. Unreadable images are reported and not
counted; the exit status is 1.

Of a detector, the mean average precision is measured as COCO defines it: for boxes
that overlap by at least 0.5, by at least 0.75, and the mean over ten thresholds from
0.5 to 0.95. The data set is a folder of images with --annotations in COCO's format,
whose categories are named as in the model, or with YOLO's text files, NAME.txt
beside each image or in the folder labels beside images, a line for each box: class,
centre x and y, width, height, as fractions of the image. Boxes with scores above
0.01, or --threshold, count, up to a hundred per class.

--html FILE writes a page with the confusion matrix and the most confident mistakes.

With --json, one object: correct, total, accuracy (0 to 1), confusion (in the order
of the labels); of a detector images, objects, ap, ap50, ap75 and classes, the same
for each.`,
		Example: `  bcnn eval --model vehiclenet --data photos
  bcnn eval --model vehiclenet --data photos --html accuracy.html
  bcnn eval --model digits --data t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz
  bcnn eval --model yolo.bcnn --data val2017 --annotations instances_val2017.json`,
		Args: noArguments("use --model and --data"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" {
				return usagef("eval needs --data DIR, or --data IMAGES.idx --labels LABELS.idx")
			}
			net, err := loadModel(cmd.Context(), model)
			if err != nil {
				return err
			}
			if net.Detection != nil {
				if page != "" || labelFile != "" {
					return usagef("--html and --labels are for classifiers, but %s is a detector", text.Escape(model))
				}
				return f.eval(cmd.Context(), env, evaluated{model, device, data, annotations, size, asJSON}, net)
			}
			if changed := changedOf(cmd, "annotations", "threshold", "overlap", "fit", "channels"); changed != "" {
				return usagef("--%s is for detectors, but %s is not one", changed, text.Escape(model))
			}
			if err := checkImages(model, net); err != nil {
				return err
			}
			shapes, err := net.Shapes()
			if err != nil {
				return err
			}
			names := vision.Labels(net.Labels, shapes[len(shapes)-1].Values())
			set, err := openDataset(cmd.Context(), data, labelFile, names)
			if err != nil {
				return err
			}
			size = min(size, set.Len())
			c, session, err := openClassifier(cmd.Context(), device, net, size, vision.Options{Background: f.background})
			if err != nil {
				return err
			}
			defer session.Close()

			unread := 0
			o := dataset.Observer{Progress: env.progress("eval"), Broken: func(err error) {
				unread++
				report(env.stderr, err)
			}}
			var wrong mistakes
			if page != "" {
				o.Answer = func(i int, r vision.Result) { wrong.add(i, set.Class(i), r) }
			}
			result, err := dataset.Evaluate(cmd.Context(), c, set, size, o)
			if err != nil {
				return err
			}
			if result.Total == 0 {
				return files.Name(data, fmt.Errorf("none of the %d images could be read", set.Len()))
			}
			if asJSON {
				err = env.out.json(result)
			} else {
				printEvaluation(env.out, result, names)
			}
			if err == nil && page != "" {
				err = wrong.page(cmd.Context(), c, set, names, net.Name, result).Write(page)
			}
			if err == nil && unread > 0 {
				report(env.stderr, fmt.Errorf("not counted: %s that could not be read", text.Count(unread, "image")))
				return errReported
			}
			return err
		},
	}
	modelFlag(cmd, &model, defaultModel, "built-in model, .bcnn, .onnx, .tflite, .cfg or .xml file")
	deviceFlag(cmd, &device)
	cmd.Flags().StringVar(&data, "data", "", "folder with a folder of images per class, IDX file of images, or folder of images with boxes")
	cmd.Flags().StringVar(&labelFile, "labels", "", "IDX file of labels")
	cmd.Flags().StringVar(&annotations, "annotations", "", "file of the boxes of all images, in COCO's format (for a detector)")
	f.add(cmd, "0.01")
	intVar(cmd, &size, "batch", 1, maxBatch, "images per device run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	htmlFlag(cmd, &page)
	return cmd
}

// mistakes are the images of an evaluation whose answers are wrong.
type mistakes []mistake

type mistake struct {
	image, class int
	result       vision.Result
}

func (m *mistakes) add(image, class int, r vision.Result) {
	if r.Index != class {
		*m = append(*m, mistake{image, class, r})
	}
}

// page makes a page of what is wrong, the surest first. Their images are read once more.
func (m mistakes) page(ctx context.Context, c *vision.Classifier, set dataset.Set, names []string, title string, result *dataset.Evaluation) *pages.Accuracy {
	slices.SortStableFunc(m, func(a, b mistake) int { return cmp.Compare(b.result.Probability, a.result.Probability) })
	a := &pages.Accuracy{Title: title, Labels: names, Result: result, More: max(0, len(m)-pages.MostMistakes)}
	for _, w := range m[:len(m)-a.More] {
		p := pages.Photo{File: set.Name(w.image), Answers: pages.Answers(w.result.Top(3))}
		if img, err := set.Image(ctx, w.image, c.Preprocessing()); err == nil {
			p.Picture, _ = pages.Thumbnail(ctx, img) // without a picture there is still the name
		}
		a.Mistakes = append(a.Mistakes, pages.Mistake{Photo: p, Class: names[w.class]})
	}
	return a
}

func openDataset(ctx context.Context, data, labelFile string, names []string) (dataset.Set, error) {
	info, err := os.Stat(data)
	if err != nil {
		return nil, files.Name(data, err)
	}
	switch {
	case info.IsDir() && labelFile != "":
		return nil, usagef("--labels is for IDX files, but %s is a folder", text.Escape(data))
	case info.IsDir():
		return dataset.OpenFolder(ctx, data, names)
	case labelFile == "":
		return nil, usagef("%s is a file: --labels must name the IDX file of its labels", text.Escape(data))
	}
	return dataset.OpenIDX(data, labelFile, len(names))
}

func printEvaluation(out *output, e *dataset.Evaluation, names []string) {
	out.printf("accuracy %.2f %% (%d of %d)\n\n", 100*e.Accuracy, e.Correct, e.Total)
	head := row("true \\ predicted")
	for _, name := range names {
		head += rowf("\t%s", name)
	}
	rows := []row{head}
	for class, counts := range e.Confusion {
		r := rowf("%s", names[class])
		for _, n := range counts {
			r += rowf("\t%d", n)
		}
		rows = append(rows, r)
	}
	out.table(rows)
}
