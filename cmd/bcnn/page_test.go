//go:build !wasm

package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/command.md again")

// TestCommandPage holds docs/command.md against the help of the commands, from which -update writes it.
func TestCommandPage(t *testing.T) {
	const name = "../../docs/command.md"
	page := commandPage(newRoot(&output{w: io.Discard}, io.Discard))
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(page), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), page, "docs/command.md differs from the help: go test ./cmd/bcnn -run TestCommandPage -update")
}

// morePages are the pages that say more about a command.
var morePages = map[string]string{
	"bench":    "[performance](performance.md)",
	"check":    "[importing](importing.md#check)",
	"classify": "[which pictures are read](pictures.md), [your own photos](photos.md), [a camera](photos.md#a-camera)",
	"convert":  "[importing](importing.md), [the model file](model-file.md)",
	"detect":   "[finding objects](detect.md)",
	"devices":  "[GPUs](gpu.md)",
	"env":      "[in another module](embedding.md#with-gpus)",
	"eval":     "[how good a detector is](detect.md#how-good-is-it)",
	"inspect":  "[how binary layers are found](importing.md#how-binary-layers-are-found)",
	"parity":   "[the numeric contract](numeric-contract.md)",
	"serve":    "[serving](serving.md)",
}

// commandPage writes the help of all commands as a page, but for what only programs read: the fields of --json.
func commandPage(root *cobra.Command) string {
	var commands []*cobra.Command
	uses := map[string]int{} // of a flag, by name and usage
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "completion" {
			commands = append(commands, cmd)
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { uses[f.Name+f.Usage]++ })
		}
	}
	shared := func(f *pflag.Flag) bool { return uses[f.Name+f.Usage] > 2 || f.Name == "json" }

	var b strings.Builder
	b.WriteString("# The command\n\n<!-- The commands' own help, by go test ./cmd/bcnn -run TestCommandPage -update -->\n\n")
	b.WriteString(paragraphs(root) + examples(root))
	b.WriteString("`bcnn COMMAND --help` also lists the fields of `--json`, and `bcnn completion bash` (zsh, fish, powershell) prints completions. Packages have manual pages: `man bcnn-classify`.\n\n")
	b.WriteString("| command | |\n|---|---|\n")
	rows := map[string]string{} // of shared flags
	for _, cmd := range commands {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.Name(), cmd.Name(), cell(cmd.Short))
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if uses[f.Name+f.Usage] > 2 && f.Name != "help" {
				rows[f.Name] = flagRow(f)
			}
		})
	}
	b.WriteString("\nFlags that several commands have:\n\n| flag | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		b.WriteString(rows[name])
	}
	for _, cmd := range commands {
		fmt.Fprintf(&b, "\n## %s\n\n    %s\n\n%s%s", cmd.Name(), cmd.UseLine(), paragraphs(cmd), examples(cmd))
		var own, also []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "help":
			case shared(f):
				also = append(also, "`--"+f.Name+"`")
			default:
				own = append(own, flagRow(f))
			}
		})
		if len(own) > 0 {
			b.WriteString("| flag | |\n|---|---|\n" + strings.Join(own, "") + "\n")
		}
		if len(also) > 0 {
			b.WriteString("Also: " + strings.Join(also, ", ") + ".\n\n")
		}
		if more := morePages[cmd.Name()]; more != "" {
			b.WriteString("More: " + more + ".\n\n")
		}
	}
	return strings.TrimRight(strings.ReplaceAll(b.String(), "\n\n\n", "\n\n"), "\n") + "\n"
}

// paragraphs returns what the help of a command says, a line for each paragraph.
func paragraphs(cmd *cobra.Command) string {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	var b strings.Builder
	for _, p := range strings.Split(text, "\n\n") {
		if !strings.HasPrefix(p, "With --json") {
			b.WriteString(cell(strings.ReplaceAll(p, "\n", " ")) + "\n\n")
		}
	}
	return b.String()
}

func examples(cmd *cobra.Command) string {
	if cmd.Example == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimLeft(cmd.Example, " "), "\n  ", "\n    ") + "\n\n"
}

// flagRow returns a row of a table about a flag.
func flagRow(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	name := "`--" + f.Name
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	if kind != "" {
		name += " " + kind
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	return "| " + name + "` | " + cell(usage) + " |\n"
}

// quotedCommand is a command in the text of the help.
var quotedCommand = regexp.MustCompile(`'((?:bcnn|python) [^']*)'`)

// cell escapes what Markdown would take for something else.
func cell(s string) string {
	s = strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`).Replace(s)
	return quotedCommand.ReplaceAllString(s, "`$1`")
}
