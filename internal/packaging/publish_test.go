package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublish runs scripts/publish in a clone with a tag, with programs that note how they
// were called in the place of gh, twine and skopeo.
func TestPublish(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs bash")
	}
	dir := t.TempDir()
	clone, origin, tap, bin := filepath.Join(dir, "clone"), filepath.Join(dir, "origin"), filepath.Join(dir, "tap"), filepath.Join(dir, "bin")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
		return string(out)
	}
	git("clone", "-q", "../..", clone)
	git("init", "-q", "--bare", origin)
	git("init", "-q", "--bare", tap)
	git("-C", clone, "remote", "set-url", "origin", origin)
	script, err := os.ReadFile("../../scripts/publish") // which may not be committed yet
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(clone, "scripts/publish"), script, 0o755))
	git("-C", clone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "a", "--allow-empty")
	require.NoError(t, os.Mkdir(bin, 0o755))
	calls := filepath.Join(dir, "calls")
	for _, name := range []string{"gh", "twine", "skopeo"} {
		note := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >>%s\n", name, calls)
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(note), 0o755))
	}
	publish := func(env ...string) (int, string) {
		t.Helper()
		os.Remove(calls)
		cmd := exec.Command(filepath.Join(clone, "scripts/publish"))
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GH_TOKEN=", "TWINE_PASSWORD=", "IMAGE=", "TAP=",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			require.NoFileExists(t, calls)
			return cmd.ProcessState.ExitCode(), string(out)
		}
		return 0, string(out)
	}
	all := []string{"GH_TOKEN=secret", "TWINE_PASSWORD=secret", "IMAGE=registry.example/bitcnn", "TAP=" + tap}

	code, out := publish()
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "GH_TOKEN=...")
	_, out = publish(all...)
	require.Contains(t, out, "is not a release: check out a commit with a tag such as v0.1.0")
	git("-C", clone, "tag", "v9.8.7")
	_, out = publish(all...)
	require.Contains(t, out, "build/release is missing: run make release")

	release := filepath.Join(clone, "build/release")
	require.NoError(t, os.MkdirAll(release, 0o755))
	files := []string{"bcnn.rb", "bitcnn-9.8.7-cp311-abi3-manylinux_2_17_x86_64.whl", "bitcnn-9.8.7-linux-amd64.tar.gz", "bitcnn-9.8.7-oci.tar"}
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(release, name), []byte(name), 0o644))
	}
	_, out = publish(all...)
	require.Contains(t, out, "build/release/SHA256SUMS is missing")
	var list strings.Builder
	for name, sum := range sums(t, release) {
		fmt.Fprintf(&list, "%s  %s\n", sum, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(release, "SHA256SUMS"), []byte(list.String()), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(release, "other"), nil, 0o644))
	_, out = publish(all...)
	require.Contains(t, out, "files that are not in SHA256SUMS")
	require.NoError(t, os.Remove(filepath.Join(release, "other")))
	require.NoError(t, os.WriteFile(filepath.Join(release, "bcnn.rb"), []byte("changed"), 0o644))
	_, out = publish(all...)
	require.Contains(t, out, "build/release is not what make release has made")
	require.NoError(t, os.WriteFile(filepath.Join(release, "bcnn.rb"), []byte("bcnn.rb"), 0o644))
	require.NoError(t, os.Rename(filepath.Join(bin, "twine"), filepath.Join(bin, "no")))
	if _, err := exec.LookPath("twine"); err != nil {
		_, out = publish(all...)
		require.Contains(t, out, "twine is missing")
	}
	require.NoError(t, os.Rename(filepath.Join(bin, "no"), filepath.Join(bin, "twine")))

	code, out = publish(all...)
	require.Zero(t, code, out)
	require.NotContains(t, out, "secret")
	called, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, "gh release create v9.8.7 --verify-tag --title bitcnn 9.8.7 --notes See CHANGELOG.md. -- SHA256SUMS "+strings.Join(files, " ")+"\n"+
		"twine upload --non-interactive --skip-existing "+files[1]+"\n"+
		"skopeo copy --all oci-archive:bitcnn-9.8.7-oci.tar docker://registry.example/bitcnn:9.8.7\n"+
		"skopeo copy --all oci-archive:bitcnn-9.8.7-oci.tar docker://registry.example/bitcnn:latest\n", string(called))
	require.Equal(t, "v9.8.7\n", git("-C", origin, "tag"))
	require.Equal(t, "bcnn.rb", git("-C", tap, "show", "HEAD:Formula/bcnn.rb"))

	// One part alone.
	code, out = publish("TWINE_PASSWORD=secret")
	require.Zero(t, code, out)
	called, err = os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, "twine upload --non-interactive --skip-existing "+files[1]+"\n", string(called))
}
