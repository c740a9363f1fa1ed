package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed bcnn.rb.tmpl
var formulaText string

var formulaTemplate = template.Must(template.New("bcnn.rb").Parse(formulaText))

// archive is an archive that Homebrew loads.
type archive struct{ Block, URL, Sum string }

// formula writes bcnn.rb, for the archives that are in the folder.
func (r release) formula(out string) error {
	systems := map[string][]archive{}
	for _, goos := range []string{"darwin", "linux"} {
		for _, arch := range []struct{ name, block string }{{"arm64", "on_arm"}, {"amd64", "on_intel"}} {
			file := fmt.Sprintf("bitcnn-%s-%s-%s.tar.gz", r.version, goos, arch.name)
			data, err := os.ReadFile(filepath.Join(out, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			systems[goos] = append(systems[goos], archive{
				arch.block, homepage + "/releases/download/v" + url.PathEscape(r.version) + "/" + url.PathEscape(file),
				fmt.Sprintf("%x", sha256.Sum256(data)),
			})
		}
	}
	if len(systems) == 0 {
		return fmt.Errorf("%s: no archive of %s for macOS or Linux", out, r.version)
	}
	var b bytes.Buffer
	err := formulaTemplate.Execute(&b, map[string]any{
		"Summary": summary, "Homepage": homepage, "License": license, "Version": r.version,
		"MacOS": systems["darwin"], "Linux": systems["linux"],
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "bcnn.rb"), b.Bytes(), 0o644)
}
