package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
)

// version is what git calls the commit, where scripts/release has built the
// command. Elsewhere the go command may know it.
var version string

func newVersion(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the command",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version
			if v == "" {
				v = bitcnn.Version()
			}
			if v == "" {
				v = "unknown"
			}
			env.out.printf("bcnn %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
