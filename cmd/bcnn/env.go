package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/text"
)

// pkgConfig is what the go command asks for the compiler flags of OpenCL. The
// functions of OpenCL are defined by the backend, so there is nothing to link.
const pkgConfig = `#!/bin/sh
# Written by 'bcnn env'. Answers for OpenCL, so that neither its headers nor its
# loader need be installed; the system's pkg-config answers for everything else.
case " $* " in
*" --cflags "*" OpenCL ") echo -DCL_TARGET_OPENCL_VERSION=120 ;;
*" --libs "*" OpenCL ") ;;
*) exec pkg-config "$@" ;;
esac
`

func newEnv(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print the build settings that other Go modules need for the GPU backends",
		Long: `Print the settings with which the go command builds another module with the tags cuda
and opencl, as lines for a shell (on Windows for cmd.exe). C headers and a stand-in
for pkg-config are written to the user's cache, and no toolkit or driver is needed.
The CPU backend needs none of this. On systems without GPU backends it is an error.`,
		Example: `  bcnn env
  eval "$(bcnn env)" && go build -tags cuda,opencl ./...
  eval "$(go tool bcnn env)" && go install -tags cuda,opencl ./...
  bcnn env > %TEMP%\env.bat && call %TEMP%\env.bat`,
		Args: noArguments(""),
		RunE: func(*cobra.Command, []string) error {
			switch runtime.GOOS + "/" + runtime.GOARCH {
			case "linux/amd64", "linux/arm64", "windows/amd64":
			default:
				return errors.New("CUDA and OpenCL are supported only on Linux (amd64, arm64) and Windows (amd64); the CPU backend needs no settings")
			}
			cache, err := os.UserCacheDir()
			if err != nil {
				return err
			}
			dir, err := writeHeaders(filepath.Join(cache, "bitcnn"), all.Headers())
			if err != nil {
				return err
			}
			include, err := quoteFlag("-I" + filepath.Join(dir, "include"))
			if err != nil {
				return err
			}
			if runtime.GOOS == "windows" {
				fmt.Fprintln(env.out, cmdLine(os.Getenv("CGO_CFLAGS"), include))
				return env.out.err
			}
			script, err := quoteFlag(filepath.Join(dir, "pkg-config"))
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(env.out, "export CGO_CFLAGS=\"$(go env CGO_CFLAGS) \"%s\nexport PKG_CONFIG=%s\n", quoteShell(include), quoteShell(script))
			return env.out.err
		},
	}
}

// cmdLine is what cmd.exe is to execute where the flags for C have been those. There is no
// pkg-config to be asked on Windows.
func cmdLine(flags, include string) string {
	if flags == "" {
		flags = "-O2 -g" // of the go command, which it leaves out where others are set
	}
	if include += " -DCL_TARGET_OPENCL_VERSION=120"; !strings.Contains(flags, include) {
		flags += " " + include
	}
	return `set "CGO_CFLAGS=` + flags + `"`
}

// writeHeaders writes the folders include of the file systems, joined, and the
// stand-in for pkg-config to a folder below dir, and returns its name, which is
// another one for other content.
func writeHeaders(dir string, headers []fs.FS) (string, error) {
	content := map[string][]byte{"pkg-config": []byte(pkgConfig)}
	for _, h := range headers {
		err := fs.WalkDir(h, "include", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				content[name], err = fs.ReadFile(h, name)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	names := make([]string, 0, len(content))
	for name := range content {
		names = append(names, name)
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content[name]), content[name])
	}
	own := []string{dir, filepath.Join(dir, "headers-"+hex.EncodeToString(hash.Sum(nil)[:8]))}
	dir = own[1]
	for _, name := range names {
		own = append(own, filepath.Dir(filepath.Join(dir, filepath.FromSlash(name))))
	}
	for _, folder := range slices.Compact(own) {
		if err := files.OwnFolder(folder); err != nil {
			return "", err
		}
	}
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := files.Replace(file, func(w io.Writer) error {
			_, err := w.Write(content[name])
			return err
		})
		mode := fs.FileMode(0o644) // whatever the umask
		if name == "pkg-config" {
			mode = 0o755
		}
		if err == nil {
			err = os.Chmod(file, mode)
		}
		if err != nil {
			return "", err
		}
	}
	return dir, nil
}

// quoteFlag quotes a word for the go command, which splits such settings at spaces
// and knows quotes of both kinds, but no escapes.
func quoteFlag(word string) (string, error) {
	switch {
	case text.Escape(word) != word:
		return "", fmt.Errorf("%q: this name does not print; choose another folder with $XDG_CACHE_HOME", word)
	case !strings.ContainsAny(word, " '\""):
		return word, nil
	case !strings.Contains(word, "'"):
		return "'" + word + "'", nil
	case !strings.Contains(word, `"`):
		return `"` + word + `"`, nil
	}
	return "", fmt.Errorf("%s: the go command takes no names with quotes of both kinds; choose another folder with $XDG_CACHE_HOME", word)
}

// quoteShell quotes a word for a POSIX shell.
func quoteShell(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
