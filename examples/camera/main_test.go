package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
	"github.com/bitcnn/bitcnn/vision"
)

const digits = "../../models/digits.bcnn"

func sample(digit int) string { return fmt.Sprintf("../../internal/samples/digit-%d.png", digit) }

// frameOf is an image of a digit as ffmpeg writes it.
func frameOf(t *testing.T, digit int) []byte {
	f, err := os.Open(sample(digit))
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	rgba := image.NewRGBA(img.Bounds())
	draw.Draw(rgba, rgba.Rect, img, image.Point{}, draw.Src)
	return rgba.Pix
}

func decode(t *testing.T, text string) (list []seen) {
	for line := range strings.Lines(text) {
		var s seen
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		list = append(list, s)
	}
	return list
}

// A frame that comes when the one before has been answered is not left out.
func TestFrames(t *testing.T) {
	camera, in := io.Pipe()
	out, lines := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(t.Context(), camera, lines, "28x28", digits, "cpu")
		lines.Close()
	}()
	answers := bufio.NewReader(out)
	for i := range 20 {
		go in.Write(frameOf(t, i%10))
		line, err := answers.ReadString('\n')
		require.NoError(t, err)
		s := decode(t, line)[0]
		require.GreaterOrEqual(t, s.Micros, 0.0) // clocks may be coarse
		require.Greater(t, s.Probability, 0.5)
		require.Equal(t, seen{Frame: i, Label: fmt.Sprint(i % 10), Probability: s.Probability, Micros: s.Micros}, s)
	}
	require.NoError(t, in.Close())
	require.NoError(t, <-ended)
}

// atEnd calls back when all has been read.
type atEnd struct {
	io.Reader
	call func()
}

func (r atEnd) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF {
		r.call()
	}
	return n, err
}

// Of frames that come while one is classified the last one counts.
func TestLateFrames(t *testing.T) {
	const pixels = 2 * 3 * 4
	busy, goOn := make(chan struct{}), make(chan struct{})
	camera, in := io.Pipe()
	classify := func(_ context.Context, img image.Image) (vision.Result, error) {
		first := img.(*image.RGBA).Pix[0]
		if first == 0 {
			close(busy)
			<-goOn // until all frames have come
		}
		return vision.Result{Class: vision.Class{Label: fmt.Sprint(first)}}, nil
	}
	go func() {
		for i := range 6 {
			in.Write(bytes.Repeat([]byte{byte(i)}, pixels))
			if i == 0 {
				<-busy
			}
		}
		in.Close()
	}()
	var out bytes.Buffer
	err := watch(t.Context(), atEnd{camera, func() { close(goOn) }}, &out, image.Pt(3, 2), classify)
	require.NoError(t, err)
	list := decode(t, out.String())
	require.Len(t, list, 2)
	require.Equal(t, seen{Frame: 0, Label: "0", Micros: list[0].Micros}, list[0])
	require.Equal(t, seen{Frame: 5, Dropped: 4, Label: "5", Micros: list[1].Micros}, list[1])
}

func TestErrors(t *testing.T) {
	frame := frameOf(t, 7)
	broken := errors.New("unplugged")
	for says, in := range map[string]io.Reader{
		"frame 1 ends too early": io.MultiReader(bytes.NewReader(frame), bytes.NewReader(frame[:9])),
		"frame 1: unplugged":     io.MultiReader(bytes.NewReader(frame), readerOf(func([]byte) (int, error) { return 0, broken })),
	} {
		var out bytes.Buffer
		require.ErrorContains(t, run(t.Context(), in, &out, "28x28", digits, "cpu"), says)
		require.Len(t, decode(t, out.String()), 1, "what was complete has been answered")
	}
	for _, size := range []string{"", "28", "0x28", "28x-1", "28x28x1", "28x28 ", "100000x1"} {
		require.ErrorContains(t, run(t.Context(), nil, nil, size, digits, "cpu"), "want one such as 640x480", size)
	}
	require.ErrorContains(t, run(t.Context(), nil, nil, "28x28", "main.go", "cpu"), "main.go: ")
	full := errors.New("full")
	err := run(t.Context(), bytes.NewReader(frame), writerOf(func([]byte) (int, error) { return 0, full }), "28x28", digits, "cpu")
	require.ErrorIs(t, err, full)
}

type readerOf func([]byte) (int, error)

func (f readerOf) Read(b []byte) (int, error) { return f(b) }

type writerOf func([]byte) (int, error)

func (f writerOf) Write(b []byte) (int, error) { return f(b) }

// What ffmpeg makes of images, as it would of a camera.
func TestFFmpeg(t *testing.T) {
	tool, err := exec.LookPath("ffmpeg")
	if err != nil {
		testenv.Absent(t, "ffmpeg", err)
	}
	ffmpeg := exec.CommandContext(t.Context(), tool, "-loglevel", "error", "-i", sample(7), "-f", "rawvideo", "-pix_fmt", "rgba",
		"-s", "28x28", "-")
	in, err := ffmpeg.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, ffmpeg.Start())
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), in, &out, "28x28", digits, "cpu"))
	require.NoError(t, ffmpeg.Wait())
	list := decode(t, out.String())
	require.Len(t, list, 1)
	require.Equal(t, "7", list[0].Label)
}
