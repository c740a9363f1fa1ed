package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSamples(t *testing.T) {
	list := times{1, 3, 5, 7, 9, 11, 13}
	require.Equal(t, []sample{{2, 2}, {2, 6}, {3, 11}}, list.samples(3))
	require.Len(t, list.samples(10), 7)
	require.Equal(t, []sample{{7, 7}}, list.samples(1))
	require.Empty(t, times{}.samples(3))
}

func TestPrintSamples(t *testing.T) {
	var text strings.Builder
	printSamples(&output{w: &text}, "Op", []any{"op", "a b/c", "threads", 2}, []sample{{3, 2 * time.Microsecond}, {4, time.Microsecond}}, 6000)
	require.Equal(t, "BenchmarkOp/op=a_b_c/threads=2\t3\t2000 ns/op\t3.00 GMAC/s\n"+
		"BenchmarkOp/op=a_b_c/threads=2\t4\t1000 ns/op\t6.00 GMAC/s\n", text.String())
}

// What bench prints in the formats for other programs is well formed.
func TestBenchFormats(t *testing.T) {
	model := saveLightNet(t)
	text := succeed(t, "bench", "--model", model, "--device", "cpu", "--runs", "20", "--format", "benchstat")
	require.Regexp(t, `\Agoos: \w+\ngoarch: \w+\npkg: \S+\n(BenchmarkModel/model=light\.bcnn/device=cpu/isa=\w+/batch=1\t2\t\d+ ns/op\t\S+ GMAC/s\n){10}\z`, text)
	text = succeed(t, "bench", "--ops=pool5,c16", "--device", "cpu", "--runs", "10", "--format", "benchstat", "--isa", "generic")
	require.Regexp(t, `\n(BenchmarkOp/op=pool5/device=cpu/isa=generic/threads=1/batch=1\t2\t\d+ ns/op\n){5}(BenchmarkOp/op=c16/.*GMAC/s\n){5}\z`, text)

	for args, bars := range map[string]int{
		"bench --format svg --device cpu --runs 3 --model " + model:   2,
		"bench --format svg --device cpu --runs 3 --ops=pool5,fc1024": 2,
	} {
		text := succeed(t, strings.Fields(args)...)
		rects := 0
		for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, text)
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
				rects++
			}
		}
		require.Equal(t, 1+bars, rects, "a background and a bar for each")
	}
}

func TestSVGEscapes(t *testing.T) {
	var text strings.Builder
	printSVG(&output{w: &text}, []chart{{title: "a<b", bars: []bar{{"x&y", `"n"`, 0.5}}}})
	require.Contains(t, text.String(), "a&lt;b</text>")
	require.Contains(t, text.String(), "x&amp;y</text>")
	require.Contains(t, text.String(), `width="200.0"`)
}
