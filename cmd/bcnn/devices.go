package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend"
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
	Error   string   `json:"error,omitempty"`
}

func newDevices(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices, and why others are absent",
		Long: `List every device of every backend. A backend without a device, or with devices
that cannot be used, has a line with the reason.

With --json, one object per line: backend, and either device, name, kind,
detail, memory (bytes, where known), isas (what --isa takes, the best first), or
error.`,
		Example: `  bcnn devices
  bcnn devices --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var lines []deviceLine
			for _, b := range backend.Backends() {
				devices, err := b.Devices()
				for _, d := range devices {
					info := d.Info()
					lines = append(lines, deviceLine{
						Backend: b.Name(), Device: info.ID, Name: info.Name,
						Kind: info.Kind.String(), Detail: info.Detail, Memory: info.Memory, ISAs: info.ISAs,
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
				rows = append(rows, r)
			}
			env.out.table(rows)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}
