package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testRelease = release{"0.1.0", time.Unix(1_700_000_000, 0).UTC()}

// command is a static command for Linux.
var command = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "bcnn")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o644); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(program)
})

// stage makes a folder as scripts/release does.
func stage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	program, err := command()
	require.NoError(t, err)
	write("bcnn", string(program))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	bsd, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	require.NoError(t, err)
	write("THIRD-PARTY", "It contains these.\n\n== Go standard library "+runtime.Version()+"\n\n"+string(bsd))
	for _, name := range []string{"LICENSE", "NOTICE", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		require.NoError(t, err)
		write(name, string(text))
	}
	write("man/bcnn.1", ".TH BCNN 1\n")
	write("bcnn.service", "[Service]\n")
	for _, name := range []string{"_bcnn", "bcnn.bash", "bcnn.fish"} {
		write("completions/"+name, name)
	}
	return dir
}

func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		m[e.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return m
}

// TestSameBytes makes everything twice, of files with other times and permissions.
func TestSameBytes(t *testing.T) {
	var made []map[string]string
	for _, mode := range []os.FileMode{0o755, 0o700} {
		folder, out := stage(t), t.TempDir()
		require.NoError(t, os.Chmod(filepath.Join(folder, "bcnn"), mode))
		require.NoError(t, os.Chmod(filepath.Join(folder, "LICENSE"), mode&0o644))
		require.NoError(t, os.Chtimes(filepath.Join(folder, "NOTICE"), time.Time{}, time.Unix(int64(mode), 0)))
		require.NoError(t, testRelease.linux(folder, "amd64", out))
		require.NoError(t, testRelease.linux(folder, "arm", out))
		require.NoError(t, testRelease.image(filepath.Join(out, "oci.tar"), []string{"amd64=" + folder, "arm64=" + folder}))
		require.NoError(t, testRelease.sbom(folder, "bcnn", filepath.Join(out, "bcnn.cdx.json")))
		made = append(made, sums(t, out))
	}
	require.Equal(t, made[0], made[1])
	var names []string
	for name := range made[0] {
		names = append(names, name)
	}
	require.ElementsMatch(t, names, []string{
		"bcnn_0.1.0-1_amd64.deb", "bcnn_0.1.0-1_armhf.deb", "bcnn-0.1.0-1.x86_64.rpm", "bcnn-0.1.0-1.armv7hl.rpm",
		"oci.tar", "bcnn.cdx.json",
	})
}

// TestLibc compares with what objdump prints.
func TestLibc(t *testing.T) {
	for _, tool := range []string{"gcc", "objdump"} {
		if _, err := exec.LookPath(tool); err != nil || runtime.GOOS != "linux" {
			t.Skip("needs Linux and ", tool)
		}
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(source, []byte("#include <stdio.h>\n#include <math.h>\nint main(int n, char **v) { printf(\"%f\", pow(n, 0.3)); }\n"), 0o644))
	out, err := exec.Command("gcc", "-o", program, source, "-lm").CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command("objdump", "-T", program).Output()
	require.NoError(t, err)
	var minor int
	for _, m := range regexp.MustCompile(`GLIBC_2\.(\d+)`).FindAllStringSubmatch(string(out), -1) {
		var n int
		fmt.Sscan(m[1], &n)
		minor = max(minor, n)
	}
	require.NotZero(t, minor)
	got, err := needsLibc(program)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("2.%d", minor), got)

	static, err := needsLibc(filepath.Join(stage(t), "bcnn"))
	require.NoError(t, err)
	require.Empty(t, static)
}

// TestImage follows the digests of an image by hand, as the specification has them.
func TestImage(t *testing.T) {
	folder, path := stage(t), filepath.Join(t.TempDir(), "oci.tar")
	require.NoError(t, testRelease.image(path, []string{"amd64=" + folder, "arm64=" + folder}))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	entries := untar(t, f)
	require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(entries["oci-layout"]))

	type descriptor struct {
		Digest, MediaType string
		Size              int
		Platform          struct{ OS, Architecture string }
		Annotations       map[string]string
	}
	var index struct{ Manifests []descriptor }
	blob := func(d descriptor) []byte {
		hash, ok := strings.CutPrefix(d.Digest, "sha256:")
		require.True(t, ok, d.Digest)
		data := entries["blobs/sha256/"+hash]
		require.Len(t, data, d.Size)
		require.Equal(t, hash, fmt.Sprintf("%x", sha256.Sum256(data)))
		return data
	}
	require.NoError(t, json.Unmarshal(entries["index.json"], &index))
	require.Len(t, index.Manifests, 1)
	require.Equal(t, "localhost/bitcnn:0.1.0", index.Manifests[0].Annotations["io.containerd.image.name"])
	require.Equal(t, "application/vnd.oci.image.index.v1+json", index.Manifests[0].MediaType)
	data := blob(index.Manifests[0])
	index.Manifests = nil
	require.NoError(t, json.Unmarshal(data, &index))
	require.Len(t, index.Manifests, 2)
	for i, arch := range []string{"amd64", "arm64"} {
		d := index.Manifests[i]
		require.Equal(t, "application/vnd.oci.image.manifest.v1+json", d.MediaType)
		require.Equal(t, "linux", d.Platform.OS)
		require.Equal(t, arch, d.Platform.Architecture)
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		require.NoError(t, json.Unmarshal(blob(d), &manifest))
		require.Equal(t, "application/vnd.oci.image.config.v1+json", manifest.Config.MediaType)
		require.Len(t, manifest.Layers, 1)
		require.Equal(t, "application/vnd.oci.image.layer.v1.tar+gzip", manifest.Layers[0].MediaType)
		layer, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0])))
		require.NoError(t, err)
		plain, err := io.ReadAll(layer)
		require.NoError(t, err)
		var config struct {
			OS, Architecture, Created string
			Config                    struct {
				User            string
				Entrypoint, Cmd []string
				ExposedPorts    map[string]struct{}
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		require.NoError(t, json.Unmarshal(blob(manifest.Config), &config))
		require.Equal(t, []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}, config.RootFS.DiffIDs)
		require.Equal(t, "linux "+arch+" 2023-11-14T22:13:20Z", config.OS+" "+config.Architecture+" "+config.Created)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, "/usr/local/bin/bcnn serve --http :8000 --grpc :8001", strings.Join(append(config.Config.Entrypoint, config.Config.Cmd...), " "))
		require.Len(t, config.Config.ExposedPorts, 2)
		command, err := os.ReadFile(filepath.Join(folder, "bcnn"))
		require.NoError(t, err)
		files := untar(t, bytes.NewReader(plain))
		require.Equal(t, command, files["usr/local/bin/bcnn"])
		require.Contains(t, files, "usr/share/doc/bcnn/THIRD-PARTY")
		require.Contains(t, files, "tmp/")
	}
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		require.Equal(t, testRelease.time.Unix(), h.ModTime.Unix(), h.Name)
		require.Zero(t, h.Uid+h.Gid)
		data, err := io.ReadAll(in)
		require.NoError(t, err)
		files[h.Name] = data
	}
}

// TestSBOM takes the test itself, which has modules in it.
func TestSBOM(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(self)
	require.NoError(t, err)
	folder := stage(t)
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "bcnn"), data, 0o755))
	third := filepath.Join(folder, "THIRD-PARTY")
	text, err := os.ReadFile(third)
	require.NoError(t, err)
	out := filepath.Join(folder, "out.json")

	// Modules are in the command whose licences are not in THIRD-PARTY.
	require.ErrorContains(t, testRelease.sbom(folder, "bcnn", out), "THIRD-PARTY has the licences of")
	require.NoFileExists(t, out)

	licence := string(text[bytes.Index(text, []byte("Copyright")):])
	for _, m := range info.Deps {
		text = fmt.Appendf(text, "\n== %s %s\n\n%s", m.Path, m.Version, licence)
	}
	require.NoError(t, os.WriteFile(third, text, 0o644))
	require.NoError(t, testRelease.sbom(folder, "bcnn", out))
	var bom struct {
		SpecVersion string
		Metadata    struct {
			Timestamp string
			Component struct{ Hashes []struct{ Content string } }
		}
		Components []struct {
			Name, Version, Purl string
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	data2, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data2, &bom))
	require.Equal(t, "2023-11-14T22:13:20Z", bom.Metadata.Timestamp)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), bom.Metadata.Component.Hashes[0].Content)
	require.Len(t, bom.Components, len(info.Deps)+1)
	require.Equal(t, "std", bom.Components[0].Name)
	for i, c := range bom.Components {
		require.Equal(t, "BSD-3-Clause", c.Licenses[0].License.ID)
		if i > 0 {
			require.Equal(t, info.Deps[i-1].Path+" "+info.Deps[i-1].Version, c.Name+" "+c.Version)
			require.NotContains(t, c.Purl, "+")
		}
	}

	// A licence that is not known.
	require.NoError(t, os.WriteFile(third, bytes.ReplaceAll(text, []byte("Redistribution"), []byte("Juggling")), 0o644))
	require.ErrorContains(t, testRelease.sbom(folder, "bcnn", out), "no known licence of Go standard library")
}

func TestFormula(t *testing.T) {
	out := t.TempDir()
	require.ErrorContains(t, testRelease.formula(out), "no archive of 0.1.0")
	for _, system := range []string{"darwin-arm64", "darwin-amd64", "linux-arm64", "linux-amd64"} {
		require.NoError(t, os.WriteFile(filepath.Join(out, "bitcnn-0.1.0-"+system+".tar.gz"), []byte(system), 0o644))
	}
	want := sums(t, out)
	require.NoError(t, testRelease.formula(out))
	text, err := os.ReadFile(filepath.Join(out, "bcnn.rb"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(on_arm|on_intel) do\n +url "https://github\.com/bitcnn/bitcnn/releases/download/v0\.1\.0/([^"]+)"\n +sha256 "([0-9a-f]{64})"`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, found, 4)
	for _, m := range found {
		require.Equal(t, want[m[2]], m[3])
		require.Equal(t, m[1] == "on_arm", strings.Contains(m[2], "arm64"))
	}
	if _, err := exec.LookPath("ruby"); err == nil {
		message, err := exec.Command("ruby", "-c", filepath.Join(out, "bcnn.rb")).CombinedOutput()
		require.NoError(t, err, string(message))
	}
}

func TestErrors(t *testing.T) {
	t.Setenv("VERSION", "0.1.0")
	require.ErrorContains(t, run(nil), `VERSION is "0.1.0", want one such as v0.1.0`)
	t.Setenv("VERSION", "v0.1.0")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	require.ErrorContains(t, run(nil), "SOURCE_DATE_EPOCH")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	require.ErrorContains(t, run([]string{"linux"}), "want linux FOLDER")

	out := t.TempDir()
	for _, missing := range []string{"bcnn", "man/bcnn.1", "completions/_bcnn", "NOTICE", "THIRD-PARTY", "bcnn.service"} {
		folder := stage(t)
		require.NoError(t, os.Remove(filepath.Join(folder, missing)))
		require.ErrorContains(t, run([]string{"linux", folder, "amd64", out}), filepath.Join(folder, filepath.Dir(missing)))
	}
	require.ErrorContains(t, run([]string{"image", filepath.Join(out, "a.tar"), "amd64"}), "want ARCHITECTURE=FOLDER")
	require.Empty(t, sums(t, out)) // nothing half-written
}
