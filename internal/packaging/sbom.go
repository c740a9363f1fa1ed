package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// module is a section of THIRD-PARTY.
type module struct{ path, version, text string }

const standardLibrary = "Go standard library"

var section = regexp.MustCompile(`(?m)^== (.+) (\S+)$`)

// modules reads the sections of THIRD-PARTY.
func modules(data string) (list []module) {
	at := section.FindAllStringSubmatchIndex(data, -1)
	for i, m := range at {
		end := len(data)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		list = append(list, module{data[m[2]:m[3]], data[m[4]:m[5]], data[m[1]:end]})
	}
	return list
}

// sbom writes the bill of materials of the command in a folder. Its components are those
// that THIRD-PARTY has licences of, which have to be the ones that the command itself
// names.
func (r release) sbom(folder, file, out string) error {
	path := filepath.Join(folder, file)
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	thirdParty, err := os.ReadFile(filepath.Join(folder, "THIRD-PARTY"))
	if err != nil {
		return err
	}
	list := modules(string(thirdParty))
	if !bytes.HasPrefix(binary, []byte("\x00asm")) { // WebAssembly does not name them
		if err := compare(path, list); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(binary)
	root := cdx.Component{
		BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: r.version, Description: summary,
		Licenses:           licenses(license),
		PackageURL:         purl("github.com/bitcnn/bitcnn", "v"+r.version),
		Hashes:             &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		ExternalReferences: &[]cdx.ExternalReference{{Type: cdx.ERTypeWebsite, URL: homepage}},
	}
	var components []cdx.Component
	var refs []string
	for _, m := range list {
		found, err := m.licenses()
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(folder, "THIRD-PARTY"), err)
		}
		if m.path == standardLibrary {
			m.path, m.version = "std", strings.TrimPrefix(m.version, "go")
		}
		ref := purl(m.path, m.version)
		components = append(components, cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version,
			Licenses: licenses(found...), PackageURL: ref,
		})
		refs = append(refs, ref)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &root}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: name, Dependencies: &refs}}
	return create(out, func(f *os.File) error {
		return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// compare is an error unless the executable names the same modules.
func compare(path string, list []module) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	want := []string{standardLibrary + " " + info.GoVersion}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, m := range list {
		got = append(got, m.path+" "+m.version)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s contains %q, THIRD-PARTY has the licences of %q", path, want, got)
	}
	return nil
}

// licenses returns the licences that the text of a module has, by their SPDX names.
func (m module) licenses() (names []string, err error) {
	for _, match := range licensecheck.Scan([]byte(m.text)).Match {
		if !match.IsURL && !slices.Contains(names, match.ID) {
			names = append(names, match.ID)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no known licence of %s %s", m.path, m.version)
	}
	slices.Sort(names)
	return names, nil
}

func licenses(names ...string) *cdx.Licenses {
	var list cdx.Licenses
	for _, name := range names {
		list = append(list, cdx.LicenseChoice{License: &cdx.License{ID: name}})
	}
	return &list
}

// purl is the package URL of a Go module.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)
}
