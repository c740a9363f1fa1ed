package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
	"github.com/bitcnn/bitcnn/internal/summary"
	"github.com/bitcnn/bitcnn/models"
)

// zooLine is a line of zoo --json.
type zooLine struct {
	Name    string `json:"name"`
	Trained bool   `json:"trained"`
	About   string `json:"about,omitempty"`
	// Training is there if the network is trained.
	Training *models.Trained `json:"training,omitempty"`
	Input    string          `json:"input"`
	Params   int64           `json:"params"`
	// As in the report of inspect.
	MACs       int64                `json:"macs"`
	BinaryMACs int64                `json:"binary_macs"`
	ByBits     plan.Multiplications `json:"macs_by_bits"`
	Float      int64                `json:"float_bytes"`
	Stored     int64                `json:"stored_bytes"`
	File       int64                `json:"file_bytes"`
}

func newZoo(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "zoo",
		Short: "List the built-in networks",
		Long: `List the built-in networks that --model takes by name: trained ones, and topologies
of published networks with random weights (always the same), for timing.
'bcnn convert --from zoo NAME' writes one to a file.

Multiplications are for one image, padded taps included, counted as by 'bcnn
convert'. Bytes are those of the weights, as float32 and as stored, and of the whole
file. A second table says what the trained networks were trained on, and how good
they are.

With --json, one object per line: name, trained, about, training (name, on,
accuracy, of, source, licence), input, params, macs, binary_macs, macs_by_bits,
float_bytes, stored_bytes, file_bytes.`,
		Example: `  bcnn zoo
  bcnn bench --model vgg16
  bcnn convert --from zoo vgg16 -o vgg16.bcnn`,
		Args: noArguments("'bcnn inspect %s' shows a network"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var lines []zooLine
			for _, m := range models.All() {
				lines = append(lines, zooLine{Name: m.Name, Trained: true, Training: &m})
			}
			for _, e := range zoo.Networks() {
				lines = append(lines, zooLine{Name: e.Name, About: e.About})
			}
			for i := range lines {
				if err := lines[i].count(cmd.Context()); err != nil {
					return err
				}
				if asJSON {
					if err := env.out.json(lines[i]); err != nil {
						return err
					}
				}
			}
			if !asJSON {
				printZoo(env.out, lines)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// count builds the network and counts.
func (l *zooLine) count(ctx context.Context) error {
	net, err := loadModel(ctx, l.Name)
	if err != nil {
		return err
	}
	program, err := lower.Compile(ctx, net, lower.Options{})
	if err != nil {
		return err
	}
	l.Input = net.Inputs[0].Shape.String()
	r := summary.New(program.Network, program.Plan)
	for _, layer := range r.Layers {
		l.Params += layer.Params
	}
	l.MACs, l.BinaryMACs, l.ByBits = r.MACs, r.BinaryMACs, r.ByBits
	l.Float, l.Stored, l.File = r.Float, r.Stored, r.File
	return nil
}

func printZoo(out *output, lines []zooLine) {
	rows := []row{"name\tweights\tinput\tparameters\tmultiplications\tby precision\tfloat32 bytes\tstored bytes\tfile bytes"}
	for _, l := range lines {
		weights := "random"
		if l.Trained {
			weights = "trained"
		}
		rows = append(rows, rowf("%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d",
			l.Name, weights, l.Input, l.Params, l.MACs, l.ByBits, l.Float, l.Stored, l.File))
	}
	out.table(rows)
	rows = []row{"name\ttrained on\taccuracy\tof\tsource\tlicence"}
	for _, l := range lines {
		if m := l.Training; m != nil {
			rows = append(rows, rowf("%s\t%s\t%s\t%s\t%s\t%s", m.Name, m.On, fmt.Sprintf("%.4g %%", m.Accuracy), m.Of, m.Source, m.Licence))
		}
	}
	if len(rows) > 1 {
		out.printf("\n")
		out.table(rows)
	}
}

// builtIn lists the networks that a name alone means.
func builtIn() []string { return slices.Concat(embeddedModels(), zoo.Names()) }
