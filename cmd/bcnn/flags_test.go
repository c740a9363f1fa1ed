package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn/onnx"
)

// numbers are the ranges of all flags that take numbers.
var numbers = map[string]struct{ low, high int }{
	"eval --batch":      {1, 1 << 16},
	"inspect --batch":   {1, 1 << 16},
	"inspect --threads": {0, 1024},
	"classify --top":    {1, maxChannels},
	"detect --top":      {0, maxChannels},
	"run --batch":       {1, 1 << 16},
	"run --threads":     {0, 1024},
	"check --batch":     {1, 1 << 16},
	"check --threads":   {0, 1024},
	"bench --batch":     {1, 1 << 16},
	"bench --threads":   {0, 1024},
	"bench --runs":      {1, 1_000_000},
	"parity --threads":  {0, 1024},
	"convert --resize":  {0, 1 << 16}, "convert --first-weights": {2, 16},
	"serve --batch": {1, 1 << 16}, "serve --threads": {0, 1024}, "serve --parallel": {0, 1024},
	"serve --max-body": {1, 2047}, "serve --max-requests": {1, 1 << 20}, "serve --max-connections": {1, 1 << 20},
}

// A number out of range is a usage error, as is what is no number.
func TestNumbersOutOfRange(t *testing.T) {
	for flag, r := range numbers {
		command, name, _ := strings.Cut(flag, " ")
		for _, value := range []string{
			fmt.Sprint(r.low - 1), fmt.Sprint(r.high + 1), "-9223372036854775808", "4611686018427387904",
			"9223372036854775807", "9223372036854775808", "99999999999999999999", "1.5", "1e3", "x", "", "0x", "NaN",
		} {
			want := fmt.Sprintf("invalid argument %q for %q flag: want a whole number from %d to %d", value, name, r.low, r.high)
			require.Contains(t, fail(t, exitUsage, command, name+"="+value), want)
		}
	}
}

// Both ends of a range are in it.
func TestRanges(t *testing.T) {
	for flag, r := range numbers {
		command, name, _ := strings.Cut(flag, " --")
		for _, n := range []int{r.low, r.high} {
			cmd, _, err := newRoot(&output{w: io.Discard}, io.Discard).Find([]string{command})
			require.NoError(t, err)
			require.NoError(t, cmd.Flags().Set(name, fmt.Sprint(n)), flag)
			require.Equal(t, fmt.Sprint(n), cmd.Flags().Lookup(name).Value.String())
		}
	}
}

// Every flag for numbers has a range, and the table above lists it.
func TestAllNumbers(t *testing.T) {
	seen := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.(type) {
			case *intFlag, *intsFlag:
				seen++
				require.Contains(t, numbers, cmd.Name()+" --"+f.Name)
			case *floats, *fraction, *duration, *size, *colour, *namesFlag:
			default:
				require.Contains(t, []string{"string", "bool"}, f.Value.Type(), "%s --%s", cmd.Name(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&output{w: io.Discard}, io.Discard))
	require.Equal(t, len(numbers), seen)
}

// A time out of range is a usage error, as is what is no time.
func TestDurations(t *testing.T) {
	for flag, values := range map[string][]string{
		"--batch-delay": {"-1ns", "61s", "1", "x", ""}, "--timeout": {"0s", "25h", "-1s"}, "--drain": {"0s", "-1ms", "1e9"},
	} {
		for _, value := range values {
			require.Contains(t, fail(t, exitUsage, "serve", flag+"="+value), "want a time from ")
		}
	}
	d := 3 * time.Second
	s := &duration{&d, time.Second, time.Minute}
	require.Equal(t, "3s", s.String())
	for _, value := range []string{"1s", "1m", "1500ms"} {
		require.NoError(t, s.Set(value))
	}
	require.Equal(t, 1500*time.Millisecond, d)
}

// A size out of range is a usage error, as is what has no unit.
func TestSizes(t *testing.T) {
	for _, value := range []string{"", "1", "512", "0MiB", "15MiB", "-16MiB", "1.5GiB", "16MB", "1025GiB", "MiB", "99999999999GiB"} {
		require.Contains(t, fail(t, exitUsage, "serve", "--memory="+value), "want a size from 16MiB to 1024GiB", value)
	}
	n := int64(0)
	s := &size{&n, 16 << 20, 1 << 40}
	for value, want := range map[string]int64{"16MiB": 16 << 20, "1536MiB": 1536 << 20, "2GiB": 2 << 30, "1024GiB": 1 << 40} {
		require.NoError(t, s.Set(value))
		require.Equal(t, want, n)
		require.Equal(t, value, s.String())
	}
}

func TestWholes(t *testing.T) {
	list := []int{7}
	w := &intsFlag{&list, 1, 9}
	require.Equal(t, "7", w.String())
	require.NoError(t, w.Set("3,1,9"))
	require.Equal(t, "3,1,9", w.String())
	for _, value := range []string{"", "1,", ",1", "1,10", "1 2", "1,x"} {
		require.ErrorContains(t, w.Set(value), "from 1 to 9", value)
		require.Equal(t, []int{3, 1, 9}, list)
	}
}

func TestFloats(t *testing.T) {
	for _, value := range []string{"nan", "inf", "-Inf", "1e39", "1,", "", "1,x", "1,,2", "0x"} {
		require.Contains(t, fail(t, exitUsage, "convert", "a.onnx", "-o", "b.bcnn", "--scale="+value), "--scale")
	}
	var opts onnx.Options
	f := &floats{&opts.Mean}
	require.Empty(t, f.String())
	require.NoError(t, f.Set("1.5, -2"))
	require.NoError(t, f.Set("0.00784313725"))
	require.Equal(t, []float32{1.5, -2, 0.00784313725}, opts.Mean)
	require.Equal(t, "1.5,-2,0.007843137", f.String())
}

// What cannot be written is said before anything is read or computed.
func TestOutputsAreCheckedFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("folder", 0o755))
	for args, file := range map[string]string{
		"run --model digits --input absent.npy --output none/y.npz":   "none/y.npz",
		"convert absent.onnx -o none/y.bcnn":                          "none/y.bcnn",
		"eval --model digits --data absent --html none/x.html":        "none/x.html",
		"classify --model digits --html folder absent.png":            "folder",
		"inspect absent.onnx --html none/x.html":                      "none/x.html",
		"detect --model canvas --coco none/x.json absent.png":         "none/x.json",
		"detect --model canvas --draw none/x.png absent.png":          "none/x.png",
		"detect --model canvas --coco none/x.json --draw x.png a.png": "none/x.json",
	} {
		stderr := fail(t, exitJob, strings.Fields(args)...)
		require.True(t, strings.HasPrefix(stderr, "bcnn: "+file+": "), "%s: %s", args, stderr)
		require.NotContains(t, stderr, "absent")
	}
}
