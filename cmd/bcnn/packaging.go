//go:build packaging

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"github.com/bitcnn/bitcnn"
	_ "github.com/bitcnn/bitcnn/backend/all"
)

// With the build tag packaging, which scripts/release sets, the program writes the manual
// pages and the completions of the command into a folder. So the command itself does not
// have the libraries that make manual pages.
func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "want one folder, which gets man/*.1 and completions/*")
		os.Exit(exitUsage)
	}
	if err := writePages(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitJob)
	}
}

// writePages writes the pages of the command and of its sub-commands. $SOURCE_DATE_EPOCH
// is their date.
func writePages(dir string) error {
	root := newRoot(&output{w: io.Discard}, io.Discard)
	root.DisableAutoGenTag = true
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "bcnn " + bitcnn.Version(), Manual: "bitcnn"}, man); err != nil {
		return err
	}
	for name, write := range map[string]func(string) error{
		"bcnn.bash": func(name string) error { return root.GenBashCompletionFileV2(name, true) },
		"_bcnn":     root.GenZshCompletionFile,
		"bcnn.fish": func(name string) error { return root.GenFishCompletionFile(name, true) },
		"bcnn.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		if err := write(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}
