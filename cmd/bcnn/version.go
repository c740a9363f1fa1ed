package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
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
			if info, ok := debug.ReadBuildInfo(); ok && v == "" {
				v = info.Main.Version
			}
			if v == "" {
				v = "unknown"
			}
			env.out.printf("bcnn %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
