package main

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

// detection is the result for one image, and a line of detect --json.
type detection struct {
	File      string       `json:"file"`
	FileBytes []byte       `json:"file_bytes,omitempty"`
	Width     int          `json:"width"`
	Height    int          `json:"height"`
	Boxes     []vision.Box `json:"boxes"`
	Device    string       `json:"device"`
	Micros    float64      `json:"us"`
}

// detectFlags are the flags by which detect and eval select boxes and prepare photos.
type detectFlags struct {
	threshold, overlap float64
	fit, channels      string
	background         [3]uint8
}

func (f *detectFlags) add(cmd *cobra.Command, threshold string) {
	fractionFlag(cmd, &f.threshold, "threshold", "minimum score of a box; 0 means "+threshold)
	fractionFlag(cmd, &f.overlap, "overlap", "maximum overlap (intersection over union) of two boxes of a class; beyond it the lower score is dropped; 0 means as the model says")
	cmd.Flags().StringVar(&f.fit, "fit", "", "how photos are fitted into the input: stretch, letterbox or crop (default as the model says)")
	cmd.Flags().StringVar(&f.channels, "channels", "", "channel order of the input: rgb or bgr (default as the model says)")
	for name, values := range map[string][]string{"fit": {"stretch", "letterbox", "crop"}, "channels": {"rgb", "bgr"}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	backgroundFlag(cmd, &f.background)
}

// options returns the options of a detector by a network.
func (f *detectFlags) options(net *bcnn.Network) (vision.DetectorOptions, error) {
	o := vision.DetectorOptions{Threshold: float32(f.threshold), Overlap: float32(f.overlap)}
	o.Background = f.background
	photo := bcnn.Photo{}
	if p := net.Inputs[0].Photo; p != nil {
		photo = *p
	}
	switch f.fit {
	case "":
	case "crop":
		photo.Fit = bcnn.FitCrop
	case string(bcnn.FitStretch), string(bcnn.FitLetterbox):
		photo.Fit = bcnn.Fit(f.fit)
	default:
		return o, usagef("--fit %q: want stretch, letterbox or crop", f.fit)
	}
	switch f.channels {
	case "":
	case "rgb", "bgr":
		photo.BGR = f.channels == "bgr"
	default:
		return o, usagef("--channels %q: want rgb or bgr", f.channels)
	}
	if f.fit != "" || f.channels != "" {
		o.Photo = &photo
	}
	return o, nil
}

// openDetector returns a detector by a network on a device, and its session.
func openDetector(ctx context.Context, device, model string, net *bcnn.Network, batch int, opts vision.DetectorOptions) (*vision.Detector, *bitcnn.Session, error) {
	s, err := bitcnn.Open(ctx, net, bitcnn.Options{Device: device, MaxBatch: batch})
	if err != nil {
		return nil, nil, err
	}
	d, err := vision.NewDetector(s, opts)
	if err != nil {
		s.Close()
		return nil, nil, files.Name(model, err)
	}
	return d, s, nil
}

func newDetect(env *environment) *cobra.Command {
	var model, device, draw, coco string
	var f detectFlags
	top := 0
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "detect --model MODEL IMAGE|FOLDER|-...",
		Short: "Find objects in images",
		Long: `Find objects in images with a detector, and print label, score and box, one line
each: left, top, right and bottom edge in pixels of the photo. Images are read as
by 'bcnn classify'; one without objects has a line with "nothing".

A detector is a network of OpenVINO that ends in a DetectionOutput or RegionYolo,
one of Darknet with yolo or region sections, an ONNX file that describes its boxes,
or a .bcnn file made of one. The file says how photos are fitted and which boxes
count, unless flags override it. Boxes are the same on every device.

--draw writes the photo with its boxes to a PNG file (of a stream, the newest
image), or photos to a folder; large JPEGs are drawn at 1/2, 1/4 or 1/8 of their
size. --coco writes COCO results: image_id is the number in the name of the file,
else its name without the extension, category_id counts classes from 1, without the
background.

With --json, one object per line: file, width, height, boxes (label, index, score,
x0, y0, x1, y1), device, us (microseconds of the inference); file_bytes, the name in
base64, if it is not UTF-8.`,
		Example: `  bcnn detect --model face-detection-adas-binary-0001.xml photo.jpg --draw faces.png
  bcnn detect --model faces.bcnn --threshold 0.8 --json photos
  bcnn detect --model yolov3-tiny_xnor.cfg photos --draw drawn --coco results.json
  ffmpeg -i /dev/video0 -f image2pipe -c:v mjpeg - | bcnn detect --model faces.bcnn -`,
		Args: someArguments(someImages),
		RunE: func(cmd *cobra.Command, args []string) error {
			if model == "" {
				return usagef("detect needs --model MODEL, a detector")
			}
			if err := checkSources(args); err != nil {
				return err
			}
			ctx := cmd.Context()
			net, err := loadModel(ctx, model)
			if err != nil {
				return err
			}
			opts, err := f.options(net)
			if err != nil {
				return err
			}
			opts.Top = top
			d, session, err := openDetector(ctx, device, model, net, 1, opts)
			if err != nil {
				return err
			}
			defer session.Close()

			job := &detecting{env: env, detector: d, device: session.Device().ID, json: asJSON}
			sources := listSources(ctx, args)
			if draw != "" {
				if job.drawer, err = newDrawer(draw, sources); err != nil {
					return err
				}
			}
			if coco != "" {
				job.results = []cocoResult{}
			}
			job.width = widest(sources)
			for _, label := range d.Labels() {
				job.labels = max(job.labels, utf8.RuneCountInString(text.Escape(label)))
			}
			err = eachImage(ctx, sources, cmd.InOrStdin(), d.Preprocessing(), job.prepare, job.detect)
			if coco != "" && err == nil {
				err = writeJSON(coco, job.results)
			}
			return cmp.Or(err, job.failed)
		},
	}
	modelFlag(cmd, &model, "", "a detector: .bcnn, .xml or .cfg file")
	deviceFlag(cmd, &device)
	f.add(cmd, "0.5, or the model's if that is higher")
	intVar(cmd, &top, "top", 0, maxChannels, "maximum number of boxes per image; 0 means as the model says")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image")
	cmd.Flags().StringVar(&draw, "draw", "", "write the photo with its boxes to this .png file, or the photos to this folder")
	outputVar(cmd, &coco, "coco", "", "write the boxes to this file, as COCO results")
	return cmd
}

// detecting is a run of detect.
type detecting struct {
	env      *environment
	detector *vision.Detector
	device   string
	// The widths of the names of files and of classes.
	width, labels int
	json          bool
	drawer        *drawer      // if photos are to be drawn
	results       []cocoResult // nil if they are not wanted
	failed        error        // where something could not be searched, which has been reported
}

// framed is an image as the network reads it, with what it shows of the photo.
type framed struct {
	in    bcnn.Tensor
	frame vision.Frame
	photo image.Image // if it is to be drawn
}

func (j *detecting) prepare(ctx context.Context, img image.Image) (p framed, err error) {
	of := j.detector.Preprocessing()
	p.in = bcnn.NewTensor(of.Input.DType, 1, of.Input.Shape)
	if err = of.Fill(ctx, p.in, 0, img); err == nil {
		p.frame, err = of.Frame(img)
	}
	if j.drawer != nil {
		p.photo = img
	}
	return p, err
}

// detect finds the objects on an image and prints them, or reports why it cannot.
func (j *detecting) detect(ctx context.Context, file string, p framed, err error) error {
	var found []vision.Detections
	if err == nil {
		found, err = j.detector.DetectTensor(ctx, p.in, p.frame)
		err = files.Name(file, err)
	}
	if err == nil && j.drawer != nil {
		err = j.drawer.write(file, p.photo, found[0])
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		report(j.env.stderr, err)
		j.failed = errReported
		return j.env.out.err
	}
	d := found[0]
	if j.results != nil {
		j.results = append(j.results, cocoResults(file, d.Boxes, j.detector.Background())...)
	}
	if j.json {
		return j.env.out.json(detection{
			file, nameBytes(file), d.Width, d.Height, d.Boxes, j.device, float64(d.Time.Nanoseconds()) / 1000,
		})
	}
	for _, b := range d.Boxes {
		j.env.out.printf("%-*s  %-*s  %.3f  %.0f %.0f %.0f %.0f\n", j.width, file, j.labels, b.Label,
			float64(b.Score), float64(b.X0), float64(b.Y0), float64(b.X1), float64(b.Y1))
	}
	if len(d.Boxes) == 0 {
		j.env.out.printf("%-*s  nothing\n", j.width, file)
	}
	return j.env.out.err
}

// cocoResult is a box in COCO's format for results, https://cocodataset.org/#format-results.
type cocoResult struct {
	Image    any        `json:"image_id"`
	Category int        `json:"category_id"`
	Box      [4]float32 `json:"bbox"` // left, top, width, height
	Score    float32    `json:"score"`
}

func cocoResults(file string, boxes []vision.Box, background int) []cocoResult {
	list := make([]cocoResult, len(boxes))
	for i, b := range boxes {
		category := b.Index + 1
		if background >= 0 && b.Index > background {
			category--
		}
		list[i] = cocoResult{imageID(file), category, [4]float32{b.X0, b.Y0, b.X1 - b.X0, b.Y1 - b.Y0}, b.Score}
	}
	return list
}

// imageID is what COCO calls an image: a number, if its file is named by one.
func imageID(file string) any {
	name := stem(file)
	if n, err := strconv.Atoi(name); err == nil && n >= 0 {
		return n
	}
	return name
}

// describeBoxes says how a detector makes boxes, and what it wants of photos; nothing of other networks.
func describeBoxes(net *bcnn.Network) string {
	d := net.Detection
	if d == nil {
		return ""
	}
	words := []string{text.Count(d.Classes, "class")}
	if d.Classes != 1 {
		words[0] = fmt.Sprintf("%d classes", d.Classes)
	}
	if d.Background >= 0 {
		words[0] += fmt.Sprintf(" (%d is the background)", d.Background)
	}
	for _, h := range d.Heads {
		switch h := h.(type) {
		case bcnn.SSD:
			words = append(words, fmt.Sprintf("SSD of %d priors", len(h.Priors)/4))
		case bcnn.YOLO:
			words = append(words, "YOLO of "+text.Count(len(h.Anchors), "anchor"))
		case bcnn.DFL:
			words = append(words, fmt.Sprintf("DFL of %d bins", h.Bins))
		}
	}
	words = append(words, fmt.Sprintf("scores above %g, overlaps up to %g", d.Threshold, d.Overlap))
	photos := []string{}
	if p := net.Inputs[0].Photo; p != nil {
		photos = append(photos, cmp.Or(string(p.Fit), "crop"))
		if p.Corner {
			photos = append(photos, "corner")
		}
		if p.Grey != 0 {
			photos = append(photos, fmt.Sprintf("grey %d", p.Grey))
		}
		if p.BGR {
			photos = append(photos, "bgr")
		}
		if len(p.Mean) > 0 {
			photos = append(photos, fmt.Sprintf("mean %v", p.Mean))
		}
		if len(p.Scale) > 0 {
			photos = append(photos, fmt.Sprintf("scale %v", p.Scale))
		}
		words = append(words, "photos: "+strings.Join(photos, " "))
	}
	return strings.Join(words, "; ")
}
