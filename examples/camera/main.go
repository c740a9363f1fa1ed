// Camera says what each frame of a camera shows, one line of JSON for each:
//
//	ffmpeg -loglevel error -f v4l2 -i /dev/video0 -f rawvideo -pix_fmt rgba -s 640x480 - |
//		go run ./examples/camera -size 640x480 model.onnx
//
// It answers what is there now: frames that have come while it was busy are left out, but for
// the newest. (Without that, and for files, bcnn classify - reads images one after the other.)
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/vision"
)

func main() {
	size := flag.String("size", "640x480", "width and height of the frames, RGBA, on standard input")
	device := flag.String("device", "", "device, such as cpu or cuda:0; the best one if empty")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdin, os.Stdout, *size, flag.Arg(0), *device); err != nil {
		fmt.Fprintln(os.Stderr, "camera:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, size, file, device string) error {
	frame, err := parseSize(size)
	if err != nil {
		return err
	}
	model, err := bitcnn.Load(ctx, file, bitcnn.LoadOptions{})
	if err != nil {
		return err
	}
	session, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: device})
	if err != nil {
		return err
	}
	defer session.Close()
	classifier, err := vision.NewClassifier(session, vision.Options{})
	if err != nil {
		return err
	}
	return watch(ctx, in, out, frame, classifier.Classify)
}

const maxSide = 1 << 14

func parseSize(s string) (image.Point, error) {
	width, height, _ := strings.Cut(s, "x")
	x, errX := strconv.Atoi(width)
	y, errY := strconv.Atoi(height)
	if errX != nil || errY != nil || min(x, y) < 1 || max(x, y) > maxSide {
		return image.Point{}, fmt.Errorf("the size %q, want one such as 640x480, of at most %d pixels a side", s, maxSide)
	}
	return image.Pt(x, y), nil
}

// seen is a line of the output.
type seen struct {
	Frame       int     `json:"frame"`   // from 0 on
	Dropped     int     `json:"dropped"` // frames before it that were left out
	Label       string  `json:"label"`
	Probability float64 `json:"probability"`
	Micros      float64 `json:"us"` // from the end of the frame to the answer
}

// watch classifies the newest frame that in has, again and again, until there are no more.
func watch(ctx context.Context, in io.Reader, out io.Writer, size image.Point,
	classify func(context.Context, image.Image) (vision.Result, error)) error {
	f := newFrames(size)
	read := make(chan error, 1)
	go func() { read <- f.read(in) }()
	lines, next := json.NewEncoder(out), 0
	for frame := range f.newest {
		result, err := classify(ctx, frame.image)
		if err != nil {
			return err
		}
		line := seen{frame.number, frame.number - next, result.Label, result.Probability, micros(time.Since(frame.came))}
		if err := lines.Encode(line); err != nil {
			return err
		}
		next = frame.number + 1
		f.free <- frame.image
	}
	return <-read
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

type frame struct {
	number int
	came   time.Time
	image  *image.RGBA
}

// frames has at most three frames in memory: the one that is read, the newest that is complete,
// and the one that is classified.
type frames struct {
	newest chan frame
	free   chan *image.RGBA
}

func newFrames(size image.Point) *frames {
	f := &frames{newest: make(chan frame, 1), free: make(chan *image.RGBA, 3)}
	for range cap(f.free) {
		f.free <- image.NewRGBA(image.Rectangle{Max: size})
	}
	return f
}

// read reads frames as fast as they come, so that none waits in a pipe and is old when it is read.
func (f *frames) read(in io.Reader) error {
	defer close(f.newest)
	for number := 0; ; number++ {
		into := <-f.free
		switch _, err := io.ReadFull(in, into.Pix); {
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("frame %d ends too early: is the size right?", number)
		case err != nil:
			return fmt.Errorf("frame %d: %w", number, err)
		}
		select {
		case late := <-f.newest:
			f.free <- late.image
		default:
		}
		f.newest <- frame{number, time.Now(), into}
	}
}
