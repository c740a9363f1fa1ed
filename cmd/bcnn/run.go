package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/internal/arrays"
	"github.com/bitcnn/bitcnn/internal/npy"
	"github.com/bitcnn/bitcnn/internal/text"
)

func newRun(env *environment) *cobra.Command {
	var r arrayRunner
	var input, output string
	cmd := &cobra.Command{
		Use:   "run --model MODEL --input X.npz|X.npy|- --output Y.npz|Y.npy|-",
		Short: "Run a model on NumPy arrays",
		Long: `Compute the outputs of a model for NumPy arrays.

Arrays have the names, dimensions and order of the converted model, images first:
NxCxHxW for ONNX files from PyTorch. 'bcnn inspect MODEL' shows them. If the model
has one input and the file one array, its name does not matter; other arrays are
ignored. Models without a source read "input" and write "output" ("input 2",
"output 2", ...), channels last. Outputs are those after a final softmax.

Elements may be bool, integers or floats of 16 to 64 bits, in any byte order, if the
input can hold each of them exactly: 0.1 in float64 is rejected for float32; convert
it with .astype(numpy.float32). Inputs may have any size; an output may have 4 GiB.
- is standard input (.npz up to 64 MiB) or output (.npz).`,
		Example: `  bcnn run --model model.bcnn --input x.npz --output y.npz
  bcnn run --model model.onnx --input - --output - < x.npy > y.npz`,
		Args: noArguments("use --model and --input"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case input == "" || output == "":
				return usagef("run needs --input X.npz and --output Y.npz")
			case output != standardInput && !isNPY(output) && !isNPZ(output):
				return usagef("%s: the output must be named *%s or *%s", text.Escape(output), npy.ExtensionNPZ, npy.ExtensionNPY)
			}
			ctx := cmd.Context()
			if err := r.load(ctx); err != nil {
				return err
			}
			for _, d := range r.net.Deviations {
				fmt.Fprintf(cmd.ErrOrStderr(), "bcnn: %s deviates from the file: %s\n", text.Escape(r.model), d)
			}
			f, err := openArrays(ctx, input, cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer f.Close()
			if isNPY(output) && len(r.ports.Outputs) > 1 {
				return usagef("the model has %d outputs, and an .npy file holds one: name the output *%s", len(r.ports.Outputs), npy.ExtensionNPZ)
			}
			in, err := findArrays(f, r.ports.Inputs, 0, false)
			if err != nil {
				return err
			}
			defer in.Close()
			values, err := r.run(ctx, in, env.progress("run"))
			if err != nil {
				return err
			}
			var results []npy.Named
			for i, port := range r.ports.Outputs {
				results = append(results, npy.Named{Name: port.Name, Array: port.Array(in.images, values[i])})
			}
			if err := saveArrays(env, output, results); err != nil || output == standardInput {
				return err
			}
			for _, a := range results {
				env.out.printf("%s: %s %s, on %s\n", output, a.Name, arrays.Dims(a.Shape)+" "+a.Type(), r.device)
			}
			return nil
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVarP(&input, "input", "i", "", ".npz or .npy file with the input; - is standard input")
	outputVar(cmd, &output, "output", "o", ".npz or .npy file to write; - is standard output")
	return cmd
}

func isNPY(file string) bool { return strings.EqualFold(filepath.Ext(file), npy.ExtensionNPY) }
func isNPZ(file string) bool { return strings.EqualFold(filepath.Ext(file), npy.ExtensionNPZ) }
