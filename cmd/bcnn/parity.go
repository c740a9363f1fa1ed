package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/internal/text"
)

// parityResult is a line of parity --json.
type parityResult struct {
	Device   string `json:"device"`
	Cases    int    `json:"cases"`
	Failures int    `json:"failures"`
}

func newParity(env *environment) *cobra.Command {
	var model, device, selected string
	var asJSON bool
	var opts backend.Options
	cmd := &cobra.Command{
		Use:   "parity",
		Short: "Check that devices compute the right bits",
		Long: `Run the parity suite: networks of every kind of step, size and padding, in which every
intermediate value is compared with a reference implementation. All bits must be
equal. Small networks run with each variant of kernels that the device has. With
--model, that model is checked on random images instead.

--cases core takes about one case in fourteen, chosen so that each fault that the
project's tests put into a device is found; --cases cover adds every 16th of each
kind. Both are for slow devices. With --device all, each device takes those of
--threads, --isa and --kernels that it supports.

A failure is reported on standard error with the case, the first wrong step and the
first wrong value; the exit status is 1.

With --json, one object per device: device, cases, failures.`,
		Example: `  bcnn parity
  bcnn parity --device all --json
  bcnn parity --cases core --device opencl
  bcnn parity --model model.onnx`,
		Args: noArguments("use --model"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if model != "" && cmd.Flags().Changed("cases") {
				return usagef("--cases and --model contradict each other")
			}
			cases, err := parity.Select(selected)
			if err != nil {
				return usageError{fmt.Errorf("--cases: %w", err)}
			}
			devices, err := openDevices(device)
			if err != nil {
				return err
			}
			if model != "" {
				net, err := loadModel(cmd.Context(), model)
				if err != nil {
					return err
				}
				cases = parity.NetworkCases(net)
			}
			var failed error
			for _, dev := range devices {
				id := dev.Info().ID
				failures, err := parity.Check(cmd.Context(), dev, optionsFor(device, dev, opts), cases, env.progress(id))
				if err != nil {
					return err
				}
				for _, f := range failures {
					report(env.stderr, fmt.Errorf("%s: %w", id, f))
					failed = errReported
				}
				if asJSON {
					err = env.out.json(parityResult{Device: id, Cases: len(cases), Failures: len(failures)})
				} else {
					env.out.printf("%s: %s, %s\n", id,
						text.Count(len(cases), "case"), text.Count(len(failures), "failure"))
					err = env.out.err
				}
				if err != nil {
					return err
				}
			}
			return failed
		},
	}
	modelFlag(cmd, &model, "", "check this model instead: built-in model, .bcnn, .onnx, .tflite, .cfg or .xml file")
	deviceFlag(cmd, &device, "all")
	threadsFlag(cmd, &opts.Threads, "CPU threads")
	cmd.Flags().StringVar(&opts.ISA, "isa", "", "CPU instruction set (default the best)")
	kernelsFlag(cmd, &opts.Kernels, "GPU kernels")
	cmd.Flags().StringVar(&selected, "cases", "all", "part of the suite: core, cover or all")
	_ = cmd.RegisterFlagCompletionFunc("cases", cobra.FixedCompletions([]string{"core", "cover", "all"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per device")
	return cmd
}
