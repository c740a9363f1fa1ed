package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bitcnn/bitcnn/internal/files"
)

// Ranges of numbers on the command line. What a number of images or threads
// needs, and whether it is there, shows when a model is compiled.
const (
	maxRuns     = 1_000_000
	maxBatch    = 1 << 16
	maxThreads  = 1024    // as many as the CPU backend takes
	maxSide     = 1 << 16 // of images, as in a network
	maxChannels = 1 << 22 // likewise
)

// intVar adds a flag for a whole number from low to high, whose value so far
// is the default. Any other value is a usage error.
func intVar(cmd *cobra.Command, p *int, name string, low, high int, usage string) {
	cmd.Flags().Var(&intFlag{p, low, high}, name, usage)
}

func threadsFlag(cmd *cobra.Command, p *int, usage string) {
	intVar(cmd, p, "threads", 0, maxThreads, usage+"; "+allThreads)
}

const allThreads = "0 means all that the process may use"

func kernelsFlag(cmd *cobra.Command, p *string, usage string) {
	cmd.Flags().StringVar(p, "kernels", "", usage+": direct, patches (the paper's), vectors (OpenCL), tensorcore, splitk, fused or wgmma (CUDA); default the fastest")
}

type intFlag struct {
	n         *int
	low, high int
}

func (w *intFlag) Set(s string) error {
	n, err := strconv.ParseInt(s, 0, strconv.IntSize)
	if err != nil || int(n) < w.low || int(n) > w.high {
		return fmt.Errorf("want a whole number from %d to %d", w.low, w.high)
	}
	*w.n = int(n)
	return nil
}

func (w *intFlag) String() string { return strconv.Itoa(*w.n) }
func (w *intFlag) Type() string   { return "int" }

// intsVar adds a flag for whole numbers from low to high, separated by commas,
// whose value so far is the default. Any other value is a usage error.
func intsVar(cmd *cobra.Command, p *[]int, name string, low, high int, usage string) {
	cmd.Flags().Var(&intsFlag{p, low, high}, name, usage)
}

type intsFlag struct {
	list      *[]int
	low, high int
}

func (w *intsFlag) Set(s string) error {
	var list []int
	for _, word := range strings.Split(s, ",") {
		n := intFlag{new(int), w.low, w.high}
		if err := n.Set(word); err != nil {
			return err
		}
		list = append(list, *n.n)
	}
	*w.list = list
	return nil
}

func (w *intsFlag) String() string {
	words := make([]string, len(*w.list))
	for i, n := range *w.list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

func (w *intsFlag) Type() string { return "ints" }

// namesFlag is a flag for names separated by commas. A comma of a name stands behind a
// backslash.
type namesFlag struct{ list *[]string }

func (n *namesFlag) Set(s string) error {
	list := []string{""}
	for i := 0; i < len(s); i++ {
		last := &list[len(list)-1]
		switch {
		case strings.HasPrefix(s[i:], `\,`):
			*last += ","
			i++
		case s[i] == ',':
			list = append(list, "")
		default:
			*last += s[i : i+1]
		}
	}
	if slices.Contains(list, "") {
		return errors.New("want names separated by commas")
	}
	*n.list = list
	return nil
}

func (n *namesFlag) String() string {
	words := make([]string, len(*n.list))
	for i, name := range *n.list {
		words[i] = strings.ReplaceAll(name, ",", `\,`)
	}
	return strings.Join(words, ",")
}

func (n *namesFlag) Type() string { return "names" }

// floatsFlag adds a flag for float32 numbers, separated by commas or given one by
// one. What is no number, too large, or not finite is a usage error.
func floatsFlag(cmd *cobra.Command, p *[]float32, name, usage string) {
	cmd.Flags().Var(&floats{p}, name, usage)
}

type floats struct{ list *[]float32 }

func (f *floats) Set(s string) error {
	for _, word := range strings.Split(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(word), 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("want finite float32 numbers, separated by commas")
		}
		*f.list = append(*f.list, float32(v))
	}
	return nil
}

func (f *floats) String() string {
	words := make([]string, len(*f.list))
	for i, v := range *f.list {
		words[i] = strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return strings.Join(words, ",")
}

func (f *floats) Type() string { return "floats" }

// fractionFlag adds a flag for a number from 0 to 1, without 1.
func fractionFlag(cmd *cobra.Command, p *float64, name, usage string) {
	cmd.Flags().Var(&fraction{p}, name, usage)
}

type fraction struct{ v *float64 }

func (f *fraction) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v < 1) {
		return errors.New("want a fraction from 0 to 1, without 1")
	}
	*f.v = v
	return nil
}

func (f *fraction) String() string { return strconv.FormatFloat(*f.v, 'g', -1, 64) }
func (f *fraction) Type() string   { return "fraction" }

// durationFlag adds a flag for a time from low to high, whose value so far is the default. Any
// other value is a usage error.
func durationFlag(cmd *cobra.Command, p *time.Duration, name string, low, high time.Duration, usage string) {
	cmd.Flags().Var(&duration{p, low, high}, name, usage)
}

type duration struct {
	d         *time.Duration
	low, high time.Duration
}

func (s *duration) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < s.low || d > s.high {
		return fmt.Errorf("want a time from %v to %v, such as 200us or 30s", s.low, s.high)
	}
	*s.d = d
	return nil
}

func (s *duration) String() string { return s.d.String() }
func (s *duration) Type() string   { return "duration" }

// sizeFlag adds a flag for a number of bytes from low to high, written with MiB or GiB; 0 is the
// default that usage tells. Any other value is a usage error.
func sizeFlag(cmd *cobra.Command, p *int64, name string, low, high int64, usage string) {
	cmd.Flags().Var(&size{p, low, high}, name, usage)
}

type size struct {
	n         *int64
	low, high int64
}

func (s *size) Set(text string) error {
	for unit, shift := range map[string]int{"MiB": 20, "GiB": 30} {
		number, ok := strings.CutSuffix(text, unit)
		if n, err := strconv.ParseInt(number, 10, 32); ok && err == nil && n<<shift >= s.low && n<<shift <= s.high {
			*s.n = n << shift
			return nil
		}
	}
	return fmt.Errorf("want a size from %s to %s", sizeText(s.low), sizeText(s.high))
}

func sizeText(n int64) string {
	if n == 0 {
		return "0"
	}
	if n%(1<<30) == 0 {
		return strconv.FormatInt(n>>30, 10) + "GiB"
	}
	return strconv.FormatInt(n>>20, 10) + "MiB"
}

func (s *size) String() string { return sizeText(*s.n) }
func (s *size) Type() string   { return "size" }

// changedBut reports whether a flag was given besides those.
func changedBut(cmd *cobra.Command, but ...string) bool {
	changed := false
	cmd.Flags().Visit(func(f *pflag.Flag) { changed = changed || !slices.Contains(but, f.Name) })
	return changed
}

// htmlFlag adds a flag for a page that is written.
func htmlFlag(cmd *cobra.Command, path *string) {
	outputVar(cmd, path, "html", "", "write a self-contained HTML page to this file")
}

// outputVar adds a flag for a file that is written in the end.
func outputVar(cmd *cobra.Command, path *string, name, short, usage string) {
	cmd.Flags().VarP((*outputFile)(path), name, short, usage)
}

// outputFile is the name of a file that is written, or - for standard output.
type outputFile string

// checkOutputs returns an error if a file that flags name cannot be written: what cannot be kept need not
// be computed.
func checkOutputs(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if name, ok := f.Value.(*outputFile); ok && err == nil && *name != "" && *name != standardInput {
			err = files.Replaceable(string(*name))
		}
	})
	return err
}

func (f *outputFile) Set(s string) error {
	*f = outputFile(s)
	return nil
}

func (f *outputFile) String() string { return string(*f) }
func (f *outputFile) Type() string   { return "string" }

// backgroundFlag adds a flag for the colour that lies under transparent pixels.
func backgroundFlag(cmd *cobra.Command, c *[3]uint8) {
	cmd.Flags().Var((*colour)(c), "background", "colour under transparent pixels, RRGGBB")
}

type colour [3]uint8

func (c *colour) Set(s string) error {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(c) {
		return errors.New("want six hexadecimal digits, RRGGBB: ffffff is white")
	}
	copy(c[:], b)
	return nil
}

func (c *colour) String() string { return hex.EncodeToString(c[:]) }
func (c *colour) Type() string   { return "colour" }
