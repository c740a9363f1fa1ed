package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	nobody      = "65532:65532" // the user of images without a distribution
	commandPath = "usr/local/bin/bcnn"
)

// image writes an OCI image layout as a tar archive: one index with an image for each
// architecture, of the static command and its licences alone. Podman and Docker load it
// as localhost/bitcnn:VERSION.
func (r release) image(out string, platforms []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		arch, folder, ok := strings.Cut(platform, "=")
		if !ok {
			return fmt.Errorf("%q, want ARCHITECTURE=FOLDER", platform)
		}
		command := filepath.Join(folder, name)
		if libc, err := needsLibc(command); err != nil {
			return err
		} else if libc != "" {
			return fmt.Errorf("%s needs glibc, which the image has not", command)
		}
		image, err := r.platformImage(arch, folder)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: arch},
		}})
	}
	work, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	path, err := layout.Write(work, empty.Index)
	if err != nil {
		return err
	}
	// Tags of local images have no "+".
	tag := strings.ReplaceAll(r.version, "+", "-")
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          "localhost/bitcnn:" + tag,
	}))
	if err != nil {
		return err
	}
	return create(out, func(f *os.File) error { return r.tarFolder(f, work) })
}

func (r release) platformImage(arch, folder string) (v1.Image, error) {
	layer, err := r.layer(folder)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{
		Created: v1.Time{Time: r.time}, CreatedBy: "scripts/release", Comment: "bcnn " + r.version,
	}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture, config.Created, config.Author = "linux", arch, v1.Time{Time: r.time}, authors
	config.Config = v1.Config{
		User:         nobody,
		Entrypoint:   []string{"/" + commandPath},
		Cmd:          []string{"serve", "--http", ":8000", "--grpc", ":8001"},
		ExposedPorts: map[string]struct{}{"8000/tcp": {}, "8001/tcp": {}},
		WorkingDir:   "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       name,
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.licenses":    license,
			"org.opencontainers.image.source":      homepage,
			"org.opencontainers.image.created":     r.time.Format("2006-01-02T15:04:05Z"),
		},
	}
	return mutate.ConfigFile(image, config)
}

// layer has the command, its licences, and a folder for temporary files.
func (r release) layer(folder string) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	dir := func(name string, mode int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: r.time, Format: tar.FormatUSTAR})
	}
	file := func(source, name string, mode int64) error {
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: mode, ModTime: r.time, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	if err := dir("tmp/", 0o1777); err != nil {
		return nil, err
	}
	for _, name := range []string{"usr/", "usr/local/", "usr/local/bin/", "usr/share/", "usr/share/doc/", "usr/share/doc/bcnn/"} {
		if err := dir(name, 0o755); err != nil {
			return nil, err
		}
	}
	if err := file(filepath.Join(folder, name), commandPath, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"LICENSE", "NOTICE", "THIRD-PARTY"} {
		if err := file(filepath.Join(folder, name), "usr/share/doc/bcnn/"+name, 0o644); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
}

// tarFolder writes the files of a folder in the order of their names.
func (r release) tarFolder(out io.Writer, folder string) error {
	w := tar.NewWriter(out)
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		h := &tar.Header{Name: name, Mode: 0o644, ModTime: r.time, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
			return w.WriteHeader(h)
		}
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
