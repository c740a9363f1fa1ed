package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newServe is a command that says why there is none: WebAssembly has no sockets to listen on.
// Without gRPC it is made of half as many packages here.
func newServe(*environment) *cobra.Command {
	return &cobra.Command{
		Use:                "serve",
		Short:              "Serve models over HTTP and gRPC (not in WebAssembly)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("serve: WebAssembly has no sockets to listen on; make web builds a page that needs no server")
		},
	}
}
