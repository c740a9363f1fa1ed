package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/internal/tuning"
)

// deviceLine is a line of devices --json: a device, or why a backend has none or
// does not use all that there are.
type deviceLine struct {
	Backend string   `json:"backend"`
	Device  string   `json:"device,omitempty"`
	Name    string   `json:"name,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Detail  string   `json:"detail,omitempty"`
	Memory  int64    `json:"memory,omitempty"`
	ISAs    []string `json:"isas,omitempty"`
	// Missing are instruction sets that the processor has and that cannot be used, with the reason.
	Missing map[string]string `json:"missing_isas,omitempty"`
	Kernels []string          `json:"kernels,omitempty"`
	// Refused is what the driver has refused, and was done in another way.
	Refused []string `json:"refused,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func newDevices(env *environment) *cobra.Command {
	var asJSON, showTuning, clearTuning bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List available devices, and why the others are unavailable",
		Long: `List all devices, and why backends are unavailable.

With --json, one object per line: backend, and either device, name, kind, detail,
memory (bytes), isas (for --isa, the best first), missing_isas (with the reason),
kernels (for --kernels) and refused, or error.

What a driver refuses, such as a work-group size or a program, is done another way,
with the same bits, and listed for 30 days.

GPUs measure which kernels are fastest for a step, and keep the choice in the user's
cache (bitcnn in $XDG_CACHE_HOME, or ~/.cache on Linux) for 30 days, or one day if a
busy machine left it in doubt. --tuning shows these choices; --clear-tuning removes
them and the compiled programs of OpenCL. Kernels that compute wrong bits are never
used, and --tuning names them: please report it.

With --json, --tuning prints backend, device, file, step, kernels, us, doubt (the share of the time by which
another may be faster), wrong, measured and until, or backend, file and error;
--clear-tuning prints removed.`,
		Example: `  bcnn devices
  bcnn devices --json
  bcnn devices --tuning
  bcnn devices --clear-tuning`,
		Args: noArguments(""),
		RunE: func(*cobra.Command, []string) error {
			switch {
			case showTuning && clearTuning:
				return usagef("--tuning and --clear-tuning contradict each other")
			case showTuning:
				return printTuning(env.out, asJSON, time.Now())
			case clearTuning:
				return removeTuning(env.out, asJSON)
			}
			var lines []deviceLine
			for _, b := range backend.Backends() {
				devices, err := b.Devices()
				for _, d := range devices {
					info := d.Info()
					lines = append(lines, deviceLine{
						Backend: b.Name(), Device: info.ID, Name: info.Name,
						Kind: info.Kind.String(), Detail: info.Detail, Memory: info.Memory, ISAs: info.ISAs, Missing: info.MissingISAs, Kernels: info.Kernels,
						Refused: info.Refused,
					})
				}
				if err != nil {
					lines = append(lines, deviceLine{Backend: b.Name(), Error: oneLine(err)})
				}
			}
			if asJSON {
				for _, l := range lines {
					if err := env.out.json(l); err != nil {
						return err
					}
				}
				return nil
			}
			var rows []row
			for _, l := range lines {
				if l.Error != "" {
					rows = append(rows, rowf("%s\t-\t%s", l.Backend, l.Error))
					continue
				}
				r := rowf("%s\t%s\t%s, %s", l.Device, l.Kind, l.Name, l.Detail)
				if l.Memory > 0 {
					r += rowf(", %d MiB", l.Memory>>20)
				}
				if len(l.ISAs) > 0 {
					r += rowf("; --isa %s", strings.Join(l.ISAs, ", "))
				}
				for _, isa := range slices.Sorted(maps.Keys(l.Missing)) {
					r += rowf("; no %s: %s", isa, l.Missing[isa])
				}
				if len(l.Kernels) > 0 {
					r += rowf("; --kernels %s", strings.Join(l.Kernels, ", "))
				}
				for _, what := range l.Refused {
					r += rowf("; refused: %s", what)
				}
				rows = append(rows, r)
			}
			env.out.table(rows)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&showTuning, "tuning", false, "show the kernels measured as fastest instead")
	cmd.Flags().BoolVar(&clearTuning, "clear-tuning", false, "remove the kernels measured as fastest instead")
	return cmd
}

// tuningLine is a line of devices --tuning --json.
type tuningLine struct {
	Backend  string    `json:"backend"`
	Device   string    `json:"device"`
	File     string    `json:"file"`
	Step     string    `json:"step"`
	Kernels  string    `json:"kernels"`
	Micros   float64   `json:"us"`
	Doubt    float64   `json:"doubt"`
	Wrong    []string  `json:"wrong"`
	Measured time.Time `json:"measured"`
	Until    time.Time `json:"until"`
}

// kernelsOf is what was chosen.
func kernelsOf(e tuning.Entry) string {
	chosen := e.Variant
	if e.Name != "" || len(e.Groups) > 0 {
		chosen += ": " + e.Name
	}
	if len(e.Groups) > 0 {
		groups := strings.ReplaceAll(strings.Trim(fmt.Sprint(e.Groups), "[]"), " ", ", ")
		chosen += "work-groups of " + groups
	}
	return chosen
}

// span writes a long time in its largest unit.
func span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"days", 24 * time.Hour}, {"h", time.Hour}} {
		if d >= 2*unit.of {
			return fmt.Sprintf("%d %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d min", max(d, 0)/time.Minute)
}

// printTuning prints every file of choices with its entries.
func printTuning(out *output, asJSON bool, now time.Time) error {
	files, err := tuning.List()
	if err != nil {
		return fmt.Errorf("choices of kernels: %w", err)
	}
	if len(files) == 0 && !asJSON {
		out.printf("no choices of kernels are kept\n")
	}
	for _, f := range files {
		if asJSON {
			err = printTuningJSON(out, f)
		} else {
			printTuningTable(out, f, now)
		}
		if err != nil {
			return err
		}
	}
	return out.err
}

func printTuningJSON(out *output, f tuning.File) error {
	if f.Err != nil {
		return out.json(map[string]string{"backend": f.Backend, "file": f.Path, "error": oneLine(f.Err)})
	}
	for _, e := range f.Entries {
		if err := out.json(tuningLine{f.Backend, f.Device, f.Path, e.Step, kernelsOf(e), 1e6 * e.Seconds, e.Doubt, append([]string{}, e.Wrong...), e.Measured, e.Lasts()}); err != nil {
			return err
		}
	}
	return nil
}

func printTuningTable(out *output, f tuning.File, now time.Time) {
	if f.Err != nil {
		out.printf("%s: %s: %s\n", f.Backend, f.Path, oneLine(f.Err))
		return
	}
	out.printf("%s: %s: %s\n", f.Backend, f.Device, f.Path)
	var rows []row
	for _, e := range f.Entries {
		note := "lasts " + span(e.Lasts().Sub(now))
		if !now.Before(e.Lasts()) {
			note = "to be measured again"
		}
		if e.Doubt > tuning.MaxDoubt {
			note += fmt.Sprintf("; another may be %.0f %% faster", 100*e.Doubt)
		}
		if len(e.Wrong) > 0 {
			note += "; not used, as it computes wrong bits: " + strings.Join(e.Wrong, ", ")
		}
		rows = append(rows, rowf("  %s\t%s\t%.1f µs\t%s ago\t%s", e.Step, kernelsOf(e), 1e6*e.Seconds, span(now.Sub(e.Measured)), note))
	}
	out.table(rows)
}

// removeTuning removes every file of choices.
func removeTuning(out *output, asJSON bool) error {
	removed, err := tuning.Clear()
	for _, path := range removed {
		if asJSON {
			err = errors.Join(err, out.json(map[string]string{"removed": path}))
		} else {
			out.printf("removed %s\n", path)
		}
	}
	if err != nil {
		return fmt.Errorf("choices of kernels: %w", err)
	}
	if len(removed) == 0 && !asJSON {
		out.printf("no choices of kernels are kept\n")
	}
	return out.err
}
