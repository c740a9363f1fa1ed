package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/ref"
	"github.com/bitcnn/bitcnn/internal/measure"
	"github.com/bitcnn/bitcnn/internal/samples"
	"github.com/bitcnn/bitcnn/internal/text"
	"github.com/bitcnn/bitcnn/models"
	"github.com/bitcnn/bitcnn/vision"
)

// demoImages is the number of random images on which VehicleNet is compared
// with the reference, which takes a good part of a second for each.
const demoImages = 2

func newDemo(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Run the end-to-end demo on every available device",
		Long: `Classify the bundled digits on every device, time VehicleNet by the paper's protocol
('bcnn bench --paper'), and check that all devices compute the same bits as the
reference implementation; the exit status is 1 if one differs.`,
		Example: "  bcnn demo",
		Args:    noArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, err := openDevices("all")
			if err != nil {
				return err
			}
			return demo(cmd.Context(), env, devices, measure.PaperImages)
		},
	}
}

// demo runs the demonstration; runs is the number of images on which VehicleNet
// is timed.
func demo(ctx context.Context, env *environment, devices []*backend.Device, runs int) error {
	digitsNet, err := models.Load(ctx, "digits")
	if err != nil {
		return err
	}
	digitsProgram, err := lower.Compile(ctx, digitsNet, lower.Options{})
	if err != nil {
		return err
	}
	vehiclesNet, err := models.Load(ctx, defaultModel)
	if err != nil {
		return err
	}
	vehiclesProgram, err := lower.Compile(ctx, vehiclesNet, lower.Options{})
	if err != nil {
		return err
	}
	digits, vehicles := digitsProgram.Plan, vehiclesProgram.Plan
	images, names, err := sampleImages(ctx, digits.Inputs[0])
	if err != nil {
		return err
	}
	random := bcnn.NewTensor(bcnn.Uint8, demoImages, vehicles.Inputs[0].Shape)
	measure.RandomImages(random, measure.NewRand(measure.Seed))

	// What every device must compute, bit for bit.
	digitLogits, err := ref.Run(ctx, digits, images, nil)
	if err != nil {
		return err
	}
	vehicleLogits, err := ref.Run(ctx, vehicles, random, nil)
	if err != nil {
		return err
	}

	values, differing := len(digitLogits.F32)+len(vehicleLogits.F32), 0
	for _, dev := range devices {
		info := dev.Info()
		env.out.printf("%s: %s, %s, %s\n\n", info.ID, info.Kind, info.Name, info.Detail)
		got, err := demoDigits(ctx, env, dev, digitsNet, images, names)
		if err != nil {
			return err
		}
		wrong := differences(got, digitLogits.F32)

		result, err := benchOne(ctx, env, dev, defaultModel, vehiclesProgram.Network, vehicles, measure.Options{
			Options: backend.Options{MaxBatch: 1}, Runs: runs, Fresh: true,
		})
		if err != nil {
			return err
		}
		env.out.printf("\n")
		printBench(env.out, result)

		got, err = runAll(ctx, dev, vehicles, random)
		if err != nil {
			return err
		}
		wrong += differences(got, vehicleLogits.F32)
		if wrong > 0 {
			differing++
			report(env.stderr, fmt.Errorf("%s: %d of %d outputs differ from the reference; 'bcnn parity --device %s' finds the step", info.ID, wrong, values, info.ID))
		}
		env.out.printf("\n")
	}
	if differing > 0 {
		env.out.printf("Not all devices agree: %d of %d differ from the reference.\n", differing, len(devices))
		return errReported
	}
	env.out.printf("%s and the reference agree bit for bit on all %d outputs of %d images.\n",
		text.Count(len(devices), "device"), values, images.N+random.N)
	return nil
}

// sampleImages decodes the bundled images into one batch.
func sampleImages(ctx context.Context, in bcnn.Input) (bcnn.Tensor, []string, error) {
	files, err := fs.Glob(samples.Digits, "*.png")
	if err != nil {
		return bcnn.Tensor{}, nil, err
	}
	t := bcnn.NewTensor(bcnn.Uint8, len(files), in.Shape)
	names := make([]string, len(files))
	for i, file := range files {
		data, err := samples.Digits.ReadFile(file)
		if err != nil {
			return t, nil, err
		}
		img, err := vision.Decode(ctx, bytes.NewReader(data))
		if err == nil {
			err = vision.Preprocessing{Input: in}.Fill(ctx, t, i, img)
		}
		if err != nil {
			return t, nil, fmt.Errorf("%s: %w", file, err)
		}
		names[i] = file
	}
	return t, names, nil
}

// demoDigits classifies the sample images one at a time, prints a table and
// returns all logits.
func demoDigits(ctx context.Context, env *environment, dev *backend.Device, net *bcnn.Network, images bcnn.Tensor, names []string) ([]float32, error) {
	c, session, err := openClassifier(ctx, dev.Info().ID, net, 1, vision.Options{})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	results, err := c.ClassifyTensor(ctx, images)
	if err != nil {
		return nil, err
	}
	var all []float32
	rows := []row{"image\tlabel\tprobability\ttime"}
	for i, r := range results {
		all = append(all, r.Logits...)
		rows = append(rows, rowf("%s\t%s\t%.1f %%\t%.0f µs", names[i], r.Label, 100*r.Probability, measure.Micros(r.Time)))
	}
	env.out.table(rows)
	return all, nil
}

// runAll returns the outputs of a batch on a device.
func runAll(ctx context.Context, dev *backend.Device, plan *plan.Plan, in bcnn.Tensor) ([]float32, error) {
	r, err := measure.NewRunner(ctx, dev, plan, backend.Options{MaxBatch: in.N})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	copy(r.In.U8, in.U8)
	_, err = r.Run(ctx)
	return r.Out.F32, err
}

// differences counts the values that are not the same bits.
func differences(got, want []float32) int {
	n := 0
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			n++
		}
	}
	return n
}
