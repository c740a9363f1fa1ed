package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// linux writes a package for Debian and one for RPM into out.
func (r release) linux(folder, arch, out string) error {
	work, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	dynamic, err := needsLibc(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	if arch == "arm" {
		arch = "arm7" // as Go builds it where GOARM does not say otherwise
	}
	for _, p := range []struct {
		packager nfpm.Packager
		format   string
		libc     string
	}{
		{deb.Default, "deb", "libc6"},
		{rpm.DefaultRPM, "rpm", "glibc"},
	} {
		contents, err := r.contents(folder, filepath.Join(work, p.format), p.format)
		if err != nil {
			return err
		}
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: name, Arch: arch, Version: r.version, Release: "1", MTime: r.time,
			Section: "science", Priority: "optional", Maintainer: authors, Vendor: authors,
			Description: summary + "\n" + description, Homepage: homepage, License: license,
			DisableGlobbing: true,
			// All systems with the glibc that the command needs read zstd.
			Overridables: nfpm.Overridables{
				Contents: contents,
				Deb:      nfpm.Deb{Compression: "zstd"},
				RPM:      nfpm.RPM{Compression: "zstd", Summary: summary, BuildHost: "localhost"},
			},
		})
		if dynamic != "" {
			info.Depends = []string{dependency(p.format, p.libc, dynamic)}
		}
		// What the OpenCL backend opens where there is one.
		info.Suggests = map[string][]string{"deb": {"ocl-icd-libopencl1"}, "rpm": {"ocl-icd"}}[p.format]
		if err := nfpm.PrepareForPackager(info, p.format); err != nil {
			return err
		}
		path := filepath.Join(out, p.packager.ConventionalFileName(info))
		err = create(path, func(f *os.File) error { return p.packager.Package(info, f) })
		if err != nil {
			return err
		}
	}
	return nil
}

func dependency(format, libc, version string) string {
	if format == "deb" {
		return fmt.Sprintf("%s (>= %s)", libc, version)
	}
	return fmt.Sprintf("%s >= %s", libc, version)
}

// needsLibc returns the version of glibc that the command needs, or nothing if it is
// static.
func needsLibc(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) == 0 {
		return "", err
	}
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	newest := []int{0, 0, 0}
	for _, library := range needs {
		for _, version := range library.Needs {
			var v [3]int
			if n, _ := fmt.Sscanf(version.Dep, "GLIBC_%d.%d.%d", &v[0], &v[1], &v[2]); n >= 2 && slices.Compare(v[:], newest) > 0 {
				newest = v[:]
			}
		}
	}
	if newest[0] == 0 {
		return "", fmt.Errorf("%s: a dynamic executable that names no version of glibc", path)
	}
	return fmt.Sprintf("%d.%d", newest[0], newest[1]), nil
}

// contents lists what a package has. What is not in the folder as it is goes into work.
func (r release) contents(folder, work, format string) (files.Contents, error) {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	var list files.Contents
	add := func(source, destination, kind string, mode os.FileMode) {
		list = append(list, &files.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time},
		})
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	add(in(name), "/usr/bin/"+name, files.TypeFile, 0o755)
	add(in("completions/bcnn.bash"), "/usr/share/bash-completion/completions/bcnn", files.TypeFile, 0o644)
	add(in("completions/bcnn.fish"), "/usr/share/fish/vendor_completions.d/bcnn.fish", files.TypeFile, 0o644)
	zsh := map[string]string{"deb": "vendor-completions", "rpm": "site-functions"}[format]
	add(in("completions/_bcnn"), "/usr/share/zsh/"+zsh+"/_bcnn", files.TypeFile, 0o644)

	pages, err := filepath.Glob(in("man/*.1"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("%s: no manual pages (%v)", in("man"), err)
	}
	compress := func(source, destination string) error {
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		path := filepath.Join(work, filepath.Base(destination))
		add(path, destination, files.TypeFile, 0o644)
		return os.WriteFile(path, compressed(data), 0o644)
	}
	for _, page := range pages {
		if err := compress(page, "/usr/share/man/man1/"+filepath.Base(page)+".gz"); err != nil {
			return nil, err
		}
	}
	add(in("bcnn.service"), "/usr/lib/systemd/system/bcnn.service", files.TypeFile, 0o644)
	if format == "rpm" {
		add("", "/usr/share/licenses/bcnn", files.TypeDir, 0o755)
		add("", "/usr/share/doc/bcnn", files.TypeDir, 0o755)
		for _, file := range []string{"LICENSE", "NOTICE", "THIRD-PARTY"} {
			add(in(file), "/usr/share/licenses/bcnn/"+file, files.TypeRPMLicense, 0o644)
		}
		add(in("CHANGELOG.md"), "/usr/share/doc/bcnn/CHANGELOG.md", files.TypeRPMDoc, 0o644)
		return list, nil
	}
	// Debian has all licences in one file, and the text of this one on every system.
	copyright, err := debianCopyright(folder)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(work, "copyright")
	add(path, "/usr/share/doc/bcnn/copyright", files.TypeFile, 0o644)
	if err := os.WriteFile(path, copyright, 0o644); err != nil {
		return nil, err
	}
	return list, compress(in("CHANGELOG.md"), "/usr/share/doc/bcnn/changelog.gz")
}

func debianCopyright(folder string) ([]byte, error) {
	notice, err := os.ReadFile(filepath.Join(folder, "NOTICE"))
	if err != nil {
		return nil, err
	}
	others, err := os.ReadFile(filepath.Join(folder, "THIRD-PARTY"))
	if err != nil {
		return nil, err
	}
	text := strings.Replace(string(notice), "(see LICENSE)", "(see /usr/share/common-licenses/Apache-2.0)", 1)
	if text == string(notice) {
		return nil, fmt.Errorf("%s: does not say (see LICENSE)", filepath.Join(folder, "NOTICE"))
	}
	return append([]byte(text+"\n"), others...), nil
}

// compressed is data by gzip, without a name and a time.
func compressed(data []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails on unknown levels alone
	w.Write(data)                                         // to memory
	w.Close()
	return b.Bytes()
}
