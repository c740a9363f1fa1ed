// Command armmodel models the cycles of convolutions on Arm cores, without
// one: it runs them under qemu-aarch64 with a plugin that counts instructions and
// writes down those of the kernel, and has llvm-mca compute how many cycles these
// take. docs/performance-neon.md tells how far that can be believed.
package main

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

// shape is a convolution with as much padding as keeps the size at stride 1.
type shape struct {
	size, in, out, kernel, stride int
	values                        string // what is multiplied, "bits" if ""
}

func (s shape) String() string {
	name := fmt.Sprintf("%d²×%d→%d %d×%d", s.size, s.in, s.out, s.kernel, s.kernel)
	if s.stride > 1 {
		name += fmt.Sprintf(" s%d", s.stride)
	}
	if s.values != "" {
		name += " " + s.values
	}
	return name
}

// args are those of the driver.
func (s shape) args() []string {
	var args []string
	for _, n := range []int{s.size, s.in, s.out, s.kernel, s.stride} {
		args = append(args, strconv.Itoa(n))
	}
	return append(args, cmp.Or(s.values, "bits"))
}

// side is the size of the output.
func (s shape) side() int { return (s.size+s.kernel/2*2-s.kernel)/s.stride + 1 }

func (s shape) products() float64 {
	return float64(s.side() * s.side() * s.out * s.kernel * s.kernel * s.in)
}

// shapes are those of rivals.tsv.
var shapes = []shape{
	{56, 64, 64, 3, 1, ""}, {28, 128, 128, 3, 1, ""}, {14, 256, 256, 3, 1, ""}, {7, 512, 512, 3, 1, ""},
	{14, 256, 256, 3, 2, ""}, {56, 64, 64, 1, 1, ""},
}

// core is a processor that llvm-mca has a model of.
type core struct {
	name string
	// rest is the number of instructions per cycle of what is no kernel, which is
	// assumed.
	rest float64
	// midr is its identification register, by which kernels are picked.
	midr uint64
}

var cores = []core{
	{"cortex-a53", 0.6, 0x410fd034}, {"cortex-a55", 0.7, 0x411fd050}, {"cortex-a72", 1.5, 0x410fd083},
	{"neoverse-n1", 2, 0x413fd0c1}, {"neoverse-v1", 2.5, 0x411fd401}, {"apple-m1", 3, 0x611f0230},
}

// rivals are other engines' figures: shape, engine, and products per cycle of the
// cores, where known.
//
//go:embed rivals.tsv
var rivals string

func main() {
	log.SetFlags(0)
	log.SetPrefix("armmodel: ")
	isas := flag.String("isa", "neonbytes,neon", "instruction sets, separated by commas")
	only := flag.String("shape", "", "only shapes that contain this")
	list := flag.String("convs", "", "convolutions instead: SIZE,IN,OUT,KERNEL,STRIDE, and ,image for bytes or ,int8 for bytes and weights of 8 bits, separated by blanks")
	networks := flag.String("networks", "", "whole networks of the zoo instead, separated by commas")
	steps := flag.String("steps", "", "float32 steps instead whose names match this regular expression")
	system := flag.String("system", "", "only systems that contain this, for networks")
	llvm := flag.String("llvm", "/usr/lib/llvm-22/bin", "folder of llvm-mca and llvm-objdump")
	flag.Parse()
	var custom []shape
	for _, text := range strings.Fields(*list) {
		var s shape
		numbers := text
		if fields := strings.Split(text, ","); len(fields) == 6 {
			numbers, s.values = strings.Join(fields[:5], ","), fields[5]
		}
		if _, err := fmt.Sscanf(numbers, "%d,%d,%d,%d,%d", &s.size, &s.in, &s.out, &s.kernel, &s.stride); err != nil {
			log.Fatalf("--convs %s: %v", text, err)
		}
		custom = append(custom, s)
	}
	if len(custom) > 0 {
		shapes = custom
	}
	if err := run(strings.Split(*isas, ","), *only, *networks, *system, *steps, *llvm); err != nil {
		log.Fatal(err)
	}
}

func run(isas []string, only, networks, system, steps, llvm string) error {
	work, err := os.MkdirTemp("", "armmodel")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	m := &model{work: work, llvm: llvm, driver: filepath.Join(work, "driver"), plugin: filepath.Join(work, "libtrace.so"), steps: steps != ""}
	if err := m.build(); err != nil {
		return err
	}
	version, err := command(filepath.Join(llvm, "llvm-mca"), "--version")
	if err != nil {
		return err
	}
	llvmVersion, _, _ := strings.Cut(strings.TrimSpace(string(version)), "\n")
	if steps != "" {
		fmt.Printf("cycles for a value of the output, of those that it takes at the least, one core; %s\n", llvmVersion)
		for _, isa := range isas {
			if err := m.stepTable(os.Stdout, isa, steps); err != nil {
				return fmt.Errorf("%s: %w", isa, err)
			}
		}
		return nil
	}
	if networks != "" {
		fmt.Printf("milliseconds of whole networks, one core; %s\n", llvmVersion)
		for _, name := range strings.Split(networks, ",") {
			for _, isa := range isas {
				if err := m.network(os.Stdout, isa, name, system); err != nil {
					return fmt.Errorf("%s, %s: %w", name, isa, err)
				}
			}
		}
		return nil
	}
	fmt.Printf("products per cycle of one core, all of the step; %s\n\n", llvmVersion)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	head := make([]string, len(cores))
	for i, c := range cores {
		head[i] = c.name
	}
	for _, s := range shapes {
		if !strings.Contains(s.String(), only) {
			continue
		}
		fmt.Fprintf(out, "%s\tkernels\tM instructions, around\t%s\n", s, strings.Join(head, "\t"))
		for _, isa := range isas {
			r, err := m.measure(isa, s)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", s, isa, err)
			}
			cells := make([]string, len(cores))
			var names, counts []string
			for i, c := range cores {
				k := r[i]
				cycles := k.kernel/k.ipc + k.around/c.rest
				cells[i] = fmt.Sprintf("%.1f of %.0f, %s", s.products()/cycles, s.products()/(k.kernel*k.busy), k.unit)
				name := strings.TrimPrefix(strings.TrimSuffix(k.name, "NEON"), "conv")
				if i == 0 || *k.modelled != *r[i-1].modelled {
					names = append(names, name)
					counts = append(counts, fmt.Sprintf("%.3f, %.3f", k.kernel/1e6, k.around/1e6))
				}
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", isa, strings.Join(names, "; "), strings.Join(counts, "; "), strings.Join(cells, "\t"))
		}
		printRivals(out, s.String())
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, "loops alone")
	printRivals(out, "loops alone")
	fmt.Fprintln(out, "A of B, C: A is modelled, B the bound that the busiest unit C of the kernel sets.")
	return out.Flush()
}

// printRivals prints the rows of other engines for a shape.
func printRivals(out io.Writer, shape string) {
	for line := range strings.Lines(rivals) {
		if cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); cells[0] == shape {
			fmt.Fprintf(out, "%s\t\t\t%s\n", cells[1], strings.Join(cells[2:], "\t"))
		}
	}
}

// command runs a program and returns what it prints, or an error that has what it
// says of one.
func command(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, errs.String())
	}
	return out, nil
}
