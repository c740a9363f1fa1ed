package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn"
)

// versionLine is what version and --version print.
func versionLine() string {
	return fmt.Sprintf("bcnn %s %s %s/%s", bitcnn.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the command",
		Args:  noArguments(""),
		RunE: func(*cobra.Command, []string) error {
			env.out.printf("%s\n", versionLine())
			return nil
		},
	}
}
