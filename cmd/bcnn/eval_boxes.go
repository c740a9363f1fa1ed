package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/dataset"
	"github.com/bitcnn/bitcnn/internal/dataset/boxes"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// evaluated is what eval is asked to measure of a detector.
type evaluated struct {
	model, device, data, annotations string
	batch                            int
	json                             bool
}

// evalThreshold is what scores must exceed to be measured: precision at high recalls depends on low ones.
const evalThreshold = 0.01

// eval measures the precision of a detector.
func (f *detectFlags) eval(ctx context.Context, env *environment, e evaluated, net *bcnn.Network) error {
	opts, err := f.options(net)
	if err != nil {
		return err
	}
	opts.Threshold = cmp.Or(opts.Threshold, evalThreshold)
	d, session, err := openDetector(ctx, e.device, e.model, net, e.batch, opts)
	if err != nil {
		return err
	}
	defer session.Close()
	var set *boxes.Set
	if e.annotations != "" {
		set, err = boxes.OpenCOCO(e.annotations, e.data, d.Labels(), d.Background())
	} else {
		set, err = boxes.OpenYOLO(ctx, e.data, d.Labels(), d.Background())
	}
	if err != nil {
		return err
	}
	unread := 0
	p, err := boxes.Evaluate(ctx, d, set, e.batch, dataset.Observer{Progress: env.progress("eval"), Broken: func(err error) {
		unread++
		report(env.stderr, err)
	}})
	switch {
	case err != nil:
		return err
	case p.Images == 0:
		return files.Name(e.data, fmt.Errorf("none of the %d images could be read", len(set.Images)))
	case p.Objects == 0:
		return files.Name(e.data, fmt.Errorf("no boxes on the %d images", p.Images))
	case e.json:
		err = env.out.json(p)
	default:
		printPrecision(env.out, p)
	}
	if err == nil && unread > 0 {
		report(env.stderr, fmt.Errorf("not counted: %s that could not be read", text.Count(unread, "image")))
		return errReported
	}
	return err
}

func printPrecision(out *output, p *boxes.Precision) {
	out.printf("mAP@0.5:0.95 %.2f %%, mAP@0.5 %.2f %%, mAP@0.75 %.2f %% (%d boxes on %d images)\n\n", 100*p.AP, 100*p.AP50, 100*p.AP75, p.Objects, p.Images)
	rows := []row{"class\tboxes\tAP@0.5:0.95\tAP@0.5\tAP@0.75"}
	for _, c := range p.Classes {
		rows = append(rows, rowf("%s\t%d\t%.2f %%\t%.2f %%\t%.2f %%", c.Label, c.Objects, 100*c.AP, 100*c.AP50, 100*c.AP75))
	}
	out.table(rows)
}

// changedOf returns the first of some flags that was given.
func changedOf(cmd *cobra.Command, flags ...string) string {
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}
