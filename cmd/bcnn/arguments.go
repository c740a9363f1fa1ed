package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bitcnn/bitcnn/internal/text"
)

// noArguments is the check of a command that takes none; hint says what to do instead.
func noArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		message := fmt.Sprintf("%s takes no arguments, but got %s", cmd.Name(), text.Quote(args[0]))
		if hint != "" {
			message += "; " + strings.ReplaceAll(hint, "%s", text.Escape(args[0]))
		}
		return errors.New(message)
	}
}

// oneArgument is the check of a command that takes one, which is called so.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s needs %s", cmd.Name(), what)
		case 1:
			return nil
		}
		return fmt.Errorf("%s takes one argument, %s; the second one is %s", cmd.Name(), what, text.Quote(args[1]))
	}
}

// someArguments is the check of a command that takes at least one.
func someArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s", cmd.Name(), what)
		}
		return nil
	}
}

// suggestFlag adds to the error of an unknown flag which one may have been meant.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := text.Closest(unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}
