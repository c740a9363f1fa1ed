package main

import (
	"context"
	"errors"
	"image"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/parallel"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/vision"
)

// standardInput is the name by which an image is read from standard input.
const standardInput = "-"

// someImages is what the commands that read images want as arguments.
const someImages = "an image, a folder of images, or - for standard input"

// checkSources refuses arguments that name standard input twice.
func checkSources(args []string) error {
	if i := slices.Index(args, standardInput); i >= 0 && slices.Contains(args[i+1:], standardInput) {
		return usagef("standard input (-) can be read only once")
	}
	return nil
}

// eachImage prepares the images of sources, several at the same time, and hands them to answer one
// after the other, so that the time of an inference is that of one; those of standard input as they
// come. answer is told of what could not be read or prepared, with the name of the file.
func eachImage[T any](ctx context.Context, sources []source, stdin io.Reader, p vision.Preprocessing,
	prepare func(ctx context.Context, img image.Image) (T, error), answer func(ctx context.Context, file string, prepared T, err error) error) error {
	type prepared struct {
		of  T
		err error
	}
	some := func(sources []source) error {
		return parallel.InOrder(ctx, len(sources), dataset.AtOnce(), func(i int) (made prepared) {
			img, err := sources[i].decode(ctx, p)
			if made.err = err; err == nil {
				made.of, made.err = prepare(ctx, img)
			}
			return made
		}, func(i int, made prepared) error {
			return answer(ctx, sources[i].file, made.of, files.Name(sources[i].file, made.err))
		})
	}
	at := slices.IndexFunc(sources, func(s source) bool { return s.file == standardInput })
	if at < 0 {
		return some(sources)
	}
	if err := some(sources[:at]); err != nil {
		return err
	}
	in := untilDone(ctx, stdin)
	defer in.Close()
	images := vision.NewDecoder(in)
	for n := 0; !images.Done(); n++ {
		var made prepared
		img, err := images.DecodeFor(ctx, p)
		if err == io.EOF && n > 0 {
			break
		}
		switch {
		case err == io.EOF:
			err = errors.New("no image")
		case err == nil:
			made.of, err = prepare(ctx, img)
		}
		if err := answer(ctx, standardInput, made.of, files.Name("standard input", err)); err != nil {
			return err
		}
	}
	return some(sources[at+1:])
}

// widest returns the width of the longest name of sources.
func widest(sources []source) (width int) {
	for _, s := range sources {
		width = max(width, utf8.RuneCountInString(text.Escape(s.file)))
	}
	return width
}

// source is an image to be read, or the reason why there is none.
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
			err = errors.New("no images in this folder or below (*.jpg, *.jpeg, *.png, *.gif, *.bmp, *.webp)")
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

func (s source) decode(ctx context.Context, p vision.Preprocessing) (image.Image, error) {
	if s.err != nil {
		return nil, s.err
	}
	return p.DecodeFile(ctx, s.file)
}
